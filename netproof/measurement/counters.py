"""Counters of each node's network over a launch, as ``run/shell/counters.sh`` printed them.

Formats after the kernel's documentation: proc_net(5) for /proc/net/dev, snmp and netstat,
Documentation/ABI/testing/sysfs-class-net for carrier changes, Documentation/ABI/stable/
sysfs-class-infiniband for ports. Every source is read whole, by the names that it gives itself.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import compress
from operator import attrgetter, ne, not_, or_
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import ValidationInfo, ValidatorFunctionWrapHandler, WrapValidator

from netproof.errors import NetproofError, ParseError, line_of, shortened

INTERFACE, TCP, SOFTNET, DRIVER, INFINIBAND = "interface", "tcp", "softnet", "driver", "infiniband"
"""Kinds of sources."""

CARRIER = "carrier_changes"
"""Counter whose changes between launches count too, with the launch that follows."""

SINCE = "carriers-since"
"""Where the node's reading of carriers after its launch before is kept among those of this one."""

WORD_BYTES = 4
"""``port_xmit_data`` and ``port_rcv_data`` count words of 4 bytes."""


Sent = tuple[int, int] | str
"""Bytes of the messages that had to be sent, without headers, and their number; or why not known.

It is the least that any algorithm must send.
"""


@dataclass(frozen=True, slots=True)
class CounterSource:
    """Counts of one source of a node.

    ``kind``: one of those above; ``name``: of the interface, of the port as ``mlx5_0/1``, empty
    for the node's own; ``counted``: what was added by counter, never 0; ``read``: which of
    ``Counters.names`` has all that were read; ``absent``: reasons for unknown counters; ``layer``:
    of a port, ``InfiniBand`` or ``Ethernet``; ``interfaces``: those of a port, or below an
    interface, which counts their bytes too.
    """

    kind: str
    name: str
    counted: Mapping[str, int]
    read: int
    absent: Mapping[str, str] = field(default_factory=dict)
    layer: str = ""
    interfaces: tuple[str, ...] = ()


def _resolved(names: Any, decode: ValidatorFunctionWrapHandler, known: ValidationInfo) -> Any:
    """Return sets of names; a file has each set once, and numbers in its launches."""
    if known.context is None:
        return decode(names)
    try:
        return tuple([known.context[number] for number in names])
    except (KeyError, TypeError):
        found = shortened(repr(names))
        reason = f"found {found}, expected numbers of the {len(known.context)} sets in line 1"
        raise NetproofError(f"names of counters: {reason}") from None


@dataclass(frozen=True)
class Counters:
    """Counts of a launch by node.

    ``names``: sets of counters that a source refers to; ``absent``: reasons for sources that could
    not be read.
    """

    sources: Mapping[str, tuple[CounterSource, ...]]
    names: Annotated[tuple[tuple[str, ...], ...], WrapValidator(_resolved)]
    absent: Mapping[str, Mapping[str, str]]

    def __post_init__(self) -> None:
        if self.sources.keys() != self.absent.keys():
            raise NetproofError(f"not all is known of the same nodes: {', '.join(self.sources)}")
        for node, sources in self.sources.items():
            for source in sources:
                if not 0 <= source.read < len(self.names):
                    raise NetproofError(f"{node}: {source.kind} {source.name} has no names")
        object.__setattr__(self, "names", _shared(self.names)[0])

    def source(self, node: str, kind: str, name: str = "") -> CounterSource | None:
        """Return a source; None where the launch or the node has none of that kind and name."""
        for one in self.sources.get(node, ()):
            if one.kind == kind and one.name == name:
                return one
        return None

    def of_kind(self, node: str, kind: str) -> tuple[CounterSource, ...]:
        """Return a node's sources of a kind."""
        return tuple([one for one in self.sources.get(node, ()) if one.kind == kind])

    def of_source(self, source: CounterSource, counter: str) -> int | None:
        """Return the increase of a counter: 0 if read and unchanged, None if not known."""
        if counter in source.counted:
            return source.counted[counter]
        return 0 if counter in self._names[source.read] else None

    @cached_property
    def _names(self) -> tuple[frozenset[str], ...]:
        return _shared(self.names)[1]

    @cached_property
    def sent_again(self) -> Mapping[str, tuple[int, int] | str]:
        """TCP segments that each node sent again, of all that it sent; else why not known.

        Segments that receivers reported as duplicates (D-SACK, RFC 2883) were late and not lost, as
        where frames overtake each other, and are subtracted.
        """
        found: dict[str, tuple[int, int] | str] = {}
        for name in self.sources:
            source = self.source(name, TCP)
            again, sent, late, reports = (
                None if source is None else self.of_source(source, counter) for counter in _SEGMENTS
            )
            if again is None or sent is None:
                found[name] = self.why(name, TCP, "", _SEGMENTS[again is not None])
            else:
                late = reports if late is None else late
                # Linux leaves out of OutSegs what is sent again.
                found[name] = max(0, again - (late or 0)), sent + again
        return found

    def value(self, node: str, kind: str, name: str, counter: str) -> int | None:
        """Return the same by names; None also where there is no such node or source."""
        source = self.source(node, kind, name)
        return None if source is None else self.of_source(source, counter)

    def why(self, node: str, kind: str, name: str, counter: str) -> str:
        """Return why ``value`` is None."""
        if node not in self.sources:
            return f"{node} reported no counters"
        source, absent = self.source(node, kind, name), self.absent[node]
        if source is not None and counter in source.absent:
            return source.absent[counter]
        for key in (f"{kind} {name}", kind, *absent):
            if key.startswith(kind) and key in absent:
                return absent[key]
        return "the kernel has no such counter"


