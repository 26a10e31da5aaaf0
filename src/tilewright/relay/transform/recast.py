"""recast: makes chosen operators of an expression compute in another element type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Call, Tuple
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.relay.op.calls import call as call_of
from tilewright.relay.transform.lib.rewriting import is_call
from tilewright.support.errors import TilewrightError
from tilewright.support.recursion import recursion_room


class _Recast(ExprMutator):
    """Casts the arguments of the chosen operators, and casts back where something else takes their results.

    Layers are counted from the first of the model on, those that are skipped as well.
    """

    def __init__(self, dtype: str, out_dtype: str, ops: Sequence[str], skipped: set[int]) -> None:
        super().__init__()
        self.dtype, self.out_dtype = dtype, out_dtype
        self.ops, self.skipped = set(ops), skipped
        self.layer = 0

    def _cast(self, value: RelayExpr) -> RelayExpr:
        """A tensor of floating-point numbers in the other type; of a tuple, each of its fields."""
        if isinstance(value, Tuple):
            return Tuple([self._cast(field) for field in value.fields])
        return call_of("cast", value, dtype=self.dtype)

    def visit_call(self, call: Call) -> RelayExpr:
        """Recast the call if it is one of those."""
        arguments = [self.visit(argument) for argument in call.args]
        # A layer is counted after those that it takes its data from.
        position, chosen = self.layer, isinstance(call.op, Op) and call.op.name in self.ops
        self.layer += chosen
        if not chosen or position in self.skipped:
            return call.replace(args=tuple(arguments))
        attrs: Any = call.attrs
        casts = [self._cast(argument) for argument in arguments]
        says_type = hasattr(attrs, "out_dtype")
        made = call.replace(
            args=tuple(casts), attrs=attrs.replace(out_dtype=self.out_dtype) if says_type else attrs
        )
        kind = call.checked_type
        if not isinstance(kind, TensorType):
            raise TilewrightError(f"recast: {call.op} gives a value of type {kind}, not one tensor")
        if kind.dtype == (self.out_dtype if says_type else self.dtype):
            return made
        return call_of("cast", made, dtype=str(kind.dtype))


def recast(
    expr: RelayExpr | IRModule,
    dtype: str,
    out_dtype: str,
    ops: Sequence[str] = ("nn.conv2d",),
    skip_layers: Sequence[int] = (),
) -> RelayExpr | IRModule:
    """The expression, or the module's main function, with the calls of ``ops`` on arguments of ``dtype``.

    They give ``out_dtype`` where the operator can say so, and their results are cast to the type that they had.
    ``skip_layers`` are the numbers of calls that stay, in the order of computation; negative ones count from the last.
    """
    if isinstance(expr, IRModule):
        made = recast(expr["main"], dtype, out_dtype, ops, skip_layers)
        assert isinstance(made, RelayExpr)
        return IRModule.from_expr(made)
    function = infer_module(IRModule.from_expr(expr))["main"]
    assert isinstance(function, Function)
    total = sum(isinstance(node, Call) and is_call(node, *ops) for node in post_order(function))
    skipped = {number if number >= 0 else total + number for number in skip_layers}
    with recursion_room():
        changed = _Recast(dtype, out_dtype, ops, skipped).visit(function)
    done = infer_module(IRModule.from_expr(changed))["main"]
    assert isinstance(done, Function)
    return done.replace(ret_type=expr.ret_type) if isinstance(expr, Function) else done.body
