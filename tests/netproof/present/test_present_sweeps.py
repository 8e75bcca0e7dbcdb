"""A sweep's result, of a setting or of algorithms: sentence, table, plain values and page."""

from __future__ import annotations

import dataclasses
import html
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from made_answers import faults, insist_on_keys, written
from made_text import printed

from netproof.experiments import parameters
from netproof.experiments.sweep import Gain, MessageRange, Sweep, SweepRow, SweepTable, turns
from netproof.measurement.case import Case, Curve
from netproof.present import sweeps as shown
from netproof.present.document import DataTable
from netproof.present.documents import plain
from netproof.present.html.folder import page_of
from netproof.session.measured import Launch
from netproof.site import site

ROOT = Path(__file__).resolve().parents[3]
EXTRAS = site.load(ROOT / "site-config" / "testbed.py")["systems"][0]["partitions"][0]["extras"]

CASE = Case("testbed", "gige", "mpich", "netpipe", "tcp", 2, 1, "inter-node", "oneway")
SIZES = (1, 1024, 131072)
GAINS = {"4": (0.5, 0.5, 1.5, 1.6), "6": (0.5, 0.5, 1.5, 1.0), None: (1.0,) * 4}


def launched(one: str, other: str, sizes: tuple[int, ...], times: Callable) -> tuple:
    """Turns of two values, and their launches; ``times``: in µs, of a value and a launch."""
    several = turns((one, other), 3, 1)
    return several, tuple(
        Launch(turn.launch, order, 0.0, 1.0, (), (Curve(sizes, times(turn.value, order)),))
        for order, turn in enumerate(several, 1)
    )


@pytest.fixture
def sweep() -> Sweep:
    """Two values; one is a third faster for long messages."""

    def times(value: str | None, order: int) -> tuple[float, ...]:
        return 25.0, 40.0, 1200.0 / (1.3 if value == "131072" else 1.0)

    how = parameters.found("socket-buffer", ()).assignment("tcp", "MPICH")
    made = launched("65536", "131072", SIZES, times)
    return Sweep(CASE, "socket-buffer", "socket buffer", how, "7", 1, EXTRAS, *made)


def algorithms_of(function: str = "Allreduce", sizes=(4, 1024, 65536, 524288)) -> Sweep:
    """Open MPI with two of its algorithms, which win for long messages, and two not taken."""

    def times(value: str | None, order: int) -> tuple[float, ...]:
        return tuple(
            (100.0 + size / 100) * (1 + 0.001 * (order % 3)) / gain
            for size, gain in zip(sizes, GAINS[value], strict=False)
        )

    how = parameters.library_of("Open MPI 5.0.11").setting(function)
    case = Case("testbed", "gige", "openmpi5", "imb", function, 4, 1)
    made = launched("4", "6", sizes, times)
    return Sweep(
        *(case, "algorithm", f"{function} algorithm", how, "7", 1, EXTRAS, *made),
        library="Open MPI 5.0.11",
        names=parameters.algorithms("Open MPI 5.0.11", function, ("4", "6", "17", "1")),
        refused={"17": "tuning-3.1 ended with status 1"},
        fell_back={"6": "cannot"},
    )


def text_of(one: Sweep) -> str:
    title, answer = shown.answer(one)
    return printed([title, *answer])


NONE = Gain(1.0, (0.99, 1.01))
FASTER = Gain(1.31, (1.24, 1.38))


def test_the_sentence_has_gain_interval_and_what_is_as_good(sweep):
    rows = (
        SweepRow(MessageRange.SHORT, None, {}, {"65536": NONE, "131072": NONE}),
        SweepRow(MessageRange.LONG, "131072", {"65536": 0.03}, {"65536": NONE, "131072": FASTER}),
    )
    by_size = {"65536": dict.fromkeys(SIZES, 1.0), "131072": dict.fromkeys(SIZES, 1.1)}
    vars(sweep)["table"] = SweepTable(rows, by_size, {}, 1.05, 5, 0)
    assert shown.recommendation(sweep) == (
        "socket buffer 128 KiB: +31 % (+24 to +38) for long messages, no change for short ones;"
        " statistically tied with it: 64 KiB (at most 3 % behind)"
    )
    text = text_of(sweep)
    assert "set it by  NPtcp -b 131072" in text
    assert "long (from 1/8 of the largest)" in text
    assert "5 rounds of 2 values, each alongside the default at the same time" in text
    document = written({"sweeps": plain([sweep])})
    insist_on_keys("measure tune", document)
    (one,) = document["sweeps"]
    assert one["recommended"]["value"] == "131072"
    assert [size for size, _ in one["values"][0]["by_size"]] == list(SIZES)


