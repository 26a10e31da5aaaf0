"""ResolveReshapes: turns reshapes to computed shapes into static ones, where the shape follows from the dimensions.

Exporters write ``x.view(batch, length, 12, 64)`` as a computation on the shape of ``x``. Where it gives dimensions of
the argument in their place, constants, and at most one other number, ``reshape`` says the same with its codes: 0 for a
dimension that stays, -1 for what is left. The types then say which dimensions are constants and which are the same,
and the computation of the shape is gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.expr import IntImm
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.transform import PassContext
from tilewright.relay.analysis.program_shapes import ProgramShapes
from tilewright.relay.expr import Call
from tilewright.relay.expr_functor import post_order_visit
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import RelationError
from tilewright.relay.op.shapes import dims
from tilewright.relay.op.transform.reshape_rule import reshaped
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import OperatorRewriter, is_call, rewritten


class _Resolve(OperatorRewriter):
    def __init__(self, shapes: ProgramShapes) -> None:
        super().__init__({"dyn.reshape": self._reshape})
        self.shapes = shapes

    def _reshape(self, old: Call, new: Call) -> Call | None:
        codes = self._codes(old)
        return None if codes is None else call("reshape", new.args[0], newshape=codes)

    def _codes(self, old: Call) -> tuple[int, ...] | None:
        """The shape in the codes of ``reshape``; None where they cannot say it."""
        attrs: Any = old.attrs
        kind, wanted = self.shapes.type_of(old.args[0]), self.shapes.values_of(old.args[1])
        if wanted is None or not isinstance(kind, TensorType) or attrs.allowzero:
            return None
        given = dims(kind)
        codes: list[int] = []
        for place, value in enumerate(wanted):
            if isinstance(value, IntImm):
                codes.append(value.value)
            elif place < len(given) and self.shapes.is_one_size(given[place], value):
                codes.append(0)
            else:
                codes.append(-1)
        if any(code < -1 for code in codes) or codes.count(-1) > 1:
            return None
        try:
            made = reshaped(given, codes)
        except RelationError:
            return None
        same = (
            isinstance(value, IntImm) or self.shapes.is_one_size(size, value)
            for size, value in zip(made, wanted, strict=True)
        )
        return tuple(codes) if all(same) else None


@dataclass
class ResolveReshapes(FunctionPass):
    """Replace ``dyn.reshape`` where the shape that the program computes follows from the dimensions."""

    name = "ResolveReshapes"
    opt_level = 2

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function; its result may have a more precise type."""
        found: list[Any] = []

        def look(expr: Any) -> None:
            if is_call(expr, "dyn.reshape"):
                found.append(expr)

        post_order_visit(func.body, look)
        if not found:
            return func
        made = rewritten(_Resolve(ProgramShapes(func)), func)
        return func if made is func else made.replace(ret_type=None)