def added(several: Iterable[Counters]) -> list[Counters]:
    """Return the sums over those that read the same of the same nodes; of TCP ``sent_again``."""
    alike: list[list[Counters]] = []
    by_nodes: dict[tuple[str, ...], list[tuple[Any, list[Counters]]]] = defaultdict(list)
    for one in several:
        shape = one.names, one.absent, [[*map(_SHAPE, its)] for its in one.sources.values()]
        known = by_nodes[tuple(one.sources)]
        them = next((them for its, them in known if its == shape), None)
        if them is None:
            alike.append(them := [])
            known.append((shape, them))
        them.append(one)
    sums = []
    for them in alike:
        again = {node: [one.sent_again[node] for one in them] for node in them[0].sources}
        # Each was checked as it was made.
        sums.append(object.__new__(Counters))
        vars(sums[-1]).update(vars(them[0]), _names=them[0]._names)
        vars(sums[-1])["sources"] = {
            node: _added(*(one.sources[node] for one in them)) for node in them[0].sources
        }
        vars(sums[-1])["sent_again"] = {
            node: next((why for why in each if isinstance(why, str)), None)
            or tuple(map(sum, zip(*each, strict=True)))
            for node, each in again.items()
        }
    return sums


_SHAPE = attrgetter("kind", "name", "read", "layer", "interfaces", "absent")
"""Attributes in which sources agree that can be added."""


def _added(
    own: tuple[CounterSource, ...], *others: tuple[CounterSource, ...]
) -> tuple[CounterSource, ...]:
    if not others:
        return own
    sources = []
    for first, *more in zip(own, *others, strict=True):
        if first.kind == TCP or not any(source.counted for source in more):
            sources.append(first)
            continue
        counted = dict(first.counted)
        for source in more:
            for name, increase in source.counted.items():
                counted[name] = counted.get(name, 0) + increase
        rest = first.read, first.absent, first.layer, first.interfaces
        sources.append(CounterSource(first.kind, first.name, counted, *rest))
    return tuple(sources)


# Kernels before 5.9 count reports and not the segments in them, which are as many or more.
_SEGMENTS = ("Tcp.RetransSegs", "Tcp.OutSegs", "TcpExt.TCPDSACKRecvSegs", "TcpExt.TCPDSACKRecv")


@lru_cache(maxsize=256)
def _shared(
    names: tuple[tuple[str, ...], ...],
) -> tuple[tuple[tuple[str, ...], ...], tuple[frozenset[str], ...]]:
    """Return one tuple for all that are equal, and its sets: launches of a site have the same."""
    return names, tuple(map(frozenset, names))


class _Reading(NamedTuple):
    """The kernel's words for the counters of a source; layer and interfaces of its port."""

    names: tuple[str, ...]
    words: list[str]
    of: tuple[str, ...] = ("",)


Readings = dict[str, _Reading]
"""Readings by the name of their source."""


