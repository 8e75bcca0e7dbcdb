"""Answers of ``--format json``, held to the schemas in the wheel."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache, reduce
from importlib.resources import files
from operator import getitem
from typing import Any

import jsonschema

from netproof.present import documents


@cache
def schema(verb: str) -> jsonschema.Draft202012Validator:
    name = re.sub(r"\W+", "-", verb)
    text = (files("netproof.present") / "schemas" / f"{name}.json").read_text()
    return jsonschema.Draft202012Validator(json.loads(text))


def written(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document as a verb prints it."""
    out = io.StringIO()
    documents.write(document, out)
    return json.loads(out.getvalue())


def faults(verb: str, document: Mapping[str, Any]) -> list[str]:
    """Return where a document is not as the schema of the verb says."""
    return [f"{verb}: {one.json_path}: {one.message}" for one in schema(verb).iter_errors(document)]


def insist_on_keys(verb: str, document: Mapping[str, Any]) -> None:
    """Insist that a schema takes a document, and none with a key missing, renamed or mistyped.

    Each object of the document is changed so; of a list, or of objects by name, the first.
    """
    whole = schema(verb).schema
    document = _first(document, whole, whole["$defs"])
    assert faults(verb, document) == []
    for path, key, optional in _keys(document, whole, whole["$defs"]):
        changed = deepcopy(document)
        place = reduce(getitem, path, changed)
        value = place.pop(key)
        assert optional or faults(verb, changed), f"{path} lacks {key}"
        renamed = {**place, f"{key}_renamed": value}
        place |= renamed
        assert faults(verb, changed), f"{path} has {key}_renamed"
        del place[f"{key}_renamed"]
        place[key] = [[[value]]]
        assert faults(verb, changed), f"{path} has lists in {key}"


def _below(value: Any, of: Mapping[str, Any], known: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a value, by its reference or of several the one for it."""
    if "anyOf" in of:
        several = [_below(value, one, known) for one in of["anyOf"]]
        return next((one for one in several if one.get("type") == _KINDS.get(type(value))), {})
    return known[of["$ref"].rpartition("/")[2]] if "$ref" in of else of


_KINDS = {dict: "object", list: "array"}


def _parts(
    value: Any, of: Mapping[str, Any], known: Mapping[str, Any]
) -> dict[Any, Mapping[str, Any]]:
    """Return the schemas of what stands in a value, by key or place."""
    of = _below(value, of, known)
    if "properties" in of:
        return {key: of["properties"][key] for key in value}
    if isinstance(value, dict):
        return {key: of["additionalProperties"] for key in [*value][:1]}
    return {0: of["items"]} if of.get("items") and value else {}


def _first(value: Any, of: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
    """Return a document with the first of each list, and of objects by name."""
    if not isinstance(value, dict | list) or "prefixItems" in _below(value, of, known):
        return value
    cut = {step: _first(value[step], one, known) for step, one in _parts(value, of, known).items()}
    return cut if isinstance(value, dict) else [*cut.values()]


def _keys(
    value: Any, of: Mapping[str, Any], known: Mapping[str, Any], path: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[Any, ...], str, bool]]:
    """Yield each key of records: the place of its object, and whether that may lack it."""
    if not isinstance(value, dict | list):
        return
    record = _below(value, of, known)
    for step, one in _parts(value, of, known).items():
        if "properties" in record and one:
            yield path, step, step not in record["required"]
        yield from _keys(value[step], one, known, (*path, step))
