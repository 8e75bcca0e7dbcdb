"""A campaign counts what it cannot understand against itself, and goes on where it was."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ci import machine_load
from ci.campaigns import cluster, errors, judged_run, keeping, machine, telling
from ci.campaigns.errors import CannotRunError
from ci.false_reds import command, judging, making, records, table
from ci.false_reds.records import (
    Campaign,
    Condition,
    Judged,
    Launches,
    Machine,
    Outcome,
    Result,
    Run,
    Settings,
)
from netproof.criteria import Level
from netproof.errors import NetproofError

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
RED = json.loads((DATA / "verdicts" / "red.json").read_text())
SETTINGS = Settings(3, False, 2.0, 2.0, 0.05, 0.05, 0.1, 60.0)


def green() -> dict:
    """The recorded verdict without the cases that failed."""
    document = copy.deepcopy(RED)
    document["verdict"] = "pass"
    document["cases"] = [case for case in document["cases"] if case["verdict"] != "fail"]
    return document


def inconclusive() -> dict:
    """The recorded verdict, as if failed findings were inconclusive."""
    text = json.dumps(RED).replace('"fail"', '"inconclusive"')
    return {**json.loads(text), "verdict": "inconclusive"}


def judged(status: int, document: object) -> Judged:
    return judging.judge(status, json.dumps(document), "")


def test_a_recorded_red_verdict_is_red_with_its_cases_and_their_criteria():
    found = judged(1, RED)
    assert found.outcome is Outcome.RED
    assert [case.name for case in found.cases] == [
        "gige openmpi4 NetPIPE mpi intra-node oneway",
        "gige mpich NetPIPE mpi intra-node oneway",
    ]
    assert found.by_criterion == ("envelope",)
    assert found.cases[0].sentences[0].startswith("96.33 µs at 393216 bytes is 14.3 times the 6.72")
    assert all(len(case.sentences[0]) <= telling.SENTENCE for case in found.cases)


def test_a_passed_verdict_with_warnings_is_green():
    assert judged(0, green()) == Judged(Outcome.GREEN)


@pytest.mark.parametrize("word", ["inconclusive", "cannot be judged"])
def test_inconclusive_cases_and_no_failed_one_are_inconclusive(word):
    found = judged(3, {**inconclusive(), "verdict": word})
    assert found.outcome is Outcome.INCONCLUSIVE
    assert [case.level for case in found.cases] == [Level.INCONCLUSIVE] * 2
    assert found.by_criterion == ()


def test_a_case_that_failed_is_red_whatever_else_is_inconclusive():
    document = json.loads(json.dumps(RED))
    passed = next(case for case in document["cases"] if case["verdict"] == "pass")
    passed["findings"][0]["level"] = "inconclusive"
    found = judged(1, document)
    assert found.outcome is Outcome.RED
    assert {case.level for case in found.cases} == {Level.FAIL, Level.INCONCLUSIVE}


def test_a_fault_beyond_a_case_is_red():
    found = judged(1, {**green(), "verdict": "fail", "faults": ["a job left no record"]})
    assert (found.outcome, found.faults) == (Outcome.RED, ("a job left no record",))


UNDECIDED = "testbed:gige mpich: gige-[1-4] undecided: in each launch something else ran alongside"


def test_what_is_undecided_beyond_a_case_is_inconclusive():
    found = judged(3, {**green(), "verdict": "inconclusive", "undecided": [UNDECIDED]})
    assert (found.outcome, found.cases) == (Outcome.INCONCLUSIVE, ())
    assert "gige-[1-4] undecided" in table.said(found)


def without(key: str) -> dict:
    return {name: value for name, value in green().items() if name != key}


def with_case(**values: object) -> dict:
    document = green()
    document["cases"][0].update(values)
    return document


@pytest.mark.parametrize(
    ("status", "document"),
    [
        (0, RED),
        (0, inconclusive()),
        (0, {**green(), "verdict": "fail"}),
        (0, {**green(), "faults": ["a job left no record"]}),
        (0, {**green(), "skipped": [{"planned": True}]}),
        (0, {**green(), "cases": []}),
        (0, {**green(), "format": 1}),
        (0, without("cases")),
        (0, without("faults")),
        (0, without("skipped")),
        (0, without("undecided")),
        (0, {**green(), "undecided": ["gige-1 undecided"]}),
        (2, {**green(), "verdict": "pass", "undecided": ["gige-1 undecided"]}),
        (0, without("format")),
        (0, with_case(verdict="fine")),
        (0, with_case(verdict="undefined")),
        (0, with_case(verdict=None)),
        (0, with_case(findings=None)),
        (0, with_case(faults=["was not measured"])),
        (0, [green()]),
        (0, None),
        (1, green()),
        (1, {**green(), "verdict": "fail"}),
        (1, {**RED, "verdict": "pass"}),
        (2, green()),
        (2, {**green(), "verdict": "cannot be judged"}),
        (2, {**RED, "verdict": "cannot be judged"}),
        (2, {**inconclusive(), "faults": ["a job left no record"]}),
        (2, {**inconclusive(), "skipped": [{"planned": False}]}),
        (2, {**inconclusive(), "verdict": "pass"}),
        (4, green()),
        (-9, green()),
    ],
)
def test_what_does_not_fit_together_is_not_judged(status, document):
    found = judged(status, document)
    assert found.outcome is Outcome.NOT_JUDGED
    assert found.reason


@pytest.mark.parametrize("status", [0, 1, 2])
@pytest.mark.parametrize("text", ["", "cannot judge", json.dumps(green())[:-5]])
def test_a_verdict_that_is_no_json_is_not_judged_and_its_errors_are_reported(status, text):
    found = judging.judge(status, text, "netproof: cannot judge:\n  run-0.json: is not there\n")
    assert found.outcome is Outcome.NOT_JUDGED
    assert "run-0.json: is not there" in found.reason


def result(condition: Condition, number: int = 1, outcome: Outcome = Outcome.GREEN) -> Result:
    found = {
        Outcome.GREEN: Judged(Outcome.GREEN),
        Outcome.INCONCLUSIVE: judged(3, inconclusive()),
        Outcome.RED: judged(1, RED),
        Outcome.NOT_JUDGED: Judged(Outcome.NOT_JUDGED, "ReFrame left no report"),
    }[outcome]
    machine = Machine((0.1, 0.2, 0.3), (1.5, 0.5, 0.4), 5.0, 0.01, 12.0, 30.0, 1)
    launches = Launches(62, 1, 50.0, (7, 8))
    run = Run(number, condition, 11)
    return Result(run, found, "2026-11-21T17:00:00+00:00", 60.0 + number, machine, launches)


def campaign(runs: tuple[Run, ...]) -> Campaign:
    machine = {"cpus": 2, "kernel": "6.18", "autogroup": True}
    return Campaign(SETTINGS, runs, keeping.code_digest(), machine)


def as_aimed(**odd: Outcome) -> tuple[Campaign, list[Result]]:
    """30 healthy and 20 sick runs; ``odd``: the outcome of a condition's first run."""
    runs = records.planned(records.COUNTS, 3)
    results, seen = [], set()
    for run in runs:
        outcome = Outcome.RED if run.sick else Outcome.GREEN
        if run.condition not in seen:
            outcome = odd.get(run.condition.replace("-", "_"), outcome)
        seen.add(run.condition)
        results.append(dataclasses.replace(result(run.condition, 1, outcome), run=run))
    return campaign(runs), results