_LINE = re.compile(
    r"netproof counters on ([^\t\n]*)(?:\t([0-9]+)\t([^\t\n]*)\t(.*)\tend$)?", re.MULTILINE
)
_LAST = "last"
"""Source name of a node's last line."""
_SOFTNET = ("processed", "dropped", "time_squeeze")
_GAUGE = "Tcp.CurrEstab"
_BITS = {
    4: ("local_link_integrity_errors", "excessive_buffer_overrun_errors"),
    8: (
        *("link_error_recovery", "link_downed"),
        *("port_xmit_constraint_errors", "port_rcv_constraint_errors"),
    ),
    16: (
        *("symbol_error", "port_rcv_errors", "port_rcv_remote_physical_errors"),
        *("port_rcv_switch_relay_errors", "port_xmit_discards", "VL15_dropped"),
    ),
    32: (
        *("port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets"),
        "port_xmit_wait",
    ),
}
"""Widths in which InfiniBand's PortCounters stop at their end, drivers/infiniband/core/sysfs.c."""
_ENDS = {f"counters/{name}": 2**bits - 1 for bits, names in _BITS.items() for name in names}


def counters(errors: Path, text: str, nodes: Collection[str]) -> Counters | None:
    """Read each node's counters from ``text``, a step's standard error at ``errors``.

    ``nodes``: of the ranks. None where the job recorded none. Raise ParseError for damaged or
    missing lines, and where only some nodes have counters.
    """
    of_nodes = _lines(errors, text)
    if not of_nodes:
        return None
    there, ran = sorted(of_nodes), sorted(nodes)
    if there != ran:
        reason = f"counters of {', '.join(there)} are there, and ranks ran on {', '.join(ran)}"
        raise ParseError(str(errors), 0, "", reason)
    return _counters(errors, of_nodes)


def of_crash(errors: Path) -> Counters | None:
    """Read the counters of the nodes that reported them from a crashed step's standard error.

    None where no node did, and where it cannot be read.
    """
    try:
        of_nodes = _lines(errors, errors.read_text(errors="replace"))
        whole = {node: lines for node, lines in of_nodes.items() if lines[-1][0] == _LAST}
        return _counters(errors, whole) if whole else None
    except (ParseError, OSError):
        return None


def _lines(errors: Path, text: str) -> dict[str, list[tuple[str, str]]]:
    """Return each node's lines as source and fields; ParseError for damaged lines."""
    of_nodes: dict[str, list[tuple[str, str]]] = {}
    for found in _LINE.finditer(text):
        node, number, what, fields = found.groups()
        lines = of_nodes.setdefault(node, [])
        if number != str(len(lines) + 1) or (lines and lines[-1][0] == _LAST):
            line = shortened(text[found.start() :].partition("\n")[0])
            reason = f"line {len(lines) + 1} of {node}'s counters was to follow, whole, if any"
            raise ParseError(str(errors), line_of(found), line, reason)
        lines.append((what, fields))
    return of_nodes


def _counters(errors: Path, of_nodes: Mapping[str, Sequence[tuple[str, str]]]) -> Counters:
    names: dict[tuple[str, ...], int] = {}
    sources, absent = {}, {}
    for node, lines in sorted(of_nodes.items()):
        try:
            if lines[-1][0] != _LAST:
                raise ValueError("the last line is missing")
            sources[node], absent[node] = _sources(lines[:-1], names)
        except (ValueError, IndexError) as error:
            reason = f"the counters of {node} cannot be read: {error}"
            raise ParseError(str(errors), 0, "", reason) from error
    return Counters(sources, tuple(names), absent)


def _sources(
    lines: Sequence[tuple[str, str]], names: dict[tuple[str, ...], int]
) -> tuple[tuple[CounterSource, ...], dict[str, str]]:
    """Return a node's sources, and the reasons for those that could not be read."""
    before, after = _texts(lines)
    since = _carriers(before.pop(SINCE, ""))
    absent: dict[str, str] = {}
    sources = []
    for kind, reader in (
        (INTERFACE, _interfaces),
        (TCP, _protocols),
        (SOFTNET, _softnet),
        (DRIVER, _drivers),
        (INFINIBAND, _ports),
    ):
        was, now = reader(before, absent), reader(after, absent)
        for name in dict.fromkeys((*was, *now)):
            if name not in was or name not in now:
                when = "before" if name not in was else "after"
                absent[f"{kind} {name}".strip()] = f"was not there {when} the launch"
                continue
            if kind == INTERFACE and name in since:
                # The carrier changes from the node's previous reading in the same job on count.
                earlier, words = since[name][2], was[name].words
                if _is_count(earlier) and _is_count(words[-1]) and int(earlier) <= int(words[-1]):
                    words[-1] = earlier
            sources.append(_source(kind, name, was[name], now[name], names))
    return tuple(sources), absent


