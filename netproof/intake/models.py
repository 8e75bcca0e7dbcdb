"""What people write, read by pydantic models: strictly, each fault with its place and remedy.

Nothing is coerced: "1" is no number, 1.0 no whole one, NaN and infinity are none, and a key that no
model has is a fault. What is expected of a value is what its field says: the ``description``, which
is its meaning, and the ``title``, which is its kind.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self, TypeVar, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from netproof.errors import NetproofError, shortened, without_middle

MOST_QUOTED = 80
"""Characters that are quoted of what was found."""

T = TypeVar("T")


class AtKey(ValueError):
    """What a validator of a whole mapping raises: the fault is that of one of its keys."""

    def __init__(self, key: str, reason: str) -> None:
        self.key = key
        super().__init__(reason)


class Written(BaseModel):
    """A mapping that somebody wrote. Frozen, and strict as above."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def of_site(cls, values: Mapping[str, Any]) -> Self:
        """Of what a site says; NetproofError with the place and the remedy of the first fault."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            fault = next(faults(cls, error))
            place = ".".join(map(str, fault.steps))
            raise NetproofError(f"{place}: {fault.reason}") from None


def _given(value: Any) -> Any:
    if value is None:
        raise ValueError("found nothing; give a value or remove the key")
    return value


Text = Annotated[str, Field(pattern=r"\S", title="text")]
Positive = Annotated[float, Field(gt=0, title="a positive number")]
PositiveWhole = Annotated[int, Field(gt=0, title="a positive whole number")]
YesOrNo = Annotated[bool, Field(title="true or false")]
Maybe = Annotated[T | None, BeforeValidator(_given)]
"""What may be left out, but not be there without a value."""
Several = Annotated[
    # A list is what files have, a tuple what a frozen record keeps of it.
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


@dataclass(frozen=True)
class Fault:
    """What is wrong with a document: where, keys and places in lists from outside in, and why."""

    steps: tuple[str | int, ...]
    reason: str


def faults(model: type[BaseModel], error: ValidationError) -> Iterator[Fault]:
    """Each fault that a model found, in the order of its fields, with what would be right."""
    for one in error.errors(include_url=False):
        steps = tuple(step for step in one["loc"] if step != "[key]")
        raised = one.get("ctx", {}).get("error")
        below = (raised.key,) if isinstance(raised, AtKey) else ()
        yield Fault((*steps, *below), _reason(model, steps, one))


def _reason(model: type[BaseModel], steps: tuple[str | int, ...], one: Any) -> str:
    kind = one["type"]
    if kind == "value_error":
        return without_middle(str(one["ctx"]["error"]))
    if kind == "extra_forbidden":
        known = _names(_of(model, steps[:-1]))
        near = difflib.get_close_matches(str(steps[-1])[:MOST_QUOTED], known, n=1)
        meant = f"did you mean {near[0]!r}? " if near else ""
        return f"unknown here; {meant}the keys are {', '.join(known)}"
    expected = _expected(model, steps) or one["msg"]
    if kind == "missing":
        return f"missing, expected {expected}"
    return f"found {shortened(repr(one['input']), MOST_QUOTED)}, expected {expected}"


def _names(kind: Any) -> list[str]:
    models = [one for one in _alternatives(kind) if _is_model(one)]
    return [field.alias or name for one in models for name, field in one.model_fields.items()]


def _expected(model: type[BaseModel], steps: tuple[str | int, ...]) -> str:
    """What a place means and of what kind its value is, by the field or by the kind of value."""
    kind = _of(model, steps)
    said = [kind] if isinstance(kind, FieldInfo) else []
    alternatives = list(_alternatives(kind))
    for one in alternatives:
        said += [
            given for given in getattr(one, "__metadata__", ()) if isinstance(given, FieldInfo)
        ]
    meaning = next((one.description for one in said if one.description), None)
    called = [one.title for one in said if one.title]
    called += [_CALLED[base] for one in alternatives if (base := get_origin(one) or one) in _CALLED]
    called += ["a mapping" for one in alternatives if _is_model(one)]
    kind_of = called[0] if called else ""
    if type(None) in alternatives and _given not in _validators(kind):
        kind_of += " or None"
    return f"{meaning} ({kind_of})" if meaning and kind_of else meaning or kind_of


def _validators(kind: Any) -> list[Any]:
    notes = kind.metadata if isinstance(kind, FieldInfo) else getattr(kind, "__metadata__", ())
    return [note.func for note in notes if isinstance(note, BeforeValidator)]


def _of(model: Any, steps: tuple[str | int, ...]) -> Any:
    """What a model says of a place: a field, a kind of value, None where it says nothing."""
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
    """The kinds that a field, an annotation or a union stands for."""
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
