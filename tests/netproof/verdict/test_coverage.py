"""How many of the usable nodes of each partition were measured, and which were not."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import made_measured
import pytest
from made_rounds import recorded

from netproof.present.verdict import outcome
from netproof.session.provenance import Provenance
from netproof.session.session import Session
from netproof.site import site
from netproof.site.matrix import matrix
from netproof.verdict import INCONCLUSIVE, coverage
from netproof.verdict.verdict import Verdict

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def passed() -> Session:
    """A session that measured on gige-1 and gige-2."""
    return made_measured.recorded("passed")


GIGE = matrix(site.gather(ROOT / "site-config"), "testbed").partitions["gige"]
LENIENT = GIGE.model_copy(update={"coverage_percent": 0})


def covered(
    passed: Session, states: dict[str, str] | None, why: str = "", **values: object
) -> coverage.Coverage:
    """The coverage where Slurm had the nodes in these states, or was not asked."""
    slurm = {}
    if states is not None:
        slurm = {"gige": why or states}
    made = Provenance("", "", None, None, None, {}, (), partitions=slurm)
    (found,) = coverage.judge(made, passed, {"gige": LENIENT.model_copy(update=values)})
    return found


STATES = {"gige-1": "idle", "gige-2": "allocated", "gige-3": "idle", "gige-4": "mixed"}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "gige: 2 of 4 usable nodes measured; not measured gige-3; busy gige-4"),
        (
            {"gige-3": "down*", "gige-4": "drained"},
            "gige: 2 of 2 usable nodes measured; down gige-3; drained gige-4",
        ),
        (
            {"gige-3": "idle*", "gige-4": "maint"},
            "gige: 2 of 2 usable nodes measured; down gige-3; drained gige-4",
        ),
        # A node that was measured although Slurm had it as down then.
        (
            {"gige-2": "down"},
            "gige: 1 of 3 usable nodes measured; not measured gige-3; busy gige-4; down gige-2",
        ),
    ],
)
def test_the_line_has_all_nodes_that_were_not_measured_by_name(passed, changes, line):
    found = covered(passed, STATES | changes)
    assert str(found) == line
    assert not found.failed


def test_where_slurm_is_not_known_what_the_site_states_counts(passed):
    found = covered(passed, {}, "Slurm has no partition gige")
    assert not found.failed
    assert str(found) == (
        "gige: 2 nodes measured of 4 that the site states; what Slurm has is not known: Slurm has"
        " no partition gige"
    )
    why = "Slurm has no partition gige"
    assert not covered(passed, {}, why, coverage_percent=50).failed
    assert covered(passed, {}, why, coverage_percent=51).failed
    assert not covered(passed, {}, why, coverage_percent=100, nodes=2).failed
    assert covered(passed, dict.fromkeys(STATES, "down"), coverage_percent=1).failed


def test_a_link_that_was_measured_one_way_is_known_in_one_direction(passed):
    known = coverage.links([], coverage.launches_between(passed.results))
    assert {("gige-1", "gige-2"), ("gige-2", "gige-1")} <= known
    assert covered(passed, STATES).one_way == ()
    result = next(
        r
        for r in passed.results
        if r.measured and (r.case.function, r.case.path) == ("PingPong", "inter-node")
    )
    # osu_bw sends from the first rank to the second.
    case = dataclasses.replace(result.case, benchmark="osu", function="bw")
    streamed = dataclasses.replace(passed, results=(dataclasses.replace(result, case=case),))
    found = covered(streamed, STATES)
    assert found.one_way == (("gige-1", "gige-2"),)
    assert str(found).endswith("; links known only in one direction: gige-1 to gige-2")


def test_a_session_that_left_cases_of_a_partition_does_not_fail_by_its_nodes(passed):
    made = Provenance("", "", None, None, None, {}, (), partitions={"gige": STATES})
    (asked,) = coverage.judge(made, passed, {"gige": GIGE})
    assert asked.failed
    (deferred,) = coverage.judge(made, passed, {"gige": GIGE}, {"gige"})
    assert not deferred.failed
    assert str(deferred).endswith("; cases were deferred")


def in_pairs(
    session: Session, left: str = "", *, planned: bool = False, **values: object
) -> Session:
    """With rounds of pairs of the recorded job on this partition, or the reason for none."""
    rounds = recorded(partition="gige", **values) if not left else None
    one = dataclasses.replace(
        next(r for r in session.results if r.partition == "gige"),
        kind="pairs",
        case=None,
        measured=None,
        rounds=rounds,
        extras={"partition_extras": {}},
        skipped=left,
        planned=planned,
        result="skip" if left else "pass",
    )
    return dataclasses.replace(session, results=(*session.results, one))


def test_nodes_that_were_waited_for_are_named_and_make_it_inconclusive_not_failed(passed):
    session = in_pairs(passed, deferred=("gige-3", "gige-4"), waited_s=600.0)
    found = covered(session, STATES, coverage_percent=100)
    assert (found.failed, found.short) == (False, True)
    assert str(found) == (
        "gige: 2 of 4 usable nodes measured; deferred gige-[3-4], not free in 600 s; the site needs"
        " 100 % of the usable ones (coverage_percent)"
    )
    verdict = Verdict((), (), (), (), coverage=(found,))
    assert (verdict.undecided, verdict.status) == ((f"coverage: {found}",), INCONCLUSIVE)
    assert outcome(verdict).endswith("2 nodes deferred")
    enough = covered(session, STATES, coverage_percent=50)
    assert (enough.failed, enough.short) == (False, False)
    assert str(enough).endswith("deferred gige-[3-4], not free in 600 s")
    assert Verdict((), (), (), (), coverage=(enough,)).undecided == ()


def test_a_run_that_got_no_two_nodes_says_why_and_cannot_be_judged(passed):
    left = "Slurm gave it no 4 nodes in 600 s (wait_for_nodes_s)"
    found = covered(in_pairs(passed, left), STATES, coverage_percent=100)
    assert (found.failed, found.short) == (False, True)
    assert "; no rounds of pairs: Slurm gave it no 4 nodes in 600 s" in str(found)
    planned = covered(in_pairs(passed, left, planned=True), STATES, coverage_percent=100)
    assert planned.failed
    assert not planned.no_rounds
