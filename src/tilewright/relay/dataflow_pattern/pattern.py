"""The patterns: each defines which expressions it matches, and is written with Python's operators.

    conv = is_op("nn.conv2d")(wildcard(), is_constant())
    biased = conv.optional(lambda x: is_op("nn.bias_add")(x, wildcard()))
    pattern = is_op("nn.relu")(biased) | biased

A pattern object that occurs in two places of a pattern matches the same expression in both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.ir.attrs import Attrs, DictAttrs
from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.ir.structural import structural_equal
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.dataflow_pattern.dominance import path_to_parent
from tilewright.relay.dataflow_pattern.graph import ExprGraph
from tilewright.relay.dataflow_pattern.matcher import Goal, MatchedPattern, Matcher, NodeMap
from tilewright.relay.dataflow_pattern.partition import partition
from tilewright.relay.expr import Call, Constant, If, Let, Tuple, TupleGetItem, Var
from tilewright.relay.function import Function
from tilewright.relay.op.attributes import plain
from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError
from tilewright.support.node import node

PATTERN_CLASSES: dict[str, type] = {}
"""The classes of patterns by type key, "relay.dataflow_pattern.<class name>"."""

MATCHES: Sequence[Sequence[Goal]] = ((),)
FAILS: Sequence[Sequence[Goal]] = ()


def register_df_node(type_key: Any = None) -> Any:
    """Register a class of patterns under its type key. Used as ``@register_df_node`` or with a name."""

    def register(cls: type) -> type:
        name = type_key if isinstance(type_key, str) else cls.__name__
        PATTERN_CLASSES[name if "." in name else f"relay.dataflow_pattern.{name}"] = cls
        return cls

    return register(type_key) if isinstance(type_key, type) else register


class DFPattern(MatchedPattern):
    """Base of patterns."""

    __slots__ = ()

    def __call__(self, *args: DFPattern | None) -> CallPattern:
        """A call of what this pattern matches. ``pattern(None)`` is a call with any arguments."""
        if len(args) == 1 and args[0] is None:
            return CallPattern(self, None)
        return CallPattern(self, args)  # type: ignore[arg-type]

    def __or__(self, other: DFPattern) -> AltPattern:
        return AltPattern(self, other)

    def __add__(self, other: DFPattern) -> CallPattern:
        return is_op("add")(self, other)

    def __sub__(self, other: DFPattern) -> CallPattern:
        return is_op("subtract")(self, other)

    def __mul__(self, other: DFPattern) -> CallPattern:
        return is_op("multiply")(self, other)

    def __truediv__(self, other: DFPattern) -> CallPattern:
        return is_op("divide")(self, other)

    def has_attr(self, attrs: Mapping[str, Any]) -> AttrPattern:
        """Matches what this pattern matches, with these attributes."""
        return AttrPattern(self, DictAttrs(attrs))

    def has_type(self, ttype: Type) -> TypePattern:
        """Matches what this pattern matches, with this type."""
        return TypePattern(self, ttype)

    def has_dtype(self, dtype: str) -> DataTypePattern:
        """Matches what this pattern matches, if it is a tensor of this element type."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[Any]) -> ShapePattern:
        """Matches what this pattern matches, if it is a tensor of this shape."""
        return ShapePattern(self, shape)

    def match(self, expr: RelayExpr) -> bool:
        """True if the expression matches."""
        return Matcher(ExprGraph(expr)).match(self, expr) is not None

    def partition(
        self,
        expr: RelayExpr,
        attrs: Mapping[str, Any] | None = None,
        check: Callable[[RelayExpr], bool] = lambda root: True,
    ) -> RelayExpr:
        """The expression with each match in a separate function."""
        return partition(self, expr, attrs, check)

    def dominates(self, parent: DFPattern, path: DFPattern | None = None) -> DominatorPattern:
        """Matches what this pattern matches, if all paths from an expression that matches ``parent`` lead to it, and
        all on these ways match ``path``."""
        return DominatorPattern(parent, path if path is not None else wildcard(), self)

    def optional(self, option_constructor: Callable[[DFPattern], DFPattern]) -> DFPattern:
        """Matches this pattern, or this pattern wrapped in another."""
        return AltPattern(option_constructor(self), self)

    def __repr__(self) -> str:
        inner = ", ".join(repr(getattr(self, name)) for name in self.field_names)
        return f"{type(self).__name__}({inner})"


