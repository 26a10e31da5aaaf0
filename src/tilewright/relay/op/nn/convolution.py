"""Convolutions over one, two and three axes, and their transposes.

With ``groups`` the channels are divided into that many groups, each with its own kernels. A weight whose output
channels equal the data's channels and the groups is that of a depthwise convolution: its I is then the number of
kernels per channel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.relay.expr import Call
from tilewright.relay.op.calls import call, tensor_type
from tilewright.relay.op.definition import OpPattern, define
from tilewright.relay.op.nn.convolution_attributes import (
    Conv1DAttrs,
    Conv1DTransposeAttrs,
    Conv2DAttrs,
    Conv2DTransposeAttrs,
    Conv3DAttrs,
    Conv3DTransposeAttrs,
)
from tilewright.relay.op.nn.convolution_rules import (
    convolution_completion,
    convolution_layouts,
    convolution_relation,
    is_multiplied,
    kernel_axes,
    out_layout,
    preferred_kernel_layout,
    reference_convolution,
    reference_transposed,
    transposed_completion,
    transposed_relation,
)
from tilewright.relay.op.nn.layout_conversion import converted, whole_extents
from tilewright.relay.op.nn.windows import pad_tuple, per_axis, slid_extents, transposed_extents
from tilewright.relay.op.op import register_convert_op_layout
from tilewright.relay.op.shapes import Shape
from tilewright.te.tensor import Tensor
from tilewright.tir.data_layout import Layout
from tilewright.topi.nn.convolution import conv, conv_transpose, depthwise
from tilewright.topi.utils import get_const_tuple


def _unblocked(layout: str) -> str:
    """The layout without the parts of its axes."""
    return "".join(Layout(layout).primal_axes())


def compute_convolution(space: str) -> Callable[..., list[Tensor]]:
    """The computation of a convolution in any layouts."""
    rank = len(space)

    def compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
        data_layout, kernel_layout = _unblocked(attrs.data_layout), _unblocked(attrs.kernel_layout)
        data = converted(inputs[0], attrs.data_layout, data_layout)
        weight = converted(inputs[1], attrs.kernel_layout, kernel_layout)
        window = (attrs.strides, attrs.padding, attrs.dilation)
        channels, outputs = get_const_tuple(
            (data.shape[data_layout.index("C")], weight.shape[kernel_layout.index("O")])
        )
        suffix = f"conv{rank}d_{data_layout.lower()}"
        if is_multiplied(attrs.groups, channels, outputs):
            # The library calls the channel I and which of its kernels O.
            swapped = kernel_layout.translate(str.maketrans("IO", "OI"))
            tag = f"depthwise_{suffix}"
            made = depthwise(
                data, weight, *window, data_layout, swapped, attrs.out_dtype or None, "DepthwiseConv2d", tag
            )
        else:
            tag = suffix if attrs.groups == 1 else f"group_{suffix}"
            made = conv(
                data,
                weight,
                *window,
                attrs.groups,
                data_layout,
                kernel_layout,
                attrs.out_dtype or None,
                tag,
                tag,
            )
        return [converted(made, data_layout, out_layout(attrs))]

    return compute


def compute_transposed(space: str, incoming: str) -> Callable[..., list[Tensor]]:
    """The computation of a transposed convolution in any layouts."""

    def compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
        plain = f"NC{space}"
        tag = f"conv{len(space)}d_transpose_{plain.lower()}"
        tag = tag if attrs.groups == 1 else f"group_{tag}"
        made = conv_transpose(
            converted(inputs[0], attrs.data_layout, plain),
            converted(inputs[1], attrs.kernel_layout, kernel_axes(space, incoming)),
            attrs.strides,
            attrs.padding,
            attrs.output_padding,
            attrs.out_dtype or None,
            attrs.groups,
            attrs.dilation,
            tag,
            tag,
        )
        return [converted(made, plain, out_layout(attrs))]

    return compute


def _layout_changed(expression: RelayExpr, source: str, destination: str) -> RelayExpr:
    if source == destination:
        return expression
    return call("layout_transform", expression, src_layout=source, dst_layout=destination)


def convolution_gradient(space: str) -> Callable[[Any, Any], list[RelayExpr]]:
    """The gradient by the data is the transposed convolution of the result's gradient; that by the weight is the
    convolution of the data with the result's gradient, where batch and channels change places."""
    rank, plain, weights = len(space), f"NC{space}", f"OI{space}"
    name = f"nn.conv{rank}d"
    transposed_layout = "IOHW" if rank == 2 else weights

    def gradient(orig: Any, grad: RelayExpr) -> list[RelayExpr]:
        attrs = orig.attrs
        data_shape = _whole(orig.args[0], attrs.data_layout, plain)
        weight_shape = _whole(orig.args[1], attrs.kernel_layout, weights)
        out_shape = _whole(orig, out_layout(attrs), plain)
        data = _layout_changed(orig.args[0], attrs.data_layout, plain)
        weight = _layout_changed(orig.args[1], attrs.kernel_layout, weights)
        grad = _layout_changed(grad, out_layout(attrs), plain)
        dtype = tensor_type(orig.args[0]).dtype
        if tensor_type(orig).dtype is not dtype:
            grad = call("cast", grad, dtype=str(dtype))
        full_shape = weight_shape
        if is_multiplied(attrs.groups, data_shape[1], weight_shape[0]):
            full_shape = (out_shape[1], 1, *weight_shape[2:])
            weight = call("reshape", weight, newshape=full_shape)
        window = _Window(space, attrs, data_shape, full_shape, out_shape)
        by_data = call(
            f"{name}_transpose",
            grad,
            weight,
            channels=data_shape[1],
            kernel_size=full_shape[2:],
            strides=window.strides,
            padding=window.padding,
            output_padding=window.left_over(),
            dilation=window.dilation,
            groups=attrs.groups,
            data_layout=plain,
            kernel_layout=transposed_layout,
        )
        by_weight: RelayExpr = window.by_weight(name, data, grad)
        if full_shape != weight_shape:
            by_weight = call("reshape", by_weight, newshape=weight_shape)
        return [
            _layout_changed(by_data, plain, attrs.data_layout),
            _layout_changed(by_weight, weights, attrs.kernel_layout),
        ]

    return gradient


