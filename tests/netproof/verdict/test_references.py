"""References are read as ReFrame reads them, and edited without touching anything else."""

from __future__ import annotations

import dataclasses

import pytest
import yaml  # what ReFrame reads references with
from hypothesis import given, settings
from hypothesis import strategies as st
from made_measured import recorded
from made_references import HEAD, PLACES, SHIPPED, looked_up, lookup, pingpong

from netproof.criteria import Finding, Level
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.session.session import CheckResult
from netproof.verdict.judge import concerns
from netproof.verdict.references import ReferenceFile, diff, edited


@pytest.fixture
def file(tmp_path):
    """``file(text)``: a file of references with that text."""

    def of(text: str) -> ReferenceFile:
        path = tmp_path / "testbed.yaml"
        with path.open("w", newline="") as stream:
            stream.write(text)
        return ReferenceFile(path)

    return of


@pytest.mark.parametrize("system", SHIPPED)
class TestLookedUp:
    def test_entries_are_found_where_reframe_finds_them(self, system):
        references = ReferenceFile(SHIPPED[system])
        found = lookup(yaml.safe_load(references.text))
        for place in PLACES[system]:
            assert references.find(*place) == found(*place)


@pytest.mark.parametrize("key", ["&a", "~", "7"])
def test_a_key_that_is_no_name_of_a_check_is_refused(file, key):
    with pytest.raises(NetproofError, match=r"testbed\.yaml.*expected a check's name"):
        file(f"C:\n  x: 1\n{key} : {{}}\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "C:\n  $index: [ranks]\n  2:\n    latency_us: [1, null, 0.1, us]\n"
            "    latency_us: [1, null, 9, us]\n",
            r"yaml:5: duplicate key 'latency_us'; remove one",
        ),
        (
            "C:\n  $index: [$environ]\n  '(([a-zA-Z0-9 ]+)+)+!': {}\n",
            r"yaml:3: .* could take for ever: it repeats what repeats",
        ),
        ("C:\n  $index: [ranks]\n  2: *nothing\n", r"testbed\.yaml:3: is no YAML: found undefined"),
        ("", r"testbed\.yaml:1: found None, expected the checks' names"),
        ("[1]", r"testbed\.yaml:1: found \[1\], expected the checks' names"),
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
def test_what_is_missing_unclear_or_no_reference_is_refused_with_its_line(file, text, said):
    with pytest.raises(NetproofError, match=said):
        file(text).find("C", pingpong())


NEW = {"latency_us": [7.5, -0.1, 0.1, "us"], "time_us_4": [3, None, 1.0, "us"]}


def reframes(text: str, check: str, case: Case) -> dict:
    """Return the result of ReFrame's own lookup for a case in a file of that text."""
    return looked_up(yaml.safe_load(text), check, case)


@pytest.mark.parametrize("system", SHIPPED)
class TestEdited:
    @pytest.mark.slow
    @settings(max_examples=3, deadline=None)
    @given(data=st.data())
    def test_whatever_is_edited_reframe_finds_it_and_all_else_as_before(self, system, data):
        references = ReferenceFile(SHIPPED[system])
        numbers = st.sampled_from(range(len(PLACES[system])))
        chosen = data.draw(st.sets(numbers, min_size=1, max_size=12))
        changes = {PLACES[system][number]: NEW for number in chosen}
        texts = references.text, edited(references, changes)
        before, after = (lookup(yaml.safe_load(text)) for text in texts)
        for place in PLACES[system]:
            assert after(*place) == before(*place) | changes.get(place, {})

    @pytest.mark.slow
    def test_comments_stay_and_what_was_written_can_be_edited_again_in_place(self, system, file):
        references = ReferenceFile(SHIPPED[system])
        once = edited(references, dict.fromkeys(PLACES[system], NEW))
        comments, after = (
            [line.partition("#")[2] for line in one.splitlines() if "#" in line]
            for one in (references.text, once)
        )
        assert [comment for comment in after if comment in comments] == comments
        other = {"latency_us": [8.5, -0.2, 0.2, "us"]}
        twice = edited(file(once), dict.fromkeys(PLACES[system], other))
        changed = [line for line in diff(SHIPPED[system], once, twice) if line[0] in "+-"][2:]
        assert {line[1:].strip() for line in changed} == {
            "latency_us: [7.5, -0.1, 0.1, us]",
            "latency_us: [8.5, -0.2, 0.2, us]",
        }


