"""PlanDevices: assigns a device to every value, and inserts copies where values cross devices.

``analysis.devices`` has the rules. Afterwards each ``on_device`` without ``is_fixed`` is a ``device_copy`` if its
result is used on another device, and removed otherwise. Functions declare where they expect their arguments and leave
their result ("param_device_types", "result_device_type"). A value that is on another device than the result of the
enclosing function, and that is let-bound or copied from, is wrapped in an ``on_device`` with ``is_fixed``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.function import BaseFunc
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.transform import Pass, PassContext
from tilewright.ir.type import FuncType, TupleType, Type
from tilewright.relay.analysis.devices import PLACES_OF_ARGUMENTS, DevicePlan
from tilewright.relay.expr import Call, Constant, Let, Tuple, TupleGetItem, Var
from tilewright.relay.expr_functor import ExprMutator, let_block
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.relay.op.annotation.annotation import on_device
from tilewright.relay.op.tensor.device import device_copy, device_number
from tilewright.relay.transform.lib.move_placements import MovePlacements
from tilewright.runtime.device import Device
from tilewright.support.errors import TilewrightError
from tilewright.support.recursion import recursion_room
from tilewright.support.span import span_scope


class _Place(ExprMutator):
    """Writes the plan into the program."""

    def __init__(self, plan: DevicePlan) -> None:
        super().__init__()
        self.plan = plan
        self.around: list[int] = []

    def visit_function(self, fn: Function) -> RelayExpr:
        if fn.is_primitive:
            return fn
        self.around.append(self.plan.result_device(fn))
        body = self.visit(fn.body)
        result = self.around.pop()
        made = fn if body is fn.body else fn.replace(body=body)
        placed: Function = made.with_attr(
            {"param_device_types": tuple(self.plan.param_devices(fn)), "result_device_type": result}
        )
        return placed

    def fixed(self, made: RelayExpr, device: int) -> RelayExpr:
        """An expression with the place where it is. Variables, constants and functions say it elsewhere."""
        if isinstance(made, (Var, Constant, Function, GlobalVar)) or _is_placed(made):
            return made
        with span_scope(made.span):
            return on_device(made, device, is_fixed=True)

    def visit_call(self, call: Call) -> RelayExpr:
        if not isinstance(call.op, Op) or call.op.name != "on_device":
            return self.with_placed_arguments(call)
        attrs: Any = call.attrs
        source, kind = int(attrs.device_type), call.checked_type
        self.around.append(source)
        made = self.visit(call.args[0])
        self.around.pop()
        if isinstance(kind, FuncType):
            return made  # type: ignore[no-any-return]
        if attrs.is_fixed:
            return made if source == self.around[-1] else self.fixed(made, source)
        target = self.plan.device_of(call)
        with span_scope(call.span):
            if target != source:
                placed = self.fixed(made, source) if source != self.around[-1] else made
                return _copied(placed, kind, source, target)
            if source != self.around[-1]:
                return self.fixed(made, source)
            return made  # type: ignore[no-any-return]

    def with_placed_arguments(self, call: Call) -> RelayExpr:
        """Arguments that are elsewhere than the call say so: what is copied, and sizes and shapes."""
        if not isinstance(call.op, Op) or call.op.name not in (*PLACES_OF_ARGUMENTS, "device_copy"):
            return call.map_children(self.visit)
        arguments = []
        for argument in call.args:
            made, device = self.visit(argument), self.plan.device_of(argument)
            if isinstance(made, Constant) and device != self.around[-1]:
                with span_scope(call.span):
                    made = on_device(made, device, is_fixed=True)
            elif device != self.around[-1] and not isinstance(argument.checked_type, FuncType):
                made = self.fixed(made, device)
            arguments.append(made)
        same = all(one is other for one, other in zip(arguments, call.args, strict=True))
        return call if same else call.replace(args=tuple(arguments))

    def visit_let(self, let: Let) -> RelayExpr:
        chain: list[tuple[Let, Any]] = []
        current: RelayExpr = let
        while isinstance(current, Let) and current not in self.memo_map:
            value = self.visit(current.value)
            device = self.plan.device_of(current.value)
            if device != self.around[-1] and not isinstance(current.value.checked_type, FuncType):
                value = self.fixed(value, device)
            chain.append((current, value))
            current = current.body
        return let_block(chain, self.visit(current), self.memo_map)


def _is_placed(made: RelayExpr) -> bool:
    return isinstance(made, Call) and isinstance(made.op, Op) and made.op.name in ("on_device", "device_copy")


def _copied(value: RelayExpr, kind: Type, source: int, target: int) -> RelayExpr:
    """The tensors of a value on another device."""
    if isinstance(kind, TupleType):
        parts = enumerate(kind.fields)
        return Tuple([_copied(TupleGetItem(value, index), part, source, target) for index, part in parts])
    if not isinstance(kind, TensorType):
        raise TilewrightError(f"a value of type {kind} cannot be copied to another device", span=value.span)
    return device_copy(value, source, target)


@dataclass
class PlanDevices(Pass):
    """Place every value; ``default_device`` (a device, its name or its number) is where the rest lies."""

    default_device: str | int

    name = "PlanDevices"
    opt_level = 0

    def __post_init__(self) -> None:
        # A device object is data under its name: the pass prints as text that can be read back.
        number = device_number(self.default_device)
        self.default_device = Device.MASK2STR.get(number, number)

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Plan all functions together."""
        move = MovePlacements()

        def moved(name: GlobalVar, function: BaseFunc) -> BaseFunc:
            made: BaseFunc = move.visit(function) if isinstance(function, Function) else function
            return made

        with recursion_room():
            typed = infer_module(mod.map_functions(moved))
        plan = DevicePlan(typed, device_number(self.default_device))
        place = _Place(plan)

        def change(name: GlobalVar, function: BaseFunc) -> BaseFunc:
            if not isinstance(function, Function) or function.attrs.get("Compiler"):
                return function
            made: BaseFunc = place.visit(function)
            return made

        with recursion_room():
            return typed.map_functions(change)
