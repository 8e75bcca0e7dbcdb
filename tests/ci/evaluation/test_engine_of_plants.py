"""An evaluation goes on where it was, and leaves neither a fault nor a process behind."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from itertools import islice, pairwise
from pathlib import Path

import pytest
from runs_without_testbed import SETTINGS, NoTestbed, campaign, result

from ci.evaluation import engine, judges, machine
from ci.evaluation.__main__ import Ended
from ci.evaluation.machine import CannotRunError
from ci.evaluation.plants import EVALUATIONS, HEALTHY, Answer, Evaluation, Grade, Plant, Run
from ci.testbed import processes
from netproof.errors import NetproofError

ROOT = Path(__file__).resolve().parents[3]
EVALUATION = EVALUATIONS["diagnose-campaign"]
TOPOLOGY = Plant.topology
HEALTHY_TOPOLOGY = ROOT / TOPOLOGY
SICK_TOPOLOGY = ROOT / "docs" / "criteria" / "sick-switch.yaml"


def run_of(kind: str, number: int = 1) -> Run:
    place, fault = (("gige-3",), EVALUATION.faults[kind].faults[0]) if kind != HEALTHY else ((), {})
    return Run(number, kind, 11, ("mpich",), TOPOLOGY, "gige", place, dict(fault))


MTU, CLEAN, FLAP = run_of("mtu"), run_of(HEALTHY, 2), run_of("link-flap")
FLAPS = {"pairs": True}


def begin(folder: Path, *runs: Run, **changes: object) -> None:
    engine.begin(folder, dataclasses.replace(campaign(*runs, **FLAPS), **changes))


def grades(folder: Path) -> list[Grade]:
    return [one.judged.found for one in engine.read(EVALUATION, folder)[1]]


def test_a_fault_is_there_while_its_run_is_made_and_lifted_after_it(fake, tmp_path, capsys):
    begin(tmp_path, MTU, CLEAN)
    fake["measure"] = lambda run, folder: NoTestbed.verbs.append("measure") or Answer(Grade.RIGHT)
    engine.go_on(EVALUATION, tmp_path)
    assert NoTestbed.verbs == [
        *("up topology", "plant gige-3 mtu=1400", "measure", "lift"),
        *("up topology", "measure", "restored"),
    ]
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("1/2 MTU 1400 on a node gige-3 mtu=1400: load average ")


@pytest.mark.parametrize(
    "error", [NetproofError("no report"), OSError("no space"), Ended("SIGTERM")]
)
def test_a_fault_is_lifted_whatever_ends_its_run_and_the_next_begins_anew(fake, tmp_path, error):
    begin(tmp_path, MTU, CLEAN)

    def broken(run, folder):
        if run == MTU:
            raise error
        return Answer(Grade.RIGHT)

    fake["measure"] = broken
    if isinstance(error, Ended):
        with pytest.raises(Ended):
            engine.go_on(EVALUATION, tmp_path)
    else:
        engine.go_on(EVALUATION, tmp_path)
        first, second = engine.read(EVALUATION, tmp_path)[1]
        assert first.judged == Answer(Grade.NOT_JUDGED, (str(error),))
        assert second.judged.found is Grade.RIGHT
        assert NoTestbed.verbs[3] == "rebuild"
    assert NoTestbed.verbs[2] == "lift"
    assert NoTestbed.verbs[-1] == "restored"


@pytest.mark.parametrize("repeats", [True, False])
def test_an_evaluation_goes_on_with_what_has_no_result_and_what_was_not_judged(
    fake, tmp_path, repeats
):
    evaluation: Evaluation = dataclasses.replace(EVALUATION, repeats_broken=repeats)
    begin(tmp_path, MTU, CLEAN, run_of("loss", 3))

    def second_breaks_and_third_is_interrupted(run, folder):
        (folder / "reframe.log").write_text("half of it")
        if run.number == 3:
            raise Ended("SIGTERM")
        return Answer(Grade.NOT_JUDGED if run.number == 2 else Grade.MISSED, ("why",))

    fake["measure"] = second_breaks_and_third_is_interrupted
    with pytest.raises(Ended):
        engine.go_on(evaluation, tmp_path)
    assert grades(tmp_path) == [Grade.MISSED, Grade.NOT_JUDGED]

    def again(run, folder):
        assert not (folder / "reframe.log").exists()
        return Answer(Grade.RIGHT)

    fake["measure"] = again
    for _ in range(2):
        engine.go_on(evaluation, tmp_path)
        assert fake["runs"] == ([1, 2, 3, 2, 3] if repeats else [1, 2, 3, 3])


def test_a_run_that_ends_before_its_link_went_down_and_came_back_is_not_judged(fake, tmp_path):
    begin(tmp_path, FLAP)
    engine.go_on(EVALUATION, tmp_path)
    (only,) = engine.read(EVALUATION, tmp_path)[1]
    assert only.judged.found is Grade.NOT_JUDGED
    assert "the run ended before" in only.judged.said[0]


def test_reports_are_judged_again_and_what_was_found_stays(fake, asked, tmp_path):
    broken = run_of("loss", 3)
    begin(tmp_path, MTU, CLEAN, broken)

    def measure(run, folder):
        if run.kind != HEALTHY:
            (folder / engine.REPORT).write_text("{}")
        return Answer(Grade.NOT_JUDGED if run == broken else Grade.MISSED, ("why",))

    fake["measure"] = measure
    engine.go_on(EVALUATION, tmp_path)
    _, again = engine.judged_again(EVALUATION, tmp_path)
    report = tmp_path / MTU.folder / engine.REPORT
    assert asked == [["diagnose", str(report), "testbed:gige"]]
    assert (tmp_path / MTU.folder / "answer-again.err").read_text() == "no diagnosis"
    assert [one.judged.found for one in again] == [
        *(Grade.NOT_JUDGED, Grade.MISSED, Grade.NOT_JUDGED)
    ]
    assert "no diagnosis" in again[0].judged.said[0]
    assert grades(tmp_path) == [Grade.MISSED, Grade.MISSED, Grade.NOT_JUDGED]


def test_a_run_measures_and_asks(asked, tmp_path, monkeypatch):
    monkeypatch.setattr(engine.reframe, "measure", lambda options, *_, **__: asked.append(options))
    judged = engine.measure(EVALUATION, MTU, SETTINGS | FLAPS, tmp_path, 3)
    assert judged.found is Grade.NOT_JUDGED
    measured, question = asked
    assert measured[:2] == ["--system", "testbed:gige"]
    assert question == ["diagnose", str(tmp_path / engine.REPORT), "testbed:gige"]
    assert (tmp_path / "answer.err").read_text() == "no diagnosis"


@pytest.mark.parametrize("evaluation", EVALUATIONS.values(), ids=lambda one: one.name)
@pytest.mark.parametrize(("status", "text"), [(0, ""), (1, "cannot"), (2, "{"), (0, "[]")])
def test_an_answer_that_is_no_document_is_not_judged_and_its_errors_are_reported(
    evaluation, status, text
):
    kind = next(iter(evaluation.plants))
    run = Run(1, kind, 11, ("mpich", "intelmpi"), TOPOLOGY, "gige", (), {})
    found = judges.graded(evaluation, run, status, text, "why:\n  run-0.json: is not there\n")
    assert found.found is Grade.NOT_JUDGED
    assert "run-0.json: is not there" in found.said[0] or text == "[]"


def test_a_run_that_is_not_judged_counts_for_no_aim():
    kind, plant = next(iter(EVALUATION.faults.items()))
    runs = [run_of(kind, number) for number in range(1, 11)]
    made = [result(run, Grade.RIGHT) for run in runs[:9]] + [result(runs[9], Grade.NOT_JUDGED)]
    assert engine.missed(EVALUATION, campaign(*runs), made)[:2] == [
        "1 runs were not judged; --resume makes them again",
        f"{plant.said}: 9 of the 10 runs it takes",
    ]
    assert engine.missed(EVALUATION, campaign(*runs), made[:-1])[0] == "9 of 10 runs were made"


def test_a_folder_that_no_run_can_go_on_in_is_refused(fake, tmp_path):
    begin(tmp_path, MTU, code="other")
    with pytest.raises(CannotRunError, match="other code or configuration"):
        engine.go_on(EVALUATION, tmp_path)
    assert fake["runs"] == []
    with pytest.raises(CannotRunError, match="is not empty"):
        begin(tmp_path, MTU)
    (tmp_path / MTU.folder).mkdir()
    for name in (f"{MTU.folder}/result.json", "campaign.json"):
        (tmp_path / name).write_text('{"run": ')
        with pytest.raises(NetproofError, match=rf"{name}:1: "):
            engine.read(EVALUATION, tmp_path)


@pytest.mark.slow
def test_a_run_that_takes_too_long_is_ended_and_not_judged(fake, tmp_path):
    engine.begin(tmp_path, campaign(CLEAN, **FLAPS, run_limit=0.2))
    fake["measure"] = lambda run, folder: time.sleep(30)
    engine.go_on(EVALUATION, tmp_path)
    (only,) = engine.read(EVALUATION, tmp_path)[1]
    why = "the run was ended after 0.2 s (--run-limit)"
    assert only.judged == Answer(Grade.NOT_JUDGED, (why,))


def test_a_machine_that_is_not_quiet_is_refused_in_words():
    with pytest.raises(CannotRunError, match="the machine is not quiet: others use"):
        machine.wait_until_quiet(SETTINGS | {"quiet_share": -1.0})
    machine.wait_until_quiet(SETTINGS | {"quiet_share": 1.0})


@pytest.mark.parametrize("was_up", [False, True])
def test_a_testbed_is_left_as_it_was_found(commands, tmp_path, was_up):
    (tmp_path / "status").write_text("0\n" if was_up else "2\n")
    testbed = machine.Testbed(tmp_path / "log")
    healthy, sick = HEALTHY_TOPOLOGY, SICK_TOPOLOGY
    for topology in (healthy, healthy, sick):
        testbed.up(topology)
    testbed.rebuild()
    testbed.up(sick)
    testbed.restore()
    found = tmp_path / "topology-as-found.yaml"
    up = {one: f"<up><--topology><{one}>" for one in (healthy, sick, found)}
    assert commands() == [
        *("<status>", "<down>", up[healthy], up[healthy]),
        *("<down>", up[sick], "<down>", up[sick], "<down>", *([up[found]] * was_up)),
    ]
    assert not was_up or found.read_text() == "switches: as found\n"


def test_a_testbed_with_jobs_is_left_alone(commands, tmp_path):
    (tmp_path / "squeue").write_text("#!/bin/bash\necho 7 gige mine\n")
    with pytest.raises(CannotRunError, match="has jobs"):
        machine.Testbed(tmp_path / "log")
    assert commands() == ["<status>"]


@pytest.mark.parametrize(("status", "ends"), [(1, False), (2, True)])
def test_a_testbed_that_does_not_come_up_is_no_green_run(commands, tmp_path, status, ends):
    (tmp_path / "up").write_text(f"{status}\n")
    testbed = machine.Testbed(tmp_path / "log")
    said = f"testbed up ended with {status}: .*munged: no key"
    with pytest.raises(NetproofError, match=said) as refused:
        testbed.up(HEALTHY_TOPOLOGY)
    # Where it cannot be had at all no run can be made.
    assert isinstance(refused.value, CannotRunError) is ends


INTERRUPTED = f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
from runs_without_testbed import NoTestbed
from ci.evaluation import __main__ as command, engine, machine

class Testbed(NoTestbed):
    def restore(self): print("restored", flush=True)

def measure(*_):
    print("measuring", flush=True)
    time.sleep(60)

engine.Testbed, engine.measure = Testbed, measure
machine.wait_until_quiet = lambda settings: None
sys.exit(command.main(sys.argv[1:]))
"""
ONE_COMPILER = [f"--{one}={int(one == 'compiler')}" for one in EVALUATIONS["false-reds"].plants]


