"""A job of pairs without a cluster: whoever decides is asked, and each launch is made up.

Outputs are those of the recorded job, with so many groups and other nodes.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from netproof.intake import disk
from netproof.jobs.pair_rounds import Decider
from netproof.session import pair_rounds
from netproof.session.measured import Launch
from netproof.session.plan import PLAN_FILE, JobPlan

RECORDED = Path(__file__).resolve().parents[2] / "data" / "jobs" / "pairs"
JOBID = "7"
SMALL_US, LARGE_US = 156.0, 24000.0
"""Approximate times of the recorded job's pairs."""


@dataclass
class MadeJob:
    """A job of so many nodes in a folder, some with half of the others' rate.

    ``noise``, ``of_streams``: standard deviation of the logarithm of times; ``hang``: two nodes
    whose launch by themselves has no figure.
    """

    folder: Path
    count: int
    slow: Collection[str] = ()
    noise: float = 0.02
    of_streams: float = 0.02
    seed: int = 1
    hang: Collection[str] = ()

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.nodes = [f"node-{n:03}" for n in range(1, self.count + 1)]
        self.made = 0
        self.folder.mkdir(parents=True)
        (self.folder / "job_nodes.json").write_text(json.dumps({JOBID: self.nodes}))
        planned = disk.json_file(RECORDED / PLAN_FILE)
        planned["asked"]["mode"] = "quick"
        planned["extras"]["criteria"] = {"disturbance": {"others": 1.0, "steal": 1.0}}
        (self.folder / PLAN_FILE).write_text(json.dumps(planned))
        shutil.copy(RECORDED / "sizes-pairs.txt", self.folder)
        (self.folder / "launches.tsv").write_text("step\tstart\tend\tstatus\tlimit_s\n")
        printed = (RECORDED / "pairs.1.out").read_text()
        self.header = printed[: printed.index("# ( 2 groups")]
        said = (RECORDED / "pairs.1.err").read_text().splitlines()
        self.of_rank = said[:3]

    def run(self) -> int:
        """Make launches until none is asked for, and return how many there were."""
        return self.run_rounds(None).made

    def run_rounds(self, most: int | None) -> MadeJob:
        """Make launches until none is asked for, or so many."""
        self.decider = Decider(self.folder, JobPlan.read(self.folder / PLAN_FILE), JOBID)
        while self.made != most and (following := self.decider.following(self.made)) is not None:
            self.made += 1
            self._launch(self.made, following)
        return self

    def _launch(self, number: int, following: Launch) -> None:
        asked = list(following.nodes())
        step = f"pairs.{number}"
        if {*self.hang} == {*asked}:
            self._hung(number)
            return
        printed = self._streamed(asked) if following.stream else self._printed(asked)
        (self.folder / f"{step}.out").write_text(printed)
        said = (self._said(rank, node) for rank, node in enumerate(asked))
        (self.folder / f"{step}.err").write_text("".join(said))
        start = 1795337843.0 + 5 * number
        with (self.folder / "launches.tsv").open("a") as record:
            record.write(f"{step}\t{start:.6f}\t{start + 2:.6f}\t0\t180\n")

    def _hung(self, number: int) -> None:
        for kind in ("out", "err"):
            (self.folder / f"pairs.{number}.{kind}").write_text("")
        with (self.folder / "launches.tsv").open("a") as record:
            record.write(f"pairs.{number}\t1795337843.0\t1795337903.0\t143\t180\n")
        self.decider.hung.append(number)

    def _printed(self, nodes: list[str]) -> str:
        pairs = list(zip(nodes[::2], nodes[1::2], strict=True))
        several, rows = len(pairs) > 1, ""
        for size, time_us in ((4, SMALL_US), (262144, LARGE_US)):
            for group, pair in enumerate(pairs):
                slower = 2.0 if size > 4 and {*pair} & {*self.slow} else 1.0
                measured = time_us * slower * float(np.exp(self.random.normal(0, self.noise)))
                rows += f"{group:13}" * several
                rows += f"{size:13}{15:13}{measured:13.2f}{size / measured:13.2f}\n"
            rows += "\n" * several
        if not several:
            return self._of_pair("PingPong", "#bytes #repetitions t[usec] Mbytes/sec", rows)
        groups = "".join(
            f"# Group {group:2}: {2 * group:4} {2 * group + 1:4}\n# \n"
            for group in range(len(pairs))
        )
        return (
            f"{self.header}# ( {len(pairs)} groups of 2 processes each running simultaneous ) \n"
            f"{groups}#{'-' * 64}\n"
            "        Group       #bytes #repetitions      t[usec]   Mbytes/sec\n\n"
            f"{rows}\n# All processes entering MPI_Finalize\n\n"
        )

    def _streamed(self, nodes: list[str]) -> str:
        """Output of a stream, in which a message takes as long as its share of the largest one."""
        (size,) = pair_rounds.sizes(262144, stream=True)
        slower = 2.0 if {*nodes} & {*self.slow} else 1.0
        time_us = LARGE_US / 64 * slower * float(np.exp(self.random.normal(0, self.of_streams)))
        row = f"{size:13}{15:13}{size / time_us:13.2f}{1e6 / time_us:13.0f}\n"
        return self._of_pair("Uniband", "#bytes #repetitions Mbytes/sec Msg/sec", row)

    def _of_pair(self, function: str, columns: str, rows: str) -> str:
        """Output of a function on one pair, which is no group."""
        header = self.header.replace("Multi-PingPong", function).replace("PingPong", function)
        ended = "# All processes entering MPI_Finalize\n\n"
        return f"{header}# #processes = 2 \n#{'-' * 51}\n       {columns}\n{rows}\n\n{ended}"

    def _said(self, rank: int, node: str) -> str:
        ran, scheduled, load = self.of_rank
        ran = re.sub(r"rank \d+ on \S+:", f"rank {rank} on {node}:", ran)
        scheduled = re.sub(r"scheduled \d+", f"scheduled {rank}", scheduled)
        # Each node is a machine of its own.
        load = re.sub(r"load on \S+\t[^\t]+", f"load on {node}\tmachine of {node}", load)
        return f"{ran}\n{scheduled}\n{load}\n"
