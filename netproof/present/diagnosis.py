"""The diagnosis of a partition."""

from __future__ import annotations

from collections.abc import Iterator

from netproof.diagnosis.diagnosis import Diagnosis, DiagnosisOutcome
from netproof.diagnosis.evidence import Culprit, Sure
from netproof.present.document import Block, Cell, Sentences
from netproof.present.wording import counted, first

WHOLE = 3
"""Culprits that are shown with all that is known of them, the worst ones."""

EVIDENCE, NOTES = 3, 5
"""Evidence of a culprit, and notes of a kind, that are shown."""

_LOOKS = {
    DiagnosisOutcome.NOTHING: "passed",
    DiagnosisOutcome.FOUND: "failed",
    DiagnosisOutcome.INCONCLUSIVE: "inconclusive",
}


def blocks(diagnosis: Diagnosis) -> Iterator[Block]:
    """Yield the result, the culprits, the worst first, and what was ruled out or is not known."""
    yield Cell(headline(diagnosis), _LOOKS[diagnosis.outcome])
    for number, culprit in enumerate(diagnosis.culprits[:WHOLE], 1):
        yield Cell(f"{number} {culprit.headline}", "strong")
        yield facts(culprit)
    others = [f"{one.headline}: {one.advice}" for one in diagnosis.culprits[WHOLE:]]
    yield Sentences(others, f"Besides: {counted(len(others), 'place')}", "failed", folded=True)
    inconclusive = diagnosis.outcome is DiagnosisOutcome.INCONCLUSIVE
    if inconclusive and diagnosis.next_steps:
        yield {"do": list(diagnosis.next_steps)}
    deciding = diagnosis.incomplete if inconclusive else ()
    besides = [one for one in diagnosis.not_known if one not in deciding]
    several = {"Ruled out": diagnosis.ruled_out, "Not known, so inconclusive": deciding}
    several["Not known besides" if deciding else "Not known"] = tuple(besides)
    for what, sentences in several.items():
        shown = first(sentences, NOTES, "{} more, which --format json has")
        yield Sentences(shown, f"{what}: {len(sentences)}", folded=True)


def headline(diagnosis: Diagnosis) -> str:
    """Return the result of the diagnosis, in a sentence."""
    places = sum(one.cause != "unexplained" for one in diagnosis.culprits)
    word = f"something is wrong at {counted(places, 'place')}" if places else "something is wrong"
    if places < len(diagnosis.culprits):
        word += ", and some failures are unexplained" if places else ", and nothing explains it"
    if diagnosis.outcome is DiagnosisOutcome.INCONCLUSIVE:
        several = first(diagnosis.incomplete, 1, "{} more")
        word = f"nothing found, but not everything is known ({'; '.join(several)})"
    elif diagnosis.outcome is DiagnosisOutcome.NOTHING:
        word = "nothing wrong was found" + " in what was measured" * bool(diagnosis.not_known)
    text = f"{diagnosis.partition}: {word}"
    cases = diagnosis.cases + diagnosis.unmeasured
    text += f"; {diagnosis.passed} of {counted(cases, 'case')} passed" if cases else ""
    text += f", {diagnosis.red} failed" if diagnosis.red else ""
    whole = f", {diagnosis.unmeasured} of these not measured whole"
    return text + whole if diagnosis.unmeasured else text


def facts(culprit: Culprit) -> dict[str, list[str]]:
    """Return the findings on a culprit by their labels."""
    sure = culprit.sure.value if culprit.sure is not Sure.STATISTICAL else "by statistics"
    sure = sure if culprit.narrowed else "not known"
    seen = first([one.sentence for one in culprit.evidence], EVIDENCE, "{} more")
    found = {"seen": seen, "how sure": [f"{sure}: {culprit.why}"], "since": [str(culprit.since)]}
    if culprit.consequences:
        found["explains"] = [counted(culprit.consequences, "failed case")]
    if culprit.alternatives:
        others = "; or ".join(culprit.alternatives)
        how = f". To distinguish them: {culprit.distinguish_by}" if culprit.distinguish_by else ""
        found["or"] = [f"{others}{how}"]
    found["do"] = [culprit.advice]
    return {**found, **({"clears it": [culprit.rules_out]} if culprit.rules_out else {})}
