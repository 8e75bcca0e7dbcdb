"""A verdict in order for people: failures, counts, breaking points, CPU costs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from made_measured import matrix_of, recorded, result_in
from made_text import printed as shown

from netproof.criteria import Finding, Level
from netproof.measurement.case import Case
from netproof.measurement.disturbance import NO_STARTS, NodeCost
from netproof.present.verdict import sentences
from netproof.session import session
from netproof.session.session import Session
from netproof.verdict import session_verdict
from netproof.verdict.judge import judge
from netproof.verdict.session_verdict import NOTHING
from netproof.verdict.verdict import (
    CaseVerdict,
    Crossover,
    Verdict,
    breakdown,
    cpu_rows,
    crossovers,
    failures,
    red_cases,
)

SESSIONS = Path(__file__).resolve().parents[2] / "data" / "sessions"
REFUSED = "sbatch: error: Batch job submission failed: Requested node configuration is gone"


def whole(stored: Session) -> Verdict:
    """The verdict where what is there was expected, and nothing else."""
    return judge(matrix_of(stored), stored)


def printed(verdict: Verdict) -> list[str]:
    judged = SimpleNamespace(
        verdict=verdict,
        recurring=NOTHING,
        session=SimpleNamespace(ahead=""),
        matrix=SimpleNamespace(partitions={}),
    )
    return [line.rstrip() for line in shown(sentences(judged), 400).splitlines()]


@pytest.fixture
def failed_job(tmp_path) -> Path:
    """The report of faulty.json, had its job failed: its eight checks then do not run."""
    document = json.loads((SESSIONS / "faulty.json").read_text())
    for test in document["runs"][0]["testcases"]:
        if test["dependencies_actual"]:
            test.update(result="fail_deps", fail_phase="startup", fail_reason="dependencies failed")
            test["netproof_measured"] = {}
        else:
            test.update(result="fail", fail_phase="run", fail_reason=REFUSED)
            test["display_name"] = "ImbJob %ranks=2"
    path = tmp_path / "run-0.json"
    path.write_text(json.dumps(document))
    return path


def test_cases_that_did_not_run_for_a_failed_job_are_one_line_with_it(failed_job):
    verdict = whole(session.load(failed_job))
    lines = [line for line in printed(verdict) if line.startswith("FAIL")]
    assert lines == [
        f"FAIL testbed:gige mpich ImbJob %ranks=2: fail in run: {REFUSED}; 8 cases did not run for"
        " it (IMB PingPong 2 ranks, IMB Sendrecv 2 ranks, IMB Bcast 2 ranks and 5 more)"
    ]
    # Failures of one line are separate in JSON.
    assert all(len(one.faults) == 1 for one in verdict.cases)


def test_a_case_that_failed_itself_is_not_hidden_behind_the_job(failed_job):
    stored = session.load(failed_job)
    results = list(stored.results)
    first = next(n for n, r in enumerate(results) if r.case is not None)
    results[first] = dataclasses.replace(
        results[first], result="fail", phase="sanity", reason="it crashed", failed_job=None
    )
    of_case, of_job = failures(whole(dataclasses.replace(stored, results=tuple(results))))
    assert str(of_case).endswith(": fail in sanity: it crashed")
    assert len(of_job.waiting) == 7


def test_one_reason_of_several_cases_is_one_line_with_a_count():
    def missing(environment: str, function: str) -> CaseVerdict:
        case = Case("testbed", "gige", environment, "imb", function, 2, 1)
        return CaseVerdict(case, ("did not run",))

    cases = tuple(missing("mpich", name) for name in ("Bcast", "Barrier", "Alltoall", "Sendrecv"))
    (one,) = failures(Verdict(cases, (), (), ()))
    assert str(one) == (
        "4 cases of testbed:gige mpich (IMB Bcast 2 ranks, IMB Barrier 2 ranks, IMB Alltoall 2"
        " ranks, IMB Sendrecv 2 ranks): did not run"
    )
    (one,) = failures(Verdict((*cases, missing("intelmpi", "Bcast")), (), (), ()))
    assert str(one) == "5 cases (4 of gige mpich, 1 of gige intelmpi): did not run"


class TestOrder:
    """From the worst to the mildest."""

    @staticmethod
    def ruled(function: str, value: float, bound: float, level: Level = Level.FAIL) -> CaseVerdict:
        case = Case("testbed", "gige", "mpich", "imb", function, 2, 1)
        where = f"{case} (switch gige)"
        why = f"{value} against {bound}"
        finding = Finding("jump", level, where, why, size=8, value=value, bound=bound)
        result = result_in("passed", "PingPong")
        result = dataclasses.replace(result, case=case, measured=None)
        return CaseVerdict.of(case, result, (), findings=(finding,))

    def test_the_worst_is_first_and_notes_are_last(self):
        missing = CaseVerdict(
            Case("testbed", "gige", "mpich", "imb", "Barrier", 2, 1), ("did not run",)
        )
        cases = (
            missing,
            self.ruled("Bcast", 100, 10),
            self.ruled("Sendrecv", 0.001, 0.1),
            self.ruled("Alltoall", 11, 10),
            self.ruled("Allgather", 3, 2, Level.WARN),
            self.ruled("Allreduce", 5, 5, Level.INCONCLUSIVE),
        )
        lines = printed(Verdict(cases, (), ("a configuration is gone",), ("no scores",)))
        marked = [line for line in lines if line.startswith(("FAIL", "INC", "WARN ", "note"))]
        assert [line.split()[0] for line in marked] == [
            *["FAIL"] * 5,
            "INCONCLUSIVE",
            "WARN",
            "note:",
        ]
        assert [line.rpartition(": ")[2] for line in marked[:5]] == [
            "FAIL a configuration is gone",
            "did not run",
            "0.001 against 0.1",
            "100 against 10",
            "11 against 10",
        ]
        titles = [line for line in lines if line and line not in marked]
        assert titles == ["What failed or did not run", "What is inconclusive", "Warnings", "Notes"]


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("project")]


@pytest.fixture
def verdict() -> Verdict:
    return session_verdict.judge_session(recorded("two-switches"), system="testbed").verdict


def of(verdict: Verdict, function: str) -> Crossover:
    return next(
        one
        for one in crossovers(verdict)
        for case in [one[0].case]
        if (case.partition, case.environment, case.function) == ("gige", "mpich", function)
    )


def ruled(judged: CaseVerdict, *sizes: int, by="envelope", level=Level.FAIL) -> CaseVerdict:
    """The case, with one finding that speaks of these sizes."""
    finding = Finding(by, level, "there", "why", size=sizes[0], value=12.0, others=sizes[1:])
    return dataclasses.replace(judged, findings=(finding,))


def test_a_function_is_red_from_a_rank_count_on_at_sizes_and_by_criteria(verdict):
    fine, absent = of(verdict, "Barrier"), of(verdict, "Alltoall")
    assert (red_cases(fine), breakdown(fine)) == ((), "not red up to 4 ranks")
    assert (red_cases(absent), breakdown(absent)) == ((), "did not run at 2 and 4 ranks")
    two, four = of(verdict, "Sendrecv")
    several = [ruled(two, 1024, by=name).findings[0] for name in ("jump", "dropout", "score")]
    faulty = CaseVerdict.of(
        four.case,
        dataclasses.replace(four.result, measured=None),
        ("fail in sanity: ended at its limit",),
    )
    first, second = (ruled(one, 1024, level=Level.INCONCLUSIVE) for one in (two, four))
    for cases, least, sentence in (
        (
            (two, ruled(four, 65536, 131072, 32768)),
            4,
            "red at 4 ranks, 32768 to 131072 bytes by envelope; not at 2",
        ),
        (
            (dataclasses.replace(two, findings=tuple(several)),),
            2,
            "red at 2 ranks, 1024 bytes by jump, dropout and score",
        ),
        ((two, faulty), 4, "red at 4 ranks, not measured whole; not at 2"),
        ((two, second), None, "not red up to 2 ranks; inconclusive at 4 ranks"),
        (
            (first, ruled(four, 1024)),
            4,
            "red at 4 ranks, 1024 bytes by envelope; inconclusive at 2 ranks",
        ),
    ):
        red = red_cases(cases)
        assert red[0].case.ranks == least if red else least is None
        assert breakdown(cases) == sentence


def test_cpu_seconds_of_mpi_are_relative_to_tcp_and_what_is_not_known_is_counted_by_its_reason():
    def judged(function: str, per_gb: float | None) -> SimpleNamespace:
        case = Case("testbed", "gige", "mpich", "netpipe", function, 2, 1, "inter-node", "oneway")
        absent = {} if per_gb else {"cpu_s": NO_STARTS}
        cost = NodeCost("n", 1, 1, cpu_s=per_gb, cores=0.5, s_per_gb=per_gb, absent=absent)
        return SimpleNamespace(case=case, measured=SimpleNamespace(cpu_costs=[cost]))

    rows, unknown = cpu_rows(SimpleNamespace(cases=[judged("tcp", 2.0), judged("mpi", 3.0)]))
    assert ([of_tcp for *_, of_tcp in rows], unknown) == ([None, 1.5], {})
    rows, unknown = cpu_rows(SimpleNamespace(cases=[judged("tcp", None), judged("mpi", 3.0)]))
    assert ([of_tcp for *_, of_tcp in rows], unknown) == ([None], {NO_STARTS: 1})
