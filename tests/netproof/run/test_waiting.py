"""A job waits for nodes that other jobs hold as long as its site says, and no longer."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
import reframe as rfm
from reframe.core.builtins import variable
from reframe.core.exceptions import ReframeError, SkipTestError
from reframe.frontend import printer

from netproof.errors import NetproofError
from netproof.run import mixins
from netproof.run.mixins import NOT_LOGGED, OnPartition, WaitsForNodes, of_other_turns
from netproof.site import slurm
from netproof.site.slurm import SlurmPartition

LIMIT_S = 600
EXTRAS = {
    **{"switch": "s", "nic": "n", "driver": "d", "link_mbit_s": 1000, "mtu": 1500},
    **{"interface": "eth1", "nodes": 4, "ranks_per_node": 1, "rank_counts": [2]},
}


@dataclass
class Queued:
    """A job in Slurm's queue, as much of a test of ReFrame's as waiting takes."""

    number: int = 7
    num_tasks: int = 4
    num_tasks_per_node: int = 1
    limit_s: int = LIMIT_S
    cancelled: bool = False
    netproof_left: dict = field(default_factory=dict)
    netproof_busy: dict = field(default_factory=dict)
    left_to_others: tuple = ()
    in_pairs = False

    def __post_init__(self) -> None:
        self.job = SimpleNamespace(jobid=str(self.number), state="PENDING", cancel=self._cancel)
        self.current_partition = SimpleNamespace(
            name="gige",
            access=["--partition=gige"],
            extras={**EXTRAS, "wait_for_nodes_s": self.limit_s},
        )

    look_at_queue = WaitsForNodes.look_at_queue
    take_fewer = WaitsForNodes.take_fewer
    fail_if_waiting = WaitsForNodes.fail_if_waiting
    show_reason = WaitsForNodes.show_reason

    def _cancel(self) -> None:
        self.cancelled = True

    def skip(self, why: str) -> None:
        raise SkipTestError(why)

    def looked(self, *moments: float) -> Queued:
        for now in moments:
            self.look_at_queue(now)
        return self


class InPairs(Queued):
    """A job of pairs, which can do with fewer nodes."""

    in_pairs = True


@dataclass
class Slurm:
    """Slurm's answers on the queue and the nodes, and the numbers of nodes requested."""

    reason: str | None = "Resources"
    states: tuple[str, ...] = ("idle", "idle", "allocated", "planned")
    asked: list = field(default_factory=list)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Slurm:
    answers = Slurm()

    def partitions() -> dict[str, SlurmPartition]:
        nodes = {f"gige-{n}": state for n, state in enumerate(answers.states, 1)}
        return {"gige": SlurmPartition("gige", "UP", nodes)}

    monkeypatch.setattr(mixins, "_waits", {})
    monkeypatch.setattr(mixins, "_spent_s", defaultdict(float))
    monkeypatch.setattr(slurm, "pending_reason", lambda jobid: answers.reason)
    monkeypatch.setattr(slurm, "partitions", partitions)
    monkeypatch.setattr(slurm, "take_fewer", lambda jobid, nodes: answers.asked.append(nodes))
    return answers


def test_up_to_the_limit_a_job_waits_and_then_pairs_take_the_free_nodes(said):
    job = InPairs().looked(0, LIMIT_S - 10)
    assert (said.asked, job.num_tasks, job.netproof_busy) == ([], 4, {})
    job.looked(LIMIT_S)
    assert (said.asked, job.num_tasks) == ([3], 3)
    assert job.netproof_busy == {"nodes": ["gige-3"], "waited_s": LIMIT_S}
    assert not job.cancelled


def test_a_job_that_needs_all_of_its_nodes_is_left_with_the_reason(said):
    job = Queued()
    with pytest.raises(SkipTestError):
        job.looked(0, LIMIT_S)
    assert job.cancelled
    assert job.netproof_left == {
        "why": "Slurm gave it no 4 nodes in 600 s (wait_for_nodes_s), and says Resources; 3 of the"
        " partition's nodes were free, other jobs held gige-3",
        "planned": False,
    }


