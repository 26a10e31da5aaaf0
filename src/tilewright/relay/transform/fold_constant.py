"""FoldConstant: compute what does not depend on the inputs when the model is compiled.

Calls of operators whose arguments are constants are computed by the operators' references. A condition that is known
chooses its branch, a variable bound to a constant is that constant, and the shape of a tensor whose type has no unknown
dimension is known without its elements.

What stays: operators with an effect or of a device, generators of random numbers, operators without a reference, and
cheap ones whose result is large and several times their arguments: a program that holds a large tensor of zeros is no
better than one that makes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.transform import PassContext
from tilewright.ir.type import TupleType
from tilewright.relay.expr import Call, Constant, If, Let, Tuple, TupleGetItem
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_expr
from tilewright.relay.interpreter import Interpreter
from tilewright.relay.op.definition import OpPattern
from tilewright.relay.op.shapes import dims, known
from tilewright.relay.transform.base import FunctionPass
from tilewright.runtime.ndarray import array, numpy_dtype
from tilewright.support.dtype import DataType
from tilewright.support.errors import TilewrightError
from tilewright.support.span import span_scope

LARGE = 1 << 16
"""Bytes from which a result that is ``TIMES`` its arguments is made when the model runs."""
TIMES = 4

STAYS = frozenset(
    {
        "device_copy",
        "on_device",
        "annotation.stop_fusion",
        "annotation.checkpoint",
        "annotation.compiler_begin",
        "annotation.compiler_end",
        "annotation.bitpack_start",
        "annotation.bitpack_end",
        "annotation.cast_hint",
        "random.threefry_generate",
        "random.threefry_split",
        "random.uniform",
    }
)


def _bytes(found: Any) -> int | None:
    """The size of a value of this type; None where it is not known."""
    if isinstance(found, TupleType):
        parts = [_bytes(field) for field in found.fields]
        return None if None in parts else sum(part for part in parts if part is not None)
    if not isinstance(found, TensorType) or not known(*dims(found)):
        return None
    return int(math.prod(dims(found))) * numpy_dtype(DataType(found.dtype)).itemsize  # type: ignore[arg-type]


def _is_constant(expr: RelayExpr) -> bool:
    pending = [expr]
    while pending:
        current = pending.pop()
        if isinstance(current, Tuple):
            pending.extend(current.fields)
        elif not isinstance(current, Constant):
            return False
    return True


def _as_expr(value: Any) -> RelayExpr:
    if isinstance(value, tuple):
        return Tuple([_as_expr(part) for part in value])
    return Constant(array(np.ascontiguousarray(value).reshape(np.shape(value))))


class _Fold(ExprMutator):
    def visit_function(self, fn: Function) -> RelayExpr:
        """A primitive function is a kernel already."""
        return fn if fn.is_primitive else super().visit_function(fn)

    def visit_let(self, let: Let) -> RelayExpr:
        """Variables that are bound to constants are replaced."""
        chain: list[tuple[Let, Any]] = []
        current: RelayExpr = let
        while isinstance(current, Let) and current not in self.memo_map:
            value = self.visit(current.value)
            if isinstance(value, Constant):
                self.memo_map[current.var] = value
            chain.append((current, value))
            current = current.body
        body = self.visit(current)
        for old, value in reversed(chain):
            if not isinstance(value, Constant):
                same = value is old.value and body is old.body
                body = old if same else old.replace(value=value, body=body)
            self.memo_map[old] = body
        return body  # type: ignore[no-any-return]

    def visit_if(self, ite: If) -> RelayExpr:
        """A known condition chooses."""
        condition = self.visit(ite.cond)
        if isinstance(condition, Constant):
            chosen = ite.true_branch if bool(condition.data.numpy()) else ite.false_branch
            return self.visit(chosen)  # type: ignore[no-any-return]
        return ite.map_children(self.visit)

    def visit_tuple_getitem(self, op: TupleGetItem) -> RelayExpr:
        """The field of a tuple that stands there."""
        value = self.visit(op.tuple_value)
        if isinstance(value, Tuple):
            return value.fields[op.index]
        return op if value is op.tuple_value else op.replace(tuple_value=value)

    def visit_call(self, call: Call) -> RelayExpr:
        """Compute the call where that is possible and pays."""
        new = call.map_children(self.visit)
        if not isinstance(call.op, Op) or call.op.name in STAYS or call.op.get_attr("TOpIsStateful"):
            return new
        shape = _static_shape(call)
        if shape is not None:
            with span_scope(call.span):
                return _as_expr(shape)
        if call.op.get_attr("FReference") is None or not all(_is_constant(argument) for argument in new.args):
            return new
        return new if _too_large(call, call.op) else _computed(new)


def _computed(call: Call) -> RelayExpr:
    try:
        value = Interpreter().run(call)
    except (TilewrightError, IndexError, ValueError):
        # Where the call is never reached there is nothing wrong with it; where it is, the run will tell.
        return call
    with span_scope(call.span):
        return _as_expr(value)


def _static_shape(call: Call) -> Any:
    """What the operators that ask for a shape give for one that is known."""
    if not isinstance(call.op, Op) or call.op.name not in ("shape_of", "vm.shape_of", "ndarray_size"):
        return None
    attrs: Any = call.attrs
    given = call.args[0].checked_type
    if not isinstance(given, TensorType):
        return None
    extents = [extent for extent in dims(given) if isinstance(extent, int)]
    if len(extents) != len(given.shape):
        return None
    value = math.prod(extents) if call.op.name == "ndarray_size" else extents
    return np.asarray(value, numpy_dtype(DataType(attrs.dtype)))


def _too_large(call: Call, op: Op) -> bool:
    if op.get_attr("TOpPattern") not in (OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.INJECTIVE):
        return False
    made = _bytes(call.checked_type)
    if made is None or made <= LARGE:
        return False
    return made > TIMES * sum(_bytes(argument.checked_type) or 0 for argument in call.args)


@dataclass
class FoldConstant(FunctionPass):
    """Compute what is constant."""

    name = "FoldConstant"
    opt_level = 2

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Fold within one function."""
        return fold_function(func)


def fold_function(func: Function) -> Function:
    """A typed function with what is constant computed."""
    body = _Fold().visit(func.body)
    return func if body is func.body else func.replace(body=body)


def FoldConstantExpr(expr: RelayExpr, mod: IRModule | None = None) -> RelayExpr:
    """One expression, with what is constant computed; the module has the functions that it names."""
    return _Fold().visit(infer_expr(expr, mod))  # type: ignore[no-any-return]
