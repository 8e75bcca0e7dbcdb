"""Earlier sessions, newest first, to date when a fault began."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path

from netproof.diagnosis.diagnosis import Earlier
from netproof.errors import NetproofError
from netproof.session import session
from netproof.verdict import judging
from netproof.verdict.judging import JudgedSession


def sessions_before(
    judged: JudgedSession, store: Path | None = None, most: int = 10
) -> Iterator[Earlier]:
    """Return up to ``most`` sessions of the system before a judged one, newest first.

    They come from ``store``, or without one from the reports beside the session's own. Each is
    opened only on request. Raises NetproofError if the store cannot be opened.
    """
    return islice(_of_store(judged, store) if store else _of_folder(judged), most)


def _of_store(judged: JudgedSession, folder: Path) -> Iterator[Earlier]:
    from netproof.store import Store, questions

    store, system = Store(folder), judged.matrix.cases[0].system
    began = _began(judged)
    for stored in reversed(store.sessions(system)):
        if began is None or stored.start < began:
            read = partial(questions.load, store, stored)
            yield Earlier(stored.name, stored.start, _judging(read, system))


def _began(judged: JudgedSession) -> datetime | None:
    """Return when a session began, UTC, to the second as in a store's names; None if unknown."""
    path = judged.session.path
    if path.is_dir():
        from netproof.store import Store

        return Store.holding(path)[1].start
    seconds = judged.session.info.get("time_start_unix")
    if not isinstance(seconds, int | float):
        return None
    return datetime.fromtimestamp(int(seconds), UTC).replace(tzinfo=None)


def _of_folder(judged: JudgedSession) -> Iterator[Earlier]:
    """Yield the reports of the same system that were written earlier."""
    path, system = judged.session.path, judged.matrix.cases[0].system
    if path.is_dir():
        return
    own = path.stat().st_mtime
    for other in session.reports(path.parent):
        written = other.stat().st_mtime
        if other.resolve() == path.resolve() or written > own:
            continue
        when = datetime.fromtimestamp(written, UTC).replace(tzinfo=None)
        try:
            read = session.load(other)
        except NetproofError as error:
            yield Earlier(other.name, when, partial(_refuse, str(error)))
            continue
        if any(result.system == system for result in read.results):
            yield Earlier(other.name, when, _judging(lambda read=read: read, system))


def _judging(read: Callable[[], session.Session], system: str) -> Callable[[], JudgedSession]:
    """Return a function that judges a session without the warnings of earlier ones."""
    return lambda: judging.judge_session(read(), system=system, fold=0)


def _refuse(why: str) -> JudgedSession:
    raise NetproofError(why)
