"""The summary of a night: a headline, then what a person has to know."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from netproof.present.document import Sentences
from netproof.present.verdict import remarks, undecided
from netproof.present.wording import duration, outcome, visible
from netproof.verdict import CANNOT, FAILED, INCONCLUSIVE, PASSED
from netproof.verdict.explain import failures
from netproof.verdict.session_verdict import JudgedSession
from netproof.verdict.verdict import sentences_of_skipped

_ACCEPT = ("what of this is intended ends by 'netproof history accept'",)

SENTENCES = 20
"""Sentences of a kind that are listed; the report has all."""

WORDS = {PASSED: "PASSED", FAILED: "FAILED", CANNOT: "NOT JUDGED", INCONCLUSIVE: "NOT JUDGED"}


@dataclass
class Night:
    """Result of a night, as far as it came.

    ``faults``: why it could not be judged, or not whole, a sentence each; ``judged``: None without
    a verdict; ``worse``, ``noted``: changes in its history for the worse, and others; ``stored``:
    the session's name in the store; ``page``: of the report.
    """

    system: str
    started: datetime
    ended: datetime
    faults: list[str] = field(default_factory=list)
    judged: JudgedSession | None = None
    worse: tuple[str, ...] = ()
    noted: tuple[str, ...] = ()
    stored: str = ""
    page: Path | None = None
    log: Path | None = None

    @property
    def status(self) -> int:
        """Exit status: a failure first, then what kept it from being judged."""
        if self.judged is not None and (self.judged.verdict.status == FAILED or self.worse):
            return FAILED
        if self.judged is None or self.faults:
            return CANNOT
        return self.judged.verdict.status

    @property
    def inconclusive(self) -> bool:
        """Whether it was judged, and ends with 3 only for inconclusive cases."""
        if self.judged is None or self.faults or self.status != INCONCLUSIVE:
            return False
        return self.judged.verdict.inconclusive


def summary(night: Night) -> str:
    """Return the summary; its first line could be the subject of a mail."""
    lines = [headline(night), ""]
    lines += [f"NOT JUDGED: {fault}" for fault in night.faults]
    if night.judged is not None:
        verdict = night.judged.verdict
        skipped = [
            [one for one in verdict.skipped if one.reason.planned == planned]
            for planned in (False, True)
        ]
        # A mail is read from the top.
        for block in (
            Sentences(failures(verdict)[::-1], mark="FAIL "),
            Sentences(night.worse, mark="WORSE "),
            undecided(verdict),
            Sentences(_ACCEPT if night.worse else ()),
            *map(Sentences, map(sentences_of_skipped, skipped)),
            *reversed(remarks(night.judged)),
            Sentences(night.noted, mark="note: "),
        ):
            lines += [f"{block.mark}{sentence}" for sentence in block.sentences[:SENTENCES]]
            if (more := len(block.sentences) - SENTENCES) > 0:
                lines.append(f"{block.mark}and {more} more, in the report")
    places = {"session": night.stored, "report": night.page, "output of ReFrame": night.log}
    lines += ["", *(f"{what} {place}" for what, place in places.items() if place)]
    lines.append(f"exit status {night.status}")
    # Further lines are indented: a job's text cannot look like the night's own.
    whole = "".join(f"{visible(line)}\n".replace("\n", "\n    ").rstrip(" ") for line in lines)
    # Output of a job may be no valid text.
    return whole.encode(errors="replace").decode()


def headline(night: Night) -> str:
    """Return the night in a line: system, outcome, how many cases, when."""
    took = duration((night.ended - night.started).total_seconds())
    word = "INCONCLUSIVE" if night.inconclusive else WORDS[night.status]
    if night.judged is not None:
        word += f", {outcome(night.judged.verdict, len(night.worse))}"
    return f"netproof {night.system}: {word} ({night.started:%Y-%m-%d %H:%M}, {took})"
