"""A case is complete, or every reason why not is named: over the files of real jobs."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from netproof import codec
from netproof.benchmarks import registry
from netproof.measurement.case import Case
from netproof.measurement.disturbance import NO_STARTS
from netproof.session import job_files, measured, provenance, session
from netproof.session.job_files import Incomplete
from netproof.site import site
from netproof.site.partition import Partition

DATA = Path(__file__).resolve().parents[2] / "data"
LINK_DOWN = DATA / "jobs" / "link-down.err"


@pytest.fixture(scope="module")
def partition() -> Partition:
    """The partition that the jobs were recorded on."""
    results = session.load(DATA / "sessions" / "faulty.json").results
    kept = next(one.extras for one in results if one.measured)
    return Partition.model_validate(kept["partition_extras"])


@pytest.fixture
def imb_job(tmp_path) -> Path:
    """A copy of an IMB job in which Bcast crashed and Barrier hung."""
    return Path(shutil.copytree(DATA / "jobs" / "imb-faulty", tmp_path / "job"))


def imb(folder: Path, function: str, partition: Partition, launches: int = 1):
    case = Case("testbed", "gige", "mpich", "imb", function, 2, 1)
    return job_files.of_job(folder, case, partition, launches, mpi_over_tcp=True)


def without(path: Path, part: str) -> None:
    """Take the lines with ``part`` out of a file; there has to be one."""
    lines = path.read_text().splitlines(keepends=True)
    kept = [line for line in lines if part not in line]
    assert len(kept) < len(lines)
    path.write_text("".join(kept))


def again(found: measured.Measured) -> measured.Measured:
    """The case as a session stores it."""
    values = json.loads(json.dumps(codec.encode(found)))
    return codec.decode_part(measured.Measured, values, "a case")


def reasons(folder: Path, function: str, partition: Partition, launches: int = 1) -> str:
    with pytest.raises(Incomplete) as caught:
        imb(folder, function, partition, launches)
    return str(caught.value)


def test_a_collective_keeps_its_fastest_rank_and_the_mean_and_pingpong_has_neither(
    imb_job, partition
):
    sendrecv = imb(imb_job, "Sendrecv", partition)
    curve = sendrecv.launches[0].curve
    printed = (curve.time_min_us[-1], curve.time_us[-1], curve.time_avg_us[-1])
    last = [line.split() for line in (imb_job / "Sendrecv.1.out").read_text().splitlines()]
    row = next(line for line in last if line[:1] == [str(curve.sizes[-1])])
    assert printed == tuple(map(float, row[2:5]))
    assert again(sendrecv) == sendrecv
    curve = imb(imb_job, "PingPong", partition).curve
    assert curve.time_min_us is curve.time_avg_us is None


LOADS = "".join(
    f"netproof load on gige-{node}\tboot\t0-1\t10.0\t{' '.join(['0'] * 10)}\t0\t0"
    f"\t20.0\t900 0 100 1000 0 0 0 0 0 0\t500000\t0\tend\n"
    f"netproof scheduled {node - 1}\t40\t{node}\t2000000000\tend\n"
    for node in (1, 2)
)


def test_a_launch_has_what_its_nodes_did_and_its_ranks_switches(imb_job, partition):
    with (imb_job / "PingPong.1.err").open("a") as errors:
        errors.write(LOADS)
    done = imb(imb_job, "PingPong", partition)
    (launch,) = done.launches
    assert [load.node for load in launch.loads] == ["gige-1", "gige-2"]
    # 9 s user and 1 s system of 20, less what the ranks of both nodes took.
    assert launch.loads[0].others_cpu_s == pytest.approx(9 - 0.175 + 1 - 0.54)
    assert launch.loads[0].pressure_share == pytest.approx(0.05)
    assert launch.used["involuntary"] == (1, 2)
    assert launch.used["waited_s"] == (2, 2)
    assert again(done) == done


def in_file(name: str, old: str, new: str) -> Callable[[Path], None]:
    """Damage to a job: a text of one of its files is another one."""

    def damage(job: Path) -> None:
        text = (job / name).read_text()
        assert old in text
        (job / name).write_text(text.replace(old, new))

    return damage


def lost(name: str, part: str, more: str = "") -> Callable[[Path], None]:
    """Damage to a job: lines of one of its files are missing, after ``more`` was appended."""

    def damage(job: Path) -> None:
        with (job / name).open("a") as file:
            file.write(more)
        without(job / name, part)

    return damage


@pytest.mark.parametrize(
    ("function", "damage", "said"),
    [
        (
            "Barrier",
            None,
            r"Barrier\.1\.err: Barrier\.1 was ended at its limit of 6 s .*step_limit_s",
        ),
        (
            "Bcast",
            None,
            r"Bcast\.1\.err: Bcast\.1 ended with status 143.*task 1: Exited .* code 139",
        ),
        (
            "Bcast",
            lambda job: shutil.copy(LINK_DOWN, job / "Bcast.1.err"),
            "OFI call ep_enable failed.*gige-2: task 1: Exited with exit code 143",
        ),
        ("Allreduce", in_file("launches.tsv", "\t143\t", "\t137\t"), "ended with status 137"),
        (
            "PingPong",
            lost("PingPong.1.out", "        65536 "),
            r"PingPong\.1: sizes 65536 bytes were asked for and are missing",
        ),
        (
            "PingPong",
            lambda job: shutil.copy(job / "Sendrecv.1.out", job / "PingPong.1.out"),
            "PingPong on 2 ranks was asked for",
        ),
        (
            "PingPong",
            lost("PingPong.1.err", "netproof rank 1"),
            r"PingPong\.1\.err: 1 of 2 ranks reported their end.*ran on 1 nodes and not on 2",
        ),
        ("PingPong", in_file("PingPong.1.err", "gige-2", "gige-1"), "ran on 1 nodes and not on 2"),
        *(
            ("PingPong", lost("PingPong.1.err", part, LOADS), r"PingPong\.1\.err")
            for part in ("load on gige-1", "load on gige-2", "scheduled 0")
        ),
    ],
)
def test_what_a_launch_lacks_is_named_with_its_file(imb_job, partition, function, damage, said):
    if damage is not None:
        damage(imb_job)
    reason = reasons(imb_job, function, partition)
    assert re.search(said, reason, re.S), reason
    assert "CANCELLED" not in reason
    assert ("limit" in reason) is (function == "Barrier")


def test_what_the_jobs_own_scripts_say_are_no_last_words(imb_job, partition):
    with (imb_job / "Bcast.1.err").open("a") as errors:
        errors.write(LOADS)
    assert "netproof" not in reasons(imb_job, "Bcast", partition).split("it said:")[1]


@pytest.mark.parametrize(
    ("garbled", "reason"),
    [
        (None, "left no record of its launches"),
        ("PingPong.1\t1\t2\t0\t6\n", ":1: the header"),
        (f"{job_files.LAUNCHES_HEADER}\nPingPong.1\t1\t2\n", ":2: .* is no launch"),
        (f"{job_files.LAUNCHES_HEADER}\nPingPong.1\t1\t2\tfine\t6\n", ":2: .* is no launch"),
        (f"{job_files.LAUNCHES_HEADER}\n", "PingPong.1 did not run; the job ended before it"),
    ],
)
def test_a_record_that_is_missing_garbled_or_cut_short_is_named(
    imb_job, partition, garbled, reason
):
    (imb_job / "launches.tsv").unlink()
    if garbled is not None:
        (imb_job / "launches.tsv").write_text(garbled)
    with pytest.raises(Incomplete, match=reason):
        imb(imb_job, "PingPong", partition)


@pytest.fixture
def crashed_job(tmp_path) -> Path:
    """A copy of a job in which PingPong crashed once and was launched again."""
    return Path(shutil.copytree(DATA / "jobs" / "crashed-once", tmp_path / "job"))


def test_a_crash_before_the_launch_that_counts_is_kept_and_does_not_fail_the_case(
    crashed_job, partition
):
    case = imb(crashed_job, "PingPong", partition)
    (launch,), (crash,) = case.launches, case.crashes
    assert (launch.order, crash.order) == (10, 9)
    assert (crash.number, crash.attempt, crash.status) == (1, 1, 143)
    assert crash.died_on == ("gige-2",)
    assert "Segmentation fault" in crash.said
    assert "CANCELLED" not in crash.said
    assert again(case) == case


def test_ranks_that_ended_badly_on_two_nodes_name_both():
    several = "srun: error: gige-[1-2]: tasks 0-1: Exited with exit code 1"
    assert job_files.first_to_die([several]) == ("gige-1", "gige-2")
    assert job_files.first_to_die(["srun: error: [[: task 0: Killed"]) == ()


def test_a_launch_of_which_every_attempt_crashed_says_how_many_there_were(crashed_job, partition):
    record = crashed_job / "launches.tsv"
    lines = record.read_text().splitlines()
    (crash,) = (line for line in lines if line.startswith("PingPong.1~1"))
    lines = [line for line in lines if not line.startswith("PingPong.1\t")]
    lines += [crash.replace("~1", "~2"), crash.replace("~1", "")]
    record.write_text("\n".join(lines) + "\n")
    for kind in ("out", "err"):
        for name in ("PingPong.1~2", "PingPong.1"):
            shutil.copy(crashed_job / f"PingPong.1~1.{kind}", crashed_job / f"{name}.{kind}")
    why = reasons(crashed_job, "PingPong", partition)
    assert "ended with status 143, in the last of 3 attempts of which each crashed; it said" in why
    assert "Segmentation fault" in why


@pytest.fixture
def twin_job(tmp_path) -> Path:
    """A copy of what a job with a healthy twin left of TCP in one direction, two launches."""
    return Path(shutil.copytree(DATA / "jobs" / "netpipe-twin", tmp_path / "job"))


@pytest.fixture(scope="module")
def with_twin() -> Partition:
    """The testbed's partition that has a twin."""
    configuration = site.load(DATA.parents[1] / "site-config" / "testbed.py")
    return Partition.model_validate(configuration["systems"][0]["partitions"][0]["extras"])


