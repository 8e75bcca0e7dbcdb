"""Every node is measured in pairs, and a port at half rate is named; real Slurm and ReFrame."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from netproof.pairs import verdict as pairs
from netproof.pairs.verdict import PairsVerdict
from netproof.session import session
from netproof.site.partition import Partition

pytestmark = [pytest.mark.testbed, pytest.mark.usefixtures("testbed")]

ROOT = Path(__file__).resolve().parents[2]
NODES = tuple(f"fast-ethernet-{n}" for n in range(1, 5))
SLOW = NODES[2]


def of_testbed(*words: str) -> None:
    subprocess.run([ROOT / "ci/testbed/testbed", *words], check=True, stdout=subprocess.DEVNULL)


@pytest.fixture
def half_rate() -> Iterator[None]:
    """The port of one node at half of its rate, both ways."""
    of_testbed("plant", SLOW, "rate=0.5")
    yield
    of_testbed("lift")


def judged(run, folder: Path) -> tuple[session.CheckResult, PairsVerdict]:
    """Rounds of pairs on Fast Ethernet as a run judged them."""
    run(
        folder,
        *("reframe", "--system", "testbed:fast-ethernet", "-c", str(ROOT / "checks/pairs.py")),
        *("-p", "mpich", "-r"),
    )
    (found,) = (
        result for result in session.load(folder / "run-0.json").results if result.kind == "pairs"
    )
    assert found.rounds is not None, found.reason
    site = Partition.model_validate(found.extras["partition_extras"])
    return found, pairs.judge(found.rounds, site.pair_settings(), site.settings().disturbance)


@pytest.mark.nightly
def test_every_node_of_a_healthy_switch_is_measured_and_none_accused(run, tmp_path):
    _, of_pairs = judged(run, tmp_path)
    assert of_pairs.rounds.measured() == set(NODES)
    assert not of_pairs.accusations()
    assert not of_pairs.faults()


def test_a_port_at_half_rate_is_accused_and_no_other(run, tmp_path, half_rate):
    found, of_pairs = judged(run, tmp_path)
    assert (found.result, found.phase) == ("fail", "sanity")
    accused = [node for one in of_pairs.judgement.accusations for node in one.nodes]
    if of_pairs.busy:
        # A machine that was busy throughout says so, and accuses nobody.
        assert not accused
        assert "something else ran alongside" in found.reason
        return
    assert accused == [SLOW]
    assert SLOW in found.reason
    low, high = of_pairs.judgement.accusations[0].effects[0].interval
    assert low < high < 0.75
    assert any(one.alone for one in of_pairs.rounds.launches)
