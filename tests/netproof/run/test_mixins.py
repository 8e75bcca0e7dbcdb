"""ReFrame's log leaves out attributes of a test that are empty, fixed or deprecated."""

from __future__ import annotations

import inspect
import re
from types import SimpleNamespace

import pytest
import reframe as rfm
from reframe.core.builtins import variable
from reframe.frontend import printer

from netproof.run import mixins
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
    of_cases = {"direction", "function", "job_ranks", "launches", "path", "protocol", "ranks"}
    assert {"functions", "variants", *of_cases} == NOT_LOGGED - reframes
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


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--restore-session=run-0.json", "--failed"], "leave out --restore-session: netproof's"),
        (["--rest"], "leave out --restore-session: netproof's"),
        (["--ci-generate", "ci.yml"], "leave out --ci-generate: it would make a session of each"),
        (["--repeat=2"], "leave out --repeat: it would run nothing"),
        (["--distribute=all"], "leave out --distribute: it would run nothing"),
        (["-P", "launches=1,2"], "leave out --parameterize: it would run nothing"),
        (["--mode=twice"], "mode twice: leave out --repeat: it would run nothing"),
        (["--mode", "twice"], "mode twice: leave out --repeat: it would run nothing"),
    ],
)
def test_an_option_with_which_a_run_would_not_be_whole_is_refused(monkeypatch, words, reason):
    with_modes(monkeypatch)
    assert mixins.refused([*words, "-r"]).startswith(reason)


@pytest.mark.parametrize(
    "word",
    [
        *("--exec-policy=serial", "--max-retries=2", "--reruns=1", "--performance-report"),
        *("--report-file=run.json", "--failed", "-J--qos=urgent", "--mode=quick", "-p", "mpich"),
        *("--list-stored-sessions", "--performance-compare=now-1d:now/now-1d:now/mean:/"),
    ],
)
def test_other_options_of_reframe_are_taken(monkeypatch, word):
    with_modes(monkeypatch)
    assert mixins.refused(["-c", "checks", word, "-r"]) == ""


def with_modes(monkeypatch) -> None:
    modes = {"twice": ["--repeat 2", "-p mpich"], "quick": ["-S launches=1"]}
    places = {f"modes/@{name}/options": options for name, options in modes.items()}
    monkeypatch.setattr(mixins, "runtime", lambda: SimpleNamespace(site_config=places))
