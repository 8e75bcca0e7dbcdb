"""Sweeps of settings whose best value is known, against what ``netproof measure`` recommends."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci.evaluation import engine
from ci.evaluation import testbed as machine
from ci.evaluation.engine import (
    LEAST_GOOD,
    RUNS,
    Answer,
    Evaluation,
    Grade,
    Plant,
    Result,
    Run,
    not_judged,
    short,
)
from ci.evaluation.markdown import AT_MOST
from ci.evaluation.testbed import ROOT

LEAST_STEPS = 15 / 16
"""Aim: share of eager limits found at their sizes."""
DONE, CANNOT_TELL = 0, 2
"""Exit statuses of ``netproof measure tune``."""
DISTURBED = """for partition in site_configuration["systems"][0]["partitions"]:
    # Programs of delay lines use CPUs while packets pass.
    partition["extras"]["criteria"]["disturbance"] = {"others": 1, "steal": 1}
"""

KIB = 1024
ALL = ("openmpi4", "openmpi5", "mpich", "intelmpi")
OPEN_MPI = ("openmpi4", "openmpi5")

EAGER = {
    **{name: "OMPI_MCA_btl_tcp_eager_limit" for name in OPEN_MPI},
    "mpich": "MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD",
}
"""Environments with an eager limit over TCP, and the variable that sets it."""

LEAST_BUFFERS = {"OMPI_MCA_btl_tcp_sndbuf": "4608", "OMPI_MCA_btl_tcp_rcvbuf": "2304"}
"""Least values in Linux, in bytes."""

OVER_UCX = {
    "OMPI_MCA_pml": "ucx",
    # By default Open MPI uses UCX on InfiniBand cards only.
    "OMPI_MCA_pml_ucx_tls": "any",
    "OMPI_MCA_pml_ucx_devices": "any",
    "UCX_TLS": "tcp,self",
    "UCX_NET_DEVICES": "eth1",
}
"""Open MPI's variables for messages over UCX, and UCX's for TCP on the switch under test."""

ALLREDUCE = {
    "mpich": "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM",
    "intelmpi": "I_MPI_ADJUST_ALLREDUCE",
}
"""Environments with IMB, and the variable that chooses the algorithm of Allreduce."""
# On gige's link a KiB takes 8.7 µs, and a short message some 40 µs.
_MUCH_SLOWER = f"Allreduce:0-{1 << 40}:500:20"


@dataclass(frozen=True, kw_only=True)
class Sweep(Plant):
    """A planted setting, the sweep to make, and its right answer.

    ``parameter``, ``values``, ``protocol``: options of ``netproof measure tune``; ``function``: of
    IMB, whose algorithms are swept on two ranks, empty for NetPIPE; ``slow``: calls made slower by
    all its algorithms but ``best``; ``best``: the right values, empty if nothing may be
    recommended; ``steps``: whether each value shows as a step of its curve is judged, and not the
    recommendation.
    """

    parameter: str
    values: tuple[str, ...] = ()
    protocol: str = "mpi"
    function: str = ""
    best: tuple[str, ...] = ()
    steps: bool = False

    def variables_in(self, environment: str, library: str) -> dict[str, str]:
        """Return the variables planted in an environment; ``library``: slow_mpi.c, compiled."""
        if not self.slow:
            return dict(self.variables.get(environment, {}))
        (best,) = self.best
        return machine.slower(library, self.slow, "IMB-MPI1", (ALLREDUCE[environment], best))


def _sizes(*kib: int) -> tuple[str, ...]:
    return tuple(str(KIB * one) for one in kib)


def _over_tcp(said: str, parameter: str, values: tuple[str, ...], **more: Any) -> Sweep:
    return Sweep(
        said=said,
        parameter=parameter,
        values=values,
        protocol="tcp",
        environments=("mpich",),
        **more,
    )


def _of_allreduce(said: str, environment: str, values: tuple[str, ...], *best: str) -> Sweep:
    return Sweep(
        said=said,
        parameter="algorithm",
        values=values,
        environments=(environment,),
        function="Allreduce",
        slow=_MUCH_SLOWER if best else "",
        best=best,
        least_good=LEAST_GOOD if best else 1.0,
    )


KINDS: Mapping[str, Sweep] = {
    "nothing": Sweep(
        said="a variable that no library reads",
        parameter="NETPROOF_UNREAD",
        values=("1", "2", "3"),
        environments=ALL,
        least_good=1.0,
    ),
    # Headers take under half a per cent more of 1,400-byte frames: not worth a setting.
    "mtu-alike": _over_tcp(*("an MTU of nearly the same", "mtu", ("1450", "1400")), least_good=1.0),
    "socket-buffer": _over_tcp(
        *("the least socket buffers, over TCP", "socket-buffer", _sizes(64, 128)),
        best=_sizes(64, 128),
        # 8 KiB hold all data in flight on a link of 1 Gbit/s, and cost nothing.
        faults=({"net.ipv4.tcp_wmem": "4608 4608 4608", "net.ipv4.tcp_rmem": "2304 2304 2304"},),
    ),
    "socket-buffer-mpi": Sweep(
        said="the least socket buffers, of Open MPI",
        parameter="socket-buffer",
        values=_sizes(64, 128),
        environments=OPEN_MPI,
        best=_sizes(64, 128),
        variables={name: LEAST_BUFFERS for name in OPEN_MPI},
    ),
    "mtu": _over_tcp(
        *("an MTU of 576 bytes", "mtu", ("700", "1500")),
        best=("1500",),
        faults=({"mtu": 576},),
    ),
    "eager-limit": Sweep(
        said="an eager limit of 512 bytes",
        parameter="eager-limit",
        values=_sizes(1, 64),
        environments=tuple(EAGER),
        best=_sizes(64),
        variables={name: {variable: "512"} for name, variable in EAGER.items()},
    ),
    "coalescing": _over_tcp(
        *("packets gathered for 250 µs", "coalescing", ("0", "100")),
        best=("0",),
        # With an empty delay line every value takes the same path through its program.
        faults=({"delay": 0, "batch": 250},),
    ),
    "rails": Sweep(
        said="one rail of two, of Open MPI",
        parameter="rails",
        environments=("openmpi5",),
        best=("eth1+eth2",),
        variables={"openmpi5": {"OMPI_MCA_btl_tcp_if_include": "eth1"}},
        topology="ci/testbed/rails.yaml",
        switch="rails",
    ),
    # At 64 KiB a rendezvous' round trip is less than a tenth of the time here.
    "eager-steps": Sweep(
        said="eager limits of 1, 4, 8 and 16 KiB, where the curve steps",
        parameter="eager-limit",
        values=_sizes(1, 4, 8, 16),
        environments=tuple(EAGER),
        steps=True,
    ),
    "eager-steps-ucx": Sweep(
        said="UCX's thresholds of 1, 4, 8 and 16 KiB below Open MPI, where the curve steps",
        parameter="UCX_RNDV_THRESH",
        values=_sizes(1, 4, 8, 16),
        environments=("openmpi4",),
        variables={"openmpi4": OVER_UCX},
        steps=True,
    ),
    "algorithm": _of_allreduce(
        "all algorithms of Allreduce but one made slower, MPICH",
        "mpich",
        ("recursive_doubling", "reduce_scatter_allgather", "ring"),
        "reduce_scatter_allgather",
    ),
    "algorithm-preset": _of_allreduce(
        "all presets of Allreduce but one made slower, Intel MPI", "intelmpi", ("1", "2", "3"), "2"
    ),
    "algorithm-alike": _of_allreduce("MPICH's own choice, by its name", "mpich", ("auto",)),
}


class Sweeps(Evaluation):
    """Sweeps of settings on the testbed whose best value is known, against what they recommend.

    Each run plants a value worse than those of the sweep, in a library, on the nodes or not at all,
    and `netproof measure tune` sweeps. It has to recommend the value planted as best, and nothing
    where no value differs. A run that broke is not judged, and repeated.
    """

    name = "tune-campaign"
    verb = "measure tune"
    plants = KINDS
    faults = KINDS
    counts = (("runs", RUNS, "runs of each kind"),)
    heads = (
        *("planted", "swept", "runs"),
        *(Grade.RIGHT, Grade.WRONG, Grade.MISSED, Grade.INCONCLUSIVE, Grade.NOT_JUDGED),
        *(f"not right{AT_MOST}", "median s", "longest s"),
    )
    described = "Sweeps"
    rejudges = False

    def plan(self, settings: Mapping[str, Any]) -> tuple[Run, ...]:
        """Plan runs of each kind, in an order that ``seed`` draws; environments take turns."""
        drawn, several = random.Random(settings["seed"]), []
        for name in KINDS:
            if name in settings["kinds"]:
                there = KINDS[name].environments
                first = drawn.randrange(len(there))
                turns = range(first, first + settings["runs"])
                several += [(name, there[turn % len(there)]) for turn in turns]
        return tuple(
            KINDS[name].drawn(number, name, seed, (environment,))
            for number, (name, environment), seed in engine.numbered(drawn, several)
        )

    def prepare(self, folder: Path, runs: Sequence[Run]) -> None:
        """Compile the library that slows down MPI."""
        machine.compiled_slow_mpi(folder)

    def site(self, run: Run, folder: Path) -> dict[str, str]:
        """Return variables for a run's testbed, and for its site with the planted setting."""
        (environment,) = run.environments
        library = folder.parent / "libslow_mpi.so"
        planted = KINDS[run.kind].variables_in(environment, str(library))
        alteration = machine.with_variables(environment, planted)
        if "delay" in run.fault:
            alteration += DISTURBED
        return {
            **machine.altered_site(folder, alteration),
            "NETPROOF_TOPOLOGY": str(ROOT / run.topology),
        }

    def reframe(self, run: Run, settings: Mapping[str, Any]) -> None:
        """The question measures."""

    def question(self, run: Run, settings: Mapping[str, Any], report: Path) -> list[str]:
        """Ask for the sweep."""
        kind, (environment,) = KINDS[run.kind], run.environments
        place = f"testbed:{kind.switch}"
        if kind.function:
            words = ["algorithms", place, kind.function, "--ranks", "2"]
        else:
            words = ["tune", place, kind.parameter, "--protocol", kind.protocol]
        if kind.values:
            words += ["--values", ",".join(kind.values)]
        return ["measure", *words, "--environment", environment]

    def without_document(self, status: int, errors: str) -> Answer:
        """A sweep that cannot tell says why."""
        said = [line for line in errors.splitlines() if line.startswith("netproof: ")]
        if status != CANNOT_TELL or not said:
            return super().without_document(status, errors)
        return Answer(Grade.INCONCLUSIVE, (short(said[-1]),))

    def judge(self, run: Run, status: int, document: Any) -> Answer:
        """Grade ``netproof measure``, whose document has to be of the sweep that was asked for."""
        kind = KINDS[run.kind]
        if status != DONE:
            return not_judged(f"netproof measure tune ended with {status}")
        (sweep,) = document["sweeps"]
        if sweep["parameter"] != kind.parameter:
            return not_judged(f"it is a sweep of {sweep['parameter']}")
        if kind.function:
            return _winners(kind, sweep)
        if kind.steps:
            return _steps(kind, sweep)
        return _recommendation(kind, sweep["recommended"])

    def aim(self, plant: Plant, judged: Sequence[Answer]) -> str | None:
        """Nine of ten right, all where no value is best, and 15 of 16 steps."""
        seen, tried = _seen(judged)
        if not tried:
            return super().aim(plant, judged)
        if seen < LEAST_STEPS * tried:
            return f"{plant.said}: {seen} of {tried} seen where they are"
        return None

    def cells(self, results: Sequence[Result]) -> dict[str, str]:
        """Return the swept parameter, in words."""
        kind = KINDS[results[0].run.kind]
        of = f"of {kind.function}" if kind.function else f"over {kind.protocol.upper()}"
        return {"swept": f"{kind.parameter} {of}"}

    def notes(self, results: Sequence[Result]) -> list[str]:
        """Return how many steps were seen."""
        found = []
        for name, kind in KINDS.items():
            judged = [one.judged for one in results if one.run.kind == name]
            if kind.steps and judged:
                seen, tried = _seen(judged)
                found.append(f"{kind.said}: {seen} of {tried} seen there or at the next size.")
        return found


