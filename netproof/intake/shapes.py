"""Check the kind of every value in a document, and name the first that is wrong.

Meant for long documents that programs wrote, such as reports of sessions: pydantic's core checks
them without building objects. Nothing is coerced. Unknown keys are ignored, as later versions may
have more of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from pydantic_core import CoreSchema, SchemaValidator, ValidationError, core_schema

from netproof.errors import NetproofError, shortened

MOST_QUOTED = 60

_CALLED = {
    "string": "text",
    "int": "a whole number",
    "float": "a number",
    "finite": "a number",
    "bool": "true or false",
    "list": "a list",
    "dict": "a mapping",
}
"""Expected kinds, by the beginning of the name of pydantic's error."""


class Shape:
    """The kind that a value must have, made by the functions below."""

    def __init__(self, schema: CoreSchema) -> None:
        self.schema = schema

    @cached_property
    def validator(self) -> SchemaValidator:
        """Return the validator of values."""
        return SchemaValidator(self.schema)


TEXT = Shape(core_schema.str_schema(strict=True))
WHOLE = Shape(core_schema.int_schema(strict=True))
NUMBER = Shape(core_schema.float_schema(strict=True, allow_inf_nan=False))
YES_OR_NO = Shape(core_schema.bool_schema(strict=True))


def OrNone(shape: Shape) -> Shape:
    """Return a shape that also allows None."""
    return Shape(core_schema.nullable_schema(shape.schema))


def OrEmpty(shape: Shape) -> Shape:
    """Return a shape that also allows None and an empty mapping, which says as little."""
    said = core_schema.no_info_before_validator_function(
        lambda value: None if value == {} else value, OrNone(shape).schema
    )
    return Shape(said)


def OrText(shape: Shape) -> Shape:
    """As ``shape``, or None, or a text."""
    said = core_schema.no_info_before_validator_function(
        lambda value: None if isinstance(value, str) else value, OrNone(shape).schema
    )
    return Shape(said)


def Each(shape: Shape) -> Shape:
    """Return the shape of a list whose items have one shape."""
    return Shape(core_schema.list_schema(shape.schema, fail_fast=True))


def RowOf(shapes: Iterable[Shape]) -> Shape:
    """Return the shape of a list with exactly these ``shapes``, in their order."""
    row = [one.schema for one in shapes]
    of_length = core_schema.list_schema(min_length=len(row), max_length=len(row))
    return Shape(core_schema.chain_schema([of_length, core_schema.tuple_schema(row)]))


def ByName(shape: Shape, called: str) -> Shape:
    """Return the shape of a mapping of any names to one shape; ``called``: its name in errors."""
    several = core_schema.dict_schema(values_schema=shape.schema, fail_fast=True)
    return Shape(core_schema.custom_error_schema(several, "named", custom_error_message=called))


TEXTS_BY_NAME = ByName(TEXT, "a mapping of texts")
COUNTS_BY_NAME = ByName(WHOLE, "a mapping of whole numbers")


class Keys(Shape):
    """A mapping that has the keys of ``needed`` and may have those of ``others``, and more."""

    def __init__(
        self, needed: Mapping[str, Shape] | None = None, others: Mapping[str, Shape] | None = None
    ) -> None:
        self.needed, self.others = dict(needed or {}), dict(others or {})
        fields = [(key, one, True) for key, one in self.needed.items()]
        fields += [(key, one, False) for key, one in self.others.items()]
        super().__init__(
            core_schema.typed_dict_schema(
                {
                    key: core_schema.typed_dict_field(one.schema, required=required)
                    for key, one, required in fields
                }
            )
        )

    def any_of(self) -> Keys:
        """Return the same mapping with all keys optional."""
        return Keys(others={**self.needed, **self.others})


MAPPING = Keys()


def insist(value: Any, shape: Shape, place: str) -> None:
    """Raise NetproofError, with the place, unless a value has the shape."""
    try:
        shape.validator.validate_python(value)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        steps, found = fault["loc"], shortened(repr(fault["input"]), MOST_QUOTED)
        reason = f"found {found}, expected {_expected(fault)}"
        if fault["type"] == "missing":
            reason, steps = f"{steps[-1]!r} is missing", steps[:-1]
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
        raise NetproofError(
            f"{place}{': ' if path else ''}{path.removeprefix('.')}: {reason}"
        ) from None


def _expected(fault: Mapping[str, Any]) -> str:
    kind = fault["type"]
    if kind in ("too_short", "too_long"):
        limits = fault["ctx"]
        return f"a list of {limits.get('min_length', limits.get('max_length'))}"
    return _CALLED.get(kind.partition("_")[0], fault["msg"])
