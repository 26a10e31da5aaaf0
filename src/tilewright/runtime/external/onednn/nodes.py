"""How each node of a part becomes a primitive of oneDNN.

A node's ``post`` has what is computed on the result while it is in registers, in order: ``{"kind": "relu"}``,
``{"kind": "clip", "alpha": a, "beta": b}``, ``{"kind": "add", "input": i}`` with a further input of the node. ``bias``
is the number of the input with the bias, ``operands`` are those that are multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import c_void_p
from typing import Any

from tilewright.runtime.external.json_graph import JSONNode
from tilewright.runtime.external.onednn.library import (
    BIAS,
    INFERENCE,
    POST_OPERATION,
    QUERY_RESULT,
    QUERY_SOURCE,
    QUERY_WEIGHTS,
    RESULT,
    SCALE,
    SECOND_SOURCE,
    SHIFT,
    SOURCE,
    WEIGHTS,
)
from tilewright.runtime.external.onednn.program import Program, Tensor, as_dims

ELEMENTWISE = {
    "relu": 0x20,
    "tanh": 0x21,
    "abs": 0x24,
    "sqrt": 0x25,
    "linear": 0x26,
    "sigmoid": 0x29,
    "exp": 0x2A,
    "clip": 0x2E,
    "gelu_erf": 0x31,
}
BINARY = {"add": 0x1FFF0, "multiply": 0x1FFF1, "maximum": 0x1FFF2, "minimum": 0x1FFF3, "subtract": 0x1FFF5}
_DIRECT, _MAXIMUM, _AVERAGE_ALL, _AVERAGE_INSIDE, _SOFTMAX = 1, 0x1FF, 0x2FF, 0x3FF, 0x30000
_SCALE_AND_SHIFT = 2 | 4

Inputs = Sequence[Tensor]


def _post_operations(program: Program, node: JSONNode, inputs: Inputs, dims: Sequence[int]) -> Any:
    """The attribute with a node's post-operations, and the tensors that they read by argument."""
    steps = node.attrs.get("post", [])
    if not steps:
        return None, {}
    dnnl = program.dnnl
    post = program.own("post_ops", dnnl.make("post_ops_create"))
    read: dict[int, Tensor] = {}
    for number, step in enumerate(steps):
        kind = step["kind"]
        if kind in ELEMENTWISE:
            alpha, beta = float(step.get("alpha", 0)), float(step.get("beta", 0))
            dnnl.call("post_ops_append_eltwise", post, ELEMENTWISE[kind], alpha, beta)
            continue
        second = _aligned(program, inputs[step["input"]], dims)
        same = second.dims == tuple(dims)
        layout = program.any(dims) if same else second.layout
        dnnl.call("post_ops_append_binary", post, BINARY[kind], layout)
        read[(number + 1) * POST_OPERATION | SECOND_SOURCE] = second
    attribute = program.own("primitive_attr", dnnl.make("primitive_attr_create"))
    dnnl.call("primitive_attr_set_post_ops", attribute, post)
    return attribute, read


def _aligned(program: Program, tensor: Tensor, dims: Sequence[int]) -> Tensor:
    """A tensor of fewer dimensions as one of as many, as broadcasting does."""
    if len(tensor.dims) == len(dims):
        return tensor
    return _reshaped(program, tensor, (*[1] * (len(dims) - len(tensor.dims)), *tensor.dims))


def _reshaped(program: Program, tensor: Tensor, dims: Sequence[int]) -> Tensor:
    """The same memory in another shape. In another layout than row-major it is reordered first."""
    plain = program.in_layout(tensor, program.plain(tensor.dims))
    layout = program.own(
        "memory_desc",
        program.dnnl.make("memory_desc_reshape", plain.layout, len(dims), as_dims(dims)),
    )
    return Tensor(tuple(dims), layout, plain.memory, None, plain.is_constant)


def _with_post(program: Program, description: c_void_p, read: dict[int, Tensor]) -> dict[int, Tensor]:
    """The tensors of post-operations in the layouts that the primitive chose."""
    return {
        which: program.in_layout(tensor, program.argument_layout(description, which))
        for which, tensor in read.items()
    }