@pytest.mark.slow
def test_the_aims_are_met_by_no_red_healthy_run_and_no_other_sick_one():
    assert table.missed(*as_aimed()) == []
    assert table.missed(*as_aimed(quiet=Outcome.INCONCLUSIVE)) == []
    assert table.missed(*as_aimed(bursts=Outcome.INCONCLUSIVE)) == []


@pytest.mark.parametrize("outcome", [Outcome.RED, Outcome.NOT_JUDGED])
@pytest.mark.parametrize("condition", ["quiet", "one_cpu", "bursts", "compiler"])
def test_one_healthy_run_that_is_red_or_not_judged_misses_the_aim(condition, outcome):
    assert table.missed(*as_aimed(**{condition: outcome})) == [
        "1 of 30 healthy runs were red or not judged"
    ]


@pytest.mark.parametrize("outcome", [Outcome.GREEN, Outcome.INCONCLUSIVE, Outcome.NOT_JUDGED])
def test_one_sick_run_that_is_not_red_misses_the_aim(outcome):
    assert table.missed(*as_aimed(sick=outcome)) == [
        "1 of 20 sick runs were not red by a criterion"
    ]


def test_a_sick_switch_is_not_found_by_a_job_that_did_not_start():
    fault = judged(1, {**green(), "verdict": "fail", "faults": ["a job left no record"]})
    assert dataclasses.replace(result(Condition.SICK), judged=fault).wrong


