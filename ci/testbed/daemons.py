"""The testbed's processes: munged, mariadbd, slurmdbd, slurmctld, and a slurmd for each node.

Each comes up by itself, is ready once it answers, and is left alone while it is up.
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
"""Slurm's own reasons after a killed slurmctld has sent a job to its node a second time."""
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
"""Makes a node from fresh namespaces, by its name, the hosts file and a mount point.

Its own sysfs shows the node's interfaces, which UCX looks up there, and not the machine's; slurmd
needs the machine's control groups in it.
"""
SETUP_ROLE = "mariadbd-setup"
SYSTEM_TABLES = tuple(
    Path("/usr/share") / name / f"{name}_system_tables.sql" for name in ("mariadb", "mysql")
)
"""Scripts for a database's own tables: MariaDB 11's file name, and the older one."""


def environment(state: StateFolder) -> dict[str, str]:
    """Return the variables of the testbed's programs, without the caller's."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C.UTF-8",
        "SLURM_CONF": str(state / "slurm.conf"),
        "MYSQL_UNIX_PORT": str(state / "database/socket"),
    }


class Daemons:
    """The processes of the testbed in ``state`` with this ``topology``."""

    def __init__(self, state: StateFolder, topology: Topology) -> None:
        """Start nothing yet."""
        self.state, self.topology = state, topology
        self._started_nodes: dict[str, subprocess.Popen[bytes]] = {}
        self._given: set[int] = set()

    def alive(self, role: str) -> int | None:
        """Return the process number of the daemon of ``role``; None without one."""
        found = processes.daemon(processes.running(), self.state.path, role)
        return found.pid if found else None

    def missing(self) -> list[str]:
        """Return the roles without a daemon."""
        own, running = self.state.path, processes.running()
        return [one for one in roles(self.topology) if not processes.daemon(running, own, one)]

    def start_munged(self) -> bool:
        """Start munged under its own user with the testbed's key; return False if it was up."""
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
        """Start mariadbd, and make its data directory if needed; return False if it was up."""
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
            # A crash loses nothing of an empty directory, so nothing is synced.
            hasty = ["--innodb-flush-method=nosync", "--innodb-doublewrite=0", "--bootstrap"]
            tables = "use mysql;\n" + system_tables().read_text(encoding="utf-8")
            # slurmdbd cannot make its database with MariaDB 11.8.9: a client's handle that asked
            # for a missing database takes no row from then on.
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
        # The socket is in a folder that only root may enter: accounts would protect nothing.
        settings += ["--skip-grant-tables", f"--datadir={data}", f"--socket={where}"]
        # The kernel has each finished transaction: SIGKILL loses none.
        settings += ["--innodb-flush-log-at-trx-commit=2", f"--pid-file={folder / 'pid'}"]
        daemon = self.start("mariadbd", settings)
        self._wait("mariadbd", daemon, lambda: _answers(where))
        return True

    def start_accounting(self) -> bool:
        """Start slurmdbd; munged and mariadbd have to be up."""
        where = (CONTROLLER_ADDRESS, slurm.DATABASE_PORT)
        if self._is_up("slurmdbd", lambda: _answers(where)):
            return False
        self._wait("slurmdbd", self.start("slurmdbd", ["slurmdbd", "-D"]), lambda: _answers(where))
        return True

    def start_controller(self) -> bool:
        """Start slurmctld; slurmdbd and the management network have to be up."""
        if self._is_up("slurmctld", self._controller_answers):
            return False
        (self.state / "slurmctld").mkdir(mode=0o755, exist_ok=True)
        self._given = self._numbers_given()
        daemon = self.start("slurmctld", ["slurmctld", "-D"])
        self._wait("slurmctld", daemon, self._controller_answers)
        return True

    def _numbers_given(self) -> set[int]:
        """Return the numbers of recent batch jobs of an earlier slurmctld.

        It makes a folder for each at once, but its saved state is some seconds old. Nodes remember
        the numbers of batch jobs only.
        """
        folders = (self.state / "slurmctld").glob("hash.*/job.*")
        found = (re.fullmatch(r"job\.(\d+)", one.name) for one in folders)
        return {int(one[1]) for one in found if one}

    def pass_over_lost_jobs(self) -> None:
        """Use up the numbers of jobs that a killed slurmctld has lost.

        A slurmd remembers a job until slurmctld ends it, and refuses a second job with its number
        as a duplicate, for which its node is drained. Call this when these jobs no longer run:
        Slurm ends unknown jobs, but not those that it knows as cancelled.
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
        """Start slurmd of nodes that are down, in its own namespaces; return False if none was.

        Cancel the jobs there without a step: Slurm would hold their nodes until their time limit.
        """
        nodes = {f"slurmd:{node.name}": node for node in self.topology.nodes}
        down = {role: nodes[role] for role in self.missing() if role in nodes}
        if down:
            self._clear(*down)
            names = ",".join(node.name for node in down.values())
            there = ("--states=running", f"--nodelist={names}", "--format=%A")
            steps = filter(self._is_step, processes.running())
            alive = {job_of(processes.title(one.pid)) for one in steps}
            begun = (self._client("squeue", "--noheader", *there) or "").split()
            if dead := [number for number in begun if number not in alive]:
                self._client("scancel", *dead)
        for role, node in down.items():
            home = self.state / "nodes" / node.name
            for name in ("spool", "tmp", "sys"):
                (home / name).mkdir(parents=True, exist_ok=True)
            namespace = network.NAMED_NAMESPACES / network.namespace(node.name)
            command = ["nsenter", f"--net={namespace}"]
            command += ["unshare", "--uts", "--mount", "--ipc", "sh", "-c", NODE_SETUP]
            command += ["sh", node.name, str(self.state / "hosts"), str(home / "sys")]
            command.append(node.name)
            self._started_nodes[role] = self.start(role, command, processes.go_first)
        return bool(down)

    def wait_for_nodes(self) -> None:
        """Wait until Slurm calls every node idle or in use, and no lost job runs.

        A node that Slurm itself drained is resumed; one that somebody drained is not.
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
        """Return Slurm's state of each node in lower case; empty while slurmctld is silent."""
        said = self._client("sinfo", "--noheader", "--Node", "--format=%N %T")
        return dict(line.split(None, 1) for line in (said or "").splitlines())

    def _lost_steps(self) -> list[str]:
        """Return the titles of running steps whose jobs Slurm has lost.

        A killed slurmctld comes back with the jobs of some seconds before, and ends the others once
        their nodes register.
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
        """Resume nodes that Slurm drained. Raises StepFailedError if somebody drained one."""
        said = self._client("sinfo", "--noheader", "--Node", "--format=%N|%T|%E") or ""
        nodes = (line.split("|", 2) for line in said.splitlines())
        drained = {name: why for name, state, why in nodes if "drain" in state}
        own = [name for name, why in drained.items() if why in DRAINED_BY_SLURM]
        if own:
            self._client("scontrol", "update", f"nodename={','.join(own)}", "state=resume")
        if others := [f"{name} ({why})" for name, why in drained.items() if name not in own]:
            raise StepFailedError(
                f"slurmd: somebody drained {', '.join(others)}; once it may be used again, say"
                " 'scontrol update nodename=NAME state=resume'"
            )

    def partition_states(self) -> dict[str, str]:
        """Return Slurm's state of each partition; empty while slurmctld is silent."""
        said = self._client("sinfo", "--noheader", "--format=%R %a")
        return dict(line.split(None, 1) for line in (said or "").splitlines())

    def accounting_answers(self) -> bool:
        """Return whether slurmdbd answers and knows the cluster."""
        said = self._client("sacctmgr", "--noheader", "--parsable2", "show", "cluster")
        return said is not None and said.startswith(f"{slurm.CLUSTER}|")

    def register_cluster(self) -> None:
        """Add the cluster to slurmdbd, which sacct needs to find jobs."""
        if self.accounting_answers():
            return
        self._client("sacctmgr", "--immediate", "add", "cluster", slurm.CLUSTER)
        if not self.accounting_answers():
            raise StepFailedError(
                f"slurmdbd: does not take the cluster {slurm.CLUSTER}; its log ends:"
                f" {self._log_end('slurmdbd')}"
            )

    def slurmd(self, node: Node) -> int | None:
        """Return the slurmd of ``node``, whose namespaces are the node's; None if it is dead."""
        return self.alive(f"slurmd:{node.name}")

    def _controller_answers(self) -> bool:
        return self._client("scontrol", "ping") is not None

    def _is_up(self, role: str, ready: Callable[[], bool]) -> bool:
        """Return whether a daemon of ``role`` runs; wait for one that an earlier `up` started.

        Without one, kill its remains to make room for a new one.
        """
        if self.alive(role) is None:
            self._clear(role)
            return False
        self._wait(role, None, ready)
        return True

    def _clear(self, *roles: str) -> None:
        """Kill processes with these ``roles``, but not steps, which outlive a dead slurmd."""
        processes.kill(
            ", ".join(roles),
            lambda process: (
                process.state == str(self.state.path)
                and process.role in roles
                and process.command != STEP
            ),
        )

    def _client(self, *command: str) -> str | None:
        """Return the output of a Slurm command; None if it fails, as before Slurm is up."""
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
        """Start ``command`` as this testbed's ``role``; ``prepare`` runs in it first."""
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
        """Return the end of a daemon's log with the file's name."""
        own = self.state / "log" / f"{role.replace(':', '-')}.log"
        written = [path for path in (own, self._log(role)) if path.is_file()]
        for path in written:
            text = path.read_text(encoding="utf-8", errors="replace").strip()
            if text:
                return f"{text[-LOG_TAIL_BYTES:]} ({path})"
        return "(empty)"


