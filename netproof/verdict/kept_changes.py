"""What of a kept verdict is another today."""

from __future__ import annotations

from dataclasses import dataclass

from netproof.criteria import Level
from netproof.measurement.case import Case
from netproof.verdict.judged import Judged, Verdict


@dataclass(frozen=True)
class ChangedCase:
    """A case of which two verdicts do not say the same.

    ``was``, ``now``: its levels, None where a verdict does not have it; ``gone``, ``new``: what
    only the earlier one says against it, and only the later one, a sentence each.
    """

    case: Case
    was: Level | None
    now: Level | None
    gone: tuple[str, ...]
    new: tuple[str, ...]

    def __str__(self) -> str:
        """In a line: what it was, what it is, and why."""
        levels = f"{self.was or 'not judged'}, now {self.now or 'not judged'}"
        told = [*(f"now: {why}" for why in self.new), *(f"no more: {why}" for why in self.gone)]
        return f"{self.case}: {levels}{''.join(f'; {one}' for one in told)}"


def changed(then: Verdict, now: Verdict) -> tuple[ChangedCase, ...]:
    """The cases of which two verdicts on one session do not say the same, in order.

    What neither fails nor warns nor is inconclusive in either is the same.
    """
    before = {one.case.key(): one for one in then.cases}
    after = {one.case.key(): one for one in now.cases}
    found = []
    for key in dict.fromkeys((*after, *before)):
        one, other = before.get(key), after.get(key)
        were, are = _against(one), _against(other)
        was, level = (None if it is None else it.level for it in (one, other))
        if was is level and were == are:
            continue
        gone = tuple(why for why in were if why not in are)
        new = tuple(why for why in are if why not in were)
        found.append(ChangedCase((other or one).case, was, level, gone, new))
    return tuple(found)


def _against(judged: Judged | None) -> tuple[str, ...]:
    """What is said against a case."""
    if judged is None:
        return ()
    told = (Level.FAIL, Level.INCONCLUSIVE, Level.WARN)
    return (
        *judged.faults,
        *([judged.expected] if judged.expected else []),
        *(ruling.why for ruling in judged.rulings if ruling.level in told),
    )
