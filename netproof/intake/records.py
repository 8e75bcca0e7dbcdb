"""Dataclasses and pydantic models as plain values for JSON, and back, strictly.

A type's declaration decides what is read: unknown keys, missing ones that it needs, and values of
another type are refused, with their place.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from netproof.errors import NetproofError, shortened
from netproof.intake.shapes import MOST_QUOTED

T = TypeVar("T")

_INFINITE = {"inf": math.inf, "-inf": -math.inf}
"""JSON has no infinite numbers."""


def as_json(value: Any) -> Any:
    """Return plain values of dataclasses, enums, sets, tuples, mappings by text, and JSON's own.

    Fields of dataclasses that equal their defaults are left out, those of models never. Raise
    TypeError for any other value.
    """
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value):
        return {
            one.name: as_json(found)
            for one in dataclasses.fields(value)
            if not _is_default(one, found := getattr(value, one.name))
        }
    if isinstance(value, Mapping):
        return {key: as_json(one) for key, one in value.items()}
    if isinstance(value, frozenset):
        return sorted(map(as_json, value))
    if isinstance(value, list | tuple):
        return [as_json(one) for one in value]
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and not math.isnan(value):
        return float(value) if math.isfinite(value) else str(float(value))
    raise TypeError(f"{value!r} has no place in JSON")


def from_json(kind: type[T], values: Any, place: str) -> T:
    """Return the value that ``as_json`` wrote; whole numbers stay whole, also among floats.

    Raise NetproofError, with the place, where it is not of this type.
    """
    return _read(kind, values, place)


def _is_default(one: dataclasses.Field[Any], value: Any) -> bool:
    return type(value) is type(one.default) and bool(value == one.default)


@cache
def hints(kind: type) -> dict[str, Any]:
    """Return the types of a dataclass's fields by name."""
    found = typing.get_type_hints(kind)
    return {one.name: found[one.name] for one in dataclasses.fields(kind)}


def _read(kind: Any, value: Any, place: str) -> Any:
    if kind in _PLAIN:
        return _plain(kind, value, place)
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, value, place)
    origin, parameters = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in parameters:
            return None
        (only,) = [one for one in parameters if one is not type(None)]
        return _read(only, value, place)
    if origin is tuple and parameters[-1] is not Ellipsis:
        _insist(isinstance(value, list) and len(value) == len(parameters), value, kind, place)
        pairs = zip(parameters, value, strict=True)
        return tuple(_read(one, each, f"{place}[{n}]") for n, (one, each) in enumerate(pairs))
    if origin in (tuple, frozenset):
        _insist(isinstance(value, list), value, "a list", place)
        return origin(_read(parameters[0], each, f"{place}[{n}]") for n, each in enumerate(value))
    if origin is not None and issubclass(origin, Mapping):
        _insist(isinstance(value, dict), value, "a mapping", place)
        return {key: _read(parameters[1], each, f"{place}.{key}") for key, each in value.items()}
    if issubclass(kind, BaseModel):
        return _model(kind, value, place)
    if issubclass(kind, Enum):
        try:
            return kind(value)
        except ValueError:
            _insist(False, value, f"one of {', '.join(kind)}", place)
    _insist(issubclass(kind, Path) and isinstance(value, str), value, kind, place)
    return Path(value)


_PLAIN = (str, int, float, bool, Any, dict)


def _plain(kind: Any, value: Any, place: str) -> Any:
    if kind is float:
        if isinstance(value, str) and value in _INFINITE:
            return _INFINITE[value]
        _insist(type(value) in (int, float), value, "a number", place)
    elif kind is not Any:
        _insist(type(value) is kind, value, kind.__name__, place)
    return value


def _dataclass(kind: type, value: Any, place: str) -> Any:
    _insist(isinstance(value, dict), value, "a mapping", place)
    known = hints(kind)
    _insist_on_keys(value, known, place)
    read = {name: _read(known[name], one, f"{place}.{name}") for name, one in value.items()}
    try:
        return kind(**read)
    except TypeError as error:
        raise NetproofError(f"{place}: {error}") from error


def _model(kind: type[BaseModel], value: Any, place: str) -> Any:
    _insist(isinstance(value, dict), value, "a mapping", place)
    # A model that ignores unknown keys would lose them.
    _insist_on_keys(value, kind.model_fields, place)
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        fault = error.errors()[0]
        name = ".".join(map(str, (place, *fault["loc"])))
        raise NetproofError(f"{name}: {fault['msg']}") from error


def _insist_on_keys(value: Mapping[str, Any], known: Mapping[str, Any], place: str) -> None:
    odd = value.keys() - known.keys()
    if odd:
        raise NetproofError(f"{place}: has {sorted(odd)[0]!r}, which is no key of it")


def _insist(holds: bool, value: Any, called: Any, place: str) -> None:
    if not holds:
        raise NetproofError(
            f"{place}: found {shortened(repr(value), MOST_QUOTED)}, expected {called}"
        )
