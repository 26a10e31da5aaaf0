"""The constituents of a program: its operators, kernels, element types."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call, Constant, Tuple, Var
from tilewright.relay.function import Function
from tilewright.relay.type_functor import TypeVisitor
from tilewright.support.node import Node
from tilewright.support.recursion import with_recursion_room


def check_constant(expr: RelayExpr) -> bool:
    """True for a constant and for a tuple of such."""
    return all(isinstance(found, (Constant, Tuple)) for found in post_order(expr))


def list_op_freqs(mod: IRModule) -> dict[str, int]:
    """How many calls of each operator the module has, in fused functions too."""
    counts: Counter[str] = Counter()
    seen: set[Node] = set()
    for function in mod.functions.values():
        for found in post_order(function):
            if isinstance(found, Call) and isinstance(found.op, Op) and found not in seen:
                seen.add(found)
                counts[found.op.name] += 1
    return dict(counts)


def search_fc_transpose(expr: RelayExpr) -> list[str]:
    """The names of the weights w in ``nn.dense(x, transpose(w, [1, 0]))``."""
    found: dict[str, None] = {}
    for dense in post_order(expr):
        if isinstance(dense, Call) and _calls(dense, "nn.dense"):
            weight: Any = dense.args[1]
            if _calls(weight, "transpose") and isinstance(weight.args[0], Var):
                if tuple(weight.attrs.axes or (1, 0)) == (1, 0):
                    found[weight.args[0].name_hint] = None
    return list(found)


def _calls(expr: Any, name: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == name


class _ElementTypes(TypeVisitor):
    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit_tensor_type(self, tt: TensorType) -> None:
        self.found.add(str(tt.dtype))


@with_recursion_room
def all_dtypes(expr: RelayExpr) -> set[str]:
    """The element types of all tensors that a typed expression takes and computes."""
    visitor = _ElementTypes()
    seen: set[Type] = set()
    for found in post_order(expr):
        types = [getattr(found, "_checked_type_", None)]
        if isinstance(found, Function):
            types += [parameter.type_annotation for parameter in found.params]
        for typ in types:
            if typ is not None and not isinstance(found, Op) and typ not in seen:
                seen.add(typ)
                visitor.visit(typ)
    return visitor.found