def processes_about(folder: Path) -> list[str]:
    titles = (processes.title(one.pid) for one in processes.running())
    return [title for title in titles if str(folder) in title]


@pytest.mark.slow
def test_an_evaluation_that_gets_a_signal_to_end_leaves_nothing_behind(tmp_path):
    folder = tmp_path / "campaign"
    command = [sys.executable, "-c", INTERRUPTED, "false-reds", "--out", str(folder)]
    pipe, way = subprocess.PIPE, signal.SIGHUP
    settings = {"cwd": ROOT, "stdout": pipe, "stderr": pipe, "text": True}
    # Whoever started the tests behind nohup, or with &, ignores some of these, and so do we then.
    with subprocess.Popen(
        [*command, *ONE_COMPILER],
        preexec_fn=lambda: signal.signal(way, signal.SIG_DFL),
        **settings,
    ) as ours:
        assert "load average" in ours.stdout.readline()
        assert ours.stdout.readline() == "measuring\n"
        assert len(processes_about(folder)) >= 2
        ours.send_signal(way)
        out, errors = ours.communicate(timeout=30)
    assert (ours.returncode, out) == (2, "restored\n")
    assert f"ended by SIGHUP; go on with --resume {folder}" in errors
    assert processes_about(folder) == []
    assert not list(folder.glob("*/result.json"))


