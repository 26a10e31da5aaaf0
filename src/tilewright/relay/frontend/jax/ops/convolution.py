"""Convolutions, in any order of dimensions."""

from __future__ import annotations

from typing import Final

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.jax.node import JaxNode
from tilewright.relay.frontend.jax.ops.elementwise import converted
from tilewright.relay.frontend.jax.ops.shape import permuted, reshaped
from tilewright.relay.frontend.jax.ops.slicing import padded
from tilewright.relay.frontend.jax.package import bindings
from tilewright.relay.frontend.jax.registry import converter

_CONVOLUTIONS: Final = {1: relay.nn.conv1d, 2: relay.nn.conv2d, 3: relay.nn.conv3d}
_SPACE: Final = {1: "W", 2: "HW", 3: "DHW"}


@converter("convolution")
def convolution(node: JaxNode, data: Expr, weight: Expr) -> Expr:
    """A convolution. Images of two dimensions whose channels come last stay so; other orders become channels first."""
    numbers = bindings().stablehlo.ConvDimensionNumbers(node.operation.attributes["dimension_numbers"])
    space = list(numbers.input_spatial_dimensions)
    rank = len(space)
    if int(node.attr("batch_group_count", 1)) != 1:
        raise node.fail(
            "groups of the batch, which gradients of grouped convolutions have, are not supported"
        )
    if rank not in _CONVOLUTIONS:
        raise node.fail(f"convolutions over {rank} dimensions are not supported")
    ones = [1] * rank
    groups = int(node.attr("feature_group_count", 1))
    pads = node.list_attr("padding", [0] * (2 * rank))
    spread = node.list_attr("lhs_dilation", ones)
    before, after = pads[::2], pads[1::2]
    for axis, turned in zip(
        numbers.kernel_spatial_dimensions, node.list_attr("window_reversal", [0] * rank), strict=True
    ):
        weight = relay.reverse(weight, axis) if turned else weight
    last = rank == 2 and groups == 1 and numbers.input_feature_dimension == rank + 1
    batch, feature = numbers.input_batch_dimension, numbers.input_feature_dimension
    data = permuted(node, data, [batch, *space, feature] if last else [batch, feature, *space])
    inner, outer = numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension
    kernel_space = list(numbers.kernel_spatial_dimensions)
    weight = permuted(node, weight, [*kernel_space, inner, outer] if last else [outer, inner, *kernel_space])
    if spread != ones or min(pads, default=0) < 0:
        around = ([0], [0]) if last else ([0, 0], [])

        def placed(values: list[int]) -> list[int]:
            return [*around[0], *values, *around[1]]

        gaps = placed([step - 1 for step in spread])
        data = padded(node, data, node.constant(0, data), placed(before), placed(after), gaps)
        before, after = [0] * rank, [0] * rank
    dtype = node.result_dtype()
    axes = _SPACE[rank]
    shape = node.static_shape(weight)
    made = _CONVOLUTIONS[rank](
        converted(node, data, dtype),
        converted(node, weight, dtype),
        strides=node.list_attr("window_strides", ones),
        padding=[*before, *after],
        dilation=node.list_attr("rhs_dilation", ones),
        groups=groups,
        channels=shape[-1] if last else shape[0],
        kernel_size=list(shape[:rank] if last else shape[2:]),
        data_layout=f"N{axes}C" if last else f"NC{axes}",
        kernel_layout=f"{axes}IO" if last else f"OI{axes}",
    )
    ours = [0, rank + 1, *range(1, rank + 1)] if last else list(range(rank + 2))
    # Where batch, channels and space of the result are now, and where they should be.
    theirs = [
        numbers.output_batch_dimension,
        numbers.output_feature_dimension,
        *numbers.output_spatial_dimensions,
    ]
    order = [ours[theirs.index(place)] for place in range(rank + 2)]
    return reshaped(node, permuted(node, made, order), node.result_shape())
