"""The envelope of equal cases, including those of other sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from netproof import criteria
from netproof.criteria import Envelope
from netproof.criteria.slower import ENVELOPE
from netproof.site.matrix import Matrix
from netproof.verdict.judged import Borrowed, Judged


@dataclass(frozen=True)
class EnvelopeOfCases:
    """The envelope, None where fewer than two cases share a size.

    ``unlike_links``: whether messages of the cases cross links of different rates or MTUs.
    """

    envelope: Envelope | None
    unlike_links: bool


def of_cases(cases: Mapping[str, Judged | Borrowed], matrix: Matrix) -> EnvelopeOfCases:
    """Return the envelope of equal cases, by their labels; at least one is of this session."""
    curves = {
        label: one.measured.curve
        for label, one in cases.items()
        if one.measured is not None and one.measured.curve.sizes != (0,)
    }
    first = next(one.case for one in cases.values() if isinstance(one, Judged))
    partition = matrix.partitions.get(first.partition)
    settings = ENVELOPE if partition is None else partition.settings().envelope
    unlike = first.path != "inside" and _links(cases, matrix) > 1
    return EnvelopeOfCases(criteria.envelope(curves, settings), unlike)


def _links(cases: Mapping[str, Judged | Borrowed], matrix: Matrix) -> int:
    """Return the number of different links that the cases cross, as far as these are known."""
    found = set()
    for one in cases.values():
        if isinstance(one, Borrowed):
            link = one.subject.link
        else:
            partition = matrix.partitions.get(one.case.partition)
            over_tcp = one.case.function == "tcp" or (
                one.case.environment not in matrix.not_over_tcp
            )
            link = None if partition is None else partition.link(over_tcp=over_tcp)
        found |= {link} - {None}
    return len(found)
