"""The reference files that ship name every check, every case finds its bounds, and all can hold."""

from __future__ import annotations

import ast
import math
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # what ReFrame reads references with
from reframe.core.pipeline import RegressionTestDict
from reframe.utility.sanity import reference_bounds

from netproof.benchmarks import registry
from netproof.benchmarks.registry import check_name
from netproof.measurement import twin
from netproof.measurement.case import Case
from netproof.measurement.landmarks import LANDMARKS
from netproof.run.mixins import Referenced
from netproof.site import site
from netproof.site.matrix import matrix

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "reference-values").glob("*.yaml"))
CONFIGURATION = site.gather(ROOT / "site-config")
KNOWN = {*LANDMARKS, *twin.VARIABLES}


def leaves() -> dict[str, str]:
    """Function or protocol to the name of the class in checks/ that measures it."""
    found = {}
    for path in (ROOT / "checks").rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and [
                ast.unparse(decorator) for decorator in node.decorator_list
            ] == ["rfm.simple_test"]:
                named = [
                    line.value.value
                    for line in node.body
                    if isinstance(line, ast.Assign)
                    and ast.unparse(line.targets[0]) in ("function", "protocol")
                ]
                assert len(named) <= 1, f"{path}: {node.name} names what it measures"
                for name in named:
                    found[name] = node.name
    return found


LEAVES = leaves()


def entries(path: Path) -> Iterator[tuple[str, str, list]]:
    """Where in the file, variable and four elements of each reference, $xfail unwrapped."""
    for test, levels in yaml.safe_load(path.read_text()).items():
        if test.startswith("."):
            continue
        pending = [(test, levels)]
        for _ in levels["$index"]:
            pending = [
                (f"{place}, {key}", value)
                for place, level in pending
                for key, value in level.items()
                if key != "$index"
            ]
        for place, variables in pending:
            for name, entry in variables.items():
                if entry[0] == "$xfail":
                    assert len(entry) == 3, f"{place}: {name}: [$xfail, reason, reference]"
                    assert isinstance(entry[1], str), f"{place}: {name}: says why it fails"
                    entry = entry[2]
                yield place, name, entry


def found_by(case: Case, references: dict[str, Any]) -> dict[str, Any]:
    """Look the check of a case up as ReFrame does; KeyError where it has nothing."""
    check_class = types.new_class("Check", (Referenced,))
    check = object.__new__(check_class)
    check.current_partition = types.SimpleNamespace(fullname=f"{case.system}:{case.partition}")
    check.current_environ = types.SimpleNamespace(name=case.environment)
    check.ranks, check.path, check.direction = case.ranks, case.path, case.direction
    return RegressionTestDict(references[LEAVES[case.function]], protocol="ref")[check]


def test_every_system_has_a_reference_file_and_no_file_is_of_no_system():
    systems = {system["name"] for system in CONFIGURATION["systems"]}
    assert {path.stem for path in FILES} == systems


def test_every_function_and_protocol_has_one_check():
    functions = {one.name: each.name for each in registry.STARTED for one in each.functions}
    assert set(LEAVES) == set(functions)
    assert len(set(LEAVES.values())) == len(LEAVES)
    assert {function: check_name(functions[function], function) for function in LEAVES} == LEAVES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
class TestReferenceFile:
    def test_it_names_every_check_and_nothing_else(self, path):
        named = {name for name in yaml.safe_load(path.read_text()) if not name.startswith(".")}
        assert named == set(LEAVES.values())

    def test_each_entry_is_of_a_landmark_or_size_in_its_unit_with_bounds_that_can_be_met(
        self, path
    ):
        for place, name, (value, lower, upper, unit) in entries(path):
            where = f"{place}: {name}: {value}, {lower}, {upper}, {unit}"
            assert name in KNOWN or re.fullmatch(r"time_us_\d+", name), where
            of_twin = "%" if name in twin.VARIABLES else "us"
            assert unit == (LANDMARKS[name].unit if name in LANDMARKS else of_twin), where
            assert 0 <= value < math.inf, where
            # ReFrame refuses a lower threshold below -1; with a value of 0 a bound would not be
            # relative any more.
            assert lower is None or -1 <= lower <= 0, where
            assert upper is None or upper >= 0, where
            assert value > 0 or (lower, upper) == (None, None), where
            reference_bounds(value, lower, upper)

    def test_no_netpipe_bound_lets_a_link_carry_more_than_its_rate(self, path):
        references = yaml.safe_load(path.read_text())
        for case in matrix(CONFIGURATION, path.stem).cases:
            if case.benchmark == "netpipe" and case.path == "inter-node":
                found = found_by(case, references)
                value, lower, upper, _ = found.get("paired_share", found["line_rate_share"])
                assert upper is not None, case
                # With both ends bounded by what a healthy link carries at that moment, the line
                # rate alone says what no link carries.
                assert value * (1 + upper) <= 102 or lower is not None, case


def test_a_rank_count_that_a_file_does_not_have_is_an_error_and_no_pass():
    references = yaml.safe_load((ROOT / "reference-values" / "testbed.yaml").read_text())
    with pytest.raises(KeyError):
        found_by(Case("testbed", "gige", "mpich", "imb", "Alltoall", 3, 1), references)
