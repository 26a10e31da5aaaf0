"""The types of a primitive function with a variable for each dimension that is not known.

The variables are those of its parameters' dimensions. The dimensions of everything else are expressions of them, which
the operators' relations give. What a relation cannot prove becomes a condition, which the compiled code
checks; dimensions that must be equal share one variable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.expr import IntImm, PrimExpr, SizeVar, Var
from tilewright.ir.functor import free_vars, substitute_expr
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.relay import expr as relay_expr
from tilewright.relay.expr import Call, Constant, Tuple, TupleGetItem
from tilewright.relay.expr_functor import ValueFunctor, post_order_visit
from tilewright.relay.function import Function
from tilewright.relay.op.definition import RelationError
from tilewright.relay.op.shapes import Condition, equal_broadcasts, recorded_conditions
from tilewright.support.errors import LoweringError

VIEW: Final = "View"
"""The attribute of a primitive function whose result is its first argument's memory, in a shape known to fit."""
SAME_SHAPES: Final = "SameShapes"
"""The attribute of a primitive function in which no open dimension is broadcast: of two that meet, both are equal."""


def tensor_types(given: Type) -> list[TensorType]:
    """The tensors of a value of this type, tuples flattened."""
    if isinstance(given, TensorType):
        return [given]
    if isinstance(given, TupleType):
        return [tensor for part in given.fields for tensor in tensor_types(part)]
    raise LoweringError(f"a kernel works on tensors and tuples of them, not on a value of type {given}")


def has_constant_shape(given: TensorType) -> bool:
    """True if all dimensions are constants."""
    return all(isinstance(extent, IntImm) for extent in given.shape)


def uses_unknown_dimensions(function: Function) -> bool:
    """True if a dimension anywhere in a primitive function is not known."""
    found = False

    def look(expr: Any) -> None:
        nonlocal found
        if not found and isinstance(expr, (relay_expr.Var, Call)):
            found = not all(has_constant_shape(one) for one in tensor_types(expr.checked_type))

    post_order_visit(function, look)
    return found


@dataclass(frozen=True)
class OperatorCondition:
    """A condition, and the operator that sets it."""

    operator: str
    condition: Condition

    @property
    def message(self) -> str:
        """The message if it does not hold."""
        name, message = self.operator, self.condition.message
        return message if message.startswith(f"{name}:") else f"{name}: {message}"


