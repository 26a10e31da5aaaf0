"""Convolution whose taps are moved by learned offsets."""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.ir.operators import maximum, minimum
from tilewright.te import Tensor
from tilewright.topi.nn.convolution import require_equal
from tilewright.topi.nn.utils import as_type, pad_amounts, per_axis, sum_types
from tilewright.topi.utils import get_const_tuple, simplify


def _deformable(
    data: Tensor,
    offset: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    deformable_groups: int,
    groups: int,
    out_dtype: str | None,
    layout: str,
    kernel_layout: str,
) -> Tensor:
    extent = dict(zip(layout, data.shape, strict=True))
    taps = dict(zip(kernel_layout, get_const_tuple(kernel.shape), strict=True))
    place = dict(zip(layout, offset.shape, strict=True))
    stride_h, stride_w = per_axis(strides, 2, "strides")
    step_h, step_w = per_axis(dilation, 2, "dilation")
    spans = ((taps["H"] - 1) * step_h + 1, (taps["W"] - 1) * step_w + 1)
    (top, left), _ = pad_amounts(padding, spans)
    require_equal(extent["C"], taps["I"] * groups, "channels of the input of deformable_conv2d")
    require_equal(
        place["C"],
        deformable_groups * taps["H"] * taps["W"] * 2,
        "channels of the offsets of deformable_conv2d",
    )
    channels_of_offset = simplify(extent["C"] // deformable_groups)
    inner, result = sum_types(data.dtype, out_dtype)

    def sample(n: Any, c: Any, y: Any, x: Any) -> Any:
        """Bilinear interpolation; zero outside the image."""
        inside = tir.all(y >= 0, x >= 0, y < extent["H"].astype(y.dtype), x < extent["W"].astype(x.dtype))
        low_y, low_x = te.floor(y), te.floor(x)
        part_y, part_x = (y - low_y).astype(inner), (x - low_x).astype(inner)
        rows = [minimum(maximum(low_y.astype("int32") + i, 0), extent["H"] - 1) for i in range(2)]
        columns = [minimum(maximum(low_x.astype("int32") + i, 0), extent["W"] - 1) for i in range(2)]

        def pixel(i: int, j: int) -> Any:
            at = {"N": n, "C": c, "H": rows[i], "W": columns[j]}
            return data(*[at[letter] for letter in layout]).astype(inner)

        one = tir.const(1, inner)
        upper = pixel(0, 0) * (one - part_x) + pixel(0, 1) * part_x
        lower = pixel(1, 0) * (one - part_x) + pixel(1, 1) * part_x
        value = upper * (one - part_y) + lower * part_y
        return tir.if_then_else(inside, value, tir.const(0, inner))

    def moved(n: Any, c: Any, ky: Any, kx: Any, y: Any, x: Any) -> Any:
        first = ((c // channels_of_offset) * taps["H"] * taps["W"] + ky * taps["W"] + kx) * 2

        def shift(which: int) -> Any:
            at = {"N": n, "C": first + which, "H": y, "W": x}
            return offset(*[at[letter] for letter in layout])

        origin_y = y * stride_h + ky * step_h - top
        origin_x = x * stride_w + kx * step_w - left
        return sample(
            n, c, origin_y.astype(offset.dtype) + shift(0), origin_x.astype(offset.dtype) + shift(1)
        )

    deformed = te.compute(
        (extent["N"], extent["C"], taps["H"], taps["W"], place["H"], place["W"]), moved, name="data_deform"
    )
    outputs_of_group = simplify(kernel.shape[kernel_layout.index("O")] // groups)
    rc = te.reduce_axis((0, taps["I"]), name="rc")
    ry = te.reduce_axis((0, taps["H"]), name="ry")
    rx = te.reduce_axis((0, taps["W"]), name="rx")

    def element(*indices: Any) -> Any:
        at = dict(zip(layout, indices, strict=True))
        first = 0 if groups == 1 else (at["C"] // outputs_of_group) * taps["I"]
        weight = {"O": at["C"], "I": rc, "H": ry, "W": rx}
        value = deformed(at["N"], first + rc.var, ry, rx, at["H"], at["W"])
        return te.sum(
            value * kernel(*[weight[letter] for letter in kernel_layout]).astype(inner), axis=[rc, ry, rx]
        )

    shape = {"N": extent["N"], "C": taps["O"], "H": place["H"], "W": place["W"]}
    name = f"deformable_conv2d_{layout.lower()}"
    made: Tensor = te.compute([shape[letter] for letter in layout], element, name=name, tag=name)
    return as_type(made, result)


def deformable_conv2d_nchw(
    data: Tensor,
    offset: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    deformable_groups: int,
    groups: int,
    out_dtype: str | None,
) -> Tensor:
    """The convolution of NCHW with OIHW whose taps read where ``offset`` moves them.

    ``offset`` is (batch, deformable groups * taps * 2, output height, output width): vertical, then horizontal. Between
    pixels it reads bilinearly; beyond the image, zero.
    """
    return _deformable(
        data,
        offset,
        kernel,
        strides,
        padding,
        dilation,
        deformable_groups,
        groups,
        out_dtype,
        "NCHW",
        "OIHW",
    )


def deformable_conv2d_nhwc(
    data: Tensor,
    offset: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    deformable_groups: int,
    groups: int,
    out_dtype: str | None,
) -> Tensor:
    """The same for NHWC with a kernel HWIO; ``offset`` is (batch, height, width, deformable groups * taps * 2)."""
    return _deformable(
        data,
        offset,
        kernel,
        strides,
        padding,
        dilation,
        deformable_groups,
        groups,
        out_dtype,
        "NHWC",
        "HWIO",
    )
