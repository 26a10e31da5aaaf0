"""EliminateCommonSubexpr: computes equal expressions once.

Only operator calls without side effects, tuples and tuple fields are compared, and only within one basic block: what a
branch computes is not shared with the code outside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.structural import structural_equal
from tilewright.ir.structural_hash import structural_hash
from tilewright.ir.transform import PassContext
from tilewright.relay.analysis.blocks import Blocks
from tilewright.relay.expr import Call, Constant, Tuple, TupleGetItem
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.function_pass import FunctionPass


def _identity(expr: Any) -> object:
    """The identity of an argument: the expression itself; for a scalar constant, its value."""
    if isinstance(expr, Constant) and expr.data.shape == ():
        return (str(expr.data.dtype), expr.data.numpy().tobytes())
    return id(expr)


def _key(expr: Any) -> tuple[object, ...] | None:
    """A key that equal expressions share, without attributes; None for what is not compared."""
    if isinstance(expr, Call) and isinstance(expr.op, Op) and not expr.op.get_attr("TOpIsStateful"):
        return (expr.op, *[_identity(argument) for argument in expr.args])
    if isinstance(expr, TupleGetItem):
        return (expr.index, id(expr.tuple_value))
    if isinstance(expr, Tuple) and expr.fields:
        return (Tuple, *[_identity(field) for field in expr.fields])
    return None


def _same_attributes(first: Any, second: Any) -> bool:
    if not isinstance(first, Call) or first.attrs is second.attrs:
        return True
    if first.attrs is None or second.attrs is None:
        return False
    # The hash tells numbers apart that structural equality takes for rounded ones of each other.
    return (
        type(first.attrs) is type(second.attrs)
        and structural_equal(first.attrs, second.attrs)
        and structural_hash(first.attrs) == structural_hash(second.attrs)
    )


@dataclass
class EliminateCommonSubexpr(FunctionPass):
    """Merge equal computations; expressions for which ``fskip`` holds stay apart."""

    fskip: Callable[[Any], bool] | None = None

    name = "EliminateCommonSubexpr"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Merge within one function."""
        blocks = Blocks(func)
        made: dict[Any, Any] = {}
        known: dict[tuple[object, ...], list[Any]] = {}
        for node in post_order(func):
            current: Any = node.map_children(made.__getitem__)
            key = _key(current)
            if key is not None and not (self.fskip is not None and self.fskip(current)):
                candidates = known.setdefault((blocks.of[node], *key), [])
                same = next((one for one in candidates if _same_attributes(one, current)), None)
                if same is None:
                    candidates.append(current)
                else:
                    current = same
            made[node] = current
        return made[func]  # type: ignore[no-any-return]
