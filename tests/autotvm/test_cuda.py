"""Tasks for CUDA: their configurations keep the limits, compile, and compute the same on threads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.search.gpu_candidates import assert_compiles, results

import tilewright as tvm
from tilewright import autotvm, relay

SMALL = tvm.target.Target("cuda -arch=sm_80 -max_num_threads=64")
"""Small tiles: the interpreter runs threads one by one."""


def product(rows: int) -> Any:
    return relay.nn.dense(relay.var("x", shape=(rows, 12)), relay.var("w", shape=(20, 12)))


def convolution(groups: int, layout: str) -> Any:
    x = relay.var("x", shape=(1, 8, 4, 4) if layout == "NCHW" else (1, 4, 4, 8))
    kernel = {"NCHW": (8, 8 // groups, 3, 3), "NHWC": (3, 3, 8, 1) if groups > 1 else (3, 3, 8, 8)}[layout]
    names = {"NCHW": "OIHW", "NHWC": "HWOI" if groups > 1 else "HWIO"}
    return relay.nn.conv2d(
        x,
        relay.var("w", shape=kernel),
        kernel_size=(3, 3),
        channels=8,
        padding=1,
        groups=groups,
        data_layout=layout,
        kernel_layout=names[layout],
    )


CASES: dict[str, Callable[[], Any]] = {
    "dense_small_batch.gpu": lambda: product(20),
    "dense_large_batch.gpu": lambda: product(36),
    "batch_matmul.cuda": lambda: relay.nn.batch_matmul(
        relay.var("x", shape=(2, 8, 8)), relay.var("w", shape=(2, 10, 8))
    ),
    "conv2d_nchw.cuda": lambda: convolution(1, "NCHW"),
    "conv2d_nhwc.cuda": lambda: convolution(1, "NHWC"),
    "depthwise_conv2d_nchw.cuda": lambda: convolution(8, "NCHW"),
    "depthwise_conv2d_nhwc.cuda": lambda: convolution(8, "NHWC"),
    "max_pool2d.cuda": lambda: relay.nn.max_pool2d(
        relay.var("x", shape=(1, 8, 6, 8)), (2, 2), strides=(2, 2), layout="NHWC"
    ),
    "softmax.cuda": lambda: relay.nn.softmax(relay.var("x", shape=(6, 80))),
}


SLOW = ("conv2d_nhwc.cuda", "depthwise_conv2d_nchw.cuda")
"""What other cases show as well, with other layouts."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in CASES]
)
def test_configurations(name: str, tmp_path: Path) -> None:
    """The first is the schedule without tuning; others differ from it, and compute the same."""
    call = CASES[name]()
    function = relay.Function(relay.analysis.free_vars(call), call)
    mod = tvm.IRModule.from_expr(function)
    operators = [tvm.ir.Op.get(call.op.name)]
    with SMALL, tvm.transform.PassContext(config={"tir.strict_float32": True}):
        tasks = autotvm.task.extract_from_program(mod["main"], {}, SMALL, ops=operators)
        (task,) = [one for one in tasks if one.name == name]
        space = task.config_space
        assert len(space) > 1
        texts = set()
        for place in sorted({0, 1, len(space) // 2, len(space) - 1}):
            texts.add(assert_compiles(*task.instantiate(space.get(place)), tmp_path))
        schedule, tensors = task.instantiate(space.get(1))
        *given, result = results(schedule, tensors)
    assert len(texts) > 1
    np.testing.assert_allclose(result, unscheduled(tensors, given), rtol=1e-3, atol=1e-3)


def unscheduled(tensors: list[Any], given: list[Any]) -> Any:
    """What a computation gives without a schedule, on the processor."""
    result = np.zeros([int(extent) for extent in tensors[-1].shape], str(tensors[-1].dtype))
    tvm.build(tvm.te.create_schedule(tensors[-1].op), tensors, "llvm")(*given, result)
    return result
