"""Read external JSON strictly and within limits, with clear errors."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from netproof.errors import NetproofError
from netproof.intake.loading import (
    JSON_CHARACTERS_PER_VALUE,
    JSON_DEPTH,
    most_bytes,
    read_text,
    shown,
    too_deep,
    too_much,
)


class NoJsonError(NetproofError):
    """Text that is not JSON: ``place``, ``line`` and reason."""

    def __init__(self, place: object, line: int, reason: str) -> None:
        self.place, self.line, self.reason = place, line, reason
        super().__init__(f"{place}:{line}: is no JSON: {reason}")


def json_file(path: Path) -> Any:
    """Read a JSON file as ``json_value`` does. Raise NetproofError and OSError."""
    try:
        text = read_text(path)
    except UnicodeDecodeError as error:
        raise NetproofError(
            f"{path}: is not UTF-8 text: invalid byte at position {error.start}"
        ) from error
    return json_value(text, path)


def json_value(text: str, place: object) -> Any:
    """Return the value of a JSON text; errors name ``place``.

    Raise NetproofError, with the line, for invalid JSON, and for a duplicate key, NaN, Infinity,
    numbers beyond floats, lone surrogates, and whatever exceeds the limits.
    """
    most = most_bytes()
    if len(text) > most:
        raise NetproofError(too_much(place, f"{most} characters"))
    _insist_on_few(len(text), sum(map(text.count, ",[{")), place)
    odd_numbers = _has_odd_numbers(text)
    decoder = json.JSONDecoder(
        object_pairs_hook=_object,
        parse_constant=_no_number,
        parse_float=_float if odd_numbers else None,
        parse_int=_int if odd_numbers else None,
    )
    try:
        value = decoder.decode(text)
        if _HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise NetproofError(f"{place}: {too_deep(JSON_DEPTH)}") from None
    except json.JSONDecodeError as error:
        reason = f"{error.msg} at character {error.colno}"
        raise NoJsonError(place, error.lineno, reason) from error
    except UnicodeEncodeError as error:
        raise NetproofError(f"{place}: has half a character, which is no text: {error}") from None
    except ValueError as error:
        raise NetproofError(f"{place}: is no JSON: {error}") from error
    level, depth = [value] if type(value) in _NESTED else [], 0
    while level:
        depth += 1
        if depth > JSON_DEPTH:
            raise NetproofError(f"{place}: {too_deep(JSON_DEPTH)}")
        level = [
            child
            for parent in level
            for child in (parent.values() if type(parent) is dict else parent)
            if type(child) in _NESTED
        ]
    return value


def sealed_value(content: bytes, place: object) -> Any:
    """Return the value of JSON that netproof wrote, as a SHA-256 says, twice as fast.

    Raise NetproofError, naming ``place``, for invalid JSON, NaN, or what exceeds the limits.
    """
    _insist_on_few(len(content), sum(map(content.count, (b",", b"[", b"{"))), place)
    try:
        return from_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise NetproofError(f"{place}: is no JSON: {error}") from error


def _insist_on_few(length: int, values: int, place: object) -> None:
    """Raise NetproofError where a text of that length has more values than any record's."""
    most = max(2_000_000, length // JSON_CHARACTERS_PER_VALUE)
    if values > most:
        raise NetproofError(too_much(place, f"{most} values"))


_NESTED = frozenset((dict, list))

_SHAPE = bytes.maketrans(b"123456789E-", b"000000000e+")


def _has_odd_numbers(text: str) -> bool:
    """Check for numbers of 19 digits or with an exponent of three, maybe within texts.

    An expression that begins with a class of characters takes ten times as long.
    """
    shape = text.encode(errors="replace").translate(_SHAPE)
    return any(odd in shape for odd in (b"0" * 19, b"e000", b"e+000"))


_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"duplicate key {shown(key)}; remove one of them")
            seen.add(key)
    return made


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{shown(digits)} is beyond all numbers")
    return value


def _int(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError(f"{shown(digits)} is beyond all numbers")
    return int(digits)
