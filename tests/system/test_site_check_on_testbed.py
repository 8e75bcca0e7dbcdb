"""``netproof site check`` where Slurm is: what its partitions lack for the site's."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

pytestmark = [pytest.mark.testbed, pytest.mark.usefixtures("testbed")]


@pytest.fixture
def hurt(run, tmp_path) -> Iterator[None]:
    """A partition with a short limit and a node that has a loose cable."""

    def update(*options: str) -> None:
        ran = run(tmp_path, "scontrol", "update", *options)
        assert ran.returncode == 0, ran.stderr

    update("partition=gige", "MaxTime=10")
    update("node=gige-2", "state=DRAIN", "reason=a loose cable")
    yield
    # As ci/testbed has it.
    update("partition=gige", "MaxTime=UNLIMITED")
    update("node=gige-2", "state=RESUME")


def faults(run, folder) -> dict[str, str]:
    """Reasons by the key that is wrong."""
    ran = run(folder, "netproof", "site", "check", "testbed:gige", "--format=json")
    document = json.loads(ran.stdout)
    assert ran.returncode == (1 if document["faults"] else 0)
    assert not any("Slurm" in sentence for sentence in document["not_checked"])
    return {one["key"]: one["reason"] for one in document["faults"]}


def test_the_testbed_lacks_nothing(run, tmp_path):
    assert faults(run, tmp_path) == {}


def test_a_short_limit_and_too_few_nodes_are_named_with_slurms_reason(run, tmp_path, hurt):
    nodes, limit = sorted(faults(run, tmp_path).values(), reverse=True)
    assert "is 30m, and Slurm's partition gige allows 10 minutes" in limit
    assert "has 3 usable nodes of 4, and 4 are needed" in nodes
    assert "(a loose cable)" in nodes
