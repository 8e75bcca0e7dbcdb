"""The testbed and the machine around a run: faults, programs alongside, a quiet machine, time."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ci.testbed.errors import CannotRunError
from ci.testbed.state import DEFAULT as STATE
from netproof.commands.reframe import ending_with_this_process
from netproof.errors import NetproofError

ROOT = Path(__file__).resolve().parents[2]
TESTBED = ROOT / "ci" / "testbed" / "testbed"
SITE = ROOT / "site-config" / "testbed.py"
SLOW_MPI, LIBRARY = Path(__file__).with_name("slow_mpi.c"), "libslow_mpi.so"
CODE = ("checks", "ci", "netproof", "reference-values", "site-config")
"""Folders whose contents decide how a run ends."""
CANNOT = 2
"""Exit status of the testbed, and of an evaluation, where it is not possible at all."""
LOG_LINES = 3
# The job's own script is a step too, with a word instead of a number.
AFTER_FIRST_LAUNCH = """place=$1 begin=$2
shift 2
until squeue --noheader --steps --nodelist "$place" --format %i | grep -qx '[0-9]*\\.[0-9]*'; do
    sleep 0.2
done
sleep "$begin"
exec "$@"
"""
BURST_S, PAUSE_S = 2.0, 2.0
"""Mean seconds of a burst, and of the pause before it; both are exponentially distributed."""


class TooLongError(Exception):
    """A run took too long. Not a NetproofError: measuring takes that for a silent slurmctld."""


def _ran(words: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False, **options)


class Testbed:
    """The testbed of this machine, which is left as it was found."""

    def __init__(self, log: Path) -> None:
        """Record the testbed's state. Raises CannotRunError if it has jobs or is not available."""
        self._log, self._found = log, log.with_name("topology-as-found.yaml")
        # Daemons of an earlier part of the evaluation may run with another topology.
        self._topology: Path | None = None
        os.environ["SLURM_CONF"] = str(STATE / "slurm.conf")
        with self._logged("status") as run:
            self._was_up = run.wait() != CANNOT
        if self._was_up:
            shutil.copyfile(STATE / "topology.yaml", self._found)
            queue = _ran(["squeue", "--noheader"])
            if queue.returncode == 0 and queue.stdout.strip():
                raise CannotRunError("the testbed has jobs: let them end, or cancel them")

    def up(self, topology: Path) -> None:
        """Bring it up with ``topology``. Raises NetproofError if a part fails, CannotRunError."""
        if self._topology != topology:
            self.run("down")
            self._topology = topology
        self.run("up", "--topology", str(topology))

    def rebuild(self) -> None:
        """Have it taken down before the next run."""
        self._topology = None

    def restore(self) -> None:
        """Leave it as it was found. Raises NetproofError if that fails."""
        self.run("down")
        if self._was_up:
            self.run("up", "--topology", str(self._found))

    @contextmanager
    def planted(
        self,
        places: Sequence[str],
        fault: Mapping[str, object],
        *,
        seconds: float | None = None,
        begin_s: float = 0.0,
    ) -> Iterator[None]:
        """Plant a fault at each place, and lift it at the end of the block in any case.

        ``seconds``: it is temporary, and begins ``begin_s`` after its place's first launch. Raises
        NetproofError if that fails, or if a temporary fault did not begin and end in the block.
        """
        flaps = dict[str, subprocess.Popen[bytes]]()
        try:
            with ExitStack() as stack:
                for place in places if fault else ():
                    verb = ["plant", place, *(f"{key}={value}" for key, value in fault.items())]
                    if seconds is None:
                        self.run(*verb)
                        continue
                    later = ["bash", "-c", AFTER_FIRST_LAUNCH, "plant", place, f"{begin_s:g}"]
                    flap = self._logged(*verb, "--for", f"{seconds:g}", before=later)
                    flaps[place] = stack.enter_context(flap)
                yield
                ended = {place: flap.poll() for place, flap in flaps.items()}
            for place, status in ended.items():
                why = f"testbed plant ended with {status}" if status else "the run ended before"
                if status != 0:
                    raise NetproofError(
                        f"{place}: the fault did not come and go while the run was made ({why})"
                    )
        except BaseException:
            # The testbed is rebuilt or taken down after this; report the first error.
            with suppress(NetproofError):
                if fault:
                    self.run("lift")
            raise
        if fault:
            self.run("lift")

    def run(self, *verb: str) -> None:
        """Run a verb. Raises NetproofError with the log's end, CannotRunError if not possible."""
        with self._logged(*verb) as run:
            status = run.wait()
        if status == 0:
            return
        lines = self._log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        reason = f"testbed {verb[0]} ended with {status}: {' | '.join(lines)}"
        raise CannotRunError(reason) if status == CANNOT else NetproofError(reason)

    @contextmanager
    def _logged(self, *verb: str, before: Sequence[str] = ()) -> Iterator[subprocess.Popen[bytes]]:
        """Run a verb, and end it with the block."""
        with self._log.open("a") as log:
            print(f"{now()} testbed {' '.join(verb)}", file=log, flush=True)
            words = [*before, str(TESTBED), *verb]
            process = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


def altered_site(folder: Path, alteration: str) -> dict[str, str]:
    """Write the testbed's site, altered, into ``folder``; return ReFrame's variables for it.

    ``alteration``: Python that changes ``site_configuration``, if any.
    """
    if not alteration:
        return {}
    place = folder / "site-config"
    place.mkdir(exist_ok=True)
    shutil.copyfile(SITE.with_name("settings.py"), place / "settings.py")
    begin = f"""import runpy

site_configuration = runpy.run_path({str(SITE)!r})["site_configuration"]
"""
    (place / SITE.name).write_text(begin + alteration)
    return {"RFM_CONFIG_PATH": str(place)}


