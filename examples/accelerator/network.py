"""A small quantised network for the example: two convolutions, a pooling that stays on the processor, a dense layer."""

from __future__ import annotations

import numpy as np

import tilewright as tvm
from tilewright import relay

SHAPE = (1, 12, 12, 3)


def requantized(
    data: relay.Expr, scale: float | np.ndarray, out: tuple[float, int], **options: str
) -> relay.Expr:
    """int32 sums as int8 of another scale and zero point."""
    return relay.qnn.op.requantize(
        data,
        relay.const(np.float32(scale)),
        relay.const(0),
        relay.const(np.float32(out[0])),
        relay.const(out[1]),
        axis=-1,
        out_dtype="int8",
        **options,
    )


def convolution(data: relay.Expr, weights: np.ndarray, zero: int, **options: object) -> relay.Expr:
    """A convolution in NHWC of data with a zero point."""
    zeros = (relay.const(zero), relay.const(0))
    scales = (relay.const(np.float32(0.05)), relay.const(np.float32(0.01)))
    height, width, _, units = weights.shape
    return relay.qnn.op.conv2d(
        data,
        relay.const(weights),
        *zeros,
        *scales,
        kernel_size=(height, width),
        channels=units,
        data_layout="NHWC",
        kernel_layout="HWIO",
        **options,
    )


def network(seed: int = 0) -> tvm.IRModule:
    """The network; its weights are random."""
    generator = np.random.default_rng(seed)

    def weights(*shape: int) -> np.ndarray:
        return generator.integers(-128, 128, shape).astype("int8")

    def bias(units: int) -> relay.Expr:
        return relay.const(generator.integers(-2000, 2000, units).astype("int32"))

    x = relay.var("x", shape=SHAPE, dtype="int8")
    made = convolution(x, weights(3, 3, 3, 20), zero=7, padding=(1, 1, 1, 1))
    made = relay.nn.bias_add(made, bias(20), axis=3)
    made = relay.clip(requantized(made, generator.uniform(1e-4, 2e-4, 20), (0.1, -3)), -3, 127)
    made = convolution(made, weights(3, 3, 20, 24), zero=-3, strides=(2, 2))
    made = requantized(made, 2e-4, (0.4, 4), rounding="TONEAREST")
    made = relay.nn.max_pool2d(made, (5, 5), layout="NHWC")
    made = relay.reshape(made, (1, 24))
    zeros, scales = (relay.const(4), relay.const(0)), (relay.const(0.4), relay.const(0.01))
    made = relay.qnn.op.dense(made, relay.const(weights(32, 24)), *zeros, *scales, units=32)
    made = requantized(relay.nn.bias_add(made, bias(32)), 2e-4, (0.2, 0))
    return tvm.IRModule.from_expr(made)
