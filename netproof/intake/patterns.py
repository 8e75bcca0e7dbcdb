"""Patterns that people write: compiled where matching is always fast, else refused.

They are not timed: the structure of a pattern decides, so that the same one is refused on every
machine, before ReFrame, which has no limit, matches with it.
"""

from __future__ import annotations

import math
import re
from functools import cache
from re import _constants, _parser  # type: ignore[attr-defined]  # typeshed leaves them out
from typing import Any

from netproof.errors import NetproofError
from netproof.intake.loading import shown

PATTERN_CHARACTERS = 1000

PATTERN_REPEATS = 1000

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
    ways = 1.0
    for operation, argument in parsed:
        ways *= _ways_of(operation, argument)
    return ways


def _ways_of(operation: Any, argument: Any) -> float:
    repeats = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
    if operation in repeats:
        least: int = argument[0]
        most: int = argument[1]
        inner = _ways(argument[2])
        endless = most is _constants.MAXREPEAT
        if least > PATTERN_REPEATS or (not endless and most > PATTERN_REPEATS):
            return math.inf
        if endless:
            return PATTERN_TEXT if inner == 1 else math.inf
        return (min(most - least, PATTERN_TEXT) + 1) * _power(inner, most)
    if operation is _constants.BRANCH:
        return sum(map(_ways, argument[1]))
    if operation is _constants.SUBPATTERN:
        return _ways(argument[-1])
    if operation is _constants.ATOMIC_GROUP:
        return _ways(argument)
    if operation in (_constants.ASSERT, _constants.ASSERT_NOT):
        return _ways(argument[1])
    if operation is _constants.GROUPREF_EXISTS:
        return sum(_ways(one) for one in argument[1:] if one is not None)
    return 1.0


def _power(base: float, exponent: int) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf
