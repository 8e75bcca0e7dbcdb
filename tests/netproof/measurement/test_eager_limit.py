"""The eager limit is found where there is one, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_curves import POWERS, curve, link

from netproof.measurement.case import Curve
from netproof.measurement.landmarks import eager_limit, eager_limit_alongside, landmarks

CURVES = Path(__file__).parents[2] / "data" / "curves"


def handshake(plain, size_above, cost_us):
    return curve(
        plain.sizes,
        [
            time + (cost_us if size >= size_above else 0)
            for size, time in zip(plain.sizes, plain.time_us, strict=True)
        ],
    )


@pytest.mark.parametrize("size_above", [4096, 131072, 512 * 1024])
def test_a_round_trip_more_from_one_size_on_is_an_eager_limit(size_above):
    limit = eager_limit(handshake(link(), size_above, 1e4))
    assert (limit.size_below, limit.size_above) == (size_above // 2, size_above)
    assert limit.step_us == pytest.approx(1e4)


def spike(factor):
    return curve(POWERS, [t * (factor if n == 14 else 1) for n, t in enumerate(link().time_us)])


@pytest.mark.parametrize(
    "one",
    [
        link(),
        # Steps below a latency or a tenth of the time.
        handshake(link(latency_us=30), 4096, 29),
        handshake(link(latency_us=30), 131072, 60),
        *map(spike, (8.0, 1.6, 0.6, 0.2)),
        # A rate that collapses for good.
        curve(POWERS, [30 + size / 100 + max(0, size - 16384) / 2 for size in POWERS]),
    ],
)
def test_a_line_a_small_step_a_spike_a_dip_and_another_rate_are_no_eager_limits(one):
    assert eager_limit(one) is None
    assert "stays for all larger" in landmarks(one, None).why("eager_limit")


RECORDED = json.loads((CURVES / "eager-limits.json").read_text())


def recorded(library: str, limit: str) -> tuple[Curve, Curve]:
    """The curves of a library with this limit and with another."""
    of = RECORDED[library]
    other = "65536" if limit == "default" else "default"
    return tuple(Curve(tuple(of["sizes"]), tuple(of[one])) for one in (limit, other))


@pytest.mark.parametrize(
    ("library", "limit", "between"),
    [
        ("mpich", "1024", (1024, 1536)),
        ("mpich", "16384", (16384, 24576)),
        # Open MPI counts its header.
        ("openmpi4", "1024", (768, 1024)),
        ("openmpi4", "4096", (3072, 4096)),
        # A larger step, where both ask already, is not the limit.
        ("openmpi4 over UCX, 4096", "4096", (3072, 4096)),
        ("openmpi4 over UCX, 16384", "16384", (12288, 16384)),
    ],
)
def test_next_to_the_default_a_limit_shows_where_it_is(library, limit, between):
    curve, default = recorded(library, limit)
    found = eager_limit_alongside(curve, default)
    assert (found.size_below, found.size_above) == between
    # It asks first, which takes two latencies, less what goes on meanwhile.
    assert 10 < found.step_us < 100


def test_where_only_the_default_asks_no_limit_is_found():
    default, curve = recorded("openmpi5, default of 512 bytes", "default")
    assert eager_limit_alongside(curve, default) is None
    assert eager_limit_alongside(default, default) is None
