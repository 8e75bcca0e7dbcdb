"""Read nodes' network counters before and after each launch from a job's files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from netproof.errors import ParseError, shortened
from netproof.intake.numbering import numbered
from netproof.measurement.counters import (
    CARRIER,
    DRIVER,
    INFINIBAND,
    INTERFACE,
    SINCE,
    SOFTNET,
    TCP,
    Counters,
    CounterSource,
    NodeCounters,
    Readings,
)

_LINE = re.compile(r"netproof counters on ([^\t\n]*)(.*)")
_LAST = "last"
"""Source name of a node's last line."""
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


def counters(errors: Path, text: str, nodes: Collection[str]) -> Counters | None:
    """Read each node's counters from ``text``, a step's standard error at ``errors``.

    ``nodes``: of the ranks. None where the job recorded none. Raise ParseError for damaged or
    missing lines, and where only some nodes have counters.
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
    """Read the counters of a crashed step, of those nodes that reported them.

    ``errors``: its standard error. None where no node did, and where it cannot be read.
    """
    try:
        said = _lines(errors, errors.read_text(errors="replace"))
        whole = {node: lines for node, lines in said.items() if lines[-1][0] == _LAST}
        return _counters(errors, whole) if whole else None
    except (ParseError, OSError):
        return None


def _lines(errors: Path, text: str) -> dict[str, list[tuple[str, str]]]:
    """Return each node's lines as source and fields; ParseError for damaged lines."""
    said: dict[str, list[tuple[str, str]]] = {}
    for number, found in numbered(_LINE, text):
        fields = found[2].split("\t", 3)
        try:
            if len(fields) < 4 or fields[0] or not fields[3].endswith("\tend"):
                raise ValueError("it is not whole")
            lines = said.setdefault(found[1], [])
            if lines and lines[-1][0] == _LAST:
                raise ValueError(f"{found[1]} has said its last already")
            if fields[1] != str(len(lines) + 1):
                raise ValueError(f"line {len(lines) + 1} of {found[1]} was to follow")
            lines.append((fields[2], fields[3].removesuffix("\tend")))
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
    """Return each source's text before and after, by its name in ``counters.sh``."""
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
    absent: dict[str, str] = {}
    limits: set[str] = set()
    if kind == INFINIBAND:
        looked_at = list(was)
    else:
        # Most of the hundreds that a node has did not change, and are read.
        looked_at = [
            counter
            for counter, word in was.items()
            if now.get(counter) != word or not (word.isdigit() and word.isascii())
        ]
    looked_at += [counter for counter in now if counter not in was]
    for counter in looked_at:
        before, after = was.get(counter), now.get(counter)
        if before is None or after is None:
            when = "before" if before is None else "after"
            absent[counter] = f"was not there {when} the launch"
        elif not (_is_count(before) and _is_count(after)):
            if before == after and _is_count(before.removeprefix("-")):
                # A limit of -1, which means no limit.
                limits.add(counter)
                continue
            reason = after if not _is_count(after) else before
            # A reason has blanks, the kernel's words have none.
            why = reason if " " in reason else f"is {shortened(reason)!r} and no count"
            absent[counter] = "cannot be read" if reason == "-" else why
        elif kind == INFINIBAND and int(after) == _ENDS.get(counter):
            absent[counter] = f"stands at its end, {after}"
        elif int(after) < int(before):
            absent[counter] = f"went from {before} to {after}: it was reset, or passed its end"
        elif before != after:
            counted[counter] = int(after) - int(before)
    unread = limits.union(absent)
    read = tuple([counter for counter in was if counter not in unread])
    layer, *interfaces = now.of if isinstance(now, _Reading) else ("",)
    place = names.setdefault(read, len(names))
    return CounterSource(kind, name, counted, place, absent, layer, tuple(interfaces))


def _is_count(word: str) -> bool:
    return word.isascii() and word.isdigit()


def _interfaces(texts: Mapping[str, str], absent: dict[str, str]) -> Readings:
    """Read /proc/net/dev by its own header, and carrier changes where /sys agrees with it."""
    printed, printed_again = texts.get("devices", ""), texts.get("devices-again", "")
    first = _devices(printed)
    again = first if printed_again == printed else _devices(printed_again)
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
    """Return by interface what /sys shows: received and sent bytes, carrier changes, lower ones."""
    found = {}
    for entry in text.split("\t"):
        name, *counts = entry.split(" ")
        if entry and len(counts) < 3:
            raise ValueError(f"{shortened(entry)!r} is not an interface, two counts and a third")
        if entry:
            found[name] = tuple(counts)
    return found


def _begin_earlier(was: Mapping[str, dict[str, str]], since: Mapping[str, tuple[str, ...]]) -> None:
    """Count changes of carriers from the node's previous reading in the same job."""
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
    """Return the carrier's changes, or why they are not known."""
    if shown is None or not (_is_count(shown[0]) and _is_count(shown[1])) or after is None:
        return f"/sys/class/net/{name} cannot be read"
    for column, bytes_shown in (("rx_bytes", shown[0]), ("tx_bytes", shown[1])):
        if not int(before[column]) <= int(bytes_shown) <= int(after[column]):
            return f"/sys/class/net/{name} counts other bytes than /proc/net/dev"
    return shown[2]


class _Reading(dict[str, str]):
    """The kernel's words by counter; ``of``: layer and interfaces of its ``CounterSource``."""

    of: tuple[str, ...] = ("",)


def _devices(text: str) -> dict[str, _Reading]:
    lines = text.split("\t")
    if len(lines) < 3:
        return {}
    columns = _columns(lines[1])
    found = {}
    for line in lines[2:]:
        name, _, values = line.rpartition(":")
        found[name.strip()] = _Reading(zip(columns, values.split(), strict=True))
    return found


@lru_cache(maxsize=16)
def _columns(header: str) -> tuple[str, ...]:
    """Return the names of the columns of /proc/net/dev; nodes of a kernel have the same header."""
    _, received, sent = header.split("|")
    return (*(f"rx_{name}" for name in received.split()), *(f"tx_{name}" for name in sent.split()))


@lru_cache(maxsize=64)
def _names(header: str) -> tuple[str, ...]:
    """Return the first word of a header of /proc/net/snmp or netstat, and its counters' names."""
    first, *words = header.split() or [""]
    return (first, *(f"{first.removesuffix(':')}.{word}" for word in words))


def _protocols(texts: Mapping[str, str], absent: dict[str, str]) -> Readings:
    """Return ``Tcp.RetransSegs`` and all others of /proc/net/snmp and netstat."""
    found: dict[str, str] = {}
    for file in ("snmp", "netstat"):
        heads = texts.get(f"{file}-names", "").split("\t")
        values = texts.get(file, "").split("\t")
        if not any(heads):
            absent[f"{TCP} {file}"] = f"/proc/net/{file} cannot be read"
            continue
        for head, line in zip(heads, values, strict=True):
            (first, *names), (label, *counts) = _names(head), line.split() or [""]
            if first != label:
                raise ValueError(f"/proc/net/{file}: {first!r} is followed by {label!r}")
            found.update(zip(names, counts, strict=True))
    for name in _NO_COUNTERS:
        found.pop(name, None)
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
    """Split ``name: count``; the name of a driver's counter may contain anything."""
    name, colon, value = line.rpartition(":")
    if not colon:
        raise ValueError(f"{shortened(line)!r} is no name and count")
    return name, value.strip()
