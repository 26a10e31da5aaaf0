"""Convolutions and transposed convolutions over one to three axes."""

from __future__ import annotations

from typing import Any, Final

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.registry import converter

DATA_LAYOUTS: Final = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
KERNEL_LAYOUTS: Final = {1: "OIW", 2: "OIHW", 3: "OIDHW"}
# The letters of a transposed kernel: the data's channels come first, whatever they are called.
_TRANSPOSED_LAYOUTS: Final = {1: "OIW", 2: "IOHW", 3: "OIDHW"}
_PLAIN: Final = {1: relay.nn.conv1d, 2: relay.nn.conv2d, 3: relay.nn.conv3d}
_TRANSPOSED: Final = {
    1: relay.nn.conv1d_transpose,
    2: relay.nn.conv2d_transpose,
    3: relay.nn.conv3d_transpose,
}


@converter("aten::convolution", "aten::_convolution", "aten::convolution_overrideable")
def convolution(
    node: TorchNode,
    input: Expr,
    weight: Expr,
    bias: Expr | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    benchmark: bool = False,
    deterministic: bool = False,
    cudnn_enabled: bool = True,
    allow_tf32: bool = True,
) -> Expr:
    """Either kind, over as many axes as the weight has."""
    rank = node.rank(weight) - 2
    if rank not in _PLAIN:
        raise node.fail(f"convolutions over {rank} axes are not supported")
    # A batch may be missing.
    single = node.rank(input) == rank + 1
    data = relay.expand_dims(input, 0) if single else input
    kernel = node.static_shape(weight, "the weight")
    settings: dict[str, Any] = {
        "strides": node.spread(stride, rank, "stride"),
        "padding": node.spread(padding, rank, "padding"),
        "dilation": node.spread(dilation, rank, "dilation"),
        "groups": int(node.number_of(groups, "groups")),
        "kernel_size": kernel[2:],
        "data_layout": DATA_LAYOUTS[rank],
    }
    if transposed:
        made = _TRANSPOSED[rank](
            data,
            weight,
            channels=kernel[1] * settings["groups"],
            kernel_layout=_TRANSPOSED_LAYOUTS[rank],
            output_padding=node.spread(output_padding, rank, "output_padding"),
            **settings,
        )
    else:
        made = _PLAIN[rank](data, weight, channels=kernel[0], kernel_layout=KERNEL_LAYOUTS[rank], **settings)
    if bias is not None:
        made = relay.nn.bias_add(made, bias, axis=1)
    return relay.squeeze(made, axis=[0]) if single else made


@converter("aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::_convolution_mode")
def conv(
    node: TorchNode,
    input: Expr,
    weight: Expr,
    bias: Expr | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Expr:
    """A convolution; the padding is numbers, "valid", or "same", which adds the odd element after the data."""
    if not isinstance(padding, str):
        return convolution(node, input, weight, bias, stride, padding, dilation, False, 0, groups)
    rank = node.rank(weight) - 2
    if padding == "same":
        kernel = node.static_shape(weight, "the weight")[2:]
        spans = [
            (size - 1) * step
            for size, step in zip(kernel, node.spread(dilation, rank, "dilation"), strict=True)
        ]
        if any(span % 2 for span in spans):
            outer = node.rank(input) - rank
            widths = [(0, 0)] * outer + [(span // 2, span - span // 2) for span in spans]
            input, spans = relay.nn.pad(input, widths, 0), [0] * rank
        return convolution(
            node, input, weight, bias, stride, [span // 2 for span in spans], dilation, False, 0, groups
        )
    return convolution(node, input, weight, bias, stride, 0, dilation, False, 0, groups)


@converter("aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d")
def conv_transpose(
    node: TorchNode,
    input: Expr,
    weight: Expr,
    bias: Expr | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Expr:
    """A transposed convolution."""
    return convolution(node, input, weight, bias, stride, padding, dilation, True, output_padding, groups)


@converter("aten::conv_tbc")
def conv_tbc(node: TorchNode, input: Expr, weight: Expr, bias: Expr, pad: int = 0) -> Expr:
    """A convolution over time, which is the first axis; the channels are the last."""
    made = convolution(
        node,
        relay.transpose(input, (1, 2, 0)),
        relay.transpose(weight, (2, 1, 0)),
        bias, 1, pad, 1, False, 0, 1,
    )  # fmt: skip
    return relay.transpose(made, (2, 0, 1))