EVALUATION = Sweeps()


def _seen(several: Sequence[Answer]) -> tuple[int, int]:
    return sum(one.steps[0] for one in several), sum(one.steps[1] for one in several)


def _recommendation(kind: Sweep, best: Mapping[str, Any] | None) -> Answer:
    if best is None:
        return Answer(Grade.MISSED if kind.best else Grade.RIGHT, ("nothing recommended",))
    right = best["value"] in kind.best
    return Answer(Grade.RIGHT if right else Grade.WRONG, (short(best["sentence"]),))


def _winners(kind: Sweep, sweep: Mapping[str, Any]) -> Answer:
    """Check that the planted algorithm wins at all sizes, or none anywhere without one."""
    winners = {row["winner"] for row in sweep["sizes"]}
    if winners - {None} - set(kind.best):
        found = Grade.WRONG
    elif winners == set(kind.best or [None]):
        found = Grade.RIGHT
    else:
        found = Grade.MISSED
    return Answer(found, (short(sweep["conclusion"]),))


def _steps(kind: Sweep, sweep: Mapping[str, Any]) -> Answer:
    """Check that each limit shows between the right sizes, or their neighbours."""
    sizes = [size for size, _ in sweep["values"][0]["by_size"]]
    seen_at, seen = [], 0
    steps = {step["value"]: step["sizes"] for step in sweep["eager_steps"]}
    for value in kind.values:
        between = steps[value]
        seen += between is not None and _near(int(value), between[1], sizes)
        seen_at.append(f"{value}: {'none' if between is None else f'{between[0]} to {between[1]}'}")
    found = Grade.RIGHT if seen == len(kind.values) else Grade.MISSED
    return Answer(found, (short(", ".join(seen_at)),), steps=(seen, len(kind.values)))


def _near(limit: int, above: int, sizes: Sequence[int]) -> bool:
    """Check that the first size not sent eagerly fits a limit, give or take one size."""
    return above in sizes and abs(sizes.index(above) - bisect_right(sizes, limit)) <= 1
