"""Statistics that stream: ranges grow, nothing is lost, and thresholds are where they should be."""

import numpy as np
import pytest

from tilewright.relay.quantize.scheme import METHODS, activation, weights
from tilewright.relay.quantize.statistics import (
    BINS,
    Statistics,
    divergence,
    least_squares,
    percentile,
    power_of_two,
)


def counted(*parts):
    """Statistics of several runs."""
    found = Statistics()
    for part in parts:
        found.add(np.asarray(part, "float32"))
    return found


def test_ranges_grow_without_losing_values():
    """A later run with larger values merges bins; every value stays counted, near where it was."""
    generator = np.random.default_rng(0)
    parts = [generator.standard_normal(1000) * scale for scale in (0.1, 1.0, 30.0)]
    found = counted(*parts)
    whole = np.concatenate(parts).astype("float32")
    assert found.counts.sum() == whole.size
    assert (found.least, found.most) == (float(whole.min()), float(whole.max()))
    assert found.limit >= found.largest > found.limit / 2
    np.testing.assert_allclose(found.power(), (whole.astype("float64") ** 2).mean(), rtol=0.01)
    median = found.centres[np.searchsorted(np.cumsum(found.counts), whole.size / 2)]
    assert abs(median - np.median(whole)) <= 4 * found.limit / BINS


def test_outliers_are_cut_off():
    """One value in a hundred thousand does not decide the range, except for minmax."""
    values = np.random.default_rng(1).standard_normal(200_000)
    values[0] = 1000.0
    found = counted(values)
    assert METHODS["minmax"](found) == 1000.0
    for threshold in (percentile(found, 0.9999), divergence(found)):
        assert 2.0 < threshold < 20.0


def test_least_squares_balances_rounding_and_clipping():
    """Of a normal distribution in 8 bits the best threshold is near four standard deviations."""
    found = counted(np.random.default_rng(2).standard_normal(500_000))
    assert 3.2 < least_squares(found) < 4.8


@pytest.mark.parametrize("method", METHODS)
def test_zero_is_exact(method):
    """Padding and ReLU need an integer for zero, and all-zero tensors a scale."""
    for values in (np.linspace(-1, 3, 1000), np.linspace(2, 3, 1000), np.zeros(10)):
        found = activation(counted(values), method)
        assert 0 <= found.zero <= 255 and found.scale > 0
        assert activation(counted(values), method, symmetric=True).zero == 0


def test_powers_of_two():
    """Scales that are shifts."""
    assert power_of_two(3.0) == 4.0 and power_of_two(0.0) == 1.0
    scale = activation(counted(np.linspace(-1, 3, 100)), "power2").scale
    assert np.log2(scale) == round(np.log2(scale))
    made = weights(np.random.default_rng(3).standard_normal((4, 9)).astype("float32"), 0, "power2")
    assert (np.log2(made.scale) % 1 == 0).all()


def test_weights_per_channel_are_nearer():
    """Channels of different magnitudes need scales of their own."""
    generator = np.random.default_rng(4)
    value = (generator.standard_normal((6, 20)) * np.logspace(-3, 1, 6)[:, None]).astype("float32")
    errors = [np.abs(weights(value, 0, "minmax", one).real() - value)[0].max() for one in (True, False)]
    assert errors[0] < 0.05 * errors[1]
    assert weights(value, 0, "minmax", False).scale.shape == (6,)
