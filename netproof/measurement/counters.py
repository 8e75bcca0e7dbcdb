"""What each node's network counted while a launch ran, as ``run/shell/counters.sh`` printed it.

Formats after the kernel's documentation: proc_net(5) for /proc/net/dev, snmp and netstat,
Documentation/ABI/testing/sysfs-class-net for carrier changes, Documentation/ABI/stable/
sysfs-class-infiniband for ports. Every source is read whole, by the names that it gives itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netproof.errors import ParseError, shortened
from netproof.intake.numbering import numbered

INTERFACE, TCP, SOFTNET, DRIVER, INFINIBAND = "interface", "tcp", "softnet", "driver", "infiniband"
"""Kinds of sources."""

CARRIER = "carrier_changes"
"""Of it alone what came between launches counts too, with the launch that follows."""

SINCE = "carriers-since"
"""Where the node's reading of carriers after its launch before is kept among those of this one."""

WORD_BYTES = 4
"""``port_xmit_data`` and ``port_rcv_data`` count words of 4 bytes."""

_LINE = re.compile(r"netproof counters on ([^\t\n]*)(.*)")
_LAST = "last"
"""What the last line of a node is of."""
_SOFTNET = ("processed", "dropped", "time_squeeze")
_NO_COUNTERS = ("Tcp.CurrEstab",)
"""Gauges among the counters."""

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


@dataclass(frozen=True)
class CounterSource:
    """What one source of a node counted.

    ``kind``: one of those above; ``name``: of the interface, of the port as ``mlx5_0/1``, empty
    for the node's own. ``counted``: counters to what was added, never 0; ``read``: which of
    ``Counters.names`` has all that were read, to the others of which 0 was added; ``absent``:
    counters that are not known, each with the reason. ``layer``: of a port, ``InfiniBand`` or
    ``Ethernet``; ``interfaces``: those of a port, or below an interface, which counts their bytes
    too.
    """

    kind: str
    name: str
    counted: Mapping[str, int]
    read: int
    absent: Mapping[str, str] = field(default_factory=dict)
    layer: str = ""
    interfaces: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> CounterSource:
        """The source of plain values with its fields' names; TypeError where one is missing."""
        return cls(**{**values, "interfaces": tuple(values["interfaces"])})


@dataclass(frozen=True)
class NodeCounters:
    """What a node counted from before its first rank began to after that ended.

    ``absent``: sources that could not be read, each with the reason; ``took_s``: seconds that
    reading them took, before and after together.
    """

    node: str
    sources: tuple[CounterSource, ...]
    absent: Mapping[str, str]
    took_s: float

    def source(self, kind: str, name: str = "") -> CounterSource | None:
        """One of its sources, None where it has none of that kind and name."""
        for one in self.sources:
            if (one.kind, one.name) == (kind, name):
                return one
        return None

    def of_kind(self, kind: str) -> tuple[CounterSource, ...]:
        """Its sources of a kind."""
        return tuple(one for one in self.sources if one.kind == kind)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> NodeCounters:
        """The node of plain values with its fields' names; TypeError where one is missing."""
        return cls(**{**values, "sources": tuple(map(CounterSource.from_json, values["sources"]))})


