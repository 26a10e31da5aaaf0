"""FoldConstant: evaluates at compile time what does not depend on the inputs.

Operator calls with constant arguments are computed by the operators' references. A known condition selects its branch,
a variable bound to a constant is replaced by it, and the shape of a tensor with a static type is known without its
elements.

A weight is often transposed first and put into blocks later. With ``views``, a large transposed constant shares the
memory of what it was made of, so that the two are one copy; ``CompactConstants`` copies those that nothing followed.

Not folded: operators with side effects or of a device, random number generators, operators without a reference, and
cheap ones whose result is large and several times the size of their arguments: storing a large tensor of zeros is no
better than computing it.
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
from tilewright.relay.expr import Call, Constant, If, Let, Tuple, TupleGetItem, Var
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_expr
from tilewright.relay.interpreter import Interpreter
from tilewright.relay.op.definition import OpPattern
from tilewright.relay.op.shapes import dims, known
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import keep_type, made_type
from tilewright.runtime.ndarray import NDArray, array, from_dlpack, numpy_dtype
from tilewright.runtime.strided_copy import compacted
from tilewright.support.dtype import DataType
from tilewright.support.errors import TilewrightError
from tilewright.support.span import span_scope

LARGE = 1 << 16
"""Bytes from which a result that is ``TIMES`` its arguments is made when the model runs."""
TIMES = 4

MOVES = frozenset({"transpose", "concatenate", "layout_transform"})
"""Operators that only move elements, and so give the same for arguments in any order of memory. The references of
others get theirs in the order of the indices: sums depend on it."""
LAZY = frozenset({"transpose", "concatenate"})
"""Those whose results ``views`` concerns: layouts of blocks are final."""

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
        "nn.dropout",
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


def _without_place(expr: RelayExpr) -> RelayExpr:
    """A constant without the device that it is on; other expressions as they are."""
    return expr.args[0] if isinstance(expr, Call) and _is_placed_constant(expr) else expr


def _is_placed_constant(expr: Any) -> bool:
    """True for a constant with the device that it is on."""
    return (
        isinstance(expr, Call)
        and isinstance(expr.op, Op)
        and expr.op.name == "on_device"
        and isinstance(expr.args[0], Constant)
    )


def _as_expr(value: Any, in_any_order: bool = False) -> RelayExpr:
    if isinstance(value, tuple):
        return Tuple([_as_expr(part, in_any_order) for part in value])
    usable = value.flags.c_contiguous or in_any_order
    shared = value.nbytes >= LARGE and usable and value.dtype.kind in "fiu"
    return Constant(from_dlpack(value) if shared else array(value))


def shared_values(data: NDArray) -> np.ndarray[Any, Any] | None:
    """The elements in place, not to be written, where NumPy can have them so."""
    dtype = data.dtype
    if data.device.device_type != 1 or dtype.lanes != 1 or numpy_dtype(dtype).kind not in "fiu":
        return None
    capsule: Any = data
    return np.from_dlpack(capsule)


class _ReadingInterpreter(Interpreter):
    """Reads constants in place: weights are large, and a model folds each of them several times."""

    def __init__(self, in_any_order: bool) -> None:
        super().__init__()
        self.in_any_order = in_any_order

    def visit_constant(self, node: Constant) -> Any:
        """The array, not to be written; what is a view of it keeps it alive."""
        values = shared_values(node.data)
        if values is None:
            return node.data.numpy()
        return values if self.in_any_order else compacted(values)


class Folder(ExprMutator):
    """Computes what is constant, arguments first. Types are those of the rewritten expressions."""

    def __init__(self, views: bool = False) -> None:
        super().__init__()
        self.views = views

    def visit(self, expr: RelayExpr) -> Any:
        """The folded expression. Types that cannot be inferred from the parts are those of the program."""
        made = super().visit(expr)
        if made is not expr and not isinstance(made, (Constant, Let, Tuple, TupleGetItem, Var)):
            if not isinstance(made, Call) or not isinstance(made.op, Op):
                keep_type(expr, made)
        return made

    def variable(self, old: Var, value: RelayExpr) -> Var:
        """The variable that stands for a folded value."""
        return old

    def visit_function(self, fn: Function) -> RelayExpr:
        """A primitive function is a kernel already."""
        return fn if fn.is_primitive else super().visit_function(fn)

    def visit_let(self, let: Let) -> RelayExpr:
        """Variables that are bound to constants are replaced."""
        chain: list[tuple[Let, Any, Any]] = []
        current: RelayExpr = let
        while isinstance(current, Let) and current not in self.memo_map:
            value = self.visit(current.value)
            replaced = isinstance(value, Constant) or _is_placed_constant(value)
            variable = value if replaced else self.variable(current.var, value)
            self.memo_map[current.var] = variable
            chain.append((current, variable, value))
            current = current.body
        body = self.visit(current)
        for old, variable, value in reversed(chain):
            if not isinstance(value, Constant) and not _is_placed_constant(value):
                same = variable is old.var and value is old.value and body is old.body
                body = old if same else old.replace(var=variable, value=value, body=body)
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
        """The field of a literal tuple."""
        value = self.visit(op.tuple_value)
        if isinstance(value, Tuple):
            return value.fields[op.index]
        return op if value is op.tuple_value else op.replace(tuple_value=value)

    def visit_call(self, call: Call) -> RelayExpr:
        """Compute the call where that is possible and pays."""
        return folded(call.map_children(self.visit), self.views)


def folded(call: Call, views: bool = False) -> RelayExpr:
    """The value of a call whose arguments are constants, or the call."""
    op = call.op
    if not isinstance(op, Op) or op.name in STAYS or op.get_attr("TOpIsStateful"):
        return call
    if op.name in ("shape_of", "vm.shape_of", "ndarray_size"):
        return _folded_shape(call, op.name)
    if op.get_attr("FReference") is None:
        return call
    plain = [_without_place(argument) for argument in call.args]
    if not all(_is_constant(argument) for argument in plain):
        return call
    if any(one is not other for one, other in zip(plain, call.args, strict=True)):
        call = call.replace(args=tuple(plain))
    if _too_large(call, op):
        return call
    try:
        value = _ReadingInterpreter(op.name in MOVES).run(call)
    except (TilewrightError, IndexError, ValueError):
        # Where the call is never reached there is nothing wrong with it; where it is, the run will tell.
        return call
    with span_scope(call.span):
        return _as_expr(value, views and op.name in LAZY)


def _folded_shape(call: Call, name: str) -> RelayExpr:
    """The result of a shape query, if it is known."""
    attrs: Any = call.attrs
    given = made_type(call.args[0])
    if not isinstance(given, TensorType):
        return call
    extents = [extent for extent in dims(given) if isinstance(extent, int)]
    if len(extents) != len(given.shape):
        return call
    value = math.prod(extents) if name == "ndarray_size" else extents
    with span_scope(call.span):
        return _as_expr(np.asarray(value, numpy_dtype(DataType(attrs.dtype))))


def _too_large(call: Call, op: Op) -> bool:
    if op.get_attr("TOpPattern") not in (OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.INJECTIVE):
        return False
    made = _bytes(made_type(call))
    if made is None or made <= LARGE:
        return False
    return made > TIMES * sum(_bytes(made_type(argument)) or 0 for argument in call.args)


@dataclass
class FoldConstant(FunctionPass):
    """Compute what is constant."""

    views: bool = False
    """True: large transposed constants may share the memory of what they were made of."""

    name = "FoldConstant"
    opt_level = 2

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Fold within one function."""
        return fold_function(func, self.views)


def fold_function(func: Function, views: bool = False) -> Function:
    """A typed function with what is constant computed."""
    body = Folder(views).visit(func.body)
    return func if body is func.body else func.replace(body=body)


def FoldConstantExpr(expr: RelayExpr, mod: IRModule | None = None) -> RelayExpr:
    """One expression, with what is constant computed; the module has the functions that it names."""
    return Folder().visit(infer_expr(expr, mod))  # type: ignore[no-any-return]
