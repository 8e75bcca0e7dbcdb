"""What rounds of pairs cost grows with the nodes, and not with their square."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from ci.evaluation import scale_nodes

FEW, MANY = 24, 240


class LinesRun:
    """A clock that counts the lines of Python that were run."""

    def __init__(self) -> None:
        self.count = 0

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.count += event == "line"
        return self.trace

    def measured(self, folder: Path, nodes: int) -> dict[str, float]:
        sys.settrace(self.trace)
        try:
            return scale_nodes.measured(folder, nodes, rounds=3, clock=lambda: self.count)
        finally:
            sys.settrace(None)


@pytest.mark.slow
def test_every_step_grows_with_the_nodes_and_not_with_their_square(tmp_path):
    few, many = (LinesRun().measured(tmp_path / str(count), count) for count in (FEW, MANY))
    grown = {
        step: scale_nodes.exponent(FEW, MANY, few[step], lines) for step, lines in many.items()
    }
    assert {step: found for step, found in grown.items() if not found <= 1.1} == {}


@pytest.mark.slow
def test_it_prints_the_seconds_of_each_step_and_how_they_grow(capsys):
    scale_nodes.main(["--nodes", "8", "16", "--rounds", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("totals ")
    assert len(lines[-1].split()) == 4
