"""Curves as blocks of text: every size is in some column, and no dropout gets lost."""

from __future__ import annotations

import pytest

from netproof.present.wording import BLOCKS, columns, sparkline

SIZES = tuple(2**power for power in range(20))


@pytest.mark.parametrize("width", [1, 7, 19, 20, 80])
def test_every_size_has_one_column(width):
    over = columns(SIZES, width)
    assert [size for sizes in over for size in sizes] == list(SIZES)
    assert len(over) == min(width, len(SIZES))
    assert max(map(len, over)) - min(map(len, over)) <= 1


def test_no_sizes_make_no_columns():
    assert columns((), 10) == ()


def test_a_decade_is_as_high_wherever_it_lies():
    at = {1: 1.0, 2: 10.0, 3: 100.0, 4: 1000.0}
    assert sparkline(at, columns(at, 4), (1, 1000), max) == "▁▃▆█"


def test_a_column_of_several_sizes_shows_the_worst_of_them():
    bandwidth = dict.fromkeys(SIZES, 100.0) | {1024: 1.0}
    line = sparkline(bandwidth, columns(SIZES, 5), (1, 100), min)
    assert line == "██▁██"


def test_a_size_that_was_not_measured_is_blank():
    assert sparkline({1: 1.0, 4: 8.0}, ((1,), (2,), (4,)), (1, 8), max) == "▁ █"


def test_a_printed_zero_is_blank():
    assert sparkline({1: 0.0, 2: 1.0, 4: 8.0}, ((1,), (2,), (4,)), (1, 8), max) == " ▁█"


def test_what_is_beyond_the_scale_is_drawn_at_its_end():
    assert sparkline({1: 0.01, 2: 1e6}, ((1,), (2,)), (1, 8), max) == BLOCKS[0] + BLOCKS[-1]


def test_equal_values_make_a_level_line():
    assert len(set(sparkline(dict.fromkeys(SIZES, 5.0), columns(SIZES, 20), (5, 5), max))) == 1
