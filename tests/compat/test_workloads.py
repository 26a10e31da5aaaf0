"""Workloads of convolutions, and the tiles that templates of 8-bit operands fall back to."""

from __future__ import annotations

import pytest

from tilewright import autotvm, te
from tilewright.compat.workloads import (
    fallback_schedule,
    fallback_schedule_cpu_1x1_int8,
    fallback_schedule_cpu_common_int8,
    get_depthwise_workload,
    get_workload,
)
from tilewright.support.errors import ExpressionError
from tilewright.target import Target


@pytest.mark.parametrize(
    ("layout", "data", "kernel"),
    [("NCHW", (1, 8, 14, 20), (16, 4, 3, 3)), ("NHWC", (1, 14, 20, 8), (3, 3, 4, 16))],
)
def test_the_sizes_of_a_convolution(layout: str, data: tuple[int, ...], kernel: tuple[int, ...]) -> None:
    """Sizes are read by the layout; groups follow from the channels of the filter."""
    tensors = te.placeholder(data, dtype="uint8"), te.placeholder(kernel, dtype="int8")
    found = get_workload(*tensors, (1, 2), "SAME", 1, "int32", layout)
    assert (found.height, found.width, found.in_filter, found.groups, found.out_filter) == (14, 20, 8, 2, 16)
    assert (found.stride_h, found.stride_w, found.padt, found.out_width) == (1, 2, 1, 10)
    with pytest.raises(ExpressionError, match="NCHW, NHWC or HWCN"):
        get_workload(*tensors, 1, 0, 1, "int32", "HWNC")


def test_tiles_divide_the_result() -> None:
    """Columns are split by the largest divisor that registers hold, channels by the vector."""
    workload = get_workload(te.placeholder((1, 64, 56, 62)), te.placeholder((32, 64, 3, 3)), 1, 1, 1, "int32")
    config = autotvm.get_config()
    fallback_schedule_cpu_common_int8(config, workload, 16, 4)
    assert [list(config[name].size) for name in ("tile_ic", "tile_oc", "tile_ow")] == [
        [4, 16],
        [2, 16],
        [2, 31],
    ]
    with pytest.raises(ExpressionError, match="32 channels do not fill vectors of 24"):
        fallback_schedule_cpu_common_int8(config, workload, 24, 4)


@pytest.mark.parametrize(
    ("layout", "data", "kernel"),
    [("NCHW", (1, 8, 14, 20), (8, 2, 3, 3)), ("NHWC", (1, 14, 20, 8), (3, 3, 8, 2))],
)
def test_the_sizes_of_a_depthwise_convolution(layout, data, kernel) -> None:
    """Each channel gives as many results as the multiplier says."""
    tensors = te.placeholder(data), te.placeholder(kernel)
    found = get_depthwise_workload(*tensors, 2, 1, 1, "float32", layout)
    assert (found.in_filter, found.groups, found.out_filter, found.kernel_w) == (8, 8, 16, 3)
    assert (found.out_height, found.out_width) == (7, 10)


def test_tiles_of_x86_divide_the_result() -> None:
    """Channels are split by the vectors of the target, columns by the registers, and rows go two by two."""
    workload = get_workload(
        te.placeholder((1, 60, 56, 62)), te.placeholder((24, 60, 3, 3)), 1, 1, 1, "float32"
    )
    config = autotvm.get_config()
    with Target("llvm -mcpu=core-avx2"):
        fallback_schedule(config, workload)
    assert [list(config[name].size) for name in ("tile_ic", "tile_oc", "tile_ow")] == [
        [10, 6],
        [3, 8],
        [2, 31],
    ]
    assert config["tile_oh"].val == 2 and config["unroll_kw"].val is False
    odd = get_workload(te.placeholder((1, 64, 7, 7)), te.placeholder((32, 64, 1, 1)), 1, 0, 1, "int32")
    fallback_schedule_cpu_1x1_int8(config, odd, 16, 4)
    assert config["tile_oh"].val == 1 and list(config["tile_oc"].size) == [2, 16]
