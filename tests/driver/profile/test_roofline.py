"""Kernels compared with limits that were measured while the machine was busy."""

import pytest

from tilewright.codegen.llvm.limits import Bandwidth, MachineLimits
from tilewright.driver.profile.kernels import KernelProfile, Step
from tilewright.driver.profile.roofline import MOST_MEASUREMENTS, compared_with_limits
from tilewright.driver.profile.table import summary_lines


def machine(flops, **peaks):
    """A machine of this peak."""
    return MachineLimits("made up", 1, flops, (Bandwidth("memory", None, 10e9),), peaks)


def one_kernel(**more):
    """1 MFLOP in 10 µs: 100 GFLOP/s."""
    step = Step(0, "conv_0", "conv", 10e-6, 10**6, 1000, ("float32[1]",), ("a",), **more)
    return KernelProfile((step,), 10e-6, 1)


def test_peak_of_a_busy_machine_is_measured_again():
    """The first two measurements are half of what the kernel reaches; the third is right, and the last one made."""
    answers = iter([machine(50e9), machine(51e9), machine(110e9)])
    profile = compared_with_limits(one_kernel, lambda threads, dtypes: next(answers))
    assert profile.of_limit == pytest.approx(100 / 110)
    assert profile.limit_measurements == 3 and not profile.above_limit
    assert not any("100 %" in line for line in summary_lines(profile))


def test_over_one_hundred_percent_is_never_without_a_reason():
    """A machine that stays busy leaves the kernel above the limit, and the report says why."""
    profile = compared_with_limits(one_kernel, lambda threads, dtypes: machine(51e9))
    assert [kernel.name for kernel in profile.above_limit] == ["conv"]
    assert profile.limit_measurements == MOST_MEASUREMENTS
    (line,) = [line for line in summary_lines(profile) if "100 %" in line]
    assert f"measured {MOST_MEASUREMENTS} times" in line and "other programs" in line


def test_winograd_is_compared_by_the_operations_that_it_does():
    """A quarter of the defined operations: a quarter of the limit, and both rates are named."""
    profile = compared_with_limits(
        lambda: one_kernel(operations=250_000), lambda threads, dtypes: machine(100e9)
    )
    (kernel,) = profile.kernels()
    assert kernel.of_limit == pytest.approx(0.25)
    assert kernel.gflops_per_second == pytest.approx(25)
    assert any("Winograd" in line and "100 GFLOP/s" in line for line in summary_lines(profile))


def test_the_peak_is_that_of_the_type():
    """An int8 kernel is not compared with float32's peak, and its type is asked for."""
    asked = []

    def limits(threads, dtypes):
        asked.append(list(dtypes))
        return machine(50e9, int8=200e9)

    profile = compared_with_limits(lambda: one_kernel(arithmetic="uint8"), limits)
    assert profile.of_limit == pytest.approx(0.5) and asked == [[], ["uint8"]]
