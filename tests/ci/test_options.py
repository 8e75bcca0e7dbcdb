"""Command lines of ci/ are tables, which refuse what their commands could not use."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
import yaml

from ci import options
from ci.evaluation import __main__ as evaluate
from ci.evaluation import plants

ROOT = Path(__file__).resolve().parents[2]
TABLE = """
--share: {of: number, least: 0.01, default: 0.05, help: how much}
--counts: {of: whole numbers}
--file: {of: path}
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--share", "0"], "argument --share: '0' is no number of 0.01 or more"),
        (["--share", "inf"], "is no number of 0.01 or more"),
        (["--counts", "1,x"], "argument --counts: '1,x' is no whole numbers"),
    ],
)
def test_a_value_has_its_kind_or_is_refused_by_what_would_be_right(words, said, capsys):
    parser = argparse.ArgumentParser("some")
    options.add(parser, yaml.safe_load(TABLE), {"--file": Path("b")})
    found = parser.parse_args(["--counts", "1,20"])
    assert (found.share, found.counts, found.file) == (0.05, [1, 20], Path("b"))
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("name", ["testbed", "spack_envs"])
def test_each_verb_has_a_line_of_help(name, capsys):
    place = ROOT / "ci" / name / "verbs.yaml"
    parser = options.verbs(place, {})
    for verb, given in yaml.safe_load(place.read_text())["verbs"].items():
        with pytest.raises(SystemExit):
            parser.parse_args([verb, "--help"])
        assert given["about"][:40] in capsys.readouterr().out


@pytest.mark.parametrize("name", plants.REPLAYS)
def test_each_replay_shows_its_options(name, capsys):
    with pytest.raises(SystemExit):
        evaluate.main([name, "--help"])
    shown = capsys.readouterr().out
    options_there = [one for one in plants.REPLAYS[name]["options"] if one.startswith("--")]
    assert all(one in shown for one in options_there)


def test_an_unknown_evaluation_is_refused_by_those_that_there_are(capsys):
    assert evaluate.main(["false-greens"]) == 2
    assert "false-reds, missed-faults" in capsys.readouterr().err
