"""ReFrame's log leaves out deprecated attributes of a test."""

from __future__ import annotations

import reframe as rfm
from reframe.core.builtins import variable

from netproof.run.mixins import OnPartition


class Plain(rfm.RunOnlyRegressionTest):
    mine = variable(int, value=1)
    own = variable(int, value=1, loggable=False)


class Ours(rfm.RunOnlyRegressionTest, OnPartition):
    mine = variable(int, value=1)
    own = variable(int, value=1, loggable=False)


def test_it_leaves_out_what_reframe_deprecated_and_nothing_else():
    every, ours = Plain.loggable_attrs(), Ours.loggable_attrs()
    left = [one for one in every if one not in ours]
    assert left == [("variables", None)]
    assert Plain.var_space["variables"].is_deprecated()
    assert ours == [one for one in every if one not in left]
    assert ("mine", None) in ours
    assert ("own", None) not in ours
