"""Images read at given places.

Places are in -1 to 1 over the image. ``align_corners`` says whether those ends are the centres of the outermost pixels
or their outer edges.
"""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.ir.operators import maximum, minimum
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.image.resize import Interpolation
from tilewright.topi.utils import InvalidShapeError, get_const_tuple


def affine_grid(data: Tensor, target_shape: Any) -> Tensor:
    """The places that affine maps (batch, 2, 3) send the pixels of an image of ``target_shape`` to: (batch, 2, H, W).

    Channel 0 is the horizontal place, channel 1 the vertical one; the outermost pixels are at -1 and 1.
    """
    height, width = get_const_tuple(target_shape)

    def place(index: Any, size: Any) -> Any:
        if isinstance(size, int):
            step, start = (2.0 / (size - 1), -1.0) if size > 1 else (0.0, 0.0)
            return tir.const(start, data.dtype) + index.astype(data.dtype) * tir.const(step, data.dtype)
        spread = (size - 1).astype(data.dtype)
        return index.astype(data.dtype) * (tir.const(2, data.dtype) / spread) - tir.const(1, data.dtype)

    def element(n: Any, row: Any, i: Any, j: Any) -> Any:
        return data(n, row, 0) * place(j, width) + data(n, row, 1) * place(i, height) + data(n, row, 2)

    made: Tensor = te.compute(
        (data.shape[0], 2, height, width), element, name="affine_grid", tag=tag.INJECTIVE
    )
    return made


class _Padding:
    """What lies outside of the image."""

    def __init__(self, mode: str, align_corners: bool, dtype: str) -> None:
        if mode not in ("zeros", "border", "reflection"):
            raise OpAttributeInvalid(f"grid_sample pads with zeros, border or reflection, not {mode!r}")
        self.mode = mode
        self.align_corners = align_corners
        self.dtype = dtype

    def number(self, value: Any) -> Any:
        """A constant or an extent in the type of coordinates."""
        return (
            tir.const(value, self.dtype) if isinstance(value, (int, float)) else tir.Cast(self.dtype, value)
        )

    def pixel(self, place: Any, size: Any) -> Any:
        """A place in -1 to 1 converted to pixels."""
        extent = self.number(size)
        half, one = self.number(0.5), self.number(1)
        if self.align_corners:
            return (place + one) * half * (extent - one)
        return ((place + one) * extent - one) * half

    def inside(self, x: Any, size: Any) -> Any:
        """A coordinate brought to where there are pixels, or for zeros no farther away than every kernel reaches.

        A NaN becomes the lower end.
        """
        if self.mode == "zeros":
            return tir.Min(_at_least(x, self.number(-3)), self.number(size) + self.number(3))
        if self.mode == "reflection":
            x = self._reflected(x, size)
        return tir.Min(_at_least(x, self.number(0)), self.number(size) - self.number(1))

    def _reflected(self, x: Any, size: Any) -> Any:
        """A coordinate mirrored at the ends as often as needed."""
        extent = self.number(size)
        low = self.number(0.0 if self.align_corners else -0.5)
        # A span of zero (one pixel, aligned) has no mirror image; whatever comes out is then clipped to pixel 0.
        span = tir.Max(extent - self.number(1) if self.align_corners else extent, self.number(1e-6))
        away = te.abs(x - low)
        turns = te.floor(away / span)
        rest = away - turns * span
        odd = (turns - te.floor(turns * self.number(0.5)) * self.number(2)) > self.number(0.5)
        return low + tir.Select(odd, span - rest, rest)


def grid_sample(
    data: Tensor,
    grid: Tensor,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> Tensor:
    """``data`` read at the places of ``grid``: nearest, bilinear or bicubic between pixels.

    For NCHW the grid is (batch, 2, height, width), horizontal places first; for NCDHW (batch, 3, depth, height, width),
    horizontal, vertical, then depth. Outside of the image there are zeros, the border, or its reflection.
    """
    if layout not in ("NCHW", "NCDHW"):
        raise OpAttributeInvalid(f"grid_sample supports the layouts NCHW and NCDHW, not {layout!r}")
    count = len(layout) - 2
    if len(data.shape) != count + 2 or len(grid.shape) != count + 2:
        raise InvalidShapeError(f"grid_sample in layout {layout} takes tensors of {count + 2} dimensions")
    kind = grid.dtype if grid.dtype == "float64" else "float32"
    padding = _Padding(padding_mode, align_corners, kind)
    taps_of = {"nearest": _nearest, "bilinear": _linear, "linear": _linear, "bicubic": _cubic}
    if method not in taps_of or (count == 3 and method == "bicubic"):
        raise OpAttributeInvalid(f"grid_sample in layout {layout} has no method {method!r}")
    result = data.dtype

    def element(*indices: Any) -> Any:
        n, c, *space = indices
        taps = []
        for position in range(count):
            # The grid lists the innermost axis first.
            place = grid(n, count - 1 - position, *space).astype(kind)
            size = data.shape[2 + position]
            taps.append(taps_of[method](padding, padding.pixel(place, size), size))
        return _weighted(data, [n, c], taps, kind).astype(result)

    shape = (data.shape[0], data.shape[1], *grid.shape[2:])
    made: Tensor = te.compute(shape, element, name="grid_sample", tag=tag.INJECTIVE)
    return made


def _at_least(x: Any, low: Any) -> Any:
    """The larger of both; where ``x`` is NaN, the bound."""
    return tir.Select(x > low, x, low)


Taps = list[tuple[Any, Any, Any]]
"""Index, condition under which there is a pixel (None: always), weight (None: one)."""


def _tap(padding: _Padding, index: Any, size: Any, weight: Any) -> tuple[Any, Any, Any]:
    """A tap at an integer index that may lie outside."""
    clipped = minimum(maximum(index, 0), size - 1)
    exists = tir.all(index >= 0, index < size) if padding.mode == "zeros" else None
    return clipped, exists, weight


def _nearest(padding: _Padding, x: Any, size: Any) -> Taps:
    return [_tap(padding, te.nearbyint(padding.inside(x, size)).astype("int32"), size, None)]


def _linear(padding: _Padding, x: Any, size: Any) -> Taps:
    inside = padding.inside(x, size)
    low = te.floor(inside)
    part = inside - low
    index = low.astype("int32")
    return [
        _tap(padding, index, size, padding.number(1) - part),
        _tap(padding, index + 1, size, part),
    ]


def _cubic(padding: _Padding, x: Any, size: Any) -> Taps:
    # Each of the four taps is padded by itself; the limits only keep the conversion to an integer defined.
    limit = padding.number(2.0**30)
    bounded = tir.Min(_at_least(x, padding.number(0) - limit), limit)
    low = te.floor(bounded)
    weights = Interpolation("cubic", "floor", alpha=-0.75, dtype=padding.dtype).cubic_weights(bounded - low)
    made = []
    for offset, weight in zip((-1, 0, 1, 2), weights, strict=True):
        place = padding.inside(low + padding.number(offset), size)
        made.append(_tap(padding, te.nearbyint(place).astype("int32"), size, weight))
    return made


def _weighted(data: Tensor, at: list[Any], taps: list[Taps], kind: str) -> Any:
    """The weighted sum over the taps of all axes."""
    if not taps:
        return data(*at).astype(kind)
    total = None
    for index, exists, weight in taps[0]:
        value = _weighted(data, [*at, index], taps[1:], kind)
        if weight is not None:
            value = value * weight
        if exists is not None:
            value = tir.Select(exists, value, tir.const(0, kind))
        total = value if total is None else total + value
    return total
