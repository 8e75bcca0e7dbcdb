"""The launches of a sweep: their order, their settings, and their record in a report."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netproof import codec
from netproof.errors import NetproofError
from netproof.experiments import parameters, sweep
from netproof.experiments.sweep import Sweep, turns
from netproof.measurement.case import Case
from netproof.session import job_files
from netproof.session.job_files import Incomplete
from netproof.site import site
from netproof.site.partition import Partition

ROOT = Path(__file__).resolve().parents[3]
JOB = ROOT / "tests" / "data" / "jobs" / "netpipe-twin"
CASE = Case("testbed", "gige", "mpich", "netpipe", "tcp", 2, 1, "inter-node", "oneway")
SRUN = ["srun", "--mpi=pmi2"]


@pytest.fixture(scope="module")
def partition() -> Partition:
    configuration = site.load(ROOT / "site-config" / "testbed.py")
    return Partition.model_validate(configuration["systems"][0]["partitions"][0]["extras"])


@given(st.integers(1, 9), st.integers(1, 6), st.integers(1, 99))
def test_every_value_is_in_every_round_between_two_defaults(count, rounds, seed):
    values = tuple(map(str, range(count)))
    several = turns(values, rounds, seed)
    assert len({turn.step for turn in several}) == len(several)
    for number in range(1, rounds + 1):
        of_round = [turn.value for turn in several if turn.round == number]
        assert sorted(value for value in of_round if value) == sorted(values)
        assert of_round[0] is None
        assert of_round[-1] is None
        runs = "".join("d" if value is None else "v" for value in of_round)
        assert "vvv" not in runs
        assert "dd" not in runs


def tuned(partition: Partition, values: tuple[str, ...], rounds: int) -> Sweep:
    """A sweep of TCP's socket buffer, without launches."""
    setting = parameters.found("socket-buffer", ()).assignment("tcp", "MPICH")
    of_job = "", 1, partition.model_dump(), turns(values, rounds, 1)
    return Sweep(CASE, "socket-buffer", "socket buffer", setting, *of_job)


def test_both_ends_of_tcp_get_a_value_by_arguments(partition):
    planned = tuned(partition, ("16384", "65536"), 3)
    for turn, step in zip(planned.turns, sweep.steps(planned, SRUN), strict=True):
        assert step.name == turn.step
        words = list(step.command)
        assert (words[-2:] == ["-b", turn.value]) is (turn.value is not None)
        assert f"{turn.step}.np" in words


def test_mpi_gets_a_value_by_its_environment(partition):
    setting = parameters.found("eager-limit", ()).assignment("mpi", "Open MPI 5")
    over_mpi = {"case": replace(CASE, function="mpi"), "assignment": setting}
    planned = replace(tuned(partition, ("4096",), 1), **over_mpi)
    commands = [shlex.join(step.command) for step in sweep.steps(planned, SRUN)]
    assert commands[1].startswith("env OMPI_MCA_btl_tcp_eager_limit=4096 srun --mpi=pmi2 ")
    assert [command.startswith("srun ") for command in commands] == [True, False, True]


@pytest.fixture
def measured(partition, tmp_path) -> Sweep:
    """A sweep of one value, whose launches are two of a recorded job in turn."""
    planned = tuned(partition, ("65536",), 3)
    for place, turn in enumerate(planned.turns):
        recorded = f"tcp-inter-node-oneway.{1 + place % 2}"
        for kind in ("out", "err", "np"):
            text = (JOB / f"{recorded}.{kind}").read_text()
            (tmp_path / f"{turn.step}.{kind}").write_text(text)
    head, *lines = (JOB / job_files.LAUNCHES_FILE).read_text().splitlines()
    (fields,) = [line.split("\t") for line in lines if line.startswith("tcp-inter-node-oneway.1\t")]
    noted = ["\t".join([turn.step, *fields[1:]]) for turn in planned.turns]
    (tmp_path / job_files.LAUNCHES_FILE).write_text("\n".join([head, *noted]) + "\n")
    return sweep.of_job(tmp_path, "7", planned)


def test_a_disturbed_sweep_says_by_what_and_how_often(measured):
    *busy, last = measured.launches
    launches = [
        replace(one, loads=tuple(replace(load, others_share=0.53) for load in one.loads))
        for one in busy
    ]
    several = replace(measured, launches=(*launches, last))
    assert measured.table.rounds == 3
    with pytest.raises(NetproofError) as raised:
        assert several.table
    assert str(raised.value) == (
        "socket buffer: 65536 has 0 rounds that nothing disturbed, and it takes 3; 8 of 9 launches"
        " were disturbed, the first so: gige-1, gige-2: others used 53 % of the CPUs. Measure while"
        " nothing else runs there, or with more rounds"
    )


