"""Sessions with a label, as sweeps are: where their reports lie, and what they hold.

They are no acceptance: no verdict, store or history looks into their folders.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from netproof.errors import NetproofError, shortened
from netproof.intake.shapes import Keys, insist
from netproof.session import session
from netproof.site.partition import Partition

T = TypeVar("T")


def folder_of(reports: Path, label: str) -> Path:
    """The folder of such sessions, of the folder of reports or itself."""
    return reports if reports.name == label else reports / label


def of_report(path: Path, key: str, read: Callable[[Mapping[str, Any]], T], called: str) -> list[T]:
    """What tests kept under ``key`` in a report of ReFrame's, each as ``read`` has it.

    NetproofError where there is none that is whole; ``called``: what it is, for the error, which
    has what the tests said that failed.
    """
    found, reasons = [], []
    for run in session.document_of(path)["runs"]:
        for test in run["testcases"]:
            values = test.get(key)
            if values:
                try:
                    found.append(read(values))
                except NetproofError as error:
                    raise NetproofError(f"{path}: {test['display_name']}: {error}") from None
            elif test["result"] != "pass" and test.get("fail_reason"):
                reasons.append(f"{test['display_name']}: {test['fail_reason']}")
    if not found:
        why = f": {'; '.join(reasons)}" if reasons else ""
        raise NetproofError(f"{path}: has no {called} that is whole{why}")
    return found


def read_record(
    kind: type[T],
    values: Mapping[str, Any],
    shape: Keys,
    form: int,
    called: str,
    parts: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> T:
    """The record of a job, a dataclass, of the plain values that a report has of it.

    ``shape`` and ``form``: what they have to be, and of which format; ``called``: what it is, for
    the error; ``parts``: makes the fields that are more than plain values. Raises NetproofError
    where they are none, or of another format.
    """
    insist(values, shape, f"{called} cannot be read")
    if values["format"] != form:
        raise NetproofError(
            f"{called} is of format {values['format']}, and this netproof reads {form}"
        )
    try:
        Partition.model_validate(values["partition_extras"])
        fields = {field.name: values[field.name] for field in dataclasses.fields(kind)}
        made = parts(values)
    except (KeyError, TypeError, ValueError, ValidationError) as error:
        raise NetproofError(f"{called} cannot be read: {shortened(repr(error))}") from error
    return kind(**{**fields, "nodes": tuple(values["nodes"]), **made})
