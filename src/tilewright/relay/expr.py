"""Graph-level expressions: the functional language of models.

A program is a module of functions. Expressions have no side effects except for references (``RefCreate``, ``RefRead``,
``RefWrite``); ``Let`` orders evaluation; what is shared in the graph is computed once. An expression evaluates to a
tensor, a tuple, a closure, a reference or a value of an algebraic data type. Arguments are evaluated from left to
right, before the call; only the branch that ``If`` or ``Match`` selects is evaluated.

Every expression has a ``span`` (the line of Python or of text, or the node of the model, that it came from) and, after
type inference, a ``checked_type``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.ir.attrs import Attrs, DictAttrs
from tilewright.ir.base import GraphVariable, Id, RelayExpr
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.runtime import ndarray
from tilewright.runtime.ndarray import NDArray, numpy_dtype
from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError
from tilewright.support.node import Child, Children, Defines, node
from tilewright.support.slot import Slot
from tilewright.support.span import Span, current_span

Expr = RelayExpr
"""The name that scripts call it."""


def _operand(value: Any) -> RelayExpr:
    """The other operand of an infix operator."""
    if isinstance(value, RelayExpr):
        return value
    if isinstance(value, (bool, int, float, np.number)):
        raise ExpressionError(
            f"write relay.const({value!r}, dtype) in place of {value!r}: the type of a bare number is unknown here"
        )
    raise ExpressionError(f"a graph expression cannot be combined with {type(value).__name__}")


def _call(name: str, *arguments: RelayExpr, attrs: Attrs | None = None) -> Call:
    return Call(Op.get(name), arguments, attrs)


class ExprWithOp(RelayExpr):
    """An expression with infix operators, which make calls."""

    __slots__ = ()

    def astype(self, dtype: str) -> RelayExpr:
        """The elements converted to another type."""
        cast = Op.get("cast")
        return Call(cast, (self,), cast.get_attr("AttrsClass")(dtype=dtype))

    def __neg__(self) -> Call:
        return _call("negative", self)

    def __lt__(self, other: Any) -> Call:
        return _call("less", self, _operand(other))

    def __gt__(self, other: Any) -> Call:
        return _call("greater", self, _operand(other))

    def __ge__(self, other: Any) -> Call:
        return _call("greater_equal", self, _operand(other))

    def __le__(self, other: Any) -> Call:
        return _call("less_equal", self, _operand(other))

    def __add__(self, other: Any) -> Call:
        return _call("add", self, _operand(other))

    def __radd__(self, other: Any) -> Call:
        return _call("add", _operand(other), self)

    def __sub__(self, other: Any) -> Call:
        return _call("subtract", self, _operand(other))

    def __rsub__(self, other: Any) -> Call:
        return _call("subtract", _operand(other), self)

    def __mul__(self, other: Any) -> Call:
        return _call("multiply", self, _operand(other))

    def __rmul__(self, other: Any) -> Call:
        return _call("multiply", _operand(other), self)

    def __truediv__(self, other: Any) -> Call:
        return _call("divide", self, _operand(other))

    def __rtruediv__(self, other: Any) -> Call:
        return _call("divide", _operand(other), self)

    def __floordiv__(self, other: Any) -> Call:
        return _call("floor_divide", self, _operand(other))

    def __mod__(self, other: Any) -> Call:
        return _call("mod", self, _operand(other))

    def __call__(self, *args: RelayExpr) -> Call:
        """A call of this expression, which evaluates to a function."""
        return Call(self, args)

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        """The expression in the text form."""
        return WHOLE_TEXT.value(self, show_meta_data, annotate)

    def __str__(self) -> str:
        return SHORT_TEXT.value(self)

    __repr__ = __str__


WHOLE_TEXT: Slot[Callable[..., str]] = Slot(
    "the text of graph expressions (expression, show_meta_data, annotate)"
)
SHORT_TEXT: Slot[Callable[[Any], str]] = Slot("the text of graph expressions to look at (expression)")


@node
class Constant(ExprWithOp):
    """A tensor that is part of the program."""

    data: NDArray
    span: Span | None

    def __init__(self, data: NDArray | np.ndarray[Any, Any], span: Span | None = None) -> None:
        self.data = data if isinstance(data, NDArray) else ndarray.array(data)
        self.span = span if span is not None else current_span()

    @property
    def tensor_type(self) -> TensorType:
        """The type that the value has."""
        return TensorType(self.data.shape, self.data.dtype)


@node
class Tuple(ExprWithOp):
    """Several values as one."""

    fields: Children[RelayExpr]
    span: Span | None

    def __init__(self, fields: Iterable[RelayExpr], span: Span | None = None) -> None:
        self.fields = tuple([unwrapped(field) for field in fields])
        self.span = span if span is not None else current_span()
        for field in self.fields:
            if not isinstance(field, RelayExpr):
                raise ExpressionError(f"a field of a tuple is a graph expression, not {type(field).__name__}")

    def __getitem__(self, index: int) -> RelayExpr:
        if index >= len(self.fields):
            raise IndexError("tuple index out of range")
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[RelayExpr]:
        return iter(self.fields)

    def astype(self, dtype: str) -> RelayExpr:
        raise TypeError("astype cannot be used on a tuple")


@node
class Var(ExprWithOp, GraphVariable):
    """A parameter or a let-bound name; equal only to itself. The annotation may be left for inference to find."""

    name_hint: str
    type_annotation: Type | None
    span: Span | None

    def __init__(self, name_hint: str, type_annotation: Type | None = None, span: Span | None = None) -> None:
        if not isinstance(name_hint, str):
            raise ExpressionError(f"a variable has a name, not {name_hint!r}")
        self.name_hint = name_hint
        self.type_annotation = type_annotation
        self.span = span if span is not None else current_span()

    @property
    def vid(self) -> Id:
        """The identity of the variable, as a key of attributes that belong to it."""
        return Id(self)


@node
class Call(ExprWithOp):
    """An operator, function, constructor or closure applied to arguments.

    ``attrs`` are the operator's attributes; ``type_args`` the types given to a generic function.
    """

    op: Child[RelayExpr]
    args: Children[RelayExpr]
    attrs: Attrs | None
    type_args: tuple[Type, ...]
    span: Span | None

    def __init__(
        self,
        op: RelayExpr,
        args: Iterable[RelayExpr],
        attrs: Attrs | None = None,
        type_args: Iterable[Type] | None = None,
        span: Span | None = None,
    ) -> None:
        self.op = op
        self.args = tuple([unwrapped(argument) for argument in args])
        self.attrs = attrs
        self.type_args = tuple(type_args or ())
        self.span = span if span is not None else current_span()
        for argument in self.args:
            if not isinstance(argument, RelayExpr):
                raise ExpressionError(
                    f"an argument of {_callee(op)} is a graph expression, not {type(argument).__name__}; "
                    "wrap numbers in relay.const"
                )


def _callee(op: RelayExpr) -> str:
    return getattr(op, "name", None) or getattr(op, "name_hint", None) or "the function"


@node
class Let(ExprWithOp):
    """``var`` stands for ``value`` within ``body``; the value is computed first. A function may refer to itself."""

    var: Defines[Var]
    value: Child[RelayExpr]
    body: Child[RelayExpr]
    span: Span | None

    def __init__(self, variable: Var, value: RelayExpr, body: RelayExpr, span: Span | None = None) -> None:
        self.var = variable
        self.value = unwrapped(value)
        self.body = unwrapped(body)
        self.span = span if span is not None else current_span()


@node
class If(ExprWithOp):
    """One of two branches, by a scalar of type bool."""

    cond: Child[RelayExpr]
    true_branch: Child[RelayExpr]
    false_branch: Child[RelayExpr]
    span: Span | None

    def __init__(
        self, cond: RelayExpr, true_branch: RelayExpr, false_branch: RelayExpr, span: Span | None = None
    ) -> None:
        self.cond = cond
        self.true_branch = unwrapped(true_branch)
        self.false_branch = unwrapped(false_branch)
        self.span = span if span is not None else current_span()


@node
class TupleGetItem(ExprWithOp):
    """One field of a tuple."""

    tuple_value: Child[RelayExpr]
    index: int
    span: Span | None

    def __init__(self, tuple_value: RelayExpr, index: int, span: Span | None = None) -> None:
        self.tuple_value = unwrapped(tuple_value)
        self.index = int(index)
        self.span = span if span is not None else current_span()


TupleGetItem.node_kind = "tuple_getitem"


@node
class RefCreate(ExprWithOp):
    """A new reference that holds a value."""

    value: Child[RelayExpr]
    span: Span | None

    def __init__(self, value: RelayExpr, span: Span | None = None) -> None:
        self.value = value
        self.span = span if span is not None else current_span()


@node
class RefRead(ExprWithOp):
    """Reads the value of a reference."""

    ref: Child[RelayExpr]
    span: Span | None

    def __init__(self, ref: RelayExpr, span: Span | None = None) -> None:
        self.ref = ref
        self.span = span if span is not None else current_span()


@node
class RefWrite(ExprWithOp):
    """Puts a value into a reference, and gives the empty tuple."""

    ref: Child[RelayExpr]
    value: Child[RelayExpr]
    span: Span | None

    def __init__(self, ref: RelayExpr, value: RelayExpr, span: Span | None = None) -> None:
        self.ref = ref
        self.value = value
        self.span = span if span is not None else current_span()


class TempExpr(ExprWithOp):
    """An expression that a pass uses while it runs; ``realize`` gives the one that it stands for."""

    __slots__ = ()

    def realize(self) -> RelayExpr:
        """The ordinary expression."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it represents")