def test_a_second_inconclusive_quiet_run_misses_the_aim():
    planned, results = as_aimed(quiet=Outcome.INCONCLUSIVE)
    last = max(n for n, one in enumerate(results) if one.run.condition is Condition.QUIET)
    results[last] = dataclasses.replace(results[last], judged=judged(3, inconclusive()))
    assert table.missed(planned, results) == ["2 of 10 quiet runs were inconclusive"]


def test_fewer_runs_than_the_aim_asks_for_do_not_meet_it():
    planned, results = as_aimed()
    assert table.missed(planned, results[:-1])[0] == "49 of 50 runs were made"
    few = campaign((Run(1, Condition.QUIET, 1),))
    assert table.missed(few, [result(Condition.QUIET)])[:2] == [
        "healthy runs: 1 of the 30 that it takes",
        "quiet runs: 1 of the 10 that it takes",
    ]


def test_a_rate_has_the_limit_of_clopper_and_pearson():
    assert telling.upper_limit(0, 30) == pytest.approx(1 - 0.05 ** (1 / 30))
    assert telling.upper_limit(1, 10) == pytest.approx(0.394, abs=1e-3)
    assert telling.upper_limit(3, 3) == 1.0


def test_the_table_has_a_row_for_each_condition_and_tells_of_what_is_not_green():
    text = table.table(*as_aimed(one_cpu=Outcome.INCONCLUSIVE, bursts=Outcome.NOT_JUDGED))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {len(table.HEAD) + 1}
    assert rows[2].startswith("| quiet | 10 | 10 | 0 | 0 | 0 | 26 % | 61 | 61 | 0.49 | 20 % |")
    assert "| all healthy | 30 | 28 | 1 | 0 | 1 |" in text
    assert "| sick switch, quiet | 20 | 0 | 0 | 20 | 0 | 14 % |" in text
    assert "**not judged**: ReFrame left no report" in text
    assert "**inconclusive**: gige openmpi4 NetPIPE mpi intra-node oneway: 96.33 µs" in text
    assert "The sick switch was red by: envelope in 20." in text
    assert text.endswith("- MISSED: 1 of 30 healthy runs were red or not judged.")
    assert table.table(*as_aimed()).endswith("Aims met.")


def test_the_order_and_all_seeds_are_drawn_by_the_seed():
    runs = records.planned(records.COUNTS, 5)
    assert runs == records.planned(records.COUNTS, 5)
    assert runs != records.planned(records.COUNTS, 6)
    assert [run.number for run in runs] == list(range(1, 51))
    conditions = [run.condition for run in runs]
    assert conditions != sorted(conditions, key=list(Condition).index)
    assert {one: conditions.count(one) for one in Condition} == records.COUNTS


def test_a_campaign_and_its_results_are_read_as_they_were_written(tmp_path):
    runs = records.planned({one: 1 for one in Condition}, 3)
    begun = campaign(runs)
    keeping.begin(tmp_path, begun)
    written = []
    for run, outcome in zip(runs, [*Outcome], strict=False):
        one = dataclasses.replace(result(run.condition, run.number, outcome), run=run)
        (tmp_path / run.folder).mkdir()
        keeping.write(tmp_path / run.folder / "result.json", dataclasses.asdict(one))
        written.append(one)
    assert records.read(tmp_path) == (begun, written)


