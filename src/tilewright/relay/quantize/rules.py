"""What ``relay.quantize`` knows of operators: which layers it quantises, and what may stay on integers around them."""

from __future__ import annotations

from typing import Final

from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.relay.expr import Call, Constant, Tuple

LAYERS: Final = frozenset({"nn.conv1d", "nn.conv2d", "nn.dense", "nn.batch_matmul"})
"""Sums of products: 8-bit factors, 32-bit sums."""
MOVING: Final = frozenset(
    {
        "nn.max_pool1d",
        "nn.max_pool2d",
        "nn.batch_flatten",
        "reshape",
        "transpose",
        "squeeze",
        "expand_dims",
        "concatenate",
    }
)
"""Give elements of their argument, which is brought to 8 bits first: fewer bytes to move."""
KEEPING: Final = frozenset({"nn.relu", "clip", "strided_slice", "annotation.stop_fusion"})
"""Computed on integers of any width, with the scale that they have."""
AVERAGES: Final = frozenset({"nn.avg_pool2d", "nn.global_avg_pool2d"})
"""Sums of 8-bit elements in 32 bits, divided at the end."""
ARITHMETIC: Final = frozenset({"add", "multiply"})


def operator(expr: RelayExpr) -> str:
    """The name of the operator that an expression calls; empty for anything else."""
    return expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else ""


def data_arguments(call: Call) -> list[RelayExpr]:
    """The tensors that a call computes on, of a tuple its fields."""
    first = call.args[0]
    return list(first.fields) if isinstance(first, Tuple) else list(call.args)


def is_constant(expr: RelayExpr) -> bool:
    """True for a constant."""
    return isinstance(expr, Constant)
