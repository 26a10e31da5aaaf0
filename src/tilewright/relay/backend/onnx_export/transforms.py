"""Operators that move elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ir.expr import IntImm
from tilewright.relay.backend.onnx_export.builder import GraphWriter, dtype_of, shape_of, writes
from tilewright.relay.backend.onnx_export.layouts import transformed
from tilewright.relay.expr import Constant
from tilewright.relay.op.transform.slicing import python_slices
from tilewright.support.errors import ModelError


@writes("reshape", "nn.batch_flatten", "reshape_like", "contrib_reverse_reshape")
def write_reshape(graph: GraphWriter, call: Any, data: str, *others: str) -> str:
    """Another shape: the one that the result has; at most one dimension of it may be open."""
    target = [extent.value if isinstance(extent, IntImm) else -1 for extent in call.checked_type.shape]
    if target.count(-1) > 1:
        raise ModelError(f"a reshape to {call.checked_type} cannot be written: its shape has to be known")
    return graph.reshape(data, target)


@writes("transpose")
def write_transpose(graph: GraphWriter, call: Any, data: str) -> str:
    """The axes in another order; reversed where none is given."""
    rank = len(call.checked_type.shape)
    axes = [int(axis) % rank for axis in call.attrs.axes or range(rank)[::-1]]
    return graph.node("Transpose", [data], perm=axes)


@writes("squeeze")
def write_squeeze(graph: GraphWriter, call: Any, data: str) -> str:
    """Without dimensions of size one."""
    shape = shape_of(call.args[0])
    axes = call.attrs.axis
    chosen = [axis for axis, size in enumerate(shape) if size == 1] if axes is None else axes
    return graph.squeeze(data, sorted(int(axis) % len(shape) for axis in chosen))


@writes("expand_dims")
def write_expand_dims(graph: GraphWriter, call: Any, data: str) -> str:
    """With new dimensions of size one."""
    rank = len(call.checked_type.shape)
    axis, count = int(call.attrs.axis), int(call.attrs.num_newaxis)
    first = axis if axis >= 0 else axis + rank - count + 1
    return graph.unsqueeze(data, range(first, first + count))


@writes("concatenate")
def write_concatenate(graph: GraphWriter, call: Any, parts: list[str]) -> str:
    """Tensors joined."""
    return graph.node("Concat", parts, axis=int(call.attrs.axis) % len(call.checked_type.shape))


@writes("stack")
def write_stack(graph: GraphWriter, call: Any, parts: list[str]) -> str:
    """Tensors joined along a new axis."""
    axis = int(call.attrs.axis) % len(call.checked_type.shape)
    return graph.node("Concat", [graph.unsqueeze(part, [axis]) for part in parts], axis=axis)


@writes("split")
def write_split(graph: GraphWriter, call: Any, data: str) -> list[str]:
    """A tensor cut into parts."""
    fields = call.checked_type.fields
    axis = int(call.attrs.axis) % len(fields[0].shape)
    sizes = [int(field.concrete_shape[axis]) for field in fields]
    if graph.opset >= 13:
        return graph.nodes_of("Split", [data, graph.integers(sizes)], len(sizes), axis=axis)
    return graph.nodes_of("Split", [data], len(sizes), axis=axis, split=sizes)


@writes("strided_slice")
def write_strided_slice(graph: GraphWriter, call: Any, data: str) -> str:
    """Part of a tensor; bounds that are left out and sizes are brought to begins and ends."""
    shape = shape_of(call.args[0])
    bounds = []
    for axis, (part, size) in enumerate(zip(python_slices(call.attrs, shape), shape, strict=True)):
        begin, end, step = part.indices(size)
        if not range(begin, end, step):
            begin = end = 0
        if (begin, end, step) != (0, size, 1):
            # An end before the first element is written so that it does not count from the back.
            bounds.append((begin, -size - 1 if end < 0 else end, axis, step))
    if not bounds:
        return graph.node("Identity", [data])
    inputs = [graph.integers(values) for values in zip(*bounds, strict=True)]
    return graph.node("Slice", [data, *inputs])


@writes("take")
def write_take(graph: GraphWriter, call: Any, data: str, indices: str) -> str:
    """Elements or slices by index."""
    if call.attrs.batch_dims:
        raise ModelError("take with batch dimensions cannot be written")
    axis = call.attrs.axis
    if axis is None:
        data, axis = graph.reshape(data, [-1]), 0
    if dtype_of(call.args[1]) not in ("int32", "int64"):
        indices = graph.node("Cast", [indices], to=graph.element_type("int64"))
    if not isinstance(call.args[1], Constant) and call.attrs.mode == "clip":
        size = (
            shape_of(call.args[0])[axis]
            if call.attrs.axis is not None
            else int(np.prod(shape_of(call.args[0])))
        )
        kind = "int64" if dtype_of(call.args[1]) not in ("int32", "int64") else dtype_of(call.args[1])
        bounds = [graph.constant(0, kind), graph.constant(size - 1, kind)]
        indices = graph.larger(indices, bounds[0], kind)
        indices = graph.smaller(indices, bounds[1], kind)
    return graph.node("Gather", [data, indices], axis=int(axis))


@writes("gather")
def write_gather(graph: GraphWriter, call: Any, data: str, indices: str) -> str:
    """Elements by index along one axis."""
    return graph.node("GatherElements", [data, indices], axis=int(call.attrs.axis))


@writes("tile")
def write_tile(graph: GraphWriter, call: Any, data: str) -> str:
    """A tensor repeated as a whole."""
    shape, rank = shape_of(call.args[0]), len(call.checked_type.shape)
    reps = [int(item) for item in call.attrs.reps]
    reps = [1] * (rank - len(reps)) + reps
    if len(shape) < rank:
        data = graph.reshape(data, [*[1] * (rank - len(shape)), *shape])
    return graph.node("Tile", [data, graph.integers(reps)])


@writes("repeat")
def write_repeat(graph: GraphWriter, call: Any, data: str) -> str:
    """Every element of an axis several times in a row."""
    shape = list(shape_of(call.args[0]))
    axis = int(call.attrs.axis) % len(shape)
    times = [1] * (len(shape) + 1)
    times[axis + 1] = int(call.attrs.repeats)
    tiled = graph.node("Tile", [graph.unsqueeze(data, [axis + 1]), graph.integers(times)])
    return graph.reshape(tiled, shape_of(call))


@writes("broadcast_to", "broadcast_to_like")
def write_broadcast(graph: GraphWriter, call: Any, data: str, *others: str) -> str:
    """A tensor repeated to a shape."""
    return graph.node("Expand", [data, graph.integers(shape_of(call))])


@writes("full", "full_like")
def write_full(graph: GraphWriter, call: Any, *inputs: str) -> str:
    """One value in a shape."""
    value = inputs[-1] if call.op.name == "full_like" else inputs[0]
    expanded = graph.node("Expand", [value, graph.integers(shape_of(call))])
    return graph.node("Cast", [expanded], to=graph.element_type(dtype_of(call)))


@writes("zeros", "ones", "zeros_like", "ones_like")
def write_filled(graph: GraphWriter, call: Any, *inputs: str) -> str:
    """Zeros or ones."""
    value = graph.onnx.numpy_helper.from_array(np.full(1, call.op.name.startswith("ones"), dtype_of(call)))
    return graph.node("ConstantOfShape", [graph.integers(shape_of(call))], value=value)


@writes("reverse")
def write_reverse(graph: GraphWriter, call: Any, data: str) -> str:
    """An axis from its end."""
    bounds = [graph.integers([value]) for value in (-1, -(2**31), int(call.attrs.axis), -1)]
    return graph.node("Slice", [data, *bounds])


@writes("layout_transform")
def write_layout_transform(graph: GraphWriter, call: Any, data: str) -> str:
    """Another layout."""
    attrs = call.attrs
    return transformed(graph, data, shape_of(call.args[0]), attrs.src_layout, attrs.dst_layout)[0]


@writes("cumsum")
def write_cumsum(graph: GraphWriter, call: Any, data: str) -> str:
    """Sums of all elements so far."""
    axis = call.attrs.axis
    if axis is None:
        data, axis = graph.reshape(data, [-1]), 0
    kind = dtype_of(call)
    if kind != dtype_of(call.args[0]):
        data = graph.node("Cast", [data], to=graph.element_type(kind))
    exclusive = int(bool(call.attrs.exclusive))
    return graph.node("CumSum", [data, graph.constant(int(axis), "int64")], exclusive=exclusive)


@writes("topk")
def write_topk(graph: GraphWriter, call: Any, data: str) -> Any:
    """The largest elements along an axis, and where they are."""
    attrs, shape = call.attrs, shape_of(call.args[0])
    axis = int(attrs.axis) % len(shape)
    count = int(attrs.k) if int(attrs.k) > 0 else shape[axis]
    values, places = graph.nodes_of(
        "TopK", [data, graph.integers([count])], 2, axis=axis, largest=int(not attrs.is_ascend)
    )
    if attrs.ret_type == "values":
        return values
    dtype = attrs.dtype or "int32"
    cast = graph.node("Cast", [places], to=graph.element_type(str(dtype)))
    return cast if attrs.ret_type == "indices" else [values, cast]