class NoTestbed:
    """Stands for the testbed, which these tests leave alone."""

    verbs: list[str]

    def __init__(self, log: Path) -> None:
        NoTestbed.verbs = []

    def up(self, topology: Path) -> None:
        self.verbs.append(topology.stem)

    def rebuild(self) -> None:
        self.verbs.append("rebuild")

    def restore(self) -> None:
        self.verbs.append("restored")


@pytest.fixture
def fake(monkeypatch):
    """Runs without a testbed: ``fake["measure"]`` says what becomes of each, in its folder."""
    made: dict = {"runs": [], "measure": lambda run, folder: Judged(Outcome.GREEN)}

    def measure(run, settings, folder, lock):
        made["runs"].append(run.number)
        return made["measure"](run, folder)

    monkeypatch.setattr(making, "Testbed", NoTestbed)
    monkeypatch.setattr(making, "wait_until_quiet", lambda settings: (0.1, 0.0))
    monkeypatch.setattr(making, "measure", measure)
    return made


def test_a_campaign_goes_on_with_the_runs_that_have_no_result(fake, tmp_path):
    runs = records.planned({Condition.QUIET: 2, Condition.SICK: 2}, 3)
    keeping.begin(tmp_path, campaign(runs))

    def interrupted(run, folder):
        (folder / "reframe.log").write_text("half of it")
        if run.number == 3:
            raise errors.Ended("SIGTERM")
        return Judged(Outcome.GREEN)

    fake["measure"] = interrupted
    with pytest.raises(errors.Ended):
        making.go_on(tmp_path)
    assert NoTestbed.verbs[-1] == "restored"
    assert [one.run.number for one in records.read(tmp_path)[1]] == [1, 2]

    def last(run, folder):
        assert not (folder / "reframe.log").exists()
        return Judged(Outcome.GREEN)

    fake["measure"] = last
    making.go_on(tmp_path)
    assert fake["runs"] == [1, 2, 3, 3, 4]
    assert [one.run for one in records.read(tmp_path)[1]] == list(runs)
    making.go_on(tmp_path)
    assert fake["runs"] == [1, 2, 3, 3, 4]


def test_a_sick_run_has_the_sick_switch_and_a_quiet_one_the_default(fake, tmp_path):
    runs = (Run(1, Condition.SICK, 1), Run(2, Condition.QUIET, 2))
    keeping.begin(tmp_path, campaign(runs))
    making.go_on(tmp_path)
    assert NoTestbed.verbs == ["sick-switch", "topology", "restored"]


@pytest.mark.slow
def test_a_sick_run_measures_one_environment_that_its_seed_draws(tmp_path, monkeypatch):
    asked = []

    def measure(arguments, **_options):
        asked.append(arguments)
        raise NetproofError("far enough")

    monkeypatch.setattr(judged_run.night, "measure", measure)
    settings = campaign(()).settings
    runs = [Run(number, Condition.SICK, number) for number in range(40)]
    for run in [*runs, Run(41, Condition.QUIET, 1)]:
        with pytest.raises(NetproofError, match="far enough"):
            making.measure(run, settings, tmp_path, 0)
    drawn = [arguments[arguments.index("-p") + 1] for arguments in asked[:-1]]
    assert {"^mpich$", "^intelmpi$", "^openmpi4$", "^openmpi5$"} <= set(drawn)
    assert drawn == [f"^{making.sick_environment(run)}$" for run in runs]
    assert "-p" not in asked[-1]


