"""The functions of the script language that return values: types, constants, expressions, intrinsics.

A function of ``FUNCTIONS`` gets evaluated arguments. Any other name is an intrinsic: with ``dtype=`` it is exactly the
call that was printed, without it the function of ``tir.op`` that builds and types the call.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.arith import Analyzer
from tilewright.ir import expr as nodes
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import IntImm, IterVar, PrimExpr, Range, SizeVar, StringImm, Var
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.op import Op
from tilewright.ir.type import PointerType, PrimType, TupleType, Type
from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError, TilewrightError
from tilewright.target.target import Target
from tilewright.tir import op as tir_op
from tilewright.tir.script.printer import ITERATION_KINDS


@dataclass(frozen=True)
class TypeMaker:
    """A type that takes arguments in brackets: ``T.Ptr[T.float32]``."""

    make: Callable[..., Any]


@dataclass(frozen=True)
class BufferAnnotation:
    """``T.Buffer[(16, 16), "float32"]``: the type of a parameter that stands for a buffer."""

    shape: tuple[Any, ...]
    dtype: str
    options: dict[str, Any]


@dataclass(frozen=True)
class SizeAnnotation:
    """``T.Size[T.int32]``: the type of a variable that is never negative."""

    kind: Type


def make_variable(name: str, annotation: Any) -> Var:
    """The variable that an annotation describes."""
    if isinstance(annotation, SizeAnnotation):
        return SizeVar(name, annotation.kind)
    return Var(name, as_type(annotation))


def as_type(value: Any) -> Type:
    """A type from a type or the name of a data type."""
    value = plain(value)
    if isinstance(value, Type):
        return value
    if isinstance(value, str):
        return PrimType(value)
    raise ExpressionError(f"{value!r} is not a type; expected for example T.int32 or T.Ptr[T.float32]")


def pointer_type(element: Any, scope: Any = "") -> PointerType:
    """``T.Ptr[element, scope]``."""
    return PointerType(as_type(element), str(plain(scope)))


def buffer_annotation(shape: Any, dtype: Any = "float32", **options: Any) -> BufferAnnotation:
    """``T.Buffer[shape, dtype]``."""
    extents = tuple(shape) if isinstance(shape, (list, tuple)) else (shape,)
    return BufferAnnotation(extents, str(plain(dtype)), {key: plain(value) for key, value in options.items()})


TYPE_MAKERS = {
    "Ptr": TypeMaker(pointer_type),
    "Buffer": TypeMaker(buffer_annotation),
    "Size": TypeMaker(lambda kind: SizeAnnotation(as_type(kind))),
    "Tuple": TypeMaker(lambda *fields: TupleType([as_type(field) for field in fields])),
}


def data_type(name: str) -> DataType | None:
    """The data type of this name, if it is one."""
    if name == "boolean":
        return DataType("bool")
    try:
        return DataType(name) if name else None
    except ExpressionError:
        return None


def named_value(
    error: Callable[[ast.AST, str], TilewrightError], node: ast.AST, name: str, namespace: Any
) -> Any:
    """The value of ``T.name`` if it is not called."""
    if name in TYPE_MAKERS:
        return TYPE_MAKERS[name]
    if name == "axis":
        return namespace("axis.")
    dtype = data_type(name)
    if dtype is not None:
        return PrimType(dtype)
    raise error(node, f"T.{name} must be called" if is_known(name) else unknown(name))


def plain(value: Any) -> Any:
    """A constant as a Python value; anything else as it is."""
    if isinstance(value, IntImm):
        return bool(value.value) if value.dtype.is_bool else value.value
    if isinstance(value, (nodes.FloatImm, StringImm)):
        return value.value
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def convert_number(kind: str, value: Any) -> Any:
    """Python's ``float("inf")`` and the like."""
    makers: dict[str, Callable[[Any], Any]] = {"float": float, "int": int, "bool": bool}
    return makers[kind](value) if isinstance(value, (bool, int, float, str)) else None


