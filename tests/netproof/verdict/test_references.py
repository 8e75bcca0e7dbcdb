"""References are found as ReFrame finds them, and edited without touching anything else."""

from __future__ import annotations

import dataclasses
import os
import stat
import time
import types
from pathlib import Path

import pytest
import yaml  # what ReFrame reads references with
from hypothesis import given, settings
from hypothesis import strategies as st
from reframe.core.pipeline import RegressionTestDict, RegressionTestPlugin

from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.session import session
from netproof.session.measured import Measured
from netproof.verdict.references import NotThere, ReferenceFile, diff, not_defined, write

ROOT = Path(__file__).resolve().parents[3]
SESSIONS = ROOT / "tests" / "data" / "sessions"
SHIPPED = {path.stem: path for path in sorted((ROOT / "reference-values").glob("*.yaml"))}
NEW = {"latency_us": [7.5, -0.1, 0.1, "us"], "time_us_4": [3, None, 1.0, "us"]}


def pingpong(partition="gige", environment="mpich", ranks=2, system="testbed") -> Case:
    return Case(system, partition, environment, "imb", "PingPong", ranks, 1)


def netpipe(partition, environment, path, direction, system) -> Case:
    return Case(system, partition, environment, "netpipe", "tcp", 2, 1, path, direction)


def reframes(text: str, check: str, case: Case) -> dict:
    """What ReFrame's own lookup returns for the check of a case in a file of that text."""
    return looked_up(yaml.safe_load(text), check, case)


def looked_up(references: dict, check: str, case: Case) -> dict:
    """The same in a file that was read."""
    plugin = object.__new__(types.new_class(check, (RegressionTestPlugin,)))
    plugin.current_partition = types.SimpleNamespace(fullname=f"{case.system}:{case.partition}")
    plugin.current_environ = types.SimpleNamespace(name=case.environment)
    plugin.ranks, plugin.path, plugin.direction = case.ranks, case.path, case.direction
    return RegressionTestDict(dict(references[check]))[plugin]


def places(system: str) -> list[tuple[str, Case]]:
    """Checks and cases that the shipped file of a system has entries for."""
    partitions, ranks = {
        "testbed": (("gige", "fast-ethernet"), (2, 4)),
        "example": (("summit", "nexus"), (16, 32, 64)),
    }[system]
    found = []
    for partition in partitions:
        for environment in ("mpich", "openmpi-4.1", "openmpi-5.0"):
            found += [
                (check, netpipe(partition, environment, path, direction, system))
                for check in ("NetpipeTcp", "NetpipeMpi")
                for path in ("between", "inside")
                for direction in ("oneway", "bidirectional")
            ]
            found += [
                (check, pingpong(partition, environment, count, system))
                for check in ("ImbAllgather", "ImbAllreduce", "ImbBarrier")
                for count in ranks
            ]
            found.append(("ImbPingPong", pingpong(partition, environment, 2, system)))
    return found


PLACES = {system: places(system) for system in SHIPPED}


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
class TestShipped:
    def test_entries_are_found_where_reframe_finds_them(self, system):
        references = ReferenceFile(SHIPPED[system])
        read = yaml.safe_load(references.text)
        for place in PLACES[system]:
            assert references.find(*place) == looked_up(read, *place)

    @settings(max_examples=8, deadline=None)
    @given(data=st.data())
    def test_whatever_is_edited_reframe_finds_it_and_all_else_as_before(self, system, data):
        references = ReferenceFile(SHIPPED[system])
        numbers = st.sampled_from(range(len(PLACES[system])))
        chosen = data.draw(st.sets(numbers, min_size=1, max_size=12))
        changes = {PLACES[system][number]: NEW for number in chosen}
        before, after = map(yaml.safe_load, (references.text, references.edited(changes)))
        for place in PLACES[system]:
            expected = looked_up(before, *place) | changes.get(place, {})
            assert looked_up(after, *place) == expected

    def test_every_comment_stays(self, system):
        references = ReferenceFile(SHIPPED[system])
        text = references.edited(dict.fromkeys(PLACES[system], NEW))
        before, after = (
            [line.partition("#")[2] for line in one.splitlines() if "#" in line]
            for one in (references.text, text)
        )
        assert [comment for comment in after if comment in before] == before

    def test_what_was_written_can_be_edited_again_in_place(self, system, file):
        references = ReferenceFile(SHIPPED[system])
        once = references.edited(dict.fromkeys(PLACES[system], NEW))
        other = {"latency_us": [8.5, -0.2, 0.2, "us"]}
        twice = file(once).edited(dict.fromkeys(PLACES[system], other))
        changed = [line for line in diff(SHIPPED[system], once, twice) if line[0] in "+-"][2:]
        assert {line[1:].strip() for line in changed} == {
            "latency_us: [7.5, -0.1, 0.1, us]",
            "latency_us: [8.5, -0.2, 0.2, us]",
        }


