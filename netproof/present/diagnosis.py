"""The diagnosis of a partition: a screen of the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from netproof.diagnosis.diagnosis import Diagnosis, DiagnosisOutcome
from netproof.diagnosis.evidence import Culprit, Sure
from netproof.present.document import Cell
from netproof.present.wording import counted, first

LINES = 24
"""Most lines of a partition."""

WIDTH = 100
"""Most columns of a line."""

_LABEL = 12
_LOOKS = {
    DiagnosisOutcome.NOTHING: "passed",
    DiagnosisOutcome.FOUND: "failed",
    DiagnosisOutcome.INCONCLUSIVE: "inconclusive",
}


_DETAILS = ((3, 3, 3, 5), (2, 2, 2, 4), (1, 2, 2, 3), (1, 2, 2, 2), (1, 1, 1, 1))
"""Amounts: whole culprits, evidence of each, lines of a sentence, notes.

They are tried in this order, until they fit the screen.
"""


def lines(diagnosis: Diagnosis) -> list[Cell]:
    """Return a screen's lines on a partition, the worst culprit first."""
    for detail in _DETAILS:
        made = list(_lines(diagnosis, *detail))
        if len(made) <= LINES:
            return made
    left = len(made) - LINES + 1
    return [
        *made[: LINES - 1],
        Cell(f"and {counted(left, 'more line')}: --format json has all", "faint"),
    ]


def headline(diagnosis: Diagnosis) -> str:
    """Return the result of the diagnosis, in a sentence."""
    word = f"something is wrong at {counted(len(diagnosis.culprits), 'place')}"
    if diagnosis.outcome is not DiagnosisOutcome.FOUND:
        nothing = diagnosis.outcome is DiagnosisOutcome.NOTHING
        word = "nothing wrong was found" if nothing else "inconclusive"
        if nothing and diagnosis.not_known:
            word += " in what was measured"
    text = f"{diagnosis.partition}: {word}"
    cases = diagnosis.cases + diagnosis.unmeasured
    text += f"; {diagnosis.passed} of {counted(cases, 'case')} passed" if cases else ""
    text += f", {diagnosis.red} failed" if diagnosis.red else ""
    whole = f", {diagnosis.unmeasured} of these not measured whole"
    return text + whole if diagnosis.unmeasured else text


def _lines(
    diagnosis: Diagnosis, whole: int, evidence: int, lines: int, notes: int
) -> Iterator[Cell]:
    yield Cell(headline(diagnosis), _LOOKS[diagnosis.outcome])
    for number, culprit in enumerate(diagnosis.culprits, 1):
        yield from _wrapped(f"{number}", culprit.headline, lines, "strong", column=2)
        if number <= whole:
            for label, sentence in rows(culprit, evidence):
                yield from _wrapped(f"  {label}", sentence, lines)
    if diagnosis.outcome is DiagnosisOutcome.INCONCLUSIVE and diagnosis.next_steps:
        yield from _wrapped("do", "; ".join(diagnosis.next_steps), lines)
    several = {"ruled out": diagnosis.ruled_out, "not known": diagnosis.not_known}
    for label, sentences in several.items():
        if sentences:
            yield from _wrapped(label, "; ".join(first(sentences, notes, "{} more")), lines + 1)


def rows(culprit: Culprit, evidence: int | None = None) -> Iterator[tuple[str, str]]:
    """Yield the findings on a culprit, each with its label; ``evidence``: at most, None for all."""
    shown = culprit.evidence[:evidence]
    for number, one in enumerate(shown):
        more = len(culprit.evidence) - len(shown) if number == len(shown) - 1 else 0
        yield "seen" if number == 0 else "", one.sentence + (f"; {more} more" if more else "")
    sure = culprit.sure.value if culprit.sure is not Sure.STATISTICAL else "by statistics"
    yield "how sure", f"{sure}: {culprit.why}"
    yield "since", str(culprit.since)
    if culprit.consequences:
        yield "explains", counted(culprit.consequences, "failed case")
    if culprit.alternatives:
        others = "; or ".join(culprit.alternatives)
        how = f". To distinguish them: {culprit.distinguish_by}" if culprit.distinguish_by else ""
        yield "or", f"{others}{how}"
    yield "do", culprit.advice
    if culprit.rules_out:
        yield "clears it", culprit.rules_out


def _wrapped(
    label: str, sentence: str, most: int, look: str = "", *, column: int = _LABEL
) -> Iterator[Cell]:
    folded = textwrap.wrap(
        " ".join(sentence.split()),
        WIDTH - column,
        max_lines=most,
        placeholder=" …",
        break_on_hyphens=False,
    )
    for number, line in enumerate(folded):
        yield Cell(f"{label if number == 0 else '':{column}}{line}", look)
