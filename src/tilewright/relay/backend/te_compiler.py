"""From primitive functions to loops: each operator provides its tensor expression, and one of them the schedule.

A primitive function is what FuseOps made: operators on its parameters, with at most one heavy operator or reduction.
That one, the anchor, schedules the whole; where there is none, the last operator does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright import te, topi
from tilewright.compile import get_binds, lower
from tilewright.ir import operators
from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.expr import IntImm
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.structural_hash import structural_hash
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.analysis.symbolic_types import (
    OperatorCondition,
    SymbolicTypes,
    tensor_types,
    uses_unknown_dimensions,
)
from tilewright.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tilewright.relay.expr_functor import ValueFunctor
from tilewright.relay.function import Function
from tilewright.relay.op.definition import OpPattern
from tilewright.relay.op.op import OpImplementation, schedule_injective
from tilewright.relay.op.rewritten_weight import computed
from tilewright.schedule.tuning import ScheduleRequest, tuned_schedule
from tilewright.strategy import Choice, choose
from tilewright.support.errors import LoweringError, TilewrightError
from tilewright.support.recursion import recursion_room
from tilewright.target import Target
from tilewright.te.operation import PlaceholderOp
from tilewright.te.tensor import Tensor
from tilewright.tir.stmt import AssertStmt

_LONGEST_NAME = 80


@dataclass(frozen=True)
class LoweredOutput:
    """The output tensors of an operator, and the implementation that made them."""

    outputs: list[Tensor]
    implement: OpImplementation
    choice: Choice | None = None
    """Why this implementation, and why no other."""


@dataclass(frozen=True)
class TensorProgram:
    """A primitive function as tensor expressions: its arguments, its results, and how it is scheduled."""

    inputs: list[Tensor]
    outputs: list[Tensor]
    schedule: te.Schedule
    conditions: list[OperatorCondition]
    """What the kernel relies on, and checks first."""
    choices: list[Choice]
    """How each operator is computed, and why, in the order of the computation."""
    anchor: Choice | None
    """The choice whose implementation schedules the function; None where nothing is computed."""


def get_shape(shape: Sequence[Any]) -> list[Any]:
    """A shape as tensor expressions take it: a constant is an int32 if it fits, an unknown dimension a variable."""

    def known(extent: Any) -> Any:
        if isinstance(extent, UnknownDimension):
            return te.size_var("any_dim", "int32")
        is_small = isinstance(extent, IntImm) and -(1 << 31) <= extent.value < 1 << 31
        return IntImm("int32", extent.value) if is_small else extent

    return [known(extent) for extent in shape]


def lower_call(
    call: Call, inputs: Sequence[Tensor], target: Target, out_type: Type | None = None
) -> LoweredOutput:
    """One call of an operator; ``out_type`` is the result's type where inference left dimensions unknown."""
    op = call.op
    assert isinstance(op, Op)
    if out_type is None:
        out_type = call.checked_type
    choices: list[Choice] = []

    def compute(attrs: Any, operands: Sequence[Tensor]) -> list[Tensor]:
        choice, outputs = choose(op, attrs, list(operands), out_type, target)
        choices.append(choice)
        return outputs

    outputs = computed(op.name, call.attrs, inputs, compute)
    return LoweredOutput(outputs, choices[0].implementation, choices[0])