class SymbolicTypes(ValueFunctor):
    """The type of each expression of one function; ``conditions`` are what the types rely on."""

    def __init__(self, function: Function, dtype: str = "int32") -> None:
        super().__init__()
        self.function = function
        self.dtype = dtype
        self.conditions: list[OperatorCondition] = []
        self._equal: dict[Var, PrimExpr] = {}
        self._dimensions: dict[tuple[int, int, int], Var] = {}
        while True:
            self._infer()
            found = self._new_equalities()
            if not found:
                break
            self._equal.update(found)

    def type_of(self, expr: RelayExpr) -> Type:
        """The type of an expression of the function."""
        return self.visit(expr)  # type: ignore[no-any-return]

    def parameter_types(self, index: int) -> list[TensorType]:
        """The tensors of a parameter."""
        return tensor_types(self.type_of(self.function.params[index]))

    def _infer(self) -> None:
        self.memo_map.clear()
        self.conditions.clear()
        for number, parameter in enumerate(self.function.params):
            self.memo_map[parameter] = self._parameter(number, parameter.checked_type)
        attributes = self.function.attrs
        is_same = attributes is not None and attributes.get(SAME_SHAPES)
        with equal_broadcasts() if is_same else nullcontext():
            self.result = self.visit(self.function.body)

    def _parameter(self, number: int, given: Type) -> Type:
        parts = [
            TensorType(
                [
                    self._dimension((number, position, axis), extent)
                    for axis, extent in enumerate(tensor.shape)
                ],
                tensor.dtype,
            )
            for position, tensor in enumerate(tensor_types(given))
        ]
        return _packed(given, iter(parts))

    def _dimension(self, place: tuple[int, int, int], extent: PrimExpr) -> PrimExpr:
        if isinstance(extent, IntImm):
            return extent
        if place not in self._dimensions:
            self._dimensions[place] = SizeVar("any_dim", self.dtype)
        found: PrimExpr = self._dimensions[place]
        return self._resolved(found)

    def _resolved(self, extent: PrimExpr) -> PrimExpr:
        """An extent in terms of variables that nothing is known to be equal to."""
        while any(variable in self._equal for variable in free_vars(extent)):
            extent = substitute_expr(extent, self._equal)
        return extent

    def _new_equalities(self) -> Mapping[Var, PrimExpr]:
        """Of two dimensions that must be equal, one replaces the other if it is a variable of a parameter."""
        known = set(self._dimensions.values()) - set(self._equal)
        for each in self.conditions:
            if each.condition.pair is None:
                continue
            first, second = each.condition.pair
            for one, other in ((first, second), (second, first)):
                if isinstance(one, Var) and one in known and one is not other:
                    if isinstance(other, int):
                        return {one: IntImm(self.dtype, other)}
                    if one not in free_vars(other) and all(used in known for used in free_vars(other)):
                        return {one: other}
        return {}

    # Expressions

    def visit_constant(self, const: Constant) -> Type:
        return const.tensor_type

    def visit_tuple(self, tup: Tuple) -> Type:
        return TupleType([self.visit(field) for field in tup.fields])

    def visit_tuple_getitem(self, t: TupleGetItem) -> Type:
        return self.visit(t.tuple_value).fields[t.index]  # type: ignore[no-any-return]

    def visit_call(self, call: Call) -> Type:
        types = [self.visit(argument) for argument in call.args]
        if isinstance(call.op, Function):
            self.memo_map.update(zip(call.op.params, types, strict=True))
            return self.visit(call.op.body)  # type: ignore[no-any-return]
        if not isinstance(call.op, Op):
            raise LoweringError("a kernel can only call operators", span=call.span)
        found: Type | None = None
        relation = call.op.get_attr("TypeRelation")[1]
        with self.relating() as conditions:
            try:
                found = relation(types, call.attrs)
            except RelationError as error:
                self.cannot_relate(call, error)
        self.conditions += [OperatorCondition(call.op.name, one) for one in conditions]
        expected = tensor_types(call.checked_type)
        answers = tensor_types(found) if found is not None else expected
        merged = [
            TensorType([_better(a, b) for a, b in zip(one.shape, other.shape, strict=True)], one.dtype)
            for one, other in zip(expected, answers, strict=True)
        ]
        if any(isinstance(extent, UnknownDimension) for one in merged for extent in one.shape):
            merged = self.unknown_results(call, merged)
        return _packed(call.checked_type, iter(merged))

    # What depends on the use

    def relating(self) -> AbstractContextManager[list[Condition]]:
        """Around asking a relation; gives the list of what it relies on."""
        return recorded_conditions()

    def cannot_relate(self, call: Call, error: RelationError) -> None:
        """Called where a relation does not hold for symbolic dimensions: they are then unknown."""

    def unknown_results(self, call: Call, results: Sequence[TensorType]) -> list[TensorType]:
        """The results of a call whose relation leaves dimensions unknown: variables of their own, which the shapes of
        the results themselves give when the kernel is called."""
        return self._with_variables(results)

    def with_variables(self, kind: Type) -> Type:
        """The type with a variable for each unknown dimension."""
        return _packed(kind, iter(self._with_variables(tensor_types(kind))))

    def _with_variables(self, results: Sequence[TensorType]) -> list[TensorType]:
        fresh: dict[UnknownDimension, PrimExpr] = {}

        def known(extent: PrimExpr) -> PrimExpr:
            if not isinstance(extent, UnknownDimension):
                return extent
            return fresh.setdefault(extent, SizeVar("any_dim", self.dtype))

        return [TensorType([known(extent) for extent in one.shape], one.dtype) for one in results]


def _better(expected: PrimExpr, answer: PrimExpr) -> PrimExpr:
    """What inference found where that is a constant, else what the relation says of the symbolic dimensions."""
    return expected if isinstance(expected, IntImm) or isinstance(answer, UnknownDimension) else answer


def _packed(like: Type, tensors: Any) -> Type:
    """The tensors in the form of a type."""
    if isinstance(like, TupleType):
        return TupleType([_packed(field, tensors) for field in like.fields])
    made: Type = next(tensors)
    return made
