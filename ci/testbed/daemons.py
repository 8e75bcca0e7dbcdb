"""The testbed's processes: munged, mariadbd, slurmdbd, slurmctld, and a slurmd for each node.

Each comes up by itself, tells that it is ready by answering, and is left alone when it is up.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from ci.testbed import network, processes, slurm
from ci.testbed.errors import CannotRunError, StepFailedError
from ci.testbed.state import StateFolder
from ci.testbed.topology import CONTROLLER_ADDRESS, Node, Topology

READY_SECONDS = 60.0
DRAINED_BY_SLURM = ("batch job complete failure", "Duplicate jobid")
"""Slurm's own reasons, once a slurmctld that was killed has sent a job to its node again."""
STEP = "slurmstepd"
POLL_SECONDS = 0.02
LOG_TAIL_BYTES = 600
NODE_SETUP = """set -e
hostname "$4"
mount -t tmpfs tmpfs /dev/shm
mount --bind "$2" /etc/hosts
mount -t sysfs sysfs "$3"
mount --rbind /sys/fs/cgroup "$3/fs/cgroup"
mount --move "$3" /sys
exec slurmd -D -N "$1"
"""
"""Makes a node out of fresh namespaces, for its name, the hosts file and a place to mount.

A sysfs of its own shows the node's interfaces, which UCX looks up there, and not the machine's;
slurmd wants the machine's control groups in it.
"""
SETUP_ROLE = "mariadbd-setup"
SYSTEM_TABLES = tuple(
    Path("/usr/share") / name / f"{name}_system_tables.sql" for name in ("mariadb", "mysql")
)
"""What makes a database's own tables: MariaDB 11's name for the file, and its older one."""