def tcp(folder: Path, partition: Partition) -> measured.Measured:
    case = Case("testbed", "gige", "mpich", "netpipe", "tcp", 2, 1, "inter-node", "oneway")
    return job_files.of_job(folder, case, partition, 2, mpi_over_tcp=True)


def test_a_twin_that_did_not_run_failed_or_lacks_a_size_fails_the_launch(twin_job, with_twin):
    assert tcp(twin_job, with_twin.model_copy(update={"twin": ()})).landmarks.paired_share is None
    without(twin_job / "tcp-inter-node-oneway-twin.1.np", "393216")
    record = twin_job / "launches.tsv"
    text = record.read_text()
    (line,) = re.findall(r"(?m)^tcp-inter-node-oneway-twin\.2\t.*\n", text)
    failed = line.replace("\t0\t", "\t3\t")
    for other, why in (("", "did not run"), (failed, "ended with status 3")):
        record.write_text(text.replace(line, other))
        with pytest.raises(Incomplete, match="393216") as caught:
            tcp(twin_job, with_twin)
        named = "tcp-inter-node-oneway-twin.2, over the healthy twin,"
        assert f"{named} {why}" in str(caught.value)


@pytest.mark.parametrize(
    ("extras", "rate"),
    [
        ({}, None),
        ({"rdma": "roce"}, 25_000 / 8 * 1024 / 1106),
        ({"rdma": "infiniband", "rdma_mtu": 2048, "rails": ("a", "b")}, 50_000 / 8 * 2048 / 2074),
    ],
)
def test_mpi_that_does_not_go_over_tcp_has_the_line_rate_of_what_carries_it(
    partition, extras, rate
):
    site = vars(partition.model_copy(update={"link_mbit_s": 25_000, "mtu": 1500, **extras}))

    def found(function: str, *, over_tcp: bool = False) -> float | None:
        case = Case("testbed", "gige", "mpich", "netpipe", function, 2, 1)
        return measured.line_rate_of_case(site, case, mpi_over_tcp=over_tcp)

    assert found("mpi") == (rate and pytest.approx(rate))
    # NPtcp goes over TCP in any case.
    assert found("tcp") == pytest.approx(25_000 / 8 * 1448 / 1538)
    assert found("mpi", over_tcp=True) != rate