def constant_value(expr: Any) -> Any:
    """The value of an expression of constants; None if it is not one."""
    if isinstance(expr, IntImm):
        return expr.value
    if isinstance(expr, (nodes.Add, nodes.Sub, nodes.Mul, nodes.FloorDiv, nodes.FloorMod)):
        a, b = constant_value(expr.a), constant_value(expr.b)
        if a is None or b is None or (b == 0 and isinstance(expr, (nodes.FloorDiv, nodes.FloorMod))):
            return None
        folds: dict[type, Callable[[int, int], int]] = {
            nodes.Add: lambda x, y: x + y,
            nodes.Sub: lambda x, y: x - y,
            nodes.Mul: lambda x, y: x * y,
            nodes.FloorDiv: lambda x, y: x // y,
            nodes.FloorMod: lambda x, y: x % y,
        }
        return folds[type(expr)](a, b)
    return expr if isinstance(expr, int) else None


def simplified_difference(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """``a - b``, simplified: the extent of a range that was written with its end."""
    return Analyzer().simplify(operators.subtract(a, b))


def divide(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """``a / b`` of floats; an error for integers."""
    return nodes.Div(a, b) if a.dtype.is_float else operators.true_divide(a, b)


def _two(make: Callable[[PrimExpr, PrimExpr], PrimExpr]) -> Callable[[Any, Any], PrimExpr]:
    """A node of two operands, brought to one type."""
    return lambda a, b: make(*operators.match_types(a, b))


def _typed(dtype: DataType, value: Any = None) -> Any:
    """``T.float32(1.5)``: a constant of the type, or a cast. Without an argument, the type."""
    if value is None:
        return PrimType(dtype)
    if isinstance(value, str) and not dtype.is_integral:
        value = float(value)
    if isinstance(value, (IntImm, nodes.FloatImm)):
        value = value.value
    if isinstance(value, (bool, int, float, np.generic)):
        if dtype.lanes == 1 and not dtype.is_integral and not dtype.is_handle:
            return nodes.FloatImm(dtype, float(value))
        return operators.const(value, dtype)
    return operators.cast(dtype, operators.as_expr(value))


def iteration_axis(variable: Any, *rest: Any) -> IterVar:
    """``T.iter_var(variable[, min, extent][, kind, tag])``: a reduction axis unless a kind is given."""
    known = variable.var if isinstance(variable, IterVar) else variable
    if not isinstance(known, Var):
        raise ExpressionError("an axis is made from a variable")
    domain = None
    if rest and not isinstance(rest[0], (str, StringImm)):
        if isinstance(rest[0], (list, tuple)):
            domain, rest = Range(*rest[0]), rest[1:]
        elif rest[0] is None:
            rest = rest[1:]
        else:
            domain, rest = Range.from_min_extent(rest[0], rest[1]), rest[2:]
    kind, tag = (
        (str(plain(rest[0])) if rest else "CommReduce"),
        (str(plain(rest[1])) if len(rest) > 1 else ""),
    )
    if kind not in ITERATION_KINDS:
        raise ExpressionError(f"{kind} is not a kind of axis; there are {', '.join(ITERATION_KINDS)}")
    return IterVar(domain, known, ITERATION_KINDS.index(kind), tag)


def _variable(dtype: Any, name: str = "v") -> Var:
    return Var(name, as_type(dtype))


def _size_variable(dtype: Any, name: str = "v") -> Var:
    return SizeVar(name, as_type(dtype))


def _buffer_variable(dtype: Any, scope: Any = "", name: str = "v") -> Var:
    return Var(name, pointer_type(dtype, scope))


def _reduce(
    combiner: Any, source: Any, axes: Any, condition: Any = True, index: Any = 0, init: Any = None
) -> PrimExpr:
    return nodes.Reduce(combiner, source, axes, condition, plain(index), init)


def _call_function(name: Any, *args: Any, dtype: str = "int32") -> nodes.Call:
    return nodes.Call(str(plain(dtype)), GlobalVar(str(plain(name))), args)


def _call_operator(name: Any, *args: Any, dtype: str) -> nodes.Call:
    return nodes.Call(str(plain(dtype)), Op.get(str(plain(name))), args)


def _load(dtype: Any, variable: Any, index: Any, predicate: Any = None) -> nodes.Load:
    data = variable.data if isinstance(variable, Buffer) else variable
    index = operators.as_expr(index)
    if predicate is not None and nodes.is_const(operators.as_expr(predicate), 1):
        predicate = None
    return nodes.Load(str(plain(dtype)), data, index, predicate)


def _min_extent(low: Any, extent: Any) -> Range:
    return Range.from_min_extent(low, extent)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: maker.make for name, maker in TYPE_MAKERS.items()},
    "min": _two(nodes.Min),
    "max": _two(nodes.Max),
    "floordiv": _two(nodes.FloorDiv),
    "floormod": _two(nodes.FloorMod),
    "truncdiv": _two(nodes.Div),
    "truncmod": _two(nodes.Mod),
    "And": _two(nodes.And),
    "Or": _two(nodes.Or),
    "Not": nodes.Not,
    "ceildiv": lambda a, b: operators.floordiv(operators.subtract(operators.add(a, b), 1), b),
    "Select": nodes.Select,
    "cast": lambda value, dtype: nodes.Cast(str(plain(dtype)), value),
    "Cast": lambda dtype, value: nodes.Cast(str(plain(dtype)), value),
    "ramp": lambda base, stride, lanes: nodes.Ramp(base, stride, plain(lanes)),
    "broadcast": lambda value, lanes: nodes.Broadcast(value, plain(lanes)),
    "shuffle": nodes.Shuffle,
    "Shuffle": nodes.Shuffle,
    "let": lambda variable, value, body: nodes.Let(variable, value, body),
    "load": _load,
    "Any": lambda: nodes.Any(),
    "IntImm": lambda dtype, value: IntImm(str(plain(dtype)), plain(value)),
    "FloatImm": lambda dtype, value: nodes.FloatImm(str(plain(dtype)), float(plain(value))),
    "StringImm": lambda value: StringImm(str(plain(value))),
    "dtype": lambda name: DataType(str(plain(name))),
    "target": lambda text: Target(plain(text)),
    "var": _variable,
    "size_var": _size_variable,
    "buffer_var": _buffer_variable,
    "iter_var": iteration_axis,
    "reduce_axis": lambda *bounds: (Range(*bounds), IterVar.CommReduce),
    "range": lambda *bounds: (Range(*bounds), IterVar.DataPar),
    "min_extent": _min_extent,
    "Reduce": _reduce,
    "call_function": _call_function,
    "call_op": _call_operator,
    "min_value": lambda dtype: operators.min_value(str(plain(dtype))),
    "max_value": lambda dtype: operators.max_value(str(plain(dtype))),
    "infinity": lambda dtype: operators.infinity(str(plain(dtype))),
}
"""Functions of evaluated arguments, by name."""

