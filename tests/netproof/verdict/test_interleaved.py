"""Which launches of two configurations are compared with each other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from netproof.measurement.case import Curve
from netproof.measurement.disturbance import Pace
from netproof.verdict.engine import NOT_TOGETHER, InterleavedLaunch, paired

MOST = 1.5
NEAR, FAR = (25.0, 26.0), (150.0, 151.0)


def one(time_us: float, distances: tuple[float, ...] = (), *noise: str) -> InterleavedLaunch:
    """A launch with one size, which its time identifies."""
    paces = tuple(Pace("mpi", ns) for ns in distances)
    return Curve((64,), (time_us,)), paces, noise


def times(rounds) -> list[tuple[float, float]]:
    """The pairs that count, by the times of their launches."""
    pairs = paired(rounds, MOST)
    return [(own.time_us[0], other.time_us[0]) for own, other, why in pairs if not why]


def test_launches_of_one_round_are_a_pair():
    rounds = [(one(1), one(10)), (one(2, NEAR), one(20, NEAR)), (one(3, FAR), one(30, FAR))]
    assert times(rounds) == [(1, 10), (2, 20), (3, 30)]


def test_where_the_cpus_were_moved_in_between_the_nearest_with_the_same_distance_is_taken():
    rounds = [
        (one(1, NEAR), one(10, FAR)),
        (one(2, FAR), one(20, NEAR)),
        (one(3, NEAR), one(30, NEAR)),
        (one(4, FAR), one(40, FAR)),
    ]
    assert times(rounds) == [(1, 20), (2, 10), (3, 30), (4, 40)]


def test_what_was_moved_while_it_ran_counts_with_nothing():
    rounds = [(one(1, (25.0, 150.0)), one(10, NEAR)), (one(2, NEAR), one(20, NEAR))]
    assert times(rounds) == [(2, 20)]
    (_, left) = paired(rounds, MOST)
    assert "25 ns apart in one half of a launch in mpi and 150 ns in the other" in left[2][0]


def test_what_was_disturbed_counts_with_nothing():
    rounds = [(one(1, NEAR, "busy"), one(10, NEAR, "busy")), (one(2, NEAR), one(20, FAR))]
    assert times(rounds) == []
    assert paired(rounds, MOST)[0][2] == ("busy",)


def test_without_distances_only_launches_of_one_round_had_one_pace():
    rounds = [(one(1, (), "busy"), one(10, (), "busy")), (one(2), one(20))]
    assert times(rounds) == [(2, 20)]
    # Only one of the rounds knows its paces, so the two cannot be paired.
    rounds = [(one(1, NEAR), one(10, FAR)), (one(2, (), "busy"), one(20))]
    pairs = paired(rounds, MOST)
    assert len(pairs) == 2
    assert all(why for _, _, why in pairs)
    assert NOT_TOGETHER not in pairs[0][2]


distances = st.sampled_from([NEAR, FAR, (25.0, 150.0), ()])
noise = st.sampled_from([(), (), ("busy",)])


@given(st.lists(st.tuples(distances, distances, noise), max_size=12))
def test_each_launch_is_in_one_pair_and_what_counts_is_alike(drawn):
    rounds = [
        (one(100 + number, own, *loads), one(200 + number, other, *loads))
        for number, (own, other, loads) in enumerate(drawn)
    ]
    pairs = paired(rounds, MOST)
    assert sorted(own.time_us[0] for own, _, _ in pairs) == [100 + n for n in range(len(drawn))]
    assert sorted(other.time_us[0] for _, other, _ in pairs) == [200 + n for n in range(len(drawn))]
    for own, other in times(rounds):
        mine, theirs = (drawn[int(own) - 100], drawn[int(other) - 200])
        assert not mine[2]
        assert not theirs[2]
        assert own + 100 == other or mine[0] == theirs[1] in (NEAR, FAR)
    # Nothing that counts is left over: as many as either side has of each distance.
    for distance in (NEAR, FAR):
        mine = sum(own == distance and not loads for own, _, loads in drawn)
        theirs = sum(other == distance and not loads for _, other, loads in drawn)
        found = [
            own
            for own, other in times(rounds)
            if drawn[int(own) - 100][0] == distance == drawn[int(other) - 200][1]
        ]
        with_nobody = sum(() in (own, other) and not loads for own, other, loads in drawn)
        assert min(mine, theirs) - with_nobody <= len(found) <= min(mine, theirs)
