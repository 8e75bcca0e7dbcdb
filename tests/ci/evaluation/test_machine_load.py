"""The loads use the CPUs that they are to use, and nothing of them is left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import islice, pairwise
from pathlib import Path

import pytest

from ci.evaluation import load as machine_load

ROOT = Path(__file__).resolve().parents[3]
CPUS = sorted(os.sched_getaffinity(0))
WAIT_S = 20.0


def arguments(load: str, folder: Path) -> list[str]:
    settings = {
        "one-cpu": {"cpu": CPUS[-1]},
        "bursts": {"seed": 1, "burst_s": 0.2, "pause_s": 0.05, "cpus": CPUS},
        "compiler": {"seed": 1, "folder": str(folder)},
    }
    return machine_load.words(load, **settings[load])


def wait_for(what, seconds: float = WAIT_S) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("load", ["one-cpu", "bursts", "compiler"])
def test_a_load_uses_cpus_and_leaves_nothing(load, tmp_path):
    with machine_load.running(arguments(load, tmp_path)) as running:
        wait_for(lambda: running.cpu_seconds() > 0.2)
        assert machine_load.group(running.group)
        if load == "one-cpu":
            assert os.sched_getaffinity(running.group) == {CPUS[-1]}
            own = os.getpriority(os.PRIO_PROCESS, 0)
            assert os.getpriority(os.PRIO_PROCESS, running.group) == own
    assert machine_load.group(running.group) == []


@pytest.mark.slow
@pytest.mark.parametrize("load", ["one-cpu", "bursts", "compiler"])
def test_a_load_ends_with_the_process_that_started_it_even_if_that_is_killed(load, tmp_path):
    starter = subprocess.Popen(
        [
            *(sys.executable, "-c"),
            "import sys, time\nfrom ci.evaluation import load as machine_load\n"
            "with machine_load.running(sys.argv[1:]) as load:\n"
            "    print(load.group, flush=True)\n    time.sleep(60)",
            *arguments(load, tmp_path),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    group = int(starter.stdout.readline())
    wait_for(lambda: machine_load.group_cpu_seconds(group) > 0.1)
    starter.kill()
    starter.wait()
    starter.stdout.close()
    wait_for(lambda: not machine_load.group(group), 5)


def test_bursts_are_drawn_by_the_seed_and_have_the_means_that_were_asked_for():
    drawn = list(islice(machine_load.bursts(7, 2.0, 0.5), 4000))
    assert drawn == list(islice(machine_load.bursts(7, 2.0, 0.5), 4000))
    assert drawn[:3] != list(islice(machine_load.bursts(8, 2.0, 0.5), 3))
    lengths = [end - begin for begin, end in drawn]
    assert sum(lengths) / len(lengths) == pytest.approx(2.0, rel=0.1)
    assert drawn[-1][1] / len(drawn) == pytest.approx(2.5, rel=0.1)
    assert all(begin > end for (_, end), (begin, _) in pairwise(drawn))
