"""What campaigns on the testbed have in common: each makes runs, one after the other, and counts.

A campaign is a folder. Its settings and all its runs are written down when it begins, and each run
has a folder with its result, so that it goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import dataclasses
import fcntl
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import IO, Any, Protocol, TypeVar

from scipy.stats import binomtest

from ci.testbed.state import DEFAULT as STATE
from netproof.errors import NetproofError

ROOT = Path(__file__).resolve().parents[1]
TESTBED = ROOT / "ci" / "testbed" / "testbed"
CODE = ("checks", "ci", "netproof", "reference-values", "site-config")
"""Folders whose contents decide how a run ends."""

MET, MISSED, CANNOT = 0, 1, 2
"""Exit statuses: all aims met, one missed, it could not be done."""

FORMAT = 1
CAMPAIGN_FILE, RESULT_FILE = "campaign.json", "result.json"
CONFIDENCE = 0.95
LOG_LINES = 3

PRESSURE = Path("/proc/pressure/cpu")


class Ended(BaseException):
    """Told to end by a signal; no handler of errors may take it for one."""


class TooLongError(Exception):
    """A run took too long; no NetproofError, which measuring takes for a silent slurmctld."""


class CannotRunError(NetproofError):
    """The campaign cannot be made, or cannot go on, on this machine."""


class Settings(Protocol):
    """What the settings of all campaigns have.

    ``quiet_share``: the most that others may use of all CPUs over ``quiet_s`` seconds before a run
    begins, for which it waits ``quiet_limit_s``; ``run_limit_s``: after which a run is ended.
    """

    quiet_share: float
    quiet_s: float
    quiet_limit_s: float
    run_limit_s: float


class Run(Protocol):
    """A run that is planned: it has a folder in the campaign's."""

    @property
    def folder(self) -> str:
        """Name of that folder."""


class Result(Protocol):
    """A dataclass that says what became of a run."""

    run: Run


class Campaign(Protocol):
    """A dataclass: settings, runs in their order, digest of the code, and the machine."""

    settings: Any
    runs: tuple[Any, ...]
    code: str
    machine: Mapping[str, Any]


OneCampaign = TypeVar("OneCampaign", bound=Campaign)
OneRun = TypeVar("OneRun", bound=Run)
OneResult = TypeVar("OneResult", bound=Result)


def busy_share(seconds: float, place: Path = Path("/proc/stat")) -> float:
    """Share of all CPUs that was used over so many seconds; steal counts as used (proc(5))."""
    idle, total = _ticks(place)
    time.sleep(seconds)
    later_idle, later_total = _ticks(place)
    if later_total <= total:
        raise CannotRunError(f"{place}: the CPUs' time stands still; measure for longer")
    return 1 - (later_idle - idle) / (later_total - total)


