"""From primitive functions to loops: each operator gives its tensor expression, one of them the schedule.

A primitive function is what FuseOps made: operators on its parameters, with at most one heavy operator or reduction.
That one, the anchor, schedules the whole; where there is none, the last operator does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright import te, topi
from tilewright.ir import operators
from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.structural import structural_equal
from tilewright.ir.structural_hash import structural_hash
from tilewright.ir.transform import PassContext
from tilewright.ir.type import Type
from tilewright.relay.backend.implementation import (
    get_valid_implementations,
    is_own,
    select_implementation,
)
from tilewright.relay.backend.symbolic import (
    OperatorCondition,
    SymbolicTypes,
    tensor_types,
    uses_unknown_dimensions,
)
from tilewright.relay.expr import Call, Constant, Let, Tuple, TupleGetItem, Var
from tilewright.relay.expr_functor import ExprFunctor
from tilewright.relay.function import Function
from tilewright.relay.op.definition import OpPattern
from tilewright.relay.op.op import OpImplementation, schedule_injective
from tilewright.runtime.packed_func import PackedFunc
from tilewright.strategy import Choice, choose
from tilewright.support.errors import LoweringError, TilewrightError
from tilewright.support.recursion import recursion_room
from tilewright.target import Target
from tilewright.te.build_module import build, get_binds, lower
from tilewright.te.operation import PlaceholderOp
from tilewright.te.tensor import Tensor
from tilewright.tir.stmt import AssertStmt

__all__ = [
    "CCacheKey",
    "CCacheValue",
    "CachedFunc",
    "LoweredOutput",
    "TECompiler",
    "get",
    "get_shape",
    "get_valid_implementations",
    "kernel_key",
    "kernel_name",
    "lower_call",
    "lower_primitive",
    "operator_names",
    "select_implementation",
    "tensor_expression",
]

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


def get_shape(shape: Sequence[Any]) -> tuple[Any, ...]:
    """A shape as tensor expressions take it: an unknown dimension is a variable."""
    return tuple(
        te.size_var("any_dim", "int32") if isinstance(extent, UnknownDimension) else extent
        for extent in shape
    )


def lower_call(
    call: Call, inputs: Sequence[Tensor], target: Target, out_type: Type | None = None
) -> LoweredOutput:
    """One call of an operator; ``out_type`` is the result's type where inference left dimensions unknown."""
    assert isinstance(call.op, Op)
    if out_type is None:
        out_type = call.checked_type
    choice, outputs = choose(call.op, call.attrs, list(inputs), out_type, target)
    return LoweredOutput(outputs, choice.implementation, choice)


class _Expressions(ExprFunctor):
    """The tensors of each expression: one, or several for a tuple. ``types`` are there where dimensions are unknown."""

    def __init__(self, target: Target, types: SymbolicTypes | None) -> None:
        super().__init__()
        self.target = target
        self.types = types
        self.inputs: list[Tensor] = []
        self.anchor: tuple[Call, OpImplementation] | None = None
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
        """The fields, in a row."""
        return [tensor for field in tup.fields for tensor in self.visit(field)]

    def visit_tuple_getitem(self, t: TupleGetItem) -> list[Tensor]:
        """One field."""
        return [self.visit(t.tuple_value)[t.index]]

    def visit_let(self, let: Let) -> list[Tensor]:
        """The value stands for the variable."""
        current: RelayExpr = let
        while isinstance(current, Let):
            self.memo_map[current.var] = self.visit(current.value)
            current = current.body
        return self.visit(current)  # type: ignore[no-any-return]

    def visit_function(self, fn: Function) -> list[Tensor]:
        """Functions are called, within a composite function too."""
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
            raise LoweringError("a kernel calls operators alone", span=call.span)
        try:
            out_type = None if self.types is None else self.types.type_of(call)
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
            self.anchor, self.anchor_kind = (call, lowered.implement), kind
            self.anchor_choice = lowered.choice
        return lowered.outputs


def tensor_expression(function: Function, target: Target) -> TensorProgram:
    """The function as tensor expressions with a schedule."""
    with recursion_room(), target:
        types = SymbolicTypes(function) if uses_unknown_dimensions(function) else None
        visitor = _Expressions(target, types)
        for parameter in function.params:
            visitor.parameter(parameter)
        outputs = _distinct(visitor.visit(function.body), visitor.inputs)
        conditions = [] if types is None else types.conditions
        if visitor.anchor is None:
            schedule = schedule_injective(None, outputs, target)
        else:
            call, implement = visitor.anchor
            schedule = implement.schedule(call.attrs, outputs, target)
        return TensorProgram(
            visitor.inputs, outputs, schedule, conditions, visitor.choices, visitor.anchor_choice
        )