@pytest.mark.parametrize(
    "error", [NetproofError("ReFrame left no report"), OSError("no space left")]
)
def test_a_run_that_breaks_is_not_judged_and_the_next_begins_anew(fake, tmp_path, error):
    keeping.begin(tmp_path, campaign((Run(1, Condition.QUIET, 1), Run(2, Condition.QUIET, 2))))

    def broken(run, folder):
        if run.number == 1:
            raise error
        return Judged(Outcome.GREEN)

    fake["measure"] = broken
    first, second = making.go_on(tmp_path)
    assert (first.judged.outcome, first.judged.reason) == (Outcome.NOT_JUDGED, str(error))
    assert first.wrong
    assert second.judged.outcome is Outcome.GREEN
    assert NoTestbed.verbs == ["topology", "rebuild", "topology", "restored"]


@pytest.mark.slow
def test_a_run_that_takes_too_long_is_ended_and_not_judged(fake, tmp_path):
    short = dataclasses.replace(SETTINGS, run_limit_s=0.2)
    begun = dataclasses.replace(campaign((Run(1, Condition.QUIET, 1),)), settings=short)
    keeping.begin(tmp_path, begun)
    fake["measure"] = lambda run, folder: time.sleep(30)
    (only,) = making.go_on(tmp_path)
    assert only.judged == Judged(Outcome.NOT_JUDGED, "the run was ended after 0.2 s (--run-limit)")


@pytest.mark.slow
def test_a_load_is_alongside_its_run_and_ends_with_it(fake, tmp_path):
    keeping.begin(tmp_path, campaign((Run(1, Condition.ONE_CPU, 1),)))
    fake["measure"] = lambda run, folder: time.sleep(1.5) or Judged(Outcome.GREEN)
    (only,) = making.go_on(tmp_path)
    assert only.judged.outcome is Outcome.GREEN
    assert only.machine.load_cpu_s > 0.3
    assert only.machine.cpu in os.sched_getaffinity(0)
    assert not list((tmp_path / "001-one-cpu").glob("tmp*"))


@pytest.mark.slow
def test_a_run_whose_load_ended_early_is_not_judged(fake, tmp_path, monkeypatch):
    monkeypatch.setattr(
        making, "load_of", lambda run, settings, folder: (["compiler", "--seed", "x"], None)
    )
    keeping.begin(tmp_path, campaign((Run(1, Condition.COMPILER, 1),)))
    fake["measure"] = lambda run, folder: time.sleep(1.5) or Judged(Outcome.GREEN)
    (only,) = making.go_on(tmp_path)
    assert only.judged.outcome is Outcome.NOT_JUDGED
    assert "ended by itself, with status 2" in only.judged.reason


def test_a_compiler_that_is_not_here_is_named_by_package(fake, tmp_path, monkeypatch):
    keeping.begin(tmp_path, campaign((Run(1, Condition.COMPILER, 1),)))
    monkeypatch.setattr(machine_load, "missing_packages", lambda: ["gcc"])
    with pytest.raises(CannotRunError, match="apt-get install gcc"):
        making.go_on(tmp_path)
    assert fake["runs"] == []


def test_runs_of_other_code_are_no_one_campaign(fake, tmp_path):
    other = dataclasses.replace(campaign((Run(1, Condition.QUIET, 1),)), code="other")
    keeping.begin(tmp_path, other)
    with pytest.raises(CannotRunError, match="other code or configuration"):
        making.go_on(tmp_path)


def test_a_folder_with_anything_in_it_is_no_place_for_a_new_campaign(tmp_path):
    (tmp_path / "mine").touch()
    with pytest.raises(CannotRunError, match="is not empty"):
        keeping.begin(tmp_path, campaign((Run(1, Condition.QUIET, 1),)))


@pytest.mark.parametrize("text", [None, "", "{}", '{"format": 1}', '{"format": 9}'])
def test_a_folder_without_a_whole_campaign_is_refused(tmp_path, text):
    if text is not None:
        (tmp_path / "campaign.json").write_text(text)
    with pytest.raises(CannotRunError, match=r"campaign\.json"):
        records.read(tmp_path)


def test_a_cut_result_is_refused_and_not_passed_over(tmp_path):
    run = Run(1, Condition.QUIET, 1)
    keeping.begin(tmp_path, campaign((run,)))
    (tmp_path / run.folder).mkdir()
    (tmp_path / run.folder / "result.json").write_text('{"run": ')
    with pytest.raises(CannotRunError, match=r"result\.json: cannot be read"):
        records.read(tmp_path)