STATEMENTS = (
    *("serial", "parallel", "vectorized", "unroll", "thread_binding", "grid"),
    *("block", "init", "reads", "writes", "where", "bind", "block_attr", "axis"),
    *("axis.remap", "axis.spatial", "axis.S", "axis.reduce", "axis.R", "axis.scan", "axis.opaque"),
    *("prim_func", "func_attr", "module_attrs", "no_root_block", "comm_reducer"),
    *("match_buffer", "alloc_buffer", "buffer_decl", "env_thread", "launch_thread"),
    *("allocate", "realize", "attr", "store", "evaluate", "prefetch", "Assert"),
)
"""Names that are only valid as statements."""


def is_known(name: str) -> bool:
    """True if ``T.name`` means something."""
    return name in FUNCTIONS or name in STATEMENTS or f"tir.{name}" in Op.registry or hasattr(tir_op, name)


def unknown(name: str) -> str:
    """The message for a name that means nothing, with the nearest ones that do."""
    names = [*FUNCTIONS, *STATEMENTS, *(op.removeprefix("tir.") for op in Op.registry), *tir_op.__all__]
    near = difflib.get_close_matches(name, dict.fromkeys(names), 3)
    return f"T has no {name}" + (f"; did you mean {' or '.join(near)}?" if near else "")


def call(name: str, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """The value of ``T.name(arguments, **keywords)``."""
    found = FUNCTIONS.get(name)
    if found is not None:
        return found(*arguments, **keywords)
    dtype = data_type(name)
    if dtype is not None:
        return _typed(dtype, *arguments, **keywords)
    if "dtype" in keywords and f"tir.{name}" in Op.registry:
        return nodes.Call(str(plain(keywords["dtype"])), Op.get(f"tir.{name}"), arguments)
    builder = getattr(tir_op, name, None) if name in tir_op.__all__ else None
    if builder is not None:
        values = [plain(value) if isinstance(value, StringImm) else value for value in arguments]
        return builder(*values, **{key: plain(value) for key, value in keywords.items()})
    if f"tir.{name}" in Op.registry:
        raise ExpressionError(f"T.{name} needs the type of its result: dtype=...")
    if name in STATEMENTS:
        raise ExpressionError(f"T.{name} is a statement, it has no value here")
    raise ExpressionError(unknown(name))