class TupleWrapper:
    """A call that gives a tuple, used in Python like a tuple: it can be unpacked and indexed. Where an expression is
    needed, it is the call."""

    def __init__(self, tuple_value: RelayExpr, size: int) -> None:
        self.tuple_value = tuple_value
        self.size = size

    def astuple(self) -> RelayExpr:
        """The call."""
        return self.tuple_value

    def astext(self) -> str:
        """The text of the call."""
        return self.tuple_value.astext()

    def __getitem__(self, index: int) -> TupleGetItem:
        if not -self.size <= index < self.size:
            raise IndexError(f"the tuple has {self.size} fields, {index} is out of range")
        return TupleGetItem(self.tuple_value, index % self.size)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[TupleGetItem]:
        return (self[index] for index in range(self.size))

    def __repr__(self) -> str:
        return f"TupleWrapper({self.tuple_value!r}, {self.size})"

    def astype(self, dtype: str) -> RelayExpr:
        """Tuples have no element type."""
        raise TypeError("astype cannot be used on a tuple")


def unwrapped(value: Any) -> Any:
    """The call of a ``TupleWrapper``; anything else as it is."""
    return value.tuple_value if type(value) is TupleWrapper else value


def var(
    name_hint: str,
    type_annotation: Type | str | None = None,
    shape: Sequence[Any] | None = None,
    dtype: str = "float32",
) -> Var:
    """A variable, with a type, with the shape and element type of a tensor, or with neither."""
    if type_annotation is not None and shape is not None:
        raise ValueError("a variable has a type annotation or a shape, not both")
    if shape is not None:
        type_annotation = TensorType(shape, dtype)
    elif isinstance(type_annotation, str):
        type_annotation = TensorType((), type_annotation)
    return Var(name_hint, type_annotation)


_PLAIN_DTYPES = {bool: "bool", int: "int32", float: "float32"}


def const(value: Any, dtype: str | None = None) -> Constant:
    """A constant from a number, a list, an array of NumPy or one of Tilewright. A bare int is an int32, a bare float
    a float32."""
    if isinstance(value, NDArray):
        return Constant(value)
    if dtype is None and isinstance(value, (bool, int, float)):
        dtype = _PLAIN_DTYPES.get(type(value))
        if dtype == "int32" and not -(1 << 31) <= value < 1 << 31:
            dtype = "int64"
    found = np.asarray(value)
    if dtype is None and isinstance(value, (list, tuple)):
        dtype = {"float64": "float32", "int64": "int32"}.get(str(found.dtype))
    return Constant(ndarray.array(found if dtype is None else found.astype(numpy_dtype(DataType(dtype)))))


def as_attrs(values: Mapping[str, Any] | Attrs | None) -> DictAttrs:
    """Attributes of a function."""
    if isinstance(values, DictAttrs):
        return values
    return DictAttrs(dict(values.items()) if values is not None else None)
