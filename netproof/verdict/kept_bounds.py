"""Bounds of a stored verdict, in the form that is compared with today's."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netproof.criteria import Level
from netproof.errors import NetproofError
from netproof.intake import loading
from netproof.measurement.case import Case
from netproof.site.matrix import Matrix
from netproof.verdict.references import NotThere
from netproof.verdict.subject import Ruling


@dataclass(frozen=True)
class KeptCase:
    """Verdict on one case; ``entries``: a hash of its entries in the file of references."""

    case: Case
    level: Level
    entries: str
    faults: tuple[str, ...] = ()
    expected: str = ""
    rulings: tuple[Ruling, ...] = ()


@dataclass(frozen=True)
class KeptBounds:
    """Bounds that a verdict was judged by.

    ``partition``: the only one that was to run, empty for all of the system; ``full``: with the
    tests of ``checks/full``; ``settings``: of all criteria, by partition; ``references``: the file,
    with its ``references_sha256``; ``netproof``: its version; ``judged_by``: the ``JUDGED_BY`` of
    that version.
    """

    netproof: str
    judged_by: int
    partition: str
    full: bool
    matrix: Matrix
    settings: dict[str, Any]
    references: Path
    references_sha256: str


_OF_SITE = (
    *("switch", "interface", "link_mbit_s", "mtu", "nodes"),
    *("may_differ", "clock_offset_ms", "coverage_percent"),
)
"""Keys of a partition that a verdict depends on, besides its rails and rounds of pairs."""


def of_matrix(matrix: Matrix) -> dict[str, Any]:
    """Return the bounds of each partition as plain values: its criteria and ``_OF_SITE``."""
    return {
        name: plain(
            {
                **{key: getattr(one, key) for key in _OF_SITE},
                "rails": one.rails_or_interface(),
                # Environments say where they are measured, which is no bound.
                "pairs": one.pair_settings().model_dump(mode="json", exclude={"environments"}),
                **dataclasses.asdict(one.settings()),
            }
        )
        for name, one in matrix.partitions.items()
    }


def known_flaws(matrix: Matrix) -> dict[str, dict[str, str]]:
    """Return the known flaws of the environments that were to run."""
    here = {case.environment for case in matrix.cases}
    return {name: flaws for name, flaws in matrix.known.items() if name in here and flaws}


def digest_of_entries(entries: Callable[[Case], Mapping[str, Any]], case: Case) -> str:
    """Return a digest of a case's entries in a file of references."""
    try:
        found = json.dumps(plain(entries(case)), sort_keys=True)
    except NotThere:
        found = "none"
    return hashlib.sha256(found.encode()).hexdigest()[:16]


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file. Raises NetproofError where it cannot be read."""
    try:
        return hashlib.sha256(loading.read_bytes(path)).hexdigest()
    except OSError as error:
        raise NetproofError(f"{path}: cannot be read: {error.strerror}") from error


def plain(value: Any) -> Any:
    """Return the value as JSON returns it."""
    return json.loads(json.dumps(value, default=str))
