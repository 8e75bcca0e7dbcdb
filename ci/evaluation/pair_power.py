"""Simulate pair rounds with known faults: rounds until they are found, and false accusations.

A pair measures the rate of the slowest part of its path, times noise, times the drift of the whole
machine in that round. Runs of one kind are a portion, with a file of its own.
docs/validation/pair-rounds.md has the results.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ci.evaluation.plants import TABLES
from ci.evaluation.table import exact_interval, markdown
from netproof.pairs.accusation import judge, judge_table
from netproof.pairs.model import UPLINK_OF, Kind, PairObservation, PairTable, Topology
from netproof.pairs.rounds import Mode, next_round, rounds_of_all, tournament
from netproof.site.partition import PairQuantity, PairSettings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SESSIONS = Path(__file__).resolve().parents[2] / "tests/data/sessions"
RECORDED = ("healthy.json", "two-switches.json", "ranges.json")
FROM_BYTES = 65536
"""Least size at which a recorded time shows a rate."""
NOISE = 0.05
DRIFT = 0.1
"""Drift of the whole machine from round to round, in logarithms."""

ROUNDS = 16
SETTINGS = PairSettings(rounds=ROUNDS)

NODES = (4, 16, 64, 256, 1024, 4096)
SLOWER = (0.5, 0.2, 0.1)
SEED = 20157
LEAST_RUNS = 20


@cache
def recorded() -> Floats:
    """Return how launches' times of large messages deviate from others, in logarithms, over √2.

    They are of two-rank inter-node cases in recorded sessions of healthy switches, at each size:
    both orders of each two launches, so that slower and faster are as frequent.
    """
    off = []
    for name in RECORDED:
        document = json.loads((SESSIONS / name).read_text())
        for test in (test for run in document["runs"] for test in run["testcases"]):
            case, measured = test.get("netproof_case"), test.get("netproof_measured")
            if not case or not measured or case["path"] != "inter-node" or case["ranks"] != 2:
                continue
            curves = [launch["curves"][0] for launch in measured["launches"]]
            for one, other in itertools.permutations(curves, 2):
                both = zip(one["sizes"], one["time_us"], other["time_us"], strict=True)
                off += [math.log(a / b) / math.sqrt(2) for s, a, b in both if s >= FROM_BYTES]
    return np.array(off)


def noise(name: str, count: int, random: np.random.Generator) -> Floats:
    """Draw noise of ``count`` measurements, in logarithms.

    ``normal``; ``disturbed``: one in a hundred is also up to 10 times slower; ``recorded``: drawn
    from the testbed's.
    """
    if name == "recorded":
        return random.choice(recorded(), size=count)
    off = random.normal(scale=NOISE, size=count)
    if name == "disturbed":
        hit = random.random(count) < 0.01
        off = off + hit * random.uniform(0, math.log(10), size=count)
    return off


@cache
def leaves_of(nodes: int) -> Topology:
    """Return a tree with as many leaves as nodes per leaf, and a spine."""
    size = max(2, 2 ** (round(math.log2(nodes)) // 2))
    members = [f"n{number}" for number in range(nodes)]
    leaves = {
        f"leaf{first // size}": tuple(members[first : first + size])
        for first in range(0, nodes, size)
    }
    return Topology(leaves, dict.fromkeys(leaves, "spine"))


@dataclass(frozen=True)
class Fault:
    """A fault: ``count`` nodes, a pair or the first leaf's uplink are slower by a share."""

    kind: str
    count: int
    slower: float

    @property
    def words(self) -> str:
        """The fault in words."""
        return f"{self.count} {self.kind}{'s' * (self.count > 1)}"

    def true(self) -> set[tuple[Kind, str]]:
        """Return the culprits to accuse."""
        culprits = {
            "node": {(Kind.NODE, f"n{number}") for number in range(self.count)},
            "pair": {(Kind.PAIR, "n0 – n1")},
            "uplink": {(Kind.UPLINK, UPLINK_OF + "leaf0")},
        }
        return culprits.get(self.kind, set())

    def slowness(self, one: Ints, other: Ints, leaf: int) -> Floats:
        """Return pairs' slowness in logarithms; faulty nodes and leaves have the least numbers."""
        hit = {
            "node": (one < self.count) | (other < self.count),
            "pair": one + other == 1,
            "uplink": (one < leaf) != (other < leaf),
        }
        return -math.log1p(-self.slower) * hit.get(self.kind, np.zeros(len(one)))


HEALTHY = Fault("nothing", 0, 0.0)


