"""Coverage of a partition by a session: its nodes, and the links between them.

What nodes there are, and in which states, Slurm said when the run began.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from netproof.benchmarks import registry
from netproof.errors import counted, grouped, listed
from netproof.measurement.case import Case
from netproof.session.measured import Launch
from netproof.session.pair_rounds import PairRounds
from netproof.session.provenance import PartitionNodes, Provenance
from netproof.session.session import CheckResult, Session
from netproof.site import slurm
from netproof.site.partition import Partition
from netproof.site.slurm import fold

_DRAINED = ("drain", "maint", "reserved")


@dataclass(frozen=True)
class Coverage:
    """Nodes of a partition that a session measured over the network, and those that it lacked.

    ``usable``: by Slurm when the run began; of ``unmeasured`` ones ``busy`` were with other jobs
    then, and ``waited_for`` were held for longer than the site waits; ``one_way``: pairs measured
    from the first node to the second, and never back; ``needed_percent``: of usable nodes, by the
    site; ``why``: the nodes are not known, or empty; ``asked``: whether the session has what Slurm
    said; ``stated``: nodes that a job can have by the site, which count where Slurm's are not
    known; ``deferred``: whether cases were skipped, and nodes with them; ``no_rounds``: why there
    are no rounds of pairs, or empty.
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
    asked: bool = True
    stated: int = 0
    deferred: bool = False
    waited_for: tuple[str, ...] = ()
    waited_s: float = 0.0
    no_rounds: str = ""

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
        if not self.needed_percent or not self.asked or self.deferred:
            return False
        if not self.known:
            return 100 * len(self.measured) < self.needed_percent * self.stated
        if not self.usable:
            return True
        return self._lacks(len(self.unmeasured if self.no_rounds else self.waited_for))

    @property
    def short(self) -> bool:
        """Whether the site's share lacks only nodes that could not be had.

        The verdict is then inconclusive, and not failed.
        """
        return self.known and self.asked and not self.failed and self._lacks(0)

    def _lacks(self, excused: int) -> bool:
        reached = len(self.usable) - len(self.unmeasured) + excused
        return 100 * reached < self.needed_percent * len(self.usable)

    def __str__(self) -> str:
        """Return the line."""
        if not self.known:
            line = f"{self.partition}: {counted(len(self.measured), 'node')} measured"
            line += f" of {self.stated} that the site states" if self.stated else ""
            line += f"; what Slurm has is not known: {self.why}"
        else:
            reached = len(self.usable) - len(self.unmeasured)
            line = f"{self.partition}: {reached} of {len(self.usable)} usable nodes measured"
            parts = {
                "not measured": set(self.unmeasured) - {*self.busy, *self.waited_for},
                "busy": set(self.busy) - set(self.waited_for),
                "down": self.down,
                "drained": self.drained,
            }
            line += "".join(f"; {word} {fold(nodes)}" for word, nodes in parts.items() if nodes)
        if self.waited_for:
            line += f"; deferred {fold(self.waited_for)}, not free in {self.waited_s:.0f} s"
        line += f"; no rounds of pairs: {self.no_rounds}" if self.no_rounds else ""
        if self.one_way:
            links = [f"{one} to {other}" for one, other in self.one_way]
            line += f"; links known only in one direction: {listed(links)}"
        if self.failed or self.short:
            line += (
                f"; the site needs {self.needed_percent} % of the usable ones (coverage_percent)"
            )
        if self.deferred:
            line += "; cases were deferred"
        return line


def judge(
    made: Provenance | None,
    session: Session,
    partitions: Mapping[str, Partition],
    deferred: Collection[str] = (),
) -> tuple[Coverage, ...]:
    """Return the coverage of each of the partitions; ``made`` None without provenance.

    ``deferred``: partitions with skipped cases.
    """
    known = {} if made is None else made.partitions
    results = grouped((one.partition, one) for one in session.results)
    return tuple(
        _of_partition(name, site, results[name], known.get(name), bool(known), name in deferred)
        for name, site in partitions.items()
    )


def _of_partition(
    name: str,
    site: Partition,
    results: Sequence[CheckResult],
    there: PartitionNodes | None,
    asked: bool,
    deferred: bool,
) -> Coverage:
    rounds = [one.rounds for one in results if one.rounds is not None]
    launches = launches_between(results)
    nodes = {node for one in rounds for node in one.measured()}
    nodes |= {node for _, launch in launches for node in launch.nodes()}
    if site.nodes < 2:
        alone = (launch for one in results if one.measured for launch in one.measured.launches)
        nodes = {node for launch in alone for node in launch.nodes()}
    pairs = links(rounds, launches)
    found = Coverage(
        name,
        tuple(sorted(nodes)),
        one_way=tuple(sorted((one, other) for one, other in pairs if (other, one) not in pairs)),
        needed_percent=site.coverage_percent,
        asked=asked,
        stated=site.nodes,
        deferred=deferred,
    )
    if there is None or isinstance(there, str):
        return dataclasses.replace(found, why=there or "the session does not have what Slurm said")
    usable = tuple(name for name, state in there.items() if slurm.usable(state))
    unmeasured = tuple(node for node in usable if node not in nodes)
    unusable = {name: state for name, state in there.items() if not slurm.usable(state)}
    drained = tuple(name for name, state in unusable.items() if state.startswith(_DRAINED))
    busy = {node for one in rounds for node in one.deferred}
    # Tests that were to make rounds of pairs and could not.
    skipped = [
        one.skipped for one in results if one.kind == "pairs" and one.skipped and not one.planned
    ]
    return dataclasses.replace(
        found,
        usable=usable,
        unmeasured=unmeasured,
        busy=tuple(name for name in unmeasured if slurm.busy(there[name])),
        down=tuple(name for name in unusable if name not in drained),
        drained=drained,
        waited_for=tuple(node for node in unmeasured if node in busy),
        waited_s=max((one.waited_s for one in rounds), default=0.0),
        no_rounds=skipped[0] if skipped and not rounds else "",
    )


def launches_between(results: Iterable[CheckResult]) -> list[tuple[Case, Launch]]:
    """Return the launches of inter-node cases, each with its case."""
    return [
        (one.case, launch)
        for one in results
        if one.measured and one.case is not None and one.case.path == "inter-node"
        for launch in one.measured.launches
    ]


def links(
    rounds: Iterable[PairRounds], launches: Iterable[tuple[Case, Launch]]
) -> set[tuple[str, str]]:
    """Return pairs of nodes, from and to, between which messages were measured alone."""
    both_ways = [pair for one in rounds for launch in one.launches for pair in launch.pairs]
    found = set()
    for case, launch in launches:
        nodes, function = launch.nodes(), registry.function_of(case)
        if case.ranks == 2 and len(nodes) == 2 and function.rated:
            found.add(nodes)
            both_ways += [] if function.streams else [nodes]
    # PingPong goes both ways.
    return found | {one for pair in both_ways for one in (pair, pair[::-1])}