# What MPI libraries say of their transport, as real runs on two nodes printed it.


def test_the_step_asks_every_library():
    command = provenance.transport_step(
        registry.named("imb").start("", 2), ["srun", "--mpi=pmix"], 2
    )
    assert {"I_MPI_DEBUG=4", "UCX_LOG_LEVEL=info", "--nodes=2"} <= set(command)
    assert command[-1] == "Barrier"


@pytest.mark.parametrize(
    ("library", "named"),
    [
        ("intelmpi", ["[0] MPI startup(): libfabric provider: tcp"]),
        ("mpich", ["libfabric provider: tcp - 198.18.1.0/24"]),
        (
            "openmpi5",
            ["  on-host:  all connections are self", "  off-host: all connections are tcp"],
        ),
    ],
)
def test_each_library_names_its_transport_among_what_it_says(library, named):
    said = provenance.transport_of(DATA / "transport" / library)
    assert list(provenance.telling(said)) == named
    assert not [line for line in said if "times -->" in line or "repetitions" in line]
    said = provenance.telling(provenance.transport_of(DATA / "transport" / "openmpi4"))
    assert [" btl for send to " in line for line in said] == [True] * 4


def test_what_is_said_is_bounded_and_printable_or_why_nothing_is_known(tmp_path):
    assert "transport.out: No such file or directory" in provenance.transport_of(tmp_path)
    lines = [f"line {number} \x1b[31m{'x' * 400}" for number in range(99)]
    (tmp_path / "transport.out").write_text("\n".join(lines))
    (tmp_path / "transport.err").write_text("")
    said = provenance.transport_of(tmp_path)
    assert len(said) == provenance.MOST_LINES + 1
    assert said[-1] == "… and 59 more lines"
    assert all(len(line) <= 200 and line.isprintable() for line in said)


