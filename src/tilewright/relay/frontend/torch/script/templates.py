"""Values whose structure conditions and loops have to agree on.

A template describes a value: which tensors are in it, of which types, and what is known. Templates of the two sides of
a condition, or of a loop's state before and after a turn, are merged; either value is then taken apart into the leaves
of the merged template, and a value is built from the leaves of the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.expr import IntImm
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Constant, If, Let, Var, const
from tilewright.relay.frontend.torch.script.store import Store
from tilewright.relay.frontend.torch.script.values import (
    UNINITIALIZED,
    DictOf,
    DictValue,
    Fixed,
    InputList,
    Leaf,
    ListOf,
    ListValue,
    Stack,
    StackOf,
    Tensor,
    TupleOf,
)

NUMBER_TYPES: Final = {"int": "int64", "float": "float64", "bool": "bool"}
"""The element types of numbers that only the program knows, as Python has them."""


class Mismatch(Exception):
    """Two values have no template in common."""


# From values


def template_of(store: Store, value: Any) -> Any:
    """The structure of a value."""
    if isinstance(value, Tensor):
        return Leaf(store.kind(store.read(value)), value.number, value.quantization)
    if isinstance(value, tuple):
        return TupleOf(tuple(template_of(store, item) for item in value))
    if isinstance(value, ListValue):
        content = store.content(value.cell)
        if isinstance(content, Stack):
            return StackOf(content.element)
        if isinstance(content, InputList):
            return Fixed(value)
        return ListOf(tuple(template_of(store, item) for item in content))
    if isinstance(value, DictValue):
        content = store.content(value.cell)
        return DictOf(tuple((key, template_of(store, item)) for key, item in content.items()))
    return Fixed(value)


def number_kind(value: Any) -> str:
    """ "int", "float" or "bool" for Python's numbers, else nothing."""
    return type(value).__name__ if isinstance(value, (bool, int, float)) else ""


def widened(first: TensorType, second: TensorType) -> TensorType:
    """The type that both have, dimensions that differ left open."""
    if first.dtype is not second.dtype or len(first.shape) != len(second.shape):
        raise Mismatch(f"{first} and {second}")
    return TensorType(
        [
            one
            if isinstance(one, IntImm) and isinstance(other, IntImm) and one.value == other.value
            else UnknownDimension()
            for one, other in zip(first.shape, second.shape, strict=True)
        ],
        first.dtype,
    )


def merged(one: Any, other: Any) -> Any:
    """The template of values that have one or the other."""
    if isinstance(one, Fixed) and isinstance(other, Fixed):
        return _merged_known(one, other)
    if isinstance(one, Fixed) and one.value is UNINITIALIZED:
        return other
    if isinstance(other, Fixed) and other.value is UNINITIALIZED:
        return one
    one, other = _as_leaf(one, other), _as_leaf(other, one)
    if isinstance(one, Leaf) and isinstance(other, Leaf):
        if one.number != other.number or one.quantization != other.quantization:
            raise Mismatch(f"{described(one)} and {described(other)}")
        return Leaf(widened(one.kind, other.kind), one.number, one.quantization)
    if isinstance(one, TupleOf) and isinstance(other, TupleOf) and len(one.items) == len(other.items):
        return TupleOf(tuple(merged(a, b) for a, b in zip(one.items, other.items, strict=True)))
    if isinstance(one, DictOf) and isinstance(other, DictOf):
        if [key for key, _ in one.items] == [key for key, _ in other.items]:
            pairs = zip(one.items, other.items, strict=True)
            return DictOf(tuple((key, merged(a, b)) for (key, a), (_, b) in pairs))
    if isinstance(one, (ListOf, StackOf)) and isinstance(other, (ListOf, StackOf)):
        if isinstance(one, ListOf) and isinstance(other, ListOf) and len(one.items) == len(other.items):
            return ListOf(tuple(merged(a, b) for a, b in zip(one.items, other.items, strict=True)))
        return stacked(one, other)
    raise Mismatch(f"{described(one)} and {described(other)}")


def _merged_known(one: Fixed, other: Fixed) -> Any:
    first, second = one.value, other.value
    if first is second or (type(first) is type(second) and not isinstance(first, Tensor) and first == second):
        return one
    if first is UNINITIALIZED or second is UNINITIALIZED:
        return other if first is UNINITIALIZED else one
    kind = number_kind(first)
    if kind and kind == number_kind(second):
        return _number_leaf(kind)
    raise Mismatch(f"{described(one)} and {described(other)}")


def _number_leaf(kind: str) -> Leaf:
    return Leaf(TensorType((), NUMBER_TYPES[kind]), kind)


def _as_leaf(one: Any, other: Any) -> Any:
    """A known number as a leaf where the other side is a number that the program knows."""
    if isinstance(one, Fixed) and isinstance(other, Leaf) and other.number == number_kind(one.value):
        return _number_leaf(other.number)
    return one


def stacked(*lists: Any) -> StackOf:
    """The template of lists of any length with the elements of these."""
    elements = [item for one in lists for item in (one.items if isinstance(one, ListOf) else (one.element,))]
    if not elements:
        raise Mismatch("lists of different lengths without elements")
    found = _element(elements[0])
    for element in elements[1:]:
        found = merged(found, _element(element))
    return StackOf(found)


def _element(template: Any) -> Any:
    """An element of a list as a leaf or a tuple of leaves: what is along an axis cannot be known one by one."""
    if isinstance(template, Fixed) and number_kind(template.value):
        return _number_leaf(number_kind(template.value))
    if isinstance(template, TupleOf):
        return TupleOf(tuple(_element(item) for item in template.items))
    if isinstance(template, Leaf):
        return template
    raise Mismatch(f"lists of {described(template)} whose length only the program knows")


