"""WidenHalf: models in float16 compute in float32 on CPUs, and read weights in float16 where they are what takes time.

CPUs convert float16 to float32 in registers, and products are summed in float32 in any case. Tensors between operators
stay in float32, so that operators have the kernels and layouts of float32 models and no rounding between them. Products
of few rows take as long as their weight takes to be read: those keep it in float16, half the bytes, and it is converted
in registers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Final

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.change_precision import PrecisionChanger
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.mixed_precision_lists import ALWAYS, FOLLOW, NEVER, Category
from tilewright.relay.transform.lib.rewriting import constant_expressions, constant_shape, is_call, made_type

HALF: Final = "float16"
WIDE: Final = "float32"
MOST_ROWS: Final = 4
"""Rows up to which a product takes as long as its weight takes to be read."""
TYPED: Final = frozenset(
    {"cast", "cast_like", "zeros", "ones", "full", "arange", "shape_of", "ndarray_size", "one_hot"}
)
"""Operators whose result has the type that an attribute says."""
WIDENED: Final = (
    frozenset({*ALWAYS, *FOLLOW, *NEVER, "nn.contrib_attention", "nn.fifo_buffer", "trilu", "einsum"}) - TYPED
)


class _Widen(PrecisionChanger):
    def __init__(self, constants: set[Any]) -> None:
        super().__init__(HALF, WIDE)
        self.constants = constants

    def category(self, call: Call, op: Op) -> tuple[Category, str, str]:
        """All operators that compute the same in either type."""
        widened = op.name in WIDENED and not self._reads_weight(call)
        return Category.ALWAYS if widened else Category.NEVER, WIDE, WIDE

    def _reads_weight(self, call: Call) -> bool:
        """True for a product of few rows with a constant weight."""
        if not is_call(call, "nn.dense", "nn.matmul") or call.args[1] not in self.constants:
            return False
        shape = constant_shape(call.args[0])
        rows = None if shape is None else prod(shape[:-1])
        return rows is not None and rows <= MOST_ROWS and not getattr(call.attrs, "transpose_a", False)

    def visit_call(self, call: Call) -> RelayExpr:
        """Conversions between the two types vanish: what they would give is in float32 already."""
        if is_call(call, "cast") and call not in self.constants:
            attrs: Any = call.attrs
            argument = self.visit(call.args[0])
            kind = made_type(argument)
            if str(getattr(kind, "dtype", "")) == WIDE and attrs.dtype in (HALF, WIDE):
                return argument  # type: ignore[no-any-return]
        return super().visit_call(call)


def _has_products(body: RelayExpr) -> bool:
    """True if there are products or convolutions in float16."""
    return any(
        isinstance(one, Call)
        and is_call(one, *ALWAYS, "nn.contrib_attention")
        and str(getattr(made_type(one.args[0]), "dtype", "")) == HALF
        for one in post_order(body)
    )


@dataclass
class WidenHalf(FunctionPass):
    """Compute in float32 what is in float16."""

    name = "WidenHalf"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Convert one function, whose parameters and results keep their types."""
        if not _has_products(func.body):
            # Kernels that only read and write have half the bytes to move.
            return func
        widen = _Widen(constant_expressions(func.body))
        body = widen.as_type(widen.visit(func.body), made_type(func.body))
        return func if body is func.body else func.replace(body=body)
