"""Expressions of a script.

The parser walks Python's syntax tree and creates nodes as they are written, without folding, so that a printed program
parses to the same program. Operands of different types are promoted as by Python's operators on expressions. No user
code is executed: a name is a variable of the script, a number, string, expression or buffer from its environment, or
the script language itself.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tilewright.ir import expr as nodes
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer, BufferRegion
from tilewright.ir.expr import BufferLoad, IntImm, IterVar, Load, PrimExpr, Ramp, Range, Var
from tilewright.ir.type import Type
from tilewright.support.dtype import DataType
from tilewright.support.errors import ParseError, TilewrightError
from tilewright.tir.script import parser_calls
from tilewright.tir.script.source import Source

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], PrimExpr]] = {
    ast.Add: nodes.Add,
    ast.Sub: nodes.Sub,
    ast.Mult: nodes.Mul,
    ast.Div: parser_calls.divide,
    ast.FloorDiv: nodes.FloorDiv,
    ast.Mod: nodes.FloorMod,
}
_BITS: dict[type[ast.operator], Callable[[Any, Any], PrimExpr]] = {
    ast.BitAnd: operators.bitwise_and,
    ast.BitOr: operators.bitwise_or,
    ast.BitXor: operators.bitwise_xor,
    ast.LShift: operators.left_shift,
    ast.RShift: operators.right_shift,
}
_NUMBERS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: lambda a, b: a**b,
    ast.LShift: lambda a, b: a << b,
    ast.RShift: lambda a, b: a >> b,
}
_COMPARISONS: dict[type[ast.cmpop], type[nodes.CmpExpr]] = {
    ast.Eq: nodes.EQ,
    ast.NotEq: nodes.NE,
    ast.Lt: nodes.LT,
    ast.LtE: nodes.LE,
    ast.Gt: nodes.GT,
    ast.GtE: nodes.GE,
}
_BUFFER_ATTRIBUTES = (
    "data",
    "shape",
    "strides",
    "elem_offset",
    "dtype",
    "name",
    "data_alignment",
    "offset_factor",
)
_BUFFER_METHODS = ("access_ptr", "vload", "scope")
_CAPTURED = (int, float, bool, str, PrimExpr, Buffer, IterVar, Range, Type, DataType, np.generic)


class Namespace:
    """``T`` itself, or a part of it such as ``T.axis``; ``path`` is the part's name with its dot."""

    def __init__(self, path: str = "") -> None:
        self.path = path


TIR = Namespace()


