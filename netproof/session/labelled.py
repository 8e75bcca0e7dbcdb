"""Jobs that are no acceptance, such as sweeps: their tasks, their records, and where these are.

No verdict, store or history looks into the folders of their reports.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import ValidationError

from netproof import codec
from netproof.errors import NetproofError, shortened
from netproof.intake import json_reading
from netproof.session import session
from netproof.site.partition import Partition


def folder_of(reports: Path, label: str) -> Path:
    """Return the folder of such sessions in the folder of reports, or this one if it is theirs."""
    return reports if reports.name == label else reports / label


@dataclass(frozen=True)
class Question:
    """The task of a job, in ``FILE`` of its folder: where it measures, and the rest of its kind.

    ``where``: system, partition and environment; ``extras``: of the partition.
    """

    FILE: ClassVar[str]

    where: tuple[str, str, str]
    extras: Mapping[str, Any]

    @property
    def partition(self) -> Partition:
        """Return the partition as checks see it."""
        return Partition.model_validate(self.extras)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Return the task of the job of a folder; NetproofError where it is damaged."""
        return read_json(cls, folder / cls.FILE)


def write_question(folder: Path, question: Question) -> None:
    """Write the task to the job's folder."""
    (folder / question.FILE).write_text(json.dumps(codec.encode(question)) + "\n")


def read_json(kind: type[Any], path: Path) -> Any:
    """Return a value of this kind from a job's file; NetproofError, with the path, if damaged."""
    try:
        return codec.decode(kind, json_reading.json_file(path), f"{path}: cannot be read")
    except OSError as error:
        raise NetproofError(f"{path}: cannot be read: {error.strerror}") from error


class JobRecord:
    """Base of the results of a job that a test's record in a report has under ``KEY``.

    ``CALLED``: what it is, in errors; ``FORMAT``: raised when its keys change.
    """

    KEY: ClassVar[str]
    CALLED: ClassVar[str]
    FORMAT: ClassVar[int] = 1

    partition_extras: Mapping[str, Any]

    @property
    def where(self) -> Partition:
        """Return the partition as checks see it."""
        return Partition.model_validate(self.partition_extras)

    def as_json(self) -> dict[str, Any]:
        """Return plain values for ``json``."""
        return {"format": self.FORMAT, **codec.encode(self)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return what ``as_json`` wrote; NetproofError for any other values."""
        own = dict(values)
        form = own.pop("format", None)
        if form != cls.FORMAT:
            raise NetproofError(
                f"a {cls.CALLED} is of format {form}, and this netproof reads {cls.FORMAT}"
            )
        made = codec.decode(cls, own, f"a {cls.CALLED} cannot be read")
        try:
            made.where  # noqa: B018
        except ValidationError as error:
            reason = shortened(repr(error))
            raise NetproofError(f"a {cls.CALLED} cannot be read: {reason}") from error
        made.insist()
        return made

    def insist(self) -> None:
        """Raise NetproofError where the parts do not fit together."""

    @classmethod
    def of_report(cls, path: Path) -> list[Self]:
        """Return all such results in a report of ReFrame's.

        Raise NetproofError where there is none that is complete, with the reasons of failed tests.
        """
        found, reasons = [], []
        for run in session.document_of(path)["runs"]:
            for test in run["testcases"]:
                values = test.get(cls.KEY)
                if values:
                    try:
                        found.append(cls.from_json(values))
                    except NetproofError as error:
                        raise NetproofError(f"{path}: {test['display_name']}: {error}") from None
                elif test["result"] != "pass" and test.get("fail_reason"):
                    reasons.append(f"{test['display_name']}: {test['fail_reason']}")
        if not found:
            why = f": {'; '.join(reasons)}" if reasons else ""
            raise NetproofError(f"{path}: has no {cls.CALLED} that is whole{why}")
        return found


@dataclass(frozen=True)
class MeasuredJob(JobRecord):
    """Results of a job: where it ran, and as which job."""

    system: str
    partition: str
    environment: str
    jobid: str
    nodes: tuple[str, ...]
    partition_extras: Mapping[str, Any]