def _whole(expression: Any, layout: str, axes: str) -> tuple[int, ...]:
    found: Shape = whole_extents(tensor_type(expression).concrete_shape, layout, axes, "the tensor")
    return found  # type: ignore[return-value]


class _Window:
    """A convolution of constant shapes, of which a gradient is made."""

    def __init__(
        self,
        space: str,
        attrs: Any,
        data: tuple[int, ...],
        weight: tuple[int, ...],
        out: tuple[int, ...],
    ) -> None:
        self.rank = len(space)
        self.space = space
        self.strides = per_axis(attrs.strides, self.rank, "strides")
        self.dilation = per_axis(attrs.dilation, self.rank, "dilation")
        self.padding = pad_tuple(attrs.padding, self.rank)
        self.groups = attrs.groups
        self.data, self.weight, self.out = data, weight, out

    def left_over(self) -> tuple[int, ...]:
        """The elements that the last step of the kernel did not reach, per axis."""
        reached: Any = transposed_extents(
            self.out[2:], self.weight[2:], self.strides, self.padding, self.dilation, (0,) * self.rank
        )
        return tuple(given - got for given, got in zip(self.data[2:], reached, strict=True))

    def by_weight(self, name: str, data: RelayExpr, grad: RelayExpr) -> RelayExpr:
        """The gradient by the weight: strides and dilation change places too."""
        batch, channels = self.data[:2]
        per_group = channels // self.groups
        swap = (1, 0, *range(2, self.rank + 2))
        if self.groups == 1:
            images: RelayExpr = call("transpose", data, axes=swap)
        else:
            split = call("reshape", data, newshape=(batch, self.groups, per_group, *self.data[2:]))
            turned = call("transpose", split, axes=(2, 1, 0, *range(3, self.rank + 3)))
            images = call("reshape", turned, newshape=(per_group, self.groups * batch, *self.data[2:]))
        made: RelayExpr = call(
            name,
            images,
            call("transpose", grad, axes=swap),
            channels=self.out[1],
            kernel_size=self.out[2:],
            strides=self.dilation,
            padding=self.padding,
            dilation=self.strides,
            groups=self.groups,
            data_layout=f"NC{self.space}",
            kernel_layout=f"OI{self.space}",
        )
        turned = call("transpose", made, axes=swap)
        extents = slid_extents(self.data[2:], self.out[2:], self.dilation, self.padding, self.strides)
        if extents == self.weight[2:]:
            return turned
        # Where the kernel's last step did not reach the end, there are places that no tap of it ever had.
        return call(
            "strided_slice",
            turned,
            begin=(0,) * (self.rank + 2),
            end=self.weight,
            strides=(1,) * (self.rank + 2),
        )


