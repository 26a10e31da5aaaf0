"""Lists and dictionaries.

Lists whose length is known are Python's, whose elements are values of the graph. A list that a loop of unknown length
fills is a stack: its elements lie along the first axis of tensors.
"""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType
from tilewright.relay.expr import Call, TupleGetItem, const
from tilewright.relay.frontend.common.sizes import as_scalar, multiplied, reshaped, size_of, sizes_of
from tilewright.relay.frontend.torch.registry import find_converter
from tilewright.relay.frontend.torch.script.node import ScriptNode
from tilewright.relay.frontend.torch.script.registry import operator
from tilewright.relay.frontend.torch.script.templates import (
    Mismatch,
    as_stack,
    build,
    joined_stacks,
    stacked,
    template_of,
)
from tilewright.relay.frontend.torch.script.values import (
    DictValue,
    InputList,
    ListOf,
    ListValue,
    Stack,
    Tensor,
)
from tilewright.relay.prelude import Prelude

# Construction


@operator("prim::ListConstruct")
def list_construct(node: ScriptNode, *items: Any) -> Any:
    """A list of values."""
    return node.store.list_of(items)


@operator("prim::ListUnpack")
def list_unpack(node: ScriptNode, values: Any) -> Any:
    """The elements of a list, as many as the graph takes."""
    count = sum(1 for _ in node.torch_node.outputs())
    content = node.store.content(values.cell) if isinstance(values, ListValue) else list(values)
    if isinstance(content, list) and len(content) != count:
        raise node.fail(f"a list of {len(content)} is unpacked to {count} variables")
    items = content if isinstance(content, list) else [_at(node, values, place) for place in range(count)]
    return items[0] if count == 1 else items


@operator("aten::list", "aten::copy")
def copied(node: ScriptNode, values: Any) -> Any:
    """Another list with the same elements."""
    if isinstance(values, DictValue):
        return node.store.dict_of(node.entries(values))
    if isinstance(values, tuple):
        return node.store.list_of(values)
    if isinstance(values, str):
        return node.store.list_of(list(values))
    return node.store.list_of(node.store.content(values.cell))


@operator("prim::rangelist")
def range_list(node: ScriptNode, count: Any) -> Any:
    """The numbers below another."""
    return node.store.list_of(range(int(node.number_of(node.resolved(count), "the length of a range"))))


# Elements


@operator("aten::__getitem__.t")
def list_item(node: ScriptNode, values: Any, place: Any) -> Any:
    """An element."""
    return _at(node, values, node.known(place))


def _at(node: ScriptNode, values: ListValue, place: Any) -> Any:
    content = node.store.content(values.cell)
    if isinstance(content, InputList):
        return _from_input(node, content, place)
    if isinstance(content, list) and not isinstance(place, Tensor):
        if not -len(content) <= place < len(content):
            raise node.fail(f"the index {place} is out of range for a list of {len(content)}")
        return content[place]
    if isinstance(content, list):
        try:
            content = as_stack(node.store, content, stacked(template_of(node.store, values)).element)
        except Mismatch as error:
            raise node.needs_value(
                node.resolved(place), f"the index in a list whose elements differ ({error})"
            ) from None
    index = _from_front(node, place, content)
    leaves = iter([relay.take(leaf, index, axis=0) for leaf in content.leaves])
    return build(node.store, content.element, leaves)


def _from_front(node: ScriptNode, place: Any, content: Stack) -> RelayExpr:
    """An index of a stack counted from the front."""
    length = as_scalar(size_of(node, content.leaves[0], 0))
    if not isinstance(place, Tensor):
        return const(place, "int64") if place >= 0 else relay.add(length, const(place, "int64"))
    index = node.store.read(place)
    return relay.where(relay.less(index, const(0, "int64")), relay.add(index, length), index)


