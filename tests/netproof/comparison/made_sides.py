"""Sessions with other times than were recorded."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from netproof import codec
from netproof.comparison.comparison import compare, sides
from netproof.session.measured import Measured
from netproof.verdict import power


def with_results(stored, change, path="elsewhere.json"):
    """The session under another path, with ``change`` made to the result of each case."""
    results = tuple(result if result.case is None else change(result) for result in stored.results)
    return dataclasses.replace(stored, path=Path(path), results=results)


def with_times(result, factor):
    """The result with the times of all launches multiplied; ``factor`` takes the size."""
    if not result.measured:
        return result
    launches = []
    for one in result.measured.launches:
        points = zip(one.curve.sizes, one.curve.time_us, strict=True)
        curve = power.with_times(one.curve, [time * factor(size) for size, time in points])
        launches.append(dataclasses.replace(one, curves=(curve,)))
    return dataclasses.replace(result, measured=result.measured.with_launches(launches))


def with_launches(result, launches, **values):
    """The result with these launches, of plain values, in the place of its own."""
    whole = {**codec.encode(result.measured), "launches": launches, **values}
    return dataclasses.replace(result, measured=codec.decode_part(Measured, whole, "a case"))


def of(compared, what, partition="gige", environment="mpich"):
    return next(
        case
        for case in compared.cases
        if case.first.case.what() == what
        and (case.first.case.partition, case.first.case.environment) == (partition, environment)
    )


def timed(healthy, factor, what="NetPIPE mpi inter-node oneway"):
    """The case of a session compared with the same with other times, as ``with_times``."""
    return of(
        compare(*sides(healthy, with_results(healthy, lambda one: with_times(one, factor)))), what
    )
