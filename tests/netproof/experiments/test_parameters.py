"""Settings that can be changed, and their variables and arguments for each library."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from netproof.errors import NetproofError
from netproof.experiments import parameters
from netproof.experiments.parameters import FUNCTIONS, MPI, TCP


@pytest.mark.parametrize(
    ("library", "variable"),
    [
        ("Open MPI 4.1.4", "OMPI_MCA_btl_tcp_eager_limit"),
        ("MPICH 5.0.2", "MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD"),
        ("MVAPICH2 2.3.7", "MV2_IBA_EAGER_THRESHOLD"),
    ],
)
def test_each_library_has_its_own_variable_and_netpipe_over_tcp_an_argument(library, variable):
    setting = parameters.found("eager-limit", ()).assignment(MPI, library).of("4096")
    assert (setting.arguments, setting.variables) == ((), {variable: "4096"})
    for path in ("inter-node", "intra-node"):
        buffer = parameters.found("socket-buffer", ()).assignment(TCP, library, path).of("65536")
        assert (buffer.arguments, buffer.variables) == (("-b", "65536"), {})


def test_any_variable_is_passed_as_it_is_to_any_library_on_any_partition():
    mtu = parameters.found("mtu", ())
    assert mtu.values_on(()) == ("1500", "4500", "9000")
    assert mtu.assignment(TCP, "any") == parameters.Assignment()
    turned = parameters.found("UCX_TLS", ["rc+x"])
    for path in ("inter-node", "intra-node"):
        assignment = turned.assignment(MPI, "whatever 1.0", path)
        assert assignment.of("rc+x").variables == {"UCX_TLS": "rc+x"}
    with pytest.raises(NetproofError, match="TCP has no UCX_TLS"):
        turned.assignment(TCP, "whatever 1.0")


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("socket-bufer", (), "eager-limit, rails, mtu, coalescing, and any"),
        ("A=B", ("1",), "is no parameter"),
        ("UCX_RNDV_THRESH", (), "has no values of its own"),
    ],
)
def test_what_is_no_parameter_or_has_no_value_is_refused(name, values, said):
    with pytest.raises(NetproofError, match=said):
        parameters.found(name, values)


def test_rails_are_tried_each_alone_and_all_together_as_each_library_lists_them():
    turned = parameters.found("rails", ())
    assert turned.values_on(("eth1", "eth2")) == ("eth1", "eth2", "eth1+eth2")
    setting = turned.assignment(MPI, "Open MPI 5.0.11")
    assert setting.of("eth1").variables == {"OMPI_MCA_btl_tcp_if_include": "eth1"}
    assert setting.of("eth1+eth2").variables == {"OMPI_MCA_btl_tcp_if_include": "eth1,eth2"}
    setting = turned.assignment(MPI, "MVAPICH2 2.3.7")
    assert setting.of("mlx5_0+mlx5_1").variables == {"MV2_IBA_HCA": "mlx5_0:mlx5_1"}
    with pytest.raises(NetproofError, match="rails: the partition names no two rails"):
        turned.values_on(("eth1",))
    with pytest.raises(NetproofError, match="setting the rails is not known"):
        turned.assignment(MPI, "MPICH 5.0.2")


def test_some_variables_are_eager_limits_and_sizes_and_others_are_not():
    several = map(parameters.of, ("UCX_RNDV_THRESH", "UCX_TLS", "socket-buffer", "eager-limit"))
    found = [(one.eager_limit, one.in_bytes) for one in several]
    assert found == [(True, True), (False, False), (False, True), (True, True)]


@pytest.mark.parametrize(
    ("name", "protocol", "library", "path", "said"),
    [
        ("eager-limit", MPI, "Intel MPI 2021", "inter-node", "limit is not known for Intel MPI"),
        ("eager-limit", TCP, "Open MPI", "inter-node", "TCP has no eager limit"),
        *(
            (name, protocol, "Open MPI 4", "intra-node", "inside a node it changes nothing")
            for name, protocol in (("eager-limit", MPI), ("socket-buffer", MPI), ("mtu", TCP))
        ),
    ],
)
def test_what_cannot_be_set_is_refused(name, protocol, library, path, said):
    with pytest.raises(NetproofError, match=said):
        parameters.found(name, ()).assignment(protocol, library, path)


@pytest.mark.parametrize(
    ("values", "said"),
    [((), "takes a value"), (("1 2",), "no value"), (("",), "no value"), (("1", "1"), "twice")],
)
def test_values_are_words_and_each_is_there_once(values, said):
    with pytest.raises(NetproofError, match=said):
        parameters.insist_on_values(values)


# Which algorithms are tried: those that the libraries themselves say they have.

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
    lasts = dict(re.findall(r"I_MPI_ADJUST_(\w+).*?range: 0-(\d+)", text, re.DOTALL))
    assert lasts.keys() == {function.upper() for function in FUNCTIONS}
    for function in FUNCTIONS:
        numbers = [*map(int, parameters.algorithms("Intel MPI 2021.18.1", function))]
        assert numbers == [*range(1, int(lasts[function.upper()]) + 1)]


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
        ("MVAPICH2 2.3.7", {"MV2_REDUCE_SCATTER_TUNING": "3"}),
        ("MVAPICH 4.0", {"MPIR_CVAR_REDUCE_SCATTER_INTRA_ALGORITHM": "3"}),
        ("Intel MPI 2021.18.1", {"I_MPI_ADJUST_REDUCE_SCATTER": "3"}),
    ],
)
def test_each_library_chooses_an_algorithm_by_its_own_variables(library, variables):
    assert parameters.library_of(library).setting("Reduce_scatter").of("3").variables == variables


def test_values_may_be_names_and_what_is_not_known_is_left_to_the_library():
    names = parameters.algorithms("Open MPI 5.0.11", "Allreduce", ("ring", "3", "17"))
    assert names == {"4": "ring", "3": "recursive_doubling", "17": ""}
    with pytest.raises(NetproofError, match="'4' is twice among the values"):
        parameters.algorithms("Open MPI 5.0.11", "Allreduce", ("ring", "4"))
    for library, function, said in (
        ("MVAPICH2 2.3.7", "Barrier", "it does of Allreduce, Alltoall, Allgather"),
        ("MPICH 5.0.2", "Scan", "those are Allreduce, Alltoall"),
        ("LAM 7.1", "Bcast", "only for Open MPI, MPICH, Intel MPI, MVAPICH2"),
    ):
        with pytest.raises(NetproofError, match=said):
            parameters.algorithms(library, function)
