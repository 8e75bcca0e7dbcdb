"""How much of a partition a session measured: its nodes, and the links between them.

What nodes there are, and in which states, Slurm said when the run began.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from netproof.benchmarks import registry
from netproof.measurement.case import Case
from netproof.session.measured import Launch, Measured
from netproof.session.pair_rounds import PairRounds
from netproof.session.provenance import OfSession
from netproof.session.session import Session
from netproof.session.slurm_nodes import PartitionNodes
from netproof.site.hostlist import fold
from netproof.site.partition import Partition
from netproof.site.slurm import SlurmNode

_DRAINED = ("drain", "maint", "reserved")

MOST_LINKS = 3
"""How many links that are known only in one direction a line names."""


@dataclass(frozen=True)
class Coverage:
    """What of a partition's nodes a session measured over the network.

    ``measured``: those that took part; ``usable``: those that Slurm called usable when the run
    began; ``unmeasured``: usable and not measured, of which ``busy`` were with other jobs then;
    ``down`` and ``drained``: not usable, by Slurm's states; ``one_way``: pairs of nodes between
    which messages were measured from the first to the second, and never back;
    ``needed_percent``: of the usable nodes, by the site; ``why``: the reason for which the nodes
    are not known, or empty; ``told``: whether the session has what Slurm said;
    ``stated``: how many nodes the site says that a job can have, which counts where Slurm's are not
    known; ``deferred``: whether cases of the partition were left, and nodes with them;
    ``waited_for``: unmeasured nodes that other jobs held for longer than the site waits, and
    ``waited_s``: for how many seconds the run did; ``left``: why there are no rounds of pairs,
    though there were to be some, or empty; ``most``: how many of the usable nodes Slurm lets one
    job have, None where it was not asked, and ``limit``: its refusal of one more.
    """

    partition: str
    measured: tuple[str, ...]
    usable: tuple[str, ...] = ()
    unmeasured: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()
    down: tuple[str, ...] = ()
    drained: tuple[str, ...] = ()
    one_way: tuple[tuple[str, str], ...] = ()
    needed_percent: int = 0
    why: str = ""
    told: bool = True
    stated: int = 0
    deferred: bool = False
    waited_for: tuple[str, ...] = ()
    waited_s: float = 0.0
    left: str = ""
    most: int | None = None
    limit: str = ""

    @property
    def attainable(self) -> int:
        """How many of the usable nodes one job can measure."""
        return len(self.usable) if self.most is None else min(self.most, len(self.usable))

    @property
    def never(self) -> tuple[str, ...]:
        """Usable nodes that were not measured, since the job had all that Slurm lets it have."""
        limited = self.attainable < len(self.usable)
        full = len(self.usable) - len(self.unmeasured) >= self.attainable
        return self.unmeasured if limited and full else ()

    @property
    def known(self) -> bool:
        """Whether it is known what nodes there were."""
        return not self.why

    @property
    def failed(self) -> bool:
        """Whether fewer nodes were measured than the site needs.

        Sessions without what Slurm said do not fail, nor do those that left cases. Nodes that were
        waited for are no failure: see ``short``.
        """
        if not self.needed_percent or not self.told or self.deferred:
            return False
        if not self.known:
            return 100 * len(self.measured) < self.needed_percent * self.stated
        if not self.usable:
            return True
        return self._lacks(len(self.unmeasured if self.left else self.waited_for))

    @property
    def short(self) -> bool:
        """Whether nodes that could not be had are what the site's share lacks.

        The verdict is then inconclusive, and not failed.
        """
        return self.known and self.told and not self.failed and self._lacks(0)

    def _lacks(self, excused: int) -> bool:
        reached = len(self.usable) - len(self.unmeasured) + excused
        return 100 * reached < self.needed_percent * self.attainable

    def __str__(self) -> str:
        """In a line."""
        if not self.known:
            line = f"{self.partition}: {_count(self.measured)} measured"
            line += f" of {self.stated} that the site states" if self.stated else ""
            line += f"; what Slurm has is not known: {self.why}"
        else:
            reached = len(self.usable) - len(self.unmeasured)
            line = f"{self.partition}: {reached} of {len(self.usable)} usable nodes measured"
            parts = {
                "not measured": set(self.unmeasured) - {*self.busy, *self.waited_for, *self.never},
                "never measured": self.never,
                "busy": set(self.busy) - {*self.waited_for, *self.never},
                "down": self.down,
                "drained": self.drained,
            }
            line += "".join(f"; {word} {fold(nodes)}" for word, nodes in parts.items() if nodes)
        if self.never:
            line += f"; a job can have {self.attainable}: {self.limit}"
        if self.waited_for:
            line += f"; deferred {fold(self.waited_for)}, not free in {self.waited_s:.0f} s"
        line += f"; no rounds of pairs: {self.left}" if self.left else ""
        if self.one_way:
            more = len(self.one_way) - MOST_LINKS
            links = ", ".join(f"{one} to {other}" for one, other in self.one_way[:MOST_LINKS])
            line += f"; links known only in one direction: {links}"
            line += f" and {more} more" if more > 0 else ""
        if self.failed or self.short:
            line += (
                f"; the site needs {self.needed_percent} % of the usable ones (coverage_percent)"
            )
        if self.deferred:
            line += "; cases were deferred"
        return line


def judge(
    made: OfSession | None,
    session: Session,
    partitions: Mapping[str, Partition],
    deferred: Collection[str] = (),
) -> tuple[Coverage, ...]:
    """The coverage of each of the partitions; ``made`` None where provenance cannot be read.

    ``deferred``: those of which the session left cases.
    """
    known = {} if made is None else {one.partition: one for one in made.slurm}
    return tuple(
        dataclasses.replace(
            _of_partition(name, site, session, known.get(name), bool(known)),
            deferred=name in deferred,
        )
        for name, site in partitions.items()
    )


def _of_partition(
    name: str, site: Partition, session: Session, there: PartitionNodes | None, told: bool
) -> Coverage:
    measured = tuple(sorted(measured_nodes(session, name)))
    both = links(session, name)
    one_way = tuple(sorted((one, other) for one, other in both if (other, one) not in both))
    needed = site.coverage_percent
    if there is None or there.why:
        why = "the session does not have what Slurm said" if there is None else there.why
        return Coverage(
            name,
            measured,
            one_way=one_way,
            needed_percent=needed,
            why=why,
            told=told,
            stated=site.nodes,
        )
    usable = there.usable
    unmeasured = tuple(node for node in usable if node not in measured)
    others = [node for node in there.nodes if not node.usable]
    waited_for, waited_s = _waited_for(session, name)
    return Coverage(
        name,
        measured,
        usable,
        unmeasured,
        tuple(node.name for node in there.nodes if node.name in unmeasured and node.busy),
        tuple(node.name for node in others if not _is(node, _DRAINED)),
        tuple(node.name for node in others if _is(node, _DRAINED)),
        one_way,
        needed,
        stated=site.nodes,
        waited_for=tuple(node for node in unmeasured if node in waited_for),
        waited_s=waited_s,
        left=_why_left(session, name),
        most=there.most,
        limit=there.limit,
    )


def _why_left(session: Session, partition: str) -> str:
    """Why the rounds of pairs could not be made, of a session without any; or nothing."""
    several = [one for one in session.results if one.partition == partition and one.kind == "pairs"]
    if any(one.pairs is not None for one in several):
        return ""
    why = (one.left["why"] for one in several if one.left and not one.left["planned"])
    return next(why, "")


def _waited_for(session: Session, partition: str) -> tuple[set[str], float]:
    """The nodes that rounds of pairs went without, and for how many seconds they had waited."""
    nodes, waited_s = set(), 0.0
    for one in _rounds(session, partition):
        nodes |= set(one.deferred)
        waited_s = max(waited_s, one.waited_s)
    return nodes, waited_s


def measured_nodes(session: Session, partition: str) -> set[str]:
    """The nodes of a partition that took part in a launch between nodes."""
    in_pairs = {node for one in _rounds(session, partition) for node in one.measured()}
    return in_pairs | {
        node for _, launch in _launches(session, partition) for node in launch.nodes()
    }


def _rounds(session: Session, partition: str) -> Iterator[PairRounds]:
    for result in session.results:
        if result.partition == partition and result.pairs is not None:
            yield PairRounds.from_json(result.pairs)


def links(session: Session, partition: str) -> set[tuple[str, str]]:
    """Pairs of nodes, from and to, between which messages were measured alone."""
    found = set()
    for one in _rounds(session, partition):
        for launch in one.launches:
            for pair in launch.pairs:
                # PingPong goes both ways.
                found |= {pair.nodes, pair.nodes[::-1]}
    for case, launch in _launches(session, partition):
        nodes = launch.nodes()
        function = registry.function_of(case)
        if case.ranks != 2 or len(nodes) != 2 or not function.rated:
            continue
        found.add((nodes[0], nodes[1]))
        if not function.streams:
            found.add((nodes[1], nodes[0]))
    return found


def _launches(session: Session, partition: str) -> Iterator[tuple[Case, Launch]]:
    for result in session.results:
        if result.partition != partition or not result.measured or result.case is None:
            continue
        if result.case.path != "between":
            continue
        for launch in Measured.from_json(result.measured).launches:
            yield result.case, launch


def _is(node: SlurmNode, states: tuple[str, ...]) -> bool:
    return node.state.startswith(states)


def _count(nodes: tuple[str, ...]) -> str:
    return "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
