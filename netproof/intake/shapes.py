"""Of what kind each value of a document has to be; the first that is of another is named."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from netproof.errors import NetproofError, shortened

MOST_QUOTED = 60


@dataclass(frozen=True)
class Is:
    """A single value: what it is called, and whether one is of that kind."""

    called: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True)
class OrNone:
    """As ``shape``, or None."""

    shape: Shape


@dataclass(frozen=True)
class OrEmpty:
    """As ``shape``, or None, or an empty mapping, which tells as little."""

    shape: Shape


@dataclass(frozen=True)
class Each:
    """A list of what has one shape."""

    shape: Shape


@dataclass(frozen=True)
class RowOf:
    """A list of as many values as there are ``shapes``, each of its own."""

    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class Keys:
    """A mapping that has the keys of ``needed`` and may have those of ``others``, and more."""

    needed: Mapping[str, Shape] = field(default_factory=dict)
    others: Mapping[str, Shape] = field(default_factory=dict)


Shape = Is | OrNone | OrEmpty | Each | RowOf | Keys


def _finite(value: Any) -> bool:
    return type(value) is float and math.isfinite(value)


TEXT = Is("text", lambda value: isinstance(value, str))
WHOLE = Is("a whole number", lambda value: type(value) is int)
NUMBER = Is("a number", lambda value: _finite(value) or type(value) is int)
YES_OR_NO = Is("true or false", lambda value: isinstance(value, bool))
TEXTS_BY_NAME = Is(
    "a mapping of texts",
    lambda value: (
        isinstance(value, Mapping) and all(isinstance(one, str) for one in value.values())
    ),
)
MAPPING = Keys()


def insist(value: Any, shape: Shape, place: str) -> None:
    """Raises NetproofError, which names the place, unless a value is of the shape."""
    fault = _fault(value, shape)
    if fault is not None:
        steps, reason = fault
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
        raise NetproofError(f"{place}{': ' if path else ''}{path.removeprefix('.')}: {reason}")


Fault = tuple[tuple[str | int, ...], str]


def _fault(value: Any, shape: Shape) -> Fault | None:
    """Where below a value the first fault is, and what it is."""
    if isinstance(shape, OrNone):
        return None if value is None else _fault(value, shape.shape)
    if isinstance(shape, OrEmpty):
        return None if value is None or value == {} else _fault(value, shape.shape)
    if isinstance(shape, Is):
        return None if shape.holds(value) else ((), _expected(value, shape.called))
    if isinstance(shape, Each):
        if not isinstance(value, list | tuple):
            return (), _expected(value, "a list")
        return _first((place, one, shape.shape) for place, one in enumerate(value))
    if isinstance(shape, RowOf):
        if not isinstance(value, list | tuple) or len(value) != len(shape.shapes):
            return (), _expected(value, f"a list of {len(shape.shapes)}")
        return _first(
            (place, one, below)
            for place, (one, below) in enumerate(zip(value, shape.shapes, strict=True))
        )
    if not isinstance(value, Mapping):
        return (), _expected(value, "a mapping")
    missing = next((key for key in shape.needed if key not in value), None)
    if missing is not None:
        return (), f"{missing!r} is missing"
    asked = {**shape.needed, **shape.others}
    return _first((key, value[key], below) for key, below in asked.items() if key in value)


def _first(children: Iterable[tuple[str | int, Any, Shape]]) -> Fault | None:
    for step, value, shape in children:
        fault = _fault(value, shape)
        if fault is not None:
            return (step, *fault[0]), fault[1]
    return None


def _expected(value: Any, called: str) -> str:
    return f"found {shortened(repr(value), MOST_QUOTED)}, expected {called}"