def test_a_value_that_all_nodes_have_already_is_not_recommended(measured, tmp_path):
    launches = []
    for turn, one in zip(measured.turns, measured.launches, strict=True):
        times = tuple(time / (2 if turn.value else 1) for time in one.curve.time_us)
        curve = replace(one.curve, time_us=times)
        launches.append(replace(one, curves=(curve,)))
    several = replace(measured, launches=tuple(launches))
    assert several.table.best.winner == "65536"
    back = Sweep.from_json(json.loads(json.dumps(codec.encode(several))))
    assert (back.launches, back.turns) == (several.launches, several.turns)
    assert back.table == several.table
    own = tmp_path / parameters.OWN_FILE
    own.write_text('[["gige-1", "mtu", "65536"], ["gige-2", "mtu", "65536"]]')
    alike = replace(several, own=sweep.own_values(tmp_path))
    assert alike.already == "65536"
    assert alike.table.best is None
    own.write_text('[["gige-1", "mtu", "65536"], ["gige-2", "mtu", "1500"]]')
    unlike = replace(several, own=sweep.own_values(tmp_path))
    assert unlike.already is None
    assert unlike.table.best.winner == "65536"
    own.unlink()
    with pytest.raises(Incomplete, match="did not note what its nodes had"):
        sweep.own_values(tmp_path)


def test_launches_that_failed_are_counted_by_value_with_the_reason_of_the_first(
    partition, tmp_path
):
    planned = tuned(partition, ("64",), 3)
    noted = [f"{turn.step}\t1.0\t2.0\t1\t60" for turn in planned.turns[:-1]]
    head = "step\tstart\tend\tstatus\tlimit_s"
    (tmp_path / job_files.LAUNCHES_FILE).write_text("\n".join([head, *noted]) + "\n")
    for turn in planned.turns:
        (tmp_path / f"{turn.step}.err").write_text("Message truncated\n")
    with pytest.raises(Incomplete) as raised:
        sweep.of_job(tmp_path, "1", planned)
    said = str(raised.value)
    assert said.startswith("the default: 5 of 6 launches failed, the first so: ")
    assert "; 64: 3 of 3 launches failed, the first so: " in said
    assert "tuning-1.1 ended with status 1; it said: Message truncated" in said
    assert "; the job ended after 8 of 9 launches: " in said


def test_the_newest_of_each_setting_is_taken_or_why_it_says_nothing(tmp_path, monkeypatch):
    for name in ("mtu-20260101", "mtu-20260102", "other-20260103"):
        (tmp_path / f"run-{name}T000000.json").write_text("{}")
    case, broken = SimpleNamespace(system="testbed", ranks=2, key=lambda: ("gige", "mpich")), []

    def of_report(path: Path) -> list[SimpleNamespace]:
        if path.name in broken:
            raise NetproofError(f"{path}: has no sweep that is whole")
        name = path.name.split("-")[1]
        return [SimpleNamespace(path=path.name, case=case, parameter=name, table="a table")]

    monkeypatch.setattr(Sweep, "of_report", of_report)
    (found,), faults = sweep.newest(tmp_path, "testbed", ("mtu", "coalescing"))
    assert (found.path, faults) == ("run-mtu-20260102T000000.json", {})
    assert sweep.newest(tmp_path, "mycluster", ("mtu",)) == ([], {})
    assert sweep.newest(tmp_path / "none", "testbed", ("mtu",)) == ([], {})
    broken.append(found.path)
    (found,), faults = sweep.newest(tmp_path, "testbed", ("mtu",))
    assert found.path == "run-mtu-20260101T000000.json"
    assert faults == {"mtu": f"{tmp_path / broken[0]}: has no sweep that is whole"}


# The record of changes that a sweep by a hook did not undo.


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ([], "has no tuning_hook any more"),
        (["hook"], "cannot be restored: node1: srun is not in PATH"),
    ],
)
def test_what_could_not_be_restored_stays_in_the_record(tmp_path, monkeypatch, hook, said):
    record = tmp_path / "record.json"
    record.write_text('[["node1", "mtu", "1500"]]')
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NetproofError, match=said):
        parameters.restore(record, hook, [])
    assert parameters.read(record) == (("node1", "mtu", "1500"),)


def test_a_damaged_record_is_refused_and_stays_and_none_leaves_nothing_to_do(tmp_path):
    record = parameters.record_of(tmp_path / "tuning", "cluster", "ib")
    assert record == parameters.record_of(tmp_path, "cluster", "ib")
    assert parameters.restore(record, [], []) == ()
    record.parent.mkdir()
    record.write_text('[["node1", "mtu"]]')
    with pytest.raises(NetproofError, match=r"cluster-ib\.json.*; restore the nodes by hand"):
        parameters.restore(record, ["hook"], [])
    assert record.exists()


