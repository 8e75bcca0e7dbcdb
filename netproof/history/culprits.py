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
from functools import cached_property
from pathlib import Path
from typing import Any

from netproof.comparison.comparison import NOT_MEASURED_BY
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


class Recorded:
    """The store's records of one session, read on request."""

    def __init__(self, store: Store, stored: StoredSession) -> None:
        self._store, self._stored = store, stored

    @cached_property
    def session(self) -> dict[str, Any]:
        """Return the row of ``sessions``."""
        return self._rows("sessions", "select * from sessions")[0]

    @cached_property
    def nodes(self) -> dict[tuple[str, str], list[dict[str, Any]]]:
        """Return the rows of ``nodes``, by partition and environment."""
        return self._by_place(self._rows("nodes", "select * from nodes"))

    @cached_property
    def cases(self) -> dict[tuple, dict[str, Any]]:
        """Return the measured rows of ``cases``, by a case's key without its system."""
        rows = self._rows(
            "cases",
            f"select {', '.join(KEY)}, ranks_per_node, partition_extras, environment_extras"
            " from cases where complete",
        )
        return {tuple(row[name] for name in KEY): row for row in rows}

    @cached_property
    def node_lists(self) -> dict[tuple, frozenset[str]]:
        """Return the nodes of each case, by a case's key without its system."""
        rows = self._rows(
            "launches",
            f"select {', '.join(KEY)}, list(distinct used.node) as nodes"
            f" from (select {', '.join(KEY)}, unnest(ranks_used) as used from launches)"
            " group by all",
        )
        return {tuple(row[name] for name in KEY): frozenset(row["nodes"]) for row in rows}

    def _rows(self, table: str, query: str) -> list[dict[str, Any]]:
        found = questions.ask(self._store, [self._stored], [table], query)
        return found.to_pylist(maps_as_pydicts="strict")

    @staticmethod
    def _by_place(rows: Iterable[dict[str, Any]]) -> dict[tuple[str, str], list[dict[str, Any]]]:
        found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            found[row["partition"], row["environment"]].append(row)
        return found


class Archive:
    """The store's records of its sessions, each part read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[StoredSession, Recorded] = {}

    def culprits(
        self, before: StoredSession, after: StoredSession, cases: Sequence[Case]
    ) -> Culprits:
        """Return the differences between two sessions for ``cases`` of one configuration.

        Raise NetproofError where a session cannot be read.
        """
        one, other = self._recorded(before), self._recorded(after)
        place = (cases[0].partition, cases[0].environment)
        found = [
            *_of_nodes(one.nodes.get(place, []), other.nodes.get(place, [])),
            *_of_cases(one, other, cases),
            *_of_sessions(one.session, other.session, cases[0].environment),
        ]
        return Culprits(before, after, tuple(found), dict(_unknown(one, other, place)))

    def _recorded(self, stored: StoredSession) -> Recorded:
        if stored not in self._read:
            self._read[stored] = Recorded(self._store, stored)
        return self._read[stored]


def _of_nodes(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> Iterator[ProvenanceDifference]:
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


def _by_key(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return each property of nodes by name, with its value on each node."""
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
    one: Recorded, other: Recorded, cases: Sequence[Case]
) -> Iterator[ProvenanceDifference]:
    """Yield differences of the site's configuration, and of the nodes that the cases ran on."""
    keys = [tuple(getattr(case, name) for name in KEY) for case in cases]
    both = [key for key in keys if key in one.cases and key in other.cases]
    seen = set()
    for key in both:
        for difference in _of_extras(one.cases[key], other.cases[key]):
            if difference not in seen:
                seen.add(difference)
                yield difference
    lists = [
        (one.node_lists.get(key, frozenset()), other.node_lists.get(key, frozenset()))
        for key in both
    ]
    were, are = (
        (frozenset().union(*sides) for sides in zip(*lists, strict=True))
        if lists
        else (
            frozenset(),
            frozenset(),
        )
    )
    if were != are:
        yield ProvenanceDifference("nodes", _joined(were), _joined(are), (), own=True)
    elif moved := [pair for pair in lists if pair[0] != pair[1]]:
        was, now = moved[0]
        yield ProvenanceDifference(
            f"nodes of {len(moved)} of {len(lists)} cases, the first of them",
            _joined(was),
            _joined(now),
            (),
            own=True,
        )


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
        was, now = (
            {
                key: value
                for key, value in json_reading.json_value(row[column], column).items()
                if key not in NOT_MEASURED_BY
            }
            for row in (one, other)
        )
        yield from _differing(was, now, "{} in the site's file", own=True)
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


def _unknown(one: Recorded, other: Recorded, place: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Yield missing information on the configuration or the sessions' software, with reasons."""
    for recorded, when in ((one, "before"), (other, "after")):
        if place not in recorded.nodes:
            reasons = {
                name: why
                for name, why in recorded.session["unknown"].items()
                if name == "nodes" or name.startswith("nodes of ")
            }
            why = next(iter(reasons.values()), "the session has no record of them")
            yield f"nodes {when}", why
    reasons = {}
    for recorded in (one, other):
        for row in recorded.nodes.get(place, []):
            for key, why in row["absent"].items():
                reasons.setdefault(key, why)
        for key in (*_OF_SESSION, "software"):
            if key in recorded.session["unknown"]:
                reasons.setdefault(key, recorded.session["unknown"][key])
    yield from ((key.replace(".", " ", 1), why) for key, why in sorted(reasons.items()))


def _joined(nodes: Iterable[str]) -> str:
    return ", ".join(sorted(nodes)) or "none"


def _text(value: Any) -> str:
    if value is None:
        return NOT_KNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
