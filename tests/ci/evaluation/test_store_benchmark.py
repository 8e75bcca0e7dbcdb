"""The benchmark's stores are stores, and its ways to an answer agree on it."""

from __future__ import annotations

import pytest

from ci.evaluation import store_benchmark as benchmark
from netproof.store import Store, questions
from netproof.store.tables import KEY

pytestmark = pytest.mark.slow

NIGHTS = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("generated") / "store"
    assert benchmark.make(made, NIGHTS, float("inf")) == NIGHTS
    return made


def test_a_night_has_the_rows_of_the_matrix(folder):
    with questions.connect(Store(folder)) as connection:
        counted = connection.sql(
            "select session, count(*), count(distinct (launch, size_bytes)),"
            f" count(distinct ({', '.join(KEY)})) from curves group by all order by all"
        ).fetchall()
    names = [benchmark.stored(night).name for night in range(NIGHTS)]
    assert counted == [(night, 72576, 72, 1008) for night in names]


def test_a_store_made_in_parts_is_the_same(folder, tmp_path):
    benchmark.make(tmp_path / "store", 1, float("inf"))
    benchmark.make(tmp_path / "store", NIGHTS, float("inf"))
    files = sorted(path.relative_to(folder) for path in folder.rglob("*.parquet"))
    assert all(
        (folder / path).read_bytes() == (tmp_path / "store" / path).read_bytes() for path in files
    )


def test_all_ways_give_the_same_answer(folder):
    scores = benchmark.values_of_newest(folder).to_pandas().sort_values(list(KEY))
    for way in (benchmark.pandas_scores, benchmark.pandas_scores_of_file):
        naive = way(folder).sort_values(list(KEY))
        assert scores.score.tolist() == pytest.approx(naive.ratio.tolist(), rel=1e-12)
