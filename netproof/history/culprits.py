"""Other changes between two sessions: the reader's first question at a change.

Everything is from the store: the nodes as their jobs found them, the site's configuration, the
software, the files. Sizes and dates are not compared; differences are named, and so is missing
information.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from netproof.comparison.comparison import of_extras
from netproof.intake import json_reading
from netproof.measurement.case import Case
from netproof.session.node_differences import OF_ITS_OWN, memory_alike
from netproof.session.node_facts import GROUPS, Node
from netproof.store import Store, StoredSession, questions
from netproof.store.tables import KEY

NOT_KNOWN = "not known"

NODE_MAPS = GROUPS
"""Properties that a node has many of, by name."""
_NOT_COMPARED = ({*OF_ITS_OWN} - {"bus"}) | {*NODE_MAPS}
_OF_SESSION = ("netproof", "reframe", "slurm", "git_revision", "git_changed", "host")
_SHOWN_HASH = 12


@dataclass(frozen=True)
class ProvenanceDifference:
    """One difference.

    ``what``: its name, as ``nodes`` or the site's file has it; ``before``, ``after``: its values as
    text, several with commas; ``nodes``: on which nodes, for a property of nodes; ``own``: whether
    it is the configuration's and not the whole session's.
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


_KEY = ", ".join(KEY)

_ROWS = {
    "sessions": "select * from sessions",
    "nodes": "select * from nodes",
    "cases": f"select {_KEY}, ranks_per_node, partition_extras, environment_extras"
    " from cases where complete",
    "launches": f"select {_KEY}, list(distinct used.node) as nodes"
    f" from (select {_KEY}, unnest(ranks_used) as used from launches) group by all",
}
"""Questions to each table of a session."""

Rows = Sequence[Mapping[str, Any]]


class Archive:
    """The store's records of its sessions, each table read once."""

    def __init__(self, store: Store) -> None:
        self._rows = cache(
            lambda stored, table: questions.ask(store, [stored], [table], _ROWS[table]).to_pylist(
                maps_as_pydicts="strict"
            )
        )

    def culprits(
        self, before: StoredSession, after: StoredSession, cases: Sequence[Case]
    ) -> Culprits:
        """Return the differences between two sessions for ``cases`` of one configuration.

        Raise NetproofError where a session cannot be read.
        """
        pair = (before, after)
        place = (cases[0].partition, cases[0].environment)
        sessions = [self._rows(one, "sessions")[0] for one in pair]
        nodes = [
            [
                row
                for row in self._rows(one, "nodes")
                if place == (row["partition"], row["environment"])
            ]
            for one in pair
        ]
        found = [
            *_of_nodes(*nodes),
            *_of_cases(
                *([self._by_case(one, name) for one in pair] for name in ("cases", "launches")),
                cases,
            ),
            *_of_sessions(*sessions, place[1]),
        ]
        return Culprits(*pair, tuple(found), dict(_unknown(sessions, nodes)))

    def _by_case(self, stored: StoredSession, table: str) -> dict[tuple, Mapping[str, Any]]:
        return {tuple(row[name] for name in KEY): row for row in self._rows(stored, table)}


def _of_nodes(before: Rows, after: Rows) -> Iterator[ProvenanceDifference]:
    """Yield differences of nodes: of a node to itself, and of new nodes to all earlier ones."""
    one, other = _by_key(before), _by_key(after)
    if not one or not other:
        return
    were, are = {row["node"] for row in before}, {row["node"] for row in after}
    for key in sorted({*one, *other}, key=_weight):
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
        for key, value in _values(row):
            found[key][row["node"]].add(value)
    return {
        key: {node: ", ".join(sorted(values)) for node, values in by_node.items()}
        for key, by_node in found.items()
    }


