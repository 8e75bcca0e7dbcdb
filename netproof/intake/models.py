"""Strict pydantic models of files that people write, and the patterns in them.

Nothing is coerced: "1" is not a number, 1.0 is not an integer, NaN and infinity are refused, and an
unknown key is a fault. A field says what is expected: its ``description`` is the meaning, its
``title`` the kind.

Patterns are compiled where matching is always fast, else refused. They are not timed: the structure
of one decides, so that it is refused on every machine, before ReFrame, which has no limit, matches.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from re import _constants, _parser  # type: ignore[attr-defined]  # typeshed leaves them out
from typing import Annotated, Any, Self, TypeVar, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from netproof.errors import NetproofError, without_middle
from netproof.intake.disk import MOST_QUOTED, shown

T = TypeVar("T")


class Written(BaseModel):
    """A mapping that somebody wrote: frozen, and strict as above."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True
    )

    @classmethod
    def of_site(cls, values: Mapping[str, Any]) -> Self:
        """Return the model of a site's values; NetproofError with place and remedy of a fault."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            steps, reason = next(faults(cls, error))
            raise NetproofError(f"{'.'.join(map(str, steps))}: {reason}") from None


def _given(value: Any) -> Any:
    if value is None:
        raise ValueError("found nothing; give a value or remove the key")
    return value


Text = Annotated[str, Field(pattern=r"\S", title="text")]
Positive = Annotated[float, Field(gt=0, title="a positive number")]
PositiveWhole = Annotated[int, Field(gt=0, title="a positive whole number")]
YesOrNo = Annotated[bool, Field(title="true or false")]
Maybe = Annotated[T | None, BeforeValidator(_given)]
"""A value that may be left out, but not be there empty."""
Several = Annotated[
    # Files have a list, a frozen record stores it as a tuple.
    tuple[T, ...], Field(strict=False, min_length=1, title="a list that is not empty")
]

_CALLED = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    tuple: "a list",
    list: "a list",
    dict: "a mapping",
}


def faults(
    model: type[BaseModel], error: ValidationError
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield each fault that a model found, in the order of its fields, with the expected value.

    Its place is keys and list positions from outside in; then comes the reason.
    """
    for one in error.errors(include_url=False):
        steps = tuple(step for step in one["loc"] if step != "[key]")
        yield steps, _reason(model, steps, one)


def _reason(model: type[BaseModel], steps: tuple[str | int, ...], one: Any) -> str:
    kind = one["type"]
    if kind == "value_error":
        return without_middle(str(one["ctx"]["error"]))
    if kind == "extra_forbidden":
        models = filter(_is_model, _alternatives(_of(model, steps[:-1])))
        fields = [one for kind in models for one in kind.model_fields.items()]
        known = [field.alias or name for name, field in fields]
        near = difflib.get_close_matches(str(steps[-1])[:MOST_QUOTED], known, n=1)
        meant = f"did you mean {near[0]!r}? " if near else ""
        return f"unknown here; {meant}the keys are {', '.join(known)}"
    expected = _expected(model, steps) or one["msg"]
    if kind == "missing":
        return f"missing, expected {expected}"
    return f"found {shown(one['input'])}, expected {expected}"


def _expected(model: type[BaseModel], steps: tuple[str | int, ...]) -> str:
    """Return the meaning of a place and the kind of its value, from its field or its type."""
    kind = _of(model, steps)
    alternatives = [kind, *_alternatives(kind)]
    notes = [note for one in alternatives for note in (one, *getattr(one, "__metadata__", ()))]
    fields = [one for one in notes if isinstance(one, FieldInfo)]
    meaning = next((one.description for one in fields if one.description), "")
    bases = [dict if _is_model(one) else get_origin(one) or one for one in alternatives[1:]]
    called = [one.title for one in fields if one.title]
    called += [_CALLED[base] for base in bases if base in _CALLED]
    checks = [*notes, *(note for one in fields for note in one.metadata)]
    may_be_none = type(None) in bases and not any(
        isinstance(note, BeforeValidator) and note.func is _given for note in checks
    )
    kind_of = f"{(called or [''])[0]}{' or None' if may_be_none else ''}"
    return f"{meaning} ({kind_of})" if meaning and kind_of else meaning or kind_of


