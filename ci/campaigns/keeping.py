"""A campaign is a folder.

Its settings and all planned runs are written when it begins, and each run has a folder with its
result. So an interrupted campaign can resume.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from pydantic import TypeAdapter

from ci.campaigns.errors import CannotRunError
from ci.campaigns.records import NOT_JUDGED, Campaign

ROOT = Path(__file__).resolve().parents[2]
CODE = ("checks", "ci", "netproof", "reference-values", "site-config")
"""Folders whose contents decide how a run ends."""
FORMAT = 1
CAMPAIGN_FILE, RESULT_FILE = "campaign.json", "result.json"


class Run(Protocol):
    """A planned run, with a folder in the campaign's."""

    @property
    def folder(self) -> str:
        """Name of its folder."""


class Result(Protocol):
    """A dataclass with the result of a run."""

    run: Run


OneCampaign = TypeVar("OneCampaign", bound=Campaign[Any, Any])
OneRun = TypeVar("OneRun", bound=Run)
OneResult = TypeVar("OneResult", bound=Result)


def begin(folder: Path, campaign: Campaign[Any, Any]) -> None:
    """Write the plan. Raises CannotRunError if ``folder`` is not empty."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise CannotRunError(f"{folder}: is not empty; give --out another, or --resume this one")
    write(folder / CAMPAIGN_FILE, {"format": FORMAT, **dataclasses.asdict(campaign)})


def read(
    folder: Path, campaign_type: type[OneCampaign], result_type: type[OneResult]
) -> tuple[OneCampaign, list[OneResult]]:
    """Return a campaign and the results of its finished runs, in their order.

    Raises CannotRunError if the folder has no campaign, or a file is damaged.
    """
    path = folder / CAMPAIGN_FILE
    try:
        document = json.loads(path.read_text())
        if document["format"] != FORMAT:
            raise CannotRunError(f"{path}: its format is {document['format']}, not {FORMAT}")
        campaign = TypeAdapter(campaign_type).validate_python(document)
        results = []
        for run in campaign.runs:
            path = folder / run.folder / RESULT_FILE
            if path.is_file():
                result = TypeAdapter(result_type).validate_json(path.read_text())
                if result.run != run:
                    raise CannotRunError(f"{path}: is of another run than was planned")
                results.append(result)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CannotRunError(f"{path}: cannot be read as a campaign's: {error!r}") from error
    return campaign, results


def write(path: Path, document: Mapping[str, Any]) -> None:
    """Write a file whole or not at all."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(document, indent=1) + "\n")
    new.rename(path)


def insist_on_code(folder: Path, campaign: Campaign[Any, Any]) -> None:
    """Raise CannotRunError if the code has changed since the campaign began."""
    if campaign.code != code_digest():
        raise CannotRunError(
            f"{folder}: was begun with other code or configuration than is here now; runs of both"
            " are no one campaign"
        )


@contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Lock the campaign; yield the lock's descriptor. Raises CannotRunError if it is locked."""
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotRunError(f"{folder}: is being worked on by another process") from None
        yield lock.fileno()


@dataclass(frozen=True)
class Begun(Generic[OneCampaign, OneResult]):
    """A campaign in progress.

    ``left``: runs without a result or not judged; ``lock``: descriptor of its lock.
    """

    campaign: OneCampaign
    results: Sequence[OneResult]
    left: Sequence[Any]
    lock: int


@contextmanager
def gone_on_with(
    folder: Path, read_in: Callable[[Path], tuple[OneCampaign, list[OneResult]]]
) -> Iterator[Begun[OneCampaign, OneResult]]:
    """Lock and yield a campaign to resume. Raises as ``locked`` and ``insist_on_code``."""
    with locked(folder) as lock:
        campaign, results = read_in(folder)
        insist_on_code(folder, campaign)
        done = {one.run.number for one in results if one.judged.found != NOT_JUDGED}
        left = [run for run in campaign.runs if run.number not in done]
        yield Begun(campaign, results, left, lock)


def make_each(
    folder: Path,
    left: Sequence[OneRun],
    make: Callable[[OneRun, Path], OneResult],
    report: Callable[[OneResult], None],
) -> None:
    """Make these runs, each in its own folder, and store and ``report`` each result."""
    for run in left:
        place = folder / run.folder
        # An interrupted run's files are not a result.
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        result = make(run, place)
        write(place / RESULT_FILE, dataclasses.asdict(result))
        report(result)


def code_digest() -> str:
    """Return a digest of the folders that decide how a run ends."""
    digest = hashlib.sha256()
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(ROOT)}\0".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]
