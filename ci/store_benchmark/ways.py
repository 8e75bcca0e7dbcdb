"""Questions, and ways to answer them: netproof's, and pandas alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from netproof.site.partition import ScoreBaseline
from netproof.store import Store, questions
from netproof.store.tables import KEY

BASELINE = ScoreBaseline("gige", "ompi")


def values_of_newest(folder: Path) -> Any:
    """Read the values that the history follows of the newest session's cases, with the score."""
    store = Store(folder)
    return questions.nightly(store, [store.newest()], BASELINE)


def _everything(folder: Path) -> Any:
    import pandas

    return pandas.concat(
        pandas.read_parquet(path, partitioning=None).assign(
            session=path.parent.name.partition("=")[2]
        )
        for path in sorted(folder.glob("system=*/month=*/session=*/curves.parquet"))
    )


def _last(folder: Path) -> Any:
    import pandas

    path = max(folder.glob("system=*/month=*/session=*/curves.parquet"))
    return pandas.read_parquet(path, partitioning=None)


def _medians(frame: Any) -> Any:
    return frame.groupby([*KEY, "size_bytes"], observed=True).time_us.median().reset_index()


def _scores(frame: Any) -> Any:
    medians = _medians(frame[frame.size_bytes >= 4])
    match = ["benchmark", "function", "ranks", "path", "direction", "size_bytes"]
    base = medians[
        (medians.partition == BASELINE.partition) & (medians.environment == BASELINE.environment)
    ]
    pairs = medians.merge(base[[*match, "time_us"]], on=match, suffixes=("", "_base"))
    pairs["ratio"] = np.log(pairs.time_us_base / pairs.time_us)
    return np.exp(pairs.groupby(list(KEY)).ratio.mean()).reset_index()


def pandas_scores(folder: Path) -> Any:
    """Read all files, select the newest session, and compute scores."""
    frame = _everything(folder)
    return _scores(frame[frame.session == frame.session.max()])


def pandas_scores_of_file(folder: Path) -> Any:
    """Read the newest session's file alone, and compute scores."""
    return _scores(_last(folder))


QUESTIONS: dict[str, tuple[Callable[[Path], Any], ...]] = {
    "values of a night": (values_of_newest, pandas_scores, pandas_scores_of_file),
}
WAYS = ("netproof", "pandas, all files", "pandas, newest file")
