"""Programs that take CPUs away from a measurement, until they are killed.

Each is a process group started by ``running``; it ends with the process that started it, however
that ends.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from netproof.commands.reframe import ending_with_this_process
from netproof.errors import NetproofError

COMPILER = "gcc"
PROGRAMS = {COMPILER: "gcc", "as": "binutils", "setpriv": "util-linux"}
"""Programs of the compiler's load, and their Debian packages."""
FUNCTIONS = 1000
"""Functions in the compiled file: some seconds of work."""
ENDING_S = 10.0
"""Seconds within which a killed group has to be gone."""


class Load:
    """A running load: a process group."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def group(self) -> int:
        """Number of its process group."""
        return self._process.pid

    def cpu_seconds(self) -> float:
        """Return the group's CPU seconds. Raises NetproofError if it ended by itself."""
        used = group_cpu_seconds(self.group)
        if self._process.poll() is not None:
            raise NetproofError(
                "the program alongside the run ended by itself, with status"
                f" {self._process.returncode}"
            )
        return used


@contextmanager
def running(arguments: Sequence[str]) -> Iterator[Load]:
    """Run a load by this module's arguments, and end all of it.

    Raises NetproofError if a process of it cannot be ended.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "ci.evaluation.load", *arguments],
        cwd=Path(__file__).resolve().parents[2],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=ending_with_this_process(),
    )
    try:
        yield Load(process)
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + ENDING_S
    # The number stays the group's for as long as it has a process, be it a zombie.
    while left := group(process.pid):
        if time.monotonic() > deadline:
            raise NetproofError(f"a program alongside the run cannot be ended: processes {left}")
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.01)
    process.wait()


def group(number: int) -> list[int]:
    """Return the processes of a group that are not zombies."""
    return [
        pid
        for pid, fields in _processes()
        if int(fields[2]) == number and fields[0] not in ("Z", "X")
    ]


def group_cpu_seconds(number: int) -> float:
    """Return CPU seconds of a process group, with children that it waited for."""
    ticks = sum(
        sum(int(field) for field in fields[11:15])
        for _, fields in _processes()
        if int(fields[2]) == number
    )
    return ticks / os.sysconf("SC_CLK_TCK")


def _processes() -> Iterator[tuple[int, list[str]]]:
    """Yield each process number, and the fields of its ``stat`` from the state on (proc(5))."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            text = Path(f"/proc/{name}/stat").read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        yield int(name), text[text.rindex(")") + 2 :].split()


def take_cpu(cpu: int) -> None:
    """Use all that one CPU gives, for ever."""
    os.sched_setaffinity(0, {cpu})
    while True:
        pass


def bursts(seed: int, burst_s: float, pause_s: float) -> Iterator[tuple[float, float]]:
    """Begin and end of each burst in seconds from the start, for ever.

    Bursts and the pauses before them are exponentially distributed about the means given.
    """
    drawn = random.Random(seed)
    at = 0.0
    while True:
        begin = at + drawn.expovariate(1 / pause_s)
        at = begin + drawn.expovariate(1 / burst_s)
        yield begin, at


def take_bursts(cpus: Sequence[int], seed: int, burst_s: float, pause_s: float) -> None:
    """Use all CPUs at the same times, in bursts that ``seed`` draws, for ever."""
    begun, end_with_this_process = time.monotonic(), ending_with_this_process()
    for cpu in cpus[1:]:
        if os.fork() == 0:
            end_with_this_process()
            _burst_on(cpu, begun, bursts(seed, burst_s, pause_s))
    _burst_on(cpus[0], begun, bursts(seed, burst_s, pause_s))


def _burst_on(cpu: int, begun: float, drawn: Iterator[tuple[float, float]]) -> None:
    os.sched_setaffinity(0, {cpu})
    for begin, end in drawn:
        time.sleep(max(begun + begin - time.monotonic(), 0.0))
        while time.monotonic() < begun + end:
            pass


def missing_packages() -> list[str]:
    """Return Debian's packages of the compiler's load that are missing here."""
    return sorted({package for name, package in PROGRAMS.items() if shutil.which(name) is None})


def source(seed: int, number: int, functions: int = FUNCTIONS) -> str:
    """Return a C file of ``functions`` loops over arrays, with constants that the seed draws."""
    drawn = random.Random(f"{seed}/{number}")
    texts = []
    for which in range(functions):
        a, b, c = (drawn.randrange(1, 1 << 16) for _ in range(3))
        texts.append(
            f"double f{which}(double *x, const double *y, int n) {{\n"
            "  double sum = 0;\n"
            "  for (int i = 0; i < n; i++) {\n"
            f"    x[i] = x[i] * {a}.5 + y[(i * {b}) % n];\n"
            f"    if (x[i] > {c}) sum += x[i] / (y[i] + {a}); else sum -= y[i];\n"
            "  }\n"
            "  return sum;\n"
            "}\n"
        )
    return "".join(texts)


def compile_on(folder: str, seed: int) -> None:
    """Compile one generated C file after the other in ``folder``, for ever.

    Raises CalledProcessError if the compiler fails.
    """
    for number in count():
        file = Path(folder, "generated.c")
        file.write_text(source(seed, number))
        subprocess.run(
            # The children of gcc end with it, as gcc does with this process.
            [
                *(COMPILER, "-wrapper", "setpriv,--pdeathsig,KILL", "-O2", "-c"),
                *("-o", f"{folder}/generated.o", str(file)),
            ],
            env={**os.environ, "TMPDIR": folder},
            preexec_fn=ending_with_this_process(),
            check=True,
        )


LOADS: dict[str, Callable[..., None]] = {
    "one-cpu": take_cpu,
    "bursts": take_bursts,
    "compiler": compile_on,
}


def words(load: str, **settings: object) -> list[str]:
    """Return the arguments of ``running`` for a load with these arguments of its function."""
    return [load, json.dumps(settings)]


if __name__ == "__main__":
    LOADS[sys.argv[1]](**json.loads(sys.argv[2]))
