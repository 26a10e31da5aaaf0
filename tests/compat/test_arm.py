"""``topi.arm_cpu``: computations under TVM's names, scheduled for the processor of the target."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, topi
from tilewright.topi.arm_cpu.conv2d_gemm import is_aarch64_arm  # type: ignore[import-not-found]


def test_the_processor_of_the_target() -> None:
    """The triple decides, not the machine that compiles."""
    with tvm.target.Target("llvm -device=arm_cpu -mtriple=aarch64-linux-gnu"):
        assert is_aarch64_arm()
    with tvm.target.Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64"):
        assert not is_aarch64_arm()


def test_a_quantized_convolution() -> None:
    """The sums of products of 8 bits, by the schedule of the same name."""
    data = te.placeholder((1, 6, 6, 8), dtype="int8", name="data")
    kernel = te.placeholder((3, 3, 8, 16), dtype="int8", name="kernel")
    with tvm.target.Target("llvm"):
        made = topi.arm_cpu.compute_conv2d_NHWC_quantized_interleaved(data, kernel, 1, 1, 1, "int32")
        schedule = topi.arm_cpu.schedule_conv2d_NHWC_quantized_interleaved([made])
        function = tvm.build(schedule, [data, kernel, made])
    random = np.random.default_rng(0)
    values = [random.integers(-128, 128, shape).astype("int8") for shape in ((1, 6, 6, 8), (3, 3, 8, 16))]
    result = tvm.nd.empty((1, 6, 6, 16), "int32")
    function(*(tvm.nd.array(one) for one in values), result)
    wide = np.pad(values[0].astype("int32"), ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(1, 2))
    np.testing.assert_array_equal(
        result.numpy(), np.einsum("nhwckl,klco->nhwo", windows, values[1].astype("int32"))
    )


def test_code_for_another_processor() -> None:
    """A schedule compiles for ARM on any machine; names that are nowhere are errors with advice."""
    data, kernel = te.placeholder((1, 8, 8, 8), name="data"), te.placeholder((8, 1, 3, 3), name="kernel")
    with tvm.target.Target("llvm -device=arm_cpu -mtriple=aarch64-linux-gnu -mattr=+neon"):
        made = topi.arm_cpu.depthwise_conv2d_nchw(data, kernel, 1, 1, 1)
        schedule = topi.arm_cpu.schedule_depthwise_conv2d_nchw([made])
        assert "fmla" in tvm.build(schedule, [data, kernel, made]).get_source("asm")
    with pytest.raises(AttributeError, match="nonsense"):
        topi.arm_cpu.nonsense
