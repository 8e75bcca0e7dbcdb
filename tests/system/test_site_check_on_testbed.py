"""``netproof site check`` where Slurm is: what its partitions lack for the site's."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.testbed, pytest.mark.usefixtures("testbed")]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def faults(run, tmp_path):
    """``faults(old, new)``: those found once the site's file has ``new`` in place of ``old``."""

    def found(old: str = "", new: str = "") -> list[dict[str, str]]:
        shutil.copytree(ROOT / "site-config", tmp_path / "site-config")
        path = tmp_path / "site-config" / "testbed.py"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
        ran = run(
            tmp_path,
            *("netproof", "site", "check", "testbed:gige", "--format=json"),
            RFM_CONFIG_PATH=str(tmp_path / "site-config"),
        )
        document = json.loads(ran.stdout)
        assert ran.returncode == (1 if document["faults"] else 0)
        assert not any("Slurm" in sentence for sentence in document["not_checked"])
        return document["faults"]

    return found


@pytest.fixture
def slurm(run, tmp_path):
    """``slurm(options)``: changes the partition gige for the test."""

    def update(*options: str) -> None:
        ran = run(tmp_path, "scontrol", "update", "partition=gige", *options)
        assert ran.returncode == 0, ran.stderr

    yield update
    # As ci/testbed has it.
    update("state=UP", "MaxTime=UNLIMITED")


@pytest.fixture
def drained(run, tmp_path) -> Iterator[None]:
    """A node of gige that is drained."""

    def node(*state: str) -> None:
        ran = run(tmp_path, "scontrol", "update", "node=gige-2", *state)
        assert ran.returncode == 0, ran.stderr

    node("state=DRAIN", "reason=a loose cable")
    yield
    node("state=RESUME")


def test_the_testbed_lacks_nothing(faults):
    assert faults() == []


@pytest.mark.parametrize(
    ("old", "new", "key", "reason"),
    [
        (
            "--partition={switch.name}",
            "--partition=ib",
            "access",
            "names 'ib', which Slurm does not",
        ),
        (
            '[f"--partition={switch.name}"]',
            "[]",
            "access",
            "names no partition of Slurm's: jobs would go",
        ),
        (
            '"nodes": len(switch.nodes)',
            '"nodes": 6',
            "extras['nodes']",
            "is 6, and Slurm's partition gige has 4",
        ),
    ],
)
def test_what_the_file_asks_of_slurm_and_slurm_has_not_is_told(faults, old, new, key, reason):
    (fault,) = faults(old, new)
    assert (fault["place"], fault["key"]) == ("partition testbed:gige", key)
    assert reason in fault["reason"]


def test_a_partition_that_is_down_is_told(faults, slurm):
    slurm("state=DOWN")
    (fault,) = faults()
    assert (fault["file"], fault["key"]) == ("Slurm", "gige")
    assert fault["reason"] == "partition gige is DOWN"


def test_a_shorter_limit_of_slurms_is_told(faults, slurm):
    slurm("MaxTime=10")
    (fault,) = faults()
    assert fault["key"] == "time_limit"
    assert "is 30m, and Slurm's partition gige allows 10 minutes" in fault["reason"]


def test_too_few_usable_nodes_are_told_with_slurms_reason(faults, drained):
    (fault,) = faults()
    assert "has 3 usable nodes of 4, and 4 are needed" in fault["reason"]
    assert "(a loose cable)" in fault["reason"]