def rounds_of(nodes: int, fault: Fault, noise_name: str, random: np.random.Generator) -> PairTable:
    """Measure random rounds of all nodes, without repeating a pair where possible."""
    half = nodes // 2
    one, other = (np.concatenate(ends) for ends in _pairs(nodes, random))
    number = np.repeat(np.arange(ROUNDS), half)
    slowness = noise(noise_name, len(one), random) + random.normal(scale=DRIFT, size=ROUNDS)[number]
    topology = leaves_of(nodes)
    slowness = slowness + fault.slowness(one, other, len(topology.leaves["leaf0"]))
    return PairTable(tuple(f"n{n}" for n in range(nodes)), number, one, other, slowness, topology)


def _pairs(nodes: int, random: np.random.Generator) -> tuple[list[Ints], list[Ints]]:
    """Draw both ends of the pairs of each round."""
    if nodes <= ROUNDS:
        each, rounds = [str(number) for number in range(nodes)], list[Ints]()
        while len(rounds) < ROUNDS:
            names = random.permutation(nodes)
            rounds += [
                names[np.array(tournament(each, turn), dtype=int)]
                for turn in random.permutation(rounds_of_all(nodes))
            ]
        ends = np.array(rounds[:ROUNDS])
        return list(ends[:, :, 0]), list(ends[:, :, 1])
    ones, others = [], []
    met = np.zeros(0, dtype=np.int64)
    while len(ones) < ROUNDS:
        order = random.permutation(nodes)
        one, other = order[::2], order[1::2]
        while True:
            codes = np.minimum(one, other) * nodes + np.maximum(one, other)
            again = np.flatnonzero(np.isin(codes, met))
            if not len(again):
                break
            for place, with_ in zip(again, random.integers(len(one), size=len(again)), strict=True):
                other[[place, with_]] = other[[with_, place]]
        met = np.concatenate([met, codes])
        ones.append(one)
        others.append(other)
    return ones, others


def first_rounds(table: PairTable, count: int) -> PairTable:
    """Return the first rounds of a table."""
    rows = int(np.searchsorted(table.round, count))
    columns = (table.round, table.one, table.other, table.slowness)
    return PairTable(table.names, *(column[:rows] for column in columns), table.topology)


@dataclass
class Run:
    """Result of one run: first rounds, None for never.

    ``found``: the true culprit was among the accused; ``right``: it alone was accused, without an
    alternative; ``wrong``: something else was ever accused; ``cleared``: all healthy nodes were
    cleared.
    """

    found: int | None = None
    right: int | None = None
    wrong: bool = False
    cleared: int | None = None

    def note(self, accused: Sequence[Any], true: set[tuple[Kind, str]], count: int) -> None:
        """Note who is accused after ``count`` rounds: items with kind, name and alternatives."""
        named = {(item.kind, item.name) for item in accused}
        sure = {(item.kind, item.name) for item in accused if not item.alternatives}
        # Culprits as alternatives name them; an accusation with the truth among them is not wrong.
        names = {name if kind is Kind.UPLINK else f"{kind} {name}" for kind, name in true}
        hedged = {(item.kind, item.name) for item in accused if names & {*item.alternatives}}
        self.wrong |= bool(named - true - hedged)
        if true and self.found is None and (true <= named or hedged):
            self.found = count
        if true and self.right is None and named == sure == true:
            self.right = count


def follow(nodes: int, fault: Fault, noise_name: str, seed: Sequence[int]) -> Run:
    """Simulate a run of random rounds, judged after each, until it is right or all are cleared."""
    random = np.random.default_rng(seed)
    table = rounds_of(nodes, fault, noise_name, random)
    true, run = fault.true(), Run()
    for count in range(1, ROUNDS + 1):
        verdict = judge_table(first_rounds(table, count), PairQuantity.RATE, SETTINGS)
        run.note(verdict.accused, true, count)
        if run.cleared is None and verdict.cleared.sum() >= len(verdict.cleared) - len(true):
            run.cleared = count
        if run.right is not None or (not true and run.cleared is not None):
            break
    return run


