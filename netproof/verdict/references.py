"""A file of references in ReFrame's format, looked up as ReFrame does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from netproof.errors import NetproofError, shortened
from netproof.intake import loading, trust, yaml_reading
from netproof.intake.patterns import expression
from netproof.measurement.case import Case
from netproof.verdict.yaml_nodes import compose, keys_below

INDEX = "$index"

XFAIL = "$xfail"

Keys = tuple[str | int, ...]

Entry = list[Any]
"""``[value, lower, upper, unit]``, or ``[$xfail, reason, [value, lower, upper, unit]]``."""


class NotThere(NetproofError):
    """The file has no entry for a case.

    ``keys``: looked up one below the other, from the check to the missing one; ``alongside``: the
    keys at its level.
    """

    def __init__(self, path: Path, keys: Keys, alongside: Sequence[str | int]) -> None:
        self.keys, self.alongside = keys, tuple(alongside)
        super().__init__(f"{path}: has no {', '.join(map(str, keys))}")


class ReferenceFile:
    """The references of one system.

    ``text``: as it is written; ``data``: as in ReFrame; ``root``: the top node, with the places of
    all nodes in the text. Raises NetproofError where the file is missing, no YAML, or empty.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        trust.insist(path, "references")
        try:
            # Line ends are not changed.
            self.text = loading.read_text(path)
        except FileNotFoundError as error:
            raise NetproofError(
                f"{path}: is not there; copy {path.parent / 'example.yaml'} and put your system's"
                " partitions in"
            ) from error
        except (OSError, UnicodeDecodeError) as error:
            raise NetproofError(f"{path}: cannot be read: {shortened(str(error))}") from error
        self.data = loaded(self.text, path)
        self.root = compose(self.text)
        self._insist_on_patterns()

    def find(self, check: str, case: Case) -> dict[str, Entry]:
        """Return the entries of a case by variable, as ReFrame finds them for the check's class.

        Raises NotThere without an entry, and NetproofError for a malformed entry or index.
        """
        level, place = self.data.get(check), check
        if not isinstance(level, dict):
            raise NotThere(self.path, (check,), [key for key in self.data if key[:1] != "."])
        looked_up: Keys = (check,)
        for key in self.keys_to(check, case):
            place += f", {key}"
            looked_up += (key,)
            try:
                level = level[matching(level, key)]
            except KeyError as error:
                alongside = [other for other in level if other != INDEX]
                raise NotThere(self.path, looked_up, alongside) from error
            except NetproofError as error:
                raise self.fault(
                    check, f"a key next to {key!r} is no expression: {error.__cause__ or error}"
                ) from error
            if not isinstance(level, dict):
                raise self.fault(check, f"{place}: found {level!r}, expected a mapping")
        for variable, entry in level.items():
            if not _is_entry(entry):
                raise self.fault(
                    check,
                    f"{place}, {variable}: found {entry!r}, expected [value, lower, upper, unit]",
                    variable,
                )
        return level

    def keys_to(self, check: str, case: Case) -> Keys:
        """Return the keys of a case below its check; NetproofError for a malformed index."""
        index = self.data[check].get(INDEX)
        known = {
            "$system": case.system,
            "$partition": f"{case.system}:{case.partition}",
            "$environ": case.environment,
            "ranks": case.ranks,
            "path": case.path,
            "direction": case.direction,
        }
        if (
            not isinstance(index, list)
            or not index
            or not all(isinstance(one, str) and one in known for one in index)
        ):
            raise self.fault(
                check, f"{INDEX}: found {index!r}, expected a list of some of {', '.join(known)}"
            )
        return tuple(known[one] for one in index)

    def _insist_on_patterns(self) -> None:
        """Raise NetproofError for a key that ReFrame could match for ever."""
        for check, level in self.data.items():
            for key in _keys_of(level, set()):
                try:
                    expression(f"^{key}$")
                except NetproofError as error:
                    # Invalid expressions are reported when they are looked up.
                    if not isinstance(error.__cause__, re.error):
                        raise self.fault(check, str(error), key) from error

    def fault(self, check: str, reason: str, variable: str | None = None) -> NetproofError:
        """Return an error at the line of a check's variable, or of the check."""
        reason = shortened(reason)
        for key, node in self.root.value:
            if key.value == check:
                where = key.start_mark
                if variable is not None:
                    where = next((k.start_mark for k in keys_below(node, variable)), where)
                return NetproofError(f"{self.path}:{where.line + 1}: {reason}")
        return NetproofError(f"{self.path}: {reason}")


@cache
def readable(path: Path) -> None:
    """Raise NetproofError where a file has no references; checked once per path."""
    ReferenceFile(path)


def loaded(text: str, path: Path) -> dict[str, Any]:
    """Return the levels below each check; NetproofError for another kind of file."""
    data = yaml_reading.yaml_value(text, path)
    if not isinstance(data, dict):
        found = shortened(repr(data), 80)
        raise NetproofError(f"{path}:1: found {found}, expected the checks' names as keys")
    for key, value in data.items():
        if not isinstance(key, str):
            found = shortened(f"{key!r}: {value!r}", 80)
            raise NetproofError(f"{path}: found the key {found}, expected a check's name")
    return data


def _keys_of(level: Any, seen: set[int]) -> Iterator[str]:
    """Yield the keys below a level that ReFrame may take for expressions."""
    if isinstance(level, dict) and id(level) not in seen:
        seen.add(id(level))
        for key, below in level.items():
            if isinstance(key, str):
                yield key
            yield from _keys_of(below, seen)


def matching(level: Mapping[Any, Any], key: str | int) -> str | int:
    """Return the key that ReFrame matches: the equal one, or the first expression that fits.

    KeyError where none matches, NetproofError for a key that is no expression.
    """
    if key in level:
        return key
    if isinstance(key, str):
        for pattern in level:
            # As in ReFrame, for which ^a|b$ is two expressions.
            if isinstance(pattern, str) and expression(f"^{pattern}$").match(key):
                return pattern
    raise KeyError(key)


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, list):
        return False
    if entry[:1] == [XFAIL]:
        return len(entry) == 3 and isinstance(entry[1], str) and _is_entry(entry[2])
    numbers = (int, float)
    return (
        len(entry) == 4
        and isinstance(entry[0], numbers)
        and all(bound is None or isinstance(bound, numbers) for bound in entry[1:3])
        and not any(isinstance(one, bool) for one in entry)
        and isinstance(entry[3], str)
    )
