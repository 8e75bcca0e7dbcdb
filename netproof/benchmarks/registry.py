"""All benchmarks, each found by its module; adding a file to this room adds a benchmark."""

from __future__ import annotations

import importlib
import pkgutil

from netproof.benchmarks import __path__ as room
from netproof.benchmarks import imb
from netproof.benchmarks.interface import Benchmark, Function, MpiBenchmark
from netproof.errors import NetproofError
from netproof.measurement import case as cases
from netproof.measurement.case import Case

# The excluded modules use what is found here, or are only for files of others.
_MODULES = [
    importlib.import_module(f"netproof.benchmarks.{one.name}")
    for one in pkgutil.iter_modules(room)
    if one.name not in ("logs", "outputs", "registry")
]
BENCHMARKS: tuple[Benchmark, ...] = tuple(
    sorted(
        (module.BENCHMARK for module in _MODULES if hasattr(module, "BENCHMARK")),
        key=lambda one: one.number,
    )
)
"""Every benchmark, in the order of tables."""

STARTED = tuple(one for one in BENCHMARKS if one.features)
"""Benchmarks that checks start; the output of the others is only read."""

MPI_BENCHMARKS = tuple(one for one in STARTED if isinstance(one, MpiBenchmark))
"""Benchmarks whose functions run on a job's ranks."""

OF_PAIRS = imb.BENCHMARK
"""The benchmark that measures many pairs of nodes at once."""

FEATURES = {feature: means for one in BENCHMARKS for feature, means in one.features.items()}
"""Features that an environment can have; each is listed there, or absent with a reason."""

PROBES = {program: feature for one in STARTED for program, feature in one.probes.items()}
"""Programs that a node is searched for, each with the feature of environments that have it."""

PROGRAMS = tuple(program for one in STARTED for program in one.programs())
"""Every program whose hash is stored."""

_BY_NAME = {one.name: one for one in BENCHMARKS}


def named(name: str) -> Benchmark:
    """Return the benchmark of that name; NetproofError for an unknown name."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise NetproofError(f"{name!r} is no benchmark; those are {', '.join(_BY_NAME)}") from None


def mpi(name: str) -> MpiBenchmark:
    """Return the benchmark of that name; NetproofError unless it runs on a job's ranks."""
    found = named(name)
    if not isinstance(found, MpiBenchmark):
        raise NetproofError(f"{found.label} runs by protocol, and not on the ranks of a job")
    return found


def of(case: Case) -> Benchmark:
    """Return the benchmark of a case."""
    return named(case.benchmark)


def function_of(case: Case) -> Function:
    """Return the function of a case; NetproofError where its benchmark has none of that name."""
    return of(case).function(case.function)


def figures(suffix: str) -> str:
    """Return the beginnings of rows in launches' files with this suffix, for ``grep -E``."""
    return "|".join(one.figures for one in STARTED if one.suffix == suffix)


def check_name(benchmark: str, function: str) -> str:
    """Return the name of the class in ``checks/`` that judges a function, also in references.

    ``ImbReduceScatter`` for IMB's Reduce_scatter, ``NetpipeTcp`` for NetPIPE's tcp.
    """
    return benchmark.capitalize() + "".join(
        part[:1].upper() + part[1:] for part in function.split("_")
    )


cases.WHAT.update({one.name: one.what for one in BENCHMARKS})