def quick(nodes: int, fault: Fault, noise_name: str, seed: Sequence[int]) -> tuple[Run, int]:
    """Simulate a run in mode quick until it ends, and its rounds; a bad pair is in the first."""
    random = np.random.default_rng(seed)
    names = [f"n{number}" for number in range(nodes)]
    topology = leaves_of(nodes)
    number = {name: place for place, name in enumerate(names)}
    leaf = len(topology.leaves["leaf0"])
    seen: list[PairObservation] = []
    verdict = judge(seen, names, topology, SETTINGS)
    run, done, true = Run(), 0, fault.true()
    while step := next_round(
        Mode.QUICK, names, seen, verdict, topology=topology, settings=SETTINGS, seed=seed[-1]
    ):
        pairs = list(step.pairs)
        if fault.kind == "pair" and not done:
            rest = [node for pair in pairs for node in pair if node not in ("n0", "n1")]
            pairs = [("n0", "n1"), *zip(rest[::2], rest[1::2], strict=True)]
        one = np.array([number[a] for a, _ in pairs])
        other = np.array([number[b] for _, b in pairs])
        slowness = noise(noise_name, len(pairs), random) + random.normal(scale=DRIFT)
        slowness = slowness + fault.slowness(one, other, leaf)
        seen += [
            PairObservation(done, pair, rate_mb_s=math.exp(-value))
            for pair, value in zip(pairs, slowness, strict=True)
        ]
        done += 1
        verdict = judge(seen, names, topology, SETTINGS)
        run.note(verdict.accusations, true, done)
    if verdict.decided:
        run.cleared = done
    return run, done


@dataclass(frozen=True)
class Portion:
    """Runs of one kind, stored in one file."""

    way: str
    nodes: int
    fault: Fault
    noise: str
    runs: int = 0

    @property
    def name(self) -> str:
        """Name of its file."""
        fault = self.fault
        of = f"{fault.kind}-{fault.count}-{fault.slower}" if fault.slower else "healthy"
        return f"{self.way}-{self.nodes}-{of}-{self.noise}"

    def seed(self) -> tuple[int, ...]:
        """Return the seed from which each run's follows by its number."""
        fault = self.fault
        kind = ("nothing", "node", "pair", "uplink").index(fault.kind)
        which = ("normal", "recorded", "disturbed").index(self.noise)
        way = ("random", "quick").index(self.way)
        return SEED, way, self.nodes, kind, fault.count, round(100 * fault.slower), which

    def simulate(self, seconds: float, before: dict[str, Any] | None = None) -> dict[str, Any]:
        """Simulate the runs missing in ``before``, or as many as ``seconds`` allow."""
        begun = time.monotonic()
        lists = {name: [] for name in ("found", "right", "cleared", "rounds")}
        result = {"portion": asdict(self), "seed": list(self.seed()), "seconds": 0.0}
        result = {**result, **lists, "wrong": 0, **(before or {})}
        first = len(result["found"])
        for number in range(first, self.runs):
            if number >= first + LEAST_RUNS and time.monotonic() - begun > seconds:
                break
            seed = (*self.seed(), number)
            if self.way == "quick":
                run, count = quick(self.nodes, self.fault, self.noise, seed)
                result["rounds"].append(count)
            else:
                run = follow(self.nodes, self.fault, self.noise, seed)
            for name in ("found", "right", "cleared"):
                result[name].append(getattr(run, name))
            result["wrong"] += run.wrong
        result["seconds"] = round(result["seconds"] + time.monotonic() - begun, 1)
        return result


def portions() -> Iterator[Portion]:
    """Yield all portions of the campaign, the most wanted first."""
    for row in TABLES["plants"]["pair-power"]:
        several = itertools.product(row["noise"], row["runs"].items(), row["slow"])
        for which, (nodes, runs), (kind, count) in several:
            for slower in SLOWER if count else (0.0,):
                if count < nodes:
                    yield Portion(row["way"], nodes, Fault(kind, count, slower), which, runs)


def results(folder: Path) -> dict[str, dict[str, Any]]:
    """Read the results by name of the portion."""
    return {
        portion.name: json.loads(file.read_text())
        for portion in portions()
        if (file := folder / f"{portion.name}.json").exists()
    }


def needed(rounds: Sequence[int | None], share: float = 0.99) -> int | None:
    """Return the rounds after which a share of the runs were there; None: never."""
    ordered = sorted(math.inf if number is None else number for number in rounds)
    last = ordered[math.ceil(share * len(ordered)) - 1]
    return None if math.isinf(last) else int(last)


def cell(result: dict[str, Any] | None) -> str:
    """Return the rounds until 99 % are found and until 99 % are right, or the share ever so."""
    if result is None:
        return "not simulated"
    parts = []
    for what in ("found", "right"):
        rounds = needed(result[what])
        share = sum(number is not None for number in result[what]) / len(result[what])
        parts.append(f"never ({100 * share:.0f} %)" if rounds is None else str(rounds))
    return parts[0] if parts[0] == parts[1] else " / ".join(parts)


def _seeds(several: Sequence[dict[str, Any]]) -> str:
    """Return the common parts of the runs' seeds; a star where they differ."""
    columns = zip(*(result["seed"] for result in several), strict=True)
    return " ".join(str(column[0]) if len({*column}) == 1 else "*" for column in columns)


