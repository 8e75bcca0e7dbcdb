"""Dataclasses and pydantic models as plain values of JSON, and back: the one codec of all records.

A type's declaration decides what is read. Nothing is coerced: unknown keys, missing ones, values of
another kind and NaN are refused, with their place. pydantic's core builds the objects.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter
from pydantic_core import CoreSchema, SchemaValidator, ValidationError, core_schema

from netproof.errors import NetproofError, shortened

T = TypeVar("T")

MOST_QUOTED = 60
"""Characters quoted from a faulty value."""

_EXPECTED = {
    "string": "text",
    "int": "a whole number",
    "float": "a number",
    "finite": "a number",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "frozen": "a list",
    "dict": "a mapping",
    "mapping": "a mapping",
    "dataclass": "a mapping",
    "model": "a mapping",
    "path": "text",
}
"""Expected kinds, by the beginning of the name of pydantic's error."""

_INFINITE = {"inf": math.inf, "-inf": -math.inf}
"""JSON has no infinite numbers."""

_JSON = {str, int, bool, type(None)}

_SCALARS = ("str", "int", "bool")

_LISTS = ("list", "tuple", "frozenset", "dict")

_OBJECTS = ("dataclass", "model", "enum", "lax-or-strict")

_NO_SCHEMAS = ("serialization", "metadata", "default", "config", "cls", "expected")


def encode(value: Any) -> Any:
    """Return plain values of dataclasses, enums, sets, tuples, mappings by text, and JSON's own.

    Fields of dataclasses that equal their defaults are left out, those of models never. Raise
    TypeError for any other value, and for NaN.
    """
    if value is None or (isinstance(value, bool | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float):
        if math.isnan(value):
            raise TypeError(f"{value!r} has no place in JSON")
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, list | tuple):
        kinds = {*map(type, value)}
        # Most are JSON's own already: curves, and names of counters.
        if kinds <= _JSON or (kinds == {float} and math.isfinite(sum(value))):
            return [*value]
        return [encode(one) for one in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            name: found if type(found) in _JSON else encode(found)
            for name, default in _defaults(type(value))
            if type(found := getattr(value, name)) is not type(default) or found != default
        }
    if isinstance(value, Mapping):
        return {key: one if type(one) in _JSON else encode(one) for key, one in value.items()}
    if isinstance(value, frozenset):
        return sorted(map(encode, value))
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{value!r} has no place in JSON")


def decode(kind: type[T], values: Any, place: str, shared: Any = None) -> T:
    """Return the value that ``encode`` made plain; whole numbers stay whole, also among floats.

    ``values``: those, or their JSON as bytes; ``shared``: what these refer to, for types' own
    validators. Raise NetproofError, with ``place``, key, found and expected, where it is not of
    this type, or the type itself refuses it.
    """
    try:
        # mypy does not see that classes are hashable.
        validator = _validator(kind)  # type: ignore[arg-type]
        read = validator.validate_json if isinstance(values, bytes) else validator.validate_python
        decoded: T = read(values, context=shared)
        return decoded
    except ValidationError as error:
        raise NetproofError(_reason(error, place)) from None
    except NetproofError as error:
        raise NetproofError(f"{place}: {error}") from error


def decode_part(kind: type[T], values: Mapping[str, Any], place: str) -> T:
    """Return the dataclass of those values that are its fields; others stand beside them."""
    if not isinstance(values, Mapping):
        return decode(kind, values, place)
    own = {name for name, _ in _defaults(kind)}  # type: ignore[arg-type]
    return decode(kind, {key: one for key, one in values.items() if key in own}, place)


@cache
def _defaults(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Return the names of a dataclass's fields, with their defaults or MISSING."""
    return tuple(
        (
            one.name,
            one.default if one.default_factory is dataclasses.MISSING else one.default_factory(),
        )
        for one in dataclasses.fields(kind)
    )


@cache
def _validator(kind: Any) -> SchemaValidator:
    # A model's own validator, which is used otherwise, may pass over unknown keys.
    return SchemaValidator(_strict(TypeAdapter(kind).core_schema), _use_prebuilt=False)


def _strict(schema: Any) -> Any:
    """Return pydantic's schema with strict scalars, and containers that plain values may fill."""
    if isinstance(schema, list | tuple):
        return type(schema)(map(_strict, schema))
    if not isinstance(schema, dict):
        return schema
    made = {key: one if key in _NO_SCHEMAS else _strict(one) for key, one in schema.items()}
    kind = made.get("type")
    if kind == "float":
        return _number({key: one for key, one in made.items() if key != "strict"})
    if kind in _SCALARS:
        made["strict"] = True
    elif kind in (*_LISTS, *_OBJECTS):
        made["strict"] = False
    if kind in _LISTS:
        made["fail_fast"] = True
    if kind in ("dataclass-args", "model-fields"):
        made["extra_behavior"] = "forbid"
    return made


def _number(schema: dict[str, Any]) -> CoreSchema:
    bounds = {key: one for key, one in schema.items() if key in ("gt", "ge", "lt", "le")}
    # The first takes a float at once; the second takes a whole number, for it fits exactly.
    return core_schema.union_schema(
        [
            core_schema.float_schema(strict=True, allow_inf_nan=False, **bounds),
            core_schema.int_schema(strict=True, **bounds),
            core_schema.no_info_plain_validator_function(_infinite),
        ],
        mode="smart",
        custom_error_type="float",
        custom_error_message="a number",
    )


def _infinite(value: Any) -> float:
    if not isinstance(value, str) or value not in _INFINITE:
        raise ValueError
    return _INFINITE[value]


def _reason(error: ValidationError, place: str) -> str:
    fault = error.errors(include_url=False)[0]
    steps, kind = fault["loc"], fault["type"]
    found = shortened(repr(fault["input"]), MOST_QUOTED)
    if kind == "missing" and isinstance(steps[-1], int):
        reason, steps = f"found {found}, expected more of them", steps[:-1]
    elif kind in ("missing", "missing_argument"):
        reason, steps = f"{steps[-1]!r} is missing", steps[:-1]
    elif kind in ("unexpected_keyword_argument", "extra_forbidden"):
        named = shortened(repr(steps[-1]), MOST_QUOTED)
        reason, steps = f"has {named}, which is no key of it", steps[:-1]
    else:
        reason = f"found {found}, expected {_expected(fault)}"
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return ": ".join(filter(None, (place, shortened(path.removeprefix(".")), reason)))


def _expected(fault: Mapping[str, Any]) -> str:
    kind = fault["type"]
    if kind == "value_error":
        return str(fault["ctx"]["error"])
    if kind == "enum":
        return str(fault["ctx"]["expected"])
    if kind == "too_long":
        return f"a list of {fault['ctx']['max_length']}"
    return _EXPECTED.get(kind.partition("_")[0], str(fault["msg"]))