def _define_convolution(space: str, attrs: type[Any]) -> Op:
    return define(
        f"nn.conv{len(space)}d",
        arguments=("data", "weight"),
        attrs=attrs,
        relation=convolution_relation(space),
        completion=convolution_completion(space),
        compute=compute_convolution(space),
        reference=reference_convolution(space),
        gradient=convolution_gradient(space),
        layout=convolution_layouts,
        kind=OpPattern.OUT_ELEMWISE_FUSABLE,
        level=2,
        description=f"Convolution over {len(space)} axes.",
    )


def _define_transposed(space: str, attrs: type[Any], incoming: str) -> Op:
    return define(
        f"nn.conv{len(space)}d_transpose",
        arguments=("data", "weight"),
        attrs=attrs,
        relation=transposed_relation(space, incoming),
        completion=transposed_completion(space, incoming),
        compute=compute_transposed(space, incoming),
        reference=reference_transposed(space, incoming),
        layout=convolution_layouts,
        kind=OpPattern.OUT_ELEMWISE_FUSABLE,
        level=2,
        description=f"Transposed convolution over {len(space)} axes.",
    )


CONV1D = _define_convolution("W", Conv1DAttrs)
CONV2D = _define_convolution("HW", Conv2DAttrs)
CONV3D = _define_convolution("DHW", Conv3DAttrs)
CONV1D_TRANSPOSE = _define_transposed("W", Conv1DTransposeAttrs, "O")
CONV2D_TRANSPOSE = _define_transposed("HW", Conv2DTransposeAttrs, "I")
CONV3D_TRANSPOSE = _define_transposed("DHW", Conv3DTransposeAttrs, "O")


def converts_layout(op: Op, transposed_weight: bool = False, weight: int = -1) -> None:
    """Let ConvertLayout change the layouts of data and weight; "default" stands for the order that goes with the
    data's. ``weight`` is the place of the weight among the arguments."""

    def convert(
        attrs: Any, inputs: Sequence[RelayExpr], tinfos: Sequence[Any], desired_layouts: Sequence[str]
    ) -> RelayExpr:
        data_layout = str(desired_layouts[0])
        kernel_layout = str(desired_layouts[1]) if len(desired_layouts) > 1 else "default"
        if data_layout == "default":
            data_layout = attrs.data_layout
        if kernel_layout == "default":
            axes = "".join(Layout(attrs.data_layout).primal_axes())
            given = whole_extents(get_const_tuple(tinfos[0].shape), attrs.data_layout, axes, "the data")
            letters = "".join(Layout(attrs.kernel_layout).primal_axes())
            kernel = whole_extents(
                get_const_tuple(tinfos[weight].shape), attrs.kernel_layout, letters, "the weight"
            )
            single = is_multiplied(attrs.groups, given[axes.index("C")], kernel[letters.index("O")])
            order = "IO" if transposed_weight else "OI"
            kernel_layout = preferred_kernel_layout(data_layout, single and not transposed_weight, *order)
        changes = {"data_layout": data_layout, "kernel_layout": kernel_layout}
        if attrs.out_layout == attrs.data_layout:
            changes["out_layout"] = data_layout
        return Call(op, inputs, attrs.replace(**changes))

    register_convert_op_layout(op.name, convert)


for _op in (CONV1D, CONV2D, CONV3D, CONV1D_TRANSPOSE, CONV3D_TRANSPOSE):
    converts_layout(_op)
converts_layout(CONV2D_TRANSPOSE, transposed_weight=True)


