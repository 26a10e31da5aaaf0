"""The limits of the machine."""

import pytest

from tilewright.codegen.llvm.limits import Bandwidth, MachineLimits, bandwidth, machine_limits, peak_flops
from tilewright.codegen.llvm.peaks import RATE_TYPES, peak_operations, rate_type


@pytest.fixture(scope="module")
def limits():
    """What is measured with one thread."""
    return machine_limits(1)


def test_measured_limits_are_plausible(limits):
    """At least a hundred million operations and bytes a second; nearer levels are smaller and faster."""
    assert limits.threads == 1 and limits.flops_per_second > 1e8
    assert limits.bandwidths[-1].level == "memory" and limits.bandwidths[-1].capacity_bytes is None
    speeds = [one.bytes_per_second for one in limits.bandwidths]
    assert speeds == sorted(speeds, reverse=True) and speeds[-1] > 1e8
    sizes = [one.capacity_bytes for one in limits.bandwidths[:-1]]
    assert sizes == sorted(sizes)


def test_single_measurements():
    """The benchmarks ask for the peak, and for copying and reading, alone."""
    assert peak_flops(repeats=1, steps=10_000) > 1e7
    assert set(bandwidth(8, 2, repeats=1)) == {"copy", "read"}


MADE_UP = MachineLimits("made up", 2, 100e9, (Bandwidth("L2", 1000, 50e9), Bandwidth("memory", None, 10e9)))


@pytest.mark.parametrize(
    ("flops", "size", "seconds"),
    [
        (100e9, 0, 1.0),
        (0, 1000, 1000 / 50e9),
        (0, 3000, 1000 / 50e9 + 2000 / 10e9),
        (1e9, 10e9 + 1000, 1.0 + 1000 / 50e9),
    ],
    ids=["compute", "cache", "memory", "both"],
)
def test_least_time_is_the_slower_of_two(flops, size, seconds):
    """Computing and moving overlap at best; what fits a level comes from it, and the rest from the next."""
    assert MADE_UP.least_seconds(flops, size) == pytest.approx(seconds)


def test_each_element_type_has_its_own_peak():
    """int8 is compared with what int8 instructions can do, and a type that was not measured with float32."""
    limits = MachineLimits("made up", 1, 100e9, (Bandwidth("memory", None, 10e9),), {"int8": 400e9})
    assert limits.least_seconds(400e9, 0, "uint8") == pytest.approx(1.0)
    assert limits.least_seconds(100e9, 0, "float16") == pytest.approx(1.0)
    assert limits.best_of(MADE_UP).peaks == {"int8": 400e9}


@pytest.mark.parametrize("dtype", RATE_TYPES)
def test_peak_of_every_type_can_be_measured(dtype):
    """Every type of which a kernel can be has a rate on this machine."""
    assert peak_operations(dtype, repeats=1, steps=10_000) > 1e7


@pytest.mark.parametrize(
    ("dtype", "rate"), [("uint8", "int8"), ("bool", "int8"), ("float32x4", "float32"), ("custom", "float32")]
)
def test_types_are_grouped_by_rate(dtype, rate):
    """Signs and lanes make no difference, and an unknown type counts as float32."""
    assert rate_type(dtype) == rate


def test_better_of_two_measurements():
    """Each figure is the better one, and a level that is no faster than a larger one goes."""
    slow = MachineLimits("made up", 2, 120e9, (Bandwidth("L2", 1000, 40e9), Bandwidth("memory", None, 60e9)))
    best = MADE_UP.best_of(slow)
    assert best.flops_per_second == 120e9
    assert best.bandwidths == (Bandwidth("memory", None, 60e9),)
    assert MADE_UP.best_of(MADE_UP) == MADE_UP