def test_a_single_free_node_is_no_pair(said):
    said.states = ("idle", "allocated", "mixed", "completing")
    job = InPairs()
    with pytest.raises(SkipTestError, match=r"1 of the .* other jobs held gige-\[2-4\]"):
        job.looked(0, LIMIT_S)
    assert said.asked == []


def test_free_nodes_of_other_turns_are_left_to_these(said):
    InPairs(left_to_others=("gige-1",)).looked(0, LIMIT_S)
    assert said.asked == [2]


def test_a_job_that_waits_for_another_job_does_not_wait_for_nodes(said):
    said.reason = None
    job = InPairs().looked(0, 10 * LIMIT_S)
    said.reason = "Resources"
    job.looked(11 * LIMIT_S, 12 * LIMIT_S - 1)
    assert said.asked == []


def test_the_jobs_of_a_partition_share_the_time_and_each_gets_a_moment(said):
    InPairs(number=1).looked(0, LIMIT_S)
    second = InPairs(number=2)
    second.looked(LIMIT_S, LIMIT_S + mixins.SETTLE_S - 1)
    assert said.asked == [3]
    second.looked(LIMIT_S + mixins.SETTLE_S + 5)
    assert said.asked == [3, 3]


def test_nodes_that_are_taken_meanwhile_are_given_up_too(said):
    job = InPairs().looked(0, LIMIT_S, LIMIT_S + 10)
    said.states = ("idle", "idle", "allocated", "allocated")
    job.looked(LIMIT_S + 10 + mixins.SETTLE_S)
    assert said.asked == [3, 2]
    assert job.netproof_busy["nodes"] == ["gige-3", "gige-4"]


@pytest.mark.parametrize("began", [False, True])
def test_what_slurm_refuses_ends_the_job_with_the_reason_unless_it_began(said, monkeypatch, began):
    def refuse(jobid: str, nodes: int) -> None:
        said.reason = None if began else said.reason
        raise NetproofError("scontrol says: Access/permission denied")

    monkeypatch.setattr(slurm, "take_fewer", refuse)
    job = InPairs()
    with nullcontext() if began else pytest.raises(ReframeError, match="permission denied"):
        job.looked(0, LIMIT_S)
    assert (job.cancelled, job.num_tasks, job.netproof_busy) == (not began, 4, {})


def test_a_slurm_that_is_silent_for_a_moment_is_asked_again(said, monkeypatch):
    def silent() -> dict:
        raise NetproofError("slurmctld does not answer")

    job = InPairs()
    with monkeypatch.context() as patched:
        patched.setattr(slurm, "partitions", silent)
        job.looked(0, LIMIT_S)
    assert (job.cancelled, said.asked) == (False, [])
    job.looked(LIMIT_S + mixins.ASK_EVERY_S)
    assert said.asked == [3]


def test_a_reason_that_never_ends_ends_the_job_after_a_minute(said):
    said.reason = "QOSNotAllowed"
    job = Queued().looked(0, mixins.SETTLE_S - 1)
    assert not job.cancelled
    with pytest.raises(ReframeError, match="job 7 on gige is pending: QOSNotAllowed, which no end"):
        job.looked(mixins.SETTLE_S + mixins.ASK_EVERY_S)
    assert job.cancelled


def test_another_reason_is_shown_once_after_a_minute_and_slurm_not_asked_at_every_look(
    said, monkeypatch
):
    shown: list[str] = []
    asked: list[str] = []
    monkeypatch.setattr(mixins, "getlogger", lambda: SimpleNamespace(warning=shown.append))
    monkeypatch.setattr(slurm, "pending_reason", lambda job: asked.append(job) or said.reason)
    said.reason = "Licenses"
    job = Queued().looked(0, mixins.ASK_EVERY_S - 1, 60, 120)
    assert len(asked) == 3
    said.reason = "Dependency"
    job.looked(180, 300)
    assert shown == ["job 7 on gige is pending: Licenses"]
    assert not job.cancelled