def _from_input(node: ScriptNode, content: InputList, place: Any) -> Any:
    """An element of a list that is an input of the model."""
    prelude = Prelude(node.module)
    index = const(place, "int32") if not isinstance(place, Tensor) else node.expr(place, "int32")
    if not isinstance(place, Tensor) and place < 0:
        raise node.fail("a negative index of a list that is an input is not supported")
    return input_value(node, Call(prelude.nth, [content.expr, index]), content.kind)


def input_value(node: ScriptNode, expr: RelayExpr, kind: Any) -> Any:
    """An expression of an input's type as a value of the graph."""
    if isinstance(kind, TensorType):
        return node.store.tensor(expr)
    if isinstance(kind, TupleType):
        return tuple(
            input_value(node, TupleGetItem(expr, place), inner) for place, inner in enumerate(kind.fields)
        )
    return node.store.list_of(InputList(expr, kind.args[0]))


@operator("aten::len.t", "aten::len.str", "aten::len.Dict_str", "aten::len.Dict_int", "aten::len.any")
def length(node: ScriptNode, values: Any) -> Any:
    """How many elements there are."""
    if isinstance(values, DictValue):
        return len(node.entries(values))
    if not isinstance(values, ListValue):
        return len(values)
    content = node.store.content(values.cell)
    if isinstance(content, list):
        return len(content)
    if isinstance(content, InputList):
        return relay.cast(Call(Prelude(node.module).length, [content.expr]), "int64")
    return size_of(node, content.leaves[0], 0)


# Changes


@operator("aten::append")
def append(node: ScriptNode, values: Any, item: Any) -> Any:
    """One more element at the end."""
    return extend(node, values, node.store.list_of([item]))


@operator("aten::extend", "aten::add_.t")
def extend(node: ScriptNode, values: Any, others: Any) -> Any:
    """More elements at the end."""
    node.store.set_content(values.cell, _joined(node, values, others))
    return values


@operator("aten::add.t")
def join(node: ScriptNode, values: Any, others: Any) -> Any:
    """The elements of both lists."""
    return node.store.list_of(_joined(node, values, others))


def _joined(node: ScriptNode, values: Any, others: Any) -> Any:
    one, other = node.store.content(values.cell), node.store.content(others.cell)
    if isinstance(one, InputList) or isinstance(other, InputList):
        raise node.fail("a list that is an input cannot be extended: build a new one from its elements")
    if isinstance(one, list) and isinstance(other, list):
        return [*one, *other]
    try:
        whole = stacked(*(template_of(node.store, each) for each in (values, others)))
    except Mismatch as error:
        raise node.fail(
            f"a list of a length that only the program knows would have elements {error}"
        ) from None
    return joined_stacks(
        node.store, *(as_stack(node.store, content, whole.element) for content in (one, other))
    )


@operator("aten::insert.t", "aten::insert")
def insert(node: ScriptNode, values: Any, place: Any, item: Any) -> Any:
    """One more element before another."""
    items = list(node.items(values))
    items.insert(int(node.number_of(node.resolved(place), "the place in a list")), item)
    node.store.set_content(values.cell, items)
    return values


@operator("aten::pop.t", "aten::pop")
def pop(node: ScriptNode, values: Any, place: Any = -1) -> Any:
    """Take an element out."""
    items = list(node.items(values))
    index = int(node.number_of(node.resolved(place), "the place in a list"))
    if not -len(items) <= index < len(items):
        raise node.fail(f"the index {index} is out of range for a list of {len(items)}")
    found = items.pop(index)
    node.store.set_content(values.cell, items)
    return found


@operator("aten::Delete.t")
def delete(node: ScriptNode, values: Any, place: Any) -> None:
    """One element less."""
    pop(node, values, place)


@operator("aten::clear")
def clear(node: ScriptNode, values: Any) -> Any:
    """No elements any more."""
    node.store.set_content(values.cell, [])
    return values


@operator("aten::reverse")
def reverse(node: ScriptNode, values: Any) -> Any:
    """The other way round."""
    content = node.store.content(values.cell)
    if isinstance(content, Stack):
        content = Stack(content.element, tuple(relay.reverse(leaf, 0) for leaf in content.leaves))
        node.store.set_content(values.cell, content)
    else:
        node.store.set_content(values.cell, list(reversed(node.items(values))))
    return values