def roles(topology: Topology) -> list[str]:
    """Return every daemon's role, in the order of their dependence."""
    nodes = [f"slurmd:{node.name}" for node in topology.nodes]
    return ["munged", "mariadbd", "slurmdbd", "slurmctld", *nodes]


def system_tables() -> Path:
    """Return the first existing file of SYSTEM_TABLES. Raises CannotRunError without any."""
    for path in SYSTEM_TABLES:
        if path.is_file():
            return path
    names = " or ".join(map(str, SYSTEM_TABLES))
    raise CannotRunError(f"missing: {names}; install with 'apt-get install mariadb-server-core'")


def job_of(title: str) -> str | None:
    """Return the job number in a slurmstepd's title; None before it has one."""
    found = re.search(r"\[(\d+)", title)
    return found[1] if found else None


def usable(state: str) -> bool:
    """Return whether a node in Slurm's ``state`` is usable.

    The marks + and - mean ending or waiting jobs; all others, such as * for no answer, are faults.
    """
    return state.rstrip("+-") in {"idle", "mixed", "allocated", "completing", "planned"}


def _answers(where: Path | tuple[str, int]) -> bool:
    """Return whether a connection is accepted there."""
    family = socket.AF_INET if isinstance(where, tuple) else socket.AF_UNIX
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        tried.settimeout(5)
        try:
            tried.connect(where if isinstance(where, tuple) else str(where))
        except OSError:
            return False
    return True
