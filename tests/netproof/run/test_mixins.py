"""ReFrame's log leaves out attributes of a test that are empty, fixed or deprecated."""

from __future__ import annotations

import inspect
import re

import reframe as rfm
from reframe.core.builtins import variable
from reframe.frontend import printer

from netproof.run.mixins import NOT_LOGGED, OnPartition


class Plain(rfm.RunOnlyRegressionTest):
    mine = variable(int, value=1)
    own = variable(int, value=1, loggable=False)


class Ours(rfm.RunOnlyRegressionTest, OnPartition):
    mine = variable(int, value=1)
    own = variable(int, value=1, loggable=False)


def test_it_leaves_out_what_says_nothing_and_what_reframe_deprecated():
    every, ours = Plain.loggable_attrs(), Ours.loggable_attrs()
    left = [one for one in every if one not in ours]
    reframes = {name for name, _ in every} & NOT_LOGGED
    assert {name for name, _ in left} == {"variables", *reframes}
    assert {"functions", "variants"} == NOT_LOGGED - reframes
    assert Plain.var_space["variables"].is_deprecated()
    read = {"display_name", "unique_name", "outputdir", "stagedir", "jobid", "job_nodelist", "name"}
    assert read <= {alias or name for name, alias in ours}
    assert ours == [one for one in every if one not in left]
    assert ("mine", None) in ours
    assert ("own", None) not in ours


def test_reframe_finds_in_its_report_what_its_summary_of_failures_prints():
    source = inspect.getsource(printer.PrettyPrinter.failure_report)
    printed = set(re.findall(r"rec\['(\w+)'\]", source))
    assert {"descr", "maintainers", "fail_reason"} <= printed
    assert not printed & NOT_LOGGED
