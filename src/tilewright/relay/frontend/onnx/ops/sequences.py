"""Sequences and optionals. They are values of the importer: their lengths are known, their elements are expressions."""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.dimensions import Extent, extent_of, from_front, scalar
from tilewright.relay.frontend.onnx.ops.joining import parts, sizes_of
from tilewright.relay.frontend.onnx.registry import converter
from tilewright.relay.frontend.onnx.tensors import dtype_name
from tilewright.relay.frontend.onnx.values import OptionalValue, SequenceValue


def _items(node: Node, sequence: Any) -> list[Any]:
    if isinstance(sequence, OptionalValue):
        sequence = sequence.item
    if not isinstance(sequence, SequenceValue):
        raise node.fail("the input is not a sequence")
    return sequence.items


def _like(sequence: Any, items: list[Any]) -> SequenceValue:
    return SequenceValue(items, getattr(sequence, "dtype", "float32"))


def _position(node: Node, position: RelayExpr, count: int) -> int:
    """A place in a sequence that has to be known."""
    found = node.ints(position, "the position")[0]
    if not -count <= found < count:
        raise node.fail(f"position {found} is out of range for {count} elements")
    return found % count


@converter("SequenceEmpty")
def sequence_empty(node: Node) -> SequenceValue:
    """No elements."""
    return SequenceValue([], dtype_name(int(node.attr("dtype", 1))))


@converter("SequenceConstruct")
def sequence_construct(node: Node, *inputs: RelayExpr) -> SequenceValue:
    """The inputs as a sequence."""
    return SequenceValue(inputs, node.dtype(inputs[0]))


@converter("SequenceLength")
def sequence_length(node: Node, sequence: Any) -> RelayExpr:
    """How many elements there are."""
    return const(len(_items(node, sequence)), "int64")


@converter("SequenceAt")
def sequence_at(node: Node, sequence: Any, position: RelayExpr) -> Any:
    """One element. A position that the program computes picks among elements of one shape."""
    items = _items(node, sequence)
    if node.value(position) is None and items and len({str(node.type_of(item)) for item in items}) == 1:
        place = from_front(node, scalar(node, position), len(items))
        return relay.take(relay.stack(items, 0), place, axis=0)
    return items[_position(node, position, len(items))]


@converter("SequenceInsert")
def sequence_insert(
    node: Node, sequence: Any, tensor: RelayExpr, position: RelayExpr | None = None
) -> SequenceValue:
    """One more element, at the end or before a position."""
    items = list(_items(node, sequence))
    place = len(items)
    if position is not None:
        place = node.ints(position, "the position")[0]
        if not -len(items) <= place <= len(items):
            raise node.fail(f"position {place} is out of range for {len(items)} elements")
        place = place + len(items) if place < 0 else place
    items.insert(place, tensor)
    return SequenceValue(items, node.dtype(tensor))


@converter("SequenceErase")
def sequence_erase(node: Node, sequence: Any, position: RelayExpr | None = None) -> SequenceValue:
    """One element less: the last, or that at a position."""
    items = list(_items(node, sequence))
    place = len(items) - 1 if position is None else _position(node, position, len(items))
    if not items:
        raise node.fail("the sequence is empty")
    del items[place]
    return _like(sequence, items)


@converter("ConcatFromSequence")
def concat_from_sequence(node: Node, sequence: Any) -> RelayExpr:
    """The elements one after the other, along an axis or a new one."""
    items = _items(node, sequence)
    if not items:
        raise node.fail("the sequence is empty")
    new = bool(node.attr("new_axis", 0))
    axis = node.axis(int(node.attr("axis")), node.rank(items[0]) + new)
    if new:
        return relay.stack(items, axis)
    return relay.concatenate(items, axis) if len(items) > 1 else items[0]


@converter("SplitToSequence")
def split_to_sequence(node: Node, data: RelayExpr, split: RelayExpr | None = None) -> SequenceValue:
    """The parts of a tensor along an axis: of given sizes, of one size (the last may be smaller), or of one each."""
    axis = node.axis(0, node.rank(data))
    dtype = node.dtype(data)
    if split is not None and node.rank(split) == 1:
        return SequenceValue(parts(node, data, axis, sizes_of(node, split)), dtype)
    extent = extent_of(node, data, axis)
    if not isinstance(extent, int):
        node.static_shape(data, "the tensor that becomes a sequence")
        raise node.fail("the number of parts is not known")
    each = 1 if split is None else node.ints(split, "the size of the parts")[0]
    if each < 1:
        raise node.fail(f"parts of {each} elements are not possible")
    sizes: list[Extent] = [min(each, extent - begin) for begin in range(0, extent, each)]
    items = parts(node, data, axis, sizes) if sizes else []
    if split is None and not node.attr("keepdims", 1):
        items = [relay.squeeze(item, [axis]) for item in items]
    return SequenceValue(items, dtype)


@converter("SequenceMap", since=17)
def sequence_map(node: Node, sequence: Any, *others: Any) -> list[SequenceValue]:
    """The outputs of a graph for the elements of sequences; tensors are the same for all elements."""
    count = len(_items(node, sequence))
    for other in others:
        if isinstance(other, SequenceValue) and len(other.items) != count:
            raise node.fail(f"sequences of {count} and {len(other.items)} elements")
    body = node.attr("body")
    results: list[list[Any]] = [[] for _ in body.output]
    for place in range(count):
        inputs = [one.items[place] if isinstance(one, SequenceValue) else one for one in (sequence, *others)]
        for found, value in zip(results, node.graph.convert_body(body, inputs).outputs, strict=True):
            found.append(value)
    return [SequenceValue(items) for items in results]


# Optionals


@converter("Optional", since=15)
def optional(node: Node, value: Any = None) -> OptionalValue:
    """The value as an optional, or one that is empty."""
    return OptionalValue(value)


@converter("OptionalHasElement", since=15)
def optional_has_element(node: Node, value: Any = None) -> RelayExpr:
    """True unless it is empty; a tensor or sequence itself counts as there."""
    present = value.item is not None if isinstance(value, OptionalValue) else value is not None
    return const(present, "bool")


@converter("OptionalGetElement", since=15)
def optional_get_element(node: Node, value: Any) -> Any:
    """The value of an optional."""
    if not isinstance(value, OptionalValue):
        return value
    if value.item is None:
        raise node.fail("the optional is empty")
    return value.item
