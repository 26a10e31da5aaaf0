"""What Arm's Compute Library takes of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.driver import tvmc
from tilewright.relay.op.contrib.arm_compute_lib import (  # type: ignore[import-not-found]
    is_arm_compute_runtime_enabled,
    partition_for_arm_compute_lib,
)
from tilewright.support.errors import TilewrightError

DATA = relay.var("data", shape=(1, 8, 8, 4))


def constant(*shape: int, dtype: str = "float32") -> relay.Constant:
    """Weights."""
    return relay.const(np.ones(shape, dtype))


def convolution(layout: str = "NHWC", **attributes: Any) -> relay.Expr:
    """A padded convolution with bias and activation."""
    padded = relay.nn.pad(DATA, ((0, 0), (1, 1), (1, 1), (0, 0)))
    made = relay.nn.conv2d(
        padded,
        constant(3, 3, 4, 6),
        kernel_size=(3, 3),
        data_layout=layout,
        kernel_layout="HWIO",
        **attributes,
    )
    return relay.nn.relu(relay.nn.bias_add(made, constant(6), axis=3))


def quantized_dense() -> relay.Expr:
    """A dense layer of bytes."""
    data = relay.var("data", shape=(2, 8), dtype="uint8")
    zero, scale = relay.const(0), relay.const(0.5)
    made = relay.qnn.op.dense(data, constant(3, 8, dtype="uint8"), zero, zero, scale, scale, units=3)
    return relay.qnn.op.requantize(made, relay.const(0.25), zero, scale, zero, out_dtype="uint8")


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (convolution(), ["conv2d"]),
        (relay.nn.dense(relay.var("x", shape=(2, 8)), constant(3, 8)), ["dense"]),
        (quantized_dense(), ["qnn_dense"]),
        (
            relay.sqrt(relay.nn.avg_pool2d(relay.power(DATA, relay.const(2.0)), (2, 2), layout="NHWC")),
            ["l2_pool2d"],
        ),
        (relay.sigmoid(DATA), []),
    ],
)
def test_groups(body: relay.Expr, names: list[str]) -> None:
    """A group is one function, named as the library's code generators know it."""
    text = str(partition_for_arm_compute_lib(tvm.IRModule.from_expr(body)))
    found = [part.partition('"')[0] for part in text.split('Composite="arm_compute_lib.')[1:]]
    assert found == names


def test_single_operators() -> None:
    """Pools of NHWC are taken, those of other layouts and types are not."""
    for layout, taken in (("NHWC", True), ("NCHW", False)):
        pooled = relay.nn.max_pool2d(DATA, (2, 2), layout=layout)
        text = str(partition_for_arm_compute_lib(tvm.IRModule.from_expr(pooled)))
        assert ('Compiler="arm_compute_lib"' in text) == taken


def test_without_its_code_generator() -> None:
    """``tvmc`` knows the name; the build says what is missing."""
    assert not is_arm_compute_runtime_enabled()
    pipeline = tvmc.composite_target.get_codegen_by_target("compute-library")["pass_pipeline"]
    with pytest.raises(TilewrightError, match="arm_compute_lib"):
        relay.build(pipeline(tvm.IRModule.from_expr(convolution()), {}), "llvm")
