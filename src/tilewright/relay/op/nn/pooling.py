"""Pooling over windows, adaptive and global pooling, and the gradients of the two-dimensional ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.relay.expr import Call
from tilewright.relay.op.calls import call, number, tensor_type
from tilewright.relay.op.definition import Gradient, OpPattern, define
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout
from tilewright.relay.op.nn.layout_conversion import converted, spatial_layouts
from tilewright.relay.op.nn.pooling_attributes import (
    AdaptivePool1DAttrs,
    AdaptivePool2DAttrs,
    AdaptivePool3DAttrs,
    AvgPool1DAttrs,
    AvgPool2DAttrs,
    AvgPool3DAttrs,
    GlobalPool2DAttrs,
    MaxPool1DAttrs,
    MaxPool2DAttrs,
    MaxPool3DAttrs,
)
from tilewright.relay.op.nn.pooling_rules import (
    adaptive_relation,
    output_sizes,
    pool_grad_relation,
    pool_relation,
    reference_adaptive,
    reference_avg_pool,
    reference_avg_pool_grad,
    reference_max_pool,
    reference_max_pool_grad,
    result_layout,
)
from tilewright.relay.op.nn.windows import pad_tuple, per_axis
from tilewright.relay.op.op import register_convert_op_layout
from tilewright.support.errors import OpAttributeUnImplemented
from tilewright.te.tensor import Tensor
from tilewright.tir.data_layout import Layout

_COMPUTES = {1: topi.nn.pool1d, 2: topi.nn.pool2d, 3: topi.nn.pool3d}
_ADAPTIVE = {1: topi.nn.adaptive_pool1d, 2: topi.nn.adaptive_pool, 3: topi.nn.adaptive_pool3d}
_SPACE = {1: "W", 2: "HW", 3: "DHW"}


def _pool_compute(rank: int, kind: str) -> Callable[..., list[Tensor]]:
    def compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
        made = _COMPUTES[rank](
            inputs[0],
            attrs.pool_size,
            attrs.strides,
            attrs.dilation,
            attrs.padding,
            kind,
            attrs.ceil_mode,
            attrs.layout,
            getattr(attrs, "count_include_pad", False),
        )
        return [converted(made, attrs.layout, result_layout(attrs))]

    return compute


def _grad_compute(kind: str) -> Callable[..., list[Tensor]]:
    def compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
        grads = converted(inputs[0], result_layout(attrs), attrs.layout)
        return [
            topi.nn.pool_grad(
                grads,
                inputs[1],
                attrs.pool_size,
                attrs.strides,
                attrs.padding,
                kind,
                attrs.ceil_mode,
                attrs.layout,
                getattr(attrs, "count_include_pad", False),
            )
        ]

    return compute


def _adaptive_compute(rank: int, kind: str) -> Callable[..., list[Tensor]]:
    def compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
        layout = Layout(attrs.layout)
        extents = [inputs[0].shape[layout.index_of(axis)] for axis in _SPACE[rank]]
        made = _ADAPTIVE[rank](inputs[0], output_sizes(attrs, extents), kind, attrs.layout)
        return [converted(made, attrs.layout, result_layout(attrs))]

    return compute


def _pool_gradient(kind: str) -> Gradient:
    def gradient(orig: Any, grad: RelayExpr) -> list[RelayExpr]:
        attributes = {name: value for name, value in orig.attrs.items() if name != "dilation"}
        if per_axis(orig.attrs.dilation, 2, "dilation") != (1, 1):
            raise OpAttributeUnImplemented(
                f"{kind}_pool2d with a dilation of {orig.attrs.dilation} has no gradient; only one of 1 has"
            )
        return [call(f"nn.{kind}_pool2d_grad", grad, orig.args[0], **attributes)]

    return gradient


def _global_gradient(orig: Any, grad: RelayExpr) -> list[RelayExpr]:
    data = orig.args[0]
    layout = Layout(orig.attrs.layout)
    shape = tensor_type(data).concrete_shape
    count = shape[layout.index_of("H")] * shape[layout.index_of("W")]
    if result_layout(orig.attrs) != orig.attrs.layout:
        grad = call("layout_transform", grad, src_layout=orig.attrs.out_layout, dst_layout=orig.attrs.layout)
    share = call("multiply", grad, number(1.0 / count, data))
    return [call("broadcast_to_like", share, data)]


def _converts_layout(op: Op) -> None:
    """Let ConvertLayout change the layout: one layout is requested, or one for the data and one for the result."""

    def convert(
        attrs: Any, inputs: Sequence[RelayExpr], tinfos: Sequence[Any], desired_layouts: Sequence[str]
    ) -> RelayExpr:
        layout = str(desired_layouts[0])
        chosen = attrs.layout if layout == "default" else layout
        other = len(desired_layouts) > 1 and str(desired_layouts[1]) != "default"
        # A layout of the result that is named is not changed again, whatever the argument's becomes.
        out = str(desired_layouts[1]) if other else chosen
        return Call(op, inputs, attrs.replace(layout=chosen, out_layout=out))

    register_convert_op_layout(op.name, convert)


def _define_pool(rank: int, kind: str, attrs: type[Any]) -> Op:
    space = _SPACE[rank]
    op = define(
        f"nn.{kind}_pool{rank}d",
        arguments=("data",),
        attrs=attrs,
        relation=pool_relation(space),
        compute=_pool_compute(rank, kind),
        reference=reference_max_pool(space) if kind == "max" else reference_avg_pool(space),
        gradient=_pool_gradient(kind) if rank == 2 else None,
        layout=spatial_layouts,
        kind=OpPattern.OUT_ELEMWISE_FUSABLE,
        level=2,
        description=f"The {'largest element' if kind == 'max' else 'average'} of each window.",
    )
    _converts_layout(op)
    return op


def _define_adaptive(
    name: str, rank: int, kind: str, attrs: type[Any], gradient: Gradient | None = None
) -> Op:
    op = define(
        name,
        arguments=("data",),
        attrs=attrs,
        relation=adaptive_relation(_SPACE[rank]),
        compute=_adaptive_compute(rank, kind),
        reference=reference_adaptive(_SPACE[rank], kind),
        gradient=gradient,
        layout=spatial_layouts,
        kind=OpPattern.OUT_ELEMWISE_FUSABLE,
        level=2 if name.startswith("nn.global") else 10,
        description="Pooling to a given size, over windows as even as the sizes allow.",
    )
    _converts_layout(op)
    return op


def _grad_layouts(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """The gradient of pooling keeps its own layout."""
    return Layouts((Layout(result_layout(attrs)), Layout(attrs.layout)), (Layout(attrs.layout),), attrs)


def _define_grad(kind: str, attrs: type[Any]) -> Op:
    return define(
        f"nn.{kind}_pool2d_grad",
        arguments=("grad", "data"),
        attrs=attrs,
        relation=pool_grad_relation,
        compute=_grad_compute(kind),
        reference=reference_max_pool_grad if kind == "max" else reference_avg_pool_grad,
        layout=_grad_layouts,
        kind=OpPattern.OUT_ELEMWISE_FUSABLE,
        level=2,
        description=f"The gradient of {kind}_pool2d by its data.",
    )


MAX_POOL = {
    1: _define_pool(1, "max", MaxPool1DAttrs),
    2: _define_pool(2, "max", MaxPool2DAttrs),
    3: _define_pool(3, "max", MaxPool3DAttrs),
}
AVG_POOL = {
    1: _define_pool(1, "avg", AvgPool1DAttrs),
    2: _define_pool(2, "avg", AvgPool2DAttrs),
    3: _define_pool(3, "avg", AvgPool3DAttrs),
}
MAX_POOL2D_GRAD = _define_grad("max", MaxPool2DAttrs)
AVG_POOL2D_GRAD = _define_grad("avg", AvgPool2DAttrs)
GLOBAL_MAX_POOL2D = _define_adaptive("nn.global_max_pool2d", 2, "max", GlobalPool2DAttrs)
GLOBAL_AVG_POOL2D = _define_adaptive("nn.global_avg_pool2d", 2, "avg", GlobalPool2DAttrs, _global_gradient)
_ADAPTIVE_ATTRS = {1: AdaptivePool1DAttrs, 2: AdaptivePool2DAttrs, 3: AdaptivePool3DAttrs}
ADAPTIVE_MAX_POOL = {
    rank: _define_adaptive(f"nn.adaptive_max_pool{rank}d", rank, "max", attrs)
    for rank, attrs in _ADAPTIVE_ATTRS.items()
}
ADAPTIVE_AVG_POOL = {
    rank: _define_adaptive(f"nn.adaptive_avg_pool{rank}d", rank, "avg", attrs)
    for rank, attrs in _ADAPTIVE_ATTRS.items()
}


def _window(rank: int, pool_size: Any, strides: Any, dilation: Any, padding: Any) -> dict[str, Any]:
    return {
        "pool_size": per_axis(pool_size, rank, "pool_size"),
        "strides": per_axis(strides, rank, "strides"),
        "dilation": per_axis(dilation, rank, "dilation"),
        "padding": pad_tuple(padding, rank),
    }


def _sizes(output_size: Any, rank: int) -> tuple[Any, ...]:
    return () if output_size is None or output_size == () else per_axis(output_size, rank, "output_size")


def max_pool1d(
    data: RelayExpr,
    pool_size: Any = (1,),
    strides: Any = (1,),
    dilation: Any = (1,),
    padding: Any = (0,),
    layout: str = "NCW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Call:
    """The largest element of each window of ``pool_size`` elements."""
    window = _window(1, pool_size, strides, dilation, padding)
    attrs = MaxPool1DAttrs(**window, layout=layout, out_layout=out_layout, ceil_mode=ceil_mode)
    return Call(MAX_POOL[1], (data,), attrs)


def max_pool2d(
    data: RelayExpr,
    pool_size: Any = (1, 1),
    strides: Any = (1, 1),
    dilation: Any = (1, 1),
    padding: Any = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Call:
    """The largest element of each window of ``pool_size`` elements."""
    window = _window(2, pool_size, strides, dilation, padding)
    attrs = MaxPool2DAttrs(**window, layout=layout, out_layout=out_layout, ceil_mode=ceil_mode)
    return Call(MAX_POOL[2], (data,), attrs)


def max_pool3d(
    data: RelayExpr,
    pool_size: Any = (1, 1, 1),
    strides: Any = (1, 1, 1),
    dilation: Any = (1, 1, 1),
    padding: Any = (0, 0, 0),
    layout: str = "NCDHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Call:
    """The largest element of each window of ``pool_size`` elements."""
    window = _window(3, pool_size, strides, dilation, padding)
    attrs = MaxPool3DAttrs(**window, layout=layout, out_layout=out_layout, ceil_mode=ceil_mode)
    return Call(MAX_POOL[3], (data,), attrs)


def avg_pool1d(
    data: RelayExpr,
    pool_size: Any = (1,),
    strides: Any = (1,),
    dilation: Any = (1,),
    padding: Any = (0,),
    layout: str = "NCW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Call:
    """The average of each window of ``pool_size`` elements. Padding counts where ``count_include_pad``."""
    window = _window(1, pool_size, strides, dilation, padding)
    attrs = AvgPool1DAttrs(
        **window,
        layout=layout,
        out_layout=out_layout,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
    )
    return Call(AVG_POOL[1], (data,), attrs)


def avg_pool2d(
    data: RelayExpr,
    pool_size: Any = (1, 1),
    strides: Any = (1, 1),
    dilation: Any = (1, 1),
    padding: Any = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Call:
    """The average of each window of ``pool_size`` elements. Padding counts where ``count_include_pad``."""
    window = _window(2, pool_size, strides, dilation, padding)
    attrs = AvgPool2DAttrs(
        **window,
        layout=layout,
        out_layout=out_layout,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
    )
    return Call(AVG_POOL[2], (data,), attrs)


def avg_pool3d(
    data: RelayExpr,
    pool_size: Any = (1, 1, 1),
    strides: Any = (1, 1, 1),
    dilation: Any = (1, 1, 1),
    padding: Any = (0, 0, 0),
    layout: str = "NCDHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Call:
    """The average of each window of ``pool_size`` elements. Padding counts where ``count_include_pad``."""
    window = _window(3, pool_size, strides, dilation, padding)
    attrs = AvgPool3DAttrs(
        **window,
        layout=layout,
        out_layout=out_layout,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
    )
    return Call(AVG_POOL[3], (data,), attrs)


def max_pool2d_grad(
    out_grad: RelayExpr,
    data: RelayExpr,
    pool_size: Any = (1, 1),
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Call:
    """The gradient of ``max_pool2d`` by its data."""
    window = _window(2, pool_size, strides, (1, 1), padding)
    attrs = MaxPool2DAttrs(**window, layout=layout, out_layout=out_layout, ceil_mode=ceil_mode)
    return Call(MAX_POOL2D_GRAD, (out_grad, data), attrs)


def avg_pool2d_grad(
    out_grad: RelayExpr,
    data: RelayExpr,
    pool_size: Any = (1, 1),
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Call:
    """The gradient of ``avg_pool2d`` by its data."""
    window = _window(2, pool_size, strides, (1, 1), padding)
    attrs = AvgPool2DAttrs(
        **window,
        layout=layout,
        out_layout=out_layout,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
    )
    return Call(AVG_POOL2D_GRAD, (out_grad, data), attrs)


def global_max_pool2d(data: RelayExpr, layout: str = "NCHW", out_layout: str = "") -> Call:
    """The largest element of each channel."""
    return Call(GLOBAL_MAX_POOL2D, (data,), GlobalPool2DAttrs(layout, out_layout))


def global_avg_pool2d(data: RelayExpr, layout: str = "NCHW", out_layout: str = "") -> Call:
    """The average of each channel."""
    return Call(GLOBAL_AVG_POOL2D, (data,), GlobalPool2DAttrs(layout, out_layout))


def global_max_pool1d(data: RelayExpr, layout: str = "NCW", out_layout: str = "") -> Call:
    """The largest element of each channel."""
    return adaptive_max_pool1d(data, (1,), layout, out_layout)


def global_avg_pool1d(data: RelayExpr, layout: str = "NCW", out_layout: str = "") -> Call:
    """The average of each channel."""
    return adaptive_avg_pool1d(data, (1,), layout, out_layout)


def global_max_pool3d(data: RelayExpr, layout: str = "NCDHW", out_layout: str = "") -> Call:
    """The largest element of each channel."""
    return adaptive_max_pool3d(data, (1, 1, 1), layout, out_layout)


def global_avg_pool3d(data: RelayExpr, layout: str = "NCDHW", out_layout: str = "") -> Call:
    """The average of each channel."""
    return adaptive_avg_pool3d(data, (1, 1, 1), layout, out_layout)


def adaptive_max_pool1d(
    data: RelayExpr, output_size: Any = None, layout: str = "NCW", out_layout: str = ""
) -> Call:
    """The largest element of each of ``output_size`` windows, as even as the sizes allow."""
    attrs = AdaptivePool1DAttrs(_sizes(output_size, 1), layout, out_layout)
    return Call(ADAPTIVE_MAX_POOL[1], (data,), attrs)


def adaptive_avg_pool1d(
    data: RelayExpr, output_size: Any = None, layout: str = "NCW", out_layout: str = ""
) -> Call:
    """The average of each of ``output_size`` windows, as even as the sizes allow."""
    attrs = AdaptivePool1DAttrs(_sizes(output_size, 1), layout, out_layout)
    return Call(ADAPTIVE_AVG_POOL[1], (data,), attrs)


def adaptive_max_pool2d(
    data: RelayExpr, output_size: Any = None, layout: str = "NCHW", out_layout: str = ""
) -> Call:
    """The largest element of each of ``output_size`` windows, as even as the sizes allow."""
    attrs = AdaptivePool2DAttrs(_sizes(output_size, 2), layout, out_layout)
    return Call(ADAPTIVE_MAX_POOL[2], (data,), attrs)


def adaptive_avg_pool2d(
    data: RelayExpr, output_size: Any = None, layout: str = "NCHW", out_layout: str = ""
) -> Call:
    """The average of each of ``output_size`` windows, as even as the sizes allow."""
    attrs = AdaptivePool2DAttrs(_sizes(output_size, 2), layout, out_layout)
    return Call(ADAPTIVE_AVG_POOL[2], (data,), attrs)


def adaptive_max_pool3d(
    data: RelayExpr, output_size: Any = None, layout: str = "NCDHW", out_layout: str = ""
) -> Call:
    """The largest element of each of ``output_size`` windows, as even as the sizes allow."""
    attrs = AdaptivePool3DAttrs(_sizes(output_size, 3), layout, out_layout)
    return Call(ADAPTIVE_MAX_POOL[3], (data,), attrs)


def adaptive_avg_pool3d(
    data: RelayExpr, output_size: Any = None, layout: str = "NCDHW", out_layout: str = ""
) -> Call:
    """The average of each of ``output_size`` windows, as even as the sizes allow."""
    attrs = AdaptivePool3DAttrs(_sizes(output_size, 3), layout, out_layout)
    return Call(ADAPTIVE_AVG_POOL[3], (data,), attrs)
