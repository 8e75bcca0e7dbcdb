"""Parts that the tests of a run have in common, and the system that ReFrame runs on.

A job is pending without a limit of Slurm's; a site sets one (``wait_for_nodes_s``), by which it is
skipped, shrunk or cancelled. The jobs of a partition share this time, since later ones would wait
for the same nodes. A job that is pending for a reason that the end of other jobs does not remove is
cancelled after a minute.
"""

from __future__ import annotations

import contextlib
import functools
import math
import shlex
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import reframe as rfm
import yaml
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import ReframeError, ReframeFatalError
from reframe.core.logging import getlogger
from reframe.core.runtime import runtime
from reframe.core.systems import SystemPartition
from reframe.utility import osext

from netproof.errors import NetproofError
from netproof.intake import trust
from netproof.session import provenance, records
from netproof.session.plan import partition_of
from netproof.site import slurm
from netproof.site.partition import (
    PARTITION_KEYS,
    Partition,
    ScoreBaseline,
    pair_environments,
    score_baseline,
)
from netproof.site.slurm import fold
from netproof.verdict import references


@contextlib.contextmanager
def failing(kind: type[ReframeError] = ReframeError, what: str = "") -> Iterator[None]:
    """End a test where netproof refuses something, or a file cannot be used; ``what``: goes on."""
    try:
        yield
    except (NetproofError, OSError) as error:
        # ReFrame appends a cause's text to the error's own.
        raise kind(f"{what}{error}") from None


def rank_counts() -> list[int]:
    """Return the rank counts of all partitions; NetproofError if the system is not configured."""
    # A parameter without values is a warning of ReFrame's; no partition has one rank.
    return sorted({count for one in _partitions() for count in one.extras["rank_counts"]}) or [1]


def partition_names() -> list[str]:
    """Return the names of the partitions of the system that ReFrame runs on."""
    return [one.name for one in _partitions()]


@functools.cache
def pair_places() -> dict[tuple[str, int], list[str]]:
    """Return environment and turn of each job of pairs, with its ``SYSTEM:PARTITION``s.

    Only environments that ``-p`` selects count. Raises NetproofError as ``rank_counts`` does.
    """
    places: dict[tuple[str, int], list[str]] = {}
    for one in _partitions():
        settings = Partition.model_validate(one.extras).pair_settings()
        there = [(environ.name, environ.features, environ.extras) for environ in one.environs]
        for name in pair_environments(settings, there):
            for turn in range(pair_turns(one.name)):
                places.setdefault((name, turn + 1), []).append(one.fullname)
    return places


@functools.cache
def pair_turns(partition: str) -> int:
    """Return how many jobs it takes until the site's share of usable nodes has been in one.

    One where a job can have them all, or a single one, and where that is not known.
    """
    (own,) = (one for one in _partitions() if one.name == partition)
    if slurm.options_in(own.access, slurm.CHOOSING):
        return 1
    try:
        count, usable = usable_nodes(own.access, own.extras["nodes"])
    except ReframeError:
        # The job asks again, and fails with the reason.
        return 1
    needed = math.ceil(len(usable) * own.extras["coverage_percent"] / 100)
    return max(1, math.ceil(needed / count)) if count > 1 else 1


