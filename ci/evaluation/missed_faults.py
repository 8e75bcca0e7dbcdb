"""Faults of an MPI library or of links, against the verdict of the session that has them."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

from ci.evaluation import engine, false_reds
from ci.evaluation import testbed as machine
from ci.evaluation.engine import (
    HEALTHY,
    REPORT,
    RUNS,
    Answer,
    Evaluation,
    Grade,
    Plant,
    Result,
    Run,
    not_judged,
    short,
)
from ci.evaluation.markdown import AT_MOST
from ci.evaluation.testbed import ROOT, CannotRunError
from netproof.criteria import Level
from netproof.criteria.findings import REFERENCE
from netproof.session import session
from netproof.verdict.derive import LEAST_SESSIONS
from netproof.verdict.verdict import NOT_IN_SESSION

KIB = 1024
ANY_SIZE = (0, 1 << 40)
PREFIX = "RFM_REFERENCE_PREFIX"
"""Variable with the folder of references."""
LAUNCHES = 3
"""Launches of a run with derived references; with one, a slow launch would be its value."""
FLOOR = 0.025
"""Least tolerance of derived references: half the smallest planted loss of bandwidth."""
DERIVING_RUNS = 8
"""Healthy runs that make the references of a campaign."""


@dataclass(frozen=True, kw_only=True)
class Fault(Plant):
    """A fault, and the cases of the faulty environment; one of them has to fail.

    ``benchmark``, ``function`` and ``path`` inter-node: of these cases, any function if empty;
    ``sizes``: least and most that the sentence has to name, bytes; ``checks``: pattern for
    ReFrame's ``-n``, empty for all; ``derived``: the environment is measured alone, against
    references of the campaign's healthy runs. ``slow`` has ``{latency_us}`` for their latency.
    """

    benchmark: str = "netpipe"
    function: str = ""
    sizes: tuple[int, int] = ANY_SIZE
    checks: str = ""
    derived: bool = False


IMB, NETPIPE = "IMB-MPI1", "NPmpi"
# Without the space that ReFrame shows.
OF_IMB, OF_NETPIPE, OF_TWO_RANKS = "^Imb", "^Netpipe", "^Imb.*%job_ranks=2$"
# Cases of one direction between nodes, and the checks that repeat launches.
OF_ONE_WAY = "^Netpipe(?!.*(%path=intra-node|%direction=bidirectional))"
WITH_IMB, WITH_NETPIPE = ("mpich", "intelmpi"), ("openmpi4", "openmpi5", "mpich", "intelmpi")

# On gige's link a KiB takes 8.7 µs, and a short message some 40 µs; add twice both.
_CALLS = (
    *("Send", "Isend", "Sendrecv", "Bcast", "Reduce", "Allreduce", "Reduce_scatter"),
    *("Gather", "Scatter", "Allgather", "Alltoall", "Barrier"),
)
_THREE_TIMES = ",".join(f"{call}:0-{ANY_SIZE[1]}:80:17.4" for call in _CALLS)


def _over_netpipe(said: str, least: int, most: int, us: int) -> Fault:
    return Fault(
        said=said,
        environments=WITH_NETPIPE,
        function="mpi",
        sizes=(least, most),
        slow=f"Send:{least}-{most}:{us}:0",
        program=NETPIPE,
        checks=OF_NETPIPE,
    )


def _set_in_open_mpi(said: str, **variables: str) -> Fault:
    set_in = {f"OMPI_MCA_btl_tcp_{name}": value for name, value in variables.items()}
    both = dict.fromkeys(("openmpi4", "openmpi5"), set_in)
    return Fault(
        said=said,
        environments=tuple(both),
        function="mpi",
        variables=both,
        checks=OF_NETPIPE,
    )


def _by_derived(said: str, **fault: Any) -> Fault:
    return Fault(said=said, environments=("mpich",), checks=OF_ONE_WAY, derived=True, **fault)


def _less_bandwidth(share: float) -> Fault:
    # At smaller sizes the latency hides part of the longer time per byte.
    sizes = (16 * KIB, ANY_SIZE[1])
    return _by_derived(f"{share:.0%} less bandwidth", sizes=sizes, faults=({"rate": 1 - share},))


KINDS: Mapping[str, Fault] = {
    "imb-slower": Fault(
        said="IMB 3 times slower",
        environments=WITH_IMB,
        benchmark="imb",
        slow=_THREE_TIMES,
        program=IMB,
        # Calls of four sleeping ranks on two CPUs take very long.
        checks=OF_TWO_RANKS,
    ),
    "alltoall": Fault(
        said="Alltoall 4 times slower from 32 to 64 KiB",
        environments=WITH_IMB,
        benchmark="imb",
        function="Alltoall",
        sizes=(32 * KIB, 64 * KIB),
        # Each of four ranks sends three messages over its link.
        slow=f"Alltoall:{32 * KIB}-{64 * KIB}:0:{3 * 3 * 8.7:g}",
        program=IMB,
        checks=OF_IMB,
    ),
    "at-2-kib": _over_netpipe("NetPIPE over MPI 20 times slower at 2 KiB", 2045, 2051, 1000),
    "at-16-kib": _over_netpipe("NetPIPE over MPI 6 times slower at 16 KiB", 16381, 16387, 900),
    "spike": _over_netpipe("a spike at 3,000 bytes, of 100 to either side", 2900, 3100, 500),
    "eager-limit": _set_in_open_mpi("a wrong eager limit", eager_limit="64"),
    "least-buffers": _set_in_open_mpi("buffers at the least", sndbuf="4608", rcvbuf="2304"),
    "bandwidth-5": _less_bandwidth(0.05),
    "bandwidth-10": _less_bandwidth(0.1),
    "bandwidth-20": _less_bandwidth(0.2),
    "latency": _by_derived(
        "latencies below 1 KiB doubled",
        function="mpi",
        sizes=(1, KIB - 1),
        slow=f"Send:0-{KIB - 1}:{{latency_us}}:0",
        program=NETPIPE,
    ),
}
"""Faults by name."""
DERIVING, HEALTHY_DERIVED = "deriving", "healthy-derived"
"""Healthy runs that make references, and healthy runs judged by them."""


class MissedFaults(Evaluation):
    """Runs of the testbed, each with a fault of an MPI library or of links, against their verdicts.

    Each run is a smoke run of one switch with two environments, or with one if references of the
    campaign's healthy runs judge it. A case of the faulty library has to fail by a sentence that
    names an affected size; without a fault nothing may fail. A run that broke is repeated.
    """

    name = "missed-faults"
    plants: Mapping[str, Fault] = {
        **KINDS,
        HEALTHY: Fault(said=HEALTHY, environments=WITH_NETPIPE, least_good=1.0),
        HEALTHY_DERIVED: _by_derived("healthy, by derived references", least_good=1.0),
        DERIVING: _by_derived("healthy, to derive references", least_runs=0, least_good=0.0),
    }
    faults = KINDS
    counts = (
        ("runs", RUNS, "runs of each fault"),
        ("healthy", RUNS, "runs without a fault, and as many by derived references"),
        ("deriving", DERIVING_RUNS, "runs without a fault that make those, at least 3"),
    )
    good = Grade.NAMED
    heads = (
        *("planted", "runs", Grade.NAMED, Grade.OTHERWISE, Grade.INCONCLUSIVE, Grade.MISSED),
        *(Grade.FALSE, Grade.NOT_JUDGED),
        *(f"not named{AT_MOST}", "named by", "median s", "longest s"),
    )

    def plan(self, settings: Mapping[str, Any]) -> tuple[Run, ...]:
        """Plan runs of each fault and healthy ones, in an order that ``seed`` draws.

        If derived references judge a fault, the deriving runs come first, and healthy runs are
        judged by them. Other healthy runs are only planned for the other faults.
        """
        if settings["deriving"] < LEAST_SESSIONS:
            raise CannotRunError(
                f"--deriving {settings['deriving']}: references take {LEAST_SESSIONS} runs"
            )
        names = self.names(settings)
        by_derived = {KINDS[name].derived for name in settings["kinds"]}
        if False in by_derived:
            names += [HEALTHY] * settings["healthy"]
        if True in by_derived:
            names += [HEALTHY_DERIVED] * settings["healthy"]
        first = [DERIVING] * settings["deriving"] if True in by_derived and names else []
        drawn = engine.numbered(random.Random(settings["seed"]), names, first)
        return tuple(self._drawn(*one) for one in drawn)

    def _drawn(self, number: int, name: str, seed: int) -> Run:
        drawn, plant = random.Random(seed), self.plants[name]
        first = drawn.choice(plant.environments)
        if plant.derived:
            return plant.drawn(number, name, seed, (first,))
        # A partner with IMB lets collectives be compared.
        other = drawn.choice([one for one in WITH_IMB if one != first])
        return plant.drawn(number, name, seed, (first, other))

    def prepare(self, folder: Path, runs: Sequence[Run]) -> None:
        """Compile the library that slows down MPI."""
        machine.compiled_slow_mpi(folder)

    def site(self, run: Run, folder: Path) -> dict[str, str]:
        """Return variables for a site whose library has the fault, and for derived references."""
        plant, environment, variables = self.plants[run.kind], run.environments[0], {}
        latency_us = None
        if plant.derived and run.kind != DERIVING:
            references, latency_us = derived(folder.parent)
            variables[PREFIX] = str(references)
        planted = plant.variables.get(environment, {})
        if plant.slow:
            library = folder.parent / "libslow_mpi.so"
            planted = machine.slower(
                library, plant.slow.format(latency_us=latency_us), plant.program
            )
        if planted:
            variables |= machine.altered_site(folder, machine.with_variables(environment, planted))
        return variables

    def reframe(self, run: Run, settings: Mapping[str, Any]) -> tuple[list[str], str]:
        """Return a smoke run of the run's environments, or more launches for references."""
        plant, several = self.plants[run.kind], "|".join(map(re.escape, run.environments))
        launches = LAUNCHES if plant.derived else 1
        options = ["--system", f"testbed:{run.switch}", "-S", f"launches={launches}"]
        options += ["-p", f"^({several})$"]
        return [*options, *(("-n", plant.checks) if plant.checks else ())], ""

    def question(self, run: Run, settings: Mapping[str, Any], report: Path) -> list[str]:
        """Ask for the verdict."""
        return ["verdict", str(report), f"testbed:{run.switch}"]

    def judge(self, run: Run, status: int, document: Any) -> Answer:
        """Grade a verdict.

        A run measures two of the site's environments, for some faults not all cases. Cases outside
        it do not count.
        """
        whole = false_reds.judge(status, document)
        if whole.found is Grade.NOT_JUDGED:
            return replace(whole, said=whole.said[:1])
        measured = [
            case
            for case in document["cases"]
            if case["environment"] in run.environments and NOT_IN_SESSION not in case["faults"]
        ]
        if {case["environment"] for case in measured} != {*run.environments}:
            return not_judged("the verdict does not have all environments of the run")
        if run.kind in KINDS:
            return _of_fault(run, measured)
        # An inconclusive run makes no references.
        return _of_healthy(measured, certain=run.kind == DERIVING)

    def cells(self, results: Sequence[Result]) -> dict[str, str]:
        """Return how often each criterion named the fault."""
        criteria = Counter(chain.from_iterable(one.judged.by for one in results)).most_common()
        return {"named by": ", ".join(f"{name} {count}" for name, count in criteria) or "-"}


