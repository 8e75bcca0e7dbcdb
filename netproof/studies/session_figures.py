"""A session's own landmarks, for the columns of the studies' tables."""

from __future__ import annotations

from typing import Any

from netproof.benchmarks import registry
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.measurement.units import line_rate_share
from netproof.session.session import CheckResult, Session

ABSENT = "absent"
"""Cell of a figure that a session lacks; the reason is below the table."""


class SessionAlongsideStudy:
    """A session's landmarks for the studies' tables, with the reasons for those it lacks.

    ``configurations``: partition and environment of each case, in the session's order. Raises
    NetproofError for a session without a case on two ranks.
    """

    def __init__(self, stored: Session) -> None:
        self.path = stored.path
        self._results: dict[tuple[str, ...], CheckResult] = {}
        for result in stored.results:
            case = result.case
            if case is not None and case.ranks == 2:
                # A case that ReFrame repeated has its last result.
                self._results[
                    case.partition,
                    case.environment,
                    case.benchmark,
                    case.function,
                    case.path,
                    case.direction,
                ] = result
        self.configurations = tuple(dict.fromkeys(key[:2] for key in self._results))
        if not self.configurations:
            raise NetproofError(
                f"{stored.path}: has no case on two ranks to show alongside a study"
            )
        self._reasons: list[str] = []

    def landmark(self, name: str, configuration: tuple[str, str], *what: str) -> float | None:
        """Return a case's landmark by name, or None where it is absent, and store the reason."""
        result = self._results.get((*configuration, *what))
        subject = f"{' '.join(configuration)} {named(*what)}"
        if result is None:
            self._reasons.append(f"{subject}: the session does not have it")
            return None
        if result.measured is None:
            self._reasons.append(
                f"{subject}: {result.result} in {result.phase or 'an unknown phase'}"
            )
            return None
        found = result.measured.landmarks
        if getattr(found, name) is None:
            self._reasons.append(f"{subject}: {name}: {found.why(name)}")
        return getattr(found, name)

    def peak_share(self, configuration: tuple[str, str], *what: str) -> float | None:
        """Return a case's peak over the line rate, as the studies do; None where one is absent."""
        peak = self.landmark("peak_mb_s", configuration, *what)
        result = self._results.get((*configuration, *what))
        rate = result.measured.line_rate_mb_s if peak is not None else None
        return None if rate is None else line_rate_share(peak, rate)

    def extras(self, configuration: tuple[str, str]) -> dict[str, Any]:
        """Return the site's keys of a configuration; empty if nothing of it was measured."""
        for key, result in self._results.items():
            if key[:2] == configuration and result.measured is not None:
                return result.extras["partition_extras"] | result.extras["environment_extras"]
        return {}

    def least_peak(self, partition: str | None = None) -> str:
        """Return which messages cannot be the inter-node peak, to end a caption, or nothing."""
        stated = {
            self.extras(one).get("line_rate_from_bytes", 0)
            for one in self.configurations
            if partition in (None, one[0])
        } - {0}
        if not stated:
            return ""
        return (
            f"; over a link, peaks are of {' or '.join(map(str, sorted(stated)))} bytes and more,"
            " since shorter bursts pass above its rate"
        )

    def reasons(self) -> list[str]:
        """Return why figures were absent since the last call, each reason once."""
        found = list(dict.fromkeys(self._reasons))
        self._reasons.clear()
        return found


def named(benchmark: str, function: str, path: str, direction: str) -> str:
    """Return a case as sentences on studies name it."""
    return registry.named(benchmark).words(
        Case("", "", "", benchmark, function, 2, 1, path, direction)
    )
