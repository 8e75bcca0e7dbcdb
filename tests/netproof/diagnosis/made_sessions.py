"""Sessions of one partition, put together from recorded jobs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import made_nodes
from made_nodes import GIGE as NODES
from made_nodes import SOFTWARE, changed
from made_rounds import BUSY, PARTITION, recorded

from netproof.criteria import Finding, Level
from netproof.intake import disk
from netproof.measurement.case import Case, Curve
from netproof.measurement.counters import Counters, CounterSource
from netproof.pairs import verdict as pairs
from netproof.pairs.accusation import Accusation, Effect, Judgement, NodeState, State
from netproof.pairs.alone import Alone, Recovery
from netproof.pairs.model import Kind
from netproof.pairs.verdict import PairsVerdict
from netproof.session import job_files, pair_rounds, session
from netproof.session.measured import Launch
from netproof.session.node_facts import Node
from netproof.session.pair_rounds import PairRounds
from netproof.session.session import CheckResult, Session
from netproof.site.matrix import Matrix
from netproof.site.partition import PairQuantity, PairSettings, Partition
from netproof.site.slurm import States
from netproof.verdict import confirmations, engine, nodes, traffic
from netproof.verdict.coverage import Coverage
from netproof.verdict.engine import Subject
from netproof.verdict.session_verdict import JudgedSession
from netproof.verdict.verdict import CaseVerdict, Verdict

DATA = Path(__file__).resolve().parents[2] / "data"


@cache
def extras() -> dict[str, Any]:
    """Settings of the partition that the jobs were recorded on."""
    report = session.load(DATA / "sessions" / "faulty.json")
    kept = next(result.extras for result in report.results if result.measured)
    changed = {
        "criteria": {"disturbance": {"others": 1.0, "steal": 1.0}},
        "max_message_bytes": 524288,
        "netpipe_mpi_inside_repeats": 0,
        "interface": "eth1",
        "may_differ": {"link_mbit_s": "ethtool has a rate of its own for a veth"},
    }
    return {**kept["partition_extras"], **changed}


@cache
def site() -> Partition:
    return Partition.model_validate(extras())


def strict() -> Partition:
    """The same, where launches alongside other programs are disturbed."""
    return site().model_copy(update={"criteria": {}})


def in_job(folder: str = "same", **changes: Mapping[str, Any]) -> list[Node]:
    """The nodes of a recorded job; ``changes``: of node 2, say, ``gige_2={"mtu": 9000}``."""
    several = made_nodes.in_job(folder)
    return [changed(one, **changes.get(one.node.replace("-", "_"), {})) for one in several]


def rounds(times: int = 3, environment: str = "mpich", **slow: float) -> PairsVerdict:
    """Recorded rounds of pairs, as often as asked for, nodes slower by so many times."""
    several = tuple(_slowed(one, slow) for one in recorded(times).launches)
    made = PairRounds("testbed", "gige", environment, NODES, several, "7", "quick", 1)
    return pairs.judge(made, PARTITION.pair_settings(), BUSY)


def few(count: int = 2, least: float | None = None, **slow: float) -> PairsVerdict:
    """Recorded pairs as of a job of so few nodes; ``least``: share of the line rate asked for."""
    nodes = NODES[:count]
    made = rounds(3, **slow).rounds
    launches = [
        dataclasses.replace(
            one,
            pairs=(pair,),
            curves=(curve,),
            loads=tuple(load for load in one.loads if load.node in pair),
        )
        for one in made.launches
        for pair, curve in zip(one.pairs, one.curves, strict=True)
        if {*pair} <= {*nodes}
    ]
    made = dataclasses.replace(made, nodes=nodes, launches=tuple(launches))
    link = site().model_copy(update={"link_mbit_s": 100}).link()
    return pairs.judge(made, PairSettings(bisection=least), BUSY, link)


def rounds_that_lose() -> PairsVerdict:
    """Recorded rounds of a switch whose buffers hold 16,000 bytes."""
    folder = DATA / "jobs" / "small-buffer"
    partition = Partition.model_validate(disk.json_file(folder / "plan.json")["extras"])
    where = ("testbed", "gige", "intelmpi")
    launches, _, _ = pair_rounds.read(folder, where, partition.max_message_bytes)
    made = PairRounds(*where, NODES, launches, "1", "quick", 1)
    return pairs.judge(made, partition.pair_settings(), BUSY)


def _slowed(launch: Launch, slow: Mapping[str, float]) -> Launch:
    def here(name: str) -> str:
        return name.replace("fast-ethernet", "gige")

    def slowed(names: tuple[str, ...], curve: Curve) -> Curve:
        factor = max((slow.get(name.replace("-", "_"), 1.0) for name in names), default=1.0)
        small, large = curve.time_us
        return dataclasses.replace(curve, time_us=(small, large * factor))

    pairs = tuple(tuple(map(here, names)) for names in launch.pairs)
    return dataclasses.replace(
        launch,
        pairs=pairs,
        curves=tuple(map(slowed, pairs, launch.curves)),
        ranks=tuple(map(here, launch.ranks)),
        loads=tuple(dataclasses.replace(one, node=here(one.node)) for one in launch.loads),
    )


def accusing(
    kind: Kind,
    name: str,
    accused: Sequence[str],
    *,
    recovery: Recovery | None = None,
    alternatives: Sequence[str] = (),
    ratio: float = 0.5,
) -> PairsVerdict:
    """Rounds of pairs that accuse this; all other nodes are cleared."""
    effect = Effect(PairQuantity.RATE, ratio, (ratio - 0.02, ratio + 0.02), 4)
    accusation = Accusation(kind, name, tuple(accused), (effect,), tuple(alternatives))
    out = set(accused) if kind is Kind.NODE else set()
    states = {
        node: NodeState(State.ACCUSED if node in out else State.CLEARED, (), "") for node in NODES
    }
    alone = () if recovery is None else (Alone((accused[0], NODES[3]), recovery, (effect,), ""),)
    judgement = Judgement(4, states, (accusation,), {}, (), ())
    return dataclasses.replace(rounds(1), judgement=judgement, alone=alone)


def subject(
    job: str = "healthy",
    step: str = "tcp-inter-node-oneway",
    environment: str = "mpich",
    on: Sequence[str] = NODES[:2],
    counters: Counters | None = None,
) -> Subject:
    """A recorded case with what its nodes counted, moved to other nodes where asked for."""
    protocol, path, direction = re.split("-(?!node)", step)
    case = Case("testbed", "gige", "mpich", "netpipe", protocol, 2, 1, path, direction)
    folder = DATA / "jobs" / f"counters-{job}"
    found = job_files.of_job(folder, case, site(), 1, mpi_over_tcp=True)
    to = dict(zip(NODES[:2], on, strict=True))
    launches = tuple(
        dataclasses.replace(
            launch,
            ranks=tuple(to[node] for node in launch.ranks),
            loads=tuple(dataclasses.replace(one, node=to[one.node]) for one in launch.loads),
            counters=counters or _moved(launch.counters, to),
        )
        for launch in found.launches
    )
    case = dataclasses.replace(case, environment=environment)
    moved = dataclasses.replace(found, case=case, launches=launches)
    return Subject.of_extras(moved, extras(), {})


def _moved(counters: Counters, to: Mapping[str, str]) -> Counters:
    parts = ("sources", "absent")
    named = {part: {to[n]: one for n, one in getattr(counters, part).items()} for part in parts}
    return dataclasses.replace(counters, **named)


def sending_again(**again: int) -> Counters:
    """Nodes that sent so many of 100,000 segments again, over an eth1 that counted nothing."""
    names = (("Tcp.OutSegs", "Tcp.RetransSegs", "TcpExt.TCPDSACKRecvSegs"), _OF_ETH1)
    sources = {
        name.replace("_", "-"): (
            CounterSource("tcp", "", {"Tcp.OutSegs": 10**5 - count, "Tcp.RetransSegs": count}, 0),
            CounterSource("interface", "eth1", {"tx_bytes": 10**9}, 1),
        )
        for name, count in again.items()
    }
    return Counters(sources, names, {node: {} for node in sources})


_OF_ETH1 = (
    *("rx_bytes", "tx_bytes", "rx_errs", "tx_errs", "rx_drop", "tx_drop", "carrier_changes"),
    *("rx_packets", "tx_packets"),
)


def judged_case(one: Subject, *red: str) -> CaseVerdict:
    """A case with the findings on its counters, and red for these reasons."""
    findings = [
        *confirmations.rule_all(one, engine.counted(one), None),
        *(Finding("jump", Level.FAIL, str(one), why, value=20.0, bound=10.0) for why in red),
    ]
    done = dataclasses.replace(result(one.case), measured=one.measured)
    return CaseVerdict.of(one.case, done, (), "", tuple(findings))


def unmeasured(function: str = "Bcast", why: str = "Bcast.1 did not end") -> CaseVerdict:
    """A case that failed before it was whole, on nodes 1 and 2."""
    case = Case("testbed", "gige", "mpich", "imb", function, 2, 1)
    return CaseVerdict.of(case, result(case, NODES[:2]), (why,))


def result(case: Case, on: Sequence[str] = ()) -> CheckResult:
    passed = ("pass", "", "", 1.0, tuple(on), "")
    return CheckResult("case", "testbed", "gige", case.environment, *passed, case, None)


def session_of(
    *,
    cases: Iterable[CaseVerdict] = (),
    of_pairs: Iterable[PairsVerdict] = (),
    described: Iterable[Node] = (),
    covered: bool = True,
    failed_tests: Iterable[Finding] = (),
    partition: Partition | None = None,
    not_over_tcp: Iterable[str] = (),
    requeued: tuple[str, Mapping[str, States]] | None = None,
) -> JudgedSession:
    """A judged session of the partition gige with all of this."""
    cases, of_pairs, described = tuple(cases), tuple(of_pairs), tuple(described)
    own = partition or site()
    subjects = [
        Subject.of_extras(one.measured, extras(), {}) for one in cases if one.measured is not None
    ]
    nodes_of_jobs = tuple(
        dataclasses.replace(node, partition="gige", environment="mpich", jobid="7")
        for node in described
    )
    made = dataclasses.replace(SOFTWARE, nodes=nodes_of_jobs)
    coverage = Coverage("gige", NODES, NODES) if covered else Coverage("gige", (), why="not asked")
    in_rounds = traffic.of_rounds((one.rounds for one in of_pairs), {"gige": own})
    seen = [*traffic.of_cases(subjects), *in_rounds]
    verdict = Verdict(
        cases,
        (),
        (),
        (),
        failed_tests=tuple(failed_tests),
        pairs=of_pairs,
        nodes=nodes.judge(made, {"gige": own}),
        coverage=(coverage,),
        traffic=traffic.totals(seen),
        standing_out=(*traffic.all_lose(in_rounds), *traffic.standing_out(seen)),
    )
    any_case = Case("testbed", "gige", "mpich", "netpipe", "tcp", 2, 1)
    found = [one.result for one in cases if one.result is not None]
    results = tuple(dataclasses.replace(one, measured=None) for one in found)
    if requeued is not None:
        tries = {"partition": requeued[0], "requeued": requeued[1]}
        results += (dataclasses.replace(result(any_case), **tries),)
    expected = tuple(one.case for one in cases) or (any_case,)
    without = frozenset(not_over_tcp)
    matrix = Matrix(expected, (), True, {"gige": own}, {}, None, frozenset(), without)
    report = DATA / "sessions" / "passed.json"
    judged = JudgedSession(Session(report, {}, results or (result(any_case),)), matrix, verdict)
    vars(judged.session)["provenance"] = made
    return judged