EVALUATION = MissedFaults()


@cache
def derived(folder: Path) -> tuple[Path, float]:
    """Derive references from a campaign's healthy runs; return their folder, and MPI's latency.

    The latency is the median of these runs, µs. Raises CannotRunError if they suffice for none.
    """
    reports = [
        folder / one.run.folder / REPORT
        for one in engine.read(EVALUATION, folder)[1]
        if one.run.kind == DERIVING and one.judged.found is Grade.NAMED
    ]
    if len(reports) < LEAST_SESSIONS:
        raise CannotRunError(
            f"{len(reports)} runs are good enough to derive references, and it takes"
            f" {LEAST_SESSIONS}; begin a campaign with a larger --deriving"
        )
    latencies = [
        result.measured.landmarks.latency_us
        for report in reports
        for result in session.load(report).results
        if result.case is not None and result.case.function == "mpi" and result.measured
    ]
    if not latencies:
        raise CannotRunError("no healthy run has measured a latency of MPI")
    place = folder / "reference-values"
    if not place.is_dir():
        new = place.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        shutil.copytree(ROOT / "reference-values", new)
        words = ["references", "derive", *map(str, reports), "--write", "--floor", str(FLOOR)]
        ran = engine.answered(words, folder, {**os.environ, PREFIX: str(new)})
        place.with_suffix(".err").write_text(ran.stderr)
        if ran.returncode:
            raise CannotRunError(f"no references: see {place.with_suffix('.err')}")
        new.rename(place)
    return place, median(latencies)


