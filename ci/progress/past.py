"""Times of jobs and tests in past sessions of a store."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median

from ci.progress.course import Course
from ci.progress.lines import Test, repeats_launches
from netproof.commands.site_show import shown
from netproof.errors import NetproofError
from netproof.site.matrix import domain_of
from netproof.store import Store, questions
from netproof.store.durations import SESSIONS, TAKEN

_COMMANDS = "select session, command from sessions"
_TESTS = """
    select test, partition, environment, seconds from tests where result <> 'skip'
    union all select "check", partition, environment, seconds from cases where result <> 'skip'
"""


def by_past(system: str | None, store: Path | None, command: Sequence[str]) -> Course:
    """Return a course with the expected jobs, and their times in past sessions of a store.

    Sessions of the same command give each test's time; others give the jobs' times.
    """
    serial = "--exec-policy=serial" in command
    if system is None or store is None:
        return Course(serial=serial)
    past = past_tests(system.partition(":")[0], store, command) if serial else {}
    try:
        found = shown(system, store, full=False)
    except NetproofError:
        # ReFrame reports the site's faults.
        return Course(serial=serial, past=past)
    seconds = {job: one.seconds for job, one in found.expected.items() if one.seconds is not None}
    domains = {job: domain_of(job, found.matrix) for job in found.jobs}
    return Course(seconds, domains, serial, past)


def past_tests(system: str, store: Path, command: Sequence[str]) -> dict[Test, float]:
    """Return each test's seconds in the newest sessions of the same command.

    Only tests of the newest one count; empty without a session. Times are medians, but means for
    tests that repeat launches, which mostly have nothing to do.
    """
    try:
        opened = Store(store)
        sessions = opened.sessions(system)[-SESSIONS:]
        if not sessions:
            return {}
        table, _ = questions.each(
            opened,
            lambda these: questions.ask(opened, these, ["sessions"], _COMMANDS),
            sessions,
        )
        asked = {row["session"]: shlex.split(row["command"])[1:] for row in table.to_pylist()}
        wanted = list(command[1:])
        alike = [one for one in reversed(sessions) if asked.get(one.name) == wanted][:TAKEN]
        took: dict[Test, list[float]] = {}
        for number, stored in enumerate(alike):
            table = questions.ask(opened, [stored], ["tests", "cases"], _TESTS)
            for row in table.to_pylist():
                test = (row["test"], row["partition"], row["environment"])
                if number == 0 or test in took:
                    took.setdefault(test, []).append(row["seconds"])
    except (NetproofError, ValueError):
        # The run itself gives estimates later, and other readers report the store's fault.
        return {}
    return {
        test: mean(several) if repeats_launches(test) else median(several)
        for test, several in took.items()
    }
