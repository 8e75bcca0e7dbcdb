"""Command lines of ci/ from tables of their options, which YAML files have."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

Options = Mapping[str, Mapping[str, Any]]
"""By name: what argparse takes, with the kind of a value as ``of``, and the ``least`` number."""


def _counts(text: str) -> list[int]:
    return [*map(int, text.split(","))]


KINDS: dict[str, Callable[[str], Any]] = {
    "path": Path,
    "whole number": int,
    "number": float,
    "whole numbers": _counts,
}


def _reader(kind: str, least: float | None) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            value = KINDS[kind](text)
            if least is None or least <= value < float("inf"):
                return value
        except ValueError:
            pass
        limit = "" if least is None else f" of {least:g} or more"
        raise argparse.ArgumentTypeError(f"{text!r} is no {kind}{limit}")

    return read


def add(parser: Any, options: Options, defaults: Mapping[str, Any] | None = None) -> None:
    """Add options to a parser or a group of one; ``defaults`` that no table can have, by name."""
    for name, given in options.items():
        words = dict(given)
        if kind := words.pop("of", ""):
            words["type"] = _reader(kind, words.pop("least", None))
        if defaults and name in defaults:
            words["default"] = defaults[name]
        if isinstance(words.get("default"), int | float):
            words["help"] += " (default: %(default)g)"
        parser.add_argument(name, **words)


def verbs(table: Path, defaults: Mapping[str, Any]) -> argparse.ArgumentParser:
    """Return the parser of a command with verbs, the chosen one as ``verb``."""
    command = yaml.safe_load(table.read_text())
    parser = argparse.ArgumentParser(command["name"], description=command["about"])
    several = parser.add_subparsers(required=True, metavar="VERB", dest="verb")
    for verb, given in command["verbs"].items():
        added = several.add_parser(verb, help=given["about"], description=given["about"])
        add(added, {**command.get("options", {}), **given.get("options", {})}, defaults)
    return parser
