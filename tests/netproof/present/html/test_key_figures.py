"""The key figures of a report: latency and bandwidth of one pair of nodes, with their past."""

from __future__ import annotations

import dataclasses

from netproof.history.selection import Quantity
from netproof.history.series import Nights, Series
from netproof.history.values import NOTHING
from netproof.measurement.case import mbit_s
from netproof.present.html.report import Report, key_figures
from netproof.store import StoredSession
from netproof.verdict import session_verdict

NIGHTS = [StoredSession(f"2026070{day}T000000-0123abcd", "testbed") for day in (1, 2, 3)]


def column(table, name, place=0):
    at = [number for number, title in enumerate(table.head) if title == name][place]
    return [row[at] for row in table.rows]


def followed(case, *values):
    series = tuple(Series((case,), one, values) for one in (Quantity.LATENCY, Quantity.ASYMPTOTIC))
    return Nights("testbed", tuple(NIGHTS), series, (), NOTHING, 0, 0)


def test_each_pair_of_nodes_has_a_row_with_latency_and_share_of_the_line(judge):
    report = Report(judge("netpipe.json", "testbed:gige"))
    table = key_figures(report)
    cases = report.judged.verdict.cases
    first = next(one for one in cases if one.measured and one.case.path == "inter-node")
    latency = f"{first.measured.landmarks.latency_us:.4g}"
    assert float(column(table, "latency, µs")[0]) == float(latency)
    assert column(table, "of line rate")[0].endswith("% (no least, ≤ 102%)")
    assert "last nights" not in table.head


def test_each_judged_figure_has_beside_it_what_it_must_be(judge, monkeypatch):
    judged = judge("netpipe.json", "testbed:gige")
    site = judged.matrix.partitions["gige"]
    line = {"warn_below": 0.6, "fail_below": 0.5}
    site = site.model_copy(update={"criteria": {**site.criteria, "line_rate": line}})
    matrix = dataclasses.replace(judged.matrix, partitions={"gige": site})
    monkeypatch.setattr(
        session_verdict,
        "references_of",
        lambda _: lambda case: {"paired_share": (100, -0.2, 0, "%")},
    )
    table = key_figures(Report(dataclasses.replace(judged, matrix=matrix)))
    assert column(table, "of line rate")[0].endswith("% (≥ 60%, ≤ 102%)")
    of_mpi = [one for one in column(table, "MPI loss") if one != "–"]
    assert of_mpi
    assert all(one.endswith("% (≤ 20%)") for one in of_mpi)
    assert any(one.endswith(" (≥ 0.25)") for one in column(table, "floor"))
    assert "in brackets: what a figure must be" in table.caption


def test_a_partition_that_the_site_has_no_more_has_the_bounds_of_its_session(judge):
    judged = judge("netpipe.json", "testbed:gige")
    matrix = dataclasses.replace(judged.matrix, partitions={})
    table = key_figures(Report(dataclasses.replace(judged, matrix=matrix)))
    assert any(one.endswith("% (≤ 20%)") for one in column(table, "MPI loss"))


def test_the_last_nights_are_blocks_with_their_range_and_missing_ones_are_blank(judge):
    judged = judge("netpipe.json", "testbed:gige")
    case = next(one.case for one in judged.verdict.cases if one.case.path == "inter-node")
    table = key_figures(Report(judged, nights=followed(case, 10.0, None, 20.0)))
    assert column(table, "last nights")[0] == "▁ █ 10–20"
    assert set(column(table, "last nights")[1:]) == {"–"}
    flat = key_figures(Report(judged, nights=followed(case, 10.0, 10.1, 10.0)))
    assert column(flat, "last nights")[0].startswith(("▄▅▄ ", "▄▄▄ ", "▅▅▅ "))


def test_a_reference_is_in_the_table_and_a_band_of_the_chart(judge, monkeypatch):
    bounds = {"latency_us": (8, None, 0.5, "us"), "asymptotic_mb_s": (100, -0.1, 0.2, "MB/s")}
    monkeypatch.setattr(session_verdict, "references_of", lambda matrix: lambda case: bounds)
    report = Report(judge("netpipe.json", "testbed:gige"))
    table = key_figures(report)
    assert set(column(table, "reference")) == {"at most 12"}
    assert set(column(table, "reference", 1)) == {"90 to 120"}
    (band,) = report.pair(next(iter(report.netpipe)))[0].data["references"]
    assert (band["low_mbit_s"], band["high_mbit_s"]) == (mbit_s(90), mbit_s(120))
