"""The result of a session in one sentence; curves as blocks of text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from netproof.commands.cli import app
from netproof.criteria import Level
from netproof.present import html
from netproof.present.verdict import outcome
from netproof.present.wording import columns, size_in_words, sparkline


def case(level: Level, *, ran=True, complete=True, expected=""):
    failed = level is Level.FAIL
    return SimpleNamespace(
        level=level, failed=failed, ran=ran, complete=complete, expected=expected
    )


def found(*cases, planned: Sequence[bool] = (), faults: Sequence[str] = ()) -> SimpleNamespace:
    skipped = [(None, SimpleNamespace(planned=one)) for one in planned]
    return SimpleNamespace(cases=cases, skipped=skipped, faults=faults, pairs=(), coverage=())


PASS, WARN = case(Level.PASS), case(Level.WARN)


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (found(PASS, PASS, PASS), "3 of 3 cases passed"),
        (
            found(PASS, WARN, case(Level.PASS, expected="ticket 4711")),
            "3 of 3 cases passed, 1 of them with a warning, 1 of them failed as expected",
        ),
        (
            found(
                PASS,
                case(Level.INCONCLUSIVE),
                case(Level.FAIL),
                *[case(Level.FAIL, complete=False)] * 2,
                *[case(Level.FAIL, ran=False, complete=False)] * 4,
            ),
            "1 of 9 cases passed, 1 inconclusive, 3 failed, 2 of these not measured whole,"
            " 4 did not run",
        ),
        (
            found(PASS, planned=(True, True, False), faults=("one", "two")),
            "1 of 1 cases passed, 2 more deferred, 1 more could not be measured,"
            " 2 faults beyond single cases",
        ),
    ],
)
def test_each_count_that_is_not_zero_is_said(verdict, said):
    assert outcome(verdict) == said


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 B"), (4, "4 B"), (1000, "1,000 B"), (65536, "64 KiB"), (1 << 20, "1 MiB")],
)
def test_sizes_are_written_as_people_do(size, words):
    assert size_in_words(size) == words


NOT_OUR_WORDS = re.compile(
    r"\b(owed?|owes|tells?|told|beside|besides|held against|not here|absent)\b", re.IGNORECASE
)


def test_pages_keep_to_the_fixed_terms():
    for path in (Path(html.__file__).parent / "templates").glob("*.html"):
        shown = re.sub(r"\{[{%#].*?[}%#]\}|<[^>]*>", " ", path.read_text(), flags=re.DOTALL)
        assert not NOT_OUR_WORDS.findall(shown), path.name


def test_help_keeps_to_the_fixed_terms():
    def helps(command) -> list[str]:
        own = [command.help or "", *(getattr(one, "help", None) or "" for one in command.params)]
        return own + [
            one for each in getattr(command, "commands", {}).values() for one in helps(each)
        ]

    found = helps(typer.main.get_command(app))
    assert len(found) > 60
    assert not [one for one in found if NOT_OUR_WORDS.search(one)]


MOST_WORDS = 30


def sentences(reason: str) -> list[str]:
    """Split a reason; what stands in brackets is figures."""
    bare = re.sub(r" \([^()]*\)", "", reason)
    return re.split(r"(?<=[^.0-9])\. (?=[A-Z0-9])|: (?=[a-z])", bare)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["faulty.json", "sick.json", "two-switches.json", "ranges.json"])
def test_a_sentence_of_a_finding_is_short(judge, name):
    found = [
        one.reason
        for case in judge(name).verdict.cases
        for one in case.findings
        if one.level in (Level.WARN, Level.FAIL, Level.INCONCLUSIVE)
    ]
    long = [one for why in found for one in sentences(why) if len(one.split()) > MOST_WORDS]
    assert long == []


SIZES = tuple(2**power for power in range(20))


@pytest.mark.parametrize("width", [1, 7, 19, 20, 80])
def test_every_size_has_one_column(width):
    over = columns(SIZES, width)
    assert [size for sizes in over for size in sizes] == list(SIZES)
    assert len(over) == min(width, len(SIZES))
    assert max(map(len, over)) - min(map(len, over)) <= 1


def test_a_decade_is_as_high_wherever_it_lies():
    at = {1: 1.0, 2: 10.0, 3: 100.0, 4: 1000.0}
    assert sparkline(at, columns(at, 4), (1, 1000), max) == "▁▃▆█"


def test_a_column_of_several_sizes_shows_the_worst_of_them():
    bandwidth = dict.fromkeys(SIZES, 100.0) | {1024: 1.0}
    line = sparkline(bandwidth, columns(SIZES, 5), (1, 100), min)
    assert line == "██▁██"


@pytest.mark.parametrize(
    ("at", "sizes", "line"),
    [
        # Blank: not measured, a printed 0.
        ({1: 1.0, 4: 8.0}, (1, 2, 4), "▁ █"),
        ({1: 0.0, 2: 1.0, 4: 8.0}, (1, 2, 4), " ▁█"),
        # Beyond the scale.
        ({1: 0.01, 2: 1e6}, (1, 2), "▁█"),
    ],
)
def test_what_the_scale_does_not_have_is_blank_or_at_its_end(at, sizes, line):
    assert sparkline(at, [(size,) for size in sizes], (1, 8), max) == line