# A sweep of algorithms: what a job runs, and what one on the testbed left.

ALGORITHMS = ROOT / "tests" / "data" / "jobs" / "algorithms"
ALLREDUCE = Case("testbed", "gige", "mpich", "imb", "Allreduce", 4, 1)
VALUES = ("ring", "reduce_scatter_allgather", "nonsense")
SEVERAL = turns(VALUES, 3, json.loads((ALGORITHMS / "plan.json").read_text())["seed"])


@pytest.fixture(scope="module")
def undisturbed(partition: Partition) -> Partition:
    """The machine had other work, which is not what is tested."""
    never = {"disturbance": {"others": 1, "steal": 1}}
    return partition.model_copy(update={"criteria": {**partition.criteria, **never}})


@pytest.fixture
def job(tmp_path) -> Path:
    """A copy of the recorded job, to be damaged."""
    return Path(shutil.copytree(ALGORITHMS, tmp_path / "job"))


def planned(undisturbed, several=SEVERAL, library="MPICH 5.0.2", values=VALUES) -> Sweep:
    names = parameters.algorithms(library, "Allreduce", values)
    assignment = parameters.library_of(library).setting("Allreduce")
    extras = undisturbed.model_dump()
    made = Sweep(ALLREDUCE, "algorithm", "Allreduce algorithm", assignment, "", 1, extras, several)
    return replace(made, library=library, names=names)


def left_by(job: Path, undisturbed: Partition, *plan) -> Sweep:
    return sweep.of_job(job, "1", planned(undisturbed, *plan))


def test_each_launch_gets_its_algorithm_and_the_default_nothing(undisturbed):
    made = sweep.steps(planned(undisturbed), SRUN)
    for turn, step in zip(SEVERAL, made, strict=True):
        words = step.command
        assert step.name == turn.step
        assert "sizes-Allreduce.txt" in words
        assert words[-1] == "Allreduce"
        setting = [word for word in words if word.startswith("MPIR_CVAR")]
        expected = [
            f"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM={turn.value}",
            "MPIR_CVAR_COLLECTIVE_FALLBACK=print",
        ]
        assert setting == (expected if turn.value else [])
        assert step.label == (turn.value or "")


def test_a_value_that_the_library_says_to_ignore_is_refused(undisturbed, job):
    library = "Intel MPI 2021.18.1"
    assert parameters.library_of(library).ignored
    several = turns(("1", "99"), 3, 1)
    ring = [turn.step for turn in SEVERAL if turn.value == "ring"]
    plain = [turn.step for turn in SEVERAL if turn.value is None]
    source = {None: iter(plain), "1": iter(ring), "99": iter(ring)}
    # As Intel MPI 2021.18.1 says it on the testbed.
    said = "MPI startup(): Incorrect algorithm: ALLREDUCE=99, will be ignored\n"
    recorded = dict(line.split("\t", 1) for line in (ALGORITHMS / "launches.tsv").open())
    lines = ["step\t" + recorded["step"]]
    for turn in several:
        recording = next(source[turn.value], None) or ring[0]
        for kind in ("out", "err"):
            text = (ALGORITHMS / f"{recording}.{kind}").read_text()
            ignored = said if turn.value == "99" and kind == "out" else ""
            (job / f"{turn.step}.{kind}").write_text(ignored + text)
        lines.append(f"{turn.step}\t{recorded[recording]}")
    (job / "launches.tsv").write_text("".join(lines))
    tried = left_by(job, undisturbed, several, library, ("1", "99"))
    assert tried.refused == {"99": said.strip()}
    assert {turn.value for turn in tried.turns} == {None, "1"}


def test_without_a_launch_of_the_default_there_is_no_sweep(undisturbed, job):
    (job / "tuning-default.2.out").write_text("")
    with pytest.raises(Incomplete) as raised:
        left_by(job, undisturbed)
    said = str(raised.value)
    assert said.startswith("the library's own choice: a launch failed: ")
    assert "tuning-default.2.out: is empty" in said
    lines = (job / "launches.tsv").read_text().splitlines(keepends=True)
    (job / "launches.tsv").write_text("".join(lines[:-2]))
    with pytest.raises(Incomplete, match=r"the job ended after 14 of 18 launches: "):
        left_by(job, undisturbed)


def test_where_every_algorithm_is_refused_each_has_its_reason(undisturbed, job):
    for turn in SEVERAL:
        if turn.value is not None:
            (job / f"{turn.step}.out").write_text("")
    with pytest.raises(Incomplete) as raised:
        left_by(job, undisturbed)
    assert all(f"{value}: " in str(raised.value) for value in VALUES)