@operator("aten::_set_item.t")
def set_item(node: ScriptNode, values: Any, place: Any, item: Any) -> Any:
    """Replace an element."""
    content = node.store.content(values.cell)
    index = node.known(place)
    if isinstance(content, list) and not isinstance(index, Tensor):
        if not -len(content) <= index < len(content):
            raise node.fail(f"the index {index} is out of range for a list of {len(content)}")
        items = list(content)
        items[index] = item
        node.store.set_content(values.cell, items)
        return values
    try:
        element = stacked(template_of(node.store, values), ListOf((template_of(node.store, item),))).element
    except Mismatch as error:
        raise node.fail(
            f"a list of a length that only the program knows would have elements {error}"
        ) from None
    whole = as_stack(node.store, content, element)
    one = as_stack(node.store, [item], element)
    where = relay.reshape(_from_front(node, index, whole), (1,))
    leaves = tuple(
        relay.scatter_nd(leaf, relay.expand_dims(where, 0), new, "update")
        for leaf, new in zip(whole.leaves, one.leaves, strict=True)
    )
    node.store.set_content(values.cell, Stack(element, leaves))
    return values


@operator("aten::slice.t", "aten::slice.str")
def list_slice(node: ScriptNode, values: Any, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    """Some elements."""
    if isinstance(values, str):
        return values[start:end:step]
    bounds = [
        None if bound is None else int(node.number_of(node.resolved(bound), "a bound of a slice"))
        for bound in (start, end, step)
    ]
    content = node.store.content(values.cell)
    if isinstance(content, Stack):
        begin, stop, stride = bounds[0] or 0, bounds[1], bounds[2]
        if begin < 0 or (stop is not None and stop < 0) or stride != 1:
            raise node.fail(
                "only slices from the front of a list whose length only the program knows are supported"
            )
        last = (1 << 31) - 1 if stop is None else stop
        leaves = tuple(relay.strided_slice(leaf, [begin], [last], [1], axes=[0]) for leaf in content.leaves)
        return node.store.list_of(Stack(content.element, leaves))
    return node.store.list_of(node.items(values)[slice(*bounds)])


@operator("aten::mul.left_t")
def repeated(node: ScriptNode, values: Any, count: Any) -> Any:
    """The elements several times."""
    return node.store.list_of(
        node.items(values) * int(node.number_of(node.resolved(count), "how often a list is repeated"))
    )


@operator("aten::mul.right_")
def repeated_right(node: ScriptNode, count: Any, values: Any) -> Any:
    """The elements several times."""
    return repeated(node, values, count)


# Comparisons


@operator("aten::eq.int_list", "aten::eq.float_list", "aten::eq.bool_list", "aten::eq.str_list")
def equal_lists(node: ScriptNode, one: Any, other: Any) -> Any:
    """True if both lists have equal elements."""
    first, second = node.resolved(one), node.resolved(other)
    if len(first) != len(second):
        return False
    found: Any = True
    for left, right in zip(first, second, strict=True):
        if isinstance(left, RelayExpr) or isinstance(right, RelayExpr):
            test = relay.equal(node.cast(left, "int64"), node.cast(right, "int64"))
            found = test if found is True else relay.logical_and(found, test)
        elif left != right:
            return False
    return found


@operator("aten::ne.int_list", "aten::ne.float_list", "aten::ne.bool_list", "aten::ne.str_list")
def different_lists(node: ScriptNode, one: Any, other: Any) -> Any:
    """True if not all elements are equal."""
    found = equal_lists(node, one, other)
    return relay.logical_not(found) if isinstance(found, RelayExpr) else not found


@operator(
    "aten::__contains__.int_list", "aten::__contains__.str_list", "aten::__contains__.float_list",
    "aten::__contains__.int", "aten::__contains__.str", "aten::__contains__.float", "aten::__contains__.bool",
)  # fmt: skip
def contains(node: ScriptNode, values: Any, item: Any) -> bool:
    """True if a list has an element, or a dictionary a key."""
    if isinstance(values, DictValue):
        return item in node.entries(values)
    known = [node.known(each) for each in node.items(values)]
    if isinstance(node.known(item), Tensor) or any(isinstance(each, Tensor) for each in known):
        raise node.fail("a list that only the program knows is searched")
    return node.known(item) in known


# Tensors from lists whose length only the program knows


@operator("aten::stack")
def stack(node: ScriptNode, values: Any, axis: Any = 0) -> Any:
    """The elements along a new axis."""
    content = node.store.content(values.cell)
    if not isinstance(content, Stack):
        return relay.stack(node.promoted(*node.resolved(values)), node.axis_of(axis, _rank(node, values) + 1))
    return _moved(node, content.leaves[0], 0, int(axis))


@operator("aten::cat")
def concatenate(node: ScriptNode, values: Any, axis: Any = 0) -> Any:
    """The elements one after the other along an axis."""
    content = node.store.content(values.cell)
    if not isinstance(content, Stack):
        convert = find_converter("aten::cat")
        if convert is None:
            raise node.fail("the operator is not supported")
        return convert(node, {"tensors": node.resolved(values), "dim": axis}, {"dim": 0})
    whole = content.leaves[0]
    rank = node.rank(whole) - 1
    axis = node.axis_of(int(axis), rank)
    # The new axis comes before the one along which the elements are joined, and both become one.
    order = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
    sizes = sizes_of(node, whole)
    shape = [sizes[place] for place in order]
    shape[axis : axis + 2] = [multiplied(shape[axis : axis + 2])]
    return reshaped(node, relay.transpose(whole, order), shape)


def _rank(node: ScriptNode, values: Any) -> int:
    items = node.resolved(values)
    if not items:
        raise node.fail("an empty list has no tensors to stack")
    return node.rank(items[0])


def _moved(node: ScriptNode, data: RelayExpr, have: int, wanted: int) -> RelayExpr:
    rank = node.rank(data)
    order = [place for place in range(rank) if place != have]
    order.insert(node.axis_of(wanted, rank), have)
    return data if order == list(range(rank)) else relay.transpose(data, order)


# Dictionaries


@operator("prim::DictConstruct")
def dict_construct(node: ScriptNode, *values: Any) -> Any:
    """A dictionary from keys and values."""
    return node.store.dict_of(dict(zip(values[::2], values[1::2], strict=True)))


@operator("aten::dict")
def dict_of(node: ScriptNode, *values: Any) -> Any:
    """A dictionary from pairs, or an empty one."""
    pairs = [node.items(pair) for pair in node.items(values[0])] if values else []
    return node.store.dict_of(dict(pairs))


@operator("aten::keys")
def keys(node: ScriptNode, values: Any) -> Any:
    """The keys."""
    return node.store.list_of(node.entries(values).keys())


@operator("aten::values")
def values_of(node: ScriptNode, values: Any) -> Any:
    """The values."""
    return node.store.list_of(node.entries(values).values())


@operator("aten::items")
def items_of(node: ScriptNode, values: Any) -> Any:
    """The pairs of keys and values."""
    return node.store.list_of(node.entries(values).items())


def _by_key(node: ScriptNode, values: Any, key: Any) -> Any:
    entries = node.entries(values)
    if key not in entries:
        raise node.fail(f"the dictionary has no key {key!r}; it has {sorted(map(str, entries))}")
    return entries[key]


def _set_by_key(node: ScriptNode, values: Any, key: Any, item: Any) -> None:
    node.store.set_content(values.cell, {**node.entries(values), key: item})


def _get(node: ScriptNode, values: Any, key: Any, default: Any = None) -> Any:
    return node.entries(values).get(key, default)


for _key in ("str", "int", "bool", "float"):
    operator(f"aten::__getitem__.Dict_{_key}")(_by_key)
    operator(f"aten::_set_item.{_key}")(_set_by_key)
    operator(f"aten::get.{_key}", f"aten::get.default_{_key}")(_get)
