"""Programs that take CPUs away from a measurement, until they are killed.

Each is started by ``running``, and ends with the process that started it, however that ends.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from netproof.commands.reframe import ending_with_this_process
from netproof.errors import NetproofError

SOURCE = Path(__file__).with_name("slow_mpi.c")
PROGRAMS = {"gcc": "gcc", "as": "binutils"}
"""Programs of the compiler's load, and their Debian packages."""
BURST_S, PAUSE_S = 2.0, 2.0
"""Mean seconds of a burst, and of the pause before it; both are exponentially distributed."""


def take_cpu(cpu: int) -> None:
    """Use all that one CPU gives, for ever."""
    os.sched_setaffinity(0, {cpu})
    while True:
        pass


def bursts(seed: int) -> Iterator[tuple[float, float]]:
    """Yield begin and end of each burst in seconds from the start, for ever."""
    drawn, at = random.Random(seed), 0.0
    while True:
        begin = at + drawn.expovariate(1 / PAUSE_S)
        at = begin + drawn.expovariate(1 / BURST_S)
        yield begin, at


def take_bursts(cpu: int, seed: int, begun: float) -> None:
    """Use one CPU in bursts that ``seed`` draws, for ever; ``begun``: monotonic time of start."""
    os.sched_setaffinity(0, {cpu})
    for begin, end in bursts(seed):
        time.sleep(max(begun + begin - time.monotonic(), 0.0))
        while time.monotonic() < begun + end:
            pass


def compile_on(folder: str) -> None:
    """Compile slow_mpi.c into ``folder`` again and again, for ever.

    Raises CalledProcessError if the compiler fails.
    """
    command = ["gcc", "-O2", "-c", "-o", f"{folder}/compiled.o", str(SOURCE)]
    while True:
        subprocess.run(command, env={**os.environ, "TMPDIR": folder}, check=True)


LOADS: dict[str, Callable[..., None]] = {
    "one-cpu": take_cpu,
    "bursts": take_bursts,
    "compiler": compile_on,
}


def settings_of(load: str, seed: int, folder: Path) -> list[dict[str, Any]]:
    """Return the arguments of each process of a load: bursts take all CPUs at the same times."""
    cpus = sorted(os.sched_getaffinity(0))
    if load == "one-cpu":
        return [{"cpu": random.Random(seed).choice(cpus)}]
    if load == "bursts":
        return [{"cpu": cpu, "seed": seed, "begun": time.monotonic()} for cpu in cpus]
    return [{"folder": str(folder)}]


def missing_packages() -> list[str]:
    """Return Debian's packages of the compiler's load that are missing here."""
    return sorted({package for name, package in PROGRAMS.items() if shutil.which(name) is None})


class Load:
    """A running load, by its processes, each with a group of its own."""

    def __init__(self, processes: list[subprocess.Popen[bytes]]) -> None:
        self.processes = processes

    def cpu_seconds(self) -> float:
        """Return its CPU seconds, those of ended children too. Raises NetproofError if it ended."""
        ticks = 0
        for one in self.processes:
            if one.poll() is not None:
                raise NetproofError(
                    f"the program alongside the run ended by itself, with status {one.returncode}"
                )
            # proc(5): the name, in brackets, may have spaces.
            fields = Path(f"/proc/{one.pid}/stat").read_text().rpartition(") ")[2].split()
            ticks += sum(map(int, fields[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(load: str, seed: int, folder: Path) -> Iterator[Load]:
    """Run a load of this module by its name, and kill all of it."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for settings in settings_of(load, seed, folder):
            processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "ci.evaluation.load", load, json.dumps(settings)],
                    cwd=Path(__file__).resolve().parents[2],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,
                    preexec_fn=ending_with_this_process(),
                )
            )
        yield Load(processes)
    finally:
        for one in processes:
            # Without any process that is left, also of one that ended, there is no group.
            with suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()


if __name__ == "__main__":
    LOADS[sys.argv[1]](**json.loads(sys.argv[2]))
