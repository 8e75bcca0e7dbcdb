"""The two sides of a comparison: sessions, or partitions or environments of one."""

from __future__ import annotations

from dataclasses import dataclass

from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.session.session import CheckResult, Session
from netproof.verdict.comparing import group


@dataclass(frozen=True)
class ComparedSide:
    """One side: a session, or the cases of one of its partitions or environments, or of both.

    ``name``: distinguishes it in sentences; ``also``: further sessions whose results stand in
    ``session``.
    """

    session: Session
    name: str
    partition: str | None = None
    environment: str | None = None
    also: tuple[Session, ...] = ()

    def results(self) -> dict[tuple, CheckResult]:
        """Return the final results of its cases, by the key that a counterpart shares.

        Raise NetproofError where it has none.
        """
        found = {}
        for result in self.session.results:
            case = result.case
            if case is None:
                continue
            if self.partition not in (None, case.partition):
                continue
            if self.environment not in (None, case.environment):
                continue
            # A case that ReFrame repeated counts as it ended.
            found[self._match(case)] = result
        if not found:
            raise NetproofError(f"{self.session.path}: {self._lack()}")
        return found

    def _match(self, case: Case) -> tuple:
        where = (
            None if self.partition else case.partition,
            None if self.environment else case.environment,
        )
        return (*where, *group(case))

    def _lack(self) -> str:
        cases = [result.case for result in self.session.results if result.case is not None]
        for asked, what in ((self.partition, "partition"), (self.environment, "environment")):
            known = dict.fromkeys(getattr(case, what) for case in cases)
            if asked is not None and asked not in known:
                return f"has no case of {what} {asked!r}; it has {', '.join(known) or 'no case'}"
        return f"has no case of {self.name}"


def sides(
    first: Session,
    second: Session | None = None,
    partitions: tuple[str, str] | None = None,
    environments: tuple[str, str] | None = None,
    names: tuple[str, str] | None = None,
) -> tuple[ComparedSide, ComparedSide]:
    """Return the two sides: two sessions, or two partitions or environments of one.

    ``partitions`` and ``environments``: those of the first and of the second side; ``names``: of
    the two sessions, else their files. Raise NetproofError where both sides would be the same, or a
    session holds several systems.
    """
    sessions = (first, second or first)
    for one in sessions:
        systems = sorted({result.system for result in one.results})
        if not systems:
            raise NetproofError(f"{one.path}: holds no test case, so nothing ran")
        if len(systems) != 1:
            raise NetproofError(
                f"{one.path}: holds results of {len(systems)} systems"
                f" ({', '.join(systems)}), and one is compared"
            )
    parts = []
    if first.path != sessions[1].path:
        parts.append(names or _session_names(first, sessions[1]))
    parts += [pair for pair in (partitions, environments) if pair and pair[0] != pair[1]]
    if not parts:
        raise NetproofError(
            f"{first.path}: both sides are the same; name a second session, or two with"
            " --partition or --environment"
        )
    asked = (partitions or (None, None), environments or (None, None))
    return tuple(
        ComparedSide(one, " ".join(pair[i] for pair in parts), asked[0][i], asked[1][i])
        for i, one in enumerate(sessions)
    )


def _session_names(first: Session, second: Session) -> tuple[str, str]:
    # A stored session is a folder, session=NAME.
    names = tuple(one.path.stem.removeprefix("session=") for one in (first, second))
    return names if names[0] != names[1] else (str(first.path), str(second.path))
