"""FlattenAtrousConv: turns a convolution between space_to_batch_nd and batch_to_space_nd into a dilated one.

Some frameworks write dilated convolutions that way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.op.shapes import Shape
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import OperatorRewriter, is_call, rewritten, shape_of
from tilewright.tir.data_layout import Layout


def _axes(layout: str, shape: Shape) -> tuple[int, int] | None:
    """The positions of height and width in a layout of whole axes with the batch first; None for others."""
    axes = Layout(layout)
    if len(axes) != 4 or len(shape) != 4 or axes[0] != "N":
        return None
    return axes.index_of("H"), axes.index_of("W")


def _flatten(old: Call, new: Call) -> RelayExpr | None:
    convolution = new.args[0]
    if not is_call(convolution, "nn.conv2d"):
        return None
    assert isinstance(convolution, Call)
    split = convolution.args[0]
    if not is_call(split, "nn.space_to_batch_nd"):
        return None
    assert isinstance(split, Call)
    before: Any = split.attrs
    attrs: Any = convolution.attrs
    after: Any = new.attrs
    blocks = tuple(before.block_shape)
    if blocks != tuple(after.block_shape) or len(blocks) != 2 or before.pad_value != 0:
        return None
    if tuple(attrs.dilation) != (1, 1) or tuple(attrs.strides) != (1, 1) or any(attrs.padding):
        return None
    shape = shape_of(split.args[0])
    # Blocks are taken of the axes after the batch: they must be height and width.
    if _axes(attrs.data_layout, shape) != (1, 2) or attrs.out_layout not in ("", attrs.data_layout):
        return None
    pads = tuple(tuple(one) for one in before.paddings)
    crops = tuple(tuple(one) for one in after.crops)
    # What is cropped comes from padding, which the dilated convolution need not make.
    padding = tuple(pads[axis][side] - crops[axis][side] for side in (0, 1) for axis in (0, 1))
    if min(padding) < 0:
        return None
    return convolution.replace(
        args=(split.args[0], convolution.args[1]),
        attrs=attrs.replace(dilation=blocks, padding=padding),
    )


@dataclass
class FlattenAtrousConv(FunctionPass):
    """Make dilated convolutions of those on blocks."""

    name = "FlattenAtrousConv"
    opt_level = 0

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return rewritten(OperatorRewriter({"nn.batch_to_space_nd": _flatten}), func)
