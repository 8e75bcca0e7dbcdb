"""Where an effect lies, in noise that is normal and in noise that is not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import stdtr

from netproof.pairs.model import NoiseShape, Posterior


def test_a_posterior_of_normal_contrasts_is_normal():
    (where,) = Posterior.of(np.array([0.10, 0.14]), np.full(2, 0.05), NoiseShape(0.0, 1e-9))
    error = 0.05 / math.sqrt(2)
    assert where.quantile(0.5) == pytest.approx(0.12, abs=0.002)
    assert math.exp(where.log_at_most(0.0)) == pytest.approx(
        float(stdtr(math.inf, -0.12 / error)), rel=0.15
    )


def test_two_far_measurements_are_worth_what_the_disturbed_share_says():
    far, scales = np.array([0.69, 0.70]), np.full(2, 0.05)
    (often,) = Posterior.of(far, scales, NoiseShape(0.0, 0.01))
    (rarely,) = Posterior.of(far, scales, NoiseShape(0.0, 0.001))
    assert often.log_at_most(0.0) - rarely.log_at_most(0.0) == pytest.approx(
        2 * math.log(10), rel=0.05
    )