def spatial_attributes(
    rank: int, strides: Any, padding: Any, dilation: Any, channels: Any, kernel_size: Any
) -> dict[str, Any]:
    """The attributes of a window over ``rank`` axes, one value an axis; padding for both sides."""
    return {
        "strides": per_axis(strides, rank, "strides"),
        "padding": pad_tuple(padding, rank),
        "dilation": per_axis(dilation, rank, "dilation"),
        "channels": channels,
        "kernel_size": None if kernel_size is None else per_axis(kernel_size, rank, "kernel_size"),
    }


def conv1d(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Any = None,
    data_layout: str = "NCW",
    kernel_layout: str = "OIW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """The convolution of ``data`` with ``weight`` over W; the kernel is not turned around.

    ``padding`` is one number, one for each axis, or all before and then all after the axes. ``channels`` and
    ``kernel_size`` tell the weight's shape where its type does not.
    """
    attrs = Conv1DAttrs(
        **spatial_attributes(1, strides, padding, dilation, channels, kernel_size),
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
    return Call(CONV1D, (data, weight), attrs)


def conv2d(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Any = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """The convolution of ``data`` with ``weight`` over HW; the kernel is not turned around.

    ``padding`` is one number, one for each axis, or all before and then all after the axes. ``channels`` and
    ``kernel_size`` tell the weight's shape where its type does not.
    """
    attrs = Conv2DAttrs(
        **spatial_attributes(2, strides, padding, dilation, channels, kernel_size),
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
    return Call(CONV2D, (data, weight), attrs)


def conv3d(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Any = (1, 1, 1),
    padding: Any = (0, 0, 0),
    dilation: Any = (1, 1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Any = None,
    data_layout: str = "NCDHW",
    kernel_layout: str = "OIDHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """The convolution of ``data`` with ``weight`` over DHW; the kernel is not turned around.

    ``padding`` is one number, one for each axis, or all before and then all after the axes. ``channels`` and
    ``kernel_size`` tell the weight's shape where its type does not.
    """
    attrs = Conv3DAttrs(
        **spatial_attributes(3, strides, padding, dilation, channels, kernel_size),
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
    return Call(CONV3D, (data, weight), attrs)


def conv1d_transpose(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Any = (1,),
    padding: Any = (0,),
    dilation: Any = (1,),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Any = None,
    data_layout: str = "NCW",
    kernel_layout: str = "OIW",
    out_layout: str = "",
    output_padding: Any = (0,),
    out_dtype: str = "",
) -> Call:
    """The transposed convolution over W: what a convolution's gradient by its data is.

    In ``kernel_layout``, O are the channels of the data. ``output_padding`` lengthens the result at its end.
    """
    attrs = Conv1DTransposeAttrs(
        **spatial_attributes(1, strides, padding, dilation, channels, kernel_size),
        output_padding=per_axis(output_padding, 1, "output_padding"),
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
    return Call(CONV1D_TRANSPOSE, (data, weight), attrs)


def conv2d_transpose(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Any = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
    out_layout: str = "",
    output_padding: Any = (0, 0),
    out_dtype: str = "",
) -> Call:
    """The transposed convolution over HW: what a convolution's gradient by its data is.

    In ``kernel_layout``, I are the channels of the data. ``output_padding`` lengthens the result at its end.
    """
    attrs = Conv2DTransposeAttrs(
        **spatial_attributes(2, strides, padding, dilation, channels, kernel_size),
        output_padding=per_axis(output_padding, 2, "output_padding"),
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
    return Call(CONV2D_TRANSPOSE, (data, weight), attrs)


def conv3d_transpose(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Any = (1, 1, 1),
    padding: Any = (0, 0, 0),
    dilation: Any = (1, 1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Any = None,
    data_layout: str = "NCDHW",
    kernel_layout: str = "OIDHW",
    out_layout: str = "",
    output_padding: Any = (0, 0, 0),
    out_dtype: str = "",
) -> Call:
    """The transposed convolution over DHW: what a convolution's gradient by its data is.

    In ``kernel_layout``, O are the channels of the data. ``output_padding`` lengthens the result at its end.
    """
    attrs = Conv3DTransposeAttrs(
        **spatial_attributes(3, strides, padding, dilation, channels, kernel_size),
        output_padding=per_axis(output_padding, 3, "output_padding"),
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
    return Call(CONV3D_TRANSPOSE, (data, weight), attrs)
