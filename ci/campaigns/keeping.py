"""A campaign is a folder.

Its settings and all its runs are written down when it begins, and each run has a folder with its
result, so that it goes on where it was interrupted.
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
    """A run that is planned: it has a folder in the campaign's."""

    @property
    def folder(self) -> str:
        """Name of that folder."""


class Result(Protocol):
    """A dataclass that says what became of a run."""

    run: Run


OneCampaign = TypeVar("OneCampaign", bound=Campaign[Any, Any])
OneRun = TypeVar("OneRun", bound=Run)
OneResult = TypeVar("OneResult", bound=Result)


def begin(folder: Path, campaign: Campaign[Any, Any]) -> None:
    """Write down what is to be done. Raises CannotRunError where ``folder`` has something else."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise CannotRunError(f"{folder}: is not empty; give --out another, or --resume this one")
    write(folder / CAMPAIGN_FILE, {"format": FORMAT, **dataclasses.asdict(campaign)})


def read(
    folder: Path, campaign_type: type[OneCampaign], result_type: type[OneResult]
) -> tuple[OneCampaign, list[OneResult]]:
    """A campaign, and the results of the runs that it made, in their order.

    Raises CannotRunError where the folder has none, or a file of it cannot be understood.
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
    """CannotRunError where the code is no longer what the campaign was begun with."""
    if campaign.code != code_digest():
        raise CannotRunError(
            f"{folder}: was begun with other code or configuration than is here now; runs of both"
            " are no one campaign"
        )


@contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Nobody else works on the campaign; the lock's descriptor. CannotRunError where one does."""
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotRunError(f"{folder}: is being worked on by another process") from None
        yield lock.fileno()


@dataclass(frozen=True)
class Begun(Generic[OneCampaign, OneResult]):
    """A campaign that is being worked on.

    ``left``: its runs that have no result yet or were not judged; ``lock``: its descriptor.
    """

    campaign: OneCampaign
    results: Sequence[OneResult]
    left: Sequence[Any]
    lock: int


@contextmanager
def gone_on_with(
    folder: Path, read_in: Callable[[Path], tuple[OneCampaign, list[OneResult]]]
) -> Iterator[Begun[OneCampaign, OneResult]]:
    """A campaign to go on with, locked. Raises CannotRunError as ``insist_on_code``, ``locked``."""
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
    tell: Callable[[OneResult], None],
) -> None:
    """Make these runs, each in a folder of its own, and keep and ``tell`` the result of each."""
    for run in left:
        place = folder / run.folder
        # What a run left that was interrupted is no result.
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        result = make(run, place)
        write(place / RESULT_FILE, dataclasses.asdict(result))
        tell(result)


def code_digest() -> str:
    """A name for what is in the folders that decide how a run ends."""
    digest = hashlib.sha256()
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(ROOT)}\0".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]