def described(template: Any) -> str:
    """A template in a message."""
    match template:
        case Leaf(kind, number, _):
            return f"a number of type {number}" if number else str(kind)
        case Fixed(None):
            return "None"
        case Fixed(value):
            return (
                f"the {type(value).__name__} {value!r}" if number_kind(value) else f"a {type(value).__name__}"
            )
        case TupleOf(items):
            return f"a tuple of {len(items)}"
        case ListOf(items):
            return f"a list of {len(items)}"
        case DictOf(items):
            return f"a dictionary with the keys {[key for key, _ in items]}"
    return "a list"


# Leaves


def types_of(template: Any) -> Iterator[TensorType]:
    """The types of the leaves."""
    match template:
        case Leaf(kind):
            yield kind
        case TupleOf(items) | ListOf(items):
            for item in items:
                yield from types_of(item)
        case DictOf(items):
            for _, item in items:
                yield from types_of(item)
        case StackOf(element):
            for kind in types_of(element):
                yield TensorType([UnknownDimension(), *kind.shape], kind.dtype)


def of_type(value: RelayExpr, have: TensorType, wanted: TensorType) -> RelayExpr:
    """A value under a type that leaves dimensions open."""
    if have == wanted:
        return value
    variable = Var("open", wanted)
    return Let(variable, value, variable)


def leaves_of(store: Store, value: Any, template: Any) -> list[RelayExpr]:
    """The tensors of a value, in the order and of the types of a template that describes it."""
    if value is UNINITIALIZED:
        return [_nothing(kind) for kind in types_of(template)]
    if isinstance(template, Leaf):
        if not isinstance(value, Tensor):
            return [const(value, NUMBER_TYPES[template.number])]
        expr = store.read(value)
        return [of_type(expr, store.kind(expr), template.kind)]
    if isinstance(template, TupleOf):
        return [
            leaf
            for item, inner in zip(value, template.items, strict=True)
            for leaf in leaves_of(store, item, inner)
        ]
    if isinstance(template, DictOf):
        content = store.content(value.cell)
        return [leaf for key, inner in template.items for leaf in leaves_of(store, content[key], inner)]
    if isinstance(template, ListOf):
        content = store.content(value.cell)
        return [
            leaf
            for item, inner in zip(content, template.items, strict=True)
            for leaf in leaves_of(store, item, inner)
        ]
    if isinstance(template, StackOf):
        content = as_stack(store, store.content(value.cell), template.element)
        return [
            of_type(leaf, store.kind(leaf), kind)
            for leaf, kind in zip(content.leaves, types_of(template), strict=True)
        ]
    return []


def _nothing(kind: TensorType) -> RelayExpr:
    """A tensor of a type that nobody reads."""
    known = [extent.value if isinstance(extent, IntImm) else 0 for extent in kind.shape]
    made = Constant(np.zeros(known, str(kind.dtype)))
    return of_type(made, TensorType(known, kind.dtype), kind)


def as_stack(store: Store, content: Any, element: Any) -> Stack:
    """The content of a list as tensors along a first axis."""
    if isinstance(content, Stack):
        return content
    kinds = list(types_of(element))
    columns: list[list[RelayExpr]] = [[] for _ in kinds]
    for item in content:
        for column, leaf in zip(columns, leaves_of(store, item, element), strict=True):
            column.append(leaf)
    made: list[RelayExpr] = []
    for kind, column in zip(kinds, columns, strict=True):
        known = [extent.value if isinstance(extent, IntImm) else 0 for extent in kind.shape]
        made.append(relay.stack(column, 0) if column else Constant(np.zeros([0, *known], str(kind.dtype))))
    return Stack(element, tuple(made))


def joined_stacks(store: Store, one: Stack, other: Stack) -> Stack:
    """The elements of one list and then those of another."""
    made: list[RelayExpr] = []
    for first, second, kind in zip(one.leaves, other.leaves, types_of(one.element), strict=True):
        joined: RelayExpr = relay.concatenate([first, second], 0)
        if any(not isinstance(extent, IntImm) for extent in kind.shape):
            # Nothing fits behind an empty tensor whose other dimensions are not known.
            whole = TensorType([UnknownDimension(), *kind.shape], kind.dtype)
            size = relay.take(relay.shape_of(first, "int64"), const(0, "int64"), axis=0)
            joined = If(
                relay.equal(size, const(0, "int64")),
                of_type(second, store.kind(second), whole),
                of_type(joined, store.kind(joined), whole),
            )
        made.append(joined)
    return Stack(one.element, tuple(made))


# To values


def build(store: Store, template: Any, leaves: Iterator[RelayExpr]) -> Any:
    """A value with a template's structure and these leaves."""
    if isinstance(template, Leaf):
        made = store.tensor(next(leaves), template.number)
        made.quantization = template.quantization
        return made
    if isinstance(template, TupleOf):
        return tuple(build(store, item, leaves) for item in template.items)
    if isinstance(template, ListOf):
        return store.list_of([build(store, item, leaves) for item in template.items])
    if isinstance(template, DictOf):
        return store.dict_of({key: build(store, item, leaves) for key, item in template.items})
    if isinstance(template, StackOf):
        count = sum(1 for _ in types_of(template.element))
        return store.list_of(Stack(template.element, tuple(next(leaves) for _ in range(count))))
    return template.value
