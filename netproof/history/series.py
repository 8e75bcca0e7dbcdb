"""The series that are followed: what each case measured, session after session, from a store."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from netproof.errors import NetproofError
from netproof.history import detection
from netproof.history.selection import NEWEST_SESSIONS, Quantity
from netproof.intake import loading
from netproof.measurement.case import Case
from netproof.site.site import ScoreBaseline
from netproof.store import Store, StoredSession, questions
from netproof.store.columns import KEY

STILL_MEASURED = 10
"""A case that none of so many newest sessions measured is followed no longer."""

LEAST_POOLED = 2
"""Series of one configuration that make a pooled one."""


_SIZES = {Quantity.MEAN: "mean_sizes", Quantity.SCORE: "score_sizes"}
"""Where the sizes stand that a value is a mean over."""


@dataclass(frozen=True, eq=False)
class Series:
    """One quantity of one case: a value for each session, None where there is none.

    µs, MB/s or, of a score, a ratio; all above 0. ``inconclusive``: likewise, what was measured in
    sessions in which the case, or a score's baseline, was inconclusive; it is no value, and only
    shown. Compared by identity.
    """

    case: Case
    quantity: Quantity
    values: tuple[float | None, ...]
    inconclusive: tuple[float | None, ...]

    @property
    def where(self) -> tuple[str, str]:
        """Its configuration: partition and environment."""
        return self.case.partition, self.case.environment


@dataclass(frozen=True)
class Inconclusive:
    """A case whose figures of a ``session`` tell nothing of the network; ``why``: sentences."""

    case: Case
    session: StoredSession
    why: tuple[str, ...]

    def sentence(self) -> str:
        """Which case, and why, in a line."""
        case = self.case
        told = "; ".join(self.why)
        return f"{case.partition} {case.environment} {case.what()}: inconclusive: {told}"


@dataclass(frozen=True, eq=False)
class Pool:
    """One quantity of several cases of a configuration, as ``detection.pooled`` makes it.

    ``values`` have no unit: they are relative to the level of each series. Compared by identity.
    """

    partition: str
    environment: str
    quantity: Quantity
    members: tuple[Series, ...]
    values: tuple[float | None, ...]

    @property
    def where(self) -> tuple[str, str]:
        """Its configuration: partition and environment."""
        return self.partition, self.environment


@dataclass(frozen=True)
class Crashes:
    """Launches of a configuration, and those that crashed: a count for each session.

    None where a session has none, or is of before crashes were recorded. Most of them are 0, so
    that no level can be told of a single night: a share is over many.
    """

    partition: str
    environment: str
    launches: tuple[int | None, ...]
    crashed: tuple[int | None, ...]

    def sentence(self) -> str:
        """How many of all crashed, in how many sessions, and in the newest that counted them."""
        made, died = (sum(filter(None, line)) for line in (self.launches, self.crashed))
        nights = [night for night, count in enumerate(self.launches) if count is not None]
        some = sum(bool(count) for count in self.crashed)
        newest = nights[-1]
        return (
            f"{self.partition} {self.environment}: {died} of {made} launches crashed"
            f" ({100 * died / made:.2g} %), in {some} of {len(nights)} sessions; in the newest"
            f" {self.crashed[newest]} of {self.launches[newest]}"
        )


@dataclass(frozen=True)
class Nights:
    """Sessions of a system in order of their start, and every series over them.

    ``baseline``: what scores are against, None where no session says it; ``left``: series that
    are followed no longer, since none of the ``STILL_MEASURED`` newest sessions has them;
    ``other_sizes``: values left out, being means over other sizes than the newest of their series;
    ``crashes``: of each configuration that counted them; ``inconclusive``: the cases whose figures
    are no values of their series, by session; ``unread``: sessions that are damaged and left out,
    a sentence each that names the file.
    """

    system: str
    sessions: tuple[StoredSession, ...]
    series: tuple[Series, ...]
    pools: tuple[Pool, ...]
    baseline: ScoreBaseline | None
    left: int
    other_sizes: int
    crashes: tuple[Crashes, ...] = ()
    inconclusive: tuple[Inconclusive, ...] = ()
    unread: tuple[str, ...] = ()


def chosen(
    store: Store,
    system: str | None = None,
    session: str | None = None,
    *,
    last: int = NEWEST_SESSIONS,
    since: date | None = None,
    labels: Mapping[str, str] | None = None,
) -> tuple[str, tuple[StoredSession, ...]]:
    """The system, and those of its sessions that are looked at, in order of their start.

    ``system`` None takes the only one that the store has; ``session``: the last one, as
    ``Store.find`` knows it, the newest if None; ``last``: at most so many; ``since``: none that
    began before this day, UTC; ``labels``: only those that were given these. Raises NetproofError
    where there is no session, or several systems and none named.
    """
    until = None if session in (None, "newest") else named(store, session, system)
    everything = store.sessions()
    systems = sorted({stored.system for stored in everything})
    if until is not None:
        system = until.system
    if system is None:
        if len(systems) > 1:
            raise NetproofError(
                f"{store.folder}: holds {len(systems)} systems, {', '.join(systems)}; name one"
                " with --system"
            )
        system = systems[0] if systems else None
    if system not in systems:
        of = f" of system {system}; it has {', '.join(systems)}" if systems and system else ""
        raise NetproofError(
            f"{store.folder}: holds no session{of}; 'netproof ingest REPORT' brings one"
        )
    found = [stored for stored in everything if stored.system == system]
    if labels:
        known = _labels(store, found)
        found = [one for one in found if labels.items() <= known[one.name].items()]
        if not found:
            asked = " ".join(f"{key}={value}" for key, value in labels.items())
            there = sorted({f"{key}={value}" for of in known.values() for key, value in of.items()})
            raise NetproofError(
                f"{store.folder}: no session of {system} is labelled {asked}; the labels there are:"
                f" {', '.join(there) or 'none'}"
            )
    if until is not None:
        if until not in found:
            raise NetproofError(f"{until.name}: is not labelled as the sessions that are asked for")
        found = found[: found.index(until) + 1]
    if since is not None:
        found = [stored for stored in found if stored.start.date() >= since]
        if not found:
            raise NetproofError(f"{store.folder}: no session of {system} began on {since} or later")
    return system, tuple(found[-last:])


def read(store: Store, system: str, sessions: Sequence[StoredSession]) -> Nights:
    """Every series over ``sessions``, which are of ``system`` and in order of their start.

    What is damaged is left out and ``unread``. Raises NetproofError where nothing can be read.
    """
    baseline = _baseline(store, sessions)
    table, faults = questions.nightly(store, sessions, baseline)
    sessions = [stored for stored in sessions if stored not in faults]
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    night_of = {stored.name: night for night, stored in enumerate(sessions)}
    rows: dict[tuple, dict[int, int]] = defaultdict(dict)
    keys = zip(*(columns[name] for name in KEY), strict=True)
    for row, (session, key) in enumerate(zip(columns["session"], keys, strict=True)):
        rows[key][night_of[session]] = row
    unsettled = {
        key: {
            night: why for night, row in by_night.items() if (why := columns["inconclusive"][row])
        }
        for key, by_night in rows.items()
    }
    series, inconclusive, left, other_sizes = [], [], 0, 0
    for key, by_night in rows.items():
        case = _case(system, key, columns["ranks_per_node"], by_night)
        inconclusive += [
            Inconclusive(case, sessions[night], tuple(why)) for night, why in unsettled[key].items()
        ]
        of_baseline = unsettled.get(_key_of_baseline(case, baseline), {})
        for quantity in Quantity:
            if quantity is Quantity.SCORE and _is(baseline, case):
                # A score against itself is 1, whatever happens.
                continue
            out = unsettled[key].keys() | (of_baseline if quantity is Quantity.SCORE else {})
            values = {night: columns[quantity][row] for night, row in by_night.items()}
            shown = {night: values.pop(night) for night in out & values.keys()}
            if quantity in _SIZES:
                sizes = {night: columns[_SIZES[quantity]][row] for night, row in by_night.items()}
                other_sizes += _leave_other_sizes(values, sizes, shown)
            line, beside = (_line(found, len(sessions)) for found in (values, shown))
            if not any(line):
                continue
            newest = max(
                night for night, pair in enumerate(zip(line, beside, strict=True)) if any(pair)
            )
            if newest < len(sessions) - STILL_MEASURED:
                left += 1
                continue
            series.append(Series(case, quantity, line, beside))
    series.sort(key=lambda one: (one.case, list(Quantity).index(one.quantity)))
    return Nights(
        system,
        tuple(sessions),
        tuple(series),
        _pools(series),
        baseline,
        left,
        other_sizes,
        _crashes(store, sessions),
        tuple(sorted(inconclusive, key=lambda one: (one.session, one.case))),
        tuple(f"{stored.name} is left out: {why}" for stored, why in faults.items()),
    )


def _line(values: Mapping[int, float | None], nights: int) -> tuple[float | None, ...]:
    """A value for each night, None where there is none above 0."""
    return tuple(
        value if (value := values.get(night)) is not None and value > 0 else None
        for night in range(nights)
    )


def _crashes(store: Store, sessions: Sequence[StoredSession]) -> tuple[Crashes, ...]:
    night_of = {stored.name: night for night, stored in enumerate(sessions)}
    rows: dict[tuple[str, str], dict[int, tuple[int, int]]] = defaultdict(dict)
    table, _ = questions.each(store, lambda these: questions.crashes(store, these), sessions)
    for row in table.to_pylist():
        counts = (row["launches"], row["crashed"])
        rows[row["partition"], row["environment"]][night_of[row["session"]]] = counts
    nights = range(len(sessions))
    return tuple(
        Crashes(
            *where,
            *(
                tuple(by_night[night][which] if night in by_night else None for night in nights)
                for which in (0, 1)
            ),
        )
        for where, by_night in sorted(rows.items())
    )


def named(store: Store, name: str, system: str | None = None) -> StoredSession:
    """The session that ``Store.find`` has of this name, of ``system`` or of the only one.

    Raises NetproofError where none or several fit, and for the newest of several systems.
    """
    if name == "newest":
        return chosen(store, system, last=1)[1][-1]
    there = any(stored.name.startswith(name) for stored in store.sessions(system))
    found = store.find(name, system if there else None)
    if system not in (None, found.system):
        raise NetproofError(f"session {found.name} is of system {found.system}, not {system}")
    return found


def _labels(store: Store, sessions: Sequence[StoredSession]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {stored.name: {} for stored in sessions}
    table, _ = questions.each(store, lambda these: questions.labels(store, these), sessions)
    for row in table.to_pylist(maps_as_pydicts="strict"):
        found[row["session"]] = row["labels"]
    return found


def _baseline(store: Store, sessions: Sequence[StoredSession]) -> ScoreBaseline | None:
    """The baseline of the site, as the newest session has it that says one."""
    table, _ = questions.each(
        store, lambda these: questions.partition_extras(store, these), sessions
    )
    for row in reversed(table.to_pylist()):
        environment = loading.json_value(row["extras"], store.folder).get("baseline")
        if environment:
            return ScoreBaseline(row["partition"], environment)
    return None


def _is(baseline: ScoreBaseline | None, case: Case) -> bool:
    return (
        baseline is not None
        and case.partition == baseline.partition
        and (case.environment == baseline.environment)
    )


def _key_of_baseline(case: Case, baseline: ScoreBaseline | None) -> tuple | None:
    """What the rows have of the baseline's case that a case's score is against."""
    if baseline is None:
        return None
    there = dataclasses.replace(case, **dataclasses.asdict(baseline))
    return tuple(getattr(there, name) for name in KEY)


def _case(system: str, key: tuple, ranks_per_node: list, by_night: Mapping[int, int]) -> Case:
    named = dict(zip(KEY, key, strict=True))
    stated = [ranks_per_node[row] for _, row in sorted(by_night.items())]
    # Null where ReFrame never came to the case; the newest that says it counts.
    newest = next((count for count in reversed(stated) if count is not None), 0)
    return Case(system=system, ranks_per_node=newest, **named)


def _leave_other_sizes(
    values: dict[int, float | None],
    sizes: Mapping[int, list[int] | None],
    shown: dict[int, float | None],
) -> int:
    """Take out values that are means over other sizes than the newest; returns how many.

    What is only ``shown`` goes too, and does not count.
    """
    present = [night for night, value in values.items() if value is not None]
    if not present:
        return 0
    newest = sizes[max(present)]
    others = [night for night in present if sizes[night] != newest]
    for night in others:
        del values[night]
    for night in [night for night in shown if sizes[night] != newest]:
        del shown[night]
    return len(others)


def _pools(series: Sequence[Series]) -> tuple[Pool, ...]:
    groups: dict[tuple[str, str, Quantity], list[Series]] = defaultdict(list)
    for one in series:
        groups[(*one.where, one.quantity)].append(one)
    return tuple(
        Pool(*key, tuple(members), tuple(detection.pooled([one.values for one in members])))
        for key, members in groups.items()
        if len(members) >= LEAST_POOLED
    )
