"""Jobs that are no acceptance, such as sweeps: their records, and where these are.

No verdict, store or history looks into the folders of their reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from netproof import codec
from netproof.errors import NetproofError
from netproof.session import session
from netproof.session.plan import partition_of
from netproof.site.partition import Partition


def folder_of(reports: Path, label: str) -> Path:
    """Return the folder of such sessions in the folder of reports, or this one if it is theirs."""
    return reports if reports.name == label else reports / label


class JobRecord:
    """Base of the results of a job, in a test's record under ``KEY``; ``CALLED``: in errors."""

    KEY: ClassVar[str]
    CALLED: ClassVar[str]

    partition_extras: Mapping[str, Any]

    @property
    def where(self) -> Partition:
        """Return the partition as checks see it."""
        return partition_of(self.partition_extras, f"a {self.CALLED}")

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the record of its plain values; NetproofError for any others."""
        own = {key: one for key, one in values.items() if key != "format"}
        made = codec.decode(cls, own, f"a {cls.CALLED} cannot be read")
        partition_of(made.partition_extras, f"a {cls.CALLED} cannot be read")
        return made

    @classmethod
    def of_report(cls, path: Path) -> list[Self]:
        """Return all such results in a report; NetproofError where there is none."""
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
