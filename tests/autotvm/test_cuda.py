"""Tasks for CUDA: their configurations keep the limits, compile, and compute the same on threads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.search.gpu_candidates import TARGET, assert_compiles, results

import tilewright as tvm
from tilewright import autotvm, relay


def product(rows: int) -> Any:
    return relay.nn.dense(relay.var("x", shape=(rows, 24)), relay.var("w", shape=(40, 24)))


def convolution(groups: int, layout: str) -> Any:
    x = relay.var("x", shape=(1, 8, 6, 6) if layout == "NCHW" else (1, 6, 6, 8))
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
        relay.var("x", shape=(2, 12, 16)), relay.var("w", shape=(2, 10, 16))
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


@pytest.mark.parametrize("name", CASES)
def test_configurations(name: str, tmp_path: Path) -> None:
    """The first is the schedule without tuning; others differ from it, and all compute the same."""
    call = CASES[name]()
    function = relay.Function(relay.analysis.free_vars(call), call)
    mod = tvm.IRModule.from_expr(function)
    operators = [tvm.ir.Op.get(call.op.name)]
    with TARGET, tvm.transform.PassContext(config={"tir.strict_float32": True}):
        tasks = autotvm.task.extract_from_program(mod["main"], {}, TARGET, ops=operators)
        (task,) = [one for one in tasks if one.name == name]
        space = task.config_space
        assert len(space) > 1
        places = sorted({0, *np.linspace(1, len(space) - 1, 3).astype(int)})
        texts = set()
        for place in places:
            schedule, tensors = task.instantiate(space.get(int(place)))
            texts.add(assert_compiles(schedule, tensors, tmp_path))
            # The interpreter runs threads one by one.
            if place in places[:2]:
                *given, result = results(*task.instantiate(space.get(int(place))))
                expected = reference(name, given)
                np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-3)
    assert len(texts) > 1


def reference(name: str, given: list[Any]) -> Any:
    """What the operator computes, by its definition."""
    call = CASES[name]()
    return call.op.get_attr("FReference")(call.attrs, *given)
