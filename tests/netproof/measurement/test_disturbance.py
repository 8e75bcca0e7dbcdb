"""Other load on nodes, and when it is a disturbance: on the output of real steps."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_ranks import rank

from netproof import codec
from netproof.benchmarks.fixed import BEGINS, ENDED
from netproof.errors import ParseError
from netproof.measurement import disturbance
from netproof.measurement.disturbance import DisturbanceSettings, NodeLoad
from netproof.session import job_files

DATA = Path(__file__).resolve().parents[2] / "data" / "loads"
MACHINE = "a1beef58-62b7-4b83-abc9-5e302600cd1d"
ERRORS = Path("tcp.1.err")


def read(name: str) -> tuple[NodeLoad, ...]:
    text = (DATA / name).read_text()
    return disturbance.loads(DATA / name, text, job_files.cpu_by_node(text))


def line(
    node: str = "n1",
    *,
    machine: str = MACHINE,
    cpus: str = "0-1",
    window: tuple[float, float] = (10, 20),
    took: tuple[int, ...] = (0, 0, 0, 2000, 0, 0, 0, 0, 0, 0),
    pressure: tuple[str, str] = ("0", "0"),
    pressure_after: tuple[str, str] = ("0", "0"),
) -> str:
    """A node's line; ``took`` in ticks between two counts of CPU time."""
    before = " ".join("7" for _ in took)
    after = " ".join(str(7 + ticks) for ticks in took)
    fields = [f"netproof load on {node}", machine, cpus, str(window[0]), before, *pressure]
    return "\t".join([*fields, str(window[1]), after, *pressure_after, "end"]) + "\n"


def load(text: str, **cpu_s: tuple[float, float]) -> NodeLoad:
    return disturbance.loads(ERRORS, text, cpu_s or {"n1": (0, 0)})[0]


def test_a_quiet_machine_disturbs_nothing_and_one_cpu_taken_is_named_with_the_amount():
    for name in ("quiet-tcp.err", "quiet-alltoall.err"):
        loads = read(name)
        assert {one.machine for one in loads} == {loads[0].machine}
        assert loads[0].others_share < 0.05, name
        assert disturbance.disturbed(loads) == ()
        assert disturbance.unknown(loads) == ()
    for name, nodes in (
        ("one-cpu-taken-tcp.err", "gige-1, gige-2"),
        ("one-cpu-taken-alltoall.err", "gige-1, gige-2, gige-3, gige-4"),
    ):
        loads = read(name)
        assert 0.35 < loads[0].others_share < 0.75, name
        (said,) = disturbance.disturbed(loads)
        percent = round(100 * loads[0].others_share)
        assert said == f"{nodes}: others used {percent} % of the CPUs"


def test_others_are_what_the_ranks_and_the_network_do_not_explain():
    # 10 s of 2 CPUs: 6 s user, 5 s system, 4 s softirq.
    text = line(took=(500, 100, 500, 500, 0, 0, 400, 100))
    one = load(text, n1=(3.0, 4.0))
    assert one.others_cpu_s == pytest.approx(3 + 1)
    assert one.others_share == pytest.approx(4 / 20)
    assert one.network_share == pytest.approx(4 / 20)
    assert one.steal_share == pytest.approx(1 / 20)
    # What interrupts charge to the ranks takes nothing off what others did outside the kernel.
    assert load(text, n1=(3.0, 9.0)).others_cpu_s == pytest.approx(3)


def test_nodes_with_one_boot_id_are_one_machine_for_as_long_as_all_run():
    first = line("n1", window=(10, 19), took=(900, 0, 0, 900, 0, 0, 0, 0))
    second = line("n2", window=(11, 20), took=(900, 0, 0, 900, 0, 0, 0, 0))
    loads = disturbance.loads(ERRORS, first + second, {"n1": (4, 0), "n2": (5, 0)})
    assert [one.wall_s for one in loads] == [8, 8]
    assert [one.others_cpu_s for one in loads] == [0, 0]
    apart = second.replace(MACHINE, "0" * 36)
    loads = disturbance.loads(ERRORS, first + apart, {"n1": (4, 0), "n2": (5, 0)})
    assert [one.others_cpu_s for one in loads] == [5, 4]
    assert disturbance.disturbed(loads) == (
        "n1: others used 28 % of the CPUs",
        "n2: others used 22 % of the CPUs",
    )


def test_nodes_of_one_machine_that_never_ran_together_are_not_known():
    text = line("n1", window=(10, 12)) + line("n2", window=(13, 14))
    loads = disturbance.loads(ERRORS, text, {"n1": (0, 0), "n2": (0, 0)})
    assert disturbance.disturbed(loads) == ()
    assert "n1: others not known: the ranks of this machine's nodes did not run at" in str(
        disturbance.unknown(loads)
    )


def test_a_share_has_to_be_beyond_the_bound_by_the_clocks_ticks():
    # 3 of 20 ticks in 0.1 s of 2 CPUs are 15 %, and a tick of each of three columns.
    short = line(window=(10, 10.1), took=(3, 0, 0, 17, 0, 0, 0, 0))
    assert load(short).others_share == pytest.approx(0.15)
    assert disturbance.disturbed([load(short)]) == ()
    long = line(window=(10, 20), took=(300, 0, 0, 1700, 0, 0, 0, 0))
    assert disturbance.disturbed([load(long)]) == ("n1: others used 15 % of the CPUs",)


