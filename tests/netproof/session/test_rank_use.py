"""What a recorded job says of its CPUs: TCP sleeps, MPICH polls, and both are kept as they were."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from netproof import codec
from netproof.measurement.case import Case
from netproof.measurement.disturbance import NO_STARTS
from netproof.session import job_files
from netproof.session.measured import Measured
from netproof.site.partition import Partition

DATA = Path(__file__).resolve().parents[2] / "data"


@pytest.fixture
def job(tmp_path) -> Path:
    """A copy of a job of NetPIPE inside a node, with launches that only start and end."""
    return Path(shutil.copytree(DATA / "jobs" / "cpu", tmp_path / "job"))


def measured(folder: Path, protocol: str, partition: Partition) -> Measured:
    case = Case("testbed", "gige", "mpich", "netpipe", protocol, 2, 2, "intra-node", "oneway")
    return job_files.of_job(folder, case, partition, 2, mpi_over_tcp=True)


def test_tcp_sleeps_for_every_message_and_mpich_for_none(job, partition):
    (tcp,), (mpi,) = (measured(job, one, partition).cpu_costs for one in ("tcp", "mpi"))
    assert (tcp.node, tcp.ranks, mpi.ranks) == ("vm", 2, 2)
    # A message is sent and received on the one node, and put up with asleep at one of both ends.
    assert tcp.slept_per_message == pytest.approx(0.5, abs=0.1)
    assert mpi.slept_per_message < 0.01
    assert mpi.user_s > mpi.system_s
    assert tcp.user_s < tcp.system_s
    assert mpi.cores > tcp.cores


def test_what_starting_and_ending_takes_is_that_of_the_launches_which_do_only_that(job, partition):
    found = measured(job, "mpi", partition)
    assert [len(start.ranks) for start in found.starts] == [2, 2]
    taken = sorted(sum(start.used["cpu_s"]) for start in found.starts)
    assert found.cpu_costs[0].start_s == pytest.approx(sum(taken) / 2)
    assert 0 < found.cpu_costs[0].start_s < found.cpu_costs[0].cpu_s


def test_user_and_system_time_are_told_apart(job, partition):
    launch = measured(job, "tcp", partition).launches[0]
    text = (job / "tcp-intra-node-oneway.1.err").read_text()
    columns = (launch.used[name] for name in ("wall_s", "cpu_s", "system_s"))
    for rank, (wall_s, cpu_s, system) in enumerate(zip(*columns, strict=True)):
        user = cpu_s - system
        assert f"rank {rank} on vm: {wall_s:.3f} s wall, {user:.3f} s user," in text
        assert f" {system:.3f} s system" in text
    # 38 sizes, 10 round trips of each in three trials.
    assert launch.exchanged[1] == 38 * 10 * 3 * 2


def test_a_start_that_failed_is_left_out_with_its_reason(job, partition):
    record = job / "launches.tsv"
    lines = [line.split("\t") for line in record.read_text().splitlines()]
    for line in lines:
        if line[0] == "start-mpi-2x2.1":
            line[3] = "1"
    record.write_text("".join("\t".join(line) + "\n" for line in lines))
    found = measured(job, "mpi", partition)
    assert [isinstance(one, str) for one in found.starts] == [True, False]
    assert found.cpu_costs[0].cpu_s is not None
    (job / "start-mpi-2x2.2.err").write_text("")
    why = measured(job, "mpi", partition).cpu_costs[0].why("s_per_gb")
    assert "start-mpi-2x2.1 ended with status 1" in why
    assert "0 of 2 ranks reported their end" in why


def test_a_job_without_them_says_so_and_is_complete(partition):
    case = Case("testbed", "gige", "intelmpi", "netpipe", "tcp", 2, 1, "inter-node", "oneway")
    found = job_files.of_job(DATA / "jobs" / "netpipe", case, partition, 1, mpi_over_tcp=True)
    assert found.starts == ()
    assert {cost.why("cores") for cost in found.cpu_costs} == {NO_STARTS}
    assert "starts" not in codec.encode(found)


def test_output_that_does_not_tell_what_was_sent_is_the_reason_why_it_is_not_known(job):
    case = Case("testbed", "gige", "mpich", "netpipe", "tcp", 2, 2, "intra-node", "oneway")
    (job / "tcp-intra-node-oneway.1.out").unlink()
    found = job_files.JobFolder(job)._exchanged("tcp-intra-node-oneway.1", case)
    assert "tcp-intra-node-oneway.1.out" in found
