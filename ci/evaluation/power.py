"""Plant changes into recorded sessions and rejudge them, to see which the verdict catches.

The sessions are of a healthy network. Cases with a planted change have to turn red; red without
one is a false alarm. Changes that ``netproof verdict --power`` states of one session are planted
into the others, which have to find them as often as stated.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci.evaluation.table import counted, markdown
from netproof.benchmarks import registry
from netproof.criteria import Level
from netproof.criteria.findings import REFERENCE
from netproof.criteria.registry import BY_FINDING
from netproof.measurement.case import Case
from netproof.session import session as sessions
from netproof.session.measured import Measured
from netproof.session.session import CheckResult, Session
from netproof.site import folders
from netproof.site.matrix import Matrix
from netproof.verdict import derive, power, session_verdict
from netproof.verdict.judge import judge
from netproof.verdict.power import SURE, Changed, Degradation
from netproof.verdict.references import Entries, ReferenceFile, entries_of
from netproof.verdict.verdict import CaseVerdict, Verdict

KIB = 1024
LESS_BANDWIDTH = (0.05, 0.1, 0.2)
"""Lost shares of the bandwidth; the references' tolerance is half of each."""
FACTORS = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
"""Factors on the time by growing changes."""
SHARES = (0.5, 1.0, 1.5)
"""Shares of the stated change to plant."""
FOUND_OF_TEN = 0.9
"""Aim: share of the sessions in which a planted change has to be found."""

Concerns = Callable[[Case], bool]
Changing = Callable[[Measured], Changed]


@dataclass(frozen=True)
class Plant:
    """A change: the cases concerned, and its effect on the curves of their launches.

    ``floor``: least tolerance of references derived from the other sessions; None: the references
    as they stand. ``launches``: number of first launches that have it; None for all.
    """

    name: str
    concerns: Concerns
    changing: Changing
    floor: float | None = None
    launches: int | None = None

    def into(self, measured: Measured) -> Measured:
        """Return a case's measurement with the change."""
        changed = self.changing(measured)
        launches = [
            dataclasses.replace(one, curve=changed(one.curve))
            if self.launches is None or place < self.launches
            else one
            for place, one in enumerate(measured.launches)
        ]
        return measured.with_launches(launches)


def _timed(new: Callable[[int, float], float]) -> Changed:
    """Return a change of curves: the ``new`` time of each size, from its size and time."""
    return lambda curve: power.with_times(
        curve, [new(*point) for point in zip(curve.sizes, curve.time_us, strict=True)]
    )


def longer(times: float, least: int = 0, most: float = float("inf")) -> Changing:
    """Return a change by which messages of ``least`` to ``most`` bytes take ``times`` as long."""
    return lambda _: _timed(lambda size, us: us * (times if least <= size <= most else 1.0))


def less_bandwidth(share: float) -> Changing:
    """Return a change by which each byte takes longer, so that large messages lose ``share``.

    Functions without bytes, such as Barrier, stay as they are.
    """

    def changing(measured: Measured) -> Changed:
        if not any(measured.curve.sizes):
            return lambda curve: curve
        return power.slower_by_the_byte(measured, 1 / (1 - share))

    return changing


def asking_above(limit: int) -> Changing:
    """Return a change by which messages above ``limit`` are announced: two more latencies."""

    def changing(measured: Measured) -> Changed:
        more = 2 * (measured.landmarks.latency_us or 0.0)
        return _timed(lambda size, us: us + (more if size > limit else 0.0))

    return changing


def _cases(**fields: str) -> Concerns:
    """Return a check for cases with these fields."""
    return lambda case: all(getattr(case, name) == value for name, value in fields.items())


_between = _cases(path="inter-node")


def _over(protocol: str, **fields: str) -> Concerns:
    return _cases(benchmark="netpipe", function=protocol, path="inter-node", **fields)


def _of_baseline(matrix: Matrix) -> Concerns:
    if (baseline := matrix.baseline) is None:
        return lambda _: False
    where = {"partition": baseline.partition, "environment": baseline.environment}
    return _cases(benchmark="imb", **where)


def _last_with_imb(matrix: Matrix) -> str:
    environments = [case.environment for case in matrix.cases if case.benchmark == "imb"]
    return environments[-1] if environments else ""


def _alltoall(matrix: Matrix) -> Concerns:
    return _cases(benchmark="imb", function="Alltoall", environment=_last_with_imb(matrix))


