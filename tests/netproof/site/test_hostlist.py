"""Names of nodes are abbreviated as Slurm does."""

from __future__ import annotations

import pytest
from reframe.utility import nodelist_abbrev

from netproof.errors import NetproofError
from netproof.site.hostlist import fold, unfold


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
    [[], ["vm"], ["cn003", "cn004", "cn012"], ["r2n01.x", "r2n02.x"], ["a-1-b", "a-2-b", "login"]],
)
def test_what_reframe_folds_is_unfolded(names):
    assert unfold(nodelist_abbrev(names)) == names


@pytest.mark.parametrize("text", ["n[1-", "n[2-1]"])
def test_what_is_no_list_of_nodes_is_quoted(text):
    with pytest.raises(NetproofError, match="is no list of nodes"):
        unfold(text)