def _of_healthy(cases: Sequence[Mapping[str, Any]], *, certain: bool) -> Answer:
    failed = [why for case in cases for why in _failures(case)]
    if failed:
        return Answer(Grade.FALSE, tuple(map(short, failed)))
    undecided = [
        finding["why"]
        for case in cases
        for finding in case["findings"]
        if finding["level"] == Level.INCONCLUSIVE
    ]
    if certain and undecided:
        return Answer(Grade.INCONCLUSIVE, tuple(map(short, undecided)))
    return Answer(Grade.NAMED)


def _of_fault(run: Run, cases: Sequence[Mapping[str, Any]]) -> Answer:
    fault = KINDS[run.kind]
    faulty = [case for case in cases if case["environment"] == run.environments[0]]
    concerned = [
        case
        for case in faulty
        if (case["benchmark"], case["path"]) == (fault.benchmark, "inter-node")
        and fault.function in ("", case["function"])
    ]
    if not concerned:
        return not_judged("the verdict has none of the cases that the fault concerns")
    named = list(_findings(concerned, fault.sizes, Level.FAIL))
    if named:
        criteria = tuple(sorted({finding["criterion"] for finding in named}))
        return Answer(Grade.NAMED, tuple(short(one["why"]) for one in named), criteria)
    failed = [why for case in faulty for why in _failures(case)]
    if failed:
        return Answer(Grade.OTHERWISE, tuple(map(short, failed)))
    undecided = list(_findings(concerned, fault.sizes, Level.INCONCLUSIVE))
    if undecided:
        return Answer(Grade.INCONCLUSIVE, tuple(short(one["why"]) for one in undecided))
    return Answer(Grade.MISSED)


