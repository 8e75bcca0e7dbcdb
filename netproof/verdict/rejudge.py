"""Effect of today's bounds: their digests, cases rejudged by references, two verdicts compared.

A case is rejudged by its references of today, whatever the result of its run.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from netproof.benchmarks.registry import check_name
from netproof.criteria import Level
from netproof.errors import NetproofError
from netproof.intake import loading
from netproof.measurement.case import Case
from netproof.session.session import CheckResult
from netproof.site.matrix import Matrix
from netproof.verdict import engine, limits
from netproof.verdict.engine import Subject
from netproof.verdict.limits import TIME_AT, Limits
from netproof.verdict.references import XFAIL, NotThere, ReferenceFile
from netproof.verdict.verdict import CaseVerdict, Verdict

Entries = Callable[[Case], Mapping[str, Any]]
"""A case's entries in a file of references by variable; raises NotThere, and NetproofError."""

JUDGED_BY = 10
"""Raised when the same session and bounds can get another verdict than before."""

NAMED = 3
"""Cases that a sentence names."""

_OF_SITE = (
    *("switch", "interface", "link_mbit_s", "mtu", "nodes"),
    *("may_differ", "clock_offset_ms", "coverage_percent"),
)
"""Keys of a partition that a verdict depends on, besides its rails and rounds of pairs."""

JUDGED = "performance"
"""ReFrame's phase in which a check is compared with its references."""

MISSED = "failed to meet reference"
"""Beginning of ReFrame's message that a check failed its references."""

AGAINST = (Level.FAIL.value, Level.UNDEFINED.value, Level.INCONCLUSIVE.value)
"""Levels of a reference's finding that keep a check from passing."""

EXPECTED = "fails as expected"
ANSWERS = ("passed", "failed", "failed as expected", "inconclusive")
PASSED, FAILED, FAILED_AS_EXPECTED, INCONCLUSIVE = ANSWERS


def of_file(folder: Path, system: str) -> Entries:
    """Read the entries of a system's file in ``folder``; NetproofError where that fails."""
    file = ReferenceFile(folder / f"{system}.yaml")
    return lambda case: file.find(check_name(case.benchmark, case.function), case)


def concerns(result: CheckResult) -> bool:
    """Check whether a run compared a case with its references, and nothing else failed it.

    Another error in that phase stands, whatever the references say now.
    """
    if result.result in ("pass", "xfail", "xpass"):
        return True
    if result.result != "fail" or result.phase != JUDGED:
        return False
    if result.references is None:
        # Without findings there is only ReFrame's message.
        return MISSED in result.reason
    return any(one.level in AGAINST for one in result.references)


def answer_of_run(result: CheckResult) -> str:
    """Return the answer of the run's own references, one of ``ANSWERS``."""
    if result.result == "pass":
        return PASSED
    if result.result == "xfail":
        return FAILED_AS_EXPECTED
    levels = {one.level for one in result.references or ()}
    decided = levels & {Level.FAIL.value, Level.UNDEFINED.value}
    return INCONCLUSIVE if Level.INCONCLUSIVE.value in levels and not decided else FAILED


def judge(subject: Subject, entries: Entries) -> CaseVerdict:
    """Compare a case with its references of today, as the run does.

    A variable with bounds is judged by its interval. A known fault is judged by its value, as in
    ReFrame: within the bounds it fails, since the entry has to go. A case or a landmark without an
    entry fails. Raises NetproofError for a malformed entry.
    """
    try:
        found = entries(subject.case)
    except NotThere as error:
        return CaseVerdict(subject.case, None, (f"has no reference: {error}",))
    known = limits.variables(subject.measured)
    faults = [
        f"{name} has no reference, and is defined: an entry is needed, judged or not"
        for name, (value, _) in known.items()
        if value is not None and not name.startswith(TIME_AT) and name not in found
    ]
    findings = [
        finding.ruled(Level.FAIL if finding.level is Level.UNDEFINED else finding.level)
        for finding in engine.references(subject, limits.of_references(found)).values()
    ]
    expected = []
    for name, entry in found.items():
        value, unit = known.get(name, (None, ""))
        if entry[0] != XFAIL or value is None:
            continue
        limit = Limits.of_entry(entry[2])
        if limit.low <= value <= limit.high:
            faults.append(
                f"{name} is {value:.5g} {unit}, within its reference ({limit} {unit}), and was"
                f" expected to fail: {entry[1]}; the entry has to go"
            )
        else:
            expected.append(entry[1])
    why = f"{EXPECTED}: {'; '.join(dict.fromkeys(expected))}" if expected else ""
    why = "" if faults else why
    return CaseVerdict(subject.case, None, tuple(faults), why, tuple(findings))


def _answer(now: CaseVerdict) -> str:
    passed = FAILED_AS_EXPECTED if now.expected else PASSED
    return {Level.FAIL: FAILED, Level.INCONCLUSIVE: INCONCLUSIVE}.get(now.level, passed)


def differences(several: Sequence[tuple[CheckResult, CaseVerdict]]) -> list[str]:
    """Return where today's answer is not the run's, a sentence for each pair of answers."""
    together: dict[tuple[str, str], list[str]] = {}
    for result, now in several:
        answers = (_answer(now), answer_of_run(result))
        if answers[0] != answers[1]:
            together.setdefault(answers, []).append(str(result.case))
    return [
        f"by the references as they are now {now}, and {then} by those of the run:"
        f" {len(cases)} {'case' if len(cases) == 1 else 'cases'}: {'; '.join(cases[:3])}"
        f"{' and others' if len(cases) > 3 else ''}"
        for (now, then), cases in together.items()
    ]


