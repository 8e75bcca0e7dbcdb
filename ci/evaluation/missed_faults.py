"""Faults of an MPI library or of links, against the verdict of the session that has them.

Each run is a smoke run of one switch with two environments, or with one if references of the
campaign's healthy runs judge it. A case of the faulty library has to fail by a sentence that names
an affected size; without a fault nothing may fail. A run that broke is repeated.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from ci.evaluation import engine, false_reds
from ci.evaluation import testbed as machine
from ci.evaluation.engine import REPORT, Answer, Evaluation, Grade, Run, not_judged, short
from ci.evaluation.testbed import ROOT, CannotRunError
from netproof.criteria import Level
from netproof.criteria.findings import REFERENCE
from netproof.session import session
from netproof.verdict.derive import LEAST_SESSIONS
from netproof.verdict.verdict import NOT_IN_SESSION

PREFIX = "RFM_REFERENCE_PREFIX"
"""Variable with the folder of references."""
FLOOR = 0.025
"""Least tolerance of derived references: half the smallest planted loss of bandwidth."""
WITH_IMB = ("mpich", "intelmpi")
KINDS = engine.faults("missed-faults")
DERIVING = "deriving"
"""Healthy runs that make references."""


class MissedFaults(Evaluation):
    """Faults of an MPI library or of links, by the sentences of a verdict."""

    name = "missed-faults"
    grades = (
        *(Grade.RIGHT, Grade.OTHERWISE, Grade.INCONCLUSIVE, Grade.MISSED, Grade.FALSE),
        Grade.NOT_JUDGED,
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
        by_derived = {KINDS[name].derived for name in settings["kinds"]}
        names = [one for one in self.names(settings) if self.plants[one].derived in by_derived]
        first = [one for one in names if one == DERIVING]
        names = [one for one in names if one != DERIVING]
        drawn = engine.numbered(random.Random(settings["seed"]), names, first if names else [])
        return tuple(self.drawn(*one, settings) for one in drawn)

    def drawn(self, number: int, kind: str, seed: int, settings: Mapping[str, Any]) -> Run:
        """Draw the environment, and a partner with IMB, which lets collectives be compared."""
        drawn, plant = random.Random(seed), self.plants[kind]
        several = [drawn.choice(plant.environments)]
        if not plant.derived:
            several.append(drawn.choice([one for one in WITH_IMB if one not in several]))
        return plant.drawn(number, kind, seed, tuple(several))

    def site(self, run: Run, folder: Path) -> dict[str, str]:
        """Add the references, if derived ones judge the run."""
        if run.kind == DERIVING or not self.plants[run.kind].derived:
            return self.site_with(run, folder)
        references, latency_us = derived(folder.parent)
        return {PREFIX: str(references), **self.site_with(run, folder, latency_us=latency_us)}

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


EVALUATION = MissedFaults()


@cache
def derived(folder: Path) -> tuple[Path, float]:
    """Derive references from a campaign's healthy runs; return their folder, and MPI's latency.

    The latency is the median of these runs, µs. Raises CannotRunError if they suffice for none.
    """
    reports = [
        folder / one.run.folder / REPORT
        for one in engine.read(EVALUATION, folder)[1]
        if one.run.kind == DERIVING and one.judged.found is Grade.RIGHT
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
        ran = machine.answered(words, folder, {**os.environ, PREFIX: str(new)})
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
    return Answer(Grade.RIGHT)


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
        return Answer(Grade.RIGHT, tuple(short(one["why"]) for one in named), criteria)
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