def environment(state: StateFolder) -> dict[str, str]:
    """What the testbed's own programs run with; nothing of the caller's gets in."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C.UTF-8",
        "SLURM_CONF": str(state / "slurm.conf"),
        "MYSQL_UNIX_PORT": str(state / "database/socket"),
    }


class Daemons:
    """The processes of the testbed in ``state`` with this ``topology``."""

    def __init__(self, state: StateFolder, topology: Topology) -> None:
        """Starts nothing yet."""
        self.state, self.topology = state, topology
        self._started_nodes: dict[str, subprocess.Popen[bytes]] = {}
        self._given: set[int] = set()

    def alive(self, role: str) -> int | None:
        """The process number of the daemon of ``role``; None when there is none."""
        command = role.partition(":")[0]
        found = processes.daemon(processes.running(), self.state.path, role, command)
        return found.pid if found else None

    def missing(self) -> list[str]:
        """The roles that should have a daemon and have none."""
        running = processes.running()
        return [
            role
            for role in roles(self.topology)
            if not processes.daemon(running, self.state.path, role, role.partition(":")[0])
        ]

    def start_munged(self) -> bool:
        """Starts munged under its own user, with a key of this testbed's; False if it was up."""
        folder = self.state / "munge"
        where = folder / "socket"
        if self._is_up("munged", lambda: _answers(where)):
            return False
        folder.mkdir(mode=0o755, exist_ok=True)
        shutil.chown(folder, "munge", "munge")
        key = folder / "key"
        if not key.is_file() or key.stat().st_size < 32:
            key.unlink(missing_ok=True)
            key.touch(mode=0o400)
            key.write_bytes(os.urandom(128))
        shutil.chown(key, "munge", "munge")
        command = ["setpriv", "--reuid=munge", "--regid=munge", "--init-groups", "munged"]
        command += ["--foreground", "--force", f"--socket={where}", f"--key-file={key}"]
        command += [f"--pid-file={folder / 'pid'}", f"--seed-file={folder / 'seed'}"]
        for stale in ("socket", "pid", "socket.lock"):
            (folder / stale).unlink(missing_ok=True)
        daemon = self.start("munged", command)
        self._wait("munged", daemon, lambda: _answers(where))
        return True

    def start_database(self) -> bool:
        """Starts mariadbd, on a data directory that it makes if there is none."""
        folder = self.state / "database"
        data, where = folder / "data", folder / "socket"
        if self._is_up("mariadbd", lambda: _answers(where)):
            return False
        self._clear(SETUP_ROLE)
        folder.mkdir(mode=0o700, exist_ok=True)
        settings = ["mariadbd", "--no-defaults", "--user=root", "--skip-networking"]
        settings += ["--innodb-buffer-pool-size=64M", "--innodb-log-file-size=48M"]
        settings += ["--innodb-lock-wait-timeout=900", "--aria-log-file-size=8M"]
        settings += ["--innodb-undo-tablespaces=0"]
        if not data.is_dir():
            fresh = folder / "fresh"
            shutil.rmtree(fresh, ignore_errors=True)
            (fresh / "mysql").mkdir(parents=True)
            # An empty directory has nothing to lose in a crash, so nothing is synced in here.
            hasty = ["--innodb-flush-method=nosync", "--innodb-doublewrite=0", "--bootstrap"]
            tables = "use mysql;\n" + system_tables().read_text(encoding="utf-8")
            # slurmdbd would make its database, but with MariaDB 11.8.9 it cannot: a client's handle
            # that asked for a missing database takes no row from then on.
            tables += f"\ncreate database {slurm.DATABASE};\n"
            made = subprocess.run(
                [*settings, *hasty, f"--datadir={fresh}"],
                input=tables,
                capture_output=True,
                text=True,
                env=self._environment(SETUP_ROLE),
            )
            if made.returncode or "ERROR:" in made.stderr:
                raise StepFailedError(f"mariadbd: no new database: {made.stderr[-LOG_TAIL_BYTES:]}")
            fresh.rename(data)
        for stale in ("socket", "pid"):
            (folder / stale).unlink(missing_ok=True)
        # The socket is in a folder that only root may enter: accounts would guard nothing.
        settings += ["--skip-grant-tables", f"--datadir={data}", f"--socket={where}"]
        # A transaction is in the system's hands when it ends: SIGKILL loses none.
        settings += ["--innodb-flush-log-at-trx-commit=2", f"--pid-file={folder / 'pid'}"]
        daemon = self.start("mariadbd", settings)
        self._wait("mariadbd", daemon, lambda: _answers(where))
        return True

    def start_accounting(self) -> bool:
        """Starts slurmdbd; munged and mariadbd have to be up."""
        where = (CONTROLLER_ADDRESS, slurm.DATABASE_PORT)
        if self._is_up("slurmdbd", lambda: _answers(where)):
            return False
        self._wait("slurmdbd", self.start("slurmdbd", ["slurmdbd", "-D"]), lambda: _answers(where))
        return True

    def start_controller(self) -> bool:
        """Starts slurmctld; slurmdbd and the management network have to be up."""
        if self._is_up("slurmctld", self._controller_answers):
            return False
        (self.state / "slurmctld").mkdir(mode=0o755, exist_ok=True)
        self._given = self._numbers_given()
        daemon = self.start("slurmctld", ["slurmctld", "-D"])
        self._wait("slurmctld", daemon, self._controller_answers)
        return True

    def _numbers_given(self) -> set[int]:
        """The numbers of batch jobs that an earlier slurmctld of this testbed gave of late.

        It makes a folder for each at once; what it comes back by is some seconds old. Of jobs that
        are no batch jobs nodes remember no number.
        """
        folders = (self.state / "slurmctld").glob("hash.*/job.*")
        found = (re.fullmatch(r"job\.(\d+)", one.name) for one in folders)
        return {int(one[1]) for one in found if one}

    def pass_over_lost_jobs(self) -> None:
        """Uses up the numbers of jobs that a slurmctld that was killed has lost.

        A slurmd keeps a number that it was not told to end, and refuses a second job with it as a
        duplicate, for which its node is drained. To be called when nothing of these jobs goes on:
        Slurm ends what it does not know, and leaves what it knows as cancelled.
        """
        never = ("--hold", "--parsable", "--output=/dev/null", "--job-name=lost", "--wrap=true")
        number, last = 0, max(self._given, default=0)
        while number < last:
            said = self._client("sbatch", *never)
            if said is None or not said.strip().isdigit():
                raise StepFailedError(
                    f"slurmctld: takes no job; its log ends: {self._log_end('slurmctld')}"
                )
            number = int(said)
            self._client("scancel", str(number))

    def start_nodes(self) -> bool:
        """Starts the nodes that are down: slurmd in namespaces of its own, with a name, /dev/shm.

        False if none was down.
        """
        running = processes.running()
        down = {
            f"slurmd:{node.name}": node
            for node in self.topology.nodes
            if not processes.daemon(running, self.state.path, f"slurmd:{node.name}", "slurmd")
        }
        if down:
            self._clear(*down)
        for role, node in down.items():
            home = self.state / "nodes" / node.name
            for name in ("spool", "tmp", "sys"):
                (home / name).mkdir(parents=True, exist_ok=True)
            namespace = network.NAMED_NAMESPACES / network.namespace(node.name)
            command = ["nsenter", f"--net={namespace}"]
            command += ["unshare", "--uts", "--mount", "--ipc", "sh", "-c", NODE_SETUP]
            command += ["sh", node.name, str(self.state / "hosts"), str(home / "sys")]
            command.append(self.topology.hostname(node))
            self._started_nodes[role] = self.start(role, command, processes.go_first)
        return bool(down)

    def wait_for_nodes(self) -> None:
        """Waits until Slurm calls every node idle, or in use, and nothing runs that it has lost.

        A node that Slurm itself drained is put to use again; one that somebody drained is not.
        """
        deadline = time.monotonic() + READY_SECONDS
        while True:
            states = self.node_states()
            waiting = [name for name, state in states.items() if not usable(state)]
            lost: list[str] = []
            if not waiting and len(states) == len(self.topology.nodes):
                lost = self._lost_steps()
                if not lost:
                    return
            if any("drain" in states[name] for name in waiting):
                self._take_back()
            dead = [role for role, node in self._started_nodes.items() if node.poll() is not None]
            if dead or time.monotonic() > deadline:
                role = dead[0] if dead else f"slurmd:{waiting[0]}" if waiting else "slurmctld"
                why = [f"{name} is {states[name]}" for name in waiting]
                why += [f"{title} goes on, of a job that it does not know" for title in lost]
                raise StepFailedError(
                    f"{role}: Slurm does not get it ready ({', '.join(why) or 'no such node'});"
                    f" its log ends: {self._log_end(role)}"
                )
            time.sleep(POLL_SECONDS * 2)

    def node_states(self) -> dict[str, str]:
        """Slurm's state of each node in lower case; empty while slurmctld does not answer."""
        said = self._client("sinfo", "--noheader", "--Node", "--format=%N %T")
        return dict(line.split(None, 1) for line in (said or "").splitlines())

    def _lost_steps(self) -> list[str]:
        """What runs on the nodes of jobs that Slurm has no more, as their processes are called.

        A slurmctld that was killed comes back with the jobs of some seconds before, and ends the
        others once their nodes register.
        """
        steps = [one for one in processes.running() if self._is_step(one)]
        if not steps:
            return []
        here = ("--states=running,completing,configuring,suspended", "--format=%A")
        known = (self._client("squeue", "--noheader", *here) or "").split()
        titles = [processes.title(step.pid) for step in steps]
        return [title for title in titles if title and job_of(title) not in known]

    def _is_step(self, process: processes.Process) -> bool:
        return process.state == str(self.state.path) and process.command == STEP

    def _take_back(self) -> None:
        """Resumes the nodes that Slurm drained; StepFailedError if somebody drained one."""
        said = self._client("sinfo", "--noheader", "--Node", "--format=%N|%T|%E") or ""
        nodes = (line.split("|", 2) for line in said.splitlines())
        drained = {name: why for name, state, why in nodes if "drain" in state}
        own = [name for name, why in drained.items() if why in DRAINED_BY_SLURM]
        if own:
            self._client("scontrol", "update", f"nodename={','.join(own)}", "state=resume")
        if kept := [f"{name} ({why})" for name, why in drained.items() if name not in own]:
            raise StepFailedError(
                f"slurmd: somebody drained {', '.join(kept)}; once it may be used again, say"
                " 'scontrol update nodename=NAME state=resume'"
            )

    def partition_states(self) -> dict[str, str]:
        """Slurm's state of each partition, up or not; empty while slurmctld does not answer."""
        said = self._client("sinfo", "--noheader", "--format=%R %a")
        return dict(line.split(None, 1) for line in (said or "").splitlines())

    def accounting_answers(self) -> bool:
        """Whether slurmdbd answers, and knows the cluster."""
        said = self._client("sacctmgr", "--noheader", "--parsable2", "show", "cluster")
        return said is not None and said.startswith(f"{slurm.CLUSTER}|")

    def register_cluster(self) -> None:
        """Makes slurmdbd know the cluster, without which sacct finds no job."""
        if self.accounting_answers():
            return
        self._client("sacctmgr", "--immediate", "add", "cluster", slurm.CLUSTER)
        if not self.accounting_answers():
            raise StepFailedError(
                f"slurmdbd: does not take the cluster {slurm.CLUSTER}; its log ends:"
                f" {self._log_end('slurmdbd')}"
            )

    def slurmd(self, node: Node) -> int | None:
        """The slurmd of ``node``, whose namespaces are the node's; None when it is dead."""
        return self.alive(f"slurmd:{node.name}")

    def _controller_answers(self) -> bool:
        return self._client("scontrol", "ping") is not None

    def _is_up(self, role: str, ready: Callable[[], bool]) -> bool:
        """Whether the daemon of ``role`` was there, which an `up` cut short may just have started.

        If it was not, whatever is left of it is killed, so that a new one has its place.
        """
        if self.alive(role) is None:
            self._clear(role)
            return False
        self._wait(role, None, ready)
        return True

    def _clear(self, *roles: str) -> None:
        """Kills what has the ``roles`` and is no daemon; the steps of a dead slurmd may go on."""
        processes.kill(
            ", ".join(roles),
            lambda process: (
                process.state == str(self.state.path)
                and process.role in roles
                and process.command != STEP
            ),
        )

    def _client(self, *command: str) -> str | None:
        """What one of Slurm's commands prints; None when it fails, as before Slurm is up."""
        try:
            result = subprocess.run(
                command,
                capture_output=True,
                text=True,
                env=environment(self.state),
                timeout=READY_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return None
        return result.stdout if result.returncode == 0 else None

    def _environment(self, role: str) -> dict[str, str]:
        marks = {processes.STATE_VARIABLE: str(self.state.path), processes.ROLE_VARIABLE: role}
        return environment(self.state) | marks

    def start(
        self, role: str, command: list[str], prepare: Callable[[], None] | None = None
    ) -> subprocess.Popen[bytes]:
        """Starts ``command`` as this testbed's ``role``; ``prepare`` runs in it before."""
        with self._log(role).open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd="/",
                env=self._environment(role),
                preexec_fn=prepare,
            )

    def _wait(
        self, role: str, daemon: subprocess.Popen[bytes] | None, ready: Callable[[], bool]
    ) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not ready():
            code = daemon.poll() if daemon else None
            if code is not None:
                raise StepFailedError(
                    f"{role}: ended with {code} instead of coming up; its log ends:"
                    f" {self._log_end(role)}"
                )
            if time.monotonic() > deadline:
                raise StepFailedError(
                    f"{role}: does not answer after {READY_SECONDS:g} s; its log ends:"
                    f" {self._log_end(role)}"
                )
            time.sleep(POLL_SECONDS)

    def _log(self, role: str) -> Path:
        return self.state / "log" / f"{role.replace(':', '-')}.out"

    def _log_end(self, role: str) -> str:
        """The last words of the daemon of ``role``, and the file that they are from."""
        own = self.state / "log" / f"{role.replace(':', '-')}.log"
        written = [path for path in (own, self._log(role)) if path.is_file()]
        for path in written:
            text = path.read_text(encoding="utf-8", errors="replace").strip()
            if text:
                return f"{text[-LOG_TAIL_BYTES:]} ({path})"
        return "(empty)"