def tables(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of its tables in docs/: faults, healthy runs, bad pairs."""
    slower = [f"slower by {100 * share:.0f} %" for share in SLOWER]
    ends = (*slower, "runs", "runs that accused others", "seeds")

    def rows(way: str, slow: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
        several = itertools.product(("normal", "recorded"), slow, NODES)
        for which, (kind, count), nodes in several:
            faults = [Fault(kind, count, share) for share in SLOWER]
            every = [found.get(Portion(way, nodes, fault, which).name) for fault in faults]
            if there := [result for result in every if result is not None]:
                runs = ", ".join(str(len(result["found"])) for result in there)
                wrong = str(sum(result["wrong"] for result in there))
                begins = which, faults[0].words, f"{nodes:,}"
                yield [*begins, *map(cell, every), runs, wrong, _seeds(there)]

    slow = rows("random", [("node", 1), ("node", 2), ("node", 5), ("uplink", 1)])
    yield from ("", *markdown([["noise", "slow", "nodes", *ends], *slow]))
    heads = (
        *("noise", "nodes", "healthy runs", "that accused anyone", "share, 95 %"),
        *("all cleared after", "never", "seeds"),
    )
    healthy = [heads]
    for which, nodes in itertools.product(("normal", "disturbed", "recorded"), NODES):
        if result := found.get(Portion("random", nodes, HEALTHY, which).name):
            runs = len(result["cleared"])
            low, high = exact_interval(result["wrong"], runs)
            cleared = sorted(number for number in result["cleared"] if number is not None)
            after = f"{cleared[len(cleared) // 2]} rounds" if cleared else "-"
            share = f"{100 * low:.3f} to {100 * high:.3f} %"
            never = f"{100 * (1 - len(cleared) / runs):.0f} %"
            begins = which, f"{nodes:,}", f"{runs:,}", str(result["wrong"])
            healthy.append((*begins, share, after, never, _seeds([result])))
    yield from ("", *markdown(healthy))
    pairs = ([which, nodes, *rest] for which, _, nodes, *rest in rows("quick", [("pair", 1)]))
    yield from ("", *markdown([["noise", "nodes", *ends], *pairs]))


def chart(found: dict[str, dict[str, Any]], file: Path) -> None:
    """Draw the share of runs that named the one slow node, round by round."""
    import altair as alt
    import vl_convert

    points = [
        {
            "nodes": nodes,
            "noise": {"normal": "5 %, normal", "recorded": "recorded"}[which],
            "slower": f"{100 * share:.0f} %",
            "round": count,
            "named": sum(r is not None and r <= count for r in result["right"])
            / len(result["right"]),
        }
        for nodes, share, which in itertools.product(NODES, SLOWER, ("normal", "recorded"))
        if (result := found.get(Portion("random", nodes, Fault("node", 1, share), which).name))
        for count in range(1, ROUNDS + 1)
    ]
    drawn = (
        alt.Chart(alt.InlineData(points), width=230, height=150)
        .mark_line(interpolate="step-after")
        .encode(
            alt.X("round:Q", title="rounds", scale=alt.Scale(domain=[1, ROUNDS])),
            alt.Y("named:Q", title="named, and nothing else", axis=alt.Axis(format="%")),
            alt.Color("slower:N", title="slower by", sort=[f"{100 * s:.0f} %" for s in SLOWER]),
            alt.StrokeDash("noise:N", title="noise"),
        )
        .facet(
            facet=alt.Facet("nodes:O", title="one slow node of", header=alt.Header(format=",")),
            columns=3,
        )
    )
    version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    specification = {**drawn.to_dict(validate=False), "background": "white"}
    file.write_text(vl_convert.vegalite_to_svg(specification, vl_version=version))


def run(options: argparse.Namespace) -> bool:
    """Simulate, or print results."""
    if options.tables:
        print("\n".join(tables(results(options.folder))))
    if options.chart:
        chart(results(options.folder), options.chart)
    if options.tables or options.chart:
        return True
    # It takes hours, beside other work.
    os.nice(19)
    options.folder.mkdir(parents=True, exist_ok=True)
    for portion in portions():
        file = options.folder / f"{portion.name}.json"
        before = json.loads(file.read_text()) if file.exists() else {"found": []}
        if options.only in portion.name and len(before["found"]) < portion.runs:
            result = portion.simulate(options.seconds, before)
            file.write_text(json.dumps(result))
            print(
                f"{portion.name}: {len(result['found'])} runs in {result['seconds']} s; found and"
                f" right in {cell(result)} rounds; {result['wrong']} wrong",
                flush=True,
            )
    return True
