"""Whatever happens to an output, a parser raises its own error or returns the truth.

The truth of a garbled file cannot always be known: a digit changed in the time of a collective
makes another valid time, and nothing else in the file speaks against it. So the claims are:
what the damage did not touch is read as it was, structure (which tables, ranks, how many rows)
is never changed without an error, and what can be computed twice (a bandwidth, from the row's
own rate) never comes out further from the truth than the printed decimals allow.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from netproof.benchmarks import imb, netpipe
from netproof.benchmarks.fixed import Row
from netproof.benchmarks.interface import Output, Table
from netproof.benchmarks.outputs import read
from netproof.errors import ParseError

DATA = Path(__file__).parents[2] / "data"
IMB = {
    name: (DATA / "imb" / name).read_text()
    for name in (
        "2018/all.txt",
        "2018/checked.txt",
        "2021.11/multi-0.txt",
        "2021.11/multi-1.txt",
        "2021.11/time-out.txt",
        "2021.11-intel/large.txt",
        "4.1-format/mebibytes.txt",
    )
}
NP = DATA / "netpipe" / "3.7.2"
CHARACTERS = st.one_of(
    st.sampled_from(" 0123456789.-\n#\t\r\0eEnainf"), st.characters(codec="utf-8")
)


def tried(times: int) -> settings:
    """So many times the usual number of examples, which `ci/test --all` has five times."""
    return settings(max_examples=times * settings.default.max_examples)


def without_lines(output: Output) -> list[Table]:
    return [
        replace(one, first_line=0, rows=tuple(replace(row, line=0) for row in one.rows), facts={})
        for one in output.tables
    ]


def structure(output: Output) -> list[tuple[object, ...]]:
    return [
        (t.function, t.ranks, t.groups, t.group, t.waiting, [bool(row.values) for row in t.rows])
        for t in output.tables
    ]


@pytest.mark.parametrize("name", ["2021.11/time-out.txt", "2021.11/multi-1-out-of-mem.txt"])
def test_cut_at_any_byte_it_is_refused_or_whole(name: str) -> None:
    text = (DATA / "imb" / name).read_text()
    truth = without_lines(imb.BENCHMARK.read(text, name))
    accepted = 0
    for end in range(len(text)):
        try:
            output = imb.BENCHMARK.read(text[:end], name)
        except ParseError:
            continue
        accepted += 1
        assert without_lines(output) == truth
    assert accepted <= 2, "only empty lines at the end may be missing"


def check_rows(output: Output, truth: Output, touched: set[int]) -> None:
    for table, true_table in zip(output.tables, truth.tables, strict=True):
        for row, true_row in zip(table.rows, true_table.rows, strict=True):
            if true_row.line not in touched:
                assert replace(row, line=0) == replace(true_row, line=0)
            elif table.function in imb.POINT_TO_POINT and row.values and true_row.values:
                check_bandwidth(table.function, row, true_row)


def check_bandwidth(function: str, row: Row, true_row: Row) -> None:
    """The bandwidth is that of the printed rate, within half a unit of time and of rate each."""
    messages = imb.POINT_TO_POINT[function]
    bandwidth = messages * row.size / row.time_us
    truth = messages * true_row.size / true_row.time_us
    # A small time is printed with few digits, in either row.
    share = 0.005 / (min(row.time_us, true_row.time_us) - 0.005)
    assert abs(bandwidth - truth) <= 0.0212 + share * (bandwidth + truth)


@pytest.mark.slow
@tried(6)
@given(st.sampled_from(sorted(IMB)), st.data(), CHARACTERS)
def test_one_garbled_character_is_refused_or_changes_its_own_number_only(
    name: str, data: st.DataObject, character: str
) -> None:
    text = IMB[name]
    place = data.draw(st.integers(0, len(text) - 1))
    garbled = text[:place] + character + text[place + 1 :]
    try:
        output = imb.BENCHMARK.read(garbled, name)
    except ParseError:
        return
    truth = imb.BENCHMARK.read(text, name)
    assert structure(output) == structure(truth)
    if "\n" in (character, text[place]):
        assert without_lines(output) == without_lines(truth)
    else:
        check_rows(output, truth, {text.count("\n", 0, place) + 1})
        for table in output.tables:
            for row in table.rows:
                literal = garbled.split("\n")[row.line - 1].split()
                if row.values:
                    assert {f"{row.values['#repetitions']:.0f}", f"{row.size}"} <= {*literal, "0"}


@pytest.mark.slow
@tried(5)
@example("tcp.out", 0.5, "1")
@given(
    st.sampled_from(["tcp.out", "openmpi.out", "tcp.stderr", "openmpi.stderr"]),
    st.floats(0, 1, exclude_max=True),
    CHARACTERS,
)
def test_one_garbled_character_is_refused_or_below_what_netpipe_prints(
    name: str, share: float, character: str
) -> None:
    text = (NP / name).read_text()
    place = int(share * len(text))
    garbled = text[:place] + character + text[place + 1 :]
    parser = netpipe.read_file if name.endswith(".out") else netpipe.BENCHMARK.read
    truth = parser(text, name, bidirectional=False).curve()
    try:
        curve = parser(garbled, name, bidirectional=False).curve()
    except ParseError:
        return
    assert len(curve.sizes) == len(truth.sizes)
    # Half a unit of the time's last decimal, and of the rate's: six decimals of Mbps in the
    # file, two in what is printed. Within it a size can change too: the sizes asked for tell.
    rate_error = 0.5e-6 if name.endswith(".out") else 0.005
    for size, time, true_size, true_time in zip(
        curve.sizes, curve.time_us, truth.sizes, truth.time_us, strict=True
    ):
        bandwidth, true_bandwidth = size / time, true_size / true_time
        share = 0.005 / (min(time, true_time) - 0.005)
        margin = 2 * rate_error * 2**20 / 8e6 + share * (bandwidth + true_bandwidth)
        assert abs(bandwidth - true_bandwidth) <= margin * 1.001


@pytest.mark.parametrize("name", ["tcp.out", "tcp.stderr"])
def test_netpipe_cut_at_any_byte_is_refused_or_a_true_beginning(name: str) -> None:
    text = (NP / name).read_text()
    parser = netpipe.read_file if name.endswith(".out") else netpipe.BENCHMARK.read
    truth = parser(text, name, bidirectional=False)
    asked = netpipe.sizes(1, 16384, 3)
    for end in range(len(text)):
        try:
            output = parser(text[:end], name, bidirectional=False)
        except ParseError:
            continue
        (table,) = output.tables
        assert table.rows == truth.tables[0].rows[: len(table.rows)]
        assert output.curve().sizes != asked, "a cut run must not look complete"


@pytest.mark.slow
@tried(5)
@given(
    st.one_of(
        st.text(),
        st.text(alphabet=" #-\n0123456789.abMPI()/[]", max_size=400),
        st.builds(
            lambda text, edits: _edited(text, edits),
            st.sampled_from(
                [
                    *IMB.values(),
                    *((NP / name).read_text() for name in ("tcp.out", "tcp.stderr")),
                    (DATA / "osu/7.4/latency.out").read_text(),
                ]
            ),
            st.lists(
                st.tuples(
                    st.floats(0, 1, exclude_max=True), st.integers(0, 300), st.text(max_size=20)
                ),
                max_size=4,
            ),
        ),
    ),
    st.booleans(),
)
@example(IMB["2018/all.txt"].replace("# #processes = 4", "# #processes = " + "9" * 5000), False)
@example(IMB["2018/all.txt"].replace(":   16", ":   " + "9" * 5000), False)
@example((NP / "tcp.stderr").read_text().replace("  0:", "9" * 5000 + ":"), False)
@example("9" * 5000 + " 1 1\n", False)
@example("9" * 400 + " 1 1 1 1\n", True)
def test_no_text_makes_any_other_error(text: str, bidirectional: bool) -> None:
    with suppress(ParseError):
        for _, curve in read(text, "any.txt", bidirectional=bidirectional).printed():
            curve.curve()


def _edited(text: str, edits: list[tuple[float, int, str]]) -> str:
    for share, length, new in edits:
        place = int(share * len(text))
        text = text[:place] + new + text[place + length :]
    return text
