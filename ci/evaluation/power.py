"""Plant changes into recorded sessions and rejudge them, to see which the verdict catches.

Cases with a planted change have to turn red; red without one is a false alarm. Changes that
``netproof verdict --power`` states of one session are planted into the others, which have to find
them as often as stated.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ci.evaluation.plants import TABLES
from ci.evaluation.table import counted, show
from netproof import codec
from netproof.benchmarks import registry
from netproof.criteria import Level
from netproof.criteria.findings import REFERENCE
from netproof.criteria.registry import BY_FINDING
from netproof.measurement.case import Case
from netproof.session import session as sessions
from netproof.session.measured import Measured
from netproof.session.session import Session
from netproof.site import folders
from netproof.site.matrix import Matrix
from netproof.verdict import derive, power, session_verdict
from netproof.verdict.judge import judge
from netproof.verdict.power import SURE, Changed, Degradation
from netproof.verdict.references import Entries, ReferenceFile, entries_of
from netproof.verdict.verdict import CaseVerdict, Verdict

FACTORS = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
"""Factors on the time by growing changes."""
SHARES = (0.5, 1.0, 1.5)
"""Shares of the stated change to plant."""
FOUND_OF_TEN = 0.9
"""Aim: share of the sessions in which a planted change has to be found."""


@dataclass(frozen=True, kw_only=True)
class Plant:
    """A change: the cases concerned, and its effect on the curves of their launches.

    ``of``: the cases' attributes, of the score ``baseline`` or the ``last`` MPI library whose
    collectives were measured, or only those with ``ping_pong``; ``times``: as long take messages of
    ``sizes``, or ``each_byte``, so that functions without bytes, such as Barrier, stay as they are;
    ``bandwidth``: the share of it that large messages keep, likewise; ``asks_above``: the size in
    bytes above which messages are announced, by two more latencies. ``floor``: least tolerance of
    references derived from the other sessions; None: the references as they stand. ``launches``:
    number of first launches that have it; None for all.
    """

    said: str
    of: Mapping[str, str]
    times: float = 1.0
    sizes: tuple[int, int] = (0, 1 << 60)
    each_byte: bool = False
    bandwidth: float | None = None
    asks_above: int | None = None
    floor: float | None = None
    launches: int | None = None

    def concerns(self, case: Case, matrix: Matrix) -> bool:
        """Check whether a case has it."""
        imb = (one.environment for one in matrix.cases[::-1] if one.benchmark == "imb")
        last, baseline = next(imb, None), matrix.baseline
        wanted = {
            name: {"baseline": getattr(baseline, name, None), "last": last}.get(value, value)
            for name, value in self.of.items()
        }
        if wanted.pop("ping_pong", None) and not registry.function_of(case).ping_pong:
            return False
        return all(getattr(case, name) == value for name, value in wanted.items())

    def changing(self, measured: Measured) -> Changed:
        """Return its effect on a curve of a case."""
        if self.each_byte or self.bandwidth is not None:
            if not any(measured.curve.sizes):
                return lambda curve: curve
            return power.slower_by_the_byte(measured, self.times / (self.bandwidth or 1))
        asking_us = 2 * (measured.landmarks.latency_us or 0.0)

        def new(size: int, us: float) -> float:
            if self.asks_above is not None:
                return us + (asking_us if size > self.asks_above else 0.0)
            return us * (self.times if self.sizes[0] <= size <= self.sizes[1] else 1.0)

        return lambda curve: power.with_times(
            curve, [new(*point) for point in zip(curve.sizes, curve.time_us, strict=True)]
        )

    def into(self, measured: Measured) -> Measured:
        """Return a case's measurement with the change."""
        changed, some = self.changing(measured), measured.launches[: self.launches]
        new = [replace(one, curves=(changed(one.curve),)) for one in some]
        return measured.with_launches([*new, *measured.launches[len(some) :]])


PLANTED, _GROWING = (
    codec.decode(tuple[Plant, ...], TABLES["plants"]["power"][name], f"plants.yaml: {name}")
    for name in ("planted", "growing")
)
"""The rows of docs/validation/power.md."""
GROWING = {
    plant.said: [
        replace(plant, said=f"{plant.said}, {times:g} times", times=times) for times in FACTORS
    ]
    for plant in _GROWING
}
"""Changes from mild to gross by kind, each with all ``FACTORS``."""


