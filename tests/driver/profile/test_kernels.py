"""Kernels: what their numbers mean."""

import pytest

from tilewright.codegen.llvm.limits import Bandwidth, MachineLimits
from tilewright.driver.profile.kernels import KernelProfile, Step, measure_kernels, short_name
from tilewright.support.errors import TilewrightError

LIMITS = MachineLimits("made up", 1, 100e9, (Bandwidth("L2", 10_000, 50e9), Bandwidth("memory", None, 10e9)))


def step(kernel, seconds, flops, size, *names):
    """One call of a kernel."""
    return Step(0, f"{kernel}_0", kernel, seconds, flops, size, ("float32[1]",), names)


def test_rates_and_limits_of_a_kernel():
    """Two calls of 1 MFLOP on 1000 bytes in 20 µs each: 50 GFLOP/s, half of what the machine can do."""
    profile = KernelProfile(
        (step("conv", 20e-6, 10**6, 1000, "a"), step("conv", 20e-6, 10**6, 1000, "a", "b")), 50e-6, 1, LIMITS
    )
    (kernel,) = profile.kernels()
    assert kernel.calls == 2 and kernel.seconds == pytest.approx(40e-6)
    assert kernel.gflops_per_second == pytest.approx(50)
    assert kernel.gigabytes_per_second == pytest.approx(0.05)
    assert kernel.of_limit == pytest.approx(0.5) and kernel.bound_by == "compute"
    assert kernel.model_nodes == ["a", "b"]
    assert profile.of_limit == pytest.approx(0.5)


@pytest.mark.parametrize(("size", "level", "share"), [(10_000, "L2", 0.2), (100_000, "memory", 9.2)])
def test_memory_bound_kernels_name_their_level(size, level, share):
    """A kernel that only moves is bound by the level that holds its data."""
    (kernel,) = KernelProfile((step("copy", 1e-6, 0, size),), 1e-6, 1, LIMITS).kernels()
    assert kernel.bound_by == level and kernel.of_limit == pytest.approx(share)


def test_what_is_not_known_is_none():
    """A graph that does not say its work, and a machine that was not measured, give no made-up numbers."""
    profile = KernelProfile((step("odd", 1e-6, None, 100),), 1e-6, 1, LIMITS)
    (kernel,) = profile.kernels()
    assert kernel.of_limit is None and kernel.bound_by is None and profile.of_limit is None
    profile = KernelProfile((step("odd", 1e-6, None, 100),), 1e-6, 1)
    (kernel,) = profile.kernels()
    assert kernel.flops is None and kernel.gflops_per_second is None
    assert kernel.of_limit is None and kernel.bound_by is None and profile.flops is None


def test_names_are_shortened_only_where_they_are_ours():
    """The prefix of generated kernels goes; other names stay."""
    assert short_name("tvmgen_default_fused_nn_relu_1a2b3c4d") == "nn_relu_1a2b3c4d"
    assert short_name("my_fused_kernel") == "my_fused_kernel"


def test_repeat_is_at_least_one():
    """Nothing can be said of no run."""
    with pytest.raises(TilewrightError, match="at least 1"):
        measure_kernels(None, "{}", repeat=0)  # type: ignore[arg-type]
