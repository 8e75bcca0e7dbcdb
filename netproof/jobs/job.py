"""A job from within: its nodes, its ports, and its launches, each watched until it has ended."""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
import resource
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType

from netproof.benchmarks import registry
from netproof.benchmarks.fixed import of_program
from netproof.errors import NetproofError
from netproof.intake import disk
from netproof.session import job_files, node_facts, plan, provenance
from netproof.session.job_files import JobReport
from netproof.session.plan import JobPlan, Step

KILL_AFTER_S = 5
"""Seconds that a step has to end after SIGTERM."""

AWAKE_S = 2
"""Seconds after which a wait is taken up again."""

STEPS_END_S = 10
"""Seconds in which steps that were killed have to be gone from Slurm's list."""

SLURM_ANSWERS_S = 30

MORE_PORTS = 10
"""Ports that a node is asked for once those of the planned launches are used."""

NOT_LAUNCHED = 69
"""As sysexits.h has it: not available."""

TIMED_OUT, KILLED, ENDED, NO_PROGRAM = 124, 137, 143, 127
"""Statuses as ``timeout`` and shells have them."""

_NODE = (sys.executable, "-IS", "./node.py")

_FIGURES = {kind: re.compile(registry.figures(kind), re.M) for kind in ("np", "out")}

_NO_ANSWER = re.compile(r"^nptcp\.sh: .* had no answer from", re.M)

_REFUSED = re.compile(
    r"^srun: error: (?:Unable to create step for job.*(?:completing or completed|Invalid job id).*"
    r"|.*Job/step already completing or completed.*)$",
    re.M,
)
"""srun's words where Slurm is ending the job, which the job itself hears some seconds later."""

_LISTENING = re.compile(r"^listening ([0-9.]+)((?: [0-9]+)+)$", re.M)

_INPUTS, _NODE_LIST, _STATES = "inputs.txt", "nodelist.txt", "nodes.txt"
"""Files that the job's folder had before its first try; nodes of a try; their states in Slurm."""


class JobEnded(BaseException):
    """Slurm or a person ends the job."""

    def __init__(self, why: str = "the job was ended from outside") -> None:
        super().__init__(why)


