"""References are found as ReFrame finds them."""

from __future__ import annotations

import time

import pytest
import yaml  # what ReFrame reads references with
from made_references import HEAD, PLACES, SHIPPED, looked_up, pingpong

from netproof.errors import NetproofError
from netproof.verdict.references import NotThere, ReferenceFile


@pytest.mark.parametrize("system", SHIPPED)
class TestLookedUp:
    def test_entries_are_found_where_reframe_finds_them(self, system):
        references = ReferenceFile(SHIPPED[system])
        read = yaml.safe_load(references.text)
        for place in PLACES[system]:
            assert references.find(*place) == looked_up(read, *place)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("C: {$index: [ranks], 2: {}}\nC:\n  2: {}\n", r"yaml:2: duplicate key 'C'"),
        (
            "C:\n  $index: [ranks]\n  2:\n    latency_us: [1, null, 0.1, us]\n"
            "    latency_us: [1, null, 9, us]\n",
            r"yaml:5: duplicate key 'latency_us'; remove one",
        ),
        ("C: {$index: [ranks], 2: {latency_us: [.nan, null, 0.1, us]}}\n", "yaml:1: '.nan' is no"),
        ("C:\n  2: {latency_us: [1, null, .inf, us]}\n", "yaml:2: '.inf' is no number"),
        ("C: " + "[" * 5000, "yaml:1: lists and mappings are nested deeper than 40"),
        ("C: &a [1, *a]\n", r"yaml:1: \*a is within what it names"),
        (
            "C:\n  $index: [$environ]\n  '(([a-zA-Z0-9 ]+)+)+!': {}\n",
            r"yaml:3: .* could take for ever: it repeats what repeats",
        ),
    ],
)
def test_what_loosens_a_bound_unseen_or_never_ends_is_refused_with_its_line(file, text, said):
    with pytest.raises(NetproofError, match=said):
        file(text)


def test_a_key_alongside_a_merge_that_has_it_too_is_no_second_one(file):
    found = file(
        HEAD + "C:\n  $index: [ranks]\n  2:\n    <<: *all\n    latency_us: [2, null, 1, us]\n"
    )
    assert found.find("C", pingpong())["latency_us"] == [2, None, 1, "us"]


@pytest.mark.parametrize("joined", [", ", "\n  <<: "])
def test_bombs_of_aliases_and_merges_are_refused_at_once(file, joined):
    lines = ["a0: &a0 {x: 1}"]
    for number in range(1, 12):
        several = ", ".join([f"*a{number - 1}"] * 10)
        lines.append(
            f"a{number}: &a{number} [{several}]"
            if joined == ", "
            else f"a{number}: &a{number}\n  <<: [{several}]\n  k{number}: 1"
        )
    began = time.monotonic()
    with pytest.raises(NetproofError, match="more than 2000000 values, those of aliases counted"):
        file("\n".join(lines) + "\n")
    assert time.monotonic() - began < 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("C: [", r"testbed\.yaml:2: no YAML: "),
        ("C:\n  $index: [ranks]\n  2: *nothing\n", r"testbed\.yaml:3: no YAML: found undefined"),
        ("C: 1\nC\n", r"testbed\.yaml:\d: no YAML: "),
        ("", r"testbed\.yaml:1: found None, expected the checks' names"),
        ("[1]", r"testbed\.yaml:1: found \[1\], expected the checks' names"),
    ],
)
def test_what_is_no_file_of_references_is_refused_with_its_line(file, text, said):
    with pytest.raises(NetproofError, match=said):
        file(text)


@pytest.mark.parametrize("key", ["&a", "~", "7"])
def test_a_key_that_is_no_name_of_a_check_is_refused(file, key):
    with pytest.raises(NetproofError, match=r"testbed\.yaml.*expected a check's name"):
        file(f"C:\n  x: 1\n{key} : {{}}\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("D: {$index: [ranks], 2: {}}\n", "has no C$"),
        ("C: {$index: [ranks], 4: {}}\n", "has no C, 2$"),
        ("C: {$index: [$environ], open.*: {}}\n", "has no C, mpich$"),
        ("x: 1\nC: {2: {}}\n", r"yaml:2: \$index: found None, expected a list"),
        ("C: {$index: [$processor.arch], a: {}}\n", r"\$index: found \['\$processor.arch'\]"),
        ("C: {$index: [$environ], '(': {}}\n", "a key next to 'mpich' is no expression: missing"),
        ("C: {$index: [ranks], 2: 5}\n", "C, 2: found 5, expected a mapping"),
        (
            "C:\n  $index: [ranks]\n  2:\n    latency_us: [fast]\n",
            r"yaml:4: C, 2, latency_us: found \['fast'\], expected \[value, lower, upper, unit\]",
        ),
        (
            "C:\n  $index: [ranks]\n  2:\n    latency_us: [$xfail, 5, [1, 0, 0, us]]\n",
            r"yaml:4: C, 2, latency_us: found",
        ),
    ],
)
def test_what_is_missing_or_no_reference_is_named(file, text, said):
    with pytest.raises(NetproofError, match=said):
        file(text).find("C", pingpong())


def test_a_case_that_is_missing_is_told_from_a_broken_file(file):
    with pytest.raises(NotThere):
        file("C: {$index: [ranks], 4: {}}\n").find("C", pingpong())


def test_a_missing_file_names_what_to_copy(tmp_path):
    with pytest.raises(NetproofError, match=r"mine\.yaml: is not there; copy .*example\.yaml"):
        ReferenceFile(tmp_path / "mine.yaml")
