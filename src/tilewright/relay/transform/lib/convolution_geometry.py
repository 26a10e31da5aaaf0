"""The geometry of a convolution, axis by axis, for the passes that rewrite convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.relay.expr import Call
from tilewright.relay.transform.lib.rewriting import Constants, constant_shape
from tilewright.topi.nn.utils import pad_amounts, per_axis

_PLAIN = (("NCW", "OIW"), ("NCHW", "OIHW"), ("NCDHW", "OIDHW"))


@dataclass(frozen=True)
class Walk:
    """The shapes of data, kernel and result, and the attributes, one for each axis in space."""

    shape: Constants
    kernel: Constants
    result: Constants
    strides: Constants
    dilation: Constants
    before: Constants
    after: Constants


def walk_of(convolution: Call) -> Walk | None:
    """The walk of a convolution; None where an extent is not constant or the axes are in another order."""
    attrs: Any = convolution.attrs
    if (attrs.data_layout, attrs.kernel_layout) not in _PLAIN:
        return None
    if attrs.out_layout not in ("", attrs.data_layout):
        return None
    shape, kernel, result = (constant_shape(expr) for expr in (*convolution.args, convolution))
    if shape is None or kernel is None or result is None:
        return None
    count = len(kernel) - 2
    before, after = pad_amounts(attrs.padding, kernel[2:])
    strides = per_axis(attrs.strides, count, "strides")
    dilation = per_axis(attrs.dilation, count, "dilation")
    return Walk(shape, kernel, result, strides, dilation, tuple(before), tuple(after))