def _ticks(place: Path) -> tuple[int, int]:
    fields = place.read_text().splitlines()[0].split()
    # What guests used is in user and nice as well.
    ticks = [int(field) for field in fields[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def wait_until_quiet(settings: Settings) -> tuple[float, float]:
    """Wait until nothing else uses the machine: seconds waited, and the share still used.

    Raises CannotRunError where it does not become so.
    """
    begun = time.monotonic()
    while True:
        share = busy_share(settings.quiet_s)
        waited = time.monotonic() - begun
        if share <= settings.quiet_share:
            return waited, share
        if waited > settings.quiet_limit_s:
            raise CannotRunError(
                f"the machine is not quiet: others use {share:.0%} of its CPUs, not at most"
                f" {settings.quiet_share:.0%}, after {waited:.0f} s of waiting. End them and go on"
                " with --resume, or say --quiet-share"
            )


def pressure_seconds() -> float | None:
    """Seconds since the kernel's start in which some task waited for a CPU; None where not told."""
    try:
        line = PRESSURE.read_text().splitlines()[0]
        return int(line.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return None


class Testbed:
    """The one testbed of this machine, which is left as it was found."""

    def __init__(self, log: Path) -> None:
        """See what is there. Raises CannotRunError where it has jobs, or cannot be had."""
        self._log = log
        self._found = log.with_name("topology-as-found.yaml")
        # Daemons of an earlier part of the campaign may run by another topology than the first.
        self._topology: Path | None = None
        os.environ["SLURM_CONF"] = str(STATE / "slurm.conf")
        self._was_up = self._command("status") != CANNOT
        if self._was_up:
            shutil.copyfile(STATE / "topology.yaml", self._found)
            asked = subprocess.run(
                ["squeue", "--noheader"], capture_output=True, text=True, check=False
            )
            if asked.returncode == 0 and asked.stdout.strip():
                raise CannotRunError("the testbed has jobs: let them end, or cancel them")

    def up(self, topology: Path) -> None:
        """Bring it up with ``topology``; NetproofError where a part fails, CannotRunError."""
        if self._topology != topology:
            self._done("down")
            self._topology = topology
        self._done("up", "--topology", str(topology))

    def plant(self, place: str, fault: Mapping[str, object]) -> None:
        """Plant a fault. NetproofError where the kernel does not get so, CannotRunError."""
        self._done("plant", place, *(f"{key}={value}" for key, value in fault.items()))

    def plant_for(
        self, place: str, fault: Mapping[str, object], seconds: float
    ) -> subprocess.Popen[bytes]:
        """A process that plants a fault, and lifts it after so many seconds or when ended."""
        verb = ("plant", place, *(f"{key}={value}" for key, value in fault.items()))
        verb = (*verb, "--for", f"{seconds:g}")
        with self._said(*verb) as log:
            return subprocess.Popen([TESTBED, *verb], stdout=log, stderr=subprocess.STDOUT)

    def lift(self) -> None:
        """Take away what is planted. NetproofError where something stays."""
        self._done("lift")

    def begin_anew(self) -> None:
        """Take it down before the next run."""
        self._topology = None

    def restore(self) -> None:
        """Leave it as it was found. NetproofError where that fails."""
        self._done("down")
        if self._was_up:
            self._done("up", "--topology", str(self._found))

    def _done(self, *verb: str) -> None:
        status = self._command(*verb)
        if status == 0:
            return
        lines = self._log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        said = f"testbed {verb[0]} ended with {status}: {' | '.join(lines)}"
        raise CannotRunError(said) if status == CANNOT else NetproofError(said)

    def _command(self, *verb: str) -> int:
        with self._said(*verb) as log:
            return subprocess.run(
                [TESTBED, *verb], stdout=log, stderr=subprocess.STDOUT, check=False
            ).returncode

    @contextmanager
    def _said(self, *verb: str) -> Iterator[IO[str]]:
        with self._log.open("a") as log:
            print(f"{now()} testbed {' '.join(verb)}", file=log, flush=True)
            yield log


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """TooLongError where what is done within takes longer."""

    def too_long(_signal: int, _frame: FrameType | None) -> None:
        raise TooLongError(f"the run was ended after {seconds:g} s (--run-limit)")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def begin(folder: Path, campaign: Campaign) -> None:
    """Write down what is to be done. Raises CannotRunError where ``folder`` has something else."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise CannotRunError(f"{folder}: is not empty; give --out another, or --resume this one")
    write(folder / CAMPAIGN_FILE, {"format": FORMAT, **dataclasses.asdict(campaign)})


def read(
    folder: Path,
    campaign_of: Callable[[Mapping[str, Any]], OneCampaign],
    result_of: Callable[[Mapping[str, Any]], OneResult],
) -> tuple[OneCampaign, list[OneResult]]:
    """A campaign, and the results of the runs that it made, in their order.

    Raises CannotRunError where the folder has none, or a file of it cannot be understood.
    """
    path = folder / CAMPAIGN_FILE
    try:
        document = json.loads(path.read_text())
        if document["format"] != FORMAT:
            raise CannotRunError(f"{path}: its format is {document['format']}, not {FORMAT}")
        campaign = campaign_of(document)
        results = []
        for run in campaign.runs:
            path = folder / run.folder / RESULT_FILE
            if path.is_file():
                result = result_of(json.loads(path.read_text()))
                if result.run != run:
                    raise CannotRunError(f"{path}: is of another run than was planned")
                results.append(result)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CannotRunError(f"{path}: cannot be read as a campaign's: {error!r}") from error
    return campaign, results


def write(path: Path, document: Mapping[str, Any]) -> None:
    """Write a file whole or not at all."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(document, indent=1) + "\n")
    new.rename(path)


def insist_on_code(folder: Path, campaign: Campaign) -> None:
    """CannotRunError where the code is no longer what the campaign was begun with."""
    if campaign.code != code_digest():
        raise CannotRunError(
            f"{folder}: was begun with other code or configuration than is here now; runs of both"
            " are no one campaign"
        )


@contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Nobody else works on the campaign; the lock's descriptor. CannotRunError where one does."""
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotRunError(f"{folder}: is being worked on by another process") from None
        yield lock.fileno()


def make_each(
    folder: Path,
    left: Sequence[OneRun],
    make: Callable[[OneRun, Path], OneResult],
    tell: Callable[[OneResult], None],
) -> None:
    """Make these runs, each in a folder of its own, and keep and ``tell`` the result of each."""
    for run in left:
        place = folder / run.folder
        # What a run left that was interrupted is no result.
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        result = make(run, place)
        write(place / RESULT_FILE, dataclasses.asdict(result))
        tell(result)


def code_digest() -> str:
    """A name for what is in the folders that decide how a run ends."""
    digest = hashlib.sha256()
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(ROOT)}\0".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]


def this_machine() -> dict[str, Any]:
    """What of the machine decides how hard the conditions are."""
    place = Path("/proc/sys/kernel/sched_autogroup_enabled")
    grouped = place.read_text().strip() == "1" if place.is_file() else None
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "autogroup": grouped,
    }


def upper_limit(wrong: int, runs: int) -> float:
    """The largest rate that ``wrong`` of ``runs`` allows, one-sided (Clopper and Pearson 1934)."""
    return binomtest(wrong, runs, alternative="less").proportion_ci(CONFIDENCE, "exact").high


def row(cells: Sequence[str]) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def now() -> str:
    """This moment in ISO 8601, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def add_where(parser: argparse.ArgumentParser) -> None:
    """The three things that can be done with a campaign, of which one has to be asked for."""
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--out", type=Path, metavar="FOLDER", help="begin a campaign in a new folder"
    )
    where.add_argument("--resume", type=Path, metavar="FOLDER", help="go on with one")
    where.add_argument("--table", type=Path, metavar="FOLDER", help="print what it found so far")


def add_limits(group: Any, *more: tuple[str, float, str]) -> None:
    """Settings that are seconds or shares: ``more``, each as name, default, help; and Settings."""
    for name, default, what in (
        *more,
        ("quiet-share", 0.05, "share of the CPUs that others may use before a run"),
        ("quiet-seconds", 5.0, "seconds over which that is measured"),
        ("quiet-limit", 600.0, "seconds to wait for it"),
        ("run-limit", 3600.0, "seconds after which a run is ended"),
    ):
        group.add_argument(
            f"--{name}",
            type=number(float, 0.01),
            default=default,
            metavar="N",
            help=f"{what} (default: %(default)g)",
        )


def number(kind: type, least: float) -> Any:
    """What reads a number of that kind, ``least`` or more, on a command line."""

    def read_number(text: str) -> Any:
        value = kind(text)
        if not least <= value < float("inf"):
            raise argparse.ArgumentTypeError(f"{text} is not {least:g} or more")
        return value

    return read_number


def options_of(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """What was asked for; a campaign that stands has its settings, and is given none."""
    options = parser.parse_args(arguments)
    if not options.out:
        defaults = vars(parser.parse_args(["--out", "."]))
        given = [name for name, value in vars(options).items() if value != defaults[name]]
        other = [name for name in given if name not in ("out", "resume", "table")]
        if other:
            parser.error(f"--{other[0].replace('_', '-')} goes with --out")
    return options


def _end_once(number: int, _frame: FrameType | None) -> None:
    """Ends what is being done; what takes it down is not interrupted."""
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Not SIG_IGN, which the testbed's daemons would inherit.
        signal.signal(one, lambda *_: None)
    raise Ended(signal.Signals(number).name)


def carry_out(
    program: str,
    options: argparse.Namespace,
    begin_in: Callable[[Path], None],
    go_on: Callable[[Path], Any],
    found: Callable[[Path], tuple[str, bool]],
) -> int:
    """Do what ``options`` ask for: MET, MISSED or CANNOT.

    ``found``: the table of the campaign in a folder, and whether its aims are met.
    """
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Whoever starts it by nohup means it to go on.
        if signal.getsignal(one) is not signal.SIG_IGN:
            signal.signal(one, _end_once)
    folder = (options.out or options.resume or options.table).resolve()
    try:
        if options.out:
            begin_in(folder)
        if not options.table:
            go_on(folder)
        text, met = found(folder)
    except (NetproofError, OSError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return CANNOT
    except Ended as ended:
        print(f"{program}: ended by {ended}; go on with --resume {folder}", file=sys.stderr)
        return CANNOT
    print(text)
    return MET if met else MISSED
