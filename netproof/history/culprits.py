"""Other changes between two sessions: the reader's first question at a change.

Everything is from the store: the nodes as their jobs found them, the site's configuration, the
software, the files. Sizes and dates are not compared; differences are named, and so is missing
information.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from netproof.comparison.comparison import of_extras
from netproof.intake import disk
from netproof.measurement.case import Case
from netproof.session.node_facts import OF_ITS_OWN, facts, memory_alike
from netproof.store import Store, StoredSession
from netproof.store.tables import KEY

NOT_KNOWN = "not known"

_NOT_COMPARED = {*OF_ITS_OWN} - {"bus"}
_OF_SESSION = ("netproof", "reframe", "slurm", "git_revision", "git_changed", "host")
_SHOWN_HASH = 12
_LAST = ("programs", "sysctls", "memory", "pci", "rings", "mitigations", "coalescing", "offloads")
_ORDER = {name: place for place, name in enumerate(_LAST, 1)}
"""Properties of nodes that come after driver, MTU and the like, in this order."""


@dataclass(frozen=True)
class ProvenanceDifference:
    """One difference.

    ``what``: its name, as ``nodes`` or the site's file has it; ``before``, ``after``: its values;
    ``nodes``: on which nodes, for a property of nodes; ``own``: whether it is the configuration's
    and not the whole session's.
    """

    what: str
    before: str
    after: str
    nodes: tuple[str, ...]
    own: bool

    def __str__(self) -> str:
        on = f" ({', '.join(self.nodes)})" if self.nodes else ""
        return f"{self.what}: {self.before} → {self.after}{on}"


@dataclass(frozen=True)
class Culprits:
    """Differences between the sessions ``before`` and ``after``, for one configuration.

    ``differences``: those of the configuration first; ``unknown``: information that a session
    lacks, each with the reason.
    """

    before: StoredSession
    after: StoredSession
    differences: tuple[ProvenanceDifference, ...]
    unknown: Mapping[str, str]


_READ: Mapping[str, Sequence[str] | None] = {
    "sessions": None,
    "nodes": None,
    "cases": (*KEY, "complete", "ranks_per_node", "partition_extras", "environment_extras"),
    "launches": (*KEY, "ranks_used.list.element.node"),
}
"""Tables of a session that are read, and their columns, None for all."""

Row = Mapping[str, Any]
Rows = Sequence[Row]
Key = tuple[Any, ...]
Differences = Iterator[ProvenanceDifference]


class Archive:
    """The store's records of its sessions, each session read once."""

    def __init__(self, store: Store) -> None:
        def read(stored: StoredSession) -> dict[str, Rows]:
            return {
                name: store.table(stored, name, columns).to_pylist(maps_as_pydicts="strict")
                for name, columns in _READ.items()
            }

        self._read = cache(read)

    def culprits(
        self, before: StoredSession, after: StoredSession, cases: Sequence[Case]
    ) -> Culprits:
        """Return the differences between two sessions for ``cases`` of one configuration.

        Raise NetproofError where a session cannot be read.
        """
        pair = [self._read(one) for one in (before, after)]
        place = (cases[0].partition, cases[0].environment)
        sessions = [tables["sessions"][0] for tables in pair]
        nodes = [
            [row for row in tables["nodes"] if place == (row["partition"], row["environment"])]
            for tables in pair
        ]
        found = (
            *_of_nodes(nodes[0], nodes[1]),
            *_of_cases(pair, cases),
            *_of_sessions(sessions[0], sessions[1], place[1]),
        )
        return Culprits(before, after, found, dict(_unknown(sessions, nodes)))


def _of_nodes(before: Rows, after: Rows) -> Differences:
    """Yield differences of nodes: of a node to itself, and of new nodes to all earlier ones."""
    one, other = _by_key(before), _by_key(after)
    if not one or not other:
        return
    were, are = {row["node"] for row in before}, {row["node"] for row in after}
    for key in sorted({*one, *other}, key=lambda key: (_ORDER.get(key.partition(" ")[0], 0), key)):
        group = key.partition(" ")[0]
        changed: dict[tuple[str, str], list[str]] = defaultdict(list)
        old, new = one.get(key, {}), other.get(key, {})
        for node in sorted(were & are):
            pair = (old.get(node, NOT_KNOWN), new.get(node, NOT_KNOWN))
            if not _alike(group, *pair):
                changed[pair].append(node)
        known = ", ".join(sorted({old.get(node, NOT_KNOWN) for node in were}))
        for node in sorted(are - were):
            value = new.get(node, NOT_KNOWN)
            if not any(_alike(group, old.get(node, NOT_KNOWN), value) for node in were):
                changed[known, value].append(node)
        for (was, now), nodes in changed.items():
            yield ProvenanceDifference(key, was, now, tuple(nodes), own=True)