@pytest.mark.slow
def test_the_share_of_the_cpus_is_seen(tmp_path):
    with machine_load.running(["one-cpu", "--cpu", str(min(os.sched_getaffinity(0)))]):
        assert machine.busy_share(0.5) > 0.5 / os.cpu_count()


def test_a_machine_that_is_not_quiet_is_refused_in_words():
    never = dataclasses.replace(SETTINGS, quiet_share=-1.0)
    with pytest.raises(CannotRunError, match="the machine is not quiet: others use"):
        machine.wait_until_quiet(never)
    always = dataclasses.replace(SETTINGS, quiet_share=1.0)
    assert machine.wait_until_quiet(always)[0] < 5


def test_launches_are_counted_once_with_those_that_failed(tmp_path):
    for place, job in (("output", "netpipe"), ("stage", "netpipe"), ("stage", "imb-faulty")):
        shutil.copytree(DATA / "jobs" / job, tmp_path / place / "gige" / job)
    counted = making.launches_in(tmp_path)
    assert (counted.made, counted.failed) == (8 + 8, 3)
    assert counted.seconds > 0
    (tmp_path / "stage" / "gige" / "netpipe" / "launches.tsv").write_text("garbled")
    assert making.launches_in(tmp_path) is None
    assert making.launches_in(tmp_path / "none") is None


