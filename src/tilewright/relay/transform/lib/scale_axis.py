"""Scales along channels, for folding them into weights in both directions.

A scale is a tensor that is broadcast along all axes of the data except those of the channels. In a blocked layout
(NCHW16c) these are two axes. Multiplying a weight by it along the matching axes of the weight's layout gives the same
products, without work at run time.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.relay.expr import Call, Constant
from tilewright.relay.op.calls import call
from tilewright.relay.op.shapes import Shape, known
from tilewright.relay.transform.lib.rewriting import is_call, shape_of, tensor_of
from tilewright.tir.data_layout import Layout

CONVOLUTIONS = frozenset(
    {
        "nn.conv1d",
        "nn.conv2d",
        "nn.conv3d",
        "nn.contrib_conv2d_NCHWc",
        "nn.contrib_depthwise_conv2d_NCHWc",
    }
)
DENSE = "nn.dense"
TRANSPOSED = "nn.conv2d_transpose"
"""In one group, ``O`` of its kernel are the channels of its result, as in a convolution."""


@dataclass(frozen=True, eq=False)
class Factor:
    """A tensor to multiply by, and the axes of the data along which it is not repeated."""

    value: RelayExpr
    """Aligned with the data at the last axis."""
    flat: RelayExpr | None
    """The same without the axes along which it is repeated; None where it is repeated along all, or the product of
    factors along different axes."""
    axes: tuple[int, ...]
    positive: bool
    """All its elements are known to be greater than zero."""
    constant: bool
    """It can be computed when the model is compiled."""

    def times(self, other: Factor) -> Factor:
        """Both at once."""
        flat = None
        if self.axes == other.axes and self.flat is not None and other.flat is not None:
            flat = call("multiply", self.flat, other.flat)
        return Factor(
            call("multiply", self.value, other.value),
            flat,
            tuple(sorted({*self.axes, *other.axes})),
            self.positive and other.positive,
            self.constant and other.constant,
        )


def varying_axes(shape: Shape, rank: int) -> tuple[int, ...] | None:
    """The axes of data of this rank along which a tensor, aligned at the last axis, is not repeated; None where its
    shape is not known or its rank is higher."""
    if len(shape) > rank or not known(*shape):
        return None
    lead = rank - len(shape)
    return tuple(lead + axis for axis, extent in enumerate(shape) if extent != 1)


def factor_of(product: Call, old: Call, constants: Container[RelayExpr]) -> tuple[int, Factor] | None:
    """For a call of multiply, before and after rewriting: which operand is the data, and the other one as a factor;
    None if neither is. A factor that is not constant must be smaller than the data: to multiply a weight by it would
    cost more than to multiply the data."""
    result = shape_of(old)
    if not tensor_of(old).dtype.is_float or not known(*result):
        return None
    for data, other in ((0, 1), (1, 0)):
        shape = shape_of(old.args[other])
        axes = varying_axes(shape, len(result))
        constant = old.args[other] in constants
        # Data that the product would repeat are smaller than it; the factor does not belong there.
        if axes is None or len(axes) > 2 or shape_of(old.args[data]) != result:
            continue
        repeated = any(result[axis] != 1 for axis in range(len(result)) if axis not in axes)
        if constant or repeated:
            value = product.args[other]
            return data, Factor(value, flattened(value, shape), axes, all_positive(old.args[other]), constant)
    return None


def flattened(value: RelayExpr, shape: Shape) -> RelayExpr | None:
    """A tensor of this shape without its axes of one element; None where it has no others."""
    single = tuple(axis for axis, extent in enumerate(shape) if extent == 1)
    if len(single) == len(shape):
        return None
    return call("squeeze", value, axis=single) if single else value


def _expanded(vector: RelayExpr, count: int) -> RelayExpr:
    """A vector with so many axes of one element after its own."""
    return call("expand_dims", vector, axis=1, num_newaxis=count) if count else vector


def on_data(factor: Factor, rank: int) -> RelayExpr:
    """The factor in the shape in which it multiplies, or divides, data of this rank."""
    if factor.flat is None:
        return factor.value
    if len(factor.axes) == 1:
        return _expanded(factor.flat, rank - 1 - factor.axes[0])
    given = shape_of(factor.value)
    return call("reshape", factor.flat, newshape=(1,) * (rank - len(given)) + tuple(given))


def all_positive(expr: RelayExpr) -> bool:
    """True if all elements are constants greater than zero."""
    while is_call(expr, "expand_dims", "reshape", "squeeze", "transpose", "broadcast_to"):
        assert isinstance(expr, Call)
        expr = expr.args[0]
    return isinstance(expr, Constant) and bool((expr.data.numpy() > 0).all())


def channel_axes(layout: str) -> tuple[int, ...]:
    """Where the channels are: their axis, and that of their blocks."""
    axes = Layout(layout)
    return tuple(axes.index_of(name) for name in ("C", "c") if name in axes)


def output_layout(attrs: Any) -> str:
    """The layout of a convolution's result."""
    return str(attrs.out_layout or attrs.data_layout)


def kernel_matches(layout: str, kernel_layout: str, kernel_axis: str) -> bool:
    """True if channels of data in a layout are in the same blocks as those along an axis of a weight."""
    data, kernel = Layout(layout), Layout(kernel_layout)
    return (
        kernel_axis in kernel
        and data.factor_of("C") == kernel.factor_of(kernel_axis)
        and _outer_first(data, "C")
        and _outer_first(kernel, kernel_axis)
    )


def _outer_first(layout: Layout, axis: str) -> bool:
    return axis.lower() not in layout or layout.index_of(axis) < layout.index_of(axis.lower())


def on_kernel(factor: Factor, layout: str, kernel_layout: str, kernel_axis: str) -> RelayExpr:
    """The factor in the shape in which it multiplies a weight along an axis that matches."""
    data, kernel = Layout(layout), Layout(kernel_layout)
    if factor.flat is not None and "c" not in data:
        return _expanded(factor.flat, len(kernel) - 1 - kernel.index_of(kernel_axis))
    given = shape_of(factor.value)
    padded = (1,) * (len(data) - len(given)) + tuple(given)
    shape: list[Any] = [1] * len(kernel)
    for own, theirs in (("C", kernel_axis), ("c", kernel_axis.lower())):
        if own in data:
            shape[kernel.index_of(theirs)] = padded[data.index_of(own)]
    whole = factor.flat if factor.flat is not None and len(factor.axes) == 2 else factor.value
    return call("reshape", whole, newshape=tuple(shape))


def same_dtype(*tensors: RelayExpr) -> bool:
    """True if tensors have one element type."""
    return len({str(tensor_of(each).dtype) for each in tensors}) == 1


def scaled(value: RelayExpr, factor: Factor, rank: int) -> RelayExpr:
    """A tensor, aligned with data of this rank, times the factor."""
    return call("multiply", value, on_data(factor, rank))


def operator_name(expr: RelayExpr) -> str:
    """The name of the operator that an expression calls; empty for others."""
    return expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else ""


def within(axes: Sequence[int], allowed: Sequence[int]) -> bool:
    """True if all axes are among those allowed."""
    return set(axes) <= set(allowed)
