"""A verdict is graded by the fault of an MPI library, and a campaign plants such faults."""

from __future__ import annotations

import copy
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import ClassVar

import pytest

from ci.campaigns import attempting, cluster, keeping, slow_mpi
from ci.campaigns.errors import CannotRunError
from ci.missed_faults import command, judging, making, records, table
from ci.missed_faults.kinds import DERIVING, HEALTHY, HEALTHY_DERIVED, KINDS, kind_of
from ci.missed_faults.records import Campaign, Found, Judged, Result, Run, Settings
from netproof.errors import NetproofError
from netproof.site import site
from netproof.verdict.verdict import NOT_IN_SESSION

ROOT = Path(__file__).resolve().parents[2]
RED = json.loads((ROOT / "tests" / "data" / "verdicts" / "red.json").read_text())
HEALTHY_SESSION = ROOT / "tests" / "data" / "sessions" / "healthy.json"
SETTINGS = Settings(3, 0.05, 0.05, 0.1, 60.0)
FINDING = next(f for case in RED["cases"] for f in case["findings"] if f["level"] == "fail")


def run_of(kind: str, *environments: str, number: int = 1) -> Run:
    return Run(number, kind, 11, environments or ("mpich", "intelmpi"))


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


def judged(run: Run, made: dict) -> Judged:
    status = 3 if made["verdict"] == "inconclusive" else 1
    return judging.judge(run, status, json.dumps(made), "")


ALLTOALL = ("mpich", "imb", "Alltoall", 65536)


def test_a_fault_is_named_by_a_case_that_has_it_and_a_size_that_has_it():
    found = judged(run_of("alltoall"), document(ALLTOALL))
    assert found.found is Found.NAMED
    assert found.criteria == (FINDING["criterion"],)
    assert found.said == ("2500 µs at 65536 bytes is 14 times 178 µs",)


@pytest.mark.parametrize(
    ("failed", "found"),
    [
        (("mpich", "imb", "Alltoall", 131072), Found.OTHERWISE),
        (("mpich", "imb", "Bcast", 65536), Found.OTHERWISE),
        (("intelmpi", "imb", "Alltoall", 65536), Found.MISSED),
    ],
)
def test_what_fails_elsewhere_does_not_name_it(failed, found):
    assert judged(run_of("alltoall"), document(failed)).found is found


def test_a_sentence_without_the_size_does_not_name_it():
    made = document(ALLTOALL)
    text = json.dumps(made).replace("at 65536 bytes", "somewhere")
    assert judged(run_of("alltoall"), json.loads(text)).found is Found.OTHERWISE


def test_a_missed_reference_alone_names_no_size():
    made = document()
    for case in made["cases"]:
        if (case["environment"], case["function"]) == ("mpich", "Alltoall"):
            case |= {"verdict": "fail", "faults": ["paired_latency is 3 and the reference 1"]}
    found = judged(run_of("alltoall"), made)
    assert (found.found, found.said) == (
        Found.OTHERWISE,
        ("paired_latency is 3 and the reference 1",),
    )


@pytest.mark.parametrize(
    ("variable", "found"),
    [
        ("paired_rate_64_kib", Found.NAMED),
        ("rate_64_kib_mb_s", Found.NAMED),
        ("paired_rate_16_kib", Found.OTHERWISE),
        ("paired_share", Found.OTHERWISE),
    ],
)
def test_a_missed_reference_of_a_rate_names_its_size(variable, found):
    made = document(ALLTOALL)
    case = next(one for one in made["cases"] if one["function"] == "Alltoall")
    why = f"{variable} is 20 % (95% interval 18 to 22), and the reference is at least 40 %"
    unsized = {"criterion": "reference", "size_bytes": None, "sizes_bytes": None, "why": why}
    case["findings"] = [{**case["findings"][0], **unsized}]
    assert judged(run_of("alltoall"), made).found is found


def test_what_was_not_to_be_measured_is_no_failure():
    made = document()
    for case in made["cases"]:
        if case["function"] == "Bcast":
            case |= {"verdict": "fail", "faults": [NOT_IN_SESSION]}
    assert judged(run_of("alltoall"), made).found is Found.MISSED