@dataclass(frozen=True)
class Counters:
    """What all nodes of a launch counted; ``names``: sets of counters that a source refers to."""

    nodes: tuple[NodeCounters, ...]
    names: tuple[tuple[str, ...], ...]

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Counters:
        """Of plain values with its fields' names; KeyError or TypeError where one is missing."""
        names = tuple(tuple(several) for several in values["names"])
        found = cls(tuple(map(NodeCounters.from_json, values["nodes"])), names)
        for node in found.nodes:
            for source in node.sources:
                if not 0 <= source.read < len(names):
                    raise ValueError(f"{node.node}: {source.kind} {source.name} has no names")
        return found

    def of(self, node: str) -> NodeCounters | None:
        """What a node counted; None where it is no node of the launch."""
        return next((one for one in self.nodes if one.node == node), None)

    def of_source(self, source: CounterSource, counter: str) -> int | None:
        """What was added to a counter: 0 where it was read and did not change, None not known."""
        if counter in source.counted:
            return source.counted[counter]
        return 0 if counter in self.names[source.read] else None

    def value(self, node: str, kind: str, name: str, counter: str) -> int | None:
        """The same by names; None also where there is no such node or source."""
        counted = self.of(node)
        source = None if counted is None else counted.source(kind, name)
        return None if source is None else self.of_source(source, counter)

    def why(self, node: str, kind: str, name: str, counter: str) -> str:
        """Why ``value`` is None."""
        counted = self.of(node)
        if counted is None:
            return f"{node} told of no counters"
        source = counted.source(kind, name)
        if source is not None and counter in source.absent:
            return source.absent[counter]
        for key in (f"{kind} {name}", kind, *counted.absent):
            if key.startswith(kind) and key in counted.absent:
                return counted.absent[key]
        return "the kernel has no such counter"


def counters(errors: Path, text: str, nodes: Collection[str]) -> Counters | None:
    """What each node counted, of ``text``, a step's standard error at ``errors``.

    ``nodes``: those that the ranks ran on. None where the job recorded none, as before it did.
    Raises ParseError for lines that are damaged or missing, and where some nodes have counters and
    others have not.
    """
    said = _lines(errors, text)
    if not said:
        return None
    if sorted(said) != sorted(nodes):
        raise ParseError(
            str(errors),
            0,
            "",
            f"counters of {', '.join(sorted(said))} are there, and ranks ran on"
            f" {', '.join(sorted(nodes))}",
        )
    return _counters(errors, said)


def of_crash(errors: Path) -> Counters | None:
    """What nodes counted of a step that crashed, of those that came to say so.

    ``errors``: its standard error. None where no node did, and where it cannot be read.
    """
    try:
        said = _lines(errors, errors.read_text(errors="replace"))
        whole = {node: lines for node, lines in said.items() if lines[-1][0] == _LAST}
        return _counters(errors, whole) if whole else None
    except (ParseError, OSError):
        return None


def _lines(errors: Path, text: str) -> dict[str, list[tuple[str, str]]]:
    """What each node said, line by line: what of, and its fields. ParseError for damaged lines."""
    said: dict[str, list[tuple[str, str]]] = {}
    for number, found in numbered(_LINE, text):
        fields = found[2].split("\t")
        try:
            if len(fields) < 5 or fields[0] or fields[-1] != "end":
                raise ValueError("it is not whole")
            lines = said.setdefault(found[1], [])
            if lines and lines[-1][0] == _LAST:
                raise ValueError(f"{found[1]} has said its last already")
            if fields[1] != str(len(lines) + 1):
                raise ValueError(f"line {len(lines) + 1} of {found[1]} was to follow")
            lines.append((fields[2], "\t".join(fields[3:-1])))
        except ValueError as error:
            raise ParseError(
                str(errors), number, shortened(found[0]), f"is no line of counters: {error}"
            ) from error
    return said


def _counters(errors: Path, said: Mapping[str, Sequence[tuple[str, str]]]) -> Counters:
    names: dict[tuple[str, ...], int] = {}
    read = []
    for node in sorted(said):
        try:
            read.append(_node(node, said[node], names))
        except (ValueError, IndexError) as error:
            raise ParseError(
                str(errors), 0, "", f"the counters of {node} cannot be read: {error}"
            ) from error
    return Counters(tuple(read), tuple(names))


Readings = dict[str, dict[str, str]]
"""Name of a source to counter to the kernel's word for it."""


def _node(
    node: str, lines: Sequence[tuple[str, str]], names: dict[tuple[str, ...], int]
) -> NodeCounters:
    if lines[-1][0] != _LAST:
        raise ValueError("the last line is missing")
    before, after = _texts(lines[:-1])
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
        if kind == INTERFACE:
            _begin_earlier(was, since)
        for name in dict.fromkeys((*was, *now)):
            if name not in was or name not in now:
                when = "before" if name not in was else "after"
                absent[f"{kind} {name}".strip()] = f"was not there {when} the launch"
                continue
            sources.append(_source(kind, name, was[name], now[name], names))
    return NodeCounters(node, tuple(sources), absent, int(lines[-1][1]) / 1e6)