def plants(matrix: Matrix) -> tuple[Plant, ...]:
    """Return the rows of docs/validation/power.md for the configurations of a matrix.

    A change in one MPI library is in the last one whose collectives were measured.
    """
    last, below = _last_with_imb(matrix), KIB - 1

    def in_turns(case: Case) -> bool:
        one = case.environment == last and _between(case)
        return one and registry.function_of(case).ping_pong

    return (
        Plant("IMB of the score baseline 3 times slower", _of_baseline(matrix), longer(3)),
        Plant("every latency below 1 KiB 5 times longer", _between, longer(5, 0, below)),
        Plant(
            "Alltoall 4 times slower from 32 to 64 KiB, one MPI",
            _alltoall(matrix),
            longer(4, 32 * KIB, 64 * KIB),
        ),
        Plant(
            "NetPIPE over MPI 20 times slower at 2 KiB", _over("mpi"), longer(20, 2 * KIB, 2 * KIB)
        ),
        Plant(
            "NetPIPE over MPI 6 times slower at 16 KiB", _over("mpi"), longer(6, 16 * KIB, 16 * KIB)
        ),
        Plant("every latency below 1 KiB doubled", _between, longer(2, 0, below)),
        Plant("an eager limit of 64 bytes, one MPI", in_turns, asking_above(64)),
        *(
            Plant(
                f"{share:.0%} less bandwidth between nodes",
                *(_between, less_bandwidth(share), share / 2),
            )
            for share in LESS_BANDWIDTH
        ),
        Plant("every latency below 1 KiB doubled", _between, longer(2, 0, below), floor=0.5),
    )


def growing(matrix: Matrix) -> dict[str, tuple[Plant, ...]]:
    """Return changes from mild to gross by kind, each with all ``FACTORS``."""

    def at(size: int) -> Callable[[float], Changing]:
        return lambda times: longer(times, size, size)

    kinds: dict[str, tuple[Concerns, Callable[[float], Changing]]] = {
        "every latency below 1 KiB": (_between, lambda times: longer(times, 0, KIB - 1)),
        "each byte between nodes": (_between, lambda times: less_bandwidth(1 - 1 / times)),
        "NetPIPE over TCP at 16 KiB": (_over("tcp"), at(16 * KIB)),
        "NetPIPE over MPI at 2 KiB": (_over("mpi"), at(2 * KIB)),
        "NetPIPE over MPI, one way": (_over("mpi", direction="oneway"), longer),
        "IMB of the score baseline": (_of_baseline(matrix), longer),
        "Alltoall from 32 to 64 KiB, one MPI": (
            _alltoall(matrix),
            lambda times: longer(times, 32 * KIB, 64 * KIB),
        ),
        "half of all messages, the longer ones": (
            _between,
            lambda times: longer(times, 4 * KIB + 1),
        ),
        FIRST: (_between, longer),
    }
    return {
        name: tuple(
            Plant(
                f"{name}, {times:g} times",
                *(concerns, change(times)),
                launches=1 if name == FIRST else None,
            )
            for times in FACTORS
        )
        for name, (concerns, change) in kinds.items()
    }


FIRST = "the first launch of each case"


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
            changed = _planted(result, plant)
            results.append(changed)
            if changed is not result:
                having.add(result.case.key())
        changed = dataclasses.replace(self.session, results=tuple(results))
        return judge(self.matrix, changed, references=self.references), having

    def by_derived(self, others: Sequence[Recorded], floor: float) -> Recorded:
        """Return the same session, judged by references derived from other sessions.

        ``floor``: their least tolerance. Tighter bounds of the file stay. Raises NetproofError if
        the sessions suffice for none.
        """
        system = self.matrix.cases[0].system
        file = ReferenceFile(folders.of_references() / f"{system}.yaml")
        made = derive.derived(
            [one.session for one in others],
            file,
            system,
            floor=floor,
        )
        entries = {one.case.key(): one.entries for one in made}
        stands = entries_of(folders.of_references(), system)

        def references(case: Case) -> Mapping[str, Any]:
            return {**stands(case), **entries.get(case.key(), {})}

        verdict = judge(self.matrix, self.session, references=references)
        return dataclasses.replace(self, verdict=verdict, references=references)


def _planted(result: CheckResult, plant: Plant) -> CheckResult:
    case = result.case
    if case is None or not result.measured or not plant.concerns(case):
        return result
    measured = result.measured
    changed = plant.into(measured)
    if all(
        new.curve == old.curve for new, old in zip(changed.launches, measured.launches, strict=True)
    ):
        return result
    return dataclasses.replace(result, measured=changed)


