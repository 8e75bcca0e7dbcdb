"""What rounds of pairs cost grows with the nodes, and not with their square.

Each job is made from a recorded launch: every node prints and counts what a recorded node did. One
node has half of the rate, one loses packets.
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from netproof import codec
from netproof.jobs.pair_rounds import Decider
from netproof.pairs import verdict as pairs
from netproof.session import pair_rounds
from netproof.session.job_files import LAUNCHES_FILE, LAUNCHES_HEADER
from netproof.session.node_facts import JOB_NODES_FILE
from netproof.session.pair_rounds import PlannedLaunch
from netproof.session.plan import PLAN_FILE, JobPlan
from netproof.verdict import traffic

FEW, MANY = 24, 240
JOBS = Path(__file__).resolve().parents[2] / "data" / "jobs"
JOBID = "7"
TIMES_US = {4: 156.0, 262144: 24000.0}


class Job:
    """A job of so many nodes in a folder, whose launches are made when they are asked for."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.random = folder, np.random.default_rng(count)
        names = [f"node-{number}" for number in range(1, count + 1)]
        self.slow, self.lossy = names[count // 3], names[count // 2]
        printed = (JOBS / "both-ways" / "pairs.1.out").read_text().replace("PingPing", "PingPong")
        self.head, self.end = printed[: printed.index("# ( ")], printed[printed.index("# All ") :]
        lines = (JOBS / "both-ways" / "pairs.1.err").read_text().splitlines(keepends=True)
        of_node = ("scheduled 8\t", " on tree-4:", " on tree-4\t")
        said = "".join(one for one in lines if any(word in one for word in of_node))
        self.said = said.replace("rank 8", "RANK").replace("led 8\t", "led NUMBER\t")
        folder.mkdir()
        (folder / JOB_NODES_FILE).write_text(json.dumps({JOBID: names}))
        (folder / LAUNCHES_FILE).write_text(f"{LAUNCHES_HEADER}\n")
        leaves = {f"leaf-{at}": names[at : at + 40] for at in range(0, count, 40)}
        planned = json.loads((JOBS / "pairs" / PLAN_FILE).read_text())
        planned["asked"] |= {"leaves": leaves, "parents": dict.fromkeys(leaves, "spine")}
        planned["extras"]["criteria"]["disturbance"] = {"others": 1.0, "steal": 1.0}
        (folder / PLAN_FILE).write_text(json.dumps(planned))
        self.deciders = {}
        for mode in ("full", "quick", "paths"):
            asked = {**planned, "asked": {**planned["asked"], "mode": mode}}
            made = codec.decode(JobPlan, asked, "plan")
            self.deciders[mode] = Decider(folder, made, JOBID)

    def launch(self, number: int, launch: PlannedLaunch) -> None:
        """Make the launch that was decided on."""
        asked = list(launch.nodes())
        groups = range(len(asked) // 2)
        slow = np.array([self.slow in asked[2 * group : 2 * group + 2] for group in groups])
        rows = []
        for size, time_us in TIMES_US.items():
            several = time_us * np.exp(self.random.normal(0, 0.02, len(groups)))
            several *= np.where(slow & (size == max(TIMES_US)), 2, 1)
            rows += [
                f"{g:13}{size:13}{60:13}{t:13.2f}{size / t:13.2f}" for g, t in enumerate(several)
            ] + [""]
        listed = "".join(f"# Group {g:2}:  {2 * g:4} {2 * g + 1:4}\n# \n" for g in groups)
        (self.folder / f"pairs.{number}.out").write_text(
            f"{self.head}# ( {len(groups)} groups of 2 processes each running simultaneous ) \n"
            f"{listed}#{'-' * 64}\n        Group       #bytes #repetitions      t[usec]   "
            "Mbytes/sec\n\n" + "\n".join(rows) + f"\n{self.end}"
        )
        with (self.folder / f"pairs.{number}.err").open("w") as errors:
            for rank, node in enumerate(asked):
                said = self.said.replace("RANK", f"rank {rank}").replace("NUMBER", str(rank))
                said = said.replace("tree-4\t1131304b", f"{node}\t{node}").replace("tree-4", node)
                if node == self.lossy:
                    said = said.replace("44457 23 ", "44457 423 ")
                errors.write(said)
        with (self.folder / LAUNCHES_FILE).open("a") as record:
            record.write(f"pairs.{number}\t{5 * number}.0\t{5 * number + 4}.0\t0\t180\n")


def measured(folder: Path, count: int, rounds: int, clock: Callable[[], float]) -> dict[str, float]:
    """What each step with so many nodes takes by ``clock``, of a round the most."""
    took: dict[str, float] = defaultdict(float)

    def timed(step: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        began = clock()
        found = function(*arguments, **named)
        took[step] = max(took[step], clock() - began)
        return found

    job = Job(folder, count)
    for made in range(rounds):
        full = job.deciders["full"]
        following = timed("decide, full", full.following, made)
        job.launch(made + 1, following)
        known = timed("read a launch", full.rounds)
        for mode in ("quick", "paths"):
            other = job.deciders[mode]
            other.launches = full.launches
            timed(f"decide, {mode}", other.following, made + 1)
            pair_rounds.write_planned(folder, (full.launches, full.last))
    assert len(known.launches) == rounds, known.faults
    partition = full.planned.partition
    settings = partition.pair_settings(), partition.settings().disturbance
    judged = timed("judge", pairs.judge, known, *settings, partition.link(over_tcp=True))
    seen = traffic.of_rounds([known], {known.partition: partition})
    named = timed("name who stands out", traffic.standing_out, seen)
    timed("all lose", traffic.all_lose, seen)
    timed("totals", traffic.totals, seen)
    assert [one.nodes for one in judged.judgement.accusations] in ([(job.slow,)], [])
    assert job.lossy in [one.node for one in named]
    return dict(took)


class LinesRun:
    """A clock that counts the lines of Python that were run."""

    def __init__(self) -> None:
        self.count = 0

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.count += event == "line"
        return self.trace

    def measured(self, folder: Path, nodes: int) -> dict[str, float]:
        sys.settrace(self.trace)
        try:
            return measured(folder, nodes, rounds=3, clock=lambda: self.count)
        finally:
            sys.settrace(None)


@pytest.mark.slow
def test_every_step_grows_with_the_nodes_and_not_with_their_square(tmp_path):
    few, many = (LinesRun().measured(tmp_path / str(count), count) for count in (FEW, MANY))
    grown = {
        step: math.log(lines / few[step]) / math.log(MANY / FEW) for step, lines in many.items()
    }
    assert {step: found for step, found in grown.items() if not found <= 1.1} == {}
