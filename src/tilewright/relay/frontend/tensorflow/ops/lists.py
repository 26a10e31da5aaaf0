"""Lists of tensors: TensorArray and TensorList, each one tensor in which the elements are stacked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.common.sizes import added, as_scalar, reshaped, sizes_of
from tilewright.relay.frontend.tensorflow.ops.shape import filled
from tilewright.relay.frontend.tensorflow.registry import converter
from tilewright.relay.frontend.tensorflow.values import PendingList


def zeros_for(node: GraphNode, pending: PendingList, shape: Sequence[Any]) -> Expr:
    """A list whose elements have this shape, before anything is written."""
    return filled(node, [pending.count, *shape], node.constant(0, pending.dtype))


def started(node: GraphNode, items: Any, element: Sequence[Any] | None = None) -> Expr:
    """The tensor of a list; one to which nothing has been written has zeros."""
    if not isinstance(items, PendingList):
        return items  # type: ignore[no-any-return]
    shape = items.known_shape() if element is None else element
    if shape is None:
        raise node.fail("the shape of the elements of a list is not known")
    return zeros_for(node, items, shape)


def _pending(node: GraphNode, count: Expr, shape: Any, dtype: str) -> PendingList:
    known = shape
    return PendingList(node.elements(count, "the size")[0], dtype, known)


def _declared_shape(node: GraphNode, shape: Expr) -> tuple[int | None, ...] | None:
    value = node.value(shape)
    if value is None or value.ndim == 0:
        return None
    return tuple(None if int(size) < 0 else int(size) for size in value)


def _written(node: GraphNode, items: Any, index: Expr, value: Expr, grows: bool = False) -> Expr:
    whole = started(node, items, sizes_of(node, value))
    whole = _grown(node, whole, index) if grows else whole
    place = relay.reshape(relay.cast(index, "int64"), (1, 1))
    return relay.scatter_nd(whole, place, relay.expand_dims(value, 0), "update")


def _grown(node: GraphNode, whole: Expr, index: Expr) -> Expr:
    """A list that has an element at an index: zeros are added to one that is too short."""
    count, *element = sizes_of(node, whole)
    place = node.elements(index, "the index")[0]
    zero = node.constant(0, whole)
    if isinstance(count, int) and isinstance(place, int):
        more: Any = place + 1 - count
        if more <= 0:
            return whole
    else:
        missing = relay.subtract(added(place, 1), as_scalar(count))  # type: ignore[arg-type]
        more = relay.maximum(missing, const(0, "int64"))
    return relay.concatenate([whole, filled(node, [more, *element], zero)], axis=0)


# TensorArray: a handle, and a flow that carries the elements


@converter("TensorArrayV3", "TensorArrayV2")
def tensor_array(node: GraphNode, size: Expr) -> list[Any]:
    """A new list."""
    made = _pending(node, size, node.attr("element_shape", None), str(node.attr("dtype")))
    made = replace(made, grows=bool(node.attr("dynamic_size", False)))
    return [made, made]


@converter("TensorArrayWriteV3")
def tensor_array_write(node: GraphNode, handle: Any, index: Expr, value: Expr, flow: Any) -> Expr:
    """A list with an element replaced."""
    grows = handle.grows if isinstance(handle, PendingList) else False
    return _written(node, flow, index, value, grows)


@converter("TensorArrayReadV3")
def tensor_array_read(node: GraphNode, handle: Any, index: Expr, flow: Any) -> Expr:
    """An element."""
    return relay.take(started(node, flow), index, axis=0)


@converter("TensorArrayGatherV3")
def tensor_array_gather(node: GraphNode, handle: Any, indices: Expr, flow: Any) -> Expr:
    """Some elements, stacked."""
    return relay.take(started(node, flow), indices, axis=0)


@converter("TensorArrayScatterV3")
def tensor_array_scatter(node: GraphNode, handle: Any, indices: Expr, value: Expr, flow: Any) -> Expr:
    """A list with some elements replaced."""
    return _scattered(node, flow, indices, value)


def _scattered(node: GraphNode, items: Any, indices: Expr, value: Expr) -> Expr:
    places = node.value(indices)
    if isinstance(items, PendingList) and places is not None:
        if items.count == places.size and np.array_equal(places, np.arange(places.size)):
            return value
    whole = started(node, items, sizes_of(node, value)[1:])
    return relay.scatter_nd(whole, relay.expand_dims(relay.cast(indices, "int64"), 0), value, "update")


@converter("TensorArraySizeV3")
def tensor_array_size(node: GraphNode, handle: Any, flow: Any) -> Expr:
    """How many elements there are."""
    count = flow.count if isinstance(flow, PendingList) else sizes_of(node, flow)[0]
    return node.of_elements([count], "int32", scalar=True)


@converter("TensorArrayConcatV3")
def tensor_array_concat(node: GraphNode, handle: Any, flow: Any) -> list[Expr]:
    """The elements one after the other along their first axis, and the length of each."""
    whole = started(node, flow)
    sizes = sizes_of(node, whole)
    lengths = filled(node, [sizes[0]], relay.cast(const(node.static_shape(whole)[1]), "int64"))
    return [reshaped(node, whole, [-1, *sizes[2:]]), lengths]


@converter("TensorArraySplitV3")
def tensor_array_split(node: GraphNode, handle: Any, value: Expr, lengths: Expr, flow: Any) -> Expr:
    """A list of parts of equal length."""
    return _split(node, value, lengths)


def _split(node: GraphNode, value: Expr, lengths: Expr) -> Expr:
    parts = node.ints(lengths, "the lengths")
    if len(set(parts)) != 1:
        raise node.fail("parts of different lengths are not supported")
    return reshaped(node, value, [len(parts), parts[0], *sizes_of(node, value)[1:]])


@converter("TensorArrayCloseV3")
def tensor_array_close(node: GraphNode, handle: Any) -> list[Any]:
    """Nothing is left to do."""
    return []


# TensorList


@converter("TensorListReserve")
def tensor_list_reserve(node: GraphNode, shape: Expr, count: Expr) -> PendingList:
    """A new list of a given length."""
    return _pending(node, count, _declared_shape(node, shape), str(node.attr("element_dtype")))


@converter("EmptyTensorList")
def empty_tensor_list(node: GraphNode, shape: Expr, most: Expr) -> PendingList:
    """A new list without elements."""
    return PendingList(0, str(node.attr("element_dtype")), _declared_shape(node, shape))


@converter("TensorListFromTensor")
def tensor_list_from_tensor(node: GraphNode, value: Expr, shape: Expr) -> Expr:
    """The rows of a tensor."""
    return value


@converter("TensorListSplit")
def tensor_list_split(node: GraphNode, value: Expr, shape: Expr, lengths: Expr) -> Expr:
    """A list of parts of equal length."""
    return _split(node, value, lengths)


@converter("TensorListSetItem")
def tensor_list_set_item(node: GraphNode, items: Any, index: Expr, value: Expr) -> Expr:
    """A list with an element replaced."""
    return _written(node, items, index, value, bool(node.attr("resize_if_index_out_of_bounds", False)))


@converter("TensorListGetItem")
def tensor_list_get_item(node: GraphNode, items: Any, index: Expr, shape: Expr) -> Expr:
    """An element."""
    return relay.take(started(node, items, _element(node, shape)), index, axis=0)


@converter("TensorListStack")
def tensor_list_stack(node: GraphNode, items: Any, shape: Expr) -> Expr:
    """All elements, stacked."""
    return started(node, items, _element(node, shape))


def _element(node: GraphNode, shape: Expr) -> Sequence[int] | None:
    declared = _declared_shape(node, shape)
    if declared is None or any(size is None for size in declared):
        return None
    return [size for size in declared if size is not None]


@converter("TensorListGather")
def tensor_list_gather(node: GraphNode, items: Any, indices: Expr, shape: Expr) -> Expr:
    """Some elements, stacked."""
    return relay.take(started(node, items, _element(node, shape)), indices, axis=0)


@converter("TensorListScatterV2")
def tensor_list_scatter(node: GraphNode, value: Expr, indices: Expr, shape: Expr, count: Expr) -> Expr:
    """A list of rows of a tensor, each at its place."""
    wanted = int(node.number(count, "num_elements"))
    places = node.ints(indices, "the indices")
    most = wanted if wanted >= 0 else max(places, default=-1) + 1
    return _scattered(node, PendingList(most, node.dtype(value), None), indices, value)


@converter("TensorListScatterIntoExistingList")
def tensor_list_scatter_into(node: GraphNode, items: Any, value: Expr, indices: Expr) -> Expr:
    """A list with some elements replaced."""
    return _scattered(node, items, indices, value)


@converter("TensorListLength")
def tensor_list_length(node: GraphNode, items: Any) -> Expr:
    """How many elements there are."""
    return tensor_array_size(node, None, items)


@converter("TensorListElementShape")
def tensor_list_element_shape(node: GraphNode, items: Any) -> Expr:
    """The shape of an element."""
    sizes = items.known_shape() if isinstance(items, PendingList) else sizes_of(node, items)[1:]
    if sizes is None:
        raise node.fail("the shape of the elements of a list is not known")
    return node.of_elements(list(sizes), str(node.attr("shape_type", "int32")))


@converter("TensorListResize")
def tensor_list_resize(node: GraphNode, items: Any, size: Expr) -> Any:
    """A list of another length."""
    count = node.elements(size, "the size")[0]
    if isinstance(items, PendingList):
        return PendingList(count, items.dtype, items.shape)
    have = node.static_shape(items)[0]
    if not isinstance(count, int):
        raise node.needs_value(size, "the size")
    if count <= have:
        return relay.strided_slice(items, [0], [count], [1], axes=[0])
    widths = [(0, count - have)] + [(0, 0)] * (node.rank(items) - 1)
    return relay.nn.pad(items, widths, node.constant(0, items))


@converter("TensorListPushBack")
def tensor_list_push_back(node: GraphNode, items: Any, value: Expr) -> Expr:
    """A list with one more element."""
    row = relay.expand_dims(value, 0)
    if isinstance(items, PendingList) and items.count == 0:
        return row
    return relay.concatenate([started(node, items, sizes_of(node, value)), row], axis=0)


@converter("TensorListPopBack")
def tensor_list_pop_back(node: GraphNode, items: Any, shape: Expr) -> list[Any]:
    """A list without its last element, and that element."""
    whole = started(node, items, _element(node, shape))
    last = relay.take(whole, const(-1, "int64"), axis=0, mode="wrap")
    return [relay.strided_slice(whole, [0], [-1], [1], axes=[0]), last]


@converter("TensorListConcatV2")
def tensor_list_concat(node: GraphNode, items: Any, shape: Expr, leading: Expr) -> list[Expr]:
    """The elements one after the other along their first axis, and the length of each."""
    return tensor_array_concat(node, None, items)