def red(verdict: Verdict) -> dict[tuple, CaseVerdict]:
    """Return the failed cases by key."""
    return {one.case.key(): one for one in verdict.cases if one.failed}


def unclear(verdict: Verdict) -> dict[tuple, CaseVerdict]:
    """Return the inconclusive cases by key."""
    return {one.case.key(): one for one in verdict.cases if one.level is Level.INCONCLUSIVE}


def criteria_of(several: Iterable[CaseVerdict], level: Level = Level.FAIL) -> Counter[str]:
    """Count the cases that each criterion has at ``level``."""
    return Counter(
        name
        for one in several
        for name in sorted(
            {finding.criterion for finding in one.findings if finding.level is level}
        )
    )


def show(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table."""
    print("\n".join(markdown([heading, *rows])), end="\n\n")


def print_planted(recorded: Sequence[Recorded]) -> bool:
    """Print the table of planted changes; return whether all were found often enough."""
    rows, enough = [], True
    for plant in plants(recorded[0].matrix):
        judged_by, without, nothing_planted = "as they stand", recorded, "-"
        if plant.floor is not None:
            judged_by = f"derived, at least ±{plant.floor:.1%}"
            if len(recorded) <= derive.LEAST_SESSIONS:
                enough = False
                why = f"takes {derive.LEAST_SESSIONS + 1} sessions"
                rows.append((plant.name, judged_by, why, "-", "-", "-", "-"))
                continue
            without = [
                one.by_derived([other for other in recorded if other is not one], plant.floor)
                for one in recorded
            ]
            nothing_planted = str(
                sum(
                    bool(red(derived.verdict).keys() - red(one.verdict).keys())
                    for one, derived in zip(recorded, without, strict=True)
                )
            )
        counts, by = _found(plant, without)
        enough = enough and counts["sessions"] >= FOUND_OF_TEN * len(recorded)
        reds = f"{counts['sessions']} of {len(recorded)}"
        cases, undecided = f"{counts['flagged']} of {counts['cases']}", str(counts["undecided"])
        rows.append(
            (plant.name, judged_by, reds, nothing_planted, undecided, cases, counted(by.elements()))
        )
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
    against: Counter[str] = Counter()
    rows = []
    for name, several in growing(recorded[0].matrix).items():
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
    levels: dict[str, Counter[str]] = defaultdict(Counter)
    for one in recorded:
        for judged in one.verdict.cases:
            for finding in judged.findings:
                levels[finding.criterion][finding.level.value] += 1
    order = [Level.FAIL, Level.INCONCLUSIVE, Level.WARN, Level.PASS]
    rows = [
        (name, *(str(counted[level.value]) for level in order))
        for name, counted in sorted(levels.items())
    ]
    show(("criterion, nothing planted", *map(str, order)), rows)


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
        (str(change), f"{share:g}", str(len(several)), f"{sum(several) / len(several):.0%}")
        for (change, share), several in sorted(tried.items())
    ]
    heading = ("change", "of what was stated", "tried", f"found (aim at 1: {SURE:.0%})")
    show(heading, rows)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("reports", nargs="+", type=Path, metavar="REPORT")
    parser.add_argument(
        "--only", choices=("planted", "growing", "stated"), help="one of the tables"
    )
    parser.add_argument("--system", help="SYSTEM or SYSTEM:PARTITION, as for netproof verdict")
    parser.add_argument("--tries", type=int, default=200, metavar="N", help="stated changes tried")
    parser.add_argument("--seed", type=int, help="of what is drawn; drawn by default")


def run(options: argparse.Namespace) -> int:
    """Print the tables; return 0 if the aims are met, 1 if one is missed."""
    seed = random.randrange(2**32) if options.seed is None else options.seed
    recorded = [_read(path, options.system) for path in options.reports]
    print(f"{len(recorded)} sessions, seed {seed}\n")
    enough = True
    if options.only in (None, "planted"):
        print_false(recorded)
        enough = print_planted(recorded)
    if options.only in (None, "growing"):
        print_growing(recorded)
    if options.only in (None, "stated") and len(recorded) > 1:
        print_stated(recorded, options.tries, random.Random(seed))
    return 0 if enough else 1


def _read(path: Path, system: str | None) -> Recorded:
    judged = session_verdict.judge_session(sessions.load(path), system=system, again=True, fold=0)
    entries = session_verdict.references_of(judged.matrix)
    return Recorded(judged.session, judged.matrix, judged.verdict, entries)
