"""A comparison of two sides, as plain values for ``json``."""

from __future__ import annotations

import dataclasses
from typing import Any

from netproof.comparison import comparison
from netproof.comparison.comparison import ComparedSide, Comparison
from netproof.errors import NetproofError
from netproof.present import documents
from netproof.present.compared import summary


def document(compared: Comparison) -> dict[str, Any]:
    """Return plain values for ``json``; sizes in bytes, times in µs, bandwidths in MB/s."""
    first, second = compared.first, compared.second
    on_nodes, unknown = None, None
    try:
        on_nodes = comparison.differing(compared)
    except NetproofError as error:
        unknown = str(error)
    return {
        "format": documents.FORMAT,
        "first": _side(first),
        "second": _side(second),
        "summary": summary(compared),
        "geometric_mean": compared.mean(),
        "differences": [
            {
                "what": difference.what,
                "first": difference.first,
                "second": difference.second,
                "cases": difference.cases,
            }
            for difference in compared.differences
        ],
        "nodes": None
        if on_nodes is None
        else [
            {"what": what, "first": list(one), "second": list(other)}
            for what, (one, other) in on_nodes.items()
        ],
        "nodes_not_known": unknown,
        "cases": [
            {
                "first": documents.of_case(case.first.case),
                "second": documents.of_case(case.second.case),
                "outcome": case.outcome,
                "ratio": case.score.value,
                "interval": case.score.interval,
                "common": documents.of_common(case.score.common),
                "sizes_bytes": list(case.ratios),
                "ratios": list(case.ratios.values()),
                "ranges": [
                    {
                        "least_bytes": one.least,
                        "largest_bytes": one.largest,
                        "faster": one.faster,
                        "size_bytes": one.size,
                        "ratio": one.ratio,
                    }
                    for one in case.ranges
                ],
                "landmarks": {
                    name: dataclasses.asdict(one) for name, one in case.landmarks.items()
                },
                "cpu_s_per_gb": {
                    name: getattr(case.cpu_s_per_gb, name) for name in ("first", "second", "ratio")
                },
                "disturbed": list(case.disturbed),
                "sentence": case.sentence(),
            }
            for case in compared.cases
        ],
        "not_compared": [
            {**documents.of_case(one.case), "measured_by": one.measured_by, "why": one.why}
            for one in compared.uncompared
        ],
    }


def _side(side: ComparedSide) -> dict[str, Any]:
    return {
        "name": side.name,
        "session": str(side.session.path),
        "started": side.session.info.get("time_start"),
        "labels": side.session.labels(),
        "system": side.session.results[0].system,
        "partition": side.partition,
        "environment": side.environment,
    }
