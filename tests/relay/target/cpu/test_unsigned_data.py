"""UnsignedData: the same integers by products of unsigned data and signed weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay import qnn
from tilewright.relay.infer import infer_module
from tilewright.relay.target.cpu.unsigned_data import UnsignedData

SCALE, NONE = relay.const(np.float32(0.5)), relay.const(0, "int32")


def constant(value: int) -> relay.Constant:
    """A zero point."""
    return relay.const(value, "int32")


def program(of_weight: str) -> tvm.IRModule:
    """Quantised, pooled, bordered, multiplied, and as real numbers."""
    x = relay.var("x", shape=(1, 4, 6, 6))
    data = qnn.op.quantize(x, SCALE, constant(-3), out_dtype="int8")
    data = relay.nn.max_pool2d(data, (2, 2), padding=(1, 1))
    data = relay.maximum(data, relay.const(-9, "int8"))
    data = relay.concatenate([data, data], axis=1)
    data = relay.nn.pad(data, ((0, 0), (0, 0), (1, 0), (0, 0)), relay.const(-3, "int8"))
    weight = np.random.default_rng(1).integers(0, 120, (3, 8, 2, 2)).astype(of_weight)
    made = qnn.op.conv2d(
        data, relay.const(weight), constant(-3), constant(5), SCALE, SCALE, kernel_size=(2, 2), channels=3
    )
    made = qnn.op.requantize(made, SCALE, NONE, relay.const(np.float32(90)), constant(7), out_dtype="int8")
    body = relay.Tuple([qnn.op.dequantize(made, SCALE, constant(7)), made])
    return infer_module(tvm.IRModule.from_expr(relay.Function([x], body)))


def run(module: tvm.IRModule) -> list[np.ndarray[Any, Any]]:
    """What the reference gives."""
    x = np.random.default_rng(2).normal(0, 20, (1, 4, 6, 6)).astype("float32")
    return [one.numpy() for one in relay.create_executor("debug", module, tvm.cpu(), "llvm").evaluate()(x)]


@pytest.mark.parametrize("of_weight", ["int8", "uint8"])
def test_signs(of_weight: str) -> None:
    """Results are the same; the product has unsigned data and signed weights, and nothing before it is signed."""
    module = program(of_weight)
    with tvm.target.Target("llvm -mcpu=icelake-server"):
        made = infer_module(UnsignedData()(module))
    for found, expected in zip(run(made), run(module), strict=True):
        np.testing.assert_array_equal(found, expected)
    text = made.astext(show_meta_data=False).partition(" {")[2]
    before, product, after = text.partition("qnn.conv2d")
    assert product and "int8" not in before.replace("uint8", "")
    assert "(3, 8, 2, 2), int8]" in after


def test_signed_products_stay() -> None:
    """A CPU that multiplies signed integers gets them."""
    module = program("int8")
    with tvm.target.Target("llvm -mcpu=sierraforest"):
        assert tvm.ir.structural_equal(UnsignedData()(module), module)