def _alike(group: str, was: str, now: str) -> bool:
    """Check whether two values of ``_by_key`` are the same; of memory, nearly the same."""
    values = {*was.split(", "), *now.split(", ")}
    return was == now or (group == "memory" and memory_alike(values))


def _by_key(rows: Rows) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in rows:
        for key, value in facts(row, _NOT_COMPARED):
            if key.startswith("programs "):
                # SHA-256 and path; a checkout elsewhere has other paths and the same programs.
                digest, _, path = value.partition(" ")
                value = f"{Path(path).name} {digest[:_SHOWN_HASH]}"
            found[key][row["node"]].add(value)
    return {
        key: {node: ", ".join(sorted(values)) for node, values in by_node.items()}
        for key, by_node in found.items()
    }


def _of_cases(pair: Sequence[Mapping[str, Rows]], cases: Sequence[Case]) -> Differences:
    """Yield differences of the site's configuration, and of the nodes that the cases ran on."""
    rows = [{_key(row): row for row in tables["cases"] if row["complete"]} for tables in pair]
    keys = [tuple(getattr(case, name) for name in KEY) for case in cases]
    both = [key for key in keys if all(key in one for one in rows)]
    found = (one for key in both for one in _of_extras(rows[0][key], rows[1][key]))
    yield from dict.fromkeys(found)
    used: list[dict[Key, set[str]]] = [defaultdict(set) for _ in pair]
    for ran_on, tables in zip(used, pair, strict=True):
        for row in tables["launches"]:
            ran_on[_key(row)].update(rank["node"] for rank in row["ranks_used"])
    lists = [[ran_on[key] for ran_on in used] for key in both]
    were, are = (sorted(set().union(*(pair[side] for pair in lists))) for side in (0, 1))
    moved = [pair for pair in lists if pair[0] != pair[1]]
    what = "nodes"
    if were == are and moved:
        what = f"nodes of {len(moved)} of {len(lists)} cases, the first of them"
        were, are = map(sorted, moved[0])
    joined = (", ".join(nodes) or "none" for nodes in (were, are))
    yield from _differing([(what, *joined)], own=True)


def _key(row: Row) -> Key:
    return tuple(row[name] for name in KEY)


def _of_extras(one: Row, other: Row) -> Differences:
    for column in ("partition_extras", "environment_extras"):
        was, now = (disk.json_value(row[column], column) for row in (one, other))
        found = of_extras(was, now)
        yield from _differing(
            ((f"{key} in the site's file", *pair) for key, *pair in found), own=True
        )
    per_node = (row["ranks_per_node"] for row in (one, other))
    yield from _differing([("ranks per node", *per_node)], own=True)


def _of_sessions(was: Row, now: Row, environment: str) -> Differences:
    libraries = (row["mpi"].get(environment) for row in (was, now))
    yield from _differing([(f"MPI library of {environment}", *libraries)], own=True)
    software = ((key.replace("_", " "), was[key], now[key]) for key in _OF_SESSION)
    yield from _differing(software, own=False)
    for before, after, name, absent in (
        (_files(was), _files(now), "{}", "not there"),
        (was["labels"], now["labels"], "label {}", NOT_KNOWN),
    ):
        keys = sorted({*before, *after})
        values = ((name.format(key), before.get(key), after.get(key)) for key in keys)
        yield from _differing(values, own=False, absent=absent)


def _differing(
    values: Iterable[Sequence[Any]], *, own: bool, absent: str = NOT_KNOWN
) -> Differences:
    """Yield the values that differ; ``values``: name, before and after, None where ``absent``."""
    for what, was, now in values:
        if was != now:
            before, after = (absent if one is None else _text(one) for one in (was, now))
            yield ProvenanceDifference(what, before, after, (), own)


def _files(row: Row) -> dict[str, str]:
    return {
        f"{file['kind']} {Path(file['path']).name}": file["sha256"][:_SHOWN_HASH]
        for file in row["files"]
    }


def _unknown(sessions: Rows, nodes: Sequence[Rows]) -> Iterator[tuple[str, str]]:
    """Yield missing information on the configuration or the sessions' software, with reasons."""
    reasons: dict[str, str] = {}
    for session, rows, when in zip(sessions, nodes, ("before", "after"), strict=True):
        unknown = session["unknown"]
        if not rows:
            of_nodes = (why for name, why in unknown.items() if f"{name} ".startswith("nodes "))
            yield f"nodes {when}", next(of_nodes, "the session has no record of them")
        for row in rows:
            reasons = row["absent"] | reasons
        software = {key: unknown[key] for key in (*_OF_SESSION, "software") if key in unknown}
        reasons = software | reasons
    yield from ((key.replace(".", " ", 1), why) for key, why in sorted(reasons.items()))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
