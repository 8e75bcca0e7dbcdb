"""Names of nodes are abbreviated as Slurm does."""

from __future__ import annotations

import pytest
from reframe.utility import nodelist_abbrev

from netproof.errors import NetproofError
from netproof.site.slurm import fold, unfold


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([], ""),
        (["node1"], "node1"),
        (["node3", "node1", "node2", "node2", "node10"], "node[1-3,10]"),
        (["n08", "n09", "n10", "n011"], "n[08-10,011]"),
        (["rack1-n1", "rack1-n2", "rack2-n1"], "rack1-n[1-2],rack2-n1"),
        (["login", "node2", "node1"], "node[1-2],login"),
    ],
)
def test_names_that_differ_in_their_number_are_folded(names, folded):
    assert fold(names) == folded


@pytest.mark.parametrize(
    "names",
    [["vm"], ["cn003", "cn004", "cn012"], ["r2n01.x", "r2n02.x"], ["a-1-b", "a-2-b", "login"]],
)
def test_what_reframe_folds_is_unfolded(names):
    assert list(unfold(nodelist_abbrev(names))) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("login", ["login"]),
        ("n[1-3,7],login", ["n1", "n2", "n3", "n7", "login"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("n[8-10]", ["n8", "n9", "n10"]),
        ("r[1-2]n[01-02]", ["r1n01", "r1n02", "r2n01", "r2n02"]),
    ],
)
def test_a_list_of_hosts_is_expanded_as_scontrol_show_hostnames_does(text, names):
    assert list(unfold(text)) == names


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            ",",
            "a,",
            "a,,b",
            "a b",
            "n[1-",
            "n[]",
            "n[2-1]",
            "n[1-2-3]",
            "n[x]",
            "n]",
            "(null)",
        ),
        *("n[1-1000000]", "n[1-999][1-999]", "n[1-60000],m[1-60000]"),
    ],
)
def test_what_is_no_list_of_hosts_is_refused(text):
    with pytest.raises(NetproofError, match="is no list of Slurm's hosts"):
        unfold(text)