@register_df_node
@node
class ExprPattern(DFPattern):
    """Matches an expression that is structurally equal to this one."""

    expr: RelayExpr

    def ways(self, expr: Any, matcher: Matcher) -> Sequence[Sequence[Goal]]:
        if expr is self.expr:
            return MATCHES
        same = not isinstance(self.expr, Op) and type(expr) is type(self.expr)
        return MATCHES if same and structural_equal(self.expr, expr) else FAILS

    def inputs(self, matched: Any) -> Sequence[Any]:
        return () if isinstance(matched, Constant) else (matched,)


@register_df_node
@node
class VarPattern(DFPattern):
    """Matches a variable; one of this name, if it is not empty."""

    name: str

    def __init__(self, name_hint: str = "") -> None:
        self.name = name_hint

    def ways(self, expr: Any, matcher: Matcher) -> Sequence[Sequence[Goal]]:
        return MATCHES if isinstance(expr, Var) and self.name in ("", expr.name_hint) else FAILS


@register_df_node
@node
class ConstantPattern(DFPattern):
    """Matches a constant, which stays within the match."""

    def __init__(self) -> None:
        pass

    def ways(self, expr: Any, matcher: Matcher) -> Sequence[Sequence[Goal]]:
        return MATCHES if isinstance(expr, Constant) else FAILS

    def inputs(self, matched: Any) -> Sequence[Any]:
        return ()


def _operator(pattern: DFPattern) -> Op | None:
    """The operator that a pattern matches, if it is the only one."""
    return pattern.expr if isinstance(pattern, ExprPattern) and isinstance(pattern.expr, Op) else None


def _calls(pattern: Any, name: str) -> bool:
    """True for a pattern of calls of this operator with two arguments."""
    return (
        isinstance(pattern, CallPattern)
        and pattern.args is not None
        and len(pattern.args) == 2
        and pattern.operator is not None
        and pattern.operator.name == name
    )