def test_what_is_not_certain_is_inconclusive():
    assert judged(run_of("alltoall"), document(ALLTOALL, level="inconclusive")).found is (
        Found.INCONCLUSIVE
    )


def test_a_healthy_run_is_right_if_nothing_of_its_environments_fails():
    run = run_of(HEALTHY)
    assert judged(run, document()).found is Found.NAMED
    assert judged(run, document(("openmpi4", "netpipe", "mpi", 1024))).found is Found.NAMED
    assert judged(run, document(ALLTOALL)).found is Found.FALSE


@pytest.mark.parametrize("environments", [("mpich", "openmpi9"), ("openmpi9", "mpich")])
def test_a_verdict_without_the_environments_of_the_run_is_not_judged(environments):
    assert judged(run_of("alltoall", *environments), document()).found is Found.NOT_JUDGED


@pytest.mark.parametrize(("status", "text"), [(2, ""), (0, json.dumps(RED)), (1, "[]")])
def test_what_is_no_verdict_is_not_judged(status, text):
    found = judging.judge(run_of("alltoall"), status, text, "netproof: why")
    assert found.found is Found.NOT_JUDGED
    assert found.said[0]


def test_order_and_environments_are_drawn_by_the_seed():
    runs = records.planned(list(KINDS), 10, 10, 4, 5)
    assert runs == records.planned(list(KINDS), 10, 10, 4, 5)
    assert runs != records.planned(list(KINDS), 10, 10, 4, 6)
    counted = dict.fromkeys([*KINDS, HEALTHY, HEALTHY_DERIVED], 10)
    assert Counter(run.kind for run in runs) == {**counted, DERIVING: 4}
    assert [run.kind for run in runs[:4]] == [DERIVING] * 4
    for run in runs:
        kind = kind_of(run.kind)
        if kind is not None and kind.derived:
            assert run.environments == ("mpich",)
            continue
        first, other = run.environments
        assert first != other
        assert run.kind == HEALTHY or first in KINDS[run.kind].environments
        assert other in ("mpich", "intelmpi")


def test_what_no_fault_is_judged_by_is_not_measured():
    derived = [name for name, kind in KINDS.items() if kind.derived]
    others = [name for name in KINDS if name not in derived]
    assert HEALTHY not in {run.kind for run in records.planned(derived, 1, 1, 3, 5)}
    without = {run.kind for run in records.planned(others, 1, 1, 3, 5)}
    assert not without & {DERIVING, HEALTHY_DERIVED}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if not kind.links])
def test_one_library_of_the_site_has_the_fault(kind, tmp_path):
    plain = {one["name"]: one for one in site.gather(ROOT / "site-config")["environments"]}
    for name in KINDS[kind].environments:
        folder = tmp_path / name
        folder.mkdir()
        library = tmp_path / "lib.so"
        variables = making.site_settings(run_of(kind, name, "mpich"), folder, library, 12.5)
        altered = site.gather(Path(variables["RFM_CONFIG_PATH"]))["environments"]
        different = [one["name"] for one in altered if one != plain[one["name"]]]
        assert different == [name]
        (faulty,) = (one for one in altered if one["name"] == name)
        added = faulty["env_vars"][len(plain[name]["env_vars"]) :]
        assert added == [
            list(one) for one in KINDS[kind].variables_in(name, str(library), 12.5).items()
        ]
        assert added
    assert making.site_settings(run_of(HEALTHY), tmp_path, tmp_path / "lib.so") == {}


class NoTestbed(cluster.Testbed):
    """Stands for the testbed, which these tests leave alone."""

    planted: ClassVar[list] = []

    def __init__(self, log: Path) -> None:
        self.planted.clear()

    def up(self, topology: Path) -> None:
        self._topology = topology

    def plant(self, place: str, fault: dict) -> None:
        self.planted.append((place, fault))

    def lift(self) -> None:
        self.planted.append("lifted")

    def rebuild(self) -> None:
        pass

    def restore(self) -> None:
        pass


