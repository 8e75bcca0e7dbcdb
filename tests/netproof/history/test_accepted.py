"""An acceptance is kept whole, read whole, and covers what it says."""

from __future__ import annotations

import pytest

from netproof.errors import NetproofError
from netproof.history import series
from netproof.history.selection import Quantity, Selection
from netproof.history.series import Acceptance
from netproof.store import Store

GIGE = Selection(partition="gige")


def acceptance(stored, selection: Selection = GIGE, **values) -> Acceptance:
    said = {"reason": "jumbo frames", "name": "jd", "at": "2026-09-03 08:00:00", **values}
    return Acceptance(stored.system, stored.name, covers=selection, **said)


def test_what_is_kept_is_what_is_read_once_and_another_alongside_it(nights):
    stored = nights.add(0)
    everything = Selection(("Sendrecv", "4 ranks"), "gige", "mpich", Quantity.LATENCY)
    kept = acceptance(stored, everything)
    for _ in range(2):
        path = series.accept(nights.store, kept)
        assert path.parent == nights.store.folder / "accepted" / "testbed"
        assert series.acceptances(nights.store, "testbed") == (kept,)
    assert series.acceptances(nights.store, "another") == ()
    series.accept(nights.store, acceptance(stored, reason="and a new firmware"))
    assert len(series.acceptances(nights.store, "testbed")) == 2
    with pytest.raises(NetproofError, match=r"has no session 20260902T010000-00000001 of testbed"):
        series.accept(nights.store, acceptance(nights.stored(1)))
    # A store with acceptances is a store.
    assert Store.create(nights.store.folder).sessions() == (stored,)
    (nights.store.folder / "netproof-store.json").unlink()
    with pytest.raises(NetproofError, match="is no store and not empty"):
        Store.create(nights.store.folder)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"reason": "jumbo', '"reason": "jum\nbo', ""),
        ('"format": 1', '"format": 2', "format: found 2, expected 1, the only format known here"),
        ('"jumbo frames"', "5", "reason: found 5, expected text"),
        ('"jumbo frames"', '""', "an acceptance needs a reason"),
        ('"cases": []', '"cases": ["("]', ""),
        ('"quantity": null', '"quantity": "speed"', "covers.quantity: found 'speed', expected"),
        ("testbed", "another", ""),
        (' "partition": "gige"', ' "partition": null', "an acceptance says what it covers"),
        ('"at": ', '"by": 1, "at": ', ""),
        ("20260901T010000", "20260801T010000", ""),
    ],
)
def test_a_damaged_one_is_an_error_with_its_path_and_key(nights, old, new, reason):
    path = series.accept(nights.store, acceptance(nights.add(0)))
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(NetproofError) as caught:
        series.acceptances(nights.store, "testbed")
    place, _, why = str(caught.value).partition(": no acceptance can be read from it: ")
    assert place == str(path)
    assert reason in why


@pytest.mark.slow
def test_its_session_or_the_next_that_is_looked_at_begins_the_new_level(nights):
    stored = [nights.add(night) for night in range(4)]
    found = series.read(nights.store, "testbed", stored)
    one = found.series[0]
    begins = [acceptance(stored[1])]
    assert series.accepted_nights(begins, stored, one) == {1}
    assert series.accepted_nights(begins, [stored[0], *stored[2:]], one) == {1}
    assert series.accepted_nights(begins, stored[2:], one) == set()
    assert series.accepted_nights(begins, stored[:1], one) == set()
    elsewhere = [acceptance(stored[1], Selection(partition="roce"))]
    assert series.accepted_nights(elsewhere, stored, one) == set()


@pytest.mark.slow
def test_a_pool_is_covered_with_half_of_it(nights):
    found = series.read(nights.store, "testbed", [nights.add(0)])
    (pool,) = [
        pool
        for pool in found.pools
        if pool.where == ("gige", "mpich") and pool.quantity is Quantity.PEAK
    ]
    functions = {(it.function, it.ranks) for it in pool.cases}
    assert functions == {("PingPong", 2), ("Sendrecv", 2), ("Sendrecv", 4)}
    assert Selection(("Sendrecv",)).covers(pool)
    assert not Selection(("PingPong",)).covers(pool)
