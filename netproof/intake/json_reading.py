"""Read external JSON strictly and within limits, with clear errors."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from netproof.errors import NetproofError
from netproof.intake.loading import (
    JSON_CHARACTERS_PER_VALUE,
    TOO_DEEP,
    most_bytes,
    read_text,
    shown,
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
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_no_number,
            parse_float=_float,
            parse_int=_int,
        )
        if _HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise NetproofError(f"{place}: {TOO_DEEP}") from None
    except json.JSONDecodeError as error:
        reason = f"{error.msg} at character {error.colno}"
        raise NoJsonError(place, error.lineno, reason) from error
    except UnicodeEncodeError as error:
        raise NetproofError(f"{place}: has half a character, which is no text: {error}") from None
    except ValueError as error:
        raise NetproofError(f"{place}: is no JSON: {error}") from error
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


_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"duplicate key {shown(key)}; remove one of them")
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
