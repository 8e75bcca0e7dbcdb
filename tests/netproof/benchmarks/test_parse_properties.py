"""A cut output is refused or a true beginning, and no text makes another error than a parser's own.

Characters, lines and numbers that change anywhere are tried on all formats in test_formats.py.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from netproof.benchmarks import imb, netpipe
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


def tried(times: int) -> settings:
    """So many times the usual number of examples, which `ci/test --all` has five times."""
    return settings(max_examples=times * settings.default.max_examples)


def places(text: str) -> list[int]:
    """Every seventh byte of a text, and those next to the ends of its lines."""
    ends = [at + more for at, one in enumerate(text) if one == "\n" for more in (-1, 0, 1)]
    return sorted({*range(0, len(text), 7), *ends} - {len(text)})


def without_lines(output: Output) -> list[Table]:
    return [
        replace(one, first_line=0, rows=tuple(replace(row, line=0) for row in one.rows), facts={})
        for one in output.tables
    ]


@pytest.mark.parametrize("name", ["2021.11/time-out.txt", "2021.11/multi-1-out-of-mem.txt"])
def test_cut_anywhere_it_is_refused_or_whole(name: str) -> None:
    text = (DATA / "imb" / name).read_text()
    truth = without_lines(imb.BENCHMARK.read(text, name))
    accepted = 0
    for end in places(text):
        try:
            output = imb.BENCHMARK.read(text[:end], name)
        except ParseError:
            continue
        accepted += 1
        assert without_lines(output) == truth
    assert accepted <= 2, "only empty lines at the end may be missing"


def test_netpipe_cut_anywhere_is_refused_or_a_true_beginning() -> None:
    text = (NP / "tcp.out").read_text()
    truth = netpipe.read_file(text, "tcp.out", bidirectional=False)
    asked = netpipe.sizes(1, 16384, 3)
    for end in places(text):
        try:
            output = netpipe.read_file(text[:end], "tcp.out", bidirectional=False)
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