@dataclass(frozen=True)
class Recorded:
    """A recorded session, its matrix, and its verdict."""

    session: Session
    matrix: Matrix
    verdict: Verdict
    references: Entries | None

    def judged_with(self, plant: Plant) -> tuple[Verdict, set[tuple]]:
        """Return the verdict with a planted change, and the keys of the cases that have it."""
        results, having = [], set()
        for result in self.session.results:
            case, measured = result.case, result.measured
            if case is not None and measured and plant.concerns(case, self.matrix):
                changed = plant.into(measured)
                pairs = zip(changed.launches, measured.launches, strict=True)
                if any(new.curve != old.curve for new, old in pairs):
                    result = replace(result, measured=changed)
                    having.add(case.key())
            results.append(result)
        session = replace(self.session, results=tuple(results))
        return judge(self.matrix, session, references=self.references), having

    def by_derived(self, others: Sequence[Recorded], floor: float) -> Recorded:
        """Return the same session, judged by references derived from other sessions.

        ``floor``: their least tolerance. Tighter bounds of the file stay. Raises NetproofError if
        the sessions suffice for none.
        """
        system = self.matrix.cases[0].system
        place = folders.of_references()
        several = [one.session for one in others]
        made = derive.derived(several, ReferenceFile(place / f"{system}.yaml"), system, floor=floor)
        entries, stands = {one.case.key(): one.entries for one in made}, entries_of(place, system)

        def references(case: Case) -> Mapping[str, Any]:
            return {**stands(case), **entries.get(case.key(), {})}

        verdict = judge(self.matrix, self.session, references=references)
        return replace(self, verdict=verdict, references=references)


def red(verdict: Verdict) -> dict[tuple, CaseVerdict]:
    """Return the failed cases by key."""
    return {one.case.key(): one for one in verdict.cases if one.failed}


def unclear(verdict: Verdict) -> dict[tuple, CaseVerdict]:
    """Return the inconclusive cases by key."""
    return {one.case.key(): one for one in verdict.cases if one.level is Level.INCONCLUSIVE}


def criteria_of(several: Iterable[CaseVerdict], level: Level = Level.FAIL) -> Counter[str]:
    """Count the cases that each criterion has at ``level``."""
    of_each = ({one.criterion for one in case.findings if one.level is level} for case in several)
    return Counter(name for names in of_each for name in sorted(names))


def print_planted(recorded: Sequence[Recorded]) -> bool:
    """Print the table of planted changes; return whether all were found often enough."""
    rows, enough = list[tuple[object, ...]](), True
    for plant in PLANTED:
        judged_by, without, false = "as they stand", recorded, "-"
        if plant.floor is not None:
            judged_by = f"derived, at least ±{plant.floor:.1%}"
            if len(recorded) <= derive.LEAST_SESSIONS:
                enough = False
                why = f"takes {derive.LEAST_SESSIONS + 1} sessions"
                rows.append((plant.said, judged_by, why, *"----"))
                continue
            without = [
                one.by_derived([other for other in recorded if other is not one], plant.floor)
                for one in recorded
            ]
            pairs = zip(recorded, without, strict=True)
            reds = [red(by.verdict).keys() - red(one.verdict).keys() for one, by in pairs]
            false = str(sum(map(bool, reds)))
        count, by = _found(plant, without)
        enough = enough and count["sessions"] >= FOUND_OF_TEN * len(recorded)
        sessions = f"{count['sessions']} of {len(recorded)}"
        cases, names = f"{count['flagged']} of {count['cases']}", counted(by.elements())
        rows.append((plant.said, judged_by, sessions, false, count["undecided"], cases, names))
    heading = (
        *("planted", "references", "sessions red", "red with nothing planted"),
        *("only inconclusive", "cases red", "by"),
    )
    show(heading, rows)
    return enough


