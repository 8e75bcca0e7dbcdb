"""A job asks every node what it is, once, and for the paths to its neighbours."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from made_programs import program

from netproof.benchmarks import registry
from netproof.jobs.job import RunningJob
from netproof.session import node_facts, provenance
from netproof.session.plan import JobPlan

DATA = Path(__file__).resolve().parents[2] / "data"
EXTRAS = JobPlan.read(DATA / "jobs" / "pairs" / "plan.json").extras


def job_of(folder: Path, monkeypatch) -> RunningJob:
    program(folder / "srun", 'printf "%s\\n" "$@" >>asked\nexit 1')
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    made = RunningJob(folder, JobPlan(1, {**EXTRAS, "interface": "eth1"}))
    made.nodes = ("gige-2", "gige-1")
    return made


def test_every_node_is_asked_once_whatever_comes_of_it(tmp_path, monkeypatch):
    shutil.copy(DATA / "nodes" / "same" / "node.gige-1.txt", tmp_path)
    job_of(tmp_path, monkeypatch).describe()
    asked = (tmp_path / "asked").read_text().splitlines()
    assert {"--nodes=2", "--ntasks=2", "--ntasks-per-node=1"} <= set(asked)
    first, second = (n for n, word in enumerate(asked) if word == sys.executable)
    words = [sys.executable, "-IS", "./node.py", "node", "eth1", *registry.PROGRAMS]
    assert asked[first : first + len(words)] == words
    assert asked[second:] == [sys.executable, "-IS", "./node.py", "path", "eth1"]
    # The first node left no file, and so no address.
    ring = (tmp_path / "ring.txt").read_text()
    assert ring == (
        "gige-2\tgige-1\t198.18.1.1\tgige-1\t198.18.1.1\ngige-1\tgige-2\t-\tgige-2\t-\n"
    )
    began, ended = node_facts.clock_window(tmp_path / node_facts.CLOCK_FILE)
    assert began <= ended


def test_environments_on_the_same_nodes_share_the_paths_and_not_what_a_node_is(
    tmp_path, monkeypatch
):
    folders = [tmp_path / name for name in ("mpich", "intelmpi")]
    for folder in folders:
        folder.mkdir()
    one, other = [job_of(folder, monkeypatch) for folder in folders]
    srun = tmp_path / "mpich" / "srun"
    srun.write_text(
        "#!/bin/bash\nif [[ $* == *\\ path\\ * ]]; then echo through >path.gige-1.txt; exit; fi\n"
        "if [[ $* == library ]]; then echo eth1; exit; fi\n"
        'echo "$SLURM_OVERLAP" >asking; mv asking asked; for _ in {1..200}; do\n'
        "cat ../{mpich,intelmpi}/asked >both && break; sleep 0.1; done\n"
    )
    for each in (one, other):
        each.plan = replace(each.plan, transport=("srun", "library"))
    monkeypatch.setenv("PATH", f"{srun.parent}:{os.environ['PATH']}")
    one.describe(other)
    # Slurm runs both at once, so that they take as long as one.
    assert [(folder / "both").read_text() for folder in folders] == ["1\n1\n"] * 2
    for folder in folders:
        assert provenance.transport_of(folder) == ("eth1",)
        assert (folder / "path.gige-1.txt").read_text() == "through\n"
        assert (folder / "ring.txt").is_file()
        assert (folder / node_facts.CLOCK_FILE).is_file()


def test_nodes_of_pairs_are_tried_besides_neighbours(tmp_path, monkeypatch):
    made = job_of(tmp_path, monkeypatch)
    made.nodes = ("a", "b", "c", "d")
    made.try_paths([("a", "c")])
    ring = [line.split("\t") for line in (tmp_path / "ring.txt").read_text().splitlines()]
    assert ring[0][0::2] == ["a", "-", "-", "-"]
    assert [one[1::2] for one in ring] == [["b", "d", "c"], ["c", "a"], ["d", "b", "a"], ["a", "c"]]