HEAD = ".all: &all\n  latency_us: [0, null, null, us]\n"


def test_a_new_name_hides_nothing_of_the_expression_that_it_came_from(file):
    references = file(
        HEAD + "C:\n  $index: [$partition, ranks]\n  'testbed:.*': {2: *all, 4: *all}\n"
    )
    text = references.edited({("C", pingpong(ranks=2)): NEW})
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


def test_a_comment_beside_an_alias_stays_at_its_key(file):
    text = file(
        HEAD
        + "C:\n  $index: [ranks]\n  2: *all   # two\n\n# about D\nD: {$index: [ranks], 2: *all}\n"
    ).edited({("C", pingpong()): {"latency_us": [1, None, 0.5, "us"]}})
    assert (
        "  2:   # two\n    <<: *all\n    latency_us: [1, null, 0.5, us]\n\n# about D\nD: {" in text
    )


def test_only_the_entry_changes_in_a_line_with_odd_spacing_and_windows_line_ends(file):
    references = file(
        "C:\r\n  $index: [ranks]\r\n  2:\r\n      latency_us :  [9,null , 0.4,us] # x\r\n"
    )
    assert references.edited({("C", pingpong()): NEW}) == (
        "C:\r\n  $index: [ranks]\r\n  2:\r\n      latency_us :  [7.5, -0.1, 0.1, us] # x\r\n"
        "      time_us_4: [3, null, 1.0, us]\r\n"
    )


def test_a_file_without_a_last_line_end_stays_without(file):
    text = file("C:\n  $index: [ranks]\n  2: {latency_us: [9, null, 0.4, us]}").edited(
        {("C", pingpong()): NEW}
    )
    assert text.endswith(
        "  2:\n    latency_us: [7.5, -0.1, 0.1, us]\n    time_us_4: [3, null, 1.0, us]"
    )


def test_an_entry_in_block_style_becomes_one_line(file):
    text = file(
        "C:\n  $index: [ranks]\n  2:\n    latency_us:\n    - 9\n    - null\n    - 0.4\n    - us\n"
    ).edited({("C", pingpong()): {"latency_us": [7.5, -0.1, 0.1, "us"]}})
    assert yaml.safe_load(text)["C"][2] == {"latency_us": [7.5, -0.1, 0.1, "us"]}


def test_an_unused_anchor_of_what_is_rewritten_stays(file):
    text = file("C:\n  $index: [ranks]\n  2: &two {latency_us: [9, null, 0.4, us]}\n").edited(
        {("C", pingpong()): NEW}
    )
    assert "  2: &two\n    latency_us: [7.5, -0.1, 0.1, us]\n" in text


