"""A verdict is graded by the fault of an MPI library, and a campaign plants such faults."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path

import pytest

from ci.evaluation import judges
from ci.evaluation.plants import EVALUATIONS, HEALTHY, Answer, Grade, Run
from netproof.verdict.verdict import NOT_IN_SESSION

ROOT = Path(__file__).resolve().parents[3]
RED = json.loads((ROOT / "tests" / "data" / "verdicts" / "red.json").read_text())
EVALUATION = EVALUATIONS["missed-faults"]
FINDING = next(f for case in RED["cases"] for f in case["findings"] if f["level"] == "fail")


def run_of(kind: str, *environments: str, number: int = 1) -> Run:
    drawn = EVALUATION.drawn(number, kind, 11, {})
    return dataclasses.replace(drawn, environments=environments or ("mpich", "intelmpi"))


def document(*failed: tuple[str, str, str, int], level: str = "fail") -> dict:
    """A verdict of recorded form: failed are environment, benchmark, function, size of findings."""
    made = copy.deepcopy(RED)
    functions = (("netpipe", "mpi"), ("imb", "Alltoall"), ("imb", "Bcast"))
    made["cases"] = [
        {
            **{**made["cases"][0], "verdict": "pass", "faults": [], "path": "inter-node"},
            **{"environment": environment, "benchmark": benchmark, "function": function},
            "findings": [],
        }
        for environment in ("mpich", "intelmpi", "openmpi4")
        for benchmark, function in functions
    ]
    for environment, benchmark, function, size in failed:
        case = next(
            case
            for case in made["cases"]
            if (case["environment"], case["benchmark"]) == (environment, benchmark)
            and (case["function"], case["path"]) == (function, "inter-node")
        )
        case["verdict"] = level
        finding = {**FINDING, "level": level, "size_bytes": size, "sizes_bytes": [size]}
        case["findings"].append({**finding, "why": f"2500 µs at {size} bytes is 14 times 178 µs"})
    if level == "inconclusive":
        return {**made, "verdict": level, "faults": []}
    # What a run of two environments leaves out fails it anyway.
    return {**made, "verdict": "fail", "faults": ["did not run: the session does not have it"]}


def judged(run: Run, made: dict) -> Answer:
    status = 3 if made["verdict"] == "inconclusive" else 1
    return judges.graded(EVALUATION, run, status, json.dumps(made), "")


ALLTOALL = ("mpich", "imb", "Alltoall", 65536)


def test_a_fault_is_named_by_a_case_that_has_it_and_a_size_that_has_it():
    found = judged(run_of("alltoall"), document(ALLTOALL))
    assert found.found is Grade.RIGHT
    assert found.by == (FINDING["criterion"],)
    assert found.said == ("2500 µs at 65536 bytes is 14 times 178 µs",)


@pytest.mark.parametrize(
    ("failed", "found"),
    [
        (("mpich", "imb", "Alltoall", 131072), Grade.OTHERWISE),
        (("mpich", "imb", "Bcast", 65536), Grade.OTHERWISE),
        (("intelmpi", "imb", "Alltoall", 65536), Grade.MISSED),
    ],
)
def test_what_fails_elsewhere_does_not_name_it(failed, found):
    assert judged(run_of("alltoall"), document(failed)).found is found


def test_what_was_not_to_be_measured_is_no_failure_and_what_is_not_certain_inconclusive():
    made, run = document(), run_of("alltoall")
    for case in made["cases"]:
        if case["function"] == "Bcast":
            case |= {"verdict": "fail", "faults": [NOT_IN_SESSION]}
    assert judged(run, made).found is Grade.MISSED
    assert judged(run, document(ALLTOALL, level="inconclusive")).found is Grade.INCONCLUSIVE
    for environments in (("mpich", "openmpi9"), ("openmpi9", "mpich")):
        other = dataclasses.replace(run, environments=environments)
        assert judged(other, document()).found is Grade.NOT_JUDGED


def test_a_healthy_run_is_right_if_nothing_of_its_environments_fails():
    run = run_of(HEALTHY)
    assert judged(run, document()).found is Grade.RIGHT
    assert judged(run, document(("openmpi4", "netpipe", "mpi", 1024))).found is Grade.RIGHT
    assert judged(run, document(ALLTOALL)).found is Grade.FALSE


@pytest.mark.parametrize(
    ("kind", "said", "found"),
    [
        ("alltoall", "paired_rate_64_kib is 20 %", Grade.RIGHT),
        ("alltoall", "paired_rate_16_kib is 20 %", Grade.OTHERWISE),
        ("bandwidth-5", "rate_64_kib_mb_s is 95.3 MB/s", Grade.RIGHT),
        ("bandwidth-5", "paired_peak is 95.39 % at 131072 bytes", Grade.RIGHT),
        (
            "bandwidth-5",
            "paired_share is 95 % over messages of 262144 to 524288 bytes",
            Grade.RIGHT,
        ),
        ("latency", "latency_us is 20.5 us over messages of 1 to 48 bytes", Grade.RIGHT),
        ("latency", "latency_us is 20.5 us", Grade.OTHERWISE),
    ],
)
def test_a_missed_reference_names_sizes_in_words_or_by_its_name(kind, said, found):
    of_netpipe = ("mpich", "netpipe", "mpi", 64)
    made = document(ALLTOALL if kind == "alltoall" else of_netpipe)
    (case,) = (one for one in made["cases"] if one["findings"])
    why = f"{said} (95% interval 18 to 22 over 6 launches), and the reference is 40 to 512"
    unsized = {"criterion": "reference", "size_bytes": None, "sizes_bytes": None, "why": why}
    case["findings"] = [{**case["findings"][0], **unsized}]
    assert judged(run_of(kind, *(() if kind == "alltoall" else ("mpich",))), made).found is found