def _of(model: Any, steps: tuple[str | int, ...]) -> Any:
    """Return the model's field or type at a place, None where it has none."""
    kind: Any = model
    for step in steps:
        below = None
        for one in _alternatives(kind):
            if _is_model(one):
                fields = one.model_fields.items()
                below = next((f for name, f in fields if (f.alias or name) == step), None)
            elif get_args(one):
                below = get_args(one)[0 if isinstance(step, int) else -1]
        kind = below
    return kind


def _alternatives(kind: Any) -> Iterator[Any]:
    """Return the kinds that a field, an annotation or a union stands for."""
    if isinstance(kind, FieldInfo):
        yield from _alternatives(kind.annotation)
        return
    yield kind
    if hasattr(kind, "__metadata__"):
        yield from _alternatives(kind.__origin__)
    elif type(None) in get_args(kind):
        for one in get_args(kind):
            yield from _alternatives(one)


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


PATTERN_CHARACTERS = PATTERN_REPEATS = 1000
PATTERN_WAYS = 64.0**4
"""Ways in which a pattern may match a text of ``PATTERN_TEXT`` characters."""

PATTERN_TEXT = 64


def expression(text: object, *, search: bool = False) -> re.Pattern[str]:
    """Return a regular expression that cannot take long on a name or a case.

    ``search``: it is searched for anywhere in a text. Raise NetproofError for an invalid
    expression, and for one that could take long.
    """
    if not isinstance(text, str):
        raise NetproofError(f"{shown(text)} is no regular expression: it is no text")
    return _expression(text, search)


@cache
def _expression(text: str, search: bool) -> re.Pattern[str]:
    if len(text) > PATTERN_CHARACTERS:
        raise NetproofError(
            f"{shown(text)} is longer than the {PATTERN_CHARACTERS} characters of an expression"
        )
    try:
        ways = _ways(_parser.parse(text))
        compiled = re.compile(text)
    except (re.error, OverflowError) as error:
        raise NetproofError(f"{shown(text)} is no regular expression: {error}") from error
    except RecursionError:
        raise NetproofError(f"{shown(text)} has more brackets than an expression may") from None
    if ways * (PATTERN_TEXT if search else 1) > PATTERN_WAYS:
        raise NetproofError(
            f"{shown(text)} could take for ever: it repeats what repeats, or has more than"
            f" {3 if search else 4} parts with * or +; give fewer"
        )
    return compiled


def _ways(parsed: Any) -> float:
    """Return the most ways in which an expression can match ``PATTERN_TEXT`` characters.

    Infinite where something that repeats without end can itself repeat in more than one way.
    """
    return math.prod(_ways_of(operation, argument) for operation, argument in parsed)


def _ways_of(operation: Any, argument: Any) -> float:
    repeats = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
    if operation in repeats:
        least, most, repeated = argument
        inner, endless = _ways(repeated), most is _constants.MAXREPEAT
        if least > PATTERN_REPEATS or (not endless and most > PATTERN_REPEATS):
            return math.inf
        if endless:
            return PATTERN_TEXT if inner == 1 else math.inf
        # Of two ways, 32 repeats are beyond all bounds.
        ways = min(inner, PATTERN_WAYS) ** min(most, 32)
        return float((min(most - least, PATTERN_TEXT) + 1) * ways)
    if operation is _constants.BRANCH:
        return sum(map(_ways, argument[1]))
    if operation is _constants.ATOMIC_GROUP:
        return _ways(argument)
    # The flags of a group, or the direction of an assertion, stand before what is in it.
    if operation in (_constants.SUBPATTERN, _constants.ASSERT, _constants.ASSERT_NOT):
        return _ways(argument[-1])
    if operation is _constants.GROUPREF_EXISTS:
        return sum(_ways(one) for one in argument[1:] if one is not None)
    return 1.0