def test_a_check_that_is_an_alias_of_another_gets_its_own(file):
    references = file(HEAD + "C: &c\n  $index: [ranks]\n  2: *all\nD: *c\n")
    text = references.edited({("D", pingpong()): NEW})
    assert reframes(text, "D", pingpong()) == NEW
    assert reframes(text, "C", pingpong()) == {"latency_us": [0, None, None, "us"]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "C: &c\n  $index: [ranks]\n  2: {latency_us: [9, null, 0.4, us]}\nD: *c\n",
            ":1: &c is defined here and used elsewhere; move what it names",
        ),
        (
            "a: &a\n  C: {$index: [ranks], 2: {}}\n<<: *a\n",
            ": C comes from a merge (<<); give it a key of its own",
        ),
        (
            "C:\n  $index: [ranks]\n  2:\n    latency_us: &l [9, null, 0.4, us]\nD: {x: *l}\n",
            ":4: &l is defined here and used elsewhere; write the entry out",
        ),
        (
            "C: {$index: [ranks],  # why\n  2: {latency_us: [9, null, 0.4, us]}}\n",
            ":1: the comments between these lines would be lost",
        ),
        (
            "C: {$index: [ranks], 2: &a {latency_us: [9, null, 0.4, us]}, 4: *a}\n",
            ":1: &a would be defined twice or lost",
        ),
    ],
)
def test_a_place_that_cannot_be_edited_alone_is_refused_with_a_remedy(file, text, said):
    with pytest.raises(NetproofError) as error:
        file(text).edited({("C", pingpong()): NEW})
    assert "testbed.yaml" + said in str(error.value)


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


def test_a_key_beside_a_merge_that_has_it_too_is_no_second_one(file):
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
    with pytest.raises(NetproofError, match="more than 200000 values, those of aliases counted"):
        file("\n".join(lines) + "\n")
    assert time.monotonic() - began < 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("C: [", r"testbed\.yaml:1: no YAML: "),
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
        ("C: {$index: [$environ], '(': {}}\n", "a key beside 'mpich' is no expression: missing"),
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


def test_writing_replaces_the_file_behind_a_link_and_keeps_its_permissions(tmp_path):
    target, link = tmp_path / "target.yaml", tmp_path / "link.yaml"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write(link, "new\r\n")
    assert target.read_bytes() == b"new\r\n"
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["link.yaml", "target.yaml"]


def test_a_write_that_fails_leaves_the_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "testbed.yaml"
    path.write_text("old")

    def refuse(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(NetproofError, match="cannot be written: no space left"):
        write(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["testbed.yaml"]


@pytest.fixture
def unlike_a_line():
    """A case over a link whose largest messages are on no line, as it was measured."""
    stored = session.load(SESSIONS / "sick.json")
    whole = next(Measured.from_json(r.measured) for r in stored.results if r.measured)
    why = "times lie on no line"
    found = dataclasses.replace(
        whole.landmarks,
        asymptotic_mb_s=None,
        line_rate_share=None,
        undefined=(("asymptotic_mb_s", why), ("line_rate_share", why)),
    )
    return dataclasses.replace(whole, landmarks=found)


def test_a_bound_on_a_share_that_is_not_defined_is_a_failure_with_the_reason(unlike_a_line):
    shown, asked = (0, None, None, "%"), (100, None, 0.02, "%")
    assert not_defined({"line_rate_share": shown}, unlike_a_line) == ""
    reason = not_defined({"line_rate_share": asked}, unlike_a_line)
    assert reason == (
        "the references ask for line_rate_share, which is not defined: times lie on no line"
    )
    xfail = types.SimpleNamespace(data=asked)
    assert not_defined({"line_rate_share": xfail}, unlike_a_line) == reason


def test_a_bound_on_a_share_of_a_twin_that_is_not_there_is_a_failure(unlike_a_line):
    assert not_defined({"twin_share": (0, None, None, "%")}, unlike_a_line) == ""
    assert not_defined({"twin_share": (100, -0.2, 0.25, "%")}, unlike_a_line).startswith(
        "the references ask for twin_share, which is not defined"
    )


def test_nobody_can_ask_for_the_share_of_a_path_that_has_no_link(unlike_a_line):
    inside = dataclasses.replace(unlike_a_line, line_rate_mb_s=None)
    assert not_defined({"line_rate_share": (100, None, 0.02, "%")}, inside) == ""
    curve = dataclasses.replace(inside.curve, bandwidth_mb_s=None)
    collective = dataclasses.replace(unlike_a_line, curve=curve)
    assert not_defined({"asymptotic_mb_s": (100, -0.1, None, "MB/s")}, collective) == ""
