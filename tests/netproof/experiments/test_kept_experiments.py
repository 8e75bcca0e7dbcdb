"""A report keeps all of an experiment, or what it has is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netproof import codec
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
