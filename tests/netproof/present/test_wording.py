"""The result of a session in one sentence; curves as blocks of text."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from netproof.criteria import Level
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


def test_sizes_are_written_as_people_do():
    sizes = (0, 4, 1000, 65536, 1 << 20)
    assert [*map(size_in_words, sizes)] == ["0 B", "4 B", "1,000 B", "64 KiB", "1 MiB"]


SIZES = tuple(2**power for power in range(20))


def test_a_decade_is_as_high_wherever_it_lies_and_a_column_shows_the_worst_of_its_sizes():
    at = {1: 1.0, 2: 10.0, 3: 100.0, 4: 1000.0}
    assert sparkline(at, columns(at, 4), (1, 1000), max) == "▁▃▆█"
    bandwidth = dict.fromkeys(SIZES, 100.0) | {1024: 1.0}
    assert sparkline(bandwidth, columns(SIZES, 5), (1, 100), min) == "██▁██"


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
