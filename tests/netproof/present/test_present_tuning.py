"""A sweep's result: the sentence, the table, plain values and the page."""

from __future__ import annotations

import dataclasses
import html
import io
import json
import math
from pathlib import Path

import pytest
from rich.console import Console

from netproof.experiments import parameters
from netproof.experiments.gains import Gain, MessageRange, SweepRow, SweepTable
from netproof.experiments.sweep import Sweep, turns
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve
from netproof.present import sweeps as shown
from netproof.present.document import show
from netproof.present.html.folder import answers_page
from netproof.session.measured import Launch
from netproof.site import site

ROOT = Path(__file__).resolve().parents[3]
EXTRAS = site.load(ROOT / "site-config" / "testbed.py")["systems"][0]["partitions"][0]["extras"]

CASE = Case("testbed", "gige", "mpich", "netpipe", "tcp", 2, 1, "inter-node", "oneway")
SIZES = (1, 1024, 131072)


@pytest.fixture
def sweep() -> Sweep:
    """Two values; one is a third faster for long messages."""
    several = turns(("65536", "131072"), 3, 1)
    launches = tuple(
        Launch(
            turn.launch,
            order,
            0.0,
            1.0,
            (),
            Curve(SIZES, (25.0, 40.0, 1200.0 / (1.3 if turn.value == "131072" else 1.0))),
        )
        for order, turn in enumerate(several, 1)
    )
    how = parameters.found("socket-buffer", ()).assignment("tcp", "MPICH")
    return Sweep(CASE, "socket-buffer", "socket buffer", how, "7", 1, EXTRAS, several, launches)


NONE = Gain(1.0, (0.99, 1.01))
FASTER = Gain(1.31, (1.24, 1.38))


def said(
    winner: str | None = "131072", short: Gain = NONE, as_good: dict[str, float] | None = None
) -> SweepTable:
    rows = (
        SweepRow(MessageRange.SHORT, None, {}, {"65536": NONE, "131072": short}),
        SweepRow(MessageRange.LONG, winner, as_good or {}, {"65536": NONE, "131072": FASTER}),
    )
    by_size = {"65536": dict.fromkeys(SIZES, 1.0), "131072": dict.fromkeys(SIZES, 1.1)}
    return SweepTable(rows, by_size, {}, 1.05, 5, 0)


def test_the_sentence_has_gain_interval_and_what_is_as_good(sweep):
    assert shown.recommendation(sweep, said(as_good={"65536": 0.03})) == (
        "socket buffer 128 KiB: +31 % (+24 to +38) for long messages, no change for short ones;"
        " statistically tied with it: 64 KiB (at most 3 % behind)"
    )
    assert shown.setting(sweep, "131072") == "NPtcp -b 131072"


def test_costs_are_said(sweep):
    cost = Gain(0.9, (0.85, 0.95))
    found = shown.recommendation(sweep, said(short=cost))
    assert "-10 % (-15 to -5) for short ones" in found


def test_without_a_gain_that_is_sure_nothing_is_recommended(sweep):
    text = shown.recommendation(sweep, said(None))
    assert text == "socket buffer: leave it as it is: no value is faster for sure"


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (NONE, "no change"),
        (FASTER, "+31 % (+24 to +38)"),
        (Gain(1.1, (0.9, 1.3)), "+10 % (-10 to +30), not sure"),
        (Gain(0.999, (0.9, 1.3)), "0 % (-10 to +30), not sure"),
    ],
)
def test_a_gain_in_words(gain, words):
    assert shown.gain_in_words(gain) == words


def test_a_value_that_is_a_size_is_written_as_one(sweep):
    assert shown.name_of(sweep, "65536") == "64 KiB"


def test_the_terminal_has_the_table(sweep):
    out = Console(file=io.StringIO(), width=140)
    title, answer = shown.answer(sweep, said())
    show([title, *answer], out)
    text = out.file.getvalue()
    assert "set it by: NPtcp -b 131072" in text
    assert "long (from 1/8 of the largest)" in text
    assert "5 rounds of 2 values, each alongside the default at the same time" in text


def test_what_all_nodes_have_already_is_said(sweep):
    out = Console(file=io.StringIO(), width=140)
    has = dataclasses.replace(sweep, own=("131072",))
    title, answer = shown.answer(has, has.table())
    show([title, *answer], out)
    assert "All nodes have 128 KiB already: it is the default by name." in out.file.getvalue()
    assert "leave it as it is" in out.file.getvalue()
    (document,) = shown.document([(has, has.table())])["sweeps"]
    assert document["own"] == ("131072",)


def test_plain_values_have_the_sentence_and_every_size(sweep):
    document = json.loads(json.dumps(shown.document([(sweep, said())])))
    (one,) = document["sweeps"]
    assert one["recommended"]["value"] == "131072"
    assert one["recommended"]["sentence"].startswith("socket buffer 128 KiB")
    assert [size for size, _ in one["values"][0]["by_size"]] == list(SIZES)


def test_the_page_has_the_recommendation_on_top_and_all_curves(sweep):
    text = html.unescape(answers_page("Tuning", [shown.answer(sweep, sweep.table())]))
    assert text.index("socket buffer 128 KiB: +30 %") < text.index("application/json")
    assert "<dt>set it by</dt><dd>NPtcp -b 131072</dd>" in text
    for name in ("default", "64 KiB", "128 KiB"):
        assert f'"configuration":"{name}"' in text
    # Colours stand for values here, not for libraries.
    assert '"title":"socket buffer"' in text
    assert "MPI × compiler" not in text
    assert math.isclose(sweep.table().drift, 1.0)


@pytest.mark.parametrize("name", ["eager-limit", *parameters.EAGER_VARIABLES])
def test_where_an_eager_limit_was_taken_the_curve_steps_there(name):
    """Latency 25 µs and 100 MB/s; from 8 KiB on rendezvous adds a round trip."""
    sizes = tuple(1 << power for power in range(18))
    case = Case("testbed", "gige", "openmpi5", "netpipe", "mpi", 2, 1, "inter-node", "oneway")
    several = turns(("4096", "65536"), 3, 1)
    launches = tuple(
        Launch(
            *(turn.launch, order, 0.0, 1.0, ()),
            Curve(
                sizes,
                tuple(
                    25.0 + size / 100 + (60.0 if turn.value == "4096" and size > 4096 else 0.0)
                    for size in sizes
                ),
            ),
        )
        for order, turn in enumerate(several, 1)
    )
    how = parameters.found(name, ("4096", "65536")).assignment("mpi", "Open MPI")
    where = (name, "eager limit", how, "7", 1, EXTRAS)
    swept = Sweep(case, *where, several, launches)
    found = swept.table()
    out = io.StringIO()
    title, answer = shown.answer(swept, found)
    show([title, *answer], Console(file=out, width=200))
    assert "64 KiB" in out.getvalue()
    assert "step seen" in out.getvalue()
    assert "4096 to 8192 B" in out.getvalue()
    assert "With the default: step seen none." in out.getvalue()
    (document,) = shown.document([(swept, found)])["sweeps"]
    steps = {one["value"]: one["sizes"] for one in document["eager_steps"]}
    assert steps == {None: None, "4096": [4096, 8192], "65536": None}
    assert "4096 to 8192 B" in answers_page("Tuning", [shown.answer(swept, found)])