def test_steal_is_named_alongside_others():
    text = line(took=(500, 0, 0, 1300, 0, 0, 0, 200))
    assert disturbance.disturbed([load(text)]) == (
        "n1: others used 25 % of the CPUs and the hypervisor gave 10 % of the CPUs to others",
    )
    quieter = DisturbanceSettings(others=1, steal=1)
    assert disturbance.disturbed([load(text)], quieter) == ()


def test_what_a_kernel_lacks_is_absent_with_the_reason_and_never_zero():
    gone = "absent: this kernel has no such file"
    text = line(pressure=(gone, gone), pressure_after=(gone, gone), machine=gone)
    one = load(text)
    assert (one.machine, one.pressure_share, one.pressure_full_share) == (None, None, None)
    assert one.others_share == 0
    assert dict(one.absent) == dict.fromkeys(
        ("machine", "pressure_share", "pressure_full_share"), "this kernel has no such file"
    )
    assert disturbance.unknown([one]) == ()
    one = load(line(cpus="absent: no sysfs"))
    assert (one.others_share, one.steal_share) == (None, None)
    assert disturbance.disturbed([one]) == ()
    assert disturbance.unknown([one]) == (
        "n1: others not known: no sysfs",
        "n1: steal not known: no sysfs",
    )


def test_a_launch_of_a_session_before_is_not_called_undisturbed():
    assert disturbance.loads(ERRORS, "IMB said something\n", {"n1": (0, 0)}) == ()
    assert disturbance.scheduled(ERRORS, "") == {}
    assert disturbance.disturbed(()) == ()
    assert disturbance.unknown(()) == ("the job did not record what else its nodes did",)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\tend", ""),
        lambda text: text.replace("0-1", "0-x"),
        lambda text: text.replace("7 7 ", "7 -7 ", 1),
        lambda text: text.replace("\t10\t", "\tnan\t"),
        lambda text: text.replace("\t10\t", "\tsoon\t"),
        lambda text: text.replace("7 7 7 7 7 7 7 7 7 7", "7 7 7"),
        lambda text: text.replace("load on n1", "load on n2"),
        lambda text: text + text,
        lambda text: text.replace("\t0\t0\t", "\t0\t", 1),
    ],
)
def test_a_damaged_line_is_a_fault(change):
    with pytest.raises(ParseError) as caught:
        load(change(line()))
    assert str(ERRORS) in str(caught.value)


@given(
    took=st.lists(st.integers(0, 10**9), min_size=8, max_size=10),
    wall=st.floats(0.01, 1e5),
    used=st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)),
    cpus=st.integers(1, 4096),
)
def test_shares_are_shares_whatever_the_counters_say(took, wall, used, cpus):
    one = load(line(took=tuple(took), window=(0, wall), cpus=f"0-{cpus - 1}"), n1=used)
    assert one.cpus == cpus
    for share in (one.others_share, one.network_share, one.steal_share, one.pressure_share):
        assert 0 <= share <= 1
    values = json.loads(json.dumps(codec.encode(one)))
    assert codec.decode(NodeLoad, values, "it") == one


def test_a_rank_keeps_its_status_input_and_output(tmp_path):
    ran = rank(tmp_path, "sh", "-c", "cat; echo said >&2; sleep 0.5; exit 3")
    assert (ran.returncode, ran.stdout) == (3, f"{BEGINS}read by the rank\n{ENDED}")
    assert ran.stderr.startswith("said\n")
    (one,) = disturbance.scheduled(ERRORS, ran.stderr).values()
    assert {*one} == {"voluntary", "involuntary", "waited_s"}
    assert not any(isinstance(value, str) for value in one.values())
    assert one["voluntary"] > 0
    assert len(disturbance.loads(ERRORS, ran.stderr, job_files.cpu_by_node(ran.stderr))) == 1


@pytest.mark.slow
def test_only_rank_0_marks_its_output_and_a_rank_that_a_signal_ended_says_so(tmp_path):
    assert rank(tmp_path, "echo", "of rank 1", SLURM_PROCID="1").stdout == "of rank 1\n"
    ran = rank(tmp_path, "sh", "-c", "kill -SEGV $$")
    assert ran.returncode == 139
    assert "sh was ended by signal SEGV\n" in ran.stderr
    assert rank(tmp_path, "./not-there").returncode == 127


def test_a_rank_that_ends_before_its_shell_comes_to_run_again_is_reported_whole(tmp_path):
    slow = {"BASH_FUNC_kill%%": '() { sleep 0.3; builtin kill "$@"; }'}
    ran = rank(tmp_path, "true", **slow)
    (one,) = disturbance.scheduled(ERRORS, ran.stderr).values()
    assert (ran.returncode, type(one["waited_s"])) == (0, float)


@pytest.mark.slow
def test_what_a_rank_leaves_behind_does_not_hold_it_up(tmp_path):
    ran = rank(tmp_path, "sh", "-c", "sleep 30 >/dev/null 2>&1 & sleep 0.1")
    assert ran.returncode == 0
    (wall_s,) = re.findall(r"([\d.]+) s wall", ran.stderr)
    assert float(wall_s) < 10