def _operands(node: JSONNode, inputs: Inputs) -> tuple[Tensor, Tensor]:
    """What a convolution or product multiplies; ``operands`` says which inputs, where they are not the first two."""
    first, second = node.attrs.get("operands", (0, 1))
    return inputs[first], inputs[second]


def convolution(program: Program, node: JSONNode, inputs: Inputs) -> Tensor:
    """nn.conv2d of NCHW with weights OIHW, and what follows it."""
    data, weights = _operands(node, inputs)
    attrs, dims = node.attrs, node.shapes[0]
    groups = int(attrs["groups"])
    shape = weights.dims
    if groups > 1:
        shape = (groups, shape[0] // groups, *shape[1:])
        weights = _reshaped(program, weights, shape)
    padding = attrs["padding"]
    bias = inputs[attrs["bias"]] if attrs.get("bias") is not None else None
    if bias is not None:
        bias = _reshaped(program, bias, (dims[1],))
    attribute, read = _post_operations(program, node, inputs, dims)
    description = program.dnnl.make(
        "convolution_forward_primitive_desc_create",
        *(program.dnnl.engine, INFERENCE, _DIRECT, program.any(data.dims), program.any(shape)),
        *(None if bias is None else bias.layout, program.any(dims)),
        *(as_dims(attrs["strides"]), as_dims([one - 1 for one in attrs["dilation"]])),
        *(as_dims(padding[:2]), as_dims(padding[2:]), attribute),
    )
    arguments = {
        SOURCE: program.in_layout(data, program.chosen(description, QUERY_SOURCE)),
        WEIGHTS: program.in_layout(weights, program.chosen(description, QUERY_WEIGHTS)),
        **({} if bias is None else {BIAS: bias}),
        **_with_post(program, description, read),
    }
    return _finished(program, description, arguments, dims)


def _finished(
    program: Program, description: c_void_p, arguments: dict[int, Tensor], dims: Sequence[int]
) -> Tensor:
    result = program.allocated(dims, program.chosen(description, QUERY_RESULT))
    program.add(description, {**arguments, RESULT: result})
    return result


def product(program: Program, node: JSONNode, inputs: Inputs) -> Tensor:
    """nn.dense and nn.batch_matmul, of which ``transpose_a`` and ``transpose_b`` say what is transposed."""
    dims = node.shapes[0]
    first, second = _operands(node, inputs)
    left = _transposed(program, first, bool(node.attrs["transpose_a"]))
    right = _transposed(program, second, bool(node.attrs["transpose_b"]))
    bias = inputs[node.attrs["bias"]] if node.attrs.get("bias") is not None else None
    if bias is not None:
        bias = _reshaped(program, bias, (*[1] * (len(dims) - 1), dims[-1]))
    attribute, read = _post_operations(program, node, inputs, dims)
    packed = program.any(right.dims) if right.is_constant else right.layout
    description = program.dnnl.make(
        "matmul_primitive_desc_create",
        *(program.dnnl.engine, left.layout, packed, None if bias is None else bias.layout),
        *(program.plain(dims), attribute),
    )
    arguments = {
        SOURCE: left,
        WEIGHTS: program.in_layout(right, program.chosen(description, QUERY_WEIGHTS)),
        **({} if bias is None else {BIAS: bias}),
        **_with_post(program, description, read),
    }
    return _finished(program, description, arguments, dims)


def _transposed(program: Program, tensor: Tensor, swap: bool) -> Tensor:
    """The last two dimensions exchanged, in the same memory."""
    plain = program.in_layout(tensor, program.plain(tensor.dims))
    if not swap:
        return plain
    *outer, rows, columns = tensor.dims
    strides = [rows * columns] * len(outer)
    layout = program.strided((*outer, columns, rows), (*strides, 1, columns))
    return Tensor((*outer, columns, rows), layout, plain.memory, None, plain.is_constant)


def pooling(program: Program, node: JSONNode, inputs: Inputs) -> Tensor:
    """Maxima and averages of windows; a window may be the whole image."""
    (data,), attrs, dims = inputs[:1], node.attrs, node.shapes[0]
    window, strides = attrs["pool_size"], attrs["strides"]
    padding = attrs["padding"]
    algorithm = _MAXIMUM
    if attrs["kind"] == "avg":
        algorithm = _AVERAGE_ALL if attrs["count_include_pad"] else _AVERAGE_INSIDE
    # Where the size is rounded up, the last window reaches further than the padding says.
    reached = [(dims[2 + axis] - 1) * strides[axis] + window[axis] - padding[axis] for axis in range(2)]
    after = [max(int(padding[2 + axis]), reached[axis] - data.dims[2 + axis]) for axis in range(2)]
    description = program.dnnl.make(
        "pooling_forward_primitive_desc_create",
        *(program.dnnl.engine, INFERENCE, algorithm, data.layout, program.any(dims)),
        *(as_dims(strides), as_dims(window), as_dims([0, 0])),
        *(as_dims(padding[:2]), as_dims(after), None),
    )
    return _finished(program, description, {SOURCE: data}, dims)


def softmax(program: Program, node: JSONNode, inputs: Inputs) -> Tensor:
    """Softmax along one axis."""
    dims = node.shapes[0]
    description = program.dnnl.make(
        "softmax_forward_primitive_desc_create",
        *(program.dnnl.engine, INFERENCE, _SOFTMAX, inputs[0].layout, program.any(dims)),
        *(int(node.attrs["axis"]) % len(dims), None),
    )
    return _finished(program, description, {SOURCE: inputs[0]}, dims)


def elementwise(program: Program, node: JSONNode, inputs: Inputs) -> Tensor:
    """A function of each element."""
    step = node.attrs
    description = program.dnnl.make(
        "eltwise_forward_primitive_desc_create",
        *(program.dnnl.engine, INFERENCE, ELEMENTWISE[step["kind"]], inputs[0].layout, inputs[0].layout),
        *(float(step.get("alpha", 0)), float(step.get("beta", 0)), None),
    )
    return _finished(program, description, {SOURCE: inputs[0]}, node.shapes[0])


def binary(program: Program, node: JSONNode, inputs: Inputs) -> Tensor:
    """A function of two elements; either side may be broadcast."""
    dims = node.shapes[0]
    first, second = (_aligned(program, one, dims) for one in inputs)
    if first.dims != tuple(dims):  # only the second may be broadcast
        first, second = second, first
    if second.dims == tuple(dims):
        second = program.in_layout(second, first.layout)
    description = program.dnnl.make(
        "binary_primitive_desc_create",
        *(program.dnnl.engine, BINARY[node.attrs["kind"]], first.layout, second.layout, first.layout, None),
    )
    return _finished(program, description, {SOURCE: first, SECOND_SOURCE: second}, dims)


def layer_norm(program: Program, node: JSONNode, inputs: Inputs) -> Tensor:
    """nn.layer_norm of the last axis, with scale and shift."""
    dims = node.shapes[0]
    data = program.in_layout(inputs[0], program.plain(dims))
    description = program.dnnl.make(
        "layer_normalization_forward_primitive_desc_create",
        *(program.dnnl.engine, INFERENCE, data.layout, data.layout, None),
        *(float(node.attrs["epsilon"]), _SCALE_AND_SHIFT, None),
    )
    return _finished(program, description, {SOURCE: data, SCALE: inputs[1], SHIFT: inputs[2]}, dims)


def view(program: Program, node: JSONNode, inputs: Inputs) -> Tensor:
    """Another shape of the same elements."""
    return _reshaped(program, inputs[0], node.shapes[0])


MAKERS: dict[str, Callable[[Program, JSONNode, Inputs], Tensor]] = {
    "conv2d": convolution,
    "product": product,
    "pool2d": pooling,
    "softmax": softmax,
    "elementwise": elementwise,
    "binary": binary,
    "layer_norm": layer_norm,
    "view": view,
}
