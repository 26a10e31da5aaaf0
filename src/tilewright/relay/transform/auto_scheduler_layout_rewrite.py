"""AutoSchedulerLayoutRewrite: gives constant weights the layout in which the schedules of their functions read them.

It runs after FuseOps, within a scope of schedules that were found by search (``ApplyHistoryBest``). The weight is
rewritten once, here; the operator notes its layout in ``auto_scheduler_rewritten_layout``. A weight that is an input of
the model keeps its layout, as rewriting it in every run would cost more than it gains; so does one that the function
reads otherwise as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.transform import PassContext
from tilewright.relay.backend.te_compiler import schedule_request
from tilewright.relay.expr import Call, Constant, Var
from tilewright.relay.expr_functor import ExprMutator, post_order_visit
from tilewright.relay.function import Function
from tilewright.relay.op.attributes import OpAttrs
from tilewright.relay.op.rewritten_weight import ATTRIBUTE, WEIGHT, may_be_rewritten, weight_axes
from tilewright.relay.op.transform import auto_scheduler_layout_transform
from tilewright.relay.transform.fold_constant import FoldConstantExpr
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.schedule.tuning import lays_out_weights, tuned_weight_layout
from tilewright.support.errors import TilewrightError
from tilewright.target.target import Target


@dataclass(frozen=True)
class _Change:
    """A function that takes a weight in another layout, and the two layouts as text."""

    function: Function
    place: int
    original: str
    rewritten: str


def weight_of(function: Function) -> tuple[Call, int] | None:
    """The call in a primitive function whose weight is a parameter that nothing else reads, and the parameter's place;
    None where there is no such call, or several."""
    calls: list[Call] = []
    uses: dict[RelayExpr, int] = {}

    def note(expr: RelayExpr) -> None:
        if isinstance(expr, Call):
            for argument in expr.args:
                uses[argument] = uses.get(argument, 0) + 1
            if isinstance(expr.op, Op) and len(expr.args) > WEIGHT and may_be_rewritten(expr.attrs):
                calls.append(expr)

    post_order_visit(function.body, note)
    if len(calls) != 1:
        return None
    weight = calls[0].args[WEIGHT]
    places = [place for place, parameter in enumerate(function.params) if parameter is weight]
    return (calls[0], places[0]) if places and uses[weight] == 1 else None


@dataclass
class AutoSchedulerLayoutRewrite(FunctionPass):
    """Give constant weights the layouts that tuned schedules want."""

    name = "AutoSchedulerLayoutRewrite"
    opt_level = 3

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Rewrite the weights of every function, where a scope may want it."""
        return super().transform_module(mod, ctx) if lays_out_weights() else mod

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite the weights of the primitive functions that one function calls."""
        target = Target.current()
        if func.is_primitive or target is None:
            return func
        body = _Rewrite(target).visit(func.body)
        return func if body is func.body else func.replace(body=body)


class _Rewrite(ExprMutator):
    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target = target
        self.changes: dict[Function, _Change | None] = {}
        self.weights: dict[tuple[RelayExpr, str], RelayExpr] = {}

    def visit_function(self, fn: Function) -> RelayExpr:
        """Primitive functions change where they are called."""
        return fn if fn.is_primitive else super().visit_function(fn)

    def visit_call(self, call: Call) -> RelayExpr:
        """A call of a primitive function with a constant weight."""
        made = call.map_children(self.visit)
        function = made.op
        if not isinstance(function, Function) or not function.is_primitive or function.attrs.get("Compiler"):
            return made
        found = weight_of(function)
        if found is None or not isinstance(made.args[found[1]], Constant):
            return made
        if function not in self.changes:
            self.changes[function] = self._change(function, *found)
        change = self.changes[function]
        if change is None:
            return made
        arguments = list(made.args)
        arguments[change.place] = self._weight(arguments[change.place], change)
        return made.replace(op=change.function, args=tuple(arguments))

    def _change(self, function: Function, call: Call, place: int) -> _Change | None:
        """What a scope wants for a function."""
        try:
            request = schedule_request(function, self.target)
        except TilewrightError:
            return None  # lowering will say what is wrong
        if request is None or request.attrs is not call.attrs:
            return None
        layout = tuned_weight_layout(request)
        if layout is None:
            return None
        old = function.params[place]
        kind = old.checked_type
        assert isinstance(call.op, Op) and isinstance(kind, TensorType)
        axes = weight_axes(call.op.name, call.attrs, len(layout.original_shape))
        text = layout.text(axes)
        original = "".join(
            f"{extent}{axis}" for extent, axis in zip(layout.original_shape, axes, strict=True)
        )
        fresh = Var(old.name_hint, TensorType(layout.shape, kind.dtype), old.span)
        body = _Replace(call, fresh, text).visit(function.body)
        params = [*function.params[:place], fresh, *function.params[place + 1 :]]
        return _Change(function.replace(params=tuple(params), body=body), place, original, text)

    def _weight(self, weight: RelayExpr, change: _Change) -> RelayExpr:
        """A constant in another layout; one that several calls read is rewritten once."""
        key = (weight, change.original + change.rewritten)
        if key not in self.weights:
            moved = auto_scheduler_layout_transform(weight, change.original, change.rewritten)
            self.weights[key] = FoldConstantExpr(moved)
        return self.weights[key]


class _Replace(ExprMutator):
    """Makes one call read another parameter, and say its layout."""

    def __init__(self, call: Call, weight: Var, layout: str) -> None:
        super().__init__()
        self.call = call
        self.weight = weight
        self.layout = layout

    def visit_call(self, call: Call) -> RelayExpr:
        made = call.map_children(self.visit)
        if call is not self.call:
            return made
        arguments = (*made.args[:WEIGHT], self.weight, *made.args[WEIGHT + 1 :])
        attrs = made.attrs
        assert isinstance(attrs, OpAttrs)
        return made.replace(args=arguments, attrs=attrs.replace(**{ATTRIBUTE: self.layout}))