def _texts(lines: Sequence[tuple[str, str]]) -> tuple[dict[str, str], dict[str, str]]:
    """What each source had before and after, by its name in ``counters.sh``."""
    joined: list[list[str]] = []
    for what, text in lines:
        if what != "more":
            joined.append([what, text])
        elif joined:
            joined[-1][1] += text
        else:
            raise ValueError("the first line goes on with nothing")
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    same: list[str] = []
    for what, text in joined:
        moment, _, key = what.partition(" ")
        if moment == "since" and key == "carriers":
            moment, key = "before", SINCE
        if moment == "same" and not key:
            same += [one for one in text.split("\t") if one]
            continue
        place = {"before": before, "after": after}.get(moment)
        if place is None or not key or key in place:
            raise ValueError(f"{what!r} is no reading, or the second")
        place[key] = text
    for key in same:
        if key not in before or key in after:
            raise ValueError(f"{key!r} is the same as nothing")
        after[key] = before[key]
    return before, after


def _source(
    kind: str,
    name: str,
    was: Mapping[str, str],
    now: Mapping[str, str],
    names: dict[tuple[str, ...], int],
) -> CounterSource:
    counted: dict[str, int] = {}
    read: list[str] = []
    absent: dict[str, str] = {}
    for counter in dict.fromkeys((*was, *now)):
        before, after = was.get(counter), now.get(counter)
        if before is None or after is None:
            when = "before" if before is None else "after"
            absent[counter] = f"was not there {when} the launch"
        elif not (_is_count(before) and _is_count(after)):
            if before == after and _is_count(before.removeprefix("-")):
                # A limit that is none, -1.
                continue
            reason = after if not _is_count(after) else before
            # A reason has blanks, and a word of the kernel's none.
            told = reason if " " in reason else f"is {shortened(reason)!r} and no count"
            absent[counter] = "cannot be read" if reason == "-" else told
        elif kind == INFINIBAND and int(after) == _ENDS.get(counter):
            absent[counter] = f"stands at its end, {after}"
        elif int(after) < int(before):
            absent[counter] = f"went from {before} to {after}: it was reset, or passed its end"
        else:
            read.append(counter)
            if before != after:
                counted[counter] = int(after) - int(before)
    layer, *interfaces = now.of if isinstance(now, _Reading) else ("",)
    place = names.setdefault(tuple(read), len(names))
    return CounterSource(kind, name, counted, place, absent, layer, tuple(interfaces))


def _is_count(word: str) -> bool:
    return word.isascii() and word.isdigit()


def _interfaces(texts: Mapping[str, str], absent: dict[str, str]) -> Readings:
    """/proc/net/dev by its own header, and carrier changes where /sys shows the same interfaces."""
    first, again = (_devices(texts.get(key, "")) for key in ("devices", "devices-again"))
    if not first:
        absent[INTERFACE] = "/proc/net/dev cannot be read"
        return {}
    shown = _carriers(texts.get("carriers", ""))
    for name, columns in first.items():
        if name in shown:
            columns.of = ("", *shown[name][3:])
        columns[CARRIER] = _carrier(name, shown.get(name), columns, again.get(name))
    return dict(first)


def _carriers(text: str) -> dict[str, tuple[str, ...]]:
    """Of each interface what /sys shows: bytes received and sent, carrier changes, those below."""
    found = {}
    for entry in text.split("\t"):
        name, *counts = entry.split(" ")
        if entry and len(counts) < 3:
            raise ValueError(f"{shortened(entry)!r} is not an interface, two counts and a third")
        if entry:
            found[name] = tuple(counts)
    return found


def _begin_earlier(was: Mapping[str, dict[str, str]], since: Mapping[str, tuple[str, ...]]) -> None:
    """Counts changes of carriers from the node's reading before this one, in the same job."""
    for name, columns in was.items():
        changes = since[name][2] if name in since else ""
        known = _is_count(changes) and _is_count(columns[CARRIER])
        if known and int(changes) <= int(columns[CARRIER]):
            columns[CARRIER] = changes


