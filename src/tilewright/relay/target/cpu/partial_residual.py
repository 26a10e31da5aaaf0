"""AddPartialResiduals: an addition to the first channels of an image becomes one to all of them, of zeros to the rest.

``concatenate(x[:, :c] + y, x[:, c:])`` reads and writes ``x`` once more. ``x + pad(y)`` is computed with ``x``, where
that is a convolution: the zeros are never in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, Tuple, const
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.op.shapes import dims
from tilewright.relay.op.transform.slicing import python_slices
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import OperatorRewriter, is_call, rewritten, tensor_of
from tilewright.target import Target


def _channels(expr: RelayExpr) -> tuple[RelayExpr, int, int] | None:
    """The image of which an expression is a range of channels, and the range; None for other expressions."""
    if not isinstance(expr, Call) or not is_call(expr, "strided_slice"):
        return None
    shape = dims(tensor_of(expr.args[0]))
    if len(shape) != 4 or not isinstance(shape[1], int):
        return None
    along = python_slices(expr.attrs, [extent if isinstance(extent, int) else 1 for extent in shape])
    for place in (0, 2, 3):
        extent = shape[place]
        whole = isinstance(extent, int) and along[place].indices(extent) == (0, extent, 1)
        if not whole and along[place] != slice(None):
            return None
    first, end, step = along[1].indices(shape[1])
    return (expr.args[0], first, end) if step == 1 and first < end else None


def _added(old: Call, new: Call) -> RelayExpr | None:
    attrs: Any = new.attrs
    fields = new.args[0]
    if attrs.axis not in (1, -3) or not isinstance(fields, Tuple):
        return None
    if len(fields.fields) != 2 or not is_call(fields.fields[0], "add"):
        return None
    total, rest = fields.fields[0], _channels(fields.fields[1])
    assert isinstance(total, Call)
    for image, other in (total.args, reversed(total.args)):
        first = _channels(image)
        if first is None or rest is None or first[0] is not rest[0]:
            continue
        channels = dims(tensor_of(first[0]))[1]
        kind = tensor_of(image)
        if first[1] != 0 or first[2] != rest[1] or rest[2] != channels or tensor_of(other) != kind:
            continue
        if not kind.dtype.is_float:
            continue
        width = ((0, 0), (0, rest[2] - rest[1]), (0, 0), (0, 0))
        return call("add", first[0], call("nn.pad", other, const(0.0, str(kind.dtype)), pad_width=width))
    return None


@dataclass
class AddPartialResiduals(FunctionPass):
    """Adds residuals of fewer channels without cutting the image into ranges of channels, on CPUs."""

    name = "AddPartialResiduals"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        target = Target.current()
        if target is None or "cpu" not in target.keys:
            return func
        return rewritten(OperatorRewriter({"concatenate": _added}), func)
