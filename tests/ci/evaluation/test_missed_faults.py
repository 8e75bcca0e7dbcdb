"""A verdict is graded by the fault of an MPI library, and a campaign plants such faults."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path

import pytest
from runs_without_testbed import NoTestbed, campaign, planned
from runs_without_testbed import result as result_of

from ci.evaluation import engine, missed_faults
from ci.evaluation import table as tables
from ci.evaluation import testbed as machine
from ci.evaluation.engine import HEALTHY, Answer, Grade, Result, Run
from ci.evaluation.missed_faults import DERIVING, HEALTHY_DERIVED, KINDS
from ci.evaluation.testbed import CannotRunError
from netproof.site import site
from netproof.verdict.verdict import NOT_IN_SESSION

ROOT = Path(__file__).resolve().parents[3]
RED = json.loads((ROOT / "tests" / "data" / "verdicts" / "red.json").read_text())
HEALTHY_SESSION = ROOT / "tests" / "data" / "sessions" / "healthy.json"
EVALUATION = missed_faults.EVALUATION
ALL = ("--runs", "10", "--healthy", "10", "--deriving", "4")
FINDING = next(f for case in RED["cases"] for f in case["findings"] if f["level"] == "fail")


def run_of(kind: str, *environments: str, number: int = 1) -> Run:
    plant = EVALUATION.plants[kind]
    return plant.drawn(number, kind, 11, environments or ("mpich", "intelmpi"))


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
    return EVALUATION.graded(run, status, json.dumps(made), "")


ALLTOALL = ("mpich", "imb", "Alltoall", 65536)


def test_a_fault_is_named_by_a_case_that_has_it_and_a_size_that_has_it():
    found = judged(run_of("alltoall"), document(ALLTOALL))
    assert found.found is Grade.NAMED
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


def test_a_sentence_without_the_size_does_not_name_it():
    made = document(ALLTOALL)
    text = json.dumps(made).replace("at 65536 bytes", "somewhere")
    assert judged(run_of("alltoall"), json.loads(text)).found is Grade.OTHERWISE


def test_a_missed_reference_alone_names_no_size():
    made = document()
    for case in made["cases"]:
        if (case["environment"], case["function"]) == ("mpich", "Alltoall"):
            case |= {"verdict": "fail", "faults": ["paired_latency is 3 and the reference 1"]}
    found = judged(run_of("alltoall"), made)
    assert (found.found, found.said) == (
        Grade.OTHERWISE,
        ("paired_latency is 3 and the reference 1",),
    )


def test_what_was_not_to_be_measured_is_no_failure():
    made = document()
    for case in made["cases"]:
        if case["function"] == "Bcast":
            case |= {"verdict": "fail", "faults": [NOT_IN_SESSION]}
    assert judged(run_of("alltoall"), made).found is Grade.MISSED


def test_what_is_not_certain_is_inconclusive():
    assert judged(run_of("alltoall"), document(ALLTOALL, level="inconclusive")).found is (
        Grade.INCONCLUSIVE
    )


def test_a_healthy_run_is_right_if_nothing_of_its_environments_fails():
    run = run_of(HEALTHY)
    assert judged(run, document()).found is Grade.NAMED
    assert judged(run, document(("openmpi4", "netpipe", "mpi", 1024))).found is Grade.NAMED
    assert judged(run, document(ALLTOALL)).found is Grade.FALSE


@pytest.mark.parametrize("environments", [("mpich", "openmpi9"), ("openmpi9", "mpich")])
def test_a_verdict_without_the_environments_of_the_run_is_not_judged(environments):
    assert judged(run_of("alltoall", *environments), document()).found is Grade.NOT_JUDGED


def test_order_and_environments_are_drawn_by_the_seed():
    runs = planned(EVALUATION, *ALL)
    assert runs == planned(EVALUATION, *ALL) != planned(EVALUATION, *ALL, seed=6)
    counted = dict.fromkeys([*KINDS, HEALTHY, HEALTHY_DERIVED], 10)
    assert Counter(run.kind for run in runs) == {**counted, DERIVING: 4}
    assert [run.kind for run in runs[:4]] == [DERIVING] * 4
    for run in runs:
        plant = EVALUATION.plants[run.kind]
        if plant.derived:
            assert run.environments == ("mpich",)
            continue
        first, other = run.environments
        assert first != other
        assert first in plant.environments
        assert other in ("mpich", "intelmpi")


def test_what_no_fault_is_judged_by_is_not_measured():
    derived = [name for name, kind in KINDS.items() if kind.derived]
    others = [name for name in KINDS if name not in derived]
    assert HEALTHY not in {run.kind for run in planned(EVALUATION, "--kinds", *derived)}
    without = {run.kind for run in planned(EVALUATION, "--kinds", *others)}
    assert not without & {DERIVING, HEALTHY_DERIVED}
    with pytest.raises(CannotRunError, match="--deriving 2: references take 3 runs"):
        planned(EVALUATION, "--deriving", "2")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if not kind.faults[0]])
def test_one_library_of_the_site_has_the_fault(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(missed_faults, "derived", lambda folder: (folder, 12.5))
    plain = {one["name"]: one for one in site.gather(ROOT / "site-config")["environments"]}
    for name in KINDS[kind].environments:
        folder = tmp_path / name
        folder.mkdir()
        variables = EVALUATION.site(run_of(kind, name, "mpich"), folder)
        altered = site.gather(Path(variables["RFM_CONFIG_PATH"]))["environments"]
        different = [one["name"] for one in altered if one != plain[one["name"]]]
        assert different == [name]
        (faulty,) = (one for one in altered if one["name"] == name)
        added = dict(faulty["env_vars"][len(plain[name]["env_vars"]) :])
        planted = KINDS[kind].variables.get(name) or machine.slower(
            tmp_path / "libslow_mpi.so",
            KINDS[kind].slow.format(latency_us=12.5),
            KINDS[kind].program,
        )
        assert added == planted
        assert added
    assert EVALUATION.site(run_of(HEALTHY), tmp_path) == {}


def test_a_smoke_run_has_two_environments_and_one_by_references_more_launches():
    options, checks = EVALUATION.reframe(run_of("alltoall"), {})
    assert options == [
        *("--system", "testbed:gige", "-S", "launches=1", "-p", "^(mpich|intelmpi)$"),
        *("-n", "^Imb"),
    ]
    assert checks == ""
    options, _ = EVALUATION.reframe(run_of(DERIVING, "mpich"), {})
    assert options[3:6] == ["launches=3", "-p", "^(mpich)$"]
    assert "-n" not in EVALUATION.reframe(run_of(HEALTHY), {})[0]


def with_derived() -> list[Run]:
    runs = [run_of(DERIVING, "mpich", number=number) for number in (1, 2, 3)]
    return [*runs, run_of("bandwidth-5", "mpich", number=4)]


@pytest.mark.slow
def test_links_are_slowed_during_the_run_and_judged_by_references_of_healthy_ones(fake, tmp_path):
    engine.begin(tmp_path, campaign(*with_derived()))

    def measured(run, folder):
        if run.kind == DERIVING:
            report = json.loads(HEALTHY_SESSION.read_text())
            report["session_info"]["uuid"] = str(run.number)
            (folder / "run-0.json").write_text(json.dumps(report))
        else:
            fake["during"] = NoTestbed.verbs[-4:]
            fake["site"] = EVALUATION.site(run, folder)
        return Answer(Grade.NAMED)

    fake["measure"] = measured
    engine.go_on(EVALUATION, tmp_path)
    assert fake["during"] == [f"plant gige-{number} {{'rate': 0.95}}" for number in (1, 2, 3, 4)]
    assert NoTestbed.verbs[-2:] == ["lift", "restored"]
    references = Path(fake["site"]["RFM_REFERENCE_PREFIX"])
    assert references == tmp_path / "reference-values"
    assert missed_faults.derived(tmp_path)[1] > 0
    plain = (ROOT / "reference-values" / "testbed.yaml").read_text()
    assert (references / "testbed.yaml").read_text() != plain


@pytest.mark.slow
def test_too_few_good_runs_make_no_references(fake, tmp_path):
    engine.begin(tmp_path, campaign(*with_derived()))

    def measured(run, folder):
        if run.number == 4:
            EVALUATION.site(run, folder)
        return Answer(Grade.INCONCLUSIVE if run.number == 2 else Grade.NAMED)

    fake["measure"] = measured
    with pytest.raises(CannotRunError, match=r"2 runs are good enough .*it takes 3; begin"):
        engine.go_on(EVALUATION, tmp_path)


@pytest.mark.parametrize(
    ("kind", "said", "found"),
    [
        ("alltoall", "paired_rate_64_kib is 20 %", Grade.NAMED),
        ("alltoall", "rate_64_kib_mb_s is 20 %", Grade.NAMED),
        ("alltoall", "paired_rate_16_kib is 20 %", Grade.OTHERWISE),
        ("alltoall", "paired_share is 20 %", Grade.OTHERWISE),
        ("bandwidth-5", "rate_64_kib_mb_s is 95.3 MB/s", Grade.NAMED),
        ("bandwidth-5", "paired_peak is 95.39 % at 131072 bytes", Grade.NAMED),
        (
            "bandwidth-5",
            "paired_share is 95 % over messages of 262144 to 524288 bytes",
            Grade.NAMED,
        ),
        ("bandwidth-5", "latency_us is 20.5 us over messages of 1 to 48 bytes", Grade.OTHERWISE),
        ("latency", "latency_us is 20.5 us over messages of 1 to 48 bytes", Grade.NAMED),
        ("latency", "paired_latency is 457.21 % over messages of 4 to 48 bytes", Grade.NAMED),
        ("latency", "peak_mb_s is 111.15 MB/s at 131072 bytes", Grade.OTHERWISE),
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


def test_what_is_inconclusive_makes_no_references_and_fails_nothing():
    made = document(("mpich", "netpipe", "mpi", 64), level="inconclusive")
    assert judged(run_of(DERIVING, "mpich"), made).found is Grade.INCONCLUSIVE
    assert judged(run_of(HEALTHY_DERIVED, "mpich"), made).found is Grade.NAMED


def test_a_library_that_cannot_be_compiled_ends_it(tmp_path, monkeypatch):
    source = tmp_path / "slow_mpi.c"
    source.write_text("int broken(")
    monkeypatch.setattr(machine, "SLOW_MPI", source)
    with pytest.raises(CannotRunError, match=r"slow_mpi\.c cannot be compiled: .*error"):
        machine.compiled_slow_mpi(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotRunError, match="apt-get install gcc libc6-dev"):
        machine.compiled_slow_mpi(tmp_path)


def results(kind: str, *found: Grade) -> list[Result]:
    return [
        result_of(
            run_of(kind, number=number),
            one,
            "at 65536 bytes",
            by=("guideline",) if one is Grade.NAMED else (),
        )
        for number, one in enumerate(found, 1)
    ]


def test_the_table_tells_what_was_named_by_what_and_which_aim_is_missed():
    made = results("alltoall", *[Grade.NAMED] * 8, Grade.MISSED, Grade.INCONCLUSIVE)
    made += results(HEALTHY, *[Grade.NAMED] * 9, Grade.FALSE)
    text = tables.table(EVALUATION, campaign(*(one.run for one in made)), made)
    row = "| Alltoall 4 times slower from 32 to 64 KiB | 10 | 8 | 0 | 1 | 1 | 0 | 0 |"
    assert f"{row} 51 % | guideline 8 | 60 | 60 |" in text
    assert "- MISSED: Alltoall 4 times slower from 32 to 64 KiB: 8 of 10 named." in text
    assert "- MISSED: healthy: 9 of 10 named." in text
    assert "- MISSED: IMB 3 times slower: 0 of the 10 runs that it takes." in text
    assert "**inconclusive**: at 65536 bytes" in text
    assert "load average 0.5 to 1.5" in text


def test_aims_are_met_by_ten_runs_of_each_of_which_nine_name_it():
    made = results(HEALTHY, *[Grade.NAMED] * 10) + results(HEALTHY_DERIVED, *[Grade.NAMED] * 10)
    for kind in KINDS:
        made += results(kind, *[Grade.NAMED] * 9, Grade.MISSED)
    begun = campaign(*(one.run for one in made))
    assert EVALUATION.missed(begun, made) == []
    assert tables.table(EVALUATION, begun, made).endswith("Aims met.")
