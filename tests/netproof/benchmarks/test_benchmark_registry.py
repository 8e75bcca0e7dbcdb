"""A benchmark is what one module of the room says: nothing else in the house knows its name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from netproof.benchmarks import outputs, registry
from netproof.errors import NetproofError, ParseError
from netproof.measurement.case import Case

ROOT = Path(__file__).resolve().parents[3]


def test_every_module_that_declares_a_benchmark_is_found_in_order():
    assert [one.name for one in registry.BENCHMARKS][:2] == ["netpipe", "imb"]
    numbers = [one.number for one in registry.BENCHMARKS]
    assert numbers == sorted(set(numbers))


def test_an_unknown_benchmark_is_an_error_that_names_the_known_ones():
    for asked in (
        lambda: registry.named("hpl"),
        lambda: registry.of(Case("s", "p", "e", "hpl", "x", 2, 1)),
        lambda: str(Case("s", "p", "e", "hpl", "x", 2, 1)),
    ):
        with pytest.raises(NetproofError, match="'hpl' is no benchmark; those are netpipe, imb"):
            asked()


def test_an_unknown_function_is_an_error_that_names_the_known_ones():
    with pytest.raises(NetproofError, match="IMB has no function 'Sort'; it has PingPong, "):
        registry.function_of(Case("s", "p", "e", "imb", "Sort", 2, 1))


def test_a_benchmark_by_protocol_runs_on_no_job_of_many_ranks():
    with pytest.raises(NetproofError, match="NetPIPE runs by protocol"):
        registry.mpi("netpipe")


def test_every_function_has_a_program_that_measures_it():
    for benchmark in registry.BENCHMARKS:
        for function in benchmark.functions:
            started = benchmark in registry.STARTED
            assert (benchmark.program(function.name) in registry.PROGRAMS) is started
            assert not (function.single and not function.rated)


def test_labels_are_as_sessions_have_them():
    imb = Case("s", "p", "e", "imb", "Alltoall", 16, 2)
    tcp = Case("s", "p", "e", "netpipe", "tcp", 2, 1, "inter-node", "oneway")
    assert imb.what() == "IMB Alltoall 16 ranks"
    assert tcp.what() == "NetPIPE tcp inter-node oneway"
    assert registry.of(imb).words(imb) == "IMB Alltoall"
    assert registry.of(tcp).words(tcp) == "NetPIPE TCP inter-node oneway"


def test_what_no_benchmark_prints_is_refused_with_the_known_ones():
    with pytest.raises(ParseError, match=r"expected the output of NetPIPE, of IMB-MPI1"):
        outputs.read("hello\n", "x.txt")
    with pytest.raises(ParseError, match=r"x.txt: is empty: the benchmark printed nothing"):
        outputs.read("\n", "x.txt")


IMPORT_ALL = """
import importlib, pkgutil, netproof
for module in pkgutil.walk_packages(netproof.__path__, "netproof."):
    # What ReFrame loads takes a site, and a site names what it has of each benchmark.
    if not module.name.startswith("netproof.run."):
        importlib.import_module(module.name)
from netproof.benchmarks import registry
print(netproof.__file__, *(one.name for one in registry.BENCHMARKS))
"""


@pytest.mark.slow
def test_without_its_module_the_house_lacks_a_benchmark_and_nothing_else(tmp_path):
    shutil.copytree(ROOT / "netproof", tmp_path / "netproof")
    (tmp_path / "netproof" / "benchmarks" / "osu.py").unlink()
    for name in ("checks", "site-config", "reference-values"):
        (tmp_path / name).symlink_to(ROOT / name)
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    place, *names = ran.stdout.split()
    assert Path(place).is_relative_to(tmp_path)
    assert names == [one.name for one in registry.BENCHMARKS if one.name != "osu"]
