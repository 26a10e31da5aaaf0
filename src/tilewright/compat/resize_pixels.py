"""The steps of TVM's ``topi.image.resize``: where a pixel lies, and reading one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import tir
from tilewright.ir.operators import as_expr, maximum, minimum
from tilewright.support.errors import OpAttributeInvalid
from tilewright.topi.image.coordinates import MODES, ROUNDING, Real, coordinate

__all__ = [
    "get_1d_indices",
    "get_1d_pixel",
    "get_2d_indices",
    "get_2d_pixel",
    "get_3d_indices",
    "get_3d_pixel",
    "get_closest_index",
    "get_inx",
]


def _indices(indices: Sequence[Any], layout: str, letters: str) -> list[Any]:
    """The indices of N, C and the axes of space, then the inner ones of C and N (0 where there are none)."""
    places = {letter: place for place, letter in enumerate(one for one in layout if not one.isdigit())}
    missing = [letter for letter in f"NC{letters}" if letter not in places]
    if missing or len(places) > len(indices):
        raise OpAttributeInvalid(
            f"the layout {layout!r} is not one of {len(indices)} axes with N, C and {letters}"
        )
    return [indices[places[letter]] if letter in places else 0 for letter in f"NC{letters}"] + [
        indices[places[letter]] if letter in places else 0 for letter in "cn"
    ]


def get_1d_indices(indices: Sequence[Any], layout: str = "NCW") -> tuple[Any, ...]:
    """(n, c, x, inner c, inner n) of a place in a layout."""
    return tuple(_indices(indices, layout, "W"))


def get_2d_indices(indices: Sequence[Any], layout: str = "NCHW") -> tuple[Any, ...]:
    """(n, c, y, x, inner c, inner n) of a place in a layout."""
    return tuple(_indices(indices, layout, "HW"))


def get_3d_indices(indices: Sequence[Any], layout: str = "NCDHW") -> tuple[Any, ...]:
    """(n, c, z, y, x, inner c) of a place in a layout."""
    return tuple(_indices(indices, layout, "DHW")[:-1])


def _pixel(data: Any, layout: str, extents: Sequence[Any], named: dict[str, Any], space: str) -> Any:
    """The element of a layout at these indices; those of space are kept inside the image."""
    inside = {
        letter: maximum(minimum(named[letter], extent - 1), 0)
        for letter, extent in zip(space, extents, strict=True)
    }
    letters = [letter for letter in layout if not letter.isdigit()]
    return data(*[inside.get(letter, named.get(letter)) for letter in letters]).astype("float")


def get_1d_pixel(
    data: Any, layout: str, image_width: Any, n: Any, c: Any, x: Any, cc: Any, ib: Any, ic: Any
) -> Any:
    """A pixel as a floating-point number; beyond the border, the nearest one."""
    return _pixel(data, layout, [image_width], {"N": n, "C": c, "W": x, "c": ic or cc, "n": ib}, "W")


def get_2d_pixel(
    data: Any,
    layout: str,
    image_height: Any,
    image_width: Any,
    n: Any,
    c: Any,
    y: Any,
    x: Any,
    cc: Any,
    ib: Any,
    ic: Any,
) -> Any:
    """A pixel as a floating-point number; beyond the border, the nearest one."""
    named = {"N": n, "C": c, "H": y, "W": x, "c": ic or cc, "n": ib}
    return _pixel(data, layout, [image_height, image_width], named, "HW")


def get_3d_pixel(
    data: Any,
    layout: str,
    image_depth: Any,
    image_height: Any,
    image_width: Any,
    n: Any,
    c: Any,
    z: Any,
    y: Any,
    x: Any,
    cc: Any,
) -> Any:
    """A pixel as a floating-point number; beyond the border, the nearest one."""
    named = {"N": n, "C": c, "D": z, "H": y, "W": x, "c": cc}
    return _pixel(data, layout, [image_depth, image_height, image_width], named, "DHW")


def get_inx(x: Any, image_width: Any, target_width: Any, coordinate_transformation_mode: str) -> Any:
    """Where a pixel of the output lies in the input, as a floating-point number."""
    if coordinate_transformation_mode not in MODES:
        raise OpAttributeInvalid(
            f"a coordinate transformation is one of {', '.join(MODES)}, not {coordinate_transformation_mode!r}"
        )
    place = coordinate(as_expr(x), image_width, target_width, coordinate_transformation_mode)
    return place.floor().astype("float32") + place.fraction("float32")


def get_closest_index(in_x: Any, rounding_method: str, boxes: Any) -> Any:
    """The integer that a rounding method takes for a position: ``round`` with boxes, ``floor`` without, by default."""
    method = rounding_method or ("floor" if boxes is None else "round")
    if method not in ROUNDING:
        raise OpAttributeInvalid(
            f"a rounding method is one of {', '.join(ROUNDING)}, not {rounding_method!r}"
        )
    # Positions that should be whole are not always, by a rounding of the scale.
    shifted = in_x + tir.const(1e-5, "float32") if method == "floor" else in_x
    return Real(shifted).nearest(method).astype("int32")