def _carrier(
    name: str,
    shown: tuple[str, ...] | None,
    before: Mapping[str, str],
    after: Mapping[str, str] | None,
) -> str:
    """The carrier's changes, or why they are not known."""
    if shown is None or not (_is_count(shown[0]) and _is_count(shown[1])) or after is None:
        return f"/sys/class/net/{name} cannot be read"
    for column, bytes_shown in (("rx_bytes", shown[0]), ("tx_bytes", shown[1])):
        if not int(before[column]) <= int(bytes_shown) <= int(after[column]):
            return f"/sys/class/net/{name} counts other bytes than /proc/net/dev"
    return shown[2]


class _Reading(dict[str, str]):
    """Counters to the kernel's words; ``of``: layer and interfaces of its ``CounterSource``."""

    of: tuple[str, ...] = ("",)


def _devices(text: str) -> dict[str, _Reading]:
    lines = text.split("\t")
    if len(lines) < 3:
        return {}
    _, received, sent = lines[1].split("|")
    columns = [f"rx_{name}" for name in received.split()] + [f"tx_{name}" for name in sent.split()]
    found = {}
    for line in lines[2:]:
        name, _, values = line.rpartition(":")
        found[name.strip()] = _Reading(zip(columns, values.split(), strict=True))
    return found


def _protocols(texts: Mapping[str, str], absent: dict[str, str]) -> Readings:
    """``Tcp.RetransSegs`` and all others of /proc/net/snmp and netstat."""
    found: dict[str, str] = {}
    for file in ("snmp", "netstat"):
        heads = texts.get(f"{file}-names", "").split("\t")
        values = texts.get(file, "").split("\t")
        if not any(heads):
            absent[f"{TCP} {file}"] = f"/proc/net/{file} cannot be read"
            continue
        for head, line in zip(heads, values, strict=True):
            words, counts = head.split(), line.split()
            if words[:1] != counts[:1]:
                raise ValueError(f"/proc/net/{file}: {words[0]} is followed by {counts[0]}")
            for word, count in zip(words[1:], counts[1:], strict=True):
                name = f"{words[0].removesuffix(':')}.{word}"
                if name not in _NO_COUNTERS:
                    found[name] = count
    return {"": found} if found else {}


def _softnet(texts: Mapping[str, str], absent: dict[str, str]) -> Readings:
    if not texts.get("softnet"):
        absent[SOFTNET] = "/proc/net/softnet_stat cannot be read"
        return {}
    return {"": dict(zip(_SOFTNET, texts["softnet"].split(), strict=True))}


def _drivers(texts: Mapping[str, str], absent: dict[str, str]) -> Readings:
    found = {}
    for name, (head, *lines) in _named(texts, DRIVER):
        if head != "NIC statistics:":
            absent[f"{DRIVER} {name}"] = f"ethtool -S: {shortened(head)}"
            continue
        found[name] = dict(_pair(line) for line in lines)
    if not found and not any(key.startswith(DRIVER) for key in absent):
        absent[DRIVER] = "not asked for, see the partition's driver_counters"
    return found


def _ports(texts: Mapping[str, str], absent: dict[str, str]) -> Readings:
    found: Readings = {}
    for name, (head, *lines) in _named(texts, INFINIBAND):
        port = _Reading(_pair(line) for line in lines)
        port.of = tuple(head.split(" "))
        found[name] = port
    return found


def _named(texts: Mapping[str, str], kind: str) -> Iterator[tuple[str, list[str]]]:
    for key, text in texts.items():
        found, _, name = key.partition(" ")
        if found == kind and name:
            yield name, text.removeprefix("\t").split("\t")


def _pair(line: str) -> tuple[str, str]:
    """``name: count``; the name of a driver's counter may hold anything."""
    name, colon, value = line.rpartition(":")
    if not colon:
        raise ValueError(f"{shortened(line)!r} is no name and count")
    return name, value.strip()
