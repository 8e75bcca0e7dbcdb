"""The testbed and the machine around a run: topologies, planted faults, a quiet machine, time."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import IO, Any

from ci.testbed.state import DEFAULT as STATE
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


class TooLongError(Exception):
    """A run took too long. Not a NetproofError: measuring takes that for a silent slurmctld."""


class CannotRunError(NetproofError):
    """The evaluation cannot be made, or cannot go on, on this machine."""


class Testbed:
    """The testbed of this machine, which is left as it was found."""

    def __init__(self, log: Path) -> None:
        """Record the testbed's state. Raises CannotRunError if it has jobs or is not available."""
        self._log = log
        self._found = log.with_name("topology-as-found.yaml")
        # Daemons of an earlier part of the evaluation may run with another topology.
        self._topology: Path | None = None
        os.environ["SLURM_CONF"] = str(STATE / "slurm.conf")
        self._was_up = self._command("status") != CANNOT
        if self._was_up:
            shutil.copyfile(STATE / "topology.yaml", self._found)
            queue = subprocess.run(
                ["squeue", "--noheader"], capture_output=True, text=True, check=False
            )
            if queue.returncode == 0 and queue.stdout.strip():
                raise CannotRunError("the testbed has jobs: let them end, or cancel them")

    def up(self, topology: Path) -> None:
        """Bring it up with ``topology``. Raises NetproofError if a part fails, CannotRunError."""
        if self._topology != topology:
            self._checked("down")
            self._topology = topology
        self._checked("up", "--topology", str(topology))

    def plant(self, place: str, fault: Mapping[str, object]) -> None:
        """Plant a fault. Raises NetproofError if the kernel does not take it, CannotRunError."""
        self._checked("plant", place, *(f"{key}={value}" for key, value in fault.items()))

    def plant_for(
        self, place: str, fault: Mapping[str, object], seconds: float, begin_s: float
    ) -> subprocess.Popen[bytes]:
        """Start a process that plants a fault ``begin_s`` after the place's first launch.

        It lifts it after ``seconds``, or when it is ended.
        """
        verb = ("plant", place, *(f"{key}={value}" for key, value in fault.items()))
        verb = (*verb, "--for", f"{seconds:g}")
        words = ["bash", "-c", AFTER_FIRST_LAUNCH, "plant", place, f"{begin_s:g}", TESTBED, *verb]
        with self._logged(*verb) as log:
            return subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT)

    def lift(self) -> None:
        """Remove all planted faults. Raises NetproofError if one stays."""
        self._checked("lift")

    def rebuild(self) -> None:
        """Have it taken down before the next run."""
        self._topology = None

    def restore(self) -> None:
        """Leave it as it was found. Raises NetproofError if that fails."""
        self._checked("down")
        if self._was_up:
            self._checked("up", "--topology", str(self._found))

    def _checked(self, *verb: str) -> None:
        status = self._command(*verb)
        if status == 0:
            return
        lines = self._log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        reason = f"testbed {verb[0]} ended with {status}: {' | '.join(lines)}"
        raise CannotRunError(reason) if status == CANNOT else NetproofError(reason)

    def _command(self, *verb: str) -> int:
        with self._logged(*verb) as log:
            return subprocess.run(
                [TESTBED, *verb], stdout=log, stderr=subprocess.STDOUT, check=False
            ).returncode

    @contextmanager
    def _logged(self, *verb: str) -> Iterator[IO[str]]:
        with self._log.open("a") as log:
            print(f"{now()} testbed {' '.join(verb)}", file=log, flush=True)
            yield log


@contextmanager
def planted(
    testbed: Testbed,
    places: tuple[str, ...],
    fault: Mapping[str, object],
    *,
    seconds: float | None = None,
    begin_s: float = 0.0,
) -> Iterator[None]:
    """Plant a fault at each place, and lift it at the end of the block in any case.

    ``seconds``: it is temporary, and begins ``begin_s`` after its place's first launch. Raises
    NetproofError if that fails, or if a temporary fault did not begin and end in the block.
    """
    if not fault:
        yield
        return
    try:
        if seconds is None:
            for place in places:
                testbed.plant(place, fault)
            yield
        else:
            (place,) = places
            with _for_a_while(testbed, place, fault, seconds, begin_s):
                yield
    except BaseException:
        # The testbed is rebuilt or taken down after this; report the first error.
        with suppress(NetproofError):
            testbed.lift()
        raise
    testbed.lift()


@contextmanager
def _for_a_while(
    testbed: Testbed, place: str, fault: Mapping[str, object], seconds: float, begin_s: float
) -> Iterator[None]:
    process = testbed.plant_for(place, fault, seconds, begin_s)
    try:
        yield
    finally:
        ended = process.poll()
        process.terminate()
        process.wait()
    if ended != 0:
        raise NetproofError(
            f"{place}: the fault did not come and go while the run was made"
            f" ({f'testbed plant ended with {ended}' if ended else 'the run ended before'})"
        )


def altered_site(folder: Path, alteration: str) -> dict[str, str]:
    """Write the testbed's site, altered, into ``folder``; return ReFrame's variables for it.

    ``alteration``: Python that changes ``site_configuration``.
    """
    place = folder / "site-config"
    place.mkdir(exist_ok=True)
    (place / "settings.py").write_text(SITE.with_name("settings.py").read_text())
    begin = f"""import runpy

site_configuration = runpy.run_path({str(SITE)!r})["site_configuration"]
"""
    (place / SITE.name).write_text(begin + alteration)
    return {"RFM_CONFIG_PATH": str(place)}


def with_variables(environment: str, variables: Mapping[str, str]) -> str:
    """Return an alteration that gives an environment further variables, if there are any."""
    if not variables:
        return ""
    return (
        'for one in site_configuration["environments"]:\n'
        f'    if one["name"] == {environment!r}:\n'
        f'        one["env_vars"] = [*one.get("env_vars", []),'
        f" *{[list(one) for one in variables.items()]!r}]\n"
    )


def compiled_slow_mpi(folder: Path) -> Path:
    """Compile slow_mpi.c into ``folder``. Raises CannotRunError if that fails."""
    library = folder / LIBRARY
    command = ["cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC"]
    try:
        ran = subprocess.run(
            [*command, "-o", library, SLOW_MPI], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise CannotRunError(f"cc: {error.strerror}; apt-get install gcc libc6-dev") from error
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


def busy_share(seconds: float, place: Path = Path("/proc/stat")) -> float:
    """Return the share of all CPUs used over ``seconds``; steal counts as used (proc(5))."""
    idle, total = _ticks(place)
    time.sleep(seconds)
    later_idle, later_total = _ticks(place)
    if later_total <= total:
        raise CannotRunError(f"{place}: the CPUs' time stands still; measure for longer")
    return 1 - (later_idle - idle) / (later_total - total)


def _ticks(place: Path) -> tuple[int, int]:
    fields = place.read_text().splitlines()[0].split()
    # The fields user and nice include guests.
    ticks = [int(field) for field in fields[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


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
        line = Path("/proc/pressure/cpu").read_text().splitlines()[0]
        return int(line.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return None


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TooLongError if the block takes longer."""

    def too_long(_signal: int, _frame: FrameType | None) -> None:
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
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "autogroup": grouped,
    }


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
    return subprocess.run(
        ["netproof", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def now() -> str:
    """Return the time in ISO 8601, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
