"""Which algorithms are tried: those that the libraries themselves say they have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from netproof.errors import NetproofError
from netproof.experiments import parameters
from netproof.experiments.parameters import FUNCTIONS

SAID = Path(__file__).resolve().parents[2] / "data" / "algorithms"


@pytest.mark.parametrize("version", ["4.1.4", "5.0.11"])
def test_numbers_of_open_mpi_are_those_that_ompi_info_prints(version):
    lines = (SAID / f"openmpi-{version}.txt").read_text().splitlines()
    printed = {}
    for variable, values in zip(lines[::2], lines[1::2], strict=True):
        name = re.search(r"coll_tuned_(\w+)_algorithm", variable)[1]
        pairs = re.findall(r'(\d+)[:|]"?([\w-]+)', values)
        printed[name] = {number: named for number, named in pairs if number != "0"}
    assert len(printed) == len(FUNCTIONS)
    for function in FUNCTIONS:
        assert parameters.algorithms(f"Open MPI {version}", function) == printed[function.lower()]


def test_names_of_mpich_are_those_that_mpivars_prints():
    text = (SAID / "mpich-5.0.2.txt").read_text()
    printed = {}
    for block in re.split(r"^\tMPIR_CVAR_", text, flags=re.MULTILINE)[1:]:
        name = block.split("_INTRA_ALGORITHM")[0]
        found = re.findall(r"^(\w+) +- ", block, re.MULTILINE)
        printed[name] = [one for one in found if one not in ("auto", "ccl")]
    assert len(printed) == len(FUNCTIONS)
    for function in FUNCTIONS:
        assert list(parameters.algorithms("MPICH 5.0.2", function)) == printed[function.upper()]


def test_presets_of_intel_mpi_are_as_many_as_impi_info_says():
    text = (SAID / "intelmpi-2021.18.1.txt").read_text()
    printed = re.findall(r"I_MPI_ADJUST_(\w+).*?range: 0-(\d+)", text, re.DOTALL)
    assert {name for name, _ in printed} == {function.upper() for function in FUNCTIONS}
    lasts = dict(printed)
    for function in FUNCTIONS:
        numbers = list(parameters.algorithms("Intel MPI 2021.18.1", function))
        assert numbers == [str(one) for one in range(1, int(lasts[function.upper()]) + 1)]


@pytest.mark.parametrize(
    ("library", "variables"),
    [
        (
            "Open MPI 5.0.11",
            {
                "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
                "OMPI_MCA_coll_tuned_reduce_scatter_algorithm": "3",
            },
        ),
        ("MPICH 5.0.2", {"MPIR_CVAR_REDUCE_SCATTER_INTRA_ALGORITHM": "3"}),
        ("MVAPICH 4.0", {"MPIR_CVAR_REDUCE_SCATTER_INTRA_ALGORITHM": "3"}),
        ("Intel MPI 2021.18.1", {"I_MPI_ADJUST_REDUCE_SCATTER": "3"}),
    ],
)
def test_each_library_is_told_by_its_own_variables(library, variables):
    assert parameters.library_of(library).setting("Reduce_scatter").of("3").variables == variables


def test_mvapich2_is_told_by_its_tables_and_only_of_what_is_public():
    assignment = parameters.library_of("MVAPICH2 2.3.7").setting("Alltoall")
    assert assignment.of("3").variables == {"MV2_ALLTOALL_TUNING": "3"}
    assert list(parameters.algorithms("MVAPICH2 2.3.7", "Alltoall")) == ["0", "1", "2", "3"]
    with pytest.raises(NetproofError, match="it does of Allreduce, Alltoall, Allgather"):
        parameters.algorithms("MVAPICH2 2.3.7", "Barrier")


def test_values_may_be_names_and_what_is_not_known_is_left_to_the_library():
    names = parameters.algorithms("Open MPI 5.0.11", "Allreduce", ("ring", "3", "17"))
    assert names == {"4": "ring", "3": "recursive_doubling", "17": ""}
    with pytest.raises(NetproofError, match="'4' is twice among the values"):
        parameters.algorithms("Open MPI 5.0.11", "Allreduce", ("ring", "4"))


def test_other_functions_and_libraries_are_refused_with_what_there_is():
    with pytest.raises(NetproofError, match="those are Allreduce, Alltoall"):
        parameters.algorithms("MPICH 5.0.2", "Scan")
    with pytest.raises(NetproofError, match="only for Open MPI, MPICH, Intel MPI, MVAPICH2"):
        parameters.algorithms("LAM 7.1", "Bcast")