@pytest.fixture
def fake(monkeypatch):
    """Runs without a testbed: ``fake["measure"]`` says what becomes of each."""
    made: dict = {"runs": [], "measure": lambda run: Judged(Found.NAMED, (), ("guideline",))}

    def measure(run, settings, folder, library, lock, agreed):
        assert library.is_file()
        made["agreed"] = agreed
        made["runs"].append(run.number)
        return made["measure"](run)

    monkeypatch.setattr(making, "Testbed", NoTestbed)
    monkeypatch.setattr(attempting, "wait_until_quiet", lambda settings: (0.1, 0.0))
    monkeypatch.setattr(making, "measure", measure)
    return made


def campaign(*runs: Run) -> Campaign:
    machine = {"cpus": 2, "kernel": "6.18", "autogroup": True}
    return Campaign(SETTINGS, runs, keeping.code_digest(), machine)


@pytest.mark.slow
def test_a_run_that_broke_is_not_judged_and_made_again(fake, tmp_path):
    keeping.begin(tmp_path, campaign(run_of("alltoall"), run_of(HEALTHY, number=2)))

    def broken(run):
        raise NetproofError("no report")

    fake["measure"] = broken
    making.go_on(tmp_path)
    assert [one.judged for one in records.read(tmp_path)[1]] == [
        Judged(Found.NOT_JUDGED, ("no report",))
    ] * 2
    fake["measure"] = lambda run: Judged(Found.NAMED)
    making.go_on(tmp_path)
    making.go_on(tmp_path)
    assert fake["runs"] == [1, 2, 1, 2]
    assert {one.judged.found for one in records.read(tmp_path)[1]} == {Found.NAMED}


@pytest.mark.slow
def test_links_are_slowed_during_the_run_and_judged_by_references_of_healthy_ones(
    fake, tmp_path, monkeypatch
):
    runs = [Run(number, DERIVING, 11, ("mpich",)) for number in (1, 2, 3)]
    keeping.begin(tmp_path, campaign(*runs, Run(4, "bandwidth-5", 11, ("mpich",))))

    def measured(run):
        if run.kind == DERIVING:
            report = json.loads(HEALTHY_SESSION.read_text())
            report["session_info"]["uuid"] = str(run.number)
            (tmp_path / run.folder / "run-0.json").write_text(json.dumps(report))
        else:
            fake["during"] = list(NoTestbed.planted)
        return Judged(Found.NAMED)

    fake["measure"] = measured
    making.go_on(tmp_path)
    assert fake["during"] == [(f"gige-{number}", {"rate": 0.95}) for number in (1, 2, 3, 4)]
    assert NoTestbed.planted[-1] == "lifted"
    agreed = fake["agreed"]
    assert agreed.references == tmp_path / "reference-values"
    assert agreed.latency_us > 0
    plain = (ROOT / "reference-values" / "testbed.yaml").read_text()
    assert (agreed.references / "testbed.yaml").read_text() != plain


@pytest.mark.slow
def test_too_few_good_runs_make_no_references(fake, tmp_path):
    runs = [Run(number, DERIVING, 11, ("mpich",)) for number in (1, 2, 3)]
    keeping.begin(tmp_path, campaign(*runs, Run(4, "bandwidth-5", 11, ("mpich",))))
    fake["measure"] = lambda run: Judged(Found.INCONCLUSIVE if run.number == 2 else Found.NAMED)
    with pytest.raises(CannotRunError, match=r"2 runs are good enough .*it takes 3; begin"):
        making.go_on(tmp_path)


@pytest.mark.parametrize(
    ("kind", "said", "found"),
    [
        ("bandwidth-5", "rate_64_kib_mb_s is 95.3 MB/s", Found.NAMED),
        ("bandwidth-5", "paired_peak is 95.39 % at 131072 bytes", Found.NAMED),
        (
            "bandwidth-5",
            "paired_share is 95 % over messages of 262144 to 524288 bytes",
            Found.NAMED,
        ),
        ("bandwidth-5", "latency_us is 20.5 us over messages of 1 to 48 bytes", Found.OTHERWISE),
        ("latency", "latency_us is 20.5 us over messages of 1 to 48 bytes", Found.NAMED),
        ("latency", "paired_latency is 457.21 % over messages of 4 to 48 bytes", Found.NAMED),
        ("latency", "peak_mb_s is 111.15 MB/s at 131072 bytes", Found.OTHERWISE),
        ("latency", "latency_us is 20.5 us", Found.OTHERWISE),
    ],
)
def test_a_missed_reference_names_sizes_in_words_or_by_its_name(kind, said, found):
    made = document(("mpich", "netpipe", "mpi", 64))
    case = next(one for one in made["cases"] if one["function"] == "mpi")
    why = f"{said} (95% interval 18 to 22 over 6 launches), and the reference is 40 to 512"
    unsized = {"criterion": "reference", "size_bytes": None, "sizes_bytes": None, "why": why}
    case["findings"] = [{**case["findings"][0], **unsized}]
    assert judged(run_of(kind, "mpich"), made).found is found