class _Expressions(ValueFunctor):
    """The tensors of each expression: one, or several for a tuple. ``types`` are there where dimensions are unknown."""

    def __init__(self, target: Target, types: SymbolicTypes | None) -> None:
        super().__init__()
        self.target = target
        self.types = types
        self.inputs: list[Tensor] = []
        self.anchor: tuple[Call, OpImplementation, list[Tensor]] | None = None
        self.anchor_kind = -1
        self.anchor_choice: Choice | None = None
        self.choices: list[Choice] = []

    def parameter(self, variable: Var) -> None:
        """Placeholders for a parameter."""
        kinds = tensor_types(variable.checked_type if self.types is None else self.types.type_of(variable))
        made = []
        for position, kind in enumerate(kinds):
            name = variable.name_hint if len(kinds) == 1 else f"{variable.name_hint}_{position}"
            made.append(te.placeholder(kind.shape, kind.dtype, name=name))
        self.inputs += made
        self.memo_map[variable] = made

    def visit_constant(self, const: Constant) -> list[Tensor]:
        """A scalar as an expression."""
        if const.data.shape != ():
            raise LoweringError("a constant inside a kernel is a scalar; larger ones are parameters")
        value = operators.const(const.data.numpy().item(), const.data.dtype)
        return [te.compute((), lambda: value, name="constant", tag=topi.tag.ELEMWISE)]

    def visit_tuple(self, tup: Tuple) -> list[Tensor]:
        """The fields, flattened."""
        return [tensor for field in tup.fields for tensor in self.visit(field)]

    def visit_tuple_getitem(self, t: TupleGetItem) -> list[Tensor]:
        """One field."""
        return [self.visit(t.tuple_value)[t.index]]

    def visit_function(self, fn: Function) -> list[Tensor]:
        """Functions can only be called, also within a composite function."""
        raise LoweringError("a kernel cannot hold a function as a value")

    def visit_call(self, call: Call) -> list[Tensor]:
        """By the operator's implementation."""
        inputs = [tensor for argument in call.args for tensor in self.visit(argument)]
        if isinstance(call.op, Function):
            # A composite function that no other code generator took is computed in place.
            for parameter, argument in zip(call.op.params, call.args, strict=True):
                self.memo_map[parameter] = self.visit(argument)
            return self.visit(call.op.body)  # type: ignore[no-any-return]
        if not isinstance(call.op, Op):
            raise LoweringError("a kernel can only call operators", span=call.span)
        result = call.checked_type if self.types is None else self.types.type_of(call)
        if all(_is_empty(kind) for kind in tensor_types(result)):
            return [_nothing(kind) for kind in tensor_types(result)]
        try:
            out_type = None if self.types is None else result
            lowered = lower_call(call, inputs, self.target, out_type)
        except TilewrightError as error:
            if error.span is None and call.span is not None:
                raise type(error)(f"{call.op.name}: {error.message}", span=call.span) from error
            raise
        if lowered.choice is not None:
            self.choices.append(lowered.choice)
        kind = int(call.op.get_attr("TOpPattern") or 0)
        if kind >= self.anchor_kind and (
            kind >= OpPattern.COMM_REDUCE or self.anchor_kind < OpPattern.COMM_REDUCE
        ):
            self.anchor, self.anchor_kind = (call, lowered.implement, inputs), kind
            self.anchor_choice = lowered.choice
        return lowered.outputs


def _is_empty(kind: TensorType) -> bool:
    """True for the type of a tensor that never has elements."""
    return any(isinstance(extent, IntImm) and extent.value == 0 for extent in kind.shape)


def _nothing(kind: TensorType) -> Tensor:
    """A tensor without elements: operators need not handle division by its dimensions, nor cost models its speed."""
    zero = operators.const(0, kind.dtype)
    made: Tensor = te.compute(kind.shape, lambda *_: zero, name="nothing", tag=topi.tag.INJECTIVE)
    return made


def tensor_expression(function: Function, target: Target) -> TensorProgram:
    """The function as tensor expressions with a schedule."""
    with recursion_room(), target:
        visitor, outputs = _expressions(function, target)
        request = _request(visitor, outputs, target)
        schedule = schedule_injective(None, outputs, target) if request is None else tuned_schedule(request)
        return TensorProgram(
            visitor.inputs,
            outputs,
            schedule,
            [] if visitor.types is None else visitor.types.conditions,
            visitor.choices,
            visitor.anchor_choice,
        )


