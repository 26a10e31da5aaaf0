"""Dense layers, convolutions, embeddings."""

from __future__ import annotations

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.keras.node import LayerNode
from tilewright.relay.frontend.keras.ops.activations import activated
from tilewright.relay.frontend.keras.registry import layer_converter
from tilewright.relay.frontend.tensorflow.ops.convolution import (
    convolved,
    depthwise_conv2d,
    transposed,
    transposed_window,
)
from tilewright.relay.frontend.tensorflow.ops.matrices import products
from tilewright.relay.frontend.tensorflow.ops.windows import axes_of_space, window_of


def _finished(node: LayerNode, made: Expr, axis: int) -> Expr:
    bias = node.weight("bias") if getattr(node.layer, "use_bias", True) else None
    if bias is not None:
        made = relay.nn.bias_add(made, bias, axis=axis % node.rank(made))
    return activated(node, made, node.layer.activation)


@layer_converter("Dense")
def dense(node: LayerNode, data: Expr) -> Expr:
    """The product of rows and a kernel, with a bias and an activation."""
    return _finished(node, products(node, data, node.required("kernel"), False, False), -1)


@layer_converter("EinsumDense")
def einsum_dense(node: LayerNode, data: Expr) -> Expr:
    """A product by an equation, with a bias and an activation."""
    equation = str(node.layer.equation).replace("...", "")
    made = relay.einsum([data, node.required("kernel")], equation)
    bias = node.weight("bias")
    return activated(node, made if bias is None else relay.add(made, bias), node.layer.activation)


@layer_converter("Conv1D", "Conv2D", "Conv3D")
def convolution(node: LayerNode, data: Expr) -> Expr:
    """A convolution, with a bias and an activation."""
    layer = node.layer
    layout = node.layout_of(int(layer.rank))
    kernel = node.required("kernel")
    size = node.static_shape(kernel)[:-2]
    if layer.padding == "causal":
        reach = (size[0] - 1) * int(layer.dilation_rate[0])
        data = relay.nn.pad(
            data, [(reach, 0) if letter == "W" else (0, 0) for letter in layout], node.constant(0, data)
        )
    node.with_window(layout, layer.strides, layer.dilation_rate, layer.padding)
    made = convolved(node, data, kernel, window_of(node, data, layout, size), layout)
    return _finished(node, made, layout.index("C"))


@layer_converter("DepthwiseConv2D")
def depthwise(node: LayerNode, data: Expr) -> Expr:
    """A convolution of each channel by kernels of its own."""
    layer = node.layer
    layout = node.layout_of(2)
    node.with_window(layout, layer.strides, layer.dilation_rate, layer.padding)
    return _finished(node, depthwise_conv2d(node, data, node.required("kernel")), layout.index("C"))


@layer_converter("SeparableConv2D")
def separable(node: LayerNode, data: Expr) -> Expr:
    """A convolution of each channel, and one of single pixels."""
    layer = node.layer
    layout = node.layout_of(2)
    node.with_window(layout, layer.strides, layer.dilation_rate, layer.padding)
    inner = depthwise_conv2d(node, data, node.required("depthwise_kernel"))
    kernel = node.required("pointwise_kernel")
    node.with_window(layout, 1)
    made = convolved(node, inner, kernel, window_of(node, inner, layout, (1, 1)), layout)
    return _finished(node, made, layout.index("C"))


@layer_converter("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose")
def convolution_transpose(node: LayerNode, data: Expr) -> Expr:
    """A transposed convolution, with a bias and an activation."""
    layer = node.layer
    layout = node.layout_of(int(layer.rank))
    kernel = node.required("kernel")
    node.with_window(layout, layer.strides, layer.dilation_rate, layer.padding)
    size = node.static_shape(kernel)[:-2]
    shape = layer.compute_output_shape([None if one is None else int(one) for one in node.shape(data)])
    wanted = tuple(int(shape[axis]) for axis in axes_of_space(layout))
    if layer.output_padding is not None:
        raise node.fail("output_padding is not supported")
    window, more = transposed_window(node, data, layout, size, wanted)
    return _finished(node, transposed(node, data, kernel, window, more, layout), layout.index("C"))


@layer_converter("Embedding")
def embedding(node: LayerNode, data: Expr) -> Expr:
    """Rows of a table."""
    table = node.stored("embeddings", node.layer.embeddings)
    indices = data if node.dtype(data).startswith(("int", "uint")) else relay.cast(data, "int32")
    return relay.take(table, indices, axis=0)