def _distinct(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[Tensor]:
    """Results that are arguments, or stand twice, are copied: each is written to memory of its own."""
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


def kernel_key(function: Function, target: Target) -> str | None:
    """What decides the code of a primitive function, as text; None where a part of it is not this package's own."""
    context = PassContext.current()
    if context.instruments or context.get("tir.add_lower_pass"):
        return None
    seen: set[RelayExpr] = set()
    pending: list[RelayExpr] = [function.body]
    while pending:
        expr = pending.pop()
        if expr in seen:
            continue
        seen.add(expr)
        if isinstance(expr, Call):
            if isinstance(expr.op, Op) and not is_own(expr.op, target):
                return None
            pending += [*expr.args, *([expr.op.body] if isinstance(expr.op, Function) else [])]
        elif isinstance(expr, (Tuple, TupleGetItem)):
            pending += expr.children()  # type: ignore[arg-type]
    options = sorted((key, repr(value)) for key, value in context.config.items())
    text = f"{function.astext(show_meta_data=True)}\n{target}\n{options}\n{sorted(context.disabled_pass)}"
    return hashlib.sha256(text.encode()).hexdigest()


class CCacheKey:
    """What a compiled function is found by: its structure, and the target."""

    def __init__(self, source_func: Function, target: str | Target) -> None:
        self.source_func, self.target = source_func, Target(target)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CCacheKey)
            and str(self.target) == str(other.target)
            and structural_equal(self.source_func, other.source_func)
        )

    def __hash__(self) -> int:
        return hash((structural_hash(self.source_func), str(self.target)))

    def same_as(self, other: object) -> bool:
        """True for the very same key."""
        return self is other


@dataclass(frozen=True, eq=False)
class CachedFunc:
    """A primitive function as tensor expressions, with its schedule and its loops."""

    target: Target
    prim_fn_var: GlobalVar
    inputs: list[Tensor]
    outputs: list[Tensor]
    schedule: te.Schedule
    funcs: IRModule

    def same_as(self, other: object) -> bool:
        """True for the very same function, which the compiler gives for functions of one structure."""
        return self is other


@dataclass(eq=False)
class CCacheValue:
    """A compiled function, how often it was asked for, and what can be called once it was."""

    cached_func: CachedFunc
    use_count: int = 0
    packed_func: PackedFunc | None = None


class TECompiler:
    """Compiles primitive functions, each structure once for a target."""

    def __init__(self) -> None:
        self._cache: dict[CCacheKey, CCacheValue] = {}

    def _entry(self, source_func: Function | CCacheKey, target: str | Target | None) -> CCacheValue:
        key = source_func if isinstance(source_func, CCacheKey) else None
        if key is None:
            chosen = target if target is not None else Target.current()
            if not isinstance(source_func, Function) or chosen is None:
                raise LoweringError("what is lowered is a function, for a target or within one")
            key = CCacheKey(source_func, chosen)
        found = self._cache.get(key)
        if found is None:
            found = self._cache[key] = CCacheValue(_cached(key))
        found.use_count += 1
        return found

    def lower(
        self,
        source_func: Function | CCacheKey,
        target: str | Target | None = None,
        mod_name: str = "default",
    ) -> CachedFunc:
        """The function as tensor expressions and loops. The target is the current one where none is given."""
        return self._entry(source_func, target).cached_func

    def jit(self, source_func: Function | CCacheKey, target: str | Target | None = None) -> PackedFunc:
        """The function, compiled: it takes its inputs, then its outputs."""
        entry = self._entry(source_func, target)
        if entry.packed_func is None:
            made = entry.cached_func
            entry.packed_func = build(made.funcs, target=made.target).get_function(made.prim_fn_var.name_hint)
        return entry.packed_func

    def clear(self) -> None:
        """Forget everything."""
        self._cache.clear()

    def items(self) -> list[tuple[CCacheKey, CCacheValue]]:
        """What is compiled, in the order in which it was asked for."""
        return list(self._cache.items())

    def dump(self) -> None:
        """Print what is compiled."""
        for key, value in self._cache.items():
            name = value.cached_func.prim_fn_var.name_hint
            print(f"{name}, used {value.use_count} times: {key.source_func}")  # noqa: T201


def _cached(key: CCacheKey) -> CachedFunc:
    function = key.source_func
    if uses_unknown_dimensions(function):
        raise LoweringError("a function of unknown dimensions is compiled by relay.vm")
    program = tensor_expression(function, key.target)
    name = kernel_name(function)
    arguments = [*program.inputs, *program.outputs]
    with key.target:
        loops = lower(program.schedule, arguments, name)
    return CachedFunc(key.target, GlobalVar(name), program.inputs, program.outputs, program.schedule, loops)


_COMPILER = TECompiler()


def get() -> TECompiler:
    """The compiler of this process."""
    return _COMPILER
