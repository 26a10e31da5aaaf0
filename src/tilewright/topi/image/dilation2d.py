"""Morphological dilation: the largest sum of pixel and kernel in each window."""

from __future__ import annotations

from typing import Any

from tilewright import te
from tilewright.ir.operators import least
from tilewright.te import Tensor
from tilewright.topi.nn.convolution import require_equal, require_rank, slide, spatial_extents


def _dilation2d(
    data: Tensor,
    kernel: Tensor,
    stride: Any,
    padding: Any,
    dilations: Any,
    out_dtype: str | None,
    layout: str,
    kernel_layout: str,
) -> Tensor:
    require_rank(data, layout, "the input")
    require_rank(kernel, kernel_layout, "the kernel")
    lowest = least(data.dtype)
    windows = slide(data, layout, spatial_extents(kernel, kernel_layout), stride, padding, dilations, lowest)
    channels = data.shape[layout.index("C")]
    require_equal(channels, kernel.shape[kernel_layout.index("C")], "channels of the input and the kernel")
    kind = out_dtype or data.dtype
    ry = te.reduce_axis((0, kernel.shape[kernel_layout.index("H")]), name="ry")
    rx = te.reduce_axis((0, kernel.shape[kernel_layout.index("W")]), name="rx")
    extents = dict(zip(windows.letters, windows.extents, strict=True))
    extents.update(N=data.shape[layout.index("N")], C=channels)

    def element(*indices: Any) -> Any:
        at = dict(zip(layout, indices, strict=True))
        read = {
            "N": at["N"],
            "C": at["C"],
            "H": windows.read_at("H", at["H"], ry.var),
            "W": windows.read_at("W", at["W"], rx.var),
        }
        weight = {"C": at["C"], "H": ry, "W": rx}
        value = windows.data(*[read[letter] for letter in layout]).astype(kind)
        return te.max(
            value + kernel(*[weight[letter] for letter in kernel_layout]).astype(kind), axis=[ry, rx]
        )

    name = f"dilation2d_{layout.lower()}"
    made: Tensor = te.compute([extents[letter] for letter in layout], element, name=name, tag=name)
    return made


def dilation2d_nchw(
    input: Tensor, filter: Tensor, stride: Any, padding: Any, dilations: Any, out_dtype: str | None = None
) -> Tensor:
    """``max(input + filter)`` over windows of NCHW, with a kernel (channels, height, width); padding never wins."""
    return _dilation2d(input, filter, stride, padding, dilations, out_dtype, "NCHW", "CHW")


def dilation2d_nhwc(
    input: Tensor, filter: Tensor, stride: Any, padding: Any, dilations: Any, out_dtype: str | None = None
) -> Tensor:
    """``max(input + filter)`` over windows of NHWC, with a kernel (height, width, channels); padding never wins."""
    return _dilation2d(input, filter, stride, padding, dilations, out_dtype, "NHWC", "HWC")