def _texts(lines: Sequence[tuple[str, str]]) -> tuple[dict[str, str], dict[str, str]]:
    """Return each source's text before and after, by its name in ``counters.sh``."""
    joined: list[list[str]] = []
    for what, text in lines:
        if what != "more":
            joined.append([what, text])
        elif joined:
            joined[-1][1] += text
        else:
            raise ValueError("the first line goes on with nothing")
    moments: dict[str, dict[str, str]] = {"before": {}, "after": {}}
    same: list[str] = []
    for what, text in joined:
        moment, _, key = what.partition(" ")
        if what == "since carriers":
            moment, key = "before", SINCE
        if what == "same":
            same += filter(None, text.split("\t"))
        elif moment not in moments or not key or key in moments[moment]:
            raise ValueError(f"{what!r} is no reading, or the second")
        else:
            moments[moment][key] = text
    before, after = moments.values()
    for key in same:
        if key not in before or key in after:
            raise ValueError(f"{key!r} is the same as nothing")
        after[key] = before[key]
    return before, after


def _source(
    kind: str, name: str, was: _Reading, now: _Reading, names: dict[tuple[str, ...], int]
) -> CounterSource:
    counted: dict[str, int] = {}
    absent: dict[str, str] = {}
    limits: set[str] = set()
    looked_at: Iterable[tuple[str, str | None, str | None]]
    is_count: Callable[[str], bool] = _is_count
    together = "".join([*was.words, *now.words])
    if was.names == now.names and kind != INFINIBAND and together.isascii():
        # Most of the hundreds that a node has are counts that did not change: C finds the others.
        is_count, others = str.isdigit, map(ne, was.words, now.words)
        if not together.isdigit():
            others = map(or_, others, map(not_, map(str.isdigit, was.words)))
        looked_at = compress(zip(was.names, was.words, now.words, strict=True), others)
    else:
        earlier, later = (dict(zip(one.names, one.words, strict=True)) for one in (was, now))
        looked_at = [(one, earlier.get(one), later.get(one)) for one in earlier | later]
    for counter, before, after in looked_at:
        if before is None or after is None:
            when = "before" if before is None else "after"
            absent[counter] = f"was not there {when} the launch"
        elif is_count(before) and is_count(after):
            added = int(after) - int(before)
            if kind == INFINIBAND and int(after) == _ENDS.get(counter):
                absent[counter] = f"stands at its end, {after}"
            elif added < 0:
                absent[counter] = f"went from {before} to {after}: it was reset, or passed its end"
            elif added:
                counted[counter] = added
        elif before == after and _is_count(before.removeprefix("-")):
            # A limit of -1, which means no limit.
            limits.add(counter)
        else:
            reason = after if not _is_count(after) else before
            # A reason has blanks, the kernel's words have none.
            why = reason if " " in reason else f"is {shortened(reason)!r} and no count"
            absent[counter] = "cannot be read" if reason == "-" else why
    read = _without(was.names, frozenset(limits.union(absent)))
    place = names.setdefault(read, len(names))
    return CounterSource(kind, name, counted, place, absent, now.of[0], now.of[1:])


@lru_cache(maxsize=64)
def _without(names: tuple[str, ...], unread: frozenset[str]) -> tuple[str, ...]:
    return tuple([name for name in names if name not in unread]) if unread else names


def _is_count(word: str) -> bool:
    return word.isascii() and word.isdigit()


def _interfaces(texts: Mapping[str, str], absent: dict[str, str]) -> Readings:
    """Read /proc/net/dev by its own header, and carrier changes where /sys agrees with it."""
    printed, printed_again = texts.get("devices", ""), texts.get("devices-again", "")
    found = _devices(printed)
    again = found if printed_again == printed else _devices(printed_again)
    if not found:
        absent[INTERFACE] = "/proc/net/dev cannot be read"
    shown = _carriers(texts.get("carriers", ""))
    return {
        name: _Reading(
            (*reading.names, CARRIER),
            [*reading.words, _carrier(name, shown.get(name), reading, again.get(name))],
            ("", *shown.get(name, ())[3:]),
        )
        for name, reading in found.items()
    }


def _devices(text: str) -> Readings:
    lines = text.split("\t")
    rows = (line.rpartition(":") for line in lines[2:])
    return {name.strip(): _reading(_columns(lines[1]), row.split()) for name, _, row in rows}


# Nodes of a kernel have the same headers.
@lru_cache(maxsize=16)
def _columns(header: str) -> tuple[str, ...]:
    _, received, sent = header.split("|")
    columns = [f"rx_{name}" for name in received.split()] + [f"tx_{name}" for name in sent.split()]
    return tuple(columns)