def test_a_new_name_hides_nothing_of_the_expression_that_it_came_from(file):
    references = file(
        HEAD + "C:\n  $index: [$partition, ranks]\n  'testbed:.*': {2: *all, 4: *all}\n"
    )
    text = edited(references, {("C", pingpong(ranks=2)): NEW})
    assert (
        text
        == references.text
        + (
            "  testbed:gige:\n"
            "    2:\n"
            "      <<: *all\n"
            "      latency_us: [7.5, -0.1, 0.1, us]\n"
            "      time_us_4: [3, null, 1.0, us]\n"
            "    4: *all\n"
        ).rstrip("\n")
        + "\n"
    )
    assert reframes(text, "C", pingpong(ranks=4)) == reframes(
        references.text, "C", pingpong(ranks=4)
    )
    other = pingpong("fast-ethernet")
    assert reframes(text, "C", other) == reframes(references.text, "C", other)


def test_only_the_entry_changes_in_a_line_with_odd_spacing_and_windows_line_ends(file):
    references = file(
        "C:\r\n    $index: [ranks]\r\n    2:\r\n        latency_us :  [9,null , 0.4,us] # x\r\n"
    )
    assert edited(references, {("C", pingpong()): NEW}) == (
        "C:\r\n    $index: [ranks]\r\n    2:\r\n        latency_us: [7.5, -0.1, 0.1, us] # x\r\n"
        "        time_us_4: [3, null, 1.0, us]\r\n"
    )


def test_an_entry_in_block_style_becomes_one_line(file):
    block = "latency_us:\n    - 9\n    - null\n    - 0.4\n    - us\n"
    text = edited(file(f"C:\n  $index: [ranks]\n  2:\n    {block}"), {("C", pingpong()): NEW})
    assert yaml.safe_load(text)["C"][2] == NEW


def test_a_new_key_comes_before_the_comments_behind_its_level(file):
    above = "C:\n  $index: [$environ]\n  'm.*':\n    latency_us: [9, null, 0.4, us] # bound\n"
    below = "    # more\n\n# about D\nD: {}\n"
    text = edited(file(above + below), {("C", pingpong()): {"latency_us": [1, None, None, "us"]}})
    assert text == f"{above}  mpich:\n    latency_us: [1, null, null, us]\n{below}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "C: &c\n  $index: [ranks]\n  2: {latency_us: [9, null, 0.4, us]}\nD: *c\n",
            ":1: &c is defined here and used elsewhere; move what it names",
        ),
        (
            "C:\n  $index: [ranks]\n  2:\n    latency_us: &l [9, null, 0.4, us]\nD: {x: *l}\n",
            ":4: &l is defined here and used elsewhere; move what it names",
        ),
        (
            "C: {$index: [ranks],  # why\n  2: {latency_us: [9, null, 0.4, us]}}\n",
            ":1: cannot be edited as it is laid out; begin with the line 'C: {$index: [ranks], ",
        ),
        (
            "C:\n  $index: [ranks]\n  2:\n    latency_us:\n    - 9 # why\n"
            "    - null\n    - 1\n    - us\n",
            ":5: the comment there would be lost; move it above its entry",
        ),
        (
            "C: {$index: [ranks], 2: &a {latency_us: [9, null, 0.4, us]}, 4: *a}\n",
            ":1: &a is defined here and used elsewhere; move what it names",
        ),
    ],
)
def test_a_place_that_cannot_be_edited_alone_is_refused_with_a_remedy(file, text, said):
    with pytest.raises(NetproofError) as error:
        edited(file(text), {("C", pingpong()): NEW})
    assert "testbed.yaml" + said in str(error.value)


# Which failures of a run are an answer of its references, so that today's may take their place.


@pytest.fixture
def passed() -> CheckResult:
    """A check that passed."""
    return next(one for one in recorded("passed").results if one.measured)


def failed(result: CheckResult, reason: str, *levels: str) -> CheckResult:
    references = tuple(Finding("reference", Level(level), "it", "so") for level in levels) or None
    return dataclasses.replace(
        result, result="fail", phase="performance", reason=reason, references=references
    )


@pytest.mark.parametrize("level", ["fail", "undefined", "inconclusive"])
def test_what_passed_and_what_a_reference_was_against_is_rejudged(passed, level):
    assert concerns(passed)
    assert concerns(failed(passed, "any words", "pass", level))
    reason = "performance error: failed to meet reference(s): latency_us=9.5 us, expected 5"
    assert concerns(failed(passed, reason))


@pytest.mark.parametrize("levels", [(), ("pass", "pass")])
def test_an_error_that_is_no_answer_of_the_references_stands(passed, levels):
    reason = "attribute error: 'NoneType' object has no attribute 'landmarks'"
    assert not concerns(failed(passed, reason, *levels))