def roles(topology: Topology) -> list[str]:
    """Every daemon of the testbed, in the order in which they depend on each other."""
    nodes = [f"slurmd:{node.name}" for node in topology.nodes]
    return ["munged", "mariadbd", "slurmdbd", "slurmctld", *nodes]


def system_tables() -> Path:
    """The file of SYSTEM_TABLES that is there; raises CannotRunError without any."""
    for path in SYSTEM_TABLES:
        if path.is_file():
            return path
    names = " or ".join(map(str, SYSTEM_TABLES))
    raise CannotRunError(f"missing: {names}; install with 'apt-get install mariadb-server-core'")


def job_of(title: str) -> str | None:
    """The number of the job that a slurmstepd calls itself after; None before it does."""
    found = re.search(r"\[(\d+)", title)
    return found[1] if found else None


def usable(state: str) -> bool:
    """Whether a node in Slurm's ``state`` is well.

    The marks + and - tell of jobs that end or wait; all others, as * for no answer, complain.
    """
    return state.rstrip("+-") in {"idle", "mixed", "allocated", "completing", "planned"}


def _answers(where: Path | tuple[str, int]) -> bool:
    """Whether something accepts a connection there."""
    family = socket.AF_INET if isinstance(where, tuple) else socket.AF_UNIX
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        tried.settimeout(5)
        try:
            tried.connect(where if isinstance(where, tuple) else str(where))
        except OSError:
            return False
    return True
