"""DynamicToStatic: turns operators with dynamic shapes into their static counterparts where the shapes are known.

One traversal from the inputs to the results folds constants, rewrites operators whose shape arguments became constant,
and infers the types of the new calls, so that the shape of a now static result is known immediately.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, Constant, Var
from tilewright.relay.expr_functor import post_order_visit
from tilewright.relay.function import Function
from tilewright.relay.transform.fold_constant import Folder, folded
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import is_call, made_type
from tilewright.support.span import span_scope


@dataclass(frozen=True)
class _Static:
    """A static operator: which arguments of the dynamic one become which attributes."""

    name: str
    becomes: tuple[tuple[int, str], ...]
    convert: Callable[[Any], Any] = lambda value: tuple(value.reshape(-1).tolist())


def _rows(value: Any) -> Any:
    return tuple(tuple(row) for row in value.tolist())


def _number(value: Any) -> Any:
    return value.reshape(-1)[0].item()


STATIC = {
    "dyn.reshape": _Static("reshape", ((1, "newshape"),)),
    "dyn.squeeze": _Static("squeeze", ((1, "axis"),)),
    "dyn.expand_dims": _Static("expand_dims", ((1, "axis"),), _number),
    "dyn.tile": _Static("tile", ((1, "reps"),)),
    "dyn.broadcast_to": _Static("broadcast_to", ((1, "shape"),)),
    "dyn.zeros": _Static("zeros", ((0, "shape"),)),
    "dyn.ones": _Static("ones", ((0, "shape"),)),
    "dyn.full": _Static("full", ((1, "shape"),)),
    "dyn.one_hot": _Static("one_hot", ((3, "depth"),), _number),
    "dyn.topk": _Static("topk", ((1, "k"),), _number),
    "dyn.image.resize2d": _Static("image.resize2d", ((1, "size"),)),
    "dyn.nn.upsampling": _Static("nn.upsampling", ((1, "scale_h"), (2, "scale_w")), _number),
    "dyn.nn.upsampling3d": _Static(
        "nn.upsampling3d", ((1, "scale_d"), (2, "scale_h"), (3, "scale_w")), _number
    ),
    "dyn.nn.pad": _Static("nn.pad", ((1, "pad_width"),), _rows),
    "dyn.strided_slice": _Static("strided_slice", ((1, "begin"), (2, "end"), (3, "strides"))),
    "dyn.sparse_to_dense": _Static("sparse_to_dense", ((1, "output_shape"),)),
}


def _static(call: Call, rule: _Static) -> Call | None:
    """The static call; None where an argument that must be known is not."""
    changes: dict[str, Any] = {}
    positions = {position for position, _ in rule.becomes}
    for position, attribute in rule.becomes:
        given = call.args[position]
        if not isinstance(given, Constant):
            return None
        changes[attribute] = rule.convert(given.data.numpy())
    attrs: Any = call.attrs
    kept = [argument for position, argument in enumerate(call.args) if position not in positions]
    return Call(Op.get(rule.name), kept, attrs.replace(**changes), span=call.span)


class _MakeStatic(Folder):
    def variable(self, old: Var, value: RelayExpr) -> Var:
        """A variable of the type that the value has now."""
        if isinstance(value, Function):
            return old
        found = made_type(value)
        return old if found == old.type_annotation else Var(old.name_hint, found, old.span)

    def visit_call(self, call: Call) -> RelayExpr:
        """Fold, make static, and fold again."""
        made = super().visit_call(call)
        if isinstance(made, Call) and isinstance(made.op, Op) and made.op.name in STATIC:
            with span_scope(call.span):
                static = _static(made, STATIC[made.op.name])
            return made if static is None else folded(static, self.views)
        return made


@dataclass
class DynamicToStatic(FunctionPass):
    """Replace ``dyn`` operators whose shape arguments are constant."""

    views: bool = False
    """As for ``FoldConstant``."""

    name = "DynamicToStatic"
    opt_level = 2

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function; its result may have a more precise type."""
        dynamic: list[RelayExpr] = []

        def look(expr: Any) -> None:
            if is_call(expr, *STATIC):
                dynamic.append(expr)

        post_order_visit(func.body, look)
        if not dynamic:
            return func
        body = _MakeStatic(self.views).visit(func.body)
        return func if body is func.body else func.replace(body=body, ret_type=None)
