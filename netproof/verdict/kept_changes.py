"""Changes of today's verdict from a stored one."""

from __future__ import annotations

from dataclasses import dataclass

from netproof.criteria import Level
from netproof.measurement.case import Case
from netproof.verdict.verdict import Judged, Verdict


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
    """Return the objections to a case."""
    if judged is None:
        return ()
    reported = (Level.FAIL, Level.INCONCLUSIVE, Level.WARN)
    return (
        *judged.faults,
        *([judged.expected] if judged.expected else []),
        *(ruling.why for ruling in judged.rulings if ruling.level in reported),
    )
