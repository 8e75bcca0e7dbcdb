"""Runs of simulated rounds that netproof judges after each: accusations, and when."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ci.pair_power.rounds import DRIFT, ROUNDS, Fault, first_rounds, leaves_of, noise, rounds_of
from netproof.pairs.accusation import QuantityVerdict, judge, judge_table
from netproof.pairs.model import Kind, PairObservation
from netproof.pairs.rounds import Mode, next_round
from netproof.site.pair_settings import PairQuantity, PairSettings

SETTINGS = PairSettings(rounds=ROUNDS)


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


def follow(nodes: int, fault: Fault, noise_name: str, seed: Sequence[int]) -> Run:
    """Simulate a run of random rounds, judged after each, until it is right or all are cleared."""
    random = np.random.default_rng(seed)
    table = rounds_of(nodes, fault, noise_name, random)
    topology = leaves_of(nodes)
    true = fault.true()
    run = Run()
    for count in range(1, ROUNDS + 1):
        verdict = judge_table(first_rounds(table, count), PairQuantity.RATE, topology, SETTINGS)
        _note(run, verdict, true, count)
        if run.right is not None or (not true and run.cleared is not None):
            break
    return run


def _note(run: Run, verdict: QuantityVerdict, true: set[tuple[Kind, str]], count: int) -> None:
    accused = {item.key for item in verdict.accused}
    sure = {item.key for item in verdict.accused if not item.alternatives}
    # An accusation with the truth among its alternatives is not wrong.
    hedged = {item.key for item in verdict.accused if _names(true) & {*item.alternatives}}
    run.wrong |= bool(accused - true - hedged)
    if true and run.found is None and (true <= accused or hedged):
        run.found = count
    if true and run.right is None and accused == true and sure == true:
        run.right = count
    if run.cleared is None and verdict.cleared.sum() >= len(verdict.cleared) - len(true):
        run.cleared = count


def _names(things: set[tuple[Kind, str]]) -> set[str]:
    """Return the culprits' names as alternatives have them."""
    return {name if kind is Kind.UPLINK else f"{kind} {name}" for kind, name in things}


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
        slowness = slowness + fault.slowness(one, other, leaf) if fault.slower else slowness
        seen += [
            PairObservation(done, pair, rate_mb_s=math.exp(-value))
            for pair, value in zip(pairs, slowness, strict=True)
        ]
        done += 1
        verdict = judge(seen, names, topology, SETTINGS)
        accused = {(item.kind, item.name) for item in verdict.accusations}
        sure = {(item.kind, item.name) for item in verdict.accusations if not item.alternatives}
        hedged = {
            (item.kind, item.name)
            for item in verdict.accusations
            if _names(true) & {*item.alternatives}
        }
        run.wrong |= bool(accused - true - hedged)
        if true and run.found is None and (true <= accused or hedged):
            run.found = done
        if true and run.right is None and accused == sure == true:
            run.right = done
    if verdict.decided:
        run.cleared = done
    return run, done