@pytest.mark.parametrize("where", ["--resume", "--table"])
def test_a_campaign_that_stands_takes_no_other_settings(where, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main([where, "folder", "--quiet-share", "0.5"])
    assert ended.value.code == 2
    assert "--quiet-share goes with --out" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("fake")
def test_reports_are_judged_again_and_what_was_found_stays(tmp_path, monkeypatch):
    runs = (Run(1, Condition.QUIET, 1), Run(2, Condition.SICK, 2))
    keeping.begin(tmp_path, campaign(runs))
    for run in runs:
        place = tmp_path / run.folder
        place.mkdir()
        unread = dataclasses.replace(result(run.condition, run.number, Outcome.NOT_JUDGED), run=run)
        keeping.write(place / keeping.RESULT_FILE, dataclasses.asdict(unread))
    (tmp_path / runs[0].folder / judged_run.REPORT).write_text("{}")
    asked = []

    def answered(command, folder, name, **_):
        asked.append((command[2], folder.name, name))
        return subprocess.CompletedProcess(command, 0, json.dumps(green()), "")

    monkeypatch.setattr(making, "answered", answered)
    _, again = making.read_judged_again(tmp_path)
    assert [one.judged.outcome for one in again] == [Outcome.GREEN, Outcome.NOT_JUDGED]
    assert asked == [("testbed:gige", runs[0].folder, "verdict-again")]
    _, kept = records.read(tmp_path)
    assert [one.judged.outcome for one in kept] == [Outcome.NOT_JUDGED] * 2


@pytest.mark.slow
def test_the_command_prints_a_table_and_says_whether_the_aims_are_met(tmp_path):
    runs = (Run(1, Condition.QUIET, 1),)
    keeping.begin(tmp_path, campaign(runs))
    command = [ROOT / "ci" / "false-reds", "--table", tmp_path]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "MISSED: 0 of 1 runs were made." in ran.stdout
    command[-1] = tmp_path / "none"
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2


@pytest.fixture
def commands(monkeypatch, tmp_path):
    """The verbs that a stand-in of the testbed's command was given; a file says how each ends."""
    program, said = tmp_path / "testbed", tmp_path / "said"
    program.write_text(
        f'#!/bin/bash\necho "$@" >>{said}\necho "munged: no key"\n'
        f"read -r status 2>/dev/null <{tmp_path}/$1 || status=0\nexit $status\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(cluster, "TESTBED", program)
    monkeypatch.setattr(cluster, "STATE", tmp_path)
    monkeypatch.setenv("SLURM_CONF", "")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "squeue").write_text("#!/bin/bash\n")
    (tmp_path / "squeue").chmod(0o755)
    (tmp_path / "topology.yaml").write_text("switches: as found\n")
    (tmp_path / "status").write_text("0\n")

    def given() -> list[str]:
        return said.read_text().splitlines()

    return given


def test_a_testbed_that_was_down_is_down_at_the_end(commands, tmp_path):
    (tmp_path / "status").write_text("2\n")
    testbed = cluster.Testbed(tmp_path / "log")
    healthy, sick = making.HEALTHY_TOPOLOGY, making.SICK_TOPOLOGY
    for topology in (healthy, healthy, sick):
        testbed.up(topology)
    testbed.rebuild()
    testbed.up(sick)
    testbed.restore()
    assert commands() == [
        "status",
        *("down", f"up --topology {healthy}", f"up --topology {healthy}"),
        *("down", f"up --topology {sick}", "down", f"up --topology {sick}"),
        "down",
    ]


def test_a_testbed_that_was_up_has_its_topology_at_the_end(commands, tmp_path):
    place = tmp_path / "campaign"
    place.mkdir()
    testbed = cluster.Testbed(place / "testbed.log")
    testbed.up(making.SICK_TOPOLOGY)
    testbed.restore()
    found = place / "topology-as-found.yaml"
    assert commands()[-2:] == ["down", f"up --topology {found}"]
    assert found.read_text() == "switches: as found\n"


def test_a_testbed_with_jobs_is_left_alone(commands, tmp_path):
    (tmp_path / "squeue").write_text("#!/bin/bash\necho 7 gige mine\n")
    with pytest.raises(CannotRunError, match="has jobs"):
        cluster.Testbed(tmp_path / "log")
    assert commands() == ["status"]


@pytest.mark.parametrize(("status", "ends"), [(1, False), (2, True)])
def test_a_testbed_that_does_not_come_up_is_no_green_run(commands, tmp_path, status, ends):
    (tmp_path / "up").write_text(f"{status}\n")
    testbed = cluster.Testbed(tmp_path / "log")
    said = f"testbed up ended with {status}: .*munged: no key"
    with pytest.raises(NetproofError, match=said) as refused:
        testbed.up(making.HEALTHY_TOPOLOGY)
    # Where it cannot be had at all no run of the campaign can be made.
    assert isinstance(refused.value, CannotRunError) is ends


INTERRUPTED = """
import sys, time
from ci.false_reds import command, making

class NoTestbed:
    def __init__(self, log): pass
    def up(self, topology): pass
    def restore(self): print("restored", flush=True)

def measure(run, settings, folder, lock):
    print("measuring", flush=True)
    time.sleep(60)

making.Testbed, making.measure = NoTestbed, measure
making.wait_until_quiet = lambda settings: (0.0, 0.0)
sys.exit(command.main(sys.argv[1:]))
"""


def processes_about(folder: Path) -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = place.read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        found += [text] if str(folder) in text else []
    return found


@pytest.mark.slow
@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_campaign_that_gets_a_signal_to_end_leaves_nothing_running(way, tmp_path):
    counts = [f"--{one}={int(one is Condition.COMPILER)}" for one in Condition]
    folder = tmp_path / "campaign"
    command = [sys.executable, "-c", INTERRUPTED, "--out", str(folder), *counts]
    pipe = subprocess.PIPE
    settings = {"cwd": ROOT, "stdout": pipe, "stderr": pipe, "text": True}
    # Whoever started the tests behind nohup, or with &, ignores some of these, and so do we then.
    with subprocess.Popen(
        command, preexec_fn=lambda: signal.signal(way, signal.SIG_DFL), **settings
    ) as ours:
        assert ours.stdout.readline() == "measuring\n"
        assert len(processes_about(folder)) >= 2
        ours.send_signal(way)
        out, errors = ours.communicate(timeout=30)
    assert (ours.returncode, out) == (2, "restored\n")
    assert f"ended by {way.name}; go on with --resume {folder}" in errors
    assert processes_about(folder) == []
    assert records.read(folder)[1] == []