class ExpressionParser:
    """Evaluates expressions. ``scopes`` holds the script's own names, innermost last."""

    def __init__(self, source: Source, environment: dict[str, Any]) -> None:
        self.source = source
        self.environment = environment
        self.scopes: list[dict[str, Any]] = [{}]
        self.last_defined: dict[str, Any] = {}

    # Names

    def error(self, node: ast.AST, message: str) -> ParseError:
        """An error at a piece of syntax."""
        return self.source.error(node, message)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names that are defined within the block end with it."""
        self.scopes.append({})
        try:
            yield
        finally:
            self.scopes.pop()

    def define(self, name: str, value: Any) -> None:
        """Give a name its meaning in the innermost scope."""
        self.scopes[-1][name] = value
        self.last_defined[name] = value

    def lookup(self, name: str) -> Any:
        """The value of a name of the script, or None."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def captured(self, node: ast.Name) -> Any:
        """The value of a name from around the script; only plain values and parts of programs are let in."""
        if node.id not in self.environment:
            raise self.error(node, f"{node.id} is not defined")
        value = self.environment[node.id]
        if getattr(value, "IS_SCRIPT_NAMESPACE", False):
            return TIR
        if isinstance(value, (*_CAPTURED, Namespace, types.ModuleType)):
            return value
        if isinstance(value, (list, tuple)) and all(
            isinstance(item, (*_CAPTURED, list, tuple)) for item in value
        ):
            return value
        raise self.error(node, f"{node.id} is a {type(value).__name__}, which a script cannot use")

    # Entry points

    def value(self, node: ast.AST) -> Any:
        """The value of a syntax node: an expression, a captured number, a buffer, a region, a list, ..."""
        handler = self._handlers.get(type(node))
        if handler is None:
            raise self.error(node, f"{type(node).__name__} cannot be used in a script")
        try:
            found = handler(self, node)
        except ParseError:
            raise
        except TilewrightError as error:
            raise self.error(node, error.message) from None
        if isinstance(found, PrimExpr) and not isinstance(found, Var) and found.span is None:
            return found.replace(span=self.source.span(node))
        return found

    def expr(self, node: ast.AST) -> PrimExpr:
        """An expression."""
        value = self.value(node)
        return self.as_expr(node, value)

    def as_expr(self, node: ast.AST, value: Any) -> PrimExpr:
        """A value as an expression."""
        if isinstance(value, PrimExpr):
            return value
        if isinstance(value, BufferRegion):
            return self._vector_load(node, value)
        if isinstance(value, (bool, int, float, str, IterVar, np.generic)):
            return operators.as_expr(value)
        raise self.error(node, f"an expression is needed here, not {_described(value)}")

    def integer(self, node: ast.AST) -> int:
        """An integer that is known now."""
        value = self.value(node)
        if isinstance(value, PrimExpr):
            value = parser_calls.constant_value(value)
        if isinstance(value, (int, np.integer)):
            return int(value)
        raise self.error(node, "an integer constant is needed here")

    def string(self, node: ast.AST) -> str:
        """A string that is known now."""
        value = self.value(node)
        if isinstance(value, nodes.StringImm):
            value = value.value
        if isinstance(value, str):
            return str(value)
        raise self.error(node, "a string is needed here")

    def exprs(self, node: ast.AST) -> list[PrimExpr]:
        """A list of expressions, or a single one."""
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self.expr(item) for item in node.elts]
        value = self.value(node)
        if isinstance(value, (list, tuple)):
            return [self.as_expr(node, item) for item in value]
        return [self.as_expr(node, value)]

    # Syntax

    def _constant(self, node: ast.Constant) -> Any:
        if node.value is None or isinstance(node.value, str):
            return node.value
        if isinstance(node.value, (bool, int, float)):
            return operators.const(node.value)
        raise self.error(node, f"{node.value!r} cannot be used in a script")

    def _name(self, node: ast.Name) -> Any:
        found = self.lookup(node.id)
        return self.captured(node) if found is None else found

    def _sequence(self, node: ast.List | ast.Tuple) -> list[Any]:
        return [self.value(item) for item in node.elts]

    def _dictionary(self, node: ast.Dict) -> dict[Any, Any]:
        return self.literal(node)  # type: ignore[no-any-return]

    def literal(self, node: ast.AST) -> Any:
        """The value of an attribute: plain Python where the text is."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self.literal(item) for item in node.elts]
        if isinstance(node, ast.Dict):
            made: dict[Any, Any] = {}
            for key, value in zip(node.keys, node.values, strict=True):
                if key is None:
                    raise self.error(node, "a dictionary cannot be unpacked here")
                made[self.literal(key)] = self.literal(value)
            return made
        if (
            isinstance(node, ast.UnaryOp)
            and isinstance(node.op, ast.USub)
            and isinstance(node.operand, ast.Constant)
        ):
            if isinstance(node.operand.value, (int, float)):
                return -node.operand.value
        return self.value(node)

    def _binary(self, node: ast.BinOp) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        kind = type(node.op)
        if _is_number(left) and _is_number(right) and kind in _NUMBERS:
            try:
                return _NUMBERS[kind](left, right)
            except (ArithmeticError, TypeError) as error:
                raise self.error(node, str(error)) from None
        if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)) and kind is ast.Add:
            return [*left, *right]
        a, b = self.as_expr(node.left, left), self.as_expr(node.right, right)
        if kind in _BITS:
            return _BITS[kind](a, b)
        if kind not in _ARITHMETIC:
            raise self.error(node, f"the operator {kind.__name__} cannot be used in a script")
        return _ARITHMETIC[kind](*operators.match_types(a, b))

    def _unary(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            if isinstance(node.operand.value, (int, float)):
                # The sign belongs to the literal: the least int32 has no positive counterpart.
                return operators.const(-node.operand.value)
        operand = self.value(node.operand)
        if isinstance(node.op, ast.USub):
            return -operand if _is_number(operand) else operators.negative(self.as_expr(node, operand))
        if isinstance(node.op, ast.Not):
            return nodes.Not(self.as_expr(node, operand))
        if isinstance(node.op, ast.Invert):
            return operators.bitwise_not(self.as_expr(node, operand))
        return operand

    def _logical(self, node: ast.BoolOp) -> PrimExpr:
        make = nodes.And if isinstance(node.op, ast.And) else nodes.Or
        result = self.expr(node.values[0])
        for part in node.values[1:]:
            result = make(*operators.match_types(result, self.expr(part)))
        return result

    def _compare(self, node: ast.Compare) -> PrimExpr:
        left = self.expr(node.left)
        result: PrimExpr | None = None
        for operator, part in zip(node.ops, node.comparators, strict=True):
            if type(operator) not in _COMPARISONS:
                raise self.error(node, f"the comparison {type(operator).__name__} cannot be used in a script")
            right = self.expr(part)
            test = _COMPARISONS[type(operator)](*operators.match_types(left, right))
            result = test if result is None else nodes.And(result, test)
            left = right
        assert result is not None
        return result

    def _conditional(self, node: ast.IfExp) -> PrimExpr:
        condition, yes, no = self.expr(node.test), self.expr(node.body), self.expr(node.orelse)
        a, b = operators.match_types(yes, no)
        return operators.call("if_then_else", a.dtype, [condition, a, b])

    def _attribute(self, node: ast.Attribute) -> Any:
        base = self.value(node.value)
        if isinstance(base, types.ModuleType):
            return self._module_attribute(node, base)
        if isinstance(base, Namespace):
            return parser_calls.named_value(self.error, node, base.path + node.attr, Namespace)
        if isinstance(base, Buffer) and node.attr in _BUFFER_ATTRIBUTES:
            return getattr(base, node.attr)
        if isinstance(base, (PrimExpr, IterVar)) and node.attr in ("dtype", "var", "name"):
            return getattr(base, node.attr)
        raise self.error(node, f"{_described(base)} has no attribute {node.attr} in a script")

    def _module_attribute(self, node: ast.Attribute, module: types.ModuleType) -> Any:
        """A part of this package; no other module may be looked into."""
        if not module.__name__.startswith(("tilewright", "tvm")):
            raise self.error(node, f"module {module.__name__} cannot be used in a script")
        found = getattr(module, node.attr, None)
        if getattr(found, "IS_SCRIPT_NAMESPACE", False):
            return TIR
        if isinstance(found, types.ModuleType):
            return found
        raise self.error(
            node, f"{module.__name__}.{node.attr} cannot be used in a script; use the functions of T"
        )

    # Elements and regions

    def _subscript(self, node: ast.Subscript) -> Any:
        base = self.value(node.value)
        if isinstance(base, Buffer):
            return self._element(node, base)
        if isinstance(base, Var) and base.dtype.is_handle:
            if base.element_type is None:
                raise self.error(node, f"{base.name} does not say what it points to; use T.load")
            return Load(base.element_type, base, self.expr(node.slice))
        if isinstance(base, (list, tuple)):
            position = self.integer(node.slice)
            if not -len(base) <= position < len(base):
                raise self.error(node, f"there are {len(base)} elements, none has the number {position}")
            return base[position]
        if isinstance(base, parser_calls.TypeMaker):
            arguments = self._type_arguments(node.slice)
            return base.make(*arguments)
        raise self.error(node, f"{_described(base)} has no elements")

    def _type_arguments(self, node: ast.AST) -> list[Any]:
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        return [self.value(part) for part in parts]

    def indices_of(self, node: ast.Subscript) -> list[ast.expr]:
        """The syntax of each index; an empty tuple stands for none."""
        return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]

    def _element(self, node: ast.Subscript, buffer: Buffer) -> BufferLoad | BufferRegion:
        indices = self.indices_of(node)
        if len(indices) != len(buffer.shape):
            raise self.error(
                node,
                f"buffer {buffer.name} has {len(buffer.shape)} dimensions, {len(indices)} indices are given",
            )
        values = [
            self._range(index) if isinstance(index, ast.Slice) else self.value(index) for index in indices
        ]
        if any(isinstance(value, Range) for value in values):
            ranges = [
                value if isinstance(value, Range) else self.single(self.as_expr(index, value))
                for index, value in zip(indices, values, strict=True)
            ]
            return BufferRegion(buffer, tuple(ranges))
        exprs = [self.as_expr(index, value) for index, value in zip(indices, values, strict=True)]
        for index, value in zip(indices, exprs, strict=True):
            if not value.dtype.is_integral:
                raise self.error(index, f"an index is an integer, not {value.dtype}")
        return BufferLoad(buffer, exprs)

    def single(self, index: PrimExpr) -> Range:
        """The range of one index."""
        return Range.from_min_extent(index, operators.const(1, index.dtype))

    def region(self, node: ast.AST) -> BufferRegion:
        """A box of a buffer: elements, slices, or the buffer as a whole."""
        value = self.value(node)
        if isinstance(value, BufferRegion):
            return value
        if isinstance(value, BufferLoad):
            return BufferRegion(value.buffer, tuple([self.single(index) for index in value.indices]))
        if isinstance(value, Buffer):
            whole = [
                Range.from_min_extent(operators.const(0, extent.dtype), extent) for extent in value.shape
            ]
            return BufferRegion(value, tuple(whole))
        raise self.error(
            node, f"a region of a buffer is needed here, such as A[0:16, i], not {_described(value)}"
        )

    def _range(self, node: ast.Slice) -> Range:
        if node.step is not None:
            raise self.error(node, "a region has no step")
        if node.lower is None or node.upper is None:
            raise self.error(node, "a region needs a start and an end")
        return self.range_between(node.lower, node.upper)

    def range_between(self, lower: ast.expr, upper: ast.expr) -> Range:
        """From the one to the other. ``a:a + n`` has the extent ``n``, whatever ``a`` is."""
        start = self.expr(lower)
        if isinstance(upper, ast.BinOp) and isinstance(upper.op, ast.Add) and not isinstance(start, IntImm):
            if ast.dump(upper.left) == ast.dump(lower):
                extent = self.expr(upper.right)
                return Range.from_min_extent(*operators.match_types(start, extent))
        stop = self.expr(upper)
        start, stop = operators.match_types(start, stop)
        if isinstance(start, IntImm):
            if isinstance(stop, IntImm):
                return Range.from_min_extent(start, IntImm(start.dtype, stop.value - start.value, stop.span))
            if start.value == 0:
                return Range.from_min_extent(start, stop)
            if isinstance(stop, nodes.Add) and nodes.is_const(stop.a, start.value):
                return Range.from_min_extent(start, stop.b)
        return Range.from_min_extent(start, parser_calls.simplified_difference(stop, start))

    def _vector_load(self, node: ast.AST, region: BufferRegion) -> PrimExpr:
        """A region used as a value is a vector of its elements along the last dimension."""
        indices: list[PrimExpr] = []
        for dimension, bounds in enumerate(region.region, 1):
            extent = parser_calls.constant_value(bounds.extent)
            if not isinstance(extent, int):
                raise self.error(node, "a region that is used as a value needs constant extents")
            if extent != 1 and dimension != len(region.region):
                raise self.error(
                    node, "a region that is used as a value is a vector along the last dimension"
                )
            indices.append(bounds.min if extent == 1 else Ramp(bounds.min, 1, extent))
        if all(not isinstance(index, Ramp) for index in indices):
            at = ", ".join(str(index) for index in indices)
            raise self.error(node, f"a slice is not one element: write {region.buffer.name}[{at}]")
        return BufferLoad(region.buffer, indices)

    # Calls

    def _call(self, node: ast.Call) -> Any:
        name = self.function_name(node)
        if name is None:
            return self._method(node)
        raw = getattr(self, f"call_{name.replace('.', '_')}", None)
        if raw is not None:
            return raw(node)
        arguments = [self.value(argument) for argument in node.args if not isinstance(argument, ast.Starred)]
        if len(arguments) != len(node.args):
            raise self.error(node, "a call cannot unpack its arguments in a script")
        keywords = self.keywords(node)
        try:
            return parser_calls.call(
                name, arguments, {key: self.value(value) for key, value in keywords.items()}
            )
        except (TypeError, ValueError) as error:
            if isinstance(error, TilewrightError):
                raise
            raise self.error(node, f"T.{name}: {error}") from None

    def keywords(self, node: ast.Call) -> dict[str, ast.expr]:
        """The named arguments of a call."""
        found: dict[str, ast.expr] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.error(node, "a call cannot unpack its arguments in a script")
            found[keyword.arg] = keyword.value
        return found

    def function_name(self, node: ast.AST) -> str | None:
        """``axis.remap`` for a call of ``T.axis.remap``; None for a call of something else."""
        if not isinstance(node, ast.Call):
            return None
        parts: list[str] = []
        current: ast.AST = node.func
        while isinstance(current, ast.Attribute):
            parts.append(current.attr)
            current = current.value
            base = self._namespace(current)
            if base:
                return ".".join(reversed(parts))
        return None

    def _namespace(self, node: ast.AST) -> bool:
        """True if the syntax names the script language."""
        if isinstance(node, ast.Name):
            if self.lookup(node.id) is not None or node.id not in self.environment:
                return False
            value = self.environment[node.id]
            return value is TIR or bool(getattr(value, "IS_SCRIPT_NAMESPACE", False))
        if isinstance(node, ast.Attribute) and node.attr == "tir":
            try:
                return self.value(node) is TIR
            except ParseError:
                return False
        return False

    def _method(self, node: ast.Call) -> Any:
        """A call of something that is not of the script language: a few methods of buffers, and Python's float."""
        if isinstance(node.func, ast.Attribute):
            base = self.value(node.func.value)
            if isinstance(base, Buffer) and node.func.attr in _BUFFER_METHODS:
                arguments = [parser_calls.plain(self.value(argument)) for argument in node.args]
                named = {
                    key: parser_calls.plain(self.value(value)) for key, value in self.keywords(node).items()
                }
                return getattr(base, node.func.attr)(*arguments, **named)
            if isinstance(base, PrimExpr) and node.func.attr == "astype" and len(node.args) == 1:
                return operators.cast(self.string(node.args[0]), base)
        if isinstance(node.func, ast.Name) and self.lookup(node.func.id) is None and len(node.args) == 1:
            argument = node.args[0]
            if node.func.id in ("float", "int", "bool"):
                converted = parser_calls.convert_number(
                    node.func.id, parser_calls.plain(self.value(argument))
                )
                if converted is not None:
                    return converted
            if node.func.id == "len":
                return len(self.value(argument))
        raise self.error(
            node, f"{ast.unparse(node.func)} cannot be called in a script; use the functions of T"
        )

    def call_comm_reducer(self, node: ast.Call) -> nodes.CommReducer:
        """``T.comm_reducer(lambda x, y: x + y, [identity])``: the lambda is read, not run."""
        if len(node.args) != 2 or not isinstance(node.args[0], ast.Lambda):
            raise self.error(node, "a reducer is made from a lambda and a list of identity elements")
        identity = self.exprs(node.args[1])
        function = node.args[0]
        names = [argument.arg for argument in function.args.args]
        if len(names) != 2 * len(identity):
            raise self.error(
                node, f"a reducer of {len(identity)} values needs a lambda of {2 * len(identity)} arguments"
            )
        types_ = [value.dtype for value in identity] * 2
        variables = [Var(name, dtype) for name, dtype in zip(names, types_, strict=True)]
        with self.scope():
            for variable in variables:
                self.define(variable.name, variable)
            results = self.exprs(function.body)
        half = len(identity)
        return nodes.CommReducer(variables[:half], variables[half:], results, identity)

    _handlers: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
        ast.Constant: _constant,
        ast.Name: _name,
        ast.List: _sequence,
        ast.Tuple: _sequence,
        ast.Dict: _dictionary,
        ast.BinOp: _binary,
        ast.UnaryOp: _unary,
        ast.BoolOp: _logical,
        ast.Compare: _compare,
        ast.IfExp: _conditional,
        ast.Attribute: _attribute,
        ast.Subscript: _subscript,
        ast.Call: _call,
    }


def _is_number(value: Any) -> bool:
    """True for a plain number from around the script; literals of the script are constants of the program."""
    return isinstance(value, (bool, int, float, np.generic)) and not isinstance(value, PrimExpr)


def _described(value: Any) -> str:
    """A description of a value, for messages."""
    if isinstance(value, Buffer):
        return f"buffer {value.name}"
    if value is None:
        return "None"
    if isinstance(value, Namespace):
        return f"T.{value.path}".rstrip(".")
    return f"a {type(value).__name__}"


def statements_of(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements but for docstrings and ``pass``."""
    kept = []
    for stmt in body:
        is_text = (
            isinstance(stmt, ast.Expr)
            and isinstance(stmt.value, ast.Constant)
            and isinstance(stmt.value.value, str)
        )
        if not is_text and not isinstance(stmt, ast.Pass):
            kept.append(stmt)
    return kept