def test_a_gain_that_chance_explains_is_not_sure_and_what_nodes_have_already_is_left(sweep):
    assert shown.gain_in_words(Gain(0.999, (0.9, 1.3))) == "0 % (-10 to +30), not sure"
    text = text_of(dataclasses.replace(sweep, own=("131072",)))
    assert "All nodes have 128 KiB already: it is the default by name." in text
    assert "leave it as it is" in text


def test_the_page_has_the_recommendation_on_top_and_all_curves(sweep):
    text = html.unescape(page_of("Tuning", [("answer", *shown.answer(sweep))]))
    assert text.index("socket buffer 128 KiB: +30 %") < text.index("application/json")
    assert "<dt>set it by</dt><dd>NPtcp -b 131072</dd>" in text
    for name in ("default", "64 KiB", "128 KiB"):
        assert f'"configuration":"{name}"' in text
    # Colours stand for values here, not for libraries.
    assert '"title":"socket buffer"' in text
    assert "MPI × compiler" not in text
    assert math.isclose(sweep.table.drift, 1.0)


def test_where_an_eager_limit_was_taken_the_curve_steps_there():
    """Latency 25 µs and 100 MB/s; from 8 KiB on rendezvous adds a round trip."""
    sizes = tuple(1 << power for power in range(18))

    def times(value: str | None, order: int) -> tuple[float, ...]:
        late = 60.0 if value == "4096" else 0.0
        return tuple(25.0 + size / 100 + (late if size > 4096 else 0.0) for size in sizes)

    case = Case("testbed", "gige", "openmpi5", "netpipe", "mpi", 2, 1, "inter-node", "oneway")
    how = parameters.found("eager-limit", ("4096", "65536")).assignment("mpi", "Open MPI")
    made = launched("4096", "65536", sizes, times)
    one = Sweep(case, "eager-limit", "eager limit", how, "7", 1, EXTRAS, *made)
    text = text_of(one)
    assert "4096 to 8192 B" in text
    assert "With the default: step seen none." in text
    document = written({"sweeps": plain([one])})
    assert faults("measure tune", document) == []
    steps = {one["value"]: one["sizes"] for one in document["sweeps"][0]["eager_steps"]}
    assert steps == {None: None, "4096": [4096, 8192], "65536": None}


def test_the_terminal_has_who_wins_a_row_for_each_size_and_what_was_not_taken():
    one = algorithms_of()
    text = text_of(one)
    assert "testbed:gige openmpi5 IMB Allreduce 4 ranks" in text
    assert "Allreduce algorithm on 4 ranks: " in text
    assert shown.conclusion(one).endswith("; at the other 2 sizes none is faster for sure")
    (longest,) = [line for line in text.splitlines() if line.strip().startswith("512 KiB")]
    assert longest.split()[2:5] == ["4", "ring", "+60"]
    # Certainly slower is not a tie.
    (shortest,) = [line for line in text.splitlines() if line.strip().startswith("4 B")]
    assert "the library's own" in shortest
    flat = " ".join(text.split())
    assert (
        "set 4 ring by OMPI_MCA_coll_tuned_use_dynamic_rules=1"
        " OMPI_MCA_coll_tuned_allreduce_algorithm=4"
    ) in flat
    assert "Not taken, 17: tuning-3.1 ended with status 1" in flat
    assert "took its own choice instead of 6 rabenseifner: cannot" in flat
    assert "3 rounds of 2 algorithms, each alongside the library's own choice" in flat
    document = written({"sweeps": plain([one])})
    insist_on_keys("measure algorithms", document)
    (made,) = document["sweeps"]
    assert made["ranks"] == 4
    assert made["refused"] == [{"value": "17", "said": "tuning-3.1 ended with status 1"}]
    last = made["sizes"][-1]
    assert (last["bytes"], last["winner"]) == (524288, "4")
    assert last["gains"]["4"]["factor"] == pytest.approx(1.6, rel=0.01)


def test_a_barrier_has_one_row_and_no_size():
    one = algorithms_of("Barrier", (0,))
    assert next(b for b in shown.answer(one)[1] if isinstance(b, DataTable)).rows[0][:2] == (
        "-",
        "the library's own",
    )
    text = page_of("Tuning", [("answer", *shown.answer(one))])
    assert "There is no curve to draw." in text
