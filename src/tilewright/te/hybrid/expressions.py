"""Expressions of a hybrid script.

A value is either known at compile time (a number, a string, a tuple, a tensor, another script) or an expression of the
program. Known values are computed immediately, so that conditions on constants select code and constant loops unroll.
No user code is executed: a name is a variable of the script, a plain value from its environment, or a built-in
function.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import IntImm, IterVar, PrimExpr, ProducerLoad
from tilewright.support.dtype import INT32
from tilewright.support.errors import ParseError, TilewrightError
from tilewright.te.hybrid import language
from tilewright.te.hybrid.symbols import Element, Scalar, Scope, reads_memory
from tilewright.te.tensor import Tensor, TensorSlice
from tilewright.tir.op import if_then_else, power
from tilewright.tir.script.source import Source

NUMBERS = (bool, int, float, np.generic)
_MISSING = object()


class Script(Protocol):
    """Another hybrid script, as a value."""

    def parse_into(self, caller: Any, node: ast.AST, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
        """Add this script's statements to the caller's and give its outputs."""


def _power(base: Any, exponent: Any) -> PrimExpr:
    """Integers to a small constant power are products; all else is floating-point."""
    value = operators.as_expr(base)
    if value.dtype.is_integral and isinstance(exponent, int) and 1 <= exponent <= 16:
        made = value
        for _ in range(exponent - 1):
            made = operators.multiply(made, value)
        return made
    return power(value, exponent)


_BINARY: dict[type[ast.operator], tuple[Callable[[Any, Any], Any], Callable[[Any, Any], PrimExpr]]] = {
    ast.Add: (lambda a, b: a + b, operators.add),
    ast.Sub: (lambda a, b: a - b, operators.subtract),
    ast.Mult: (lambda a, b: a * b, operators.multiply),
    ast.Div: (lambda a, b: a / b, operators.true_divide),
    ast.FloorDiv: (lambda a, b: a // b, operators.floordiv),
    ast.Mod: (lambda a, b: a % b, operators.floormod),
    ast.Pow: (lambda a, b: a**b, _power),
    ast.BitAnd: (lambda a, b: a & b, operators.bitwise_and),
    ast.BitOr: (lambda a, b: a | b, operators.bitwise_or),
    ast.BitXor: (lambda a, b: a ^ b, operators.bitwise_xor),
    ast.LShift: (lambda a, b: a << b, operators.left_shift),
    ast.RShift: (lambda a, b: a >> b, operators.right_shift),
}
_COMPARISONS: dict[type[ast.cmpop], tuple[Callable[[Any, Any], Any], Callable[[Any, Any], PrimExpr]]] = {
    ast.Eq: (lambda a, b: a == b, operators.equal),
    ast.NotEq: (lambda a, b: a != b, operators.not_equal),
    ast.Lt: (lambda a, b: a < b, operators.less),
    ast.LtE: (lambda a, b: a <= b, operators.less_equal),
    ast.Gt: (lambda a, b: a > b, operators.greater),
    ast.GtE: (lambda a, b: a >= b, operators.greater_equal),
}


class ExpressionParser:
    """Evaluates expressions. ``scopes`` holds the script's own names, innermost last; ``enclosed`` those of the Python
    functions around it; ``module`` those of its module; ``assignments`` says how often the script assigns a name."""

    def __init__(
        self, source: Source, enclosed: dict[str, Any], module: dict[str, Any], assignments: dict[str, int]
    ) -> None:
        self.source = source
        self.assignments = assignments
        self.enclosed = enclosed
        self.module = module
        self.scopes: list[Scope] = [Scope()]
        self.assigned: set[Scalar] = set()
        self.analyzer = Analyzer()

    # -- names ----------------------------------------------------------------------------------------------------

    def error(self, node: ast.AST, message: str) -> ParseError:
        """An error at a piece of syntax."""
        return self.source.error(node, message)

    def lookup(self, name: str) -> Any:
        """The value of a name of the script; ``_MISSING`` if the script does not define it."""
        for scope in reversed(self.scopes):
            if name in scope.names:
                return scope.names[name]
        return _MISSING

    def is_defined(self, name: str) -> bool:
        """True if the script itself gave the name a meaning that still holds."""
        return self.lookup(name) is not _MISSING

    def _name(self, node: ast.Name) -> Any:
        found = self.lookup(node.id)
        if isinstance(found, Scalar) and found not in self.assigned:
            raise self.error(
                node, f"{node.id} may have no value here: assign it before, where it is always reached"
            )
        if found is not _MISSING:
            return found
        if node.id in self.enclosed:
            return self.captured(node, self.enclosed[node.id])
        if node.id in self.module and node.id not in (*language.EMULATED, *self.assignments):
            return self.captured(node, self.module[node.id])
        raise self.error(
            node, f"{node.id} is not defined here; a name assigned in a loop ends with the loop's body"
        )

    def captured(self, node: ast.AST, value: Any) -> Any:
        """A value from around the script, if it is one that a script can use."""
        if isinstance(value, TensorSlice):
            return value.asobject()
        if isinstance(value, IterVar):
            return value.var
        if isinstance(value, (list, tuple)):
            return tuple(self.captured(node, item) for item in value)
        plain = (*NUMBERS, str, PrimExpr, Tensor, np.ndarray, types.ModuleType, type(None))
        if isinstance(value, plain) or hasattr(value, "parse_into"):
            return value
        raise self.error(node, f"a {type(value).__name__} cannot be used in a hybrid script")

    # -- entry points ---------------------------------------------------------------------------------------------

    def value(self, node: ast.AST) -> Any:
        """The value of a syntax node."""
        handler = self._handlers.get(type(node))
        if handler is None:
            raise self.error(node, f"{type(node).__name__} cannot be used in a hybrid script")
        try:
            return handler(self, node)
        except ParseError:
            raise
        except TilewrightError as error:
            raise self.error(node, error.message) from None
        except (ArithmeticError, TypeError, ValueError, IndexError) as error:
            raise self.error(node, str(error)) from None

    def ready(self, node: ast.AST, value: Any) -> Any:
        """A value with what stands for memory read; numbers stay numbers."""
        if isinstance(value, Scalar):
            return ProducerLoad(value.tensor, [operators.const(0)], self.source.span(node))
        if isinstance(value, Tensor):
            value = Element(value, ())
        if isinstance(value, Element):
            if value.shape:
                raise self.error(
                    node,
                    f"{value.tensor.name} has {value.tensor.ndim} dimensions and {len(value.indices)} indices here",
                )
            return ProducerLoad(value.tensor, value.indices, self.source.span(node))
        return value

    def operand(self, node: ast.AST) -> Any:
        """A number or an expression."""
        value = self.ready(node, self.value(node))
        if isinstance(value, (*NUMBERS, PrimExpr)):
            return value
        raise self.error(node, f"a number is needed here, not {described(value)}")

    def expr(self, node: ast.AST) -> PrimExpr:
        """An expression."""
        return operators.as_expr(self.operand(node))

    def known_integer(self, node: ast.AST, value: Any) -> int | None:
        """A value as an integer that is known now, or None."""
        if isinstance(value, (int, np.integer)):
            return int(value)
        if isinstance(value, PrimExpr) and value.dtype.is_integral and not reads_memory(value):
            simple = self.analyzer.simplify(value)
            if isinstance(simple, IntImm):
                return int(simple.value)
        return None

    def condition(self, node: ast.AST) -> bool | PrimExpr:
        """A condition: decided now, or a bool expression."""
        return self._truth(self.ready(node, self.value(node)), node)

    def _truth(self, value: Any, node: ast.AST) -> bool | PrimExpr:
        if not isinstance(value, PrimExpr):
            if isinstance(value, (*NUMBERS, str, tuple, type(None))):
                return bool(value)
            raise self.error(node, f"{described(value)} is neither true nor false")
        test = value if value.dtype.is_bool else operators.not_equal(value, operators.const(0, value.dtype))
        if not reads_memory(test):
            simple = self.analyzer.simplify(test)
            if isinstance(simple, IntImm):
                return bool(simple.value)
        return test

    # -- syntax ---------------------------------------------------------------------------------------------------

    def _constant(self, node: ast.Constant) -> Any:
        if node.value is None or isinstance(node.value, (bool, int, float, str)):
            return node.value
        raise self.error(node, f"a {type(node.value).__name__} cannot be used in a hybrid script")

    def _tuple(self, node: ast.Tuple | ast.List) -> tuple[Any, ...]:
        return tuple([self.value(item) for item in node.elts])

    def _binary(self, node: ast.BinOp) -> Any:
        known, program = _BINARY.get(type(node.op), (None, None))
        if known is None or program is None:
            raise self.error(node, f"{type(node.op).__name__} cannot be used in a hybrid script")
        left = self.ready(node.left, self.value(node.left))
        right = self.ready(node.right, self.value(node.right))
        if isinstance(left, NUMBERS) and isinstance(right, NUMBERS):
            return known(left, right)
        if isinstance(left, tuple) and isinstance(right, (tuple, int)):
            return known(left, right)
        for side, value in ((node.left, left), (node.right, right)):
            if not isinstance(value, (*NUMBERS, PrimExpr)):
                raise self.error(side, f"a number is needed here, not {described(value)}")
        return program(left, right)

    def _unary(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            truth = self.condition(node.operand)
            return (not truth) if isinstance(truth, bool) else operators.logical_not(truth)
        value = self.operand(node.operand)
        if isinstance(node.op, ast.USub):
            return operators.negative(value) if isinstance(value, PrimExpr) else -value
        if isinstance(node.op, ast.Invert):
            return operators.bitwise_not(value) if isinstance(value, PrimExpr) else ~value
        return value

    def _compare(self, node: ast.Compare) -> Any:
        """A chain of comparisons holds if each of its pairs does."""
        terms = [node.left, *node.comparators]
        values = [self.ready(term, self.value(term)) for term in terms]
        results: list[Any] = []
        for position, comparison in enumerate(node.ops):
            left, right = values[position], values[position + 1]
            if isinstance(comparison, (ast.Is, ast.IsNot)):
                results.append((left is right) == isinstance(comparison, ast.Is))
                continue
            known, program = _COMPARISONS.get(type(comparison), (None, None))
            if known is None or program is None:
                raise self.error(node, f"{type(comparison).__name__} cannot be used in a hybrid script")
            if isinstance(left, PrimExpr) or isinstance(right, PrimExpr):
                for side, value in zip(terms[position:], (left, right), strict=False):
                    if not isinstance(value, (*NUMBERS, PrimExpr)):
                        raise self.error(side, f"a number is needed here, not {described(value)}")
                results.append(program(left, right))
            else:
                results.append(bool(known(left, right)))
        return self._all_of(results)

    def _logic(self, node: ast.BoolOp) -> Any:
        """``and`` and ``or``. Operands after one that decides are not looked at; nor does the program read memory for
        an operand that the ones before it have decided."""
        is_and = isinstance(node.op, ast.And)
        found: list[Any] = []
        for operand in node.values:
            truth = self.condition(operand)
            if isinstance(truth, bool):
                if truth != is_and:
                    return truth
                continue
            found.append(truth)
        return self._all_of(found) if is_and else self._any_of(found)

    def _all_of(self, values: Sequence[Any]) -> Any:
        if any(value is False for value in values):
            return False
        left = [value for value in values if value is not True]
        made: Any = left[-1] if left else True
        for value in reversed(left[:-1]):
            made = (
                if_then_else(value, made, False) if reads_memory(made) else operators.logical_and(value, made)
            )
        return made

    def _any_of(self, values: Sequence[Any]) -> Any:
        made: Any = values[-1] if values else False
        for value in reversed(values[:-1]):
            made = (
                if_then_else(value, True, made) if reads_memory(made) else operators.logical_or(value, made)
            )
        return made

    def _choice(self, node: ast.IfExp) -> Any:
        test = self.condition(node.test)
        if isinstance(test, bool):
            return self.value(node.body if test else node.orelse)
        return if_then_else(test, self.operand(node.body), self.operand(node.orelse))

    def _attribute(self, node: ast.Attribute) -> Any:
        value = self.value(node.value)
        if isinstance(value, types.ModuleType):
            if not hasattr(value, node.attr):
                raise self.error(node, f"module {value.__name__} has no {node.attr}")
            return self.captured(node, getattr(value, node.attr))
        if node.attr == "shape" and isinstance(value, (Tensor, Element)):
            return tuple([plain_extent(extent) for extent in value.shape])
        if node.attr == "shape" and isinstance(value, np.ndarray):
            return value.shape
        if node.attr == "ndim" and isinstance(value, (Tensor, Element, np.ndarray)):
            return len(value.shape)
        if node.attr == "dtype":
            if isinstance(value, (Element, Scalar)):
                value = value.tensor
            if isinstance(value, (Tensor, PrimExpr, np.ndarray, np.generic)):
                return str(value.dtype)
        raise self.error(node, f"{described(value)} has no {node.attr} in a hybrid script")

    def _subscript(self, node: ast.Subscript) -> Any:
        base = self.value(node.value)
        if isinstance(node.slice, ast.Slice):
            return self._tuple_slice(node, base, node.slice)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(base, (Tensor, Element)):
            return self._element(node, Element(base, ()) if isinstance(base, Tensor) else base, parts)
        for part in parts:
            if not isinstance(base, (tuple, np.ndarray)):
                raise self.error(node, f"{described(base)} cannot be indexed")
            index = self.known_integer(part, self.ready(part, self.value(part)))
            if index is None:
                raise self.error(
                    part, "constants are indexed with what is known now; const_range gives such an index"
                )
            if not -len(base) <= index < len(base):
                raise self.error(part, f"index {index} is outside {len(base)} constants")
            base = base[index]
        return base

    def _tuple_slice(self, node: ast.Subscript, base: Any, bounds: ast.Slice) -> Any:
        if not isinstance(base, tuple):
            raise self.error(node, "slices of tensors cannot be used in a hybrid script; write a loop")
        limits: list[int | None] = []
        for bound in (bounds.lower, bounds.upper, bounds.step):
            limit = None if bound is None else self.known_integer(bound, self.operand(bound))
            if bound is not None and limit is None:
                raise self.error(bound, "the bounds of a slice are known now")
            limits.append(limit)
        return base[slice(*limits)]

    def _element(self, node: ast.Subscript, base: Element, parts: Sequence[ast.expr]) -> Element:
        """Indices of a tensor. Negative constants count from the end, as in Python."""
        indices = list(base.indices)
        if len(parts) > len(base.shape):
            total = len(indices) + len(parts)
            raise self.error(
                node, f"{base.tensor.name} has {base.tensor.ndim} dimensions, {total} indices were given"
            )
        for part, extent in zip(parts, base.shape, strict=False):
            index = self.expr(part)
            if not index.dtype.is_integral or index.dtype.is_bool:
                raise self.error(part, f"an index is an integer, not {index.dtype}")
            known = self.known_integer(part, index)
            if known is not None and isinstance(extent, IntImm) and not -extent.value <= known < extent.value:
                raise self.error(part, f"index {known} is outside the dimension's {extent.value} elements")
            if known is not None:
                index = operators.const(known, index.dtype)
            indices.append(operators.add(extent, index) if known is not None and known < 0 else index)
        return Element(base.tensor, tuple(indices))

    # -- calls ----------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Any:
        script = self._called_script(node.func)
        if script is not None:
            given = [self.value(argument) for argument in node.args]
            named = {keyword.arg: self.value(keyword.value) for keyword in node.keywords if keyword.arg}
            return script.parse_into(self, node, given, named)
        if not isinstance(node.func, ast.Name):
            raise self.error(node.func, "only built-in functions and other hybrid scripts can be called")
        name = node.func.id
        special = self._special_calls.get(name)
        if special is not None:
            return special(self, node)
        function = language.EXPRESSIONS.get(name)
        if function is None:
            raise self.error(
                node.func, f"{name} is neither a built-in function of hybrid script nor another hybrid script"
            )
        if node.keywords:
            raise self.error(node, f"{name} takes no named arguments")
        arguments = [self.operand(argument) for argument in node.args]
        if name in ("min", "max", "abs", "ceil_div", "likely") and not any(
            isinstance(argument, PrimExpr) for argument in arguments
        ):
            return language.EMULATED[name](*arguments)
        try:
            return function(*arguments)
        except TypeError as error:
            if isinstance(error, TilewrightError):
                raise
            raise self.error(node, f"{name} cannot be called with {len(arguments)} arguments") from None

    def _called_script(self, node: ast.expr) -> Script | None:
        """The hybrid script that a call names, or None for a word of the language."""
        if isinstance(node, ast.Name):
            own = node.id in self.enclosed or self.is_defined(node.id)
            if not own and (node.id in language.EMULATED or node.id not in self.module):
                return None
        found = self.value(node)
        if not hasattr(found, "parse_into"):
            raise self.error(node, f"{described(found)} cannot be called; decorate it with te.hybrid.script")
        script: Script = found
        return script

    def _length(self, node: ast.Call) -> Any:
        (argument,) = self.arguments(node, 1, 1)
        value = self.value(argument)
        if isinstance(value, (tuple, np.ndarray)):
            return len(value)
        if isinstance(value, (Tensor, Element)) and value.shape:
            return plain_extent(value.shape[0])
        raise self.error(argument, f"{described(value)} has no length")

    def _threads(self, node: ast.Call) -> int:
        arguments = self.arguments(node, 0, 1)
        return language.max_num_threads(bool(self.value(arguments[0])) if arguments else True)

    def arguments(self, node: ast.Call, least: int, most: int) -> list[ast.expr]:
        """The arguments of a call that takes no named ones."""
        name = node.func.id if isinstance(node.func, ast.Name) else "the call"
        if node.keywords or not least <= len(node.args) <= most:
            counts = str(least) if least == most else f"{least} to {most}"
            raise self.error(node, f"{name} takes {counts} arguments, none of them named")
        return node.args

    _special_calls: dict[str, Callable[[Any, ast.Call], Any]] = {"len": _length, "max_num_threads": _threads}
    _handlers: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
        ast.Name: _name,
        ast.Constant: _constant,
        ast.Tuple: _tuple,
        ast.List: _tuple,
        ast.BinOp: _binary,
        ast.UnaryOp: _unary,
        ast.Compare: _compare,
        ast.BoolOp: _logic,
        ast.IfExp: _choice,
        ast.Attribute: _attribute,
        ast.Subscript: _subscript,
        ast.Call: _call,
    }


def plain_extent(extent: PrimExpr) -> Any:
    """A constant extent as a number; another type than int32 stays, it decides the type of what is computed with it."""
    return extent.value if isinstance(extent, IntImm) and extent.dtype is INT32 else extent


def described(value: Any) -> str:
    """A value, for messages."""
    if isinstance(value, (Tensor, Element)):
        return f"tensor {value.tensor.name if isinstance(value, Element) else value.name}"
    if isinstance(value, (*NUMBERS, str, type(None))):
        return repr(value)
    return f"a {type(value).__name__}"