def _is_call(expr: Any, name: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == name


@register_df_node
@node
class CallPattern(DFPattern):
    """Matches a call; ``args`` None stands for any arguments.

    The arguments of ``add`` and ``multiply`` may come in either order, and ``a * b / c`` matches ``b * (a / c)`` and
    the other way round.
    """

    op: DFPattern
    args: tuple[DFPattern, ...] | None
    operator: Op | None
    derived = ("operator",)

    def __init__(self, op: DFPattern, args: Sequence[DFPattern] | None) -> None:
        self.op = op
        self.args = None if args is None else tuple(args)
        self.operator = _operator(op)
        for part in (op, *(self.args or ())):
            if not isinstance(part, DFPattern):
                raise ExpressionError(f"a part of a pattern is a pattern, not {type(part).__name__}")

    def parts(self) -> tuple[DFPattern, ...]:
        return (self.op, *(self.args or ()))

    def inputs(self, matched: Any) -> Sequence[Any]:
        return matched.args if self.args is None else ()

    def ways(self, expr: Any, matcher: Matcher) -> Sequence[Sequence[Goal]]:
        if not isinstance(expr, Call):
            return FAILS
        if self.operator is not None and expr.op is not self.operator:
            return self._reassociated(expr)
        if self.args is None:
            return (((self.op, expr.op),),)
        if len(self.args) != len(expr.args):
            return FAILS
        direct: list[Goal] = [(self.op, expr.op), *zip(self.args, expr.args, strict=True)]
        if self.operator is not None and self.operator.name in ("add", "multiply"):
            first, second = expr.args
            return (direct, ((self.op, expr.op), (self.args[0], second), (self.args[1], first)))
        return (direct,)

    def _reassociated(self, expr: Call) -> Sequence[Sequence[Goal]]:
        """Products and quotients in another order than the pattern's."""
        args: Any = self.args
        made: list[CallPattern] = []
        if _calls(self, "divide") and _is_call(expr, "multiply"):
            product, divisor = args
            if _calls(product, "multiply") and any(_is_call(one, "divide") for one in expr.args):
                for divided, other in (product.args, product.args[::-1]):
                    made.append(CallPattern(product.op, (other, CallPattern(self.op, (divided, divisor)))))
        elif _calls(self, "multiply") and _is_call(expr, "divide") and _is_call(expr.args[0], "multiply"):
            for quotient, factor in (args, args[::-1]):
                if _calls(quotient, "divide"):
                    numerator = CallPattern(self.op, (quotient.args[0], factor))
                    made.append(CallPattern(quotient.op, (numerator, quotient.args[1])))
        return [((pattern, expr),) for pattern in made]


@register_df_node
@node
class FunctionPattern(DFPattern):
    """Matches a function; ``params`` None stands for any parameters."""

    params: tuple[DFPattern, ...] | None
    body: DFPattern

    def __init__(self, params: Sequence[DFPattern] | None, body: DFPattern) -> None:
        self.params = None if params is None else tuple(params)
        self.body = body

    def parts(self) -> tuple[DFPattern, ...]:
        return (*(self.params or ()), self.body)

    def ways(self, expr: Any, matcher: Matcher) -> Sequence[Sequence[Goal]]:
        if not isinstance(expr, Function):
            return FAILS
        if self.params is None:
            return (((self.body, expr.body),),)
        if len(self.params) != len(expr.params):
            return FAILS
        return ((*zip(self.params, expr.params, strict=True), (self.body, expr.body)),)

    def interior(self, matched: NodeMap) -> Sequence[Any]:
        functions: list[Any] = matched[self]
        return [
            each for function in functions for each in (*function.params, *ExprGraph(function.body).order)
        ]


@register_df_node
@node
class IfPattern(DFPattern):
    """Matches a conditional."""

    cond: DFPattern
    true_branch: DFPattern
    false_branch: DFPattern

    def parts(self) -> tuple[DFPattern, ...]:
        return (self.cond, self.true_branch, self.false_branch)

    def ways(self, expr: Any, matcher: Matcher) -> Sequence[Sequence[Goal]]:
        if not isinstance(expr, If):
            return FAILS
        return (
            (
                (self.cond, expr.cond),
                (self.true_branch, expr.true_branch),
                (self.false_branch, expr.false_branch),
            ),
        )


@register_df_node
@node
class LetPattern(DFPattern):
    """Matches a let."""

    var: DFPattern
    value: DFPattern
    body: DFPattern

    def parts(self) -> tuple[DFPattern, ...]:
        return (self.var, self.value, self.body)

    def ways(self, expr: Any, matcher: Matcher) -> Sequence[Sequence[Goal]]:
        if not isinstance(expr, Let):
            return FAILS
        return (((self.var, expr.var), (self.value, expr.value), (self.body, expr.body)),)

    def interior(self, matched: NodeMap) -> Sequence[Any]:
        lets: list[Any] = matched[self]
        return [let.var for let in lets]


@register_df_node
@node
class TuplePattern(DFPattern):
    """Matches a tuple; ``fields`` None stands for any fields."""

    fields: tuple[DFPattern, ...] | None

    def __init__(self, fields: Sequence[DFPattern] | None) -> None:
        self.fields = None if fields is None else tuple(fields)

    def __getitem__(self, index: int) -> TupleGetItemPattern:
        if self.fields is not None and index >= len(self.fields):
            raise IndexError("TuplePattern index out of range")
        return TupleGetItemPattern(self, index)

    def __len__(self) -> int:
        return len(self.fields or ())

    def astype(self, _: str) -> DFPattern:
        """Tuples have no element type."""
        raise TypeError("astype cannot be used on TuplePattern")

    def parts(self) -> tuple[DFPattern, ...]:
        return self.fields or ()

    def inputs(self, matched: Any) -> Sequence[Any]:
        return matched.fields if self.fields is None else ()

    def ways(self, expr: Any, matcher: Matcher) -> Sequence[Sequence[Goal]]:
        if not isinstance(expr, Tuple):
            return FAILS
        if self.fields is None:
            return MATCHES
        if len(self.fields) != len(expr.fields):
            return FAILS
        return (tuple(zip(self.fields, expr.fields, strict=True)),)


@register_df_node
@node
class TupleGetItemPattern(DFPattern):
    """Matches a field of a tuple; ``index`` None stands for any field."""

    tuple: DFPattern
    index: int | None

    def __init__(self, tuple_value: DFPattern, index: int | None = None) -> None:
        self.tuple = tuple_value
        self.index = index

    def parts(self) -> Any:
        return (self.tuple,)

    def ways(self, expr: Any, matcher: Matcher) -> Sequence[Sequence[Goal]]:
        if not isinstance(expr, TupleGetItem) or self.index not in (None, expr.index):
            return FAILS
        return (((self.tuple, expr.tuple_value),),)


@register_df_node
@node
class AltPattern(DFPattern):
    """Matches what one of two patterns matches; the left one is tried first."""

    left: DFPattern
    right: DFPattern

    def parts(self) -> tuple[DFPattern, ...]:
        return (self.left, self.right)

    def ways(self, expr: Any, matcher: Matcher) -> Sequence[Sequence[Goal]]:
        return (((self.left, expr),), ((self.right, expr),))


@register_df_node
@node
class WildcardPattern(DFPattern):
    """Matches anything."""

    def __init__(self) -> None:
        pass

    def ways(self, expr: Any, matcher: Matcher) -> Sequence[Sequence[Goal]]:
        return MATCHES


class _Condition(DFPattern):
    """A pattern and something more that must hold."""

    __slots__ = ()
    pattern: DFPattern

    def parts(self) -> tuple[DFPattern, ...]:
        return (self.pattern,)

    def holds(self, expr: Any, matcher: Matcher) -> bool:
        """The condition to check."""
        raise NotImplementedError

    def ways(self, expr: Any, matcher: Matcher) -> Sequence[Sequence[Goal]]:
        # Types may have to be inferred, so the pattern is tried first.
        return (((self.pattern, expr), (lambda matcher: self.holds(expr, matcher), None)),)


@register_df_node
@node
class TypePattern(_Condition):
    """Matches what ``pattern`` matches and has this type."""

    pattern: DFPattern
    type: Type

    def __init__(self, pattern: DFPattern, ttype: Type) -> None:
        self.pattern = pattern
        self.type = ttype

    def holds(self, expr: Any, matcher: Matcher) -> bool:
        return structural_equal(self.type, matcher.type_of(expr))


@register_df_node
@node
class DataTypePattern(_Condition):
    """Matches what ``pattern`` matches and is a tensor of this element type."""

    pattern: DFPattern
    dtype: DataType

    def __init__(self, pattern: DFPattern, dtype: str) -> None:
        self.pattern = pattern
        self.dtype = DataType(dtype)

    def holds(self, expr: Any, matcher: Matcher) -> bool:
        found = matcher.type_of(expr)
        return isinstance(found, TensorType) and found.dtype is self.dtype


@register_df_node
@node
class ShapePattern(_Condition):
    """Matches what ``pattern`` matches and is a tensor of this shape."""

    pattern: DFPattern
    shape: tuple[Any, ...]

    def __init__(self, pattern: DFPattern, shape: Sequence[Any]) -> None:
        self.pattern = pattern
        self.shape = tuple(TensorType(tuple(shape)).shape)

    def holds(self, expr: Any, matcher: Matcher) -> bool:
        found = matcher.type_of(expr)
        return isinstance(found, TensorType) and structural_equal(self.shape, tuple(found.shape))


@register_df_node
@node
class AttrPattern(_Condition):
    """Matches what ``pattern`` matches and has these attributes: an operator, a call of one, or a function."""

    pattern: DFPattern
    attrs: DictAttrs

    def __init__(self, pattern: DFPattern, attrs: Attrs | Mapping[str, Any]) -> None:
        self.pattern = pattern
        self.attrs = attrs if isinstance(attrs, DictAttrs) else DictAttrs(dict(attrs.items()))

    def holds(self, expr: Any, matcher: Matcher) -> bool:
        if isinstance(expr, Op):
            return all(
                expr.has_attr(name) and _same_attribute(wanted, expr.get_attr(name))
                for name, wanted in self.attrs.items()
            )
        if not isinstance(expr, (Call, Function)) or expr.attrs is None:
            return False
        given: Any = expr.attrs
        names = given.keys()
        return all(
            name in names and _same_attribute(wanted, given[name]) for name, wanted in self.attrs.items()
        )


def _same_attribute(wanted: Any, found: Any) -> bool:
    wanted, found = plain(wanted), plain(found)
    if isinstance(wanted, (bool, int, float, str, tuple, DataType)):
        return bool(wanted == found)
    return structural_equal(wanted, found)


@register_df_node
@node
class DominatorPattern(DFPattern):
    """Matches ``child`` if all uses of a match of ``parent`` lead to it, only through matches of ``path``."""

    parent: DFPattern
    path: DFPattern
    child: DFPattern

    def parts(self) -> tuple[DFPattern, ...]:
        return (self.parent, self.path, self.child)

    def ways(self, expr: Any, matcher: Matcher) -> Sequence[Sequence[Goal]]:
        return (((self.child, expr), (lambda matcher: path_to_parent(self, expr, matcher), None)),)

    def interior(self, matched: NodeMap) -> Sequence[Any]:
        return [*matched.get(self.parent, ()), *matched.get(self.path, ())]


def is_op(op_name: str) -> ExprPattern:
    """Matches the operator of this name; called with patterns, calls of it."""
    return ExprPattern(Op.get(op_name))


def wildcard() -> WildcardPattern:
    """Matches anything."""
    return WildcardPattern()
