"""Message sizes that a site asks for beyond those of each benchmark."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netproof.benchmarks import netpipe
from netproof.benchmarks.imb import BENCHMARK as IMB
from netproof.benchmarks.interface import ListedSizes, MessageSizes
from netproof.benchmarks.netpipe import BENCHMARK as NETPIPE
from netproof.benchmarks.netpipe import PerturbedSizes
from netproof.benchmarks.osu import BENCHMARK as OSU
from netproof.errors import NetproofError
from netproof.measurement.case import Case

TCP = Case("s", "p", "e", "netpipe", "tcp", 2, 1, "inter-node", "oneway")


def test_without_a_word_of_the_site_sizes_double():
    assert IMB.function("Bcast").sizes(2, 16) == (1, 2, 4, 8, 16)
    assert IMB.function("Bcast").sizes(2, 16, IMB.sizes()) == (1, 2, 4, 8, 16)
    assert NETPIPE.asked(TCP, 64) == netpipe.sizes(1, 64, 0)


def test_sizes_between_powers_of_two_are_evenly_spaced_in_their_logarithms():
    sizes = ListedSizes(per_octave=4).sizes(1, 4096)
    assert sizes[-5:] == (2048, 2435, 2896, 3444, 4096)
    assert sizes[:5] == (1, 2, 3, 4, 5)


def test_further_sizes_are_whole_elements_and_none_is_twice():
    asked = ListedSizes(also=[3000, 3001, 4096])
    assert IMB.function("PingPong").sizes(2, 4096, asked)[-4:] == (2048, 3000, 3001, 4096)
    assert IMB.function("Allreduce").sizes(2, 4096, asked)[-3:] == (2048, 3000, 4096)
    assert IMB.function("Barrier").sizes(2, 4096, asked) == (0,)


def test_of_what_is_dealt_out_every_rank_has_a_part():
    for function in (IMB.function("Reduce_scatter"), OSU.function("reduce_scatter")):
        assert function.sizes(2, 64) == (8, 16, 32, 64)
        assert function.sizes(6, 64) == (32, 64)
        assert function.sizes(16, 64) == (64,)
        # On so many ranks there is no such size; something is measured all the same.
        assert function.sizes(32, 64) == (4, 8, 16, 32, 64)
        assert function.least_for(6) == 24
    assert IMB.function("Reduce_scatter_block").sizes(6, 8) == (4, 8)
    assert IMB.function("Allreduce").least_for(6) == IMB.function("Barrier").least_for(6) == 0


@given(
    st.integers(1, 16),
    st.lists(st.integers(1, 2**22)),
    st.sampled_from([1, 4]),
    st.integers(10, 22),
)
def test_the_grid_is_always_there_and_sizes_increase(per_octave, also, least, exponent):
    most = 2**exponent
    sizes = ListedSizes(per_octave=per_octave, also=also).sizes(least, most)
    assert set(ListedSizes().sizes(least, most)) <= set(sizes)
    assert list(sizes) == sorted(set(sizes))
    assert all(least <= size <= most and size % least == 0 for size in sizes)


@pytest.mark.parametrize("perturbation", [1, 3])
def test_netpipe_is_asked_for_what_lies_around_its_sizes(perturbation):
    asked = NETPIPE.asked(TCP, 65536, PerturbedSizes(perturbation=perturbation))
    assert asked == netpipe.sizes(1, 65536, perturbation)
    assert {3072 - perturbation, 3072, 3072 + perturbation} <= set(asked)


@pytest.mark.parametrize(
    ("kind", "values", "remedy"),
    [
        (ListedSizes, {"per_octave": 0}, "per_octave: "),
        (ListedSizes, {"per_octave": 17}, "per_octave: "),
        (ListedSizes, {"also": [0]}, "also.0: "),
        (ListedSizes, {"also": 3000}, "also: "),
        (ListedSizes, {"per_octaves": 2}, "per_octave"),
        (PerturbedSizes, {"perturbation": 4}, "would not increase from 1 byte on"),
        (PerturbedSizes, {"perturbation": -1}, "perturbation: "),
        (MessageSizes, {"also": [3000]}, "also: "),
    ],
)
def test_what_cannot_be_measured_is_refused_by_its_key(kind, values, remedy):
    with pytest.raises(NetproofError) as refused:
        kind.of_site(values)
    assert remedy in str(refused.value)
