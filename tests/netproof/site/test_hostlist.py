"""Names of nodes are abbreviated as Slurm does."""

from __future__ import annotations

import pytest

from netproof.site.hostlist import fold


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([], ""),
        (["node1"], "node1"),
        (["node3", "node1", "node2", "node2", "node10"], "node[1-3,10]"),
        (["n08", "n09", "n10", "n011"], "n[10,08-09,011]"),
        (["rack1-n1", "rack1-n2", "rack2-n1"], "rack1-n[1-2],rack2-n1"),
        (["login", "node2", "node1"], "node[1-2],login"),
    ],
)
def test_names_that_differ_in_their_number_are_folded(names, folded):
    assert fold(names) == folded
