"""A report keeps all of an experiment, or what it has is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netproof import codec
from netproof.errors import NetproofError
from netproof.experiments import gpcnet, load, tails
from netproof.session.session import MeasuredJob

JOBS = Path(__file__).resolve().parents[2] / "data" / "jobs"
OF_JOB = {"load": load.of_job, "tails": tails.of_job, "gpcnet": gpcnet.of_job}


@pytest.fixture(scope="module", params=OF_JOB)
def recorded(request) -> MeasuredJob:
    """What a recorded job of an experiment measured."""
    return OF_JOB[request.param](JOBS / request.param, "1")


def test_a_report_keeps_all_of_it(recorded):
    assert type(recorded).from_json(json.loads(json.dumps(codec.encode(recorded)))) == recorded


@pytest.mark.parametrize("change", [{"partition_extras": {}}, {"nodes": "node-1"}, {"more": 1}])
def test_what_is_damaged_is_refused(recorded, change):
    values = {**json.loads(json.dumps(codec.encode(recorded))), **change}
    with pytest.raises(NetproofError, match=r"cannot be read|is no key of it"):
        type(recorded).from_json(values)
