"""Which tensors of a whole function have the same shape, where extents are known at run time only.

Every open extent of a parameter is a variable, and the extents of everything else are expressions of those where the
operators' relations give them; shapes that the program computes from dimensions are followed. What no relation
describes (the results of branches, references and calls of functions, shapes that depend on values) has variables of
its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import IntImm, PrimExpr
from tilewright.ir.expr import Var as Variable
from tilewright.ir.functor import post_order
from tilewright.ir.op import Op
from tilewright.ir.structural import structural_equal
from tilewright.ir.structural_hash import structural_hash
from tilewright.ir.tensor_type import TensorType, is_dynamic
from tilewright.ir.type import TupleType, Type
from tilewright.relay.analysis.shape_values import Values, shape_values
from tilewright.relay.analysis.symbolic_types import SymbolicTypes
from tilewright.relay.expr import Call, Let, Var
from tilewright.relay.function import Function
from tilewright.relay.op.shapes import Condition, Dimension, Proofs, dims, provably_equal, remembered_proofs


class ProgramShapes(SymbolicTypes):
    """The shapes of the expressions of one function that is not primitive."""

    def __init__(self, function: Function) -> None:
        # A model repeats its layers: equal extents are one object, and what was proved of them is kept.
        self._proofs = Proofs()
        self._extents: dict[int, list[PrimExpr]] = {}
        self._values: dict[RelayExpr, Values] = {}
        super().__init__(function)

    def are_equal(self, *exprs: RelayExpr) -> bool:
        """True if these tensors certainly have one shape."""
        kinds = [self.type_of(expr) for expr in exprs]
        with remembered_proofs(self._proofs):
            return all(
                isinstance(one, TensorType) and isinstance(other, TensorType) and _same(one, other)
                for one, other in pairwise(kinds)
            )

    def is_one_size(self, first: Dimension, second: Dimension) -> bool:
        """True if two dimensions are certainly the same."""
        with remembered_proofs(self._proofs):
            return provably_equal(first, second)

    def values_of(self, expr: RelayExpr) -> Values | None:
        """The elements of a small integer tensor, where they follow from dimensions."""
        return self._values.get(expr)

    @contextmanager
    def relating(self) -> Iterator[list[Condition]]:
        """No conditions: what a program relies on proves nothing here."""
        with remembered_proofs(self._proofs):
            yield []

    def _infer(self) -> None:
        for number, parameter in enumerate(self.function.params):
            if _is_tensors(parameter.checked_type):
                self.memo_map[parameter] = self._parameter(number, parameter.checked_type)
        # In the order of computation, so that no visit goes deeper than one expression.
        for expr in post_order(self.function.body):
            if isinstance(expr, RelayExpr) and not isinstance(expr, (Op, Function)):
                self.visit(expr)
                values = shape_values(expr, self._values, self.type_of, self.dtype)
                if values is not None:
                    self._values[expr] = values

    def _new_equalities(self) -> dict[Any, PrimExpr]:
        """None: that two extents must be equal for a program to be right proves nothing here."""
        return {}

    def visit_default(self, expr: RelayExpr) -> Type:
        """Something that no relation describes."""
        return self._unrelated(expr)

    def visit_var(self, var: Var) -> Type:
        return self._unrelated(var)

    def visit_let(self, let: Let) -> Type:
        self.memo_map[let.var] = self.visit(let.value)
        return self.visit(let.body)  # type: ignore[no-any-return]

    def visit_call(self, call: Call) -> Type:
        if not isinstance(call.op, Op) or not _is_tensors(call.checked_type):
            return self._unrelated(call)
        if not is_dynamic(call.checked_type):
            return call.checked_type  # type: ignore[no-any-return]
        if not all(_is_tensors(argument.checked_type) for argument in call.args):
            return self._unrelated(call)
        return self._shared(self._reshaped(call) or super().visit_call(call))

    def _reshaped(self, call: Call) -> TensorType | None:
        """The type of a reshape to a shape that follows from dimensions, none of which may be a code."""
        attrs: Any = call.attrs
        if not isinstance(call.op, Op) or call.op.name != "dyn.reshape" or attrs.allowzero:
            return None
        given, wanted = self.type_of(call.args[0]), self._values.get(call.args[1])
        if wanted is None or not isinstance(given, TensorType):
            return None
        sizes = dims(given)
        for place, value in enumerate(wanted):
            if isinstance(value, IntImm):
                if value.value < 1:
                    return None
            elif place >= len(sizes) or not self.is_one_size(sizes[place], value):
                # At run time it may be zero, which stands for a dimension of the argument.
                return None
        return TensorType(wanted, given.dtype)

    def _shared(self, kind: Type) -> Type:
        """The type with extents that are the same objects wherever they are equal."""
        if isinstance(kind, TupleType):
            return TupleType([self._shared(field) for field in kind.fields])
        assert isinstance(kind, TensorType)
        return TensorType([self._one_of(extent) for extent in kind.shape], kind.dtype)

    def _one_of(self, extent: PrimExpr) -> PrimExpr:
        if isinstance(extent, (IntImm, Variable)):
            return extent
        known = self._extents.setdefault(structural_hash(extent), [])
        for one in known:
            if one is extent or structural_equal(one, extent):
                return one
        known.append(extent)
        return extent

    def _unrelated(self, expr: RelayExpr) -> Type:
        kind: Type = expr.checked_type
        return self.with_variables(kind) if _is_tensors(kind) else kind


def _is_tensors(kind: Any) -> bool:
    if isinstance(kind, TupleType):
        return all(_is_tensors(field) for field in kind.fields)
    return isinstance(kind, TensorType)


def _same(first: TensorType, second: TensorType) -> bool:
    if len(first.shape) != len(second.shape):
        return False
    return all(provably_equal(*pair) for pair in zip(dims(first), dims(second), strict=True))
