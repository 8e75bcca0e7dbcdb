"""The fastest algorithms: the sentence, the table, plain values and the page."""

from __future__ import annotations

import html
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from netproof.experiments import parameters
from netproof.experiments.sweep import Sweep, turns
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve
from netproof.present import sweeps as shown
from netproof.present.document import DataTable, show
from netproof.present.html import experiments
from netproof.session.measured import Launch
from netproof.site import site

ROOT = Path(__file__).resolve().parents[3]
EXTRAS = site.load(ROOT / "site-config" / "testbed.py")["systems"][0]["partitions"][0]["extras"]
SIZES = (4, 1024, 65536, 524288)
GAINS = {"4": (0.5, 0.5, 1.5, 1.6), "6": (0.5, 0.5, 1.5, 1.0), None: (1.0,) * 4}


def swept(function: str = "Allreduce", sizes: tuple[int, ...] = SIZES) -> Sweep:
    """Open MPI with two of its algorithms, which win for long messages, and two not taken."""
    names = parameters.algorithms("Open MPI 5.0.11", function, ("4", "6", "17", "1"))
    assignment = parameters.library_of("Open MPI 5.0.11").setting(function)
    several = turns(("4", "6"), 3, 1)
    launches = tuple(
        Launch(
            turn.launch,
            order,
            0.0,
            1.0,
            (),
            Curve(
                sizes,
                tuple(
                    (100.0 + size / 100) * (1 + 0.001 * (order % 3)) / gain
                    for size, gain in zip(sizes, GAINS[turn.value], strict=False)
                ),
            ),
        )
        for order, turn in enumerate(several, 1)
    )
    case = Case("testbed", "gige", "openmpi5", "imb", function, 4, 1)
    return Sweep(
        *(
            case,
            "algorithm",
            f"{function} algorithm",
            assignment,
            "7",
            1,
            EXTRAS,
            several,
            launches,
        ),
        library="Open MPI 5.0.11",
        names=names,
        refused={"17": "tuning-3.1 ended with status 1"},
        fell_back={"6": "cannot"},
    )


def test_the_sentence_has_who_wins_from_where_to_where():
    one = swept()
    said = shown.conclusion(one, one.table())
    assert said.startswith("Allreduce algorithm on 4 ranks: ")
    assert "from 64 KiB to 512 KiB" in said or "4 ring at 512 KiB (+60 %)" in said
    assert said.endswith("; at the other 2 sizes none is faster for sure")


def test_the_terminal_has_a_row_for_each_size_and_what_was_not_taken():
    one = swept()
    out = Console(file=io.StringIO(), width=140)
    title, answer = shown.answer(one, one.table())
    show([title, *answer], out)
    text = out.file.getvalue()
    assert "testbed:gige openmpi5 IMB Allreduce, 4 ranks" in text
    (longest,) = [line for line in text.splitlines() if line.strip().startswith("512 KiB")]
    assert longest.split()[2:5] == ["4", "ring", "+60"]
    # Certainly slower is not a tie.
    (shortest,) = [line for line in text.splitlines() if line.strip().startswith("4 B")]
    assert "the library's own" in shortest
    flat = " ".join(text.split())
    assert (
        "set 4 ring by: OMPI_MCA_coll_tuned_use_dynamic_rules=1"
        " OMPI_MCA_coll_tuned_allreduce_algorithm=4"
    ) in flat
    assert "Not taken, 17: tuning-3.1 ended with status 1" in flat
    assert "took its own choice instead of 6 rabenseifner: cannot" in flat
    assert "3 rounds of 2 algorithms, each alongside the library's own choice" in flat


def test_others_that_are_as_good_are_named_in_the_row():
    one = swept()
    (row,) = [row for row in one.table().rows if row.at == 65536]
    said = shown.as_good_in_words(one, row)
    assert "% behind)" in said
    assert {row.winner, *row.as_good} == {"4", "6"}


def test_plain_values_have_every_gain_with_its_interval():
    one = swept()
    document = json.loads(json.dumps(shown.document([(one, one.table())])))
    (made,) = document["sweeps"]
    assert made["ranks"] == 4
    assert made["refused"] == [{"value": "17", "said": "tuning-3.1 ended with status 1"}]
    last = made["sizes"][-1]
    assert (last["bytes"], last["winner"]) == (524288, "4")
    assert last["gains"]["4"]["factor"] == pytest.approx(1.6, rel=0.01)
    assert last["gains"]["4"]["interval"][0] < 1.6 < last["gains"]["4"]["interval"][1]


@pytest.mark.slow
def test_the_page_has_the_table_a_small_chart_of_each_and_all_times():
    one = swept()
    text = html.unescape(experiments.page([(one, one.table())], shown))
    assert text.index("4 ring") < text.index("application/json")
    assert '"algorithm":"6 rabenseifner"' in text
    assert '"configuration":"the library\'s own"' in text
    assert "OMPI_MCA_coll_tuned_allreduce_algorithm=4" in text


def test_a_barrier_has_one_row_and_no_size():
    one = swept("Barrier", (0,))
    table = one.table()
    assert next(b for b in shown.answer(one, table)[1] if isinstance(b, DataTable)).rows[0][:2] == (
        "-",
        "the library's own",
    )
    text = experiments.page([(one, table)], shown)
    assert "There is no curve to draw." in text


def test_a_sweep_comes_back_from_a_report_as_it_was():
    one = swept()
    back = Sweep.from_json(json.loads(json.dumps(one.as_json())))
    assert back.table() == one.table()
    assert (back.names, back.refused, back.fell_back) == (one.names, one.refused, one.fell_back)
