"""A layer as the engine sees it: read from a composite function, with its weights packed for the engine.

Both dense layers and convolutions are products of a matrix of *rows* (one an output pixel) and a matrix of weights,
whose depth is a sequence of *taps*: one for a dense layer, one for each place of a convolution's kernel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.relay import Call, Constant
from tilewright.relay.qnn.op.parameters import fixed_point


@dataclass(frozen=True)
class Window:
    """How a convolution walks over its input, in NHWC. A dense layer is one of 1 x 1 over an image of one line."""

    batch: int
    height: int
    width: int
    channels: int
    out_height: int
    out_width: int
    kernel: tuple[int, int]
    strides: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Layer:
    """One product with everything that follows it."""

    window: Window
    weights: np.ndarray
    """int8, [output channel, tap, input channel]."""
    bias: np.ndarray
    multipliers: np.ndarray
    shifts: np.ndarray
    zeros: tuple[int, int]
    """The zero points of data and weights."""
    out_zero: int
    limits: tuple[int, int]
    away: bool
    """Halves are rounded away from zero, otherwise up."""

    @property
    def units(self) -> int:
        """Output channels."""
        return len(self.weights)

    @property
    def products(self) -> int:
        """Multiplications of the layer."""
        window = self.window
        return window.batch * window.out_height * window.out_width * self.weights.size


def steps(root: Any) -> dict[str, Call]:
    """The calls of a chain that ends in ``root``, by the names of their operators, data inputs followed."""
    found: dict[str, Call] = {}
    while isinstance(root, Call):
        name = root.op.name
        found[name] = root
        if name in ("qnn.dense", "qnn.conv2d"):
            break
        root = root.args[0]
    return found


def value(expr: Any) -> np.ndarray | None:
    """The value of a constant; None of anything else."""
    return expr.data.numpy() if isinstance(expr, Constant) else None


def read_layer(root: Call) -> Layer:
    """The layer of a chain that the checks have accepted."""
    found = steps(root)
    product = found.get("qnn.dense") or found["qnn.conv2d"]
    requantize = found["qnn.requantize"]
    weights = value(product.args[1])
    assert weights is not None
    if "qnn.dense" in found:
        rows, depth = (int(extent) for extent in product.args[0].checked_type.shape)
        window = Window(1, 1, rows, depth, 1, rows, (1, 1), (1, 1), (0, 0), (1, 1))
        packed = weights.reshape(len(weights), 1, depth)
    else:
        window = _window(product)
        packed = np.moveaxis(weights, -1, 0).reshape(weights.shape[-1], -1, weights.shape[2])
    units = len(packed)
    bias = next((value(found[name].args[1]) for name in ("nn.bias_add", "add") if name in found), None)
    multipliers, shifts = _factors(requantize, units)
    least, most = -128, 127
    if "clip" in found:
        least = max(least, math.ceil(found["clip"].attrs.a_min))
        most = min(most, math.floor(found["clip"].attrs.a_max))
    if "nn.relu" in found:
        least = max(least, 0)
    return Layer(
        window,
        np.ascontiguousarray(packed),
        np.zeros(units, "int32") if bias is None else bias.reshape(units),
        multipliers,
        shifts,
        (int(value(product.args[2])), int(value(product.args[3]))),
        int(value(requantize.args[4])),
        (least, most),
        requantize.attrs.rounding == "TONEAREST",
    )


def _window(product: Call) -> Window:
    batch, height, width, channels = (int(extent) for extent in product.args[0].checked_type.shape)
    _, out_height, out_width, _ = (int(extent) for extent in product.checked_type.shape)
    attrs = product.attrs
    kernel, strides, dilation, padding = (
        [int(extent) for extent in np.atleast_1d(given)]
        for given in (attrs.kernel_size, attrs.strides, attrs.dilation, attrs.padding)
    )
    # One number is for all sides, two are for top and left, and four go around from the top.
    top_left = (padding[0], padding[0] if len(padding) == 1 else padding[1])
    steps_of = [(one[0], one[-1]) for one in (strides, dilation)]
    window = (batch, height, width, channels, out_height, out_width, (kernel[0], kernel[-1]))
    return Window(*window, steps_of[0], top_left, steps_of[1])


def _factors(requantize: Call, units: int) -> tuple[np.ndarray, np.ndarray]:
    """The fixed-point factor of each output channel. A multiplier of 0 is the engine's for a factor of one."""
    into, out = value(requantize.args[1]), value(requantize.args[3])
    assert into is not None and out is not None
    factors = np.broadcast_to(into.astype("float64").reshape(-1) / float(out), (units,))
    if (factors == 1).all():
        return np.zeros(units, "int32"), np.zeros(units, "int32")
    pairs = [fixed_point(float(factor)) for factor in factors]
    return np.array([one for one, _ in pairs], "int32"), np.array([one for _, one in pairs], "int32")
