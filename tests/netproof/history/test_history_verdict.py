"""A change is found where it is, with what else changed, and alarms until it is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_nights import by, mtu, unchanged

from netproof.errors import NetproofError
from netproof.history import history_verdict, series
from netproof.history.changes import ChangeKind
from netproof.history.history_verdict import (
    INCONCLUSIVE,
    NOTHING_WORSE,
    WORSE,
    SeriesState,
    confidence,
    judge,
)
from netproof.history.selection import Quantity, Selection
from netproof.history.series import Acceptance

SLOW = by(1.2, environment="mpich")


def accept(nights, stored, **selection) -> None:
    text = ("intended", "jd", "2026-10-01 08:00:00")
    covers = Selection(**selection)
    series.accept(nights.store, Acceptance("testbed", stored.name, *text, covers))


def places(verdict) -> set[tuple[str, str]]:
    return {(event.partition, event.environment) for event in verdict.events}


@pytest.mark.slow
def test_the_pooled_ones_come_first_then_the_larger(nights):
    nights.add_many(30, {24: lambda case: 1.2 if case["function"] == "Sendrecv" else 1.1})
    for event in judge(nights.store).events:
        single = [not shift.of.pooled for shift in event.shifts]
        assert single == sorted(single)
        assert not single[0]
        sizes = [
            abs(shift.change.size)
            for shift in event.single
            if shift.of.quantity is Quantity.LATENCY
        ]
        assert sizes == sorted(sizes, reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "changed"),
    [
        (24, ["Changed since the session before, 2026-09-24 01:00: {}."]),
        (
            25,
            [
                "Nothing that is recorded changed since the session before, 2026-09-24 01:00.",
                "Changed from 2026-09-25 01:00 to 2026-09-26 01:00: {}.",
            ],
        ),
    ],
    ids=["that night", "a night later"],
)
def test_what_else_changed_that_night_is_named_or_else_around_it(nights, first, changed):
    for night in range(30):
        nights.add(night, SLOW if night >= 24 else by(1), mtu if night >= first else unchanged)
    (event,) = judge(nights.store).events
    difference = "mtu: 1500 → 1400 (gige-1, gige-2, gige-3, gige-4)"
    assert [*event.changed()] == [
        *(one.format(difference) for one in changed),
        "Not known: bus, coalescing, firmware, nic, 5 sysctls.",
    ]
    assert difference in event.sentence()


@pytest.mark.slow
def test_it_alarms_every_night_until_it_is_accepted_and_what_is_lost_later_shows(nights):
    nights.add_many(40, {20: by(1.2)})
    for night in (24, 39):
        assert judge(nights.store, session=nights.stored(night).name).status == WORSE
    accept(nights, nights.stored(20), environment="other")
    verdict = judge(nights.store)
    assert (verdict.status, places(verdict)) == (WORSE, {("gige", "mpich")})
    accepted = {one.of.where for one in verdict.shifts if one.state is SeriesState.ACCEPTED}
    assert accepted == {("gige", "other")}
    # A session soon after the change ends it too.
    accept(nights, nights.stored(26), partition="gige")
    verdict = judge(nights.store)
    assert (verdict.status, verdict.events) == (NOTHING_WORSE, ())
    for night in range(40, 46):
        nights.add(night, by(1.5, environment="mpich"))
    assert judge(nights.store).status == WORSE


@pytest.mark.slow
def test_what_goes_back_ends_and_levels_follow_it(nights):
    nights.add_many(40, {20: by(1.5, environment="mpich"), 28: by(1)})
    verdict = judge(nights.store)
    assert verdict.status == NOTHING_WORSE
    ended = {shift.of for shift in verdict.shifts if shift.state is SeriesState.ENDED}
    latencies = [one for one in ended if one.quantity is Quantity.LATENCY and not one.pooled]
    assert latencies
    for one in latencies:
        first, last, level, low, high = zip(*verdict.levels(one), strict=True)
        assert (first[:3], last[:2], last[-1]) == ((0, 20, 28), (19, 27), 39)
        assert level[:3] == pytest.approx((level[0], 1.5 * level[0], level[0]), rel=0.02)
        assert all(map(float.__lt__, low, level))
        assert all(map(float.__lt__, level, high))


@pytest.mark.slow
def test_what_was_off_tonight_is_reported_even_where_chance_brings_as_much(nights):
    nights.add_many(29)
    nights.add(29, by(1.5, environment="mpich", function="Barrier", ranks=4))
    verdict = judge(nights.store)
    assert verdict.status == NOTHING_WORSE
    (odd,) = verdict.bad_nights
    assert "IMB Barrier 4 ranks, latency" in {shift.what for shift in odd.shifts}
    assert {shift.state for shift in odd.shifts} == {SeriesState.ODD_NIGHT}
    assert odd.sentence() in verdict.sentences()
    nights.add(30)
    assert judge(nights.store).bad_nights == ()


@pytest.mark.slow
def test_a_drift_is_one_event_with_what_differs_from_before_it_until_now(nights):
    for night in range(70):
        slow = by(1 + 0.0025 * max(night - 25, 0), environment="mpich")
        nights.add(night, slow, mtu if night > 40 else unchanged)
    (event,) = (event for event in judge(nights.store, last=70).events if event.worse)
    assert (event.partition, event.environment) == ("gige", "mpich")
    assert {shift.change.kind for shift in event.shifts} == {ChangeKind.DRIFT}
    assert len({shift.of for shift in event.shifts}) == len(event.shifts)
    for shift in event.single:
        assert abs(shift.change.size) > 0.05
    assert event.culprits.after == nights.stored(69)
    assert event.changed()[0].endswith(
        "until 2026-11-09 01:00: mtu: 1500 → 1400 (gige-1, gige-2, gige-3, gige-4)."
    )


@pytest.mark.slow
def test_a_score_that_moved_by_its_own_times_is_its_own(nights):
    nights.add_many(30, {24: by(1.2, environment="other")})
    verdict = judge(nights.store)
    assert places(verdict) == {("gige", "other")}
    (event,) = verdict.events
    assert Quantity.SCORE in {shift.of.quantity for shift in event.shifts}


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
def test_too_few_nights_are_inconclusive(nights, count):
    nights.add_many(count)
    verdict = judge(nights.store)
    assert verdict.status == INCONCLUSIVE
    least = history_verdict.least_nights()
    assert f"{count} session" in verdict.too_few
    assert f"too few to judge, {least} needed" in verdict.too_few
    assert verdict.sentences() == (verdict.too_few,)


def test_the_manual_says_how_many_nights_are_needed():
    text = (Path(__file__).parents[3] / "docs" / "history.md").read_text()
    assert f"Nothing is reported before {history_verdict.least_nights()} nights that" in text


@pytest.mark.slow
def test_sessions_in_which_nothing_was_measured_are_said(nights):
    def nothing(rows):
        for name in ("launches", "curves"):
            rows[name] = []
        for row in rows["cases"]:
            for key in list(row)[list(row).index("jobid") :]:
                row[key] = None
            row["complete"] = False

    nights.add(0, change=nothing)
    said = "no case was measured whole by undisturbed launches in them"
    assert said in judge(nights.store).too_few


@pytest.mark.slow
def test_a_part_keeps_the_verdict_of_the_whole(stepped):
    verdict = judge(stepped.store)
    of_other = verdict.of(Selection(environment="other"))
    assert of_other.status == NOTHING_WORSE
    assert of_other.tested == verdict.tested
    of_one = verdict.of(Selection(("PingPong",), environment="mpich"))
    assert of_one.status == WORSE
    assert {
        case.function for event in of_one.events for s in event.single for case in s.of.cases
    } == {"PingPong"}
    with pytest.raises(NetproofError, match="no series of testbed fits: partition roce"):
        verdict.of(Selection(partition="roce"))


def test_confidence_has_the_digits_that_it_takes():
    assert confidence(0.2) == "80 %"
    assert confidence(0.001) == "99.9 %"
    assert confidence(0.00002) == "99.998 %"
    assert confidence(1e-30) == "above 99.9999 %"
