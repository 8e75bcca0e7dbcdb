"""A report keeps all of an experiment, or what it has is refused with report and test."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_reports import altered

from netproof import codec
from netproof.errors import NetproofError
from netproof.experiments import gpcnet, load, tails

DATA = Path(__file__).resolve().parents[2] / "data"
OF_JOB = {"load": load.of_job, "tails": tails.of_job, "gpcnet": gpcnet.of_job}


def report(folder: Path, **of_test: object) -> Path:
    """A recorded report whose only test has these keys."""

    def alone(document: dict) -> None:
        (run,) = document["runs"]
        run["testcases"] = [{**run["testcases"][0], "display_name": "Made", **of_test}]

    return altered(folder, alone, "netpipe", "run.json")


@pytest.mark.parametrize("kind", OF_JOB)
def test_a_report_keeps_all_of_it(kind, tmp_path):
    recorded = OF_JOB[kind](DATA / "jobs" / kind, "1")
    path = report(tmp_path, **{recorded.KEY: codec.encode(recorded)})
    assert type(recorded).of_report(path) == [recorded]


def test_what_a_report_lacks_or_has_otherwise_is_refused_with_its_test(tmp_path):
    recorded = gpcnet.of_job(DATA / "jobs" / "gpcnet", "1")
    kept, what = codec.encode(recorded), "a run of GPCNeT cannot be read: "
    for change, reason in (
        ({"jobid": 7}, f"{what}jobid: found 7, expected text"),
        ({"partition_extras": {}}, what),
    ):
        path = report(tmp_path, **{recorded.KEY: kept | change})
        with pytest.raises(NetproofError, match=rf"run\.json: Made: {reason}"):
            type(recorded).of_report(path)
    path = report(tmp_path, result="fail", fail_reason="no node answered")
    with pytest.raises(NetproofError, match="has no run of GPCNeT that is whole: Made: no node"):
        type(recorded).of_report(path)