def compiled_slow_mpi(folder: Path) -> Path:
    """Compile slow_mpi.c into ``folder``. Raises CannotRunError if that fails."""
    library = folder / LIBRARY
    command = ["cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC"]
    ran = _ran([*command, "-o", library, SLOW_MPI])
    if ran.returncode:
        raise CannotRunError(f"{SLOW_MPI} cannot be compiled: {ran.stderr.strip()}")
    return library


def slower(
    library: Path | str, rules: str, program: str = "", unless: tuple[str, str] | None = None
) -> dict[str, str]:
    """Return the variables by which ``library`` slows down calls, as slow_mpi.c describes them.

    ``program``: only in this one; ``unless``: a variable and the value that turns it off.
    """
    return {
        "LD_PRELOAD": str(library),
        "SLOW_MPI": rules,
        **({"SLOW_MPI_PROGRAM": program} if program else {}),
        **({"SLOW_MPI_UNLESS": "=".join(unless)} if unless else {}),
    }


# Programs that take CPUs away from a measurement, until they are killed.


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
    """Compile slow_mpi.c into ``folder`` again and again. Raises CalledProcessError if it fails."""
    command = ["gcc", "-O2", "-c", "-o", f"{folder}/compiled.o", str(SLOW_MPI)]
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
    several: dict[str, list[dict[str, Any]]] = {
        "one-cpu": [{"cpu": random.Random(seed).choice(cpus)}],
        "bursts": [{"cpu": cpu, "seed": seed, "begun": time.monotonic()} for cpu in cpus],
        "compiler": [{"folder": str(folder)}],
    }
    return several.get(load, [])


def cpu_seconds(load: Sequence[subprocess.Popen[bytes]]) -> float:
    """Return a load's CPU seconds, ended children too. Raises NetproofError if it ended."""
    ticks = 0
    for one in load:
        if one.poll() is not None:
            raise NetproofError(
                f"the program alongside the run ended by itself, with status {one.returncode}"
            )
        # proc(5): the name, in brackets, may have spaces.
        fields = Path(f"/proc/{one.pid}/stat").read_text().rpartition(") ")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def alongside(load: str, seed: int, folder: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run a load by its name, if any, with a group for each process, and kill all of it.

    It ends with this process, however that ends.
    """
    words, mute = [sys.executable, "-m", "ci.evaluation.machine", load], subprocess.DEVNULL
    own = {"start_new_session": True, "preexec_fn": ending_with_this_process()}
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for settings in settings_of(load, seed, folder):
            given = [*words, json.dumps(settings)]
            one = subprocess.Popen(given, cwd=ROOT, stdin=mute, stdout=mute, **own)
            processes.append(one)
        yield processes
    finally:
        for one in processes:
            # Without any process that is left, also of one that ended, there is no group.
            with suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()


# The machine.


def busy_share(seconds: float) -> float:
    """Return the share of all CPUs used over ``seconds``; steal counts as used (proc(5))."""

    def ticks() -> list[int]:
        # The fields user and nice include guests.
        return [*map(int, Path("/proc/stat").read_text().split(maxsplit=9)[1:9])]

    before = ticks()
    time.sleep(seconds)
    passed = [later - one for one, later in zip(before, ticks(), strict=True)]
    return 1 - (passed[3] + passed[4]) / max(sum(passed), 1)


def wait_until_quiet(settings: Mapping[str, Any]) -> None:
    """Wait until the machine is quiet. Raises CannotRunError if it does not become quiet."""
    begun = time.monotonic()
    while (share := busy_share(settings["quiet_seconds"])) > settings["quiet_share"]:
        waited = time.monotonic() - begun
        if waited > settings["quiet_limit"]:
            raise CannotRunError(
                f"the machine is not quiet: others use {share:.0%} of its CPUs, not at most"
                f" {settings['quiet_share']:.0%}, after {waited:.0f} s of waiting. End them and go"
                " on with --resume, or say --quiet-share"
            )


def pressure_seconds() -> float | None:
    """Return seconds since boot in which a task waited for a CPU; None if the kernel has none."""
    try:
        first = Path("/proc/pressure/cpu").read_text().partition("\n")[0]
        return int(first.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError):
        return None


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TooLongError if the block takes longer."""

    def too_long(*_: object) -> None:
        raise TooLongError(f"the run was ended after {seconds:g} s (--run-limit)")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def this_machine() -> dict[str, Any]:
    """Return the machine's facts that decide how hard the conditions are."""
    place = Path("/proc/sys/kernel/sched_autogroup_enabled")
    grouped = place.read_text().strip() == "1" if place.is_file() else None
    cpus = len(os.sched_getaffinity(0))
    return {"cpus": cpus, "kernel": platform.release(), "autogroup": grouped}


def code_digest() -> str:
    """Return a digest of the folders that decide how a run ends."""
    digest = hashlib.sha256()
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(ROOT)}\0".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]


def answered(
    command: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a netproof command in ``folder``."""
    return _ran(["netproof", *command], cwd=folder, env=environment)


def now() -> str:
    """Return the time in ISO 8601, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


if __name__ == "__main__":
    LOADS[sys.argv[1]](**json.loads(sys.argv[2]))