# The loads use the CPUs that they are to use, and nothing of them is left.

CPUS = sorted(os.sched_getaffinity(0))
WAIT_S = 20.0


def wait_for(what, seconds: float = WAIT_S) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
def test_a_load_uses_a_cpu_until_its_block_ends(tmp_path):
    with machine.alongside("one-cpu", 1, tmp_path) as (running,):
        wait_for(lambda: machine.cpu_seconds([running]) > 0.1)
    assert running.poll() == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("load", machine.LOADS)
def test_a_load_ends_with_the_process_that_started_it_even_if_that_is_killed(load, tmp_path):
    starter = subprocess.Popen(
        [
            *(sys.executable, "-c"),
            "import sys, time\nfrom pathlib import Path\n"
            "from ci.evaluation import machine\n"
            "with machine.alongside(sys.argv[1], 1, Path(sys.argv[2])) as load:\n"
            "    while machine.cpu_seconds(load) < 0.1:\n        time.sleep(0.02)\n"
            "    print(*[one.pid for one in load], flush=True)\n    time.sleep(60)",
            *(load, tmp_path),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    started = [*map(int, starter.stdout.readline().split())]
    assert len(started) == (len(CPUS) if load == "bursts" else 1)
    if load != "compiler":
        wait_for(lambda: all(len(os.sched_getaffinity(one)) == 1 for one in started))
    starter.kill()
    starter.wait()
    starter.stdout.close()
    wait_for(
        lambda: (
            not {one.pid for one in processes.running()} & {*started}
            and processes_about(tmp_path) == []
        ),
        5,
    )


def test_bursts_are_drawn_by_the_seed_and_have_their_means():
    drawn = list(islice(machine.bursts(7), 4000))
    assert drawn == list(islice(machine.bursts(7), 4000))
    assert drawn[:3] != list(islice(machine.bursts(8), 3))
    lengths = [end - begin for begin, end in drawn]
    assert sum(lengths) / len(lengths) == pytest.approx(machine.BURST_S, rel=0.1)
    both = machine.BURST_S + machine.PAUSE_S
    assert drawn[-1][1] / len(drawn) == pytest.approx(both, rel=0.1)
    assert all(begin > end for (_, end), (begin, _) in pairwise(drawn))