def _found(plant: Plant, recorded: Sequence[Recorded]) -> tuple[Counter[str], Counter[str]]:
    """Count what a change did, and the cases by criterion.

    ``sessions`` in which it turned cases red, and those with only ``undecided`` ones; ``flagged``
    of the ``cases`` that had it.
    """
    counts, by = Counter[str](), Counter[str]()
    for one in recorded:
        verdict, having = one.judged_with(plant)
        new = {
            key: judged
            for key, judged in red(verdict).items()
            if key in having and key not in red(one.verdict)
        }
        asks = unclear(verdict).keys() & having - unclear(one.verdict).keys()
        counts["sessions"] += bool(new)
        counts["undecided"] += bool(asks and not new)
        counts["flagged"] += len(new)
        counts["cases"] += len(having)
        by += criteria_of(new.values())
        if not new:
            by += criteria_of([unclear(verdict)[key] for key in asks], Level.INCONCLUSIVE)
    return counts, by


def print_growing(recorded: Sequence[Recorded]) -> None:
    """Print from which size on growing changes are found, and criteria that find none."""
    against, rows = Counter[str](), []
    for name, several in GROWING.items():
        cells = []
        for plant in several:
            counts, criteria = _found(plant, recorded)
            against += criteria
            most = criteria.most_common(1)
            by = f" ({most[0][0]})" if counts["sessions"] and most else ""
            asks = f", {counts['undecided']} inconclusive" if counts["undecided"] else ""
            cells.append(f"{counts['sessions']}{asks}{by}" if counts["cases"] else "-")
        rows.append((name, *cells))
    times = [f"{factor:g} times" for factor in FACTORS]
    show((f"slower, red of {len(recorded)}", *times), rows)
    none = [name for name in (*BY_FINDING, REFERENCE) if not against[name]]
    print(f"Cases that each criterion was against: {counted(against.elements())}.")
    print(f"Against none of them: {', '.join(none) or 'no criterion'}.\n")


def print_false(recorded: Sequence[Recorded]) -> None:
    """Print cases by level and criterion with nothing planted."""
    found = [item for one in recorded for case in one.verdict.cases for item in case.findings]
    count = Counter((item.criterion, item.level) for item in found)
    order = [Level.FAIL, Level.INCONCLUSIVE, Level.WARN, Level.PASS]
    names = sorted({item.criterion for item in found})
    rows = [(name, *(count[name, level] for level in order)) for name in names]
    show(("criterion, nothing planted", *order), rows)


def print_stated(recorded: Sequence[Recorded], tries: int, chance: random.Random) -> None:
    """Print how often changes that one session states as found are found in another."""
    examined = [power.Examined(one.session, one.matrix, one.references) for one in recorded]
    tried: dict[tuple[Degradation, float], list[bool]] = defaultdict(list)
    for _ in range(tries):
        one, other = chance.sample(range(len(recorded)), 2)
        passed = [judged.case for judged in recorded[one].verdict.cases if judged.passed]
        case = chance.choice(passed)
        stated = examined[one].power(case)
        for smallest in () if stated is None else stated[2]:
            stated_factor = smallest.sure or smallest.factor
            for share in SHARES if stated_factor is not None else ():
                planted = (smallest.change, 1 + share * (stated_factor - 1), smallest.size)
                found = examined[other].fails_with(case, *planted)
                if found is not None:
                    tried[smallest.change, share].append(bool(found))
    rows = [
        (change, f"{share:g}", len(several), f"{sum(several) / len(several):.0%}")
        for (change, share), several in sorted(tried.items())
    ]
    show(("change", "of what was stated", "tried", f"found (aim at 1: {SURE:.0%})"), rows)


def run(options: argparse.Namespace) -> bool:
    """Print the tables; return whether the aims are met."""
    seed = random.randrange(2**32) if options.seed is None else options.seed
    recorded, enough = list[Recorded](), True
    for path in options.reports:
        one = session_verdict.judge_session(sessions.load(path), again=True, fold=0)
        entries = session_verdict.references_of(one.matrix)
        recorded.append(Recorded(one.session, one.matrix, one.verdict, entries))
    print(f"{len(recorded)} sessions, seed {seed}\n")
    if options.only in (None, "planted"):
        print_false(recorded)
        enough = print_planted(recorded)
    if options.only in (None, "growing"):
        print_growing(recorded)
    if options.only in (None, "stated") and len(recorded) > 1:
        print_stated(recorded, options.tries, random.Random(seed))
    return enough