@pytest.mark.parametrize(
    ("state", "queued", "ended"),
    [
        ("NODE_FAIL", True, False),
        ("NODE_FAIL", False, True),
        ("CANCELLED", True, False),
        ("COMPLETED", True, True),
        (None, True, True),
    ],
)
def test_a_job_that_slurm_is_ending_or_queues_again_has_not_ended(
    monkeypatch, state, queued, ended
):
    monkeypatch.setattr(slurm, "is_queued", lambda jobid: queued)
    job = Queued()
    job.job = SimpleNamespace(jobid="7", state=state, _completion_time=1.0)
    assert WaitsForNodes.has_ended(job) is ended
    assert job.job._completion_time == (1.0 if ended else None)


# Nodes of a partition of which a job can have only some take turns.

NODES = tuple(f"cn{number:02}" for number in range(7))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6, 7])
@pytest.mark.parametrize("first", [0, 20419])
def test_all_have_their_turn_in_as_few_jobs_as_can_be(count, first):
    measured = set()
    for turn in range(first, first - (-len(NODES) // count)):
        others = of_other_turns(NODES, count, turn)
        assert len(others) == len(NODES) - count
        measured |= {*NODES} - {*others}
    assert measured == {*NODES}


# ReFrame's log leaves out attributes of a test that are empty, fixed or deprecated.


class Plain(rfm.RunOnlyRegressionTest):
    mine = variable(int, value=1)
    own = variable(int, value=1, loggable=False)


class Ours(rfm.RunOnlyRegressionTest, OnPartition):
    mine = variable(int, value=1)
    own = variable(int, value=1, loggable=False)


def test_it_leaves_out_what_says_nothing_and_what_reframe_deprecated():
    every, ours = Plain.loggable_attrs(), Ours.loggable_attrs()
    left = [one for one in every if one not in ours]
    reframes = {name for name, _ in every} & NOT_LOGGED
    assert {name for name, _ in left} == {"variables", *reframes}
    of_cases = {"direction", "function", "job_ranks", "launches", "path", "protocol", "ranks"}
    assert of_cases == NOT_LOGGED - reframes
    assert Plain.var_space["variables"].is_deprecated()
    read = {"display_name", "unique_name", "outputdir", "stagedir", "jobid", "job_nodelist", "name"}
    assert read <= {alias or name for name, alias in ours}
    assert ours == [one for one in every if one not in left]
    assert ("mine", None) in ours
    assert ("own", None) not in ours


def test_reframe_finds_in_its_report_what_its_summary_of_failures_prints():
    source = inspect.getsource(printer.PrettyPrinter.failure_report)
    printed = set(re.findall(r"rec\['(\w+)'\]", source))
    assert {"descr", "maintainers", "fail_reason"} <= printed
    assert not printed & NOT_LOGGED


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--restore-session=run-0.json", "--failed"], "leave out --restore-session: netproof's"),
        (["--rest"], "leave out --restore-session: netproof's"),
        (["--max-retries=2", "--reruns=1", "--performance-report", "-J--qos=urgent"], ""),
        (["--report-file=run.json", "--failed", "--mode=quick", "-p", "mpich"], ""),
        (["--ci-generate", "ci.yml"], "leave out --ci-generate: it would make a session of each"),
        (["--repeat=2"], "leave out --repeat: it would run nothing"),
        (["--distribute=all"], "leave out --distribute: it would run nothing"),
        (["-P", "launches=1,2"], "leave out --parameterize: it would run nothing"),
        (["--mode=twice"], "mode twice: leave out --repeat: it would run nothing"),
        (["--mode", "twice"], "mode twice: leave out --repeat: it would run nothing"),
    ],
)
def test_an_option_with_which_a_run_would_not_be_whole_is_refused(monkeypatch, words, reason):
    modes = {"twice": ["--repeat 2", "-p mpich"], "quick": ["-S launches=1"]}
    places = {f"modes/@{name}/options": options for name, options in modes.items()}
    monkeypatch.setattr(mixins, "runtime", lambda: SimpleNamespace(site_config=places))
    refusal = mixins.refused([*words, "-r"])
    assert refusal.startswith(reason)
    assert bool(refusal) is bool(reason)