def test_what_is_inconclusive_makes_no_references_and_fails_nothing():
    made = document(("mpich", "netpipe", "mpi", 64), level="inconclusive")
    assert judged(run_of(DERIVING, "mpich"), made).found is Found.INCONCLUSIVE
    assert judged(run_of(HEALTHY_DERIVED, "mpich"), made).found is Found.NAMED


def test_a_library_that_cannot_be_compiled_ends_it(tmp_path, monkeypatch):
    source = tmp_path / "slow_mpi.c"
    source.write_text("int broken(")
    monkeypatch.setattr(slow_mpi, "SOURCE", source)
    with pytest.raises(CannotRunError, match=r"slow_mpi\.c cannot be compiled: .*error"):
        slow_mpi.compiled(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotRunError, match="apt-get install gcc libc6-dev"):
        slow_mpi.compiled(tmp_path)


def results(kind: str, *found: Found) -> list[Result]:
    return [
        Result(
            run_of(kind, number=number),
            Judged(one, ("at 65536 bytes",), ("guideline",) if one is Found.NAMED else ()),
            *("2026-11-23T09:00:00+00:00", 70.0 + number, (0.5, 0.4, 0.3), (1.5, 1.0, 0.8)),
        )
        for number, one in enumerate(found, 1)
    ]


def test_the_table_tells_what_was_named_by_what_and_which_aim_is_missed():
    made = results("alltoall", *[Found.NAMED] * 8, Found.MISSED, Found.INCONCLUSIVE)
    made += results(HEALTHY, *[Found.NAMED] * 9, Found.FALSE)
    begun = campaign(*(one.run for one in made))
    text = table.table(begun, made)
    assert "| Alltoall 4 times slower from 32 to 64 KiB | 10 | 8 | 0 | 1 | 1 | 0 | 0 |" in text
    assert "| guideline 8 |" in text
    assert "- MISSED: Alltoall 4 times slower from 32 to 64 KiB: 8 of 10 named." in text
    assert "- MISSED: healthy: 1 of 10 runs fail something." in text
    assert "- MISSED: IMB 3 times slower: 0 of the 10 runs that it takes." in text
    assert "**inconclusive**: at 65536 bytes" in text
    assert "load average 0.5 to 1.5" in text


def test_aims_are_met_by_ten_runs_of_each_of_which_nine_name_it():
    made = results(HEALTHY, *[Found.NAMED] * 10) + results(HEALTHY_DERIVED, *[Found.NAMED] * 10)
    for kind in KINDS:
        made += results(kind, *[Found.NAMED] * 9, Found.MISSED)
    begun = campaign(*(one.run for one in made))
    assert table.missed(begun, made) == []
    assert table.table(begun, made).endswith("Aims met.")


def test_no_run_is_no_campaign(tmp_path, capsys):
    folder = tmp_path / "campaign"
    assert command.main(["--out", str(folder), "--runs", "0", "--healthy", "0"]) == 2
    assert "no run was asked for" in capsys.readouterr().err


@pytest.mark.slow
def test_the_script_prints_what_was_found_so_far(tmp_path):
    keeping.begin(tmp_path, campaign(run_of("alltoall")))
    command_line = [ROOT / "ci" / "missed-faults", "--table", tmp_path]
    ran = subprocess.run(command_line, capture_output=True, text=True, check=False)
    assert ran.returncode == 1, ran.stderr
    assert "MISSED: 0 of 1 runs were made." in ran.stdout
