"""Stored results to compare a session with: the newest good result of every other case.

A new switch is measured alone. Envelope, baseline and scores then take other configurations from
stored sessions, and name the day of each.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import UTC
from typing import TYPE_CHECKING, Any

from netproof.benchmarks import registry
from netproof.criteria.findings import AGAINST
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.session.node_facts import between
from netproof.session.provenance import Provenance
from netproof.session.session import CheckResult, Session
from netproof.site.matrix import Matrix, matrix
from netproof.verdict import confirmations
from netproof.verdict.engine import Key, Subject, by_place, companion_keys, group
from netproof.verdict.judge import last_results, skipped_by, subject
from netproof.verdict.verdict import StoredResult, StoredResults

if TYPE_CHECKING:
    from netproof.store import Store, StoredSession

MOST_SESSIONS = 400
"""Sessions of a store that are searched, the newest first: a year of nights."""

PARTITION_KEYS = (
    "switch",
    "nic",
    "driver",
    "link_mbit_s",
    "mtu",
    "rdma",
    "rdma_mtu",
    "interface",
    "ranks_per_node",
    "netpipe_repeats",
    "netpipe_mpi_inside_repeats",
    *(one.arguments_key for one in registry.MPI_BENCHMARKS),
)
ENVIRONMENT_KEYS = ("mpi", "pmi", "mpi_over_tcp", "built")
"""Keys of a partition and of an environment in the site's file that change figures."""


def alongside(
    asked: StoredResults,
    session: Session,
    expected: Matrix,
    configuration: dict[str, Any],
) -> tuple[StoredResults, tuple[str, ...]]:
    """Return the newest good stored result of each other case, or of one that was skipped.

    A good result passed and was measured whole by undisturbed launches, and nothing along its curve
    or in its own session is against it. Cases are those of the whole system in ``configuration``
    that something in the session can be compared with. Also returns which parts of the store were
    not searched, a sentence each.
    Raises NetproofError where the folder is no store, or the session has no uuid or start.
    """
    from netproof.store import Store
    from netproof.store import ingest as ingesting

    store, own = Store(asked.store), ingesting.place(session)
    site = matrix(configuration, own.system, all_functions=True)
    here = {result.case for result in session.results if result.case is not None}
    compared = {group(case) for case in (*expected.cases, *here)}
    not_to_take = {case.key() for case in (*expected.cases, *here)} - skipped_by(session).keys()
    wanted = {
        case.key(): case
        for case in site.cases
        if group(case) in compared and case.key() not in not_to_take
    }
    taken: dict[Key, StoredResult] = {}
    left_out: dict[Key, StoredResult] = {}
    unread: list[str] = []
    every = store.sessions(own.system)
    for stored in reversed(every[-MOST_SESSIONS:]):
        days = (own.start - stored.start).total_seconds() / 86400
        aged = abs(days) > asked.max_age_days
        missing = wanted.keys() - taken.keys()
        if asked.leave_out_marked and aged:
            missing -= left_out.keys()
        if not missing or stored == own:
            continue
        where = {"session": stored.name, "path": store.path(stored), "days": days}
        where["started"] = stored.start.replace(tzinfo=UTC)
        marks = []
        if aged:
            word = "older" if days > 0 else "younger"
            marks.append(f"{abs(days):.0f} days {word}, and {asked.max_age_days:g} are allowed")
        try:
            for one, result, then in list(_good(store, stored, missing, site)):
                changes = [*marks, *_of_site(result, configuration, own.system)]
                changes += _of_versions(one.case, then, session.provenance)
                where |= {"subject": one, "marks": tuple(changes)}
                found = StoredResult.of(one.case, result, (), **where)
                if changes and asked.leave_out_marked:
                    left_out.setdefault(one.case.key(), found)
                else:
                    taken[one.case.key()] = found
        except NetproofError as error:
            unread.append(f"{stored.name} of the store: {error}")
    not_found = [case for key, case in wanted.items() if key not in taken | left_out]
    if not_found and len(every) > MOST_SESSIONS:
        unread.append(
            f"{len(every) - MOST_SESSIONS} sessions of {store.folder} that are older than the"
            f" {MOST_SESSIONS} newest"
        )
    found_results = replace(
        asked,
        store=store.folder,
        cases=tuple(taken[key] for key in wanted if key in taken),
        left_out=tuple(left_out[key] for key in wanted if key in left_out and key not in taken),
        not_found=tuple(not_found),
    )
    return found_results, tuple(unread)


def _good(
    store: Store, stored: StoredSession, keys: Collection[Key], site: Matrix
) -> Iterator[tuple[Subject, CheckResult, Provenance]]:
    """Yield the cases that a stored session measured well, with its provenance."""
    from netproof.store import questions

    passed = questions.passed(store, stored) & set(keys)
    if not passed:
        return
    session = questions.load(store, stored)
    results = by_place({key: one for key, one in last_results(session).items() if one.measured})
    day = f"{stored.start:%Y-%m-%d}"
    here = {key: subject(result, site, day) for key, result in results.items() if key in passed}
    compared = {
        key: subject(results[key], site, day)
        for one in here.values()
        for key in companion_keys(one.case, results)
        if key in results and key not in here
    }
    ruled = confirmations.findings_along([*here.values(), *compared.values()])
    for key, one in here.items():
        if not any(finding.level in AGAINST for finding in ruled[key]) and not one.disturbances:
            yield one, results[key], session.provenance


def _of_site(result: CheckResult, configuration: dict[str, Any], system: str) -> Iterator[str]:
    """Yield what the site's file has changed of the partition and the environment."""
    systems = {entry["name"]: entry for entry in configuration["systems"]}
    for entries, name, what, keys in (
        (systems[system]["partitions"], result.partition, "partition", PARTITION_KEYS),
        (configuration["environments"], result.environment, "environment", ENVIRONMENT_KEYS),
    ):
        now = next(entry for entry in entries if entry["name"] == name)["extras"]
        then = result.extras[f"{what}_extras"]
        for key in keys:
            # As JSON returns them.
            both = [json.loads(json.dumps(one[key])) for one in (then, now) if key in one]
            if len(both) == 2 and both[0] != both[1]:
                was, is_now = _shown(then[key]), _shown(now[key])
                yield f"{key} was {was} and is {is_now} in the site's file"


def _of_versions(case: Case, then: Provenance, now: Provenance) -> Iterator[str]:
    """Yield the differences of versions, as far as both sessions know them."""
    if then.netproof and now.netproof and then.netproof != now.netproof:
        yield f"made with netproof {then.netproof}, and not {now.netproof}"
    there = [found for found in then.nodes if found.partition == case.partition]
    differ = between(there, now.nodes)
    drivers = " or ".join(sorted({one.driver for one in there if one.driver}))
    for what, label in (("kernel", "kernel"), ("driver_version", f"driver {drivers}")):
        was, known = differ.get(what, ((), ()))
        if other := sorted({*was} - {*known}):
            yield f"{label} {', '.join(other)}, and not {', '.join(known)}"
    program = registry.of(case).program(case.function)
    here = (
        [one for one in nodes if one.environment == case.environment]
        for nodes in (there, now.nodes)
    )
    changed = [
        name.removeprefix("programs ")
        for name, (was, known) in between(*here).items()
        if {*was} - {*known} and f" {name}".endswith((f" {program}", f" of {program}"))
    ]
    if changed:
        yield f"other files of {', '.join(sorted(changed))}"


def _shown(value: Any) -> str:
    return (" ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)) or "empty"
