"""Cases that a run skips: expected and not measured, each with the reason.

A file tells the jobs of ``netproof.run`` which; its path is in NETPROOF_LEFT. A job of which
all cases are left is skipped, and its report says why, so that the verdict can tell a case that was
left from one that got lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netproof import codec
from netproof.errors import NetproofError
from netproof.intake import json_reading, trust, writing
from netproof.measurement.case import Case

VARIABLE = "NETPROOF_LEFT"
"""Names the file, for a run of ReFrame."""


@dataclass(frozen=True)
class SkipReason:
    """Why a case was left.

    ``planned``: it is another night's turn, and nothing is wrong with that. Otherwise it could
    not be measured, and a run that leaves such a case cannot be judged whole.
    """

    why: str
    planned: bool


def write(path: Path, cases: Mapping[Case, SkipReason]) -> None:
    """Write the file; OSError where it cannot be written."""
    entries = [{"case": list(case.key()), **codec.encode(left)} for case, left in cases.items()]
    writing.replace(path, json.dumps(entries, indent=1) + "\n")


def read(path: Path) -> dict[tuple[Any, ...], SkipReason]:
    """The cases to leave by key, and why; NetproofError if damaged or others can write it."""
    trust.insist(path, f"{VARIABLE}'s file")
    try:
        entries = json_reading.json_file(path)
        cases = [tuple(entry.pop("case")) for entry in entries]
        reasons = codec.decode(list[SkipReason], entries, "why cases were left")
        return dict(zip(cases, reasons, strict=True))
    except (NetproofError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NetproofError(
            f"{path}: does not tell what to leave ({error!r}); unset {VARIABLE} to measure all"
        ) from error
