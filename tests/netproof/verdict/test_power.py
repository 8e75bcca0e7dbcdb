"""The smallest changes that recorded sessions would have called failures."""

from __future__ import annotations

import pytest
from made_measured import matrix_of, recorded

from netproof.measurement.case import Curve
from netproof.verdict import power
from netproof.verdict.power import Examined


def no_references(case):
    return {}


def examined(name: str, references=no_references) -> Examined:
    return Examined(recorded(name), matrix_of(recorded(name)), references)


@pytest.fixture(scope="module")
def repeated() -> Examined:
    """A session with several launches of each case."""
    return examined("healthy")


def one_way(of: Examined, protocol: str = "tcp"):
    """NetPIPE between two nodes."""
    return next(
        case
        for case in of.cases
        if (case.benchmark, case.function, case.path, case.direction)
        == ("netpipe", protocol, "inter-node", "oneway")
    )


def test_a_case_that_failed_has_no_smallest_change(repeated):
    def bound(case):
        return {"latency_us": [0.001, None, 0.1, "us"]}

    failed = examined("healthy", bound)
    assert failed.power(one_way(failed))[2] == ()


def test_stated_changes_fail_the_cases_that_a_bound_on_them_would():
    def at_most(times):
        """Bound the latency of each case by so many times its own."""
        found = examined("passed")
        of_case = {key: one.measured.landmarks.latency_us for key, one in found._subjects.items()}
        return lambda case: {"latency_us": [of_case[case.key()], None, times - 1, "us"]}

    def found(references):
        session = examined("passed", references)
        return session.sensitivity(session.cases)

    none, wide, narrow = found(no_references), found(at_most(50)), found(at_most(1.5))
    assert (none.cases, wide.latency, wide.neither) == (3, 0, 0)
    assert (narrow.cases, narrow.latency, narrow.neither) == (3, 3, 0)
    assert none.neither == 3
    assert found(at_most(0.5)).cases == 0


def test_times_and_rates_change_together():
    curve = Curve((1, 2), (1.0, 2.0), (1.0, 1.0), (0.5, 1.0), (0.8, 1.6))
    slower = power.with_times(curve, (2.0, 2.0))
    assert slower == Curve((1, 2), (2.0, 2.0), (0.5, 1.0), (1.0, 1.0), (1.6, 1.6))


@pytest.mark.slow
def test_how_sure_it_is_takes_several_launches(repeated):
    _, launches, smallest = repeated.power(one_way(repeated))
    assert launches > 1
    assert all(one.sure >= one.factor for one in smallest if one.factor is not None)
    single = examined("passed")
    assert all(one.sure is None for one in single.power(one_way(single))[2])
