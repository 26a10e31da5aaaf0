"""Images enlarged by a factor."""

from __future__ import annotations

from typing import Any

from tilewright.te import Tensor
from tilewright.tir.data_layout import Layout
from tilewright.tir.op import round as round_half_away
from tilewright.topi.image.resize import resize2d, resize3d
from tilewright.topi.utils import get_const_tuple, simplify


def _sizes(data: Tensor, layout: str, letters: str, scales: tuple[Any, ...], output_shape: Any) -> list[Any]:
    """The size to resize to: each extent times its scale, rounded; or what ``output_shape`` says."""
    axes = Layout(layout)
    positions = [axes.index_of(letter) for letter in letters]
    if output_shape is not None:
        full = len(output_shape) == len(data.shape)
        return [output_shape[position] for position in positions] if full else list(output_shape)
    sizes: list[Any] = []
    for position, scale in zip(positions, scales, strict=True):
        (extent,) = get_const_tuple([data.shape[position]])
        if isinstance(extent, int) and isinstance(scale, (int, float)):
            sizes.append(int(extent * scale + 0.5))
        elif isinstance(scale, int) or (isinstance(scale, float) and scale.is_integer()):
            sizes.append(simplify(extent * int(scale)))
        else:
            sizes.append(round_half_away(extent.astype("float32") * scale).astype("int32"))
    return sizes


def upsampling(
    data: Tensor,
    scale_h: Any,
    scale_w: Any,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
    output_shape: Any = None,
) -> Tensor:
    """An image enlarged by ``scale_h`` and ``scale_w``: nearest_neighbor, bilinear or bicubic."""
    sizes = _sizes(data, layout, "HW", (scale_h, scale_w), output_shape)
    mode = "align_corners" if align_corners else "asymmetric"
    return resize2d(data, sizes, layout, method.removeprefix("bi"), mode)


def upsampling3d(
    data: Tensor,
    scale_d: Any,
    scale_h: Any,
    scale_w: Any,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
    output_shape: Any = None,
) -> Tensor:
    """A volume enlarged by ``scale_d``, ``scale_h`` and ``scale_w``: nearest_neighbor or trilinear."""
    sizes = _sizes(data, layout, "DHW", (scale_d, scale_h, scale_w), output_shape)
    return resize3d(data, sizes, layout, method.removeprefix("tri"), coordinate_transformation_mode)