@dataclass(frozen=True)
class StoredBounds:
    """Digests of the bounds that a verdict was judged by.

    ``netproof``: its version, and ``JUDGED_BY``; ``matrix``: of each part of the matrix, by its
    name in a sentence; ``settings``: of each key of each partition; ``references``: of the file.
    """

    netproof: tuple[str, int]
    matrix: dict[str, str]
    settings: dict[str, dict[str, str]]
    references: str

    @classmethod
    def of(cls, matrix: Matrix, references: Path) -> StoredBounds:
        """Return today's bounds; ``references``: the folder of the files.

        Raise NetproofError where the system's file cannot be read.
        """
        here = {case.environment for case in matrix.cases}
        known = {name: flaws for name, flaws in matrix.known.items() if name in here and flaws}
        parts = {
            "the expected cases": matrix.cases,
            "what is not available": matrix.absences,
            "which environments are known to be gone": sorted(matrix.retired),
            "the known flaws": known,
            "the score baseline": matrix.baseline,
        }
        settings = {
            name: {
                **{key: getattr(one, key) for key in _OF_SITE},
                "rails": one.rails_or_interface(),
                # Environments say where they are measured, which is no bound.
                "pairs": one.pair_settings().model_dump(mode="json", exclude={"environments"}),
                **vars(one.settings()),
            }
            for name, one in matrix.partitions.items()
        }
        path = references / f"{matrix.cases[0].system}.yaml"
        try:
            content = loading.read_bytes(path)
        except OSError as error:
            raise NetproofError(f"{path}: cannot be read: {error.strerror}") from error
        return cls(
            (version("netproof"), JUDGED_BY),
            {name: _digest(value) for name, value in parts.items()},
            {
                name: {key: _digest(value) for key, value in of_partition.items()}
                for name, of_partition in settings.items()
            },
            hashlib.sha256(content).hexdigest(),
        )

    def differences(self, now: StoredBounds) -> Iterator[str]:
        """Yield what differs today, without the references, a few words each."""
        if self.netproof != now.netproof:
            yield f"netproof {self.netproof[0]} judged it, and this is {now.netproof[0]}"
        yield from (name for name, one in now.matrix.items() if self.matrix.get(name) != one)
        for name in sorted(self.settings.keys() | now.settings.keys()):
            then, today = self.settings.get(name), now.settings.get(name)
            if then is None or today is None:
                yield f"whether {name} was to run"
            elif then != today:
                keys = [key for key in today if today[key] != then.get(key)]
                yield f"{', '.join(keys) or 'the criteria'} of {name}"

    def judge_cases_as(self, now: StoredBounds) -> bool:
        """Check whether single cases of today's partitions were judged by the same bounds."""
        flaws = "the known flaws"
        return (
            self.netproof == now.netproof
            and self.matrix[flaws] == now.matrix[flaws]
            and all(self.settings.get(name) == one for name, one in now.settings.items())
        )


def digest_of_entries(entries: Callable[[Case], Mapping[str, Any]], case: Case) -> str:
    """Return a digest of a case's entries in a file of references."""
    try:
        return _digest(entries(case))
    except NotThere:
        return "none"


def _digest(value: Any) -> str:
    plain = json.dumps(value, default=_plain, sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:12]


def _plain(value: Any) -> Any:
    if not dataclasses.is_dataclass(value):
        return str(value)
    return {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}


@dataclass(frozen=True)
class ChangedCase:
    """A case on which two verdicts differ.

    ``was``, ``now``: its levels, None where a verdict does not have it; ``gone``, ``new``:
    objections of the earlier one alone, and of the later one alone, a sentence each.
    """

    case: Case
    was: Level | None
    now: Level | None
    gone: tuple[str, ...]
    new: tuple[str, ...]

    def __str__(self) -> str:
        """Return one line: both levels, and the reasons."""
        levels = f"{self.was or 'not judged'}, now {self.now or 'not judged'}"
        reasons = [*(f"now: {why}" for why in self.new), *(f"no more: {why}" for why in self.gone)]
        return f"{self.case}: {levels}{''.join(f'; {one}' for one in reasons)}"


def changed(then: Verdict, now: Verdict) -> tuple[ChangedCase, ...]:
    """Return the cases on which two verdicts on one session differ, in order.

    Only failures, warnings and inconclusive results count.
    """
    before = {one.case.key(): one for one in then.cases}
    after = {one.case.key(): one for one in now.cases}
    found = []
    for key, case in {one.case.key(): one.case for one in (*now.cases, *then.cases)}.items():
        one, other = before.get(key), after.get(key)
        were, are = _objections(one), _objections(other)
        was, level = (None if it is None else it.level for it in (one, other))
        if was is level and were == are:
            continue
        gone = tuple(why for why in were if why not in are)
        new = tuple(why for why in are if why not in were)
        found.append(ChangedCase(case, was, level, gone, new))
    return tuple(found)


def _objections(judged: CaseVerdict | None) -> tuple[str, ...]:
    if judged is None:
        return ()
    reported = (Level.FAIL, Level.INCONCLUSIVE, Level.WARN)
    return (
        *judged.faults,
        *([judged.expected] if judged.expected else []),
        *(finding.why for finding in judged.findings if finding.level in reported),
    )