def _values(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for field in fields(Node):
        if field.name in _NOT_COMPARED or row[field.name] is None:
            continue
        yield field.name, str(row[field.name])
    for group in NODE_MAPS:
        for key, value in row[group].items():
            if group == "programs":
                # SHA-256 and path; a checkout elsewhere has other paths and the same programs.
                digest, _, path = value.partition(" ")
                value = f"{Path(path).name} {digest[:_SHOWN_HASH]}"
            yield f"{group} {key}", value


def _weight(key: str) -> tuple[int, str]:
    """Return a key that sorts driver, MTU and the like before programs, sysctls, offloads."""
    order = (
        *("programs", "sysctls", "memory", "pci", "rings", "mitigations", "coalescing"),
        "offloads",
    )
    group = key.partition(" ")[0]
    return (order.index(group) + 1 if group in order else 0, key)


def _of_cases(
    rows: Sequence[Mapping[tuple, Mapping[str, Any]]],
    launches: Sequence[Mapping[tuple, Mapping[str, Any]]],
    cases: Sequence[Case],
) -> Iterator[ProvenanceDifference]:
    """Yield differences of the site's configuration, and of the nodes that the cases ran on.

    ``rows``, ``launches``: before and after, by case.
    """
    keys = [tuple(getattr(case, name) for name in KEY) for case in cases]
    both = [key for key in keys if all(key in one for one in rows)]
    yield from dict.fromkeys(
        difference for key in both for difference in _of_extras(*(one[key] for one in rows))
    )
    lists = [
        tuple(frozenset(one[key]["nodes"] if key in one else ()) for one in launches)
        for key in both
    ]
    were, are = (frozenset().union(*(pair[side] for pair in lists)) for side in (0, 1))
    moved = [pair for pair in lists if pair[0] != pair[1]]
    if were != are:
        yield ProvenanceDifference("nodes", _joined(were), _joined(are), (), own=True)
    elif moved:
        what = f"nodes of {len(moved)} of {len(lists)} cases, the first of them"
        yield ProvenanceDifference(what, *map(_joined, moved[0]), (), own=True)


def _differing(
    was: Mapping[str, Any], now: Mapping[str, Any], name: str, *, own: bool, absent: str = NOT_KNOWN
) -> Iterator[ProvenanceDifference]:
    """Yield the keys with other values; ``name``: what one is called, with ``{}`` for the key."""
    for key in dict.fromkeys((*was, *now)):
        if was.get(key) != now.get(key):
            values = (absent if one.get(key) is None else _text(one[key]) for one in (was, now))
            yield ProvenanceDifference(name.format(key), *values, (), own)


def _of_extras(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[ProvenanceDifference]:
    for column in ("partition_extras", "environment_extras"):
        sides = (json_reading.json_value(row[column], column) for row in (one, other))
        for key, was, now in of_extras(*sides):
            what = f"{key} in the site's file"
            yield ProvenanceDifference(what, _text(was), _text(now), (), own=True)
    was, now = ({"ranks a node": row["ranks_per_node"]} for row in (one, other))
    yield from _differing(was, now, "{}", own=True)


def _of_sessions(
    one: Mapping[str, Any], other: Mapping[str, Any], environment: str
) -> Iterator[ProvenanceDifference]:
    was, now = ({environment: row["mpi"].get(environment)} for row in (one, other))
    yield from _differing(was, now, "MPI library of {}", own=True)
    was, now = ({key.replace("_", " "): row[key] for key in _OF_SESSION} for row in (one, other))
    yield from _differing(was, now, "{}", own=False)
    labels = (one["labels"], other["labels"])
    for (was, now), name, absent in (
        ((_files(one), _files(other)), "{}", "not there"),
        (labels, "label {}", NOT_KNOWN),
    ):
        was = {key: was.get(key) for key in sorted({*was, *now})}
        yield from _differing(was, now, name, own=False, absent=absent)


def _files(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        f"{file['kind']} {Path(file['path']).name}": file["sha256"][:_SHOWN_HASH]
        for file in row["files"]
    }


def _unknown(
    sessions: Sequence[Mapping[str, Any]], nodes: Sequence[Rows]
) -> Iterator[tuple[str, str]]:
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


def _joined(nodes: Iterable[str]) -> str:
    return ", ".join(sorted(nodes)) or "none"


def _text(value: Any) -> str:
    if value is None:
        return NOT_KNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