def _findings(
    cases: Sequence[Mapping[str, Any]], sizes: tuple[int, int], level: Level
) -> Iterator[Mapping[str, Any]]:
    """Yield findings of a level whose sentence names a size within ``sizes``."""
    least, most = sizes
    for case in cases:
        for finding in case["findings"]:
            if finding["level"] == level and any(
                least <= size <= most for size in _sizes_named(finding)
            ):
                yield finding


def _sizes_named(finding: Mapping[str, Any]) -> set[int]:
    """Return the sizes in bytes in a finding's sentence; a reference has them in words or names."""
    if finding["criterion"] == REFERENCE:
        rates = {1024 * int(kib) for kib in re.findall(r"rate_(\d+)_kib", finding["why"])}
        named = re.findall(r"(?:at|messages of|to) (\d+)(?= bytes| to \d+ bytes)", finding["why"])
        return rates | {int(size) for size in named}
    of = {finding["size_bytes"], *(finding["sizes_bytes"] or ())} - {None}
    return {size for size in of if str(size) in finding["why"]}


def _failures(case: Mapping[str, Any]) -> list[str]:
    """Return a case's failures: bounds of references, and criteria."""
    findings = (one["why"] for one in case["findings"] if one["level"] == Level.FAIL)
    return [*case["faults"], *findings]
