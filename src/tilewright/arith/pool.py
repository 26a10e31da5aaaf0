"""Interned expressions: within one analyzer, equal expressions are one object.

Rules can then compare subexpressions with ``is``, caches need no structural hash, and a graph of a million nodes is
visited in linear time. A key holds the interned children themselves, so the table keeps alive everything that it
compares.

Calls with side effects are never merged: two of them are two events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Load,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PrimExpr,
    ProducerLoad,
    Ramp,
    Select,
    Shuffle,
    StringImm,
    Sub,
    Var,
)
from tilewright.ir.op import CallEffectKind
from tilewright.support.dtype import BOOL, INT32, INT64, DataType

Expr = Any
"""An expression whose class is tested before its fields are read, in ways that the type checker does not follow."""

NodeClass = Any
"""The class of a node; not ``type``, which the type checker would take ``type(e) is kind`` to narrow to."""

BINARY_CLASSES: frozenset[type] = frozenset(
    (Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max, EQ, NE, LT, LE, GT, GE, And, Or)
)

_READS = (Load, BufferLoad, ProducerLoad)

_constants: dict[tuple[DataType, int], IntImm] = {}


def constant(dtype: DataType, value: int) -> IntImm:
    """The integer constant of a scalar type, wrapped to its range; one object for each small value."""
    if -1024 <= value <= 4096:
        key = (dtype, value)
        found = _constants.get(key)
        if found is None:
            found = _constants[key] = IntImm(dtype, value)
        return found
    return IntImm(dtype, value)


TRUE = constant(BOOL, 1)
FALSE = constant(BOOL, 0)


def is_index(dtype: DataType) -> bool:
    """True for the scalar types whose arithmetic is assumed not to overflow."""
    return dtype is INT32 or dtype is INT64


def _float_key(node: FloatImm) -> tuple[Any, ...]:
    return (FloatImm, node.dtype, node.value.hex())


def _call_key(node: Call) -> tuple[Any, ...] | None:
    effect = node.effect
    if effect is CallEffectKind.UpdateState or effect > CallEffectKind.SpecialCallArg:
        return None
    return (Call, node.dtype, node.op, *node.args)


_KEYS: dict[type, Callable[[Any], tuple[Any, ...] | None]] = {
    IntImm: lambda node: (IntImm, node.dtype, node.value),
    FloatImm: _float_key,
    StringImm: lambda node: (StringImm, node.value),
    Not: lambda node: (Not, node.a),
    Cast: lambda node: (Cast, node.dtype, node.value),
    Select: lambda node: (Select, node.condition, node.true_value, node.false_value),
    Load: lambda node: (Load, node.dtype, node.buffer_var, node.index, node.predicate),
    BufferLoad: lambda node: (BufferLoad, node.buffer, *node.indices),
    ProducerLoad: lambda node: (ProducerLoad, node.producer, *node.indices),
    Ramp: lambda node: (Ramp, node.base, node.stride, node.lanes),
    Broadcast: lambda node: (Broadcast, node.value, node.lanes),
    Shuffle: lambda node: (Shuffle, len(node.vectors), *node.vectors, *node.indices),
    Call: _call_key,
}
for _binary in BINARY_CLASSES:
    _KEYS[_binary] = lambda node: (type(node), node.a, node.b)


class Pool:
    """The table of interned expressions of one analyzer."""

    __slots__ = ("imported", "reading", "table")

    def __init__(self) -> None:
        self.table: dict[tuple[Any, ...], Expr] = {}
        self.imported: dict[PrimExpr, Expr] = {}
        self.reading: dict[PrimExpr, bool] = {}

    def clear(self) -> None:
        """Forget everything; expressions made before are no longer equal to ones made after."""
        self.table.clear()
        self.imported.clear()
        self.reading.clear()

    def reads_memory(self, root: Expr) -> bool:
        """True if evaluating the expression reads memory, or calls what may. Iterative; each node is looked at once."""
        reading, stack = self.reading, [root]
        while stack:
            node = stack[-1]
            if node in reading:
                stack.pop()
                continue
            if isinstance(node, _READS) or (type(node) is Call and node.effect >= CallEffectKind.ReadState):
                reading[node] = True
                continue
            children = node.children()
            waiting = [child for child in children if child not in reading]
            if waiting:
                stack += waiting
            else:
                reading[node] = any(reading[child] for child in children)
        return reading[root]

    def binary(self, cls: type, a: Expr, b: Expr) -> Expr:
        """The node of this class with these interned operands."""
        key = (cls, a, b)
        found = self.table.get(key)
        if found is None:
            found = self.table[key] = cls(a, b)
        return found

    def adopt(self, node: Expr) -> Expr:
        """The representative of a node whose children are interned already."""
        kind = type(node)
        if kind is IntImm:
            if -1024 <= node.value <= 4096:
                return constant(node.dtype, node.value)
        key_of = _KEYS.get(kind)
        if key_of is None:
            return node
        key = key_of(node)
        return node if key is None else self.table.setdefault(key, node)

    def integer(self, dtype: DataType, value: int) -> Expr:
        """The integer constant of a scalar type, wrapped to its range."""
        if -1024 <= value <= 4096:
            return constant(dtype, value)
        made = IntImm(dtype, value)
        return self.table.setdefault((IntImm, dtype, made.value), made)

    def intern(self, node: Expr) -> Expr:
        """The representative of any expression."""
        found = self.imported.get(node)
        if found is not None:
            return found
        kind = type(node)
        if kind is Var or kind is Let:
            return node
        made = self.adopt(node.map_children(self.intern) if kind is not IntImm else node)
        self.imported[node] = made
        return made
