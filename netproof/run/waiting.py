"""Limit how long a job is pending, and skip, shrink or cancel it then.

Slurm sets no limit; a site does (``wait_for_nodes_s``). The jobs of a partition share this time,
since later ones would wait for the same nodes. A job that is pending for a reason that the end of
other jobs does not remove is cancelled after a minute.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import reframe as rfm
from reframe.core.builtins import variable
from reframe.core.exceptions import ReframeError
from reframe.core.logging import getlogger

from netproof import codec
from netproof.errors import NetproofError
from netproof.session.plan import SkipReason
from netproof.site import slurm
from netproof.site.partition import Partition
from netproof.site.slurm import fold

ASK_EVERY_S = 5
"""Seconds between two queries to Slurm about a pending job."""

SETTLE_S = 60
"""Seconds in which Slurm considers every job of its queue: its default sched_interval."""


LEAST_NODES = 2
"""Nodes of a pair."""


@dataclass
class Wait:
    """Seconds that a job has waited for nodes, ``own_s``, and those of its partition, ``spent_s``.

    ``spent_s`` is by partition, and shared; ``looked``: when Slurm was last asked; ``since``: the
    last moment at which the job was known to wait for nodes; ``reason``: Slurm's last one;
    ``reason_since``: when it was first given; ``shown``: whether it was shown.
    """

    partition: str
    spent_s: dict[str, float]
    own_s: float = 0.0
    looked: float | None = None
    since: float | None = None
    reason: str | None = None
    reason_since: float = 0.0
    shown: bool = False

    def due(self, now: float) -> bool:
        """Check whether Slurm is to be asked again."""
        return self.looked is None or now - self.looked >= ASK_EVERY_S

    def look(self, now: float, *, for_nodes: bool) -> None:
        """Count the seconds since the last look, if the job waited for nodes then and now."""
        if for_nodes and self.since is not None:
            self.own_s += now - self.since
            self.spent_s[self.partition] += now - self.since
        self.looked, self.since = now, now if for_nodes else None

    def lasts(self, now: float, reason: str | None) -> bool:
        """Check whether the job has been pending for one reason for a minute."""
        if reason != self.reason:
            self.reason, self.reason_since, self.shown = reason, now, False
        return reason is not None and now - self.reason_since >= SETTLE_S

    def over(self, limit_s: int) -> bool:
        """Check whether the partition's time is over, and Slurm had time to start this job."""
        return self.own_s >= min(limit_s, SETTLE_S) and self.spent_s[self.partition] >= limit_s


_waits: dict[str, Wait] = {}
"""Waits of this run by job id."""

_spent_s: defaultdict[str, float] = defaultdict(float)
"""Seconds that its jobs waited, by partition."""


class WaitsForNodes(rfm.RegressionTestPlugin):
    """A Slurm job that is skipped if other jobs hold its nodes for longer than the site waits.

    ``netproof_left``: why it was skipped, as ``plan.SkipReason`` has it; empty if it was not.
    """

    netproof_left = variable(dict, value={}, loggable=True)

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
        wait = _waits.setdefault(jobid, Wait(partition.name, _spent_s))
        if not wait.due(now):
            return
        try:
            reason = slurm.pending_reason(jobid)
            for_nodes = reason is not None and slurm.is_for_nodes(reason)
            wait.look(now, for_nodes=for_nodes)
            if wait.lasts(now, reason) and reason is not None:
                self.show_reason(wait, reason)
            limit_s = Partition.model_validate(partition.extras).wait_for_nodes_s
            if not for_nodes or not wait.over(limit_s):
                return
            free, busy = slurm.free_and_busy(slurm.names_in(partition.access), slurm.partitions())
        except NetproofError:
            # The next look asks again; if Slurm stays silent, ReFrame ends the run.
            wait.looked = now
            return
        try:
            if self.take_fewer(free, busy, wait.spent_s[partition.name]):
                wait.own_s = 0.0
                return
        except NetproofError as error:
            self.fail_if_waiting(jobid, error)
            return
        self.job.cancel()
        needed = self.num_tasks // (self.num_tasks_per_node or 1)
        why = (
            f"Slurm gave it no {needed} nodes in {wait.spent_s[partition.name]:.0f} s"
            f" (wait_for_nodes_s), and says {reason}; {len(free)} of the partition's nodes were"
            f" free{f', other jobs held {fold(busy)}' if busy else ''}"
        )
        self.netproof_left = codec.encode(SkipReason(why, planned=False))
        self.skip(why)

    def show_reason(self, wait: Wait, reason: str) -> None:
        """Show once why the job is pending; cancel it and raise if that never ends."""
        sentence = f"job {self.job.jobid} on {wait.partition} is pending: {reason}"
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
        """Return whether the job now waits for the free nodes only; by default it does not."""
        return False


def with_fewer(test: Any, free: Sequence[str], busy: Sequence[str], waited_s: float) -> bool:
    """Return whether a job of one task per node now waits for the free nodes only, two at least.

    Raise NetproofError if Slurm refuses that.
    """
    if not LEAST_NODES <= len(free) < test.num_tasks:
        return False
    slurm.take_fewer(str(test.job.jobid), len(free))
    test.num_tasks = len(free)
    test.netproof_busy = {"nodes": list(busy), "waited_s": waited_s}
    return True
