"""Figures of earlier studies as data: one file of ``reference-values/literature`` each.

They are figures as printed there, with their source. ``netproof.studies.session_figures`` adds a
session's own landmarks in the same columns.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from netproof.errors import NetproofError, shortened
from netproof.intake import loading, yaml_reading
from netproof.intake.models import Fault, faults
from netproof.site import shipped
from netproof.studies.study import Study

DIRECTORY = shipped.folder("reference-values") / "literature"


def names(directory: Path = DIRECTORY) -> tuple[str, ...]:
    """Return the names of the studies, as ``load`` takes them. Raises NetproofError without any."""
    found = tuple(sorted(path.stem for path in directory.glob("*.yaml")))
    if not found:
        raise NetproofError(
            f"{directory}: no study is there; run netproof from its checkout, installed by pip -e"
        )
    return found


def load(name: str, directory: Path = DIRECTORY) -> Study:
    """Return a study's figures.

    Raises NetproofError naming file, line and key for whatever is missing, unknown or of another
    kind, and for an unknown name.
    """
    if name not in names(directory):
        raise NetproofError(
            f"{name!r} is no study: there are {', '.join(names(directory))} in {directory}"
        )
    path = directory / f"{name}.yaml"
    document = _document(path)
    try:
        study = Study.model_validate(document)
    except ValidationError as error:
        raise _refused(path, document, next(faults(Study, error))) from None
    if study.name != name:
        raise NetproofError(f"{path}:1: key 'study': found {study.name!r}, expected {name!r}")
    return study


def _document(path: Path) -> CommentedMap:
    try:
        text = loading.read_text(path)
        yaml_reading.check_yaml(text, path)
        data = YAML().load(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise NetproofError(f"{path}:{line}: no YAML: {error.problem}") from error
    except (OSError, UnicodeDecodeError, YAMLError) as error:
        raise NetproofError(f"{path}: cannot be read: {error}") from error
    if not isinstance(data, CommentedMap):
        raise NetproofError(f"{path}:1: expected a study's keys, found {shortened(repr(data))}")
    return data


def _refused(path: Path, document: CommentedMap, fault: Fault) -> NetproofError:
    """Return the error with its line: that of the key, or of the mapping that lacks it."""
    place: Any = document
    for step in fault.steps[:-1]:
        place = place[step]
    last = fault.steps[-1]
    if isinstance(place, CommentedSeq):
        line = place.lc.item(last)[0]
    else:
        line = place.lc.key(last)[0] if last in place else place.lc.line
    key = next(step for step in reversed(fault.steps) if isinstance(step, str))
    return NetproofError(f"{path}:{line + 1}: key {shortened(repr(key))}: {fault.reason}")