_TODAY = int(time.time() // 86400)
"""The day on which the run began."""


def first_turn(partition: str) -> int:
    """Return the number of today's first turn: of more nodes than needed each has its day."""
    return _TODAY * pair_turns(partition)


def _partitions() -> list[SystemPartition]:
    several: list[SystemPartition] = runtime().system.partitions
    for partition in several:
        missing = [key for key in PARTITION_KEYS if key not in partition.extras]
        if missing:
            raise NetproofError(
                f"partition {partition.fullname} has no extras[{missing[0]!r}]: the checks need"
                " a configuration from site-config/; source the site's activate,"
                " or set RFM_CONFIG_PATH and choose a system with --system"
            )
    return several


def baseline_of_system() -> ScoreBaseline | None:
    """Return the configuration that scores of this system are relative to."""
    partitions = [{"name": one.name, "extras": one.extras} for one in runtime().system.partitions]
    return score_baseline(partitions)


def slurm_now() -> dict[str, provenance.PartitionNodes]:
    """Return Slurm's present nodes of every partition of the system that ReFrame runs on."""
    several = runtime().system.partitions
    try:
        known = slurm.partitions()
    except NetproofError as error:
        return {one.name: str(error) for one in several}
    return {
        one.name: provenance.partition_nodes(
            slurm.names_in(one.access), slurm.options_in(one.access, slurm.CHOOSING), known
        )
        for one in several
    }


def of_other_turns(usable: Sequence[str], count: int, turn: int) -> tuple[str, ...]:
    """Return the nodes that the job of a turn leaves to others; ``count``: those that it takes.

    Each turn goes on where the one before ended, again from the first node after the last.
    """
    ordered = sorted(usable)
    own = {ordered[(turn * count + n) % len(ordered)] for n in range(count)}
    return tuple(name for name in ordered if name not in own)


def usable_nodes(access: Sequence[str], most: int) -> tuple[int, tuple[str, ...]]:
    """Return how many nodes a job can have, and the usable ones; ``most`` if there are none.

    ``access``: ReFrame's options of the partition; ``most``: the site's limit per job. Slurm's own
    limits apply too. Nodes that other jobs hold now count, since the job waits for them. Raises
    ReframeError if Slurm does not answer or allows none.
    """
    with failing(what="which nodes are usable is not known: "):
        there, named = slurm.partitions(), slurm.names_in(access)
        nodes = (one for name in named if name in there for one in there[name].nodes.items())
        usable = {node for node, state in nodes if slurm.usable(state)}
    if not usable:
        return most, ()
    allowed, refusal = slurm.most_nodes(access, min(most, len(usable)))
    if not allowed:
        raise ReframeError(refusal)
    return allowed, tuple(usable)


def tree() -> slurm.Tree:
    """Return Slurm's leaf switches with their nodes, and the switch above each; ReframeError."""
    with failing(what="which switch has which nodes is not known: "):
        return slurm.topology()


NOT_LOGGED = frozenset(
    (
        *("build_locally", "build_time_limit", "env_vars", "exclusive_access", "executable"),
        *("executable_opts", "extra_resources", "_job_submit_time", "keep_files"),
        *("local", "max_pending_time", "modules", "num_cpus_per_task", "num_gpus_per_node"),
        *("num_tasks", "num_tasks_per_core", "num_tasks_per_node", "num_tasks_per_socket"),
        *("postbuild_cmds", "postrun_cmds", "prebuild_cmds", "prefix", "prerun_cmds"),
        *("readonly_files", "short_name", "sourcepath", "sourcesdir", "strict_check"),
        *("time_limit", "use_multithreading", "valid_prog_environs", "valid_systems"),
        # In the test's name, or in its record.
        *("direction", "function", "job_ranks", "launches", "path", "protocol", "ranks"),
    )
)
"""Attributes that are empty, the same in every run, or said elsewhere."""


_GENERATES = (
    "it would run nothing: ReFrame makes further tests only of those that wait for no job; for more"
    " launches give -S launches=N, and for another session run it again"
)
_REFUSED = {
    "restore-session": "netproof's tests cannot go on in an earlier session, whose cases its report"
    " would lack: run all again, or what -n, -p and --system choose",
    "ci-generate": "it would make a session of each test, and netproof judges a session as a whole:"
    " let one job of the pipeline run 'netproof nightly' (ci/gitlab-ci.yml)",
    **dict.fromkeys(("repeat", "distribute", "parameterize"), _GENERATES),
}
"""ReFrame's options with which a run would be green and have measured nothing, or not all."""


def refused(words: Sequence[str]) -> str:
    """Return why ReFrame's command line, or a mode of the site that it names, is refused; or ""."""
    for place, word in enumerate(words):
        option, _, value = word.removeprefix("--").partition("=")
        if word.startswith("-P"):
            option = "parameterize"
        elif not word.startswith("--") or len(option) < 3:
            continue
        # argparse takes any beginning that is no other option's.
        for name, why in _REFUSED.items():
            if name.startswith(option) and option not in ("rep", "par"):
                return f"leave out --{name}: {why}"
        if "mode".startswith(option):
            name = value or " ".join(words[place + 1 : place + 2])
            chosen = runtime().site_config.get(f"modes/@{name}/options") or ()
            if why := refused([part for one in chosen for part in shlex.split(one)]):
                return f"mode {name}: {why}"
    return ""


class OnPartition(rfm.RegressionTestPlugin):
    """A test on a site's partition; its log and report have only what differs between runs.

    ReFrame reads all attributes for each message. Before it suppresses the warning of a deprecated
    one, it looks up the source of every stack frame, which is most of its work between jobs.
    """

    @classmethod
    def loggable_attrs(cls) -> list[tuple[str, str | None]]:
        """Return attributes and their names in the log, as ReFrame's metaclass does."""
        out = {name for name, one in cls.var_space.items() if one.is_deprecated()} | NOT_LOGGED
        # ReFrame's metaclass has it.
        every = type(cls).loggable_attrs(cls)  # type: ignore[attr-defined]
        return [one for one in every if one[0] not in out]

    def site_partition(self) -> Partition:
        """Return what the site says of the partition."""
        partition = self.current_partition
        return partition_of(partition.extras, partition.fullname)

    def place(self) -> tuple[str, str, str]:
        """Return the system, partition and environment."""
        return (
            self.current_system.name,
            self.current_partition.name,
            self.current_environ.name,
        )


class Launched(OnPartition):
    """Launches per function, for the job that makes them and the check that counts them.

    Both have the variable, so that ``-S launches=N`` sets it everywhere.
    """

    launches = variable(int, value=3)


@functools.cache
def session_folder() -> Path:
    """Return the folder of this run, beside ReFrame's reports; the first call makes it."""
    reports = Path(osext.expandvars(runtime().get_option("general/0/report_file"))).parent
    with failing(what=f"{reports}: the session's folder cannot be made: "):
        return records.make_folder(reports)


class RecordedTest(rfm.RegressionTestPlugin):
    """A test with a record; the report has its path and SHA-256, ``netproof_record``."""

    netproof_record = variable(dict, value={}, loggable=True)

    @run_after("init")
    def refuse_options(self) -> None:
        """Raise ReframeFatalError for an option with which a session would have no verdict."""
        reason = refused(sys.argv[1:])
        if reason:
            raise ReframeFatalError(reason)

    def write_record(self, **values: Any) -> None:
        """Write ``values`` into the test's record, with those written before."""
        job = self.job
        test = {
            "display_name": self.display_name,
            "unique_name": self.unique_name,
            "system": self.current_system.name,
            "partition": self.current_partition.name,
            "environ": self.current_environ.name,
            "stagedir": self.stagedir,
            "outputdir": self.outputdir,
            "job_nodelist": list(job.nodelist) if job and job.nodelist else None,
            "jobid": job.jobid if job else None,
            "netproof_kind": self.netproof_kind,
        }
        folder = session_folder()
        with failing(what=f"the record of {self.display_name}: "):
            if self.netproof_record:
                path = folder.parent / self.netproof_record["path"]
                values = {**records.read(path, parts=False)["values"], **values}
            else:
                # A test that is run again is another object, and has a record of its own.
                path = records.new_path(folder, test)
            self.netproof_record = records.write(path, test, values)


@contextlib.contextmanager
def _read_by_libyaml() -> Iterator[None]:
    """Parse YAML with libyaml: Python's parser takes a third of ReFrame's start."""
    usual = yaml.SafeLoader
    # A module's attribute, which mypy takes for a type.
    yaml.SafeLoader = getattr(yaml, "CSafeLoader", usual)  # type: ignore[misc]
    try:
        yield
    finally:
        yaml.SafeLoader = usual  # type: ignore[misc]


class Referenced(rfm.RegressionTestPlugin):
    """A test with bounds from reference-values/<system>.yaml; it fails without them.

    ReFrame would drop the test at load if the file is missing or broken, and an empty run is
    green; so the fault is stored and raised when the test is set up.
    """

    reference_fault = variable(str, value="", loggable=False)

    @run_after("init")
    def take_references(self) -> None:
        """Read the system's reference file."""
        prefix = runtime().get_option("general/0/reference_prefix")
        name = f"{self.current_system.name}.yaml"
        try:
            if prefix is None:
                raise NetproofError("RFM_REFERENCE_PREFIX is not set; source the site's activate")
            path = Path(prefix) / name
            trust.insist(path, "references")
            if path.exists():
                # ReFrame has no limits, and takes the second value of a duplicate key.
                references.readable(path)
            with _read_by_libyaml():
                self.reference = {"$ref": str(path)}
        except Exception as error:
            self.reference_fault = f"no references, {Path(prefix or '') / name}: {error}"

    def __ref_missing_ranks__(self, level: Mapping[Any, Any], ranks: int) -> Any:
        """Return the entry below an expression that fits a rank count; KeyError without one."""
        return level[references.matching(level, ranks)]

    @run_before("setup")
    def insist_on_references(self) -> None:
        """Fail before measuring what could not be judged."""
        if self.reference_fault:
            raise ReframeError(self.reference_fault)


ASK_EVERY_S = 5
"""Seconds between two queries to Slurm about a pending job."""

SETTLE_S = 60
"""Seconds in which Slurm considers every job of its queue: its default sched_interval."""


@dataclass
class Wait:
    """Seconds that a job has waited for nodes, ``own_s``, and what Slurm says of it.

    ``looked``: when Slurm was last asked; ``since``: the last moment at which the job was known to
    wait for nodes; ``reason``: Slurm's last one; ``reason_since``: when it was first given;
    ``shown``: whether it was shown.
    """

    own_s: float = 0.0
    looked: float = -math.inf
    since: float | None = None
    reason: str | None = None
    reason_since: float = 0.0
    shown: bool = False


_waits: dict[str, Wait] = {}
"""Waits of this run by job id."""

_spent_s: defaultdict[str, float] = defaultdict(float)
"""Seconds that its jobs waited, by partition."""


class WaitsForNodes(rfm.RegressionTestPlugin):
    """A Slurm job that is skipped if other jobs hold its nodes for longer than the site waits.

    ``netproof_left``: ``why`` it was skipped, and whether that was ``planned``; empty if it ran.
    ``in_pairs``: fewer nodes will do, without those of other turns, ``left_to_others``.
    """

    netproof_left = variable(dict, value={}, loggable=True)
    num_tasks: int
    in_pairs = False
    left_to_others: tuple[str, ...] = ()

    def run_complete(self) -> bool:
        """Check whether the job has ended; skip one that waits too long."""
        done = super().run_complete() and self.has_ended()
        if not done and self.job.state == "PENDING":
            self.look_at_queue(time.monotonic())
        return done

    def has_ended(self) -> bool:
        """Check whether a job that ReFrame takes for ended neither goes on ending nor begins again.

        A job that is cancelled or out of time may take seconds to end its steps and to note them,
        and one whose node died may be requeued.
        """
        if self.job.state in (None, "COMPLETED"):
            return True
        try:
            queued = slurm.is_queued(str(self.job.jobid))
        except NetproofError:
            # If Slurm no longer knows the job, it has not requeued it.
            return True
        if queued:
            self.job._completion_time = None
        return not queued

    def look_at_queue(self, now: float) -> None:
        """Ask Slurm what the job waits for, and act if it has waited too long."""
        jobid, partition = str(self.job.jobid), self.current_partition
        wait = _waits.setdefault(jobid, Wait())
        if now - wait.looked < ASK_EVERY_S:
            return
        try:
            reason = slurm.pending_reason(jobid)
            for_nodes = reason is not None and slurm.is_for_nodes(reason)
            if for_nodes and wait.since is not None:
                wait.own_s += now - wait.since
                _spent_s[partition.name] += now - wait.since
            wait.looked, wait.since = now, now if for_nodes else None
            if reason != wait.reason:
                wait.reason, wait.reason_since, wait.shown = reason, now, False
            elif reason is not None and now - wait.reason_since >= SETTLE_S:
                self.show_reason(wait, reason)
            spent_s = _spent_s[partition.name]
            limit_s = Partition.model_validate(partition.extras).wait_for_nodes_s
            # Slurm has to have had time to start this job.
            if not for_nodes or wait.own_s < min(limit_s, SETTLE_S) or spent_s < limit_s:
                return
            free, busy = slurm.free_and_busy(slurm.names_in(partition.access), slurm.partitions())
        except NetproofError:
            # The next look asks again; if Slurm stays silent, ReFrame ends the run.
            wait.looked = now
            return
        try:
            if self.take_fewer(free, busy, spent_s):
                wait.own_s = 0.0
                return
        except NetproofError as error:
            self.fail_if_waiting(jobid, error)
            return
        self.job.cancel()
        needed = self.num_tasks // (self.num_tasks_per_node or 1)
        why = (
            f"Slurm gave it no {needed} nodes in {spent_s:.0f} s"
            f" (wait_for_nodes_s), and says {reason}; {len(free)} of the partition's nodes were"
            f" free{f', other jobs held {fold(busy)}' if busy else ''}"
        )
        self.netproof_left = {"why": why, "planned": False}
        self.skip(why)

    def show_reason(self, wait: Wait, reason: str) -> None:
        """Show once why the job is pending; cancel it and raise if that never ends."""
        sentence = f"job {self.job.jobid} on {self.current_partition.name} is pending: {reason}"
        if slurm.never_ends(reason):
            self.job.cancel()
            raise ReframeError(
                f"{sentence}, which no end of another job ends; it was cancelled: see the"
                " partition's access in the site's file, and 'netproof site check'"
            )
        if not wait.shown and reason != "Dependency":
            wait.shown = True
            getlogger().warning(sentence)

    def fail_if_waiting(self, jobid: str, refusal: NetproofError) -> None:
        """Cancel a job that Slurm refuses fewer nodes, unless it began meanwhile with its own."""
        try:
            waits = slurm.pending_reason(jobid) is not None
        except NetproofError:
            return
        if waits:
            self.job.cancel()
            raise ReframeError(f"job {jobid} waits for its nodes, and {refusal}")

    def take_fewer(self, free: Sequence[str], busy: Sequence[str], waited_s: float) -> bool:
        """Return whether the job now waits for the free nodes only, a pair of them at least.

        Raise NetproofError if Slurm refuses that.
        """
        own = [name for name in free if name not in self.left_to_others]
        if not (self.in_pairs and 2 <= len(own) < self.num_tasks):
            return False
        slurm.take_fewer(str(self.job.jobid), len(own))
        self.num_tasks = len(own)
        self.netproof_busy = {"nodes": list(busy), "waited_s": waited_s}
        return True
