"""A job's launches: all of them, in a recorded order, TCP and MPI in turns."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import made_partition

from netproof.benchmarks import netpipe
from netproof.benchmarks.imb import BENCHMARK as IMB
from netproof.measurement.case import Case
from netproof.session import plan
from netproof.site.partition import Partition

SRUN = ["srun", "--mpi=pmi2"]

PARTITION = made_partition.PARTITION.model_copy(update={"imb_arguments": ("-time", "0.1")})
WHERE = ("made", "gige", "mpich")
NETPIPE = tuple(netpipe.BENCHMARK.cases(WHERE, (2,), 1, all_functions=False))


def imb(*functions: str, ranks: int = 8, per_node: int = 2) -> list[Case]:
    """Cases of IMB in a job of so many ranks."""
    return [IMB.case(WHERE, name, ranks, per_node) for name in functions]


def steps_of(
    cases: Sequence[Case], launches: int = 1, partition: Partition = PARTITION, seed: int = 1
) -> list[plan.Step]:
    """The launches of a plan that measure."""
    units = plan.units(cases, launches, partition, SRUN, seed)
    return [step for unit in units for step in unit if not step.subject.startswith("start-")]


def text(step: plan.Step) -> str:
    return shlex.join(step.command)


def test_the_seed_alone_decides_the_order():
    def order(seed: int) -> list[str]:
        return [one.name for one in steps_of(imb("Alltoall", "Bcast", "Barrier"), 3, seed=seed)]

    assert order(7) == order(7)
    assert order(7) != order(8)
    names = [f"{name}.{n}" for name in ("Alltoall", "Barrier", "Bcast") for n in (1, 2, 3)]
    assert sorted(order(7)) == names


def test_ranks_fill_the_nodes_and_those_of_a_pair_are_on_two():
    alltoall, pingpong = steps_of(imb("Alltoall")), steps_of(imb("PingPong"))
    assert "--nodes=4 --ntasks=8 --ntasks-per-node=2" in text(*alltoall)
    words = "IMB-MPI1 -npmin 8 -msglen sizes-Alltoall.txt -time 0.1 Alltoall"
    assert text(*alltoall).endswith(words)
    assert "--nodes=2 --ntasks=2 --ntasks-per-node=1" in text(*pingpong)
    assert "-npmin 2 " in text(*pingpong)


def test_a_job_of_few_variants_launches_only_these_in_the_order_of_all():
    subjects = {"tcp-inter-node-oneway", "mpi-intra-node-bidirectional"}
    few = [case for case in NETPIPE if netpipe.BENCHMARK.subject(case) in subjects]
    whole = steps_of(NETPIPE, 2, PARTITION, 3)
    steps = steps_of(few, 2, PARTITION, 3)
    assert [one.name for one in steps] == [one.name for one in whole if one.subject in subjects]
    starts = plan.start_steps(few, SRUN)
    assert [one.name for one in starts] == ["start-tcp-2x1.1", "start-mpi-2x2.1"]


TWIN = PARTITION.model_copy(update={"twin": ("ci/testbed/twin", "a switch")})


def test_each_launch_between_nodes_has_the_healthy_twin_over_tcp_next_to_it():
    units = plan.units(NETPIPE, 2, TWIN, SRUN, 1)
    over_tcp = [case for case in NETPIPE if case.function == "tcp"]
    # Each environment has as many units, besides those that only start and end.
    assert [len(units), len(plan.units(over_tcp, 2, TWIN, SRUN, 1))] == [8 + 4, 8 + 2]
    inter = next(unit for unit in units if unit[0].name == "tcp-inter-node-oneway.1")
    assert [step.name for step in inter] == [
        "tcp-inter-node-oneway.1",
        "tcp-inter-node-oneway-twin.1",
        "mpi-inter-node-oneway.1",
        "mpi-inter-node-oneway-twin.1",
    ]
    steps = {step.name: text(step) for unit in units for step in unit}
    assert not any("intra-node" in name and "twin" in name for name in steps)
    assert steps["mpi-inter-node-oneway-twin.1"] == (
        "ci/testbed/twin 'a switch' -l 1 -u 4096 -p 0 -n 10 -o mpi-inter-node-oneway-twin.1.np"
    )
    # Both ways its buffers are above the largest message.
    both = "-2 -b 8192 -l 1 -u 4096 -p 0 -n 10 -o tcp-inter-node-bidirectional"
    assert steps["tcp-inter-node-bidirectional.1"].endswith(f" {both}.1.np")
    assert steps["tcp-inter-node-bidirectional-twin.1"].endswith(f" 'a switch' {both}-twin.1.np")


def test_other_benchmarks_have_it_where_they_run_on_two_nodes():
    cases = imb("PingPong", "Bcast", "Sendrecv", "Barrier", ranks=2, per_node=1)
    steps, made = steps_of(cases, 2), steps_of(cases, 2, TWIN)
    assert [step for step in made if "-twin." not in step.name] == steps
    for place, step in enumerate(made):
        if "-twin." in step.name:
            assert step.name == plan.twin_name(made[place - 1].name)
    assert len(made) == 2 * len(steps)
    commands = {step.name: text(step) for step in made}
    # Both ways where messages go both ways; a quarter of the repetitions.
    alone = "ci/testbed/twin 'a switch' -l 1 -u 4096 -p 0 -n 2 -o"
    for name in ("PingPong", "Bcast"):
        assert commands[f"{name}-twin.1"] == f"{alone} {name}-twin.1.np"
    for name in ("Sendrecv", "Barrier"):
        assert " 'a switch' -2 -b 8192 -l 1 -u 4096 -p 0 -n 2 " in commands[f"{name}-twin.2"]


def test_a_site_s_sizes_are_those_of_every_launch_of_a_whole_curve():
    sizes = {"netpipe": {"perturbation": 3}, "imb": {"also": [3000]}}
    partition = PARTITION.model_copy(update={"sizes": sizes, "twin": ["twin"]})
    steps = steps_of(NETPIPE, 1, partition, 1)
    commands = {step.subject: text(step) for step in steps}
    assert " -l 1 -u 4096 -p 3 -n 10 " in commands["mpi-inter-node-oneway"]
    # Its largest message is 3 bytes longer.
    assert " -2 -b 8198 -l 1 -u 4096 -p 3 " in commands["tcp-inter-node-bidirectional"]
    assert " -2 -b 8198 -l 1 -u 4096 -p 0 " in commands["tcp-inter-node-bidirectional-twin"]
    assert plan.sizes_asked(*imb("Bcast"), partition)[-3:] == (2048, 3000, 4096)
    assert plan.whole_sweep(PARTITION) == plan.SizeSweep(1, 4096, 0)


def test_a_launch_only_starts_and_ends_on_the_ranks_of_each_function():
    steps = plan.start_steps(imb("PingPong", "Alltoall", "Barrier"), SRUN)
    assert [step.name for step in steps] == ["start-imb-2x1.1", "start-imb-8x2.1"]
    pair, whole = map(text, steps)
    assert "--nodes=2 --ntasks=2 --ntasks-per-node=1" in pair
    assert pair.endswith("bash ./rank.sh IMB-MPI1 -npmin 2 -iter 1 Barrier")
    assert "--nodes=4 --ntasks=8 --ntasks-per-node=2" in whole
    assert whole.endswith("IMB-MPI1 -npmin 8 -iter 1 Barrier")


def test_netpipe_starts_over_both_protocols_between_nodes_and_inside_one():
    steps = plan.start_steps(NETPIPE, SRUN)
    assert [step.name for step in steps] == [
        f"start-{protocol}-{placed}.1" for protocol in ("tcp", "mpi") for placed in ("2x1", "2x2")
    ]
    commands = {step.name: text(step) for step in steps}
    least = "-l 1 -u 8 -p 0 -n 1 -o /dev/null"
    assert commands["start-mpi-2x1.1"].endswith(f"bash ./rank.sh NPmpi {least}")
    tcp = "bash ./rank.sh bash ./nptcp.sh run"
    assert commands["start-tcp-2x1.1"].endswith(f"{tcp} '{{address}}' '{{port}}' {least}")
    assert "'--nodelist={node-1},{node-2}'" in commands["start-mpi-2x1.1"]
    assert "'--nodelist={node-1}'" in commands["start-mpi-2x2.1"]