def schedule_request(function: Function, target: Target) -> ScheduleRequest | None:
    """What a function's schedule is made for; None where it has no operator to schedule."""
    with recursion_room(), target:
        return _request(*_expressions(function, target), target)


def _expressions(function: Function, target: Target) -> tuple[_Expressions, list[Tensor]]:
    """The tensors of a function, and among them its results."""
    types = SymbolicTypes(function) if uses_unknown_dimensions(function) else None
    visitor = _Expressions(target, types)
    for parameter in function.params:
        visitor.parameter(parameter)
    return visitor, _distinct(visitor.visit(function.body), visitor.inputs)


def _request(visitor: _Expressions, outputs: list[Tensor], target: Target) -> ScheduleRequest | None:
    """The request for the schedule of a function: its anchor makes it."""
    if visitor.anchor is None:
        return None
    call, implement, operands = visitor.anchor
    assert isinstance(call.op, Op)
    return ScheduleRequest(
        operator=call.op.name,
        implementation=implement.name,
        attrs=call.attrs,
        inputs=operands,
        arguments=[*visitor.inputs, *outputs],
        outputs=outputs,
        target=target,
        construct=lambda: implement.schedule(call.attrs, outputs, target),
    )


def _distinct(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[Tensor]:
    """Results that are arguments, or occur twice, are copied: each is written to memory of its own."""
    made: list[Tensor] = []
    for tensor in outputs:
        if isinstance(tensor.op, PlaceholderOp) or tensor in made or any(tensor.op is one.op for one in made):
            same_operation = any(tensor.op is one.op for one in made) and tensor not in made
            if not same_operation:
                tensor = topi.identity(tensor)
        made.append(tensor)
    return made


def lower_primitive(function: Function, target: Target, name: str) -> IRModule:
    """The loops of a primitive function, as one function called ``name``: inputs, then outputs."""
    program = tensor_expression(function, target)
    arguments = [*program.inputs, *program.outputs]
    binds, _ = get_binds(arguments, compact=True)
    with target:
        made = lower(program.schedule, arguments, name, binds)
    return _checked(made, program.conditions)


def _checked(module: IRModule, conditions: Sequence[OperatorCondition]) -> IRModule:
    """The module whose function checks conditions first."""
    if not conditions:
        return module

    def wrap(variable: Any, function: Any) -> Any:
        body = function.body
        for each in reversed(conditions):
            body = AssertStmt(each.condition.holds, each.message, body)
        return function.with_body(body)

    return module.map_functions(wrap)


def kernel_name(function: Function, prefix: str = "tvmgen_default") -> str:
    """A name that says what is computed, and is the same for the same function in every model."""
    names = [name.replace(".", "_") for name in operator_names(function)]
    text = "_".join(["fused", *names])
    digest = f"{structural_hash(function) & 0xFFFFFFFF:08x}"
    if len(text) > _LONGEST_NAME:
        text = text[:_LONGEST_NAME].rstrip("_")
    return f"{prefix}_{text}_{digest}"


def operator_names(function: Function) -> list[str]:
    """The names of the operators of a primitive function, arguments first."""
    names: list[str] = []
    seen: set[RelayExpr] = set()
    stack: list[tuple[RelayExpr, bool]] = [(function.body, False)]
    while stack:
        expr, expanded = stack.pop()
        if expanded:
            assert isinstance(expr, Call)
            if isinstance(expr.op, Op):
                names.append(expr.op.name)
            continue
        if expr in seen:
            continue
        seen.add(expr)
        if isinstance(expr, Call):
            stack.append((expr, True))
            if isinstance(expr.op, Function):
                stack.append((expr.op.body, False))
            parts: Sequence[RelayExpr] = expr.args
        elif isinstance(expr, Tuple):
            parts = expr.fields
        elif isinstance(expr, TupleGetItem):
            parts = (expr.tuple_value,)
        else:
            parts = ()
        stack += [(part, False) for part in reversed(parts)]
    return names