# What a job says of its CPUs: TCP sleeps, MPICH polls, and both are kept as they were.


@pytest.fixture
def job(tmp_path) -> Path:
    """A copy of a job of NetPIPE inside a node, with launches that only start and end."""
    return Path(shutil.copytree(DATA / "jobs" / "cpu", tmp_path / "job"))


def used(folder: Path, protocol: str, partition: Partition) -> measured.Measured:
    case = Case("testbed", "gige", "mpich", "netpipe", protocol, 2, 2, "intra-node", "oneway")
    return job_files.of_job(folder, case, partition, 2, mpi_over_tcp=True)


def test_tcp_sleeps_for_every_message_and_mpich_for_none(job, partition):
    (tcp,), (mpi,) = (used(job, one, partition).cpu_costs for one in ("tcp", "mpi"))
    assert (tcp.node, tcp.ranks, mpi.ranks) == ("vm", 2, 2)
    # A message is sent and received on the one node, and put up with asleep at one of both ends.
    assert tcp.slept_per_message == pytest.approx(0.5, abs=0.1)
    assert mpi.slept_per_message < 0.01
    assert mpi.user_s > mpi.system_s
    assert tcp.user_s < tcp.system_s
    assert mpi.cores > tcp.cores
    # Starting and ending take what the launches take that do only that.
    found = used(job, "mpi", partition)
    taken = [sum(start.used["cpu_s"]) for start in found.starts]
    assert mpi.start_s == pytest.approx(sum(taken) / 2)
    assert 0 < mpi.start_s < mpi.cpu_s
    # 38 sizes, 10 round trips of each in three trials.
    assert used(job, "tcp", partition).launches[0].exchanged[1] == 38 * 10 * 3 * 2


def test_a_start_that_failed_is_left_out_with_its_reason(job, partition):
    record = job / "launches.tsv"
    lines = [line.split("\t") for line in record.read_text().splitlines()]
    for line in lines:
        if line[0] == "start-mpi-2x2.1":
            line[3] = "1"
    record.write_text("".join("\t".join(line) + "\n" for line in lines))
    found = used(job, "mpi", partition)
    assert [isinstance(one, str) for one in found.starts] == [True, False]
    assert found.cpu_costs[0].cpu_s is not None
    (job / "start-mpi-2x2.2.err").write_text("")
    why = used(job, "mpi", partition).cpu_costs[0].why("s_per_gb")
    assert "start-mpi-2x2.1 ended with status 1" in why
    assert "0 of 2 ranks reported their end" in why
    # The curve is whole without what was sent.
    (job / "tcp-intra-node-oneway.1.out").unlink()
    without(job / "tcp-intra-node-oneway.1.err", "netproof counters on")
    (first, _) = used(job, "tcp", partition).launches
    assert "tcp-intra-node-oneway.1.out" in first.exchanged


def test_a_job_without_starts_says_so_and_is_complete(partition):
    case = Case("testbed", "gige", "intelmpi", "netpipe", "tcp", 2, 1, "inter-node", "oneway")
    found = job_files.of_job(DATA / "jobs" / "netpipe", case, partition, 1, mpi_over_tcp=True)
    assert found.starts == ()
    assert {cost.why("cores") for cost in found.cpu_costs} == {NO_STARTS}
