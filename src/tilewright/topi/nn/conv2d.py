"""Two-dimensional convolution: plain, in groups, and with channels in blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import te
from tilewright.ir.expr import IterVar
from tilewright.support.errors import OpAttributeInvalid
from tilewright.target import generic_func
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.nn.blocked_layouts import layouts_of_configuration
from tilewright.topi.nn.convolution import conv, require_equal, slide
from tilewright.topi.nn.pad import pad
from tilewright.topi.nn.utils import as_type, in_rewritten_layout, sum_types
from tilewright.topi.nn.winograd import (
    conv2d_winograd_nchw,
    conv2d_winograd_nchw_without_weight_transform,
    conv2d_winograd_nhwc,
    conv2d_winograd_nhwc_without_weight_transform,
    conv2d_winograd_weight_transform,
)
from tilewright.topi.utils import InvalidShapeError, get_const_int, get_const_tuple, simplify

__all__ = [
    "conv2d",
    "conv2d_NCHWc",
    "conv2d_NCHWc_int8",
    "conv2d_alter_layout",
    "conv2d_gemm_weight_transform",
    "conv2d_hwcn",
    "conv2d_infer_layout",
    "conv2d_legalize",
    "conv2d_nchw",
    "conv2d_nhwc",
    "conv2d_winograd_nchw",
    "conv2d_winograd_nchw_without_weight_transform",
    "conv2d_winograd_nhwc",
    "conv2d_winograd_nhwc_without_weight_transform",
    "conv2d_winograd_weight_transform",
    "group_conv2d_nchw",
    "group_conv2d_nhwc",
    "unpack_NCHWc_to_nchw",
]


def conv2d(
    input: Tensor,
    filter: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    layout: str = "NCHW",
    out_dtype: str | None = None,
) -> Tensor:
    """The convolution in layout NCHW (kernel OIHW), NHWC (kernel HWIO) or HWCN (kernel HWIO)."""
    computations = {"NCHW": conv2d_nchw, "NHWC": conv2d_nhwc, "HWCN": conv2d_hwcn}
    if layout not in computations:
        raise OpAttributeInvalid(f"conv2d supports the layouts {', '.join(computations)}, not {layout!r}")
    return computations[layout](input, filter, strides, padding, dilation, out_dtype)


def conv2d_nchw(
    Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: str | None = None
) -> Tensor:
    """The convolution of (batch, channels, height, width) with a kernel (output, input, height, width)."""
    return conv(
        Input, Filter, stride, padding, dilation, 1, "NCHW", "OIHW", out_dtype, "conv2d_nchw", "conv2d_nchw"
    )


def conv2d_hwcn(
    Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: str | None = None
) -> Tensor:
    """The convolution of (height, width, channels, batch) with a kernel (height, width, input, output)."""
    return conv(
        Input, Filter, stride, padding, dilation, 1, "HWCN", "HWIO", out_dtype, "conv2d_hwcn", "conv2d_hwcn"
    )


def conv2d_nhwc(
    Input: Tensor,
    Filter: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None = "float32",
    auto_scheduler_rewritten_layout: str = "",
) -> Tensor:
    """The convolution of (batch, height, width, channels) with a kernel (height, width, input, output)."""
    if auto_scheduler_rewritten_layout:
        return in_rewritten_layout(
            Filter,
            auto_scheduler_rewritten_layout,
            ["ry", "rx", "rc", "ff"],
            lambda original: conv2d_nhwc(Input, original, stride, padding, dilation, out_dtype),
        )
    return conv(
        Input, Filter, stride, padding, dilation, 1, "NHWC", "HWIO", out_dtype, "conv2d_nhwc", "conv2d_nhwc"
    )


def group_conv2d_nchw(
    Input: Tensor,
    Filter: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    out_dtype: str | None = None,
) -> Tensor:
    """The convolution in groups of NCHW with a kernel (output, input of a group, height, width)."""
    return conv(
        Input,
        Filter,
        stride,
        padding,
        dilation,
        get_const_int(groups),
        "NCHW",
        "OIHW",
        out_dtype,
        "group_conv2d_nchw",
        "group_conv2d_nchw",
    )


def group_conv2d_nhwc(
    Input: Tensor,
    Filter: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    out_dtype: str | None = None,
) -> Tensor:
    """The convolution in groups of NHWC with a kernel (height, width, input of a group, output)."""
    return conv(
        Input,
        Filter,
        stride,
        padding,
        dilation,
        get_const_int(groups),
        "NHWC",
        "HWIO",
        out_dtype,
        "group_conv2d_nhwc",
        "group_conv2d_nhwc",
    )


def conv2d_NCHWc(
    data: Tensor,
    kernel: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    layout: str,
    out_layout: str,
    out_dtype: str | None = "float32",
) -> Tensor:
    """The convolution with channels in blocks: data (batch, blocks, height, width, channels of a block).

    The kernel is (output blocks, input blocks, height, width, channels of an input block, channels of an output
    block). Where it has fewer input blocks than the data, the convolution is in groups of that many blocks.
    """
    require_blocked(data, kernel, 6)
    windows = slide(data, layout, get_const_tuple(kernel.shape[2:4]), stride, padding, dilation)
    require_equal(data.shape[4], kernel.shape[4], "channels of a block of the input and of the kernel")
    blocks, block = kernel.shape[1], data.shape[4]
    outputs_of_group = output_blocks_of_group(data, kernel)
    inner, result = sum_types(data.dtype, out_dtype)
    outer = te.reduce_axis((0, blocks), name="ic_outer")
    ry = te.reduce_axis((0, kernel.shape[2]), name="kh")
    rx = te.reduce_axis((0, kernel.shape[3]), name="kw")
    lane = te.reduce_axis((0, block), name="ic_inner")

    def element(n: Any, c: Any, h: Any, w: Any, b: Any) -> Any:
        first = 0 if outputs_of_group is None else (c // outputs_of_group) * blocks
        value = windows.data(
            n, first + outer.var, windows.read_at("H", h, ry.var), windows.read_at("W", w, rx.var), lane
        )
        weight = kernel(c, outer, ry, rx, lane, b)
        return te.sum(value.astype(inner) * weight.astype(inner), axis=[outer, ry, rx, lane])

    made: Tensor = te.compute(
        (data.shape[0], kernel.shape[0], *windows.extents, kernel.shape[5]),
        element,
        name="conv2d_NCHWc",
        tag="conv2d_NCHWc",
        attrs={"layout_free_placeholders": [kernel]},
    )
    return as_type(made, result)


def conv2d_NCHWc_int8(
    data: Tensor,
    kernel: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    layout: str,
    out_layout: str,
    out_dtype: str = "int32",
    n_elems: int = 4,
) -> Tensor:
    """The convolution of eight-bit integers with channels in blocks, ``n_elems`` products to a lane.

    The kernel is (output blocks, input blocks, height, width, channels of an input block / n_elems, channels of an
    output block, n_elems): what a dot-product instruction reads lies together.
    """
    part = te.reduce_axis((0, n_elems), name="ic_s_inner")

    def product(padded: Tensor, at: Sequence[Any], weight_at: Sequence[Any]) -> Any:
        value = padded(*at[:-1], at[-1] * n_elems + part.var)
        return value.astype(out_dtype) * kernel(*weight_at, part).astype(out_dtype)

    return conv2d_of_packed_lanes(data, kernel, stride, padding, dilation, layout, n_elems, product, [part])


def conv2d_of_packed_lanes(
    data: Tensor,
    kernel: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    layout: str,
    n_elems: int,
    product: Callable[[Tensor, Sequence[Any], Sequence[Any]], Any],
    inner_axes: Sequence[IterVar] = (),
    prepare: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """``conv2d_NCHWc_int8`` with a custom product of two packed lanes of ``n_elems`` channels.

    ``product`` is given the padded data (as ``prepare`` makes it, if that is given), the index of the lane in it (the
    last index counts lanes), and the index in the kernel; it may sum over ``inner_axes``.
    """
    require_blocked(data, kernel, 7)
    windows = slide(data, layout, get_const_tuple(kernel.shape[2:4]), stride, padding, dilation)
    require_equal(kernel.shape[6], n_elems, "the last dimension of the kernel and n_elems")
    require_equal(data.shape[4], kernel.shape[4] * n_elems, "channels of a block of the input and the kernel")
    prepared = windows.data if prepare is None else prepare(windows.data)
    blocks = kernel.shape[1]
    outputs_of_group = output_blocks_of_group(data, kernel)
    outer = te.reduce_axis((0, blocks), name="ic_outer")
    ry = te.reduce_axis((0, kernel.shape[2]), name="kh")
    rx = te.reduce_axis((0, kernel.shape[3]), name="kw")
    word = te.reduce_axis((0, kernel.shape[4]), name="ic_f_inner")

    def element(n: Any, c: Any, h: Any, w: Any, b: Any) -> Any:
        first = 0 if outputs_of_group is None else (c // outputs_of_group) * blocks
        pixel = (windows.read_at("H", h, ry.var), windows.read_at("W", w, rx.var))
        summed = product(prepared, (n, first + outer.var, *pixel, word.var), (c, outer, ry, rx, word, b))
        return te.sum(summed, axis=[outer, ry, rx, word, *inner_axes])

    made: Tensor = te.compute(
        (data.shape[0], kernel.shape[0], *windows.extents, kernel.shape[5]),
        element,
        name="conv2d_NCHWc_int8",
        tag="conv2d_NCHWc_int8",
        attrs={"layout_free_placeholders": [kernel]},
    )
    return made


def require_blocked(data: Tensor, kernel: Tensor, kernel_rank: int) -> None:
    """Data and kernel of a convolution with channels in blocks must have their ranks."""
    if len(data.shape) != 5 or len(kernel.shape) != kernel_rank:
        raise InvalidShapeError(
            f"a convolution with channels in blocks takes data of 5 dimensions and a kernel of {kernel_rank}, "
            f"not {len(data.shape)} and {len(kernel.shape)}"
        )


def output_blocks_of_group(data: Tensor, kernel: Tensor) -> Any:
    """How many output blocks a group has; None where there is one group."""
    given, read = get_const_tuple([data.shape[1], kernel.shape[1]])
    if not isinstance(given, int) or not isinstance(read, int):
        require_equal(given, read, "input blocks of the data and of the kernel")
        return None
    if given == read:
        return None
    outputs = get_const_int(kernel.shape[0])
    if given % read or outputs % (given // read):
        raise InvalidShapeError(
            f"{given} input blocks and {outputs} output blocks cannot be divided into groups of {read} input blocks"
        )
    return outputs // (given // read)


def unpack_NCHWc_to_nchw(packed_out: Tensor, out_dtype: str) -> Tensor:
    """A tensor with channels in blocks, as NCHW of another type."""
    batch, blocks, height, width, block = packed_out.shape

    def element(n: Any, c: Any, h: Any, w: Any) -> Any:
        return packed_out(n, c // block, h, w, c % block).astype(out_dtype)

    made: Tensor = te.compute(
        (batch, simplify(blocks * block), height, width),
        element,
        name="output_unpack",
        tag=f"{tag.INJECTIVE},unpack_nchwc",
    )
    return made


def conv2d_gemm_weight_transform(kernel: Tensor, tile_rows: int, tile_cols: int) -> Tensor:
    """A kernel HWIO as a matrix (output, height * width * input), cut into tiles of ``tile_rows`` by ``tile_cols``.

    The result is (row tiles, column tiles, tile_rows, tile_cols). Rows are padded to whole tiles, columns to a multiple
    of four tiles, which is what the kernels that read it take at once.
    """
    _, width, inputs, outputs = get_const_tuple(kernel.shape)
    depth = get_const_int(kernel.shape[0] * width * inputs)
    flat = te.compute(
        (depth, outputs),
        lambda x, y: kernel((x // inputs) // width, (x // inputs) % width, x % inputs, y),
        name="weight_flatten",
        tag=tag.INJECTIVE,
    )
    columns = -(-depth // (4 * tile_cols)) * 4 * tile_cols
    rows = -(-outputs // tile_rows) * tile_rows
    if (columns, rows) != (depth, outputs):
        flat = pad(flat, (0, 0), (columns - depth, rows - outputs), name="weight_padding")
    made: Tensor = te.compute(
        (rows // tile_rows, columns // tile_cols, tile_rows, tile_cols),
        lambda x, y, z, w: flat(w + tile_cols * y, z + tile_rows * x),
        name="weight_block_reshape",
        tag=tag.INJECTIVE,
    )
    return made


@generic_func
def conv2d_legalize(attrs: Any, inputs: Any, types: Any) -> Any:
    """A replacement that the target supports for a call that it does not, or None to keep the call."""
    return None


@generic_func
def conv2d_alter_layout(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> Any:
    """The call in a layout that the target prefers, or None to keep it."""
    return None


@generic_func
def conv2d_infer_layout(workload: Any, cfg: Any) -> Any:
    """The shapes and layouts of inputs and of outputs that a configuration with channels in blocks leads to."""
    return layouts_of_configuration(workload, cfg)
