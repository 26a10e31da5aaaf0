"""FoldExplicitPadding: folds zero padding before a convolution or pooling into its padding attribute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.op.nn.windows import pad_sides
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import (
    OperatorRewriter,
    Rule,
    is_call,
    rewritten,
    scalar_value,
    tensor_of,
)
from tilewright.tir.data_layout import Layout


def _folded_pads(pad: Call, layout: str, space: str, own: Sequence[int]) -> tuple[int, ...] | None:
    """The sum of a pad's zeros and an operator's own, as the fronts of all axes and then the backs; None where the pad
    is around another axis."""
    attrs: Any = pad.attrs
    axes = Layout(layout)
    widths = dict(zip([axes[place] for place in range(len(axes))], attrs.pad_width, strict=False))
    if len(attrs.pad_width) != len(axes) or attrs.pad_mode != "constant":
        return None
    if any(tuple(width) != (0, 0) for axis, width in widths.items() if axis not in space):
        return None
    fronts, backs = pad_sides(own, len(space))
    return (
        *(widths[axis][0] + front for axis, front in zip(space, fronts, strict=True)),
        *(widths[axis][1] + back for axis, back in zip(space, backs, strict=True)),
    )


def _neutral(value: Any, dtype: str, kind: str) -> bool:
    """True if padding with this value does not change the result."""
    if value is None:
        return False
    if kind == "max":
        least = -np.inf if dtype.startswith(("float", "bfloat")) else np.iinfo(dtype).min
        return bool(value == least or (dtype.startswith("float") and value <= np.finfo(dtype).min))
    return bool(value == 0)


def _rule(space: str, kind: str) -> Rule:
    def fold(old: Call, new: Call) -> RelayExpr | None:
        pad = new.args[0]
        if not is_call(pad, "nn.pad"):
            return None
        assert isinstance(pad, Call)
        attrs: Any = new.attrs
        own = pad_sides(attrs.padding, len(space))
        if kind == "average" and not attrs.count_include_pad:
            # Zeros that are data count in the mean; the operator's own do not.
            if any((*own[0], *own[1])):
                return None
            attrs = attrs.replace(count_include_pad=True)
        if kind != "convolution" and attrs.ceil_mode:
            return None
        if not _neutral(scalar_value(pad.args[1]), str(tensor_of(pad.args[0]).dtype), kind):
            return None
        layout = attrs.data_layout if kind == "convolution" else attrs.layout
        padding = _folded_pads(pad, layout, space, new.attrs.padding)  # type: ignore[union-attr]
        if padding is None:
            return None
        return new.replace(args=(pad.args[0], *new.args[1:]), attrs=attrs.replace(padding=padding))

    return fold


RULES = {
    f"nn.{name}{rank}d": _rule(space, kind)
    for rank, space in ((1, "W"), (2, "HW"), (3, "DHW"))
    for name, kind in (("conv", "convolution"), ("max_pool", "max"), ("avg_pool", "average"))
}


@dataclass
class FoldExplicitPadding(FunctionPass):
    """Fold ``nn.pad`` into the convolution or pooling that follows."""

    name = "FoldExplicitPadding"
    opt_level = 0

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return rewritten(OperatorRewriter(RULES), func)