class RunningJob:
    """The launches of a job in ``folder``, as its plan asks.

    ``dry``: print commands instead; ``within``: the job that this one is a part of; ``closed``:
    labels of steps that are launched no more; ``faults``: why something was not decided; ``hung``:
    names of launches without a figure.
    """

    def __init__(
        self,
        folder: Path,
        planned: JobPlan,
        *,
        dry: bool = False,
        within: RunningJob | None = None,
    ) -> None:
        self.folder, self.plan, self.dry, self.within = folder, planned, dry, within
        self.partition = planned.partition
        self.jobid = os.environ.get("SLURM_JOB_ID", "")
        self.nodes: tuple[str, ...] = ()
        self.closed: set[str] = set()
        self.faults: list[str] = []
        self.hung: dict[str, str] = {}
        self._address = ""
        self._ports: list[str] = []
        self._began, self._in_steps_s = time.time(), 0.0
        self._figures_seen = False
        self._hopeless: set[str] = set()
        self._running: list[tuple[subprocess.Popen[bytes], str, float, int]] = []
        self._beside: list[subprocess.Popen[bytes]] = []
        # For counters.sh.
        self._own: dict[str, str] = {
            "netproof_folder": within._own["netproof_folder"] if within else str(folder),
            "netproof_rails": " ".join(self.partition.rails_or_interface()),
            "netproof_driver_counters": str(int(self.partition.driver_counters)),
        }

    @contextmanager
    def running(self) -> Iterator[None]:
        """Begin the job; at any end of it, end all steps and leave its report; NetproofError."""
        if self.dry:
            self.nodes = (plan.FIRST, plan.SECOND)
            yield
            return
        if not self.jobid:
            raise NetproofError("SLURM_JOB_ID is not set: run it within a job, or with --dry-run")
        why = ""
        before = None if self.within else signal.signal(signal.SIGTERM, _end)
        try:
            if not self.within:
                self._set_aside()
            (self.folder / job_files.LAUNCHES_FILE).write_text(f"{job_files.LAUNCHES_HEADER}\n")
            self._note_nodes()
            yield
        except BaseException as error:
            why = str(error) or repr(error)
            raise
        finally:
            self._note_running()
            # Slurm kills this program some seconds after it ends the job.
            self.report(why)
            if self.within:
                self.within._beside += self._beside
            else:
                self.end_all()
                print(self.report(why), flush=True)
                signal.signal(signal.SIGTERM, before)

    def report(self, why: str = "") -> str:
        """Write ``JOB_FILE``, with ``why`` it ended early; return what the program itself took."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        spent = (time.time() - self._began, self._in_steps_s, used.ru_utime + used.ru_stime)
        wall_s, in_steps_s, cpu_s = (round(seconds, 3) for seconds in spent)
        python, closed = f"{sys.executable} {sys.version.split()[0]}", tuple(sorted(self.closed))
        report = JobReport(python, wall_s, in_steps_s, cpu_s, closed, tuple(self.faults), why)
        report.write(self.folder)
        return (
            f"netproof.jobs: {report.wall_s:.1f} s, of which {report.in_steps_s:.1f} s in steps;"
            f" it took {report.cpu_s:.1f} s of a CPU itself"
        )

    def _set_aside(self) -> None:
        """Move the files of an earlier try of this job, which Slurm requeued, into try-N.

        There it records the name, state in Slurm, and Slurm's reason of that try's nodes, a line
        each. So it does in the folder of each part of the job, before any of them begins.
        """
        parts = (path.parent for path in self.folder.glob(f"*/{plan.PLAN_FILE}"))
        for folder in (*parts, self.folder):
            inputs, listed = folder / _INPUTS, folder / _NODE_LIST
            if inputs.exists():
                aside = folder / f"try-{os.environ.get('SLURM_RESTART_COUNT', '0')}"
                aside.mkdir(exist_ok=True)
                stay = {_INPUTS, *inputs.read_text().splitlines()}
                for path in [*folder.iterdir()]:
                    if not path.is_dir() and path.name not in stay:
                        shutil.move(path, aside / path.name)
                if (aside / _NODE_LIST).exists():
                    of_nodes = f"--nodes={(aside / _NODE_LIST).read_text().strip()}"
                    asked = ["sinfo", "--noheader", "--Node", of_nodes, "--format=%N|%T|%E"]
                    states = sorted({*self._ask(asked, "the nodes' states").splitlines()})
                    (aside / _STATES).write_text("".join(f"{line}\n" for line in states))
            else:
                names = sorted(path.name for path in folder.iterdir())
                disk.replace(inputs, "".join(f"{name}\n" for name in names))
            listed.write_text(f"{os.environ['SLURM_JOB_NODELIST']}\n")

    def _note_nodes(self) -> None:
        """Note the job's own nodes, by Slurm's names."""
        command = ["scontrol", "show", "hostnames", os.environ["SLURM_JOB_NODELIST"]]
        self.nodes = self.within.nodes if self.within else ()
        self.nodes = self.nodes or tuple(self._ask(command, "the job's nodes").splitlines())
        count = os.environ.get("SLURM_JOB_NUM_NODES", str(len(self.nodes)))
        if not self.nodes:
            raise NetproofError("Slurm lists no nodes of the job")
        if str(len(set(self.nodes))) != count:
            listed = ", ".join(self.nodes)
            raise NetproofError(f"Slurm gave {count} nodes, and those listed are {listed}")
        text = json.dumps({self.jobid: self.nodes})
        (self.folder / node_facts.JOB_NODES_FILE).write_text(text + "\n")

    def _ask(self, command: Sequence[str], what: str) -> str:
        """Return what a command of Slurm's prints; empty, with a fault, if it fails."""
        try:
            ran = subprocess.run(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=SLURM_ANSWERS_S, check=True,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            self.faults.append(f"{what} are not known: {error}")
            return ""
        return ran.stdout

    def _words(self, step: Step) -> list[str]:
        """Return the arguments of a step with the job's nodes, address and port."""
        known = dict(zip((plan.FIRST, plan.SECOND), self.nodes, strict=False))
        if not self.dry and plan.PORT in step.command:
            known |= {plan.PORT: self._port(), plan.ADDRESS: self._address}
        words = []
        for word in step.command:
            for placeholder, value in known.items():
                word = word.replace(placeholder, value)
            words.append(word)
        return self._in_environment(words)

    def _in_environment(self, words: Sequence[str]) -> list[str]:
        """Return a command that runs ``words`` in the plan's environment."""
        if not self.plan.setup:
            return [*words]
        setup = str(self.folder / self.plan.setup)
        return ["bash", "-c", '. "$0" >&2 && exec "$@"', setup, *words]

    def _port(self) -> str:
        """Return a free port of the first node, which is asked; NetproofError if it says none."""
        if not self._ports:
            steps = [one for one in itertools.chain(*self.plan.rounds) if plan.PORT in one.command]
            count, node = MORE_PORTS if self._address else len(steps), self.nodes[0]
            placed = ["--nodes=1", "--ntasks=1", "--ntasks-per-node=1"]
            command = ["srun", "--mpi=none", f"--nodelist={node}", *placed, *plan.NPTCP]
            asked = [*command, "listen-on", self.partition.interface, str(count)]
            printed = self._ask(asked, "the first node's ports")
            if not (found := _LISTENING.search(printed)):
                said = printed or self.faults[-1]
                raise NetproofError(f"{node} printed no address to listen on: {said}")
            self._address, self._ports = found[1], found[2].split()
        return self._ports.pop(0)

    def everywhere(self, *command: str, kind: str) -> subprocess.Popen[bytes] | None:
        """Start a command on every node, into files of its own ``kind``; None in a dry run."""
        count = len(self.nodes)
        placed = [f"--nodes={count}", f"--ntasks={count}", "--ntasks-per-node=1"]
        output = [f"--output={kind}.%N.txt", f"--error={kind}.%N.err"]
        return self.aside(["srun", "--mpi=none", *placed, *output, *command])

    def aside(self, words: Sequence[str], name: str = "") -> subprocess.Popen[bytes] | None:
        """Start what is no launch, into files of ``name`` if it has one; None in a dry run."""
        words = self._in_environment(words)
        if self.dry:
            print(shlex.join(words))
            return None
        # Before Slurm 20.11 steps share nodes without it.
        return self._start(words, name or None, SLURM_OVERLAP="1")

    def wait(self, *started: subprocess.Popen[bytes] | None) -> None:
        """Wait for what is no launch, whatever comes of it, and end what goes on."""
        for process in filter(None, started):
            if not ended_within(process, node_facts.NODE_STEP_LIMIT_S):
                end_group(process)
                self.end_steps()

    def describe(self, *others: RunningJob) -> None:
        """Have every node describe itself and test the paths; readers report what is missing.

        Meanwhile libraries say what they use. ``others``: the job's other environments, on the same
        nodes and so with the same paths.
        """
        several, began = (self, *others), time.time()
        asked = ("node", self.partition.interface, *registry.PROGRAMS)
        nodes = [one.everywhere(*_NODE, *asked, kind="node") for one in several]
        libraries = [
            one.aside(one.plan.transport, provenance.TRANSPORT_STEP)
            for one in several
            if one.plan.transport
        ]
        if self.dry:
            return
        self.wait(*nodes)
        # Every node has read its clock between these two moments of this node's clock.
        job_files.note(self.folder / node_facts.CLOCK_FILE, (began, time.time()))
        self.try_paths()
        self.wait(*libraries)
        shared = (node_facts.CLOCK_FILE, node_facts.RING_FILE, "path.*")
        for one, kind in itertools.product(others, shared):
            for path in self.folder.glob(kind):
                shutil.copy(path, one.folder)

    def try_paths(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        """Test the path of each node to its neighbours, and those between the nodes of pairs."""
        addresses, partners = {}, defaultdict(list)
        for node in self.nodes:
            path = self.folder / node_facts.NODE_FILES.replace("*", node)
            with suppress(NetproofError):
                facts = node_facts.facts_of(path, node_facts.NODE_HEADER)
                # On the partition's interface.
                addresses[facts.get("node", node)] = facts.get("address")
        for one, other in pairs:
            partners[one].append(other)
            partners[other].append(one)
        lines = ""
        for place, node in enumerate(self.nodes if len(self.nodes) > 1 else ()):
            others = [self.nodes[place + 1 - len(self.nodes)], self.nodes[place - 1]]
            several = [(one, addresses.get(one) or "-") for one in (*others, *partners[node])]
            lines += "\t".join([node, *itertools.chain(*several)]) + "\n"
        (self.folder / node_facts.RING_FILE).write_text(lines)
        if lines:
            self.wait(self.everywhere(*_NODE, "path", self.partition.interface, kind="path"))

    def _start(
        self, words: Sequence[str], name: str | None, step: Step | None = None, **more: str
    ) -> subprocess.Popen[bytes]:
        """Start a command in a process group of its own; its output goes to files of ``name``."""
        began: Mapping[str, str] = began_with() if self.plan.setup else os.environ
        variables = {**began, **self._own, **more}
        if step and step.hosts:
            hosts = self.folder / f"{step.name}.nodes"
            hosts.write_text("".join(f"{node}\n" for node in step.hosts))
            variables["SLURM_HOSTFILE"] = str(hosts)

        def appending(path: str, flags: int) -> int:
            # A reason why a step is ended stands between its own words.
            return os.open(path, flags | os.O_APPEND, 0o666)

        with ExitStack() as opened:
            out, err = (
                opened.enter_context(open(self.folder / f"{name}.{kind}", "wb", opener=appending))
                if name
                else None
                for kind in ("out", "err")
            )
            return subprocess.Popen(
                words, cwd=self.folder, env=variables, stdin=subprocess.DEVNULL, stdout=out,
                stderr=err, process_group=0,
            )  # fmt: skip

    def begin(self, step: Step) -> subprocess.Popen[bytes] | None:
        """Start a step that runs beside others; None for one whose program is not there."""
        words = self._words(step)
        if self.dry:
            self.show(step, words)
            return None
        try:
            process = self._start(words, step.name, step)
        except OSError as error:
            (self.folder / f"{step.name}.err").write_text(f"netproof.jobs: {error}\n")
            return None
        self._beside.append(process)
        return process

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """End what ``begin`` started, and all other steps."""
        end_group(process)
        self._beside.remove(process)
        self.end_steps()

    def show(self, step: Step, words: Sequence[str]) -> None:
        """Print the command of a step for a person to run."""
        hosts = [f"SLURM_HOSTFILE={step.name}.nodes"] if step.hosts else []
        print(f"{step.name}:", shlex.join([*hosts, *words]))

    def launch(self, step: Step) -> int:
        """Make one launch and return its status.

        One that crashes is launched again, up to the partition's ``crash_retries`` times; the
        files and records of crashes have ~1, ~2, … behind its name.
        """
        if self.dry:
            self.show(step, self._words(step))
            return 0
        limit_s, retries = step.limit_s or self.partition.step_limit_s, self.partition.crash_retries
        reason = self._in_vain(step)
        if reason:
            (self.folder / f"{step.name}.err").write_text(f"netproof.jobs: {reason}\n")
            self._note(step.name, time.time(), NOT_LAUNCHED, limit_s)
            return NOT_LAUNCHED
        for attempt in itertools.count(1):
            began = time.time()
            status = self._attempt(step, limit_s, began)
            took_s = time.time() - began
            figures = self.has_figures(step.name)
            self._figures_seen = self._figures_seen or figures
            name = step.name
            if (
                step.subject not in self.hung
                and retries
                and not figures
                and status not in (0, 126, NO_PROGRAM)
                and not (status in (TIMED_OUT, KILLED) and took_s >= limit_s)
            ):
                if attempt > retries:
                    self._hopeless.add(step.subject)
                elif step.subject not in self._hopeless:
                    name = f"{step.name}~{attempt}"
            self._note(name, began, status, limit_s)
            if status:
                self.end_steps()
            if name == step.name:
                return status
            for kind in ("out", "err", "np"):
                path = self.folder / f"{step.name}.{kind}"
                if path.exists():
                    path.rename(self.folder / f"{name}.{kind}")
        raise AssertionError("the count has no end")

    def share(self, step: Step, other: RunningJob, made: Step) -> None:
        """Take the files and the record of a step of another part as those of a step here."""
        for path in other.folder.glob(f"{made.name}.*"):
            shutil.copy(path, self.folder / f"{step.name}{path.suffix}")
        record = (other.folder / job_files.LAUNCHES_FILE).read_text().splitlines()
        line = next(one for one in reversed(record) if one.startswith(f"{made.name}\t"))
        with (self.folder / job_files.LAUNCHES_FILE).open("a") as own:
            print(line.replace(made.name, step.name, 1), file=own)

    def _attempt(self, step: Step, limit_s: int, began: float) -> int:
        """Make one attempt at a launch and return its status; note one that waits in vain.

        Raise JobEnded if Slurm refuses it since the job has ended.
        """
        errors = self.folder / f"{step.name}.err"
        try:
            process = self._start(self._words(step), step.name, step)
        except OSError as error:
            errors.write_text(f"netproof.jobs: {error}\n")
            return NO_PROGRAM
        running = (process, step.name, began, limit_s)
        self._running.append(running)
        first_s = self.partition.first_figure_s if self.plan.figures_at_once else 0
        waits = 0 < first_s < limit_s and not ended_within(process, first_s)
        if waits and not self.has_figures(step.name):
            why = f"no figure in {first_s} s (the partition's first_figure_s) and was ended"
            with errors.open("a") as text:
                print(f"netproof.jobs: {step.name} had {why}", file=text)
            self.hung[step.subject] = step.name
            end_group(process)
            status, limited = _status(process) or TIMED_OUT, True
        else:
            limited = not ended_within(process, limit_s - first_s if waits else limit_s)
            status = end_group(process) if limited else _status(process)
        self._running.remove(running)
        said = errors.read_text(errors="replace")
        # srun says the same of a step that was still pending when its limit ended it.
        if status and not limited and (refused := _REFUSED.search(said)):
            raise JobEnded(f"Slurm had ended the job before {step.name}: {refused[0]}")
        if _NO_ANSWER.search(said):
            self.hung[step.subject] = step.name
        return status

    def _in_vain(self, step: Step) -> str:
        """Return why a step is not launched; empty if it is."""
        why = ""
        if step.subject in self.hung:
            why = f"{self.hung[step.subject]} had no figure"
        elif not self._figures_seen and len(self.hung) >= 2:
            why = f"no launch before it had a figure: see {' '.join(self.hung.values())}"
        return why and f"{step.name} was not launched, since {why}"

    def has_figures(self, name: str) -> bool:
        """Check whether a launch has printed its first row."""
        return any(self.rows(name, kind) for kind in _FIGURES)

    def rows(self, name: str, kind: str = "out") -> int:
        """Return how many rows of figures a step has printed."""
        try:
            printed, _ = of_program((self.folder / f"{name}.{kind}").read_text(errors="replace"))
        except OSError:
            return 0
        return sum(1 for _ in _FIGURES[kind].finditer(printed))

    def _note(self, name: str, began: float, status: int, limit_s: int) -> None:
        """Append a launch to the job's record."""
        ended = time.time() if status != NOT_LAUNCHED else began
        self._in_steps_s += ended - began
        if self.within:
            self.within._in_steps_s += ended - began
        with (self.folder / job_files.LAUNCHES_FILE).open("a") as record:
            print(name, f"{began:.6f}", f"{ended:.6f}", status, limit_s, sep="\t", file=record)

    def end_steps(self) -> None:
        """End every step of the job, and wait until Slurm has none: the next one would wait.

        srun may be gone while its tasks are not. A step that stays is a fault.
        """
        until = time.monotonic() + STEPS_END_S
        asked = ["squeue", "--noheader", "--steps", f"--jobs={self.jobid}", "--format=%i"]
        own = (".batch", ".extern", ".interactive")
        while steps := [one for one in self._ask(asked, "steps").split() if not one.endswith(own)]:
            for step in steps:
                self._ask(["scancel", "--signal=KILL", step], "ended steps")
            if time.monotonic() >= until:
                self.faults.append(f"steps had not ended after {STEPS_END_S} s: {', '.join(steps)}")
                return
            time.sleep(0.1)

    def end_all(self) -> None:
        """Note what runs as far as it came, and end it."""
        self._note_running()
        while self._beside:
            end_group(self._beside.pop())
        self.end_steps()

    def _note_running(self) -> None:
        while self._running:
            process, name, began, limit_s = self._running.pop()
            ended = process.poll() is not None
            self._note(name, began, _status(process) if ended else ENDED, limit_s)
            self._beside.append(process)


def run(job: RunningJob) -> None:
    """Launch all steps of the job's plan in their order."""
    for step in itertools.chain(*job.plan.rounds):
        job.launch(step)


def _end(_signal: int, _frame: FrameType | None) -> None:
    # Once is enough; srun would inherit that it is ignored.
    signal.signal(signal.SIGTERM, lambda *_: None)
    raise JobEnded


@functools.cache
def began_with() -> dict[str, str]:
    """Return the variables before the job's script set up an environment, and Slurm's."""
    path = Path("/proc", str(os.getppid()), "environ")
    try:
        entries = path.read_bytes().decode(errors="surrogateescape").split("\0")
    except OSError as error:
        raise NetproofError(f"{path}: the environment that the job began with: {error}") from None
    began = dict(entry.split("=", 1) for entry in entries if "=" in entry)
    now = {key: one for key, one in os.environ.items() if key.startswith("SLURM")}
    return {**began, **now}


def ended_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait until a process has ended, asleep, or until so many seconds are over.

    Seconds for which Slurm suspends the job do not count: each wait is short.
    """
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        # Linux before 5.3: subprocess looks every 50 ms.
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, seconds))
        return process.returncode is not None
    try:
        waits = select.poll()
        waits.register(descriptor, select.POLLIN)
        while not waits.poll(1000 * max(0.0, min(seconds, AWAKE_S))) and seconds > AWAKE_S:
            seconds -= AWAKE_S
    finally:
        os.close(descriptor)
    return process.poll() is not None


def _status(process: subprocess.Popen[bytes]) -> int:
    """Return the status of a process that has ended, as shells have it."""
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def end_group(process: subprocess.Popen[bytes]) -> int:
    """End a process and all of its group, and return the status that ``timeout`` has then."""
    for kind, status in ((signal.SIGTERM, TIMED_OUT), (signal.SIGKILL, KILLED)):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, kind)
        if ended_within(process, KILL_AFTER_S):
            return status
    return KILLED
