"""Depthwise convolution: each channel with kernels of its own; and its gradients."""

from __future__ import annotations

from typing import Any

from tilewright import te
from tilewright.target import generic_func
from tilewright.te import Tensor
from tilewright.topi.nn.blocked_layouts import layouts_of_configuration
from tilewright.topi.nn.convolution import depthwise, require_equal, slide
from tilewright.topi.nn.dilate import dilate
from tilewright.topi.nn.pad import pad_spatial
from tilewright.topi.nn.utils import as_type, pad_amounts, per_axis, sum_types
from tilewright.topi.utils import InvalidShapeError, get_const_int, get_const_tuple, simplify


def depthwise_conv2d_nchw(
    Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: str | None = None
) -> Tensor:
    """NCHW with a kernel (channels, multiplier, height, width); channel ``c`` gives those from ``c * multiplier``."""
    return depthwise(
        Input,
        Filter,
        stride,
        padding,
        dilation,
        "NCHW",
        "IOHW",
        out_dtype,
        "DepthwiseConv2d",
        "depthwise_conv2d_nchw",
    )


def depthwise_conv2d_nhwc(
    Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: str | None = None
) -> Tensor:
    """NHWC with a kernel (height, width, channels, multiplier); channel ``c`` gives those from ``c * multiplier``."""
    return depthwise(
        Input,
        Filter,
        stride,
        padding,
        dilation,
        "NHWC",
        "HWIO",
        out_dtype,
        "DepthwiseConv2d",
        "depthwise_conv2d_nhwc",
    )


def depthwise_conv2d_NCHWc(
    Input: Tensor,
    Filter: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    layout: str,
    out_layout: str,
    out_dtype: str | None = None,
) -> Tensor:
    """Channels in blocks: data (batch, blocks, height, width, block), kernel (blocks, 1, height, width, 1, block).

    The blocks of the kernel hold the output channels, ``multiplier`` for each input channel.
    """
    if len(Input.shape) != 5 or len(Filter.shape) != 6:
        raise InvalidShapeError(
            "depthwise_conv2d_NCHWc takes data of 5 dimensions and a kernel of 6, "
            f"not {len(Input.shape)} and {len(Filter.shape)}"
        )
    windows = slide(Input, layout, get_const_tuple(Filter.shape[2:4]), stride, padding, dilation)
    in_block, out_block = get_const_int(Input.shape[4]), get_const_int(Filter.shape[5])
    in_channels, out_channels = simplify(Input.shape[1] * in_block), simplify(Filter.shape[0] * out_block)
    (multiplier,) = get_const_tuple([simplify(out_channels // in_channels)])
    require_equal(out_channels, in_channels * multiplier, "channels of the output of depthwise_conv2d_NCHWc")
    same = in_block == out_block and isinstance(multiplier, int) and multiplier == 1
    inner, result = sum_types(Input.dtype, out_dtype)
    ry = te.reduce_axis((0, Filter.shape[2]), name="kh")
    rx = te.reduce_axis((0, Filter.shape[3]), name="kw")

    def element(n: Any, c: Any, h: Any, w: Any, b: Any) -> Any:
        channel = (c * out_block + b) // multiplier
        block, lane = (c, b) if same else (channel // in_block, channel % in_block)
        value = windows.data(n, block, windows.read_at("H", h, ry.var), windows.read_at("W", w, rx.var), lane)
        return te.sum(value.astype(inner) * Filter(c, 0, ry, rx, 0, b).astype(inner), axis=[ry, rx])

    made: Tensor = te.compute(
        (Input.shape[0], Filter.shape[0], *windows.extents, out_block),
        element,
        name="DepthwiseConv2d",
        tag="depthwise_conv2d_NCHWc",
        attrs={"layout_free_placeholders": [Filter]},
    )
    return as_type(made, result)


def depthwise_conv2d_backward_input_nhwc(
    Filter: Tensor, Out_grad: Tensor, oshape: Any, ishape: Any, stride: Any, padding: Any
) -> Tensor:
    """The gradient by the input of ``depthwise_conv2d_nhwc``, from the gradient by its output."""
    batch, in_height, in_width, channels = ishape
    filter_height, filter_width, _, multiplier = get_const_tuple(Filter.shape)
    strides = per_axis(stride, 2, "stride")
    before, _ = pad_amounts(padding, (filter_height, filter_width))
    spread = dilate(Out_grad, [1, *strides, 1], name="dilated_out_grad")
    extents = (filter_height, filter_width)
    first = [extent - 1 - amount for extent, amount in zip(extents, before, strict=True)]
    # Every position that a kernel may have touched is covered, so that the input's extent is met exactly.
    last = [
        simplify(size + extent - 1 - spread.shape[axis] - amount)
        for axis, size, extent, amount in zip((1, 2), (in_height, in_width), extents, first, strict=True)
    ]
    padded = pad_spatial(
        spread, [1, 2], get_const_tuple(first), get_const_tuple(last), name="padded_out_grad"
    )
    dm = te.reduce_axis((0, multiplier), name="dm")
    dh = te.reduce_axis((0, filter_height), name="dh")
    dw = te.reduce_axis((0, filter_width), name="dw")

    def element(n: Any, h: Any, w: Any, c: Any) -> Any:
        weight = Filter(filter_height - 1 - dh.var, filter_width - 1 - dw.var, c, dm)
        return te.sum(padded(n, h + dh.var, w + dw.var, c * multiplier + dm.var) * weight, axis=[dh, dw, dm])

    made: Tensor = te.compute(
        (batch, in_height, in_width, channels), element, tag="depthwise_conv2d_backward_input_nhwc"
    )
    return made


def depthwise_conv2d_backward_weight_nhwc(
    Input: Tensor, Out_grad: Tensor, oshape: Any, fshape: Any, stride: Any, padding: Any
) -> Tensor:
    """The gradient by the kernel of ``depthwise_conv2d_nhwc``, from the gradient by its output."""
    batch, out_height, out_width, _ = oshape
    filter_height, filter_width, channels, multiplier = get_const_tuple(fshape)
    strides = per_axis(stride, 2, "stride")
    before, after = pad_amounts(padding, (filter_height, filter_width))
    padded = pad_spatial(Input, [1, 2], before, after, name="padded_in")
    dh = te.reduce_axis((0, out_height), name="dh")
    dw = te.reduce_axis((0, out_width), name="dw")
    db = te.reduce_axis((0, batch), name="db")

    def element(fh: Any, fw: Any, c: Any, m: Any) -> Any:
        value = padded(db, fh + dh.var * strides[0], fw + dw.var * strides[1], c)
        return te.sum(Out_grad(db, dh, dw, c * multiplier + m) * value, axis=[db, dh, dw])

    made: Tensor = te.compute(
        (filter_height, filter_width, channels, multiplier),
        element,
        tag="depthwise_conv2d_backward_weight_nhwc",
    )
    return made


@generic_func
def depthwise_conv2d_infer_layout(workload: Any, cfg: Any) -> Any:
    """The shapes and layouts of inputs and of outputs that a configuration with channels in blocks leads to."""
    return layouts_of_configuration(workload, cfg)
