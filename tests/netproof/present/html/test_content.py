"""A report shows what was measured, judged and found, and nothing else."""

from __future__ import annotations

import dataclasses
import json

import pytest

from netproof.criteria import Level, slower
from netproof.errors import NetproofError
from netproof.present.html import content, figures, page
from netproof.present.html.charts import MARKS, Looks
from netproof.present.html.content import CaseState
from netproof.present.html.report import Report


@pytest.fixture
def two_switches(judge):
    return judge("two-switches.json")


@pytest.fixture
def sick(judge):
    return judge("sick.json", "testbed:gige")


def _group(judged, name):
    return next(group for group in content.groups(judged.verdict) if group.name == name)


def _figure(judged, name):
    made = Report(judged)
    return made.figure(next(group for group in made.groups if group.name == name))


def test_a_case_is_as_bad_as_the_worst_that_was_ruled(sick):
    members = _group(sick, "netpipe-tcp-inter-node-oneway").members
    failed = next(one for one in members if one.result is not None and not one.passed)

    def ruled(level: Level) -> CaseState:
        findings = tuple(
            dataclasses.replace(finding, level=level) if finding.repeated else finding
            for finding in failed.findings
            # Its envelope is inconclusive as it was recorded.
            if finding.level is not Level.INCONCLUSIVE
        )
        return content.state_of(dataclasses.replace(failed, faults=(), findings=findings))

    assert ruled(Level.FAIL) is CaseState.FAILED
    assert ruled(Level.INCONCLUSIVE) is CaseState.INCONCLUSIVE
    assert ruled(Level.WARN) is CaseState.WARNED
    assert ruled(Level.SHOWN) is CaseState.UNCONFIRMED
    expected = dataclasses.replace(failed, faults=(), findings=(), expected="fails as expected")
    assert content.state_of(expected) is CaseState.EXPECTED
    assert content.state_of(dataclasses.replace(expected, expected="")) is CaseState.PASSED


def test_the_envelope_is_that_of_the_criterion(two_switches):
    group = _group(two_switches, "imb-sendrecv-2-ranks")
    curves = {content.configuration(one.case): one.measured.curve for one in group.members}
    settings = two_switches.matrix.partitions["gige"].settings().envelope
    expected = slower.envelope(curves, settings)
    rows = _figure(two_switches, "imb-sendrecv-2-ranks").data["envelope"]
    assert {row["size_bytes"]: (row["time_us"], row["fastest"]) for row in rows} == expected


def test_a_size_between_those_of_the_curve_is_marked_where_it_was_measured_again(sick):
    group = _group(sick, "netpipe-tcp-inter-node-oneway")
    one = next(one for one in group.members if one.again is not None)
    size = next(s for s in one.curves_again[0].sizes if s not in one.measured.curve.sizes)
    flagged = next(finding for finding in one.findings if finding.repeated is not None)
    finding = dataclasses.replace(flagged, size=size, level=Level.FAIL)
    closer = dataclasses.replace(one, findings=(finding,))
    (row,) = figures.flags(closer)
    times = [curve.time_us[curve.sizes.index(size)] for curve in one.curves_again]
    assert (row["size_bytes"], row["mark"]) == (size, "failed")
    assert min(times) <= row["time_us"] <= max(times)


def test_netpipe_has_throughput_and_signature_for_each_switch_with_its_line_rate(two_switches):
    throughput, signature = Report(two_switches).pair(("inter-node", "oneway", "fast-ethernet"))
    assert signature.rows == throughput.rows
    assert {row["configuration"] for row in throughput.rows} == {
        "mpich TCP",
        "mpich MPI",
        "intelmpi TCP",
        "intelmpi MPI",
    }
    assert [line["label"] for line in throughput.data["line rates"]] == [
        "line rate 94.1 Mbit/s (11.8 MB/s)"
    ]
    why = "did not run: the session does not have it"
    assert throughput.missing["openmpi4 NetPIPE TCP"] == why


def test_above_so_many_cases_each_partition_has_pages_of_its_own(two_switches, monkeypatch):
    monkeypatch.setattr(content, "SPLIT_ABOVE", 100)
    made = Report(two_switches)
    whole = [one.case for one in two_switches.verdict.cases]
    assert sorted(map(str, whole)) == sorted(
        str(one.case) for group in made.groups for one in group.members
    )
    assert all({one.case.partition for one in g.members} == {g.partition} for g in made.groups)
    pages = dict(page.pages(made))
    assert {"partition-gige.html", "imb-sendrecv-gige.html", "studies.html"} <= set(pages)
    assert 'href="partition-fast-ethernet.html"' in pages["index.html"]
    # The envelope is still that of all configurations.
    split = _figure(two_switches, "imb-sendrecv-2-ranks-gige")
    monkeypatch.undo()
    whole = _figure(two_switches, "imb-sendrecv-2-ranks")
    assert split.data["envelope"] == whole.data["envelope"]


def test_two_groups_never_share_a_file(two_switches):
    verdict = two_switches.verdict
    first = verdict.cases[0]
    twin = dataclasses.replace(first, case=dataclasses.replace(first.case, function="TCP"))
    doubled = dataclasses.replace(verdict, cases=(first, twin))
    with pytest.raises(NetproofError, match="rename one"):
        content.groups(doubled)


@pytest.mark.slow
def test_bands_that_would_hide_each_other_are_shown_one_at_a_time(judge):
    few = _figure(judge("two-switches.json"), "imb-sendrecv-2-ranks")
    rows = [
        {**row, "configuration": f"{n} {row['configuration']}"}
        for n in range(3)
        for row in few.rows
    ]
    looks = Looks(("gige", "fast-ethernet"), ("mpich", "intelmpi"))
    many = figures.over_size("many", rows, looks)
    assert (few.hint, many.hint) == ("", figures.CAPTIONS["crowded band"])
    assert figures.CAPTIONS["band"] in few.sentences
    assert figures.CAPTIONS["band"] not in many.sentences
    single = [{**row, "launches": 1} for row in few.rows]
    assert figures.CAPTIONS["band"] not in figures.over_size("one launch", single, looks).sentences


@pytest.mark.slow
def test_what_is_inconclusive_has_a_mark_and_a_word_of_its_own(sick):
    figure = _figure(sick, "netpipe-tcp-inter-node-oneway")
    # Every value of the declared chart is filled in.
    assert '"@' not in json.dumps(figure.for_page())
    data = figure.data
    marks = {row["mark"] for rows in data.values() for row in rows if "mark" in row}
    flag = data["inconclusive"][0]
    assert flag["criterion"] == "envelope"
    assert set(MARKS) >= marks
    assert len({mark["shape"] for mark in MARKS.values()}) == len(MARKS)
    assert len({(state.sign, state.word) for state in CaseState}) == len(CaseState)
    looks = {state.look: state for state in CaseState}
    assert looks["inconclusive"] is CaseState.INCONCLUSIVE
