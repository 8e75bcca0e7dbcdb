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
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ci.evaluation.plants import TABLES
from ci.evaluation.table import exact_interval, show
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
SEEDS = (
    ("random", "quick"),
    ("nothing", "node", "pair", "uplink"),
    ("normal", "recorded", "disturbed"),
)
"""Ways, kinds of faults and noises; their places in these are parts of seeds."""
LEAST_RUNS = 20
REACHED = ("found", "right", "cleared")
"""Events of a run, each in a round or never."""
CHART = TABLES["evaluations"]["pair-chart"]


@cache
def _recorded() -> Floats:
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


@cache
def _leaves_of(nodes: int) -> Topology:
    """Return a tree with as many leaves as nodes per leaf, and a spine."""
    size = max(2, 2 ** (round(math.log2(nodes)) // 2))
    members = [f"n{number}" for number in range(nodes)]
    leaves = {
        f"leaf{first // size}": tuple(members[first : first + size])
        for first in range(0, nodes, size)
    }
    return Topology(leaves, dict.fromkeys(leaves, "spine"))


@dataclass
class Run:
    """Result of one run: first rounds, None for never.

    ``found``: the true culprit was among the accused; ``right``: it alone was accused, without an
    alternative; ``wrong``: something else was ever accused; ``cleared``: all healthy nodes were
    cleared; ``rounds``: how many it took.
    """

    found: int | None = None
    right: int | None = None
    wrong: bool = False
    cleared: int | None = None
    rounds: int = 0

    def note(self, accused: Sequence[Any], true: set[tuple[Kind, str]], cleared: bool) -> None:
        """Note another round: accused items with kind, name and alternatives."""
        self.rounds += 1
        named = {(item.kind, item.name) for item in accused}
        sure = {(item.kind, item.name) for item in accused if not item.alternatives}
        # Culprits as alternatives name them; an accusation with the truth among them is not wrong.
        names = {name if kind is Kind.UPLINK else f"{kind} {name}" for kind, name in true}
        hedged = {(item.kind, item.name) for item in accused if names & {*item.alternatives}}
        self.wrong |= bool(named - true - hedged)
        if true and self.found is None and (true <= named or hedged):
            self.found = self.rounds
        if true and self.right is None and named == sure == true:
            self.right = self.rounds
        if cleared and self.cleared is None:
            self.cleared = self.rounds


@dataclass(frozen=True)
class Portion:
    """Runs of one kind, stored in one file.

    ``count`` nodes, a pair or the first leaf's uplink are ``slower`` by a share; ``way``: of
    choosing rounds, ``random`` or mode ``quick``.
    """

    way: str
    nodes: int
    kind: str
    count: int
    slower: float
    noise: str
    runs: int = 0

    @property
    def name(self) -> str:
        """Name of its file."""
        of = f"{self.kind}-{self.count}-{self.slower}" if self.slower else "healthy"
        return f"{self.way}-{self.nodes}-{of}-{self.noise}"

    @property
    def seed(self) -> tuple[int, ...]:
        """Seed from which each run's follows by its number."""
        way, kind, noise = (
            names.index(name)
            for names, name in zip(SEEDS, (self.way, self.kind, self.noise), strict=True)
        )
        return SEED, way, self.nodes, kind, self.count, round(100 * self.slower), noise

    @property
    def true(self) -> set[tuple[Kind, str]]:
        """Culprits to accuse."""
        culprits = {
            "node": {(Kind.NODE, f"n{number}") for number in range(self.count)},
            "pair": {(Kind.PAIR, "n0 – n1")},
            "uplink": {(Kind.UPLINK, UPLINK_OF + "leaf0")},
        }
        return culprits.get(self.kind, set())

    def measured(self, one: Ints, other: Ints, number: Ints, random: np.random.Generator) -> Floats:
        """Draw the slowness of pairs of rounds, in logarithms.

        Faulty nodes and leaves have the least numbers. Noise is ``normal``; ``disturbed``: one in a
        hundred is also up to 10 times slower; ``recorded``: drawn from the testbed's.
        """
        count, leaf = len(one), len(_leaves_of(self.nodes).leaves["leaf0"])
        if self.noise == "recorded":
            off = random.choice(_recorded(), size=count)
        else:
            off = random.normal(scale=NOISE, size=count)
        if self.noise == "disturbed":
            hit = random.random(count) < 0.01
            off = off + hit * random.uniform(0, math.log(10), size=count)
        slow = {
            "node": (one < self.count) | (other < self.count),
            "pair": one + other == 1,
            "uplink": (one < leaf) != (other < leaf),
        }.get(self.kind, np.zeros(count))
        drift = random.normal(scale=DRIFT, size=number.max() + 1)[number]
        return off + drift - math.log1p(-self.slower) * slow

    def run(self, number: int) -> Run:
        """Simulate one run, judged after each of its rounds."""
        random = np.random.default_rng((*self.seed, number))
        return self._random(random) if self.way == "random" else self._quick(random, number)

    def _random(self, random: np.random.Generator) -> Run:
        """Go on until it is right or all are cleared."""
        one, other = (np.concatenate(ends) for ends in _pairs(self.nodes, random))
        number = np.repeat(np.arange(ROUNDS), self.nodes // 2)
        columns = (number, one, other, self.measured(one, other, number, random))
        names, run, true = tuple(f"n{node}" for node in range(self.nodes)), Run(), self.true
        while run.rounds < ROUNDS and run.right is None and (true or run.cleared is None):
            first = slice((run.rounds + 1) * (self.nodes // 2))
            table = PairTable(names, *(each[first] for each in columns), _leaves_of(self.nodes))
            verdict = judge_table(table, PairQuantity.RATE, SETTINGS)
            cleared = verdict.cleared.sum() >= len(verdict.cleared) - len(true)
            run.note(verdict.accused, true, cleared)
        return run

    def _quick(self, random: np.random.Generator, seed: int) -> Run:
        """Go on as mode quick does; a bad pair is in the first round."""
        names, topology = [f"n{node}" for node in range(self.nodes)], _leaves_of(self.nodes)
        run, seen = Run(), list[PairObservation]()
        more = {"topology": topology, "settings": SETTINGS, "seed": seed}
        verdict = judge(seen, names, topology, SETTINGS)
        while step := next_round(Mode.QUICK, names, seen, verdict, **more):
            pairs = list(step.pairs)
            if self.kind == "pair" and not run.rounds:
                rest = [node for pair in pairs for node in pair if node not in ("n0", "n1")]
                pairs = [("n0", "n1"), *zip(rest[::2], rest[1::2], strict=True)]
            one, other = np.array([[int(node[1:]) for node in pair] for pair in pairs]).T
            slowness = self.measured(one, other, np.zeros(len(one), dtype=int), random)
            seen += [
                PairObservation(run.rounds, pair, rate_mb_s=math.exp(-value))
                for pair, value in zip(pairs, slowness, strict=True)
            ]
            verdict = judge(seen, names, topology, SETTINGS)
            run.note(verdict.accusations, self.true, verdict.decided)
        return run

    def simulate(self, seconds: float, before: dict[str, Any] | None = None) -> dict[str, Any]:
        """Simulate the runs missing in ``before``, or as many as ``seconds`` allow."""
        begun = time.monotonic()
        result: dict[str, Any] = {"seed": list(self.seed), "seconds": 0.0, "wrong": 0}
        result |= {name: [] for name in REACHED} | (before or {})
        first = len(result["found"])
        for number in range(first, self.runs):
            if number >= first + LEAST_RUNS and time.monotonic() - begun > seconds:
                break
            run = self.run(number)
            for name in REACHED:
                result[name].append(getattr(run, name))
            result["wrong"] += run.wrong
        result["seconds"] = round(result["seconds"] + time.monotonic() - begun, 1)
        return result


def _pairs(nodes: int, random: np.random.Generator) -> tuple[list[Ints], list[Ints]]:
    """Draw both ends of the pairs of each round, without repeating a pair where possible."""
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


def portions() -> Iterator[Portion]:
    """Yield all portions of the campaign, the most wanted first."""
    for row in TABLES["plants"]["pair-power"]:
        several = itertools.product(row["noise"], row["runs"].items(), row["slow"])
        for noise, (nodes, runs), (kind, count) in several:
            for slower in SLOWER if count else (0.0,):
                if count < nodes:
                    yield Portion(row["way"], nodes, kind, count, slower, noise, runs)


def needed(rounds: Sequence[int | None], share: float = 0.99) -> int | None:
    """Return the rounds after which a share of the runs were there; None: never."""
    ordered = sorted(math.inf if number is None else number for number in rounds)
    last = ordered[math.ceil(share * len(ordered)) - 1]
    return None if math.isinf(last) else int(last)


def _cell(result: dict[str, Any] | None) -> str:
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


def print_tables(found: dict[str, dict[str, Any]]) -> None:
    """Print tables of results by the portion's name: faults, healthy runs, bad pairs."""
    slower = [f"slower by {100 * share:.0f} %" for share in SLOWER]
    ends = (*slower, "runs", "runs that accused others", "seeds")

    def rows(way: str, slow: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
        several = itertools.product(("normal", "recorded"), slow, NODES)
        for noise, (kind, count), nodes in several:
            faults = [Portion(way, nodes, kind, count, share, noise) for share in SLOWER]
            every = [found.get(fault.name) for fault in faults]
            if there := [result for result in every if result is not None]:
                runs = ", ".join(str(len(result["found"])) for result in there)
                wrong = str(sum(result["wrong"] for result in there))
                begins = noise, f"{count} {kind}{'s' * (count > 1)}", f"{nodes:,}"
                yield [*begins, *map(_cell, every), runs, wrong, _seeds(there)]

    slow = rows("random", [("node", 1), ("node", 2), ("node", 5), ("uplink", 1)])
    show(("noise", "slow", "nodes", *ends), slow)
    healthy = []
    for noise, nodes in itertools.product(("normal", "disturbed", "recorded"), NODES):
        if result := found.get(Portion("random", nodes, "nothing", 0, 0.0, noise).name):
            runs = len(result["cleared"])
            low, high = exact_interval(result["wrong"], runs)
            cleared = sorted(number for number in result["cleared"] if number is not None)
            after = f"{cleared[len(cleared) // 2]} rounds" if cleared else "-"
            share = f"{100 * low:.3f} to {100 * high:.3f} %"
            never = f"{100 * (1 - len(cleared) / runs):.0f} %"
            begins = noise, f"{nodes:,}", f"{runs:,}", str(result["wrong"])
            healthy.append((*begins, share, after, never, _seeds([result])))
    heads = (
        *("noise", "nodes", "healthy runs", "that accused anyone", "share, 95 %"),
        *("all cleared after", "never", "seeds"),
    )
    show(heads, healthy)
    pairs = ([noise, nodes, *rest] for noise, _, nodes, *rest in rows("quick", [("pair", 1)]))
    show(("noise", "nodes", *ends), pairs)


def chart(found: dict[str, dict[str, Any]]) -> str:
    """Draw the share of runs that named the one slow node, round by round, as SVG."""
    import vl_convert

    points = [
        {
            "nodes": nodes,
            "noise": {"normal": "5 %, normal", "recorded": "recorded"}[noise],
            "slower": f"{100 * share:.0f} %",
            "round": count,
            "named": sum(r is not None and r <= count for r in result["right"])
            / len(result["right"]),
        }
        for nodes, share, noise in itertools.product(NODES, SLOWER, ("normal", "recorded"))
        if (result := found.get(Portion("random", nodes, "node", 1, share, noise).name))
        for count in range(1, ROUNDS + 1)
    ]
    return vl_convert.vegalite_to_svg({**CHART, "data": {"values": points}})


def run(options: argparse.Namespace) -> bool:
    """Simulate, or print results."""
    files = {portion: options.folder / f"{portion.name}.json" for portion in portions()}
    found = {
        portion.name: json.loads(file.read_text())
        for portion, file in files.items()
        if file.exists()
    }
    if options.tables:
        print_tables(found)
    if options.chart:
        options.chart.write_text(chart(found))
    if options.tables or options.chart:
        return True
    # It takes hours, beside other work.
    os.nice(19)
    options.folder.mkdir(parents=True, exist_ok=True)
    for portion, file in files.items():
        before = found.get(portion.name, {"found": []})
        if options.only in portion.name and len(before["found"]) < portion.runs:
            result = portion.simulate(options.seconds, before)
            file.write_text(json.dumps(result))
            print(
                f"{portion.name}: {len(result['found'])} runs in {result['seconds']} s; found and"
                f" right in {_cell(result)} rounds; {result['wrong']} wrong",
                flush=True,
            )
    return True