def _carriers(text: str) -> dict[str, tuple[str, ...]]:
    """Return by interface what /sys shows: received and sent bytes, carrier changes, lower ones."""
    found = {}
    for entry in filter(None, text.split("\t")):
        name, *counts = entry.split(" ")
        if len(counts) < 3:
            raise ValueError(f"{shortened(entry)!r} is not an interface, two counts and a third")
        found[name] = tuple(counts)
    return found


def _carrier(
    name: str, shown: Sequence[str] | None, before: _Reading, after: _Reading | None
) -> str:
    if shown is None or not (_is_count(shown[0]) and _is_count(shown[1])) or after is None:
        return f"/sys/class/net/{name} cannot be read"
    for column, bytes_shown in (("rx_bytes", shown[0]), ("tx_bytes", shown[1])):
        place = before.names.index(column)
        if not int(before.words[place]) <= int(bytes_shown) <= int(after.words[place]):
            return f"/sys/class/net/{name} counts other bytes than /proc/net/dev"
    return shown[2]


def _reading(names: tuple[str, ...], words: list[str]) -> _Reading:
    if len(names) != len(words):
        raise ValueError(f"{len(names)} counters have {len(words)} values")
    return _Reading(names, words)


@lru_cache(maxsize=64)
def _headers(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return each line's first word of /proc/net/snmp or netstat, and all counters' names."""
    lines = [line.split() or [""] for line in text.split("\t")]
    names = (f"{first.removesuffix(':')}.{word}" for first, *words in lines for word in words)
    return tuple(first for first, *_ in lines), tuple(names)


def _protocols(texts: Mapping[str, str], absent: dict[str, str]) -> Readings:
    """Return ``Tcp.RetransSegs`` and all others of /proc/net/snmp and netstat."""
    names: tuple[str, ...] = ()
    words: list[str] = []
    for file in ("snmp", "netstat"):
        heads = texts.get(f"{file}-names", "")
        if not heads.strip("\t"):
            absent[f"{TCP} {file}"] = f"/proc/net/{file} cannot be read"
            continue
        labels, listed = _headers(heads)
        lines = [line.partition(" ") for line in texts.get(file, "").split("\t")]
        if labels != tuple([first for first, _, _ in lines]):
            raise ValueError(f"/proc/net/{file}: its lines do not follow those of their names")
        values = " ".join([counts for _, _, counts in lines]).split()
        names, words = names + listed, words + _reading(listed, values).words
    names, gauge = _without_gauge(names)
    if gauge is not None:
        del words[gauge]
    return {"": _Reading(names, words)} if names else {}


@lru_cache(maxsize=16)
def _without_gauge(names: tuple[str, ...]) -> tuple[tuple[str, ...], int | None]:
    """Return names of counters without the one that counts nothing, and its place there."""
    place = names.index(_GAUGE) if _GAUGE in names else None
    return tuple([name for name in names if name != _GAUGE]), place


def _softnet(texts: Mapping[str, str], absent: dict[str, str]) -> Readings:
    if not texts.get("softnet"):
        absent[SOFTNET] = "/proc/net/softnet_stat cannot be read"
        return {}
    return {"": _reading(_SOFTNET, texts["softnet"].split())}


def _drivers(texts: Mapping[str, str], absent: dict[str, str]) -> Readings:
    found = {}
    for name, (head, *lines) in _named(texts, DRIVER):
        if head == "NIC statistics:":
            found[name] = _listed(lines)
        else:
            absent[f"{DRIVER} {name}"] = f"ethtool -S: {shortened(head)}"
    if not found and not any(key.startswith(DRIVER) for key in absent):
        absent[DRIVER] = "not asked for, see the partition's driver_counters"
    return found


def _ports(texts: Mapping[str, str], absent: dict[str, str]) -> Readings:
    ports = _named(texts, INFINIBAND)
    return {name: _listed(lines, tuple(head.split(" "))) for name, (head, *lines) in ports}


def _named(texts: Mapping[str, str], kind: str) -> Iterator[tuple[str, list[str]]]:
    for key, text in texts.items():
        found, _, name = key.partition(" ")
        if found == kind and name:
            yield name, text.removeprefix("\t").split("\t")


def _listed(lines: Sequence[str], of: tuple[str, ...] = ("",)) -> _Reading:
    """Read lines ``name: count``; the name of a driver's counter may contain anything."""
    rows = [line.rpartition(":") for line in lines]
    for line, (_, colon, _) in zip(lines, rows, strict=True):
        if not colon:
            raise ValueError(f"{shortened(line)!r} is no name and count")
    found = {name: value.strip() for name, _, value in rows}
    return _Reading(tuple(found), list(found.values()), of)
