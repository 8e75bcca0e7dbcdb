"""The share of launches that crashed."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from netproof.criteria.findings import Bounds, Finding, Level, undefined
from netproof.criteria.interface import Criterion
from netproof.errors import NetproofError


@dataclass(frozen=True)
class CrashSettings(Bounds):
    """``warn`` and ``fail`` above this share of a configuration's launches that crashed.

    ``least``: the fewest crashes that are flagged; one of 40 is no rate.
    """

    fail: float | None = 0.02
    least: int = 2
    reached: ClassVar[Callable[[float, float], bool]] = operator.gt


def crash_share(
    crashed: int, launches: int, *, where: str, settings: CrashSettings = CrashSettings()
) -> Finding:
    """Return the share of a configuration's launches that crashed before their first figure.

    ``launches``: all attempts, with those that crashed. Raises NetproofError where more crashed
    than were made.
    """
    if not 0 <= crashed <= launches:
        raise NetproofError(f"{where}: {crashed} of {launches} launches cannot have crashed")
    if launches == 0:
        return undefined("crashes", where, "nothing was launched")
    value = crashed / launches
    level, bound = settings.level(value) if crashed >= settings.least else (Level.PASS, None)
    flagged = level in (Level.WARN, Level.FAIL)
    held = f", above {100 * bound:.3g} % is flagged" if flagged else ""
    return Finding(
        "crashes",
        level,
        where,
        f"{crashed} of {launches} launches crashed ({100 * value:.2g} %{held})",
        value=value,
        bound=bound,
    )


CRITERION = Criterion(14, {"crash": CrashSettings()}, {"crashes": "crash"})
