"""Faults to plant: their places, keys and values.

They are the same in ``faults:`` of a topology file and in ``testbed plant PLACE KEY=VALUE``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from netproof.errors import NetproofError, shortened

Value = float | int | str
Faults = dict[str, dict[str, Value]]
"""Values by place (a node, a leaf for its uplink, or a switch) and key."""

NODE, LEAF, SWITCH = "node", "leaf", "switch"
LEAST_MTU, MOST_MTU = 576, 9000
MOST_MBPS = 100_000
MOST_BUFFER = 2**30
MOST_BUSY = 64
LEAST_SHARE = 0.001
SYSCTL = re.compile(r"net(\.[A-Za-z0-9_-]+){2,}")
BOTH_WAYS, ONE_WAY = "rate", ("send_rate", "receive_rate")
DELAYS = ("delay", "jitter", "batch", "reorder")
"""Faults that hold packets. A switch's apply to all its nodes without their own."""
MOST_DELAY = 100_000


class FaultError(NetproofError):
    """An unknown fault, or one not possible at this place or with this value."""


@dataclass(frozen=True)
class Kind:
    """A kind of fault: its ``places``, its value in words, and the value's type."""

    places: tuple[str, ...]
    wants: str
    type: Any


def _share(least: float) -> Any:
    return Annotated[float, Field(strict=True, ge=least, lt=1)]


def _whole(low: int, high: int) -> Any:
    return Annotated[int, Field(strict=True, ge=low, le=high)]


def _setting(value: object) -> str:
    """Return a sysctl's value, with several numbers in the kernel's form."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("neither number nor text")
    text = " ".join(str(value).split())
    if not re.fullmatch(r"[\w.,:/-]+( [\w.,:/-]+)*", text, re.ASCII):
        raise ValueError("has characters of no number and no name")
    return text


_SHARE = Kind(
    (NODE, LEAF), f"a share of its rate, from {LEAST_SHARE} to below 1", _share(LEAST_SHARE)
)
KINDS = {
    BOTH_WAYS: _SHARE,
    **dict.fromkeys(ONE_WAY, _SHARE),
    "loss": Kind((NODE, LEAF), "a share of frames, from 0.000001 to below 1", _share(1e-6)),
    "link": Kind((NODE, LEAF), "'down'", Literal["down"]),
    "mtu": Kind(
        (NODE,),
        f"a whole number from {LEAST_MTU} to {MOST_MTU}",
        _whole(LEAST_MTU, MOST_MTU),
    ),
    "busy_cpus": Kind((NODE,), f"a whole number from 1 to {MOST_BUSY}", _whole(1, MOST_BUSY)),
    "buffer": Kind((SWITCH,), f"bytes, 1 to {MOST_BUFFER}", _whole(1, MOST_BUFFER)),
    "mgmt_mbps": Kind((SWITCH,), f"Mbit/s, 1 to {MOST_MBPS}", _whole(1, MOST_MBPS)),
    "delay": Kind(
        (NODE, SWITCH), f"µs, a whole number from 0 to {MOST_DELAY}", _whole(0, MOST_DELAY)
    ),
    **dict.fromkeys(
        ("jitter", "batch"),
        Kind((NODE, SWITCH), f"µs, a whole number from 1 to {MOST_DELAY}", _whole(1, MOST_DELAY)),
    ),
    "reorder": Kind((NODE, SWITCH), "a share of packets, from 0.000001 to below 1", _share(1e-6)),
}
_SYSCTL = Kind((NODE,), "a sysctl's value", Annotated[str, BeforeValidator(_setting)])


def is_sysctl(key: str) -> bool:
    """Return whether the key names a sysctl of a node's network instead of a fault of KINDS."""
    return SYSCTL.fullmatch(key) is not None


def checked(place: str, key: object, value: object) -> Value:
    """Return the value to store of a fault on a ``place``: NODE, LEAF or SWITCH.

    Raises FaultError with the right form.
    """
    kind = KINDS.get(key) if isinstance(key, str) else None
    if kind is None and isinstance(key, str) and is_sysctl(key):
        kind = _SYSCTL
    if kind is None or place not in kind.places:
        own = [name for name, one in KINDS.items() if place in one.places]
        own += ["a sysctl's name as net.ipv4.tcp_sack"] * (place == NODE)
        raise FaultError(
            f"{shortened(str(key), 80)}: no fault of a {place}; its faults are {', '.join(own)}"
        )
    try:
        return TypeAdapter(kind.type).validate_python(value)
    except ValidationError as error:
        found = shortened(repr(value), 80)
        raise FaultError(f"{key}: found {found}; write {kind.wants}") from error


def contradiction(keys: Mapping[str, Value]) -> str | None:
    """Return why these faults of one place exclude each other; None if they do not."""
    one_way = [key for key in ONE_WAY if key in keys]
    if BOTH_WAYS in keys and one_way:
        return (
            f"{BOTH_WAYS} is of both directions, and {one_way[0]} of one: give the one or the other"
        )
    return None


def nothing_waits(keys: Mapping[str, Value]) -> str | None:
    """Return why a node's DELAYS, with its switch's, have no effect; None if they have."""
    if "reorder" in keys and not any(keys.get(key) for key in DELAYS if key != "reorder"):
        return "reorder lets packets overtake those that wait: give a delay too"
    return None


def read_value(text: str) -> Value:
    """Read the value of KEY=VALUE on a command line: a number if it looks like one, else text."""
    for kind, form in ((int, r"-?[0-9]{1,18}"), (float, r"-?[0-9]*\.?[0-9]+(e-?[0-9]{1,2})?")):
        if re.fullmatch(form, text):
            return kind(text)
    return text


def assignments(place: str, keys: Mapping[str, Value]) -> list[str]:
    """Return each fault as ``PLACE KEY=VALUE``, as for ``plant``."""
    return [f"{place} {shlex.quote(f'{key}={value}')}" for key, value in keys.items()]
