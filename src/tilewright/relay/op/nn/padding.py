"""Padding and dilation of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import te, tir, topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call, Constant, const
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout
from tilewright.relay.op.shapes import Dimension, combine, dims, is_any, require_at_most, tensor
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te.tensor import Tensor
from tilewright.topi import tag


@attributes
class PadAttrs(OpAttrs):
    """pad: (before, after) for each axis; what is added is a value, the edge, or the mirror image."""

    pad_width: Any = ()
    pad_mode: str = "constant"

    def check(self) -> None:
        """The mode must be a known one."""
        if self.pad_mode not in ("constant", "edge", "reflect"):
            raise OpAttributeInvalid(f'pad_mode is "constant", "edge" or "reflect", not {self.pad_mode!r}')


@attributes
class MirrorPadAttrs(OpAttrs):
    """mirror_pad: whether the edge itself is repeated (SYMMETRIC) or not (REFLECT)."""

    mode: str = "SYMMETRIC"
    pad_width: Any = ()

    def check(self) -> None:
        """The mode must be a known one."""
        if self.mode not in ("SYMMETRIC", "REFLECT"):
            raise OpAttributeInvalid(f"mirror_pad knows the modes SYMMETRIC and REFLECT, not {self.mode!r}")


@attributes
class DilateAttrs(OpAttrs):
    """dilate: how far apart elements are to be, and what is put between them."""

    strides: Any = ()
    dilation_value: float = 0.0


def padded_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """The data's shape, each axis longer by what is added."""
    data = tensor(types[0], "the data")
    if data is None:
        return None
    if len(attrs.pad_width) != len(data.shape):
        raise RelationError(
            f"pad_width has {len(attrs.pad_width)} pairs for data of {len(data.shape)} dimensions"
        )
    shape = []
    for extent, pair in zip(dims(data), attrs.pad_width, strict=True):
        if len(pair) != 2:
            raise RelationError(f"pad_width has pairs of numbers, not {pair}")
        shape.append(combine(lambda extent, more=pair[0] + pair[1]: extent + more, extent))
    return TensorType(shape, data.dtype)


def require_room(extents: Sequence[Dimension], attrs: Any, mode: str) -> None:
    """Each axis has the elements that its padding repeats: one of them for the edge, and for a mirror image as many as
    are added, besides the edge where that is not repeated."""
    for axis, (extent, pair) in enumerate(zip(extents, attrs.pad_width, strict=True)):
        widest = max(pair)
        if mode == "constant" or widest <= 0:
            continue
        least = {"edge": 1, "symmetric": widest, "reflect": widest + 1}[mode]
        require_at_most(
            least,
            extent,
            f"padding in mode {mode} adds {widest} elements at an end of axis {axis}, "
            f"which must have {least} or more",
        )


def mirror_pad_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """As ``padded_relation``; no mirror image is wider than the data."""
    made = padded_relation(types, attrs)
    data = tensor(types[0], "the data")
    if data is not None:
        require_room(dims(data), attrs, attrs.mode.lower())
    return made


def pad_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """As ``padded_relation``, with the value to add."""
    value = tensor(types[1], "the value")
    if value is None:
        return None
    if value.shape and not (len(value.shape) == 1 and (dims(value)[0] == 1 or is_any(dims(value)[0]))):
        raise RelationError(f"the value to pad with is a scalar, not {value}")
    made = padded_relation(types, attrs)
    data = tensor(types[0], "the data")
    if data is not None:
        require_room(dims(data), attrs, attrs.pad_mode)
    return made


def pad_layouts(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """The data may have any layout that splits no axis to which something is added, or into blocks of which whole ones
    are added."""
    home, new = original[0], offered[0] if offered else None
    rest = tuple(original[1:])
    unchanged = Layouts((home, *rest), (home,), attrs)
    if home is None or new is None or len(home) != len(home.primal_axes()):
        return unchanged
    widths = dict(zip(home.primal_axes(), attrs.pad_width, strict=True))
    if sorted(new.primal_axes()) != sorted(widths):
        return unchanged
    extents = dict(zip(home.primal_axes(), dims(types[0]), strict=True))
    moved = []
    for place in range(len(new)):
        axis = new[place]
        width = tuple(widths[axis.upper()])
        factor = new.factor_of(axis)
        if factor > 0 and width != (0, 0):
            extent = extents[axis.upper()]
            if getattr(attrs, "pad_mode", "") != "constant" or not isinstance(extent, int):
                return unchanged
            if any(amount % factor for amount in (extent, *width)):
                return unchanged
            width = (width[0] // factor, width[1] // factor) if axis.isupper() else (0, 0)
        moved.append(width)
    return Layouts((new, *rest), (new,), attrs.replace(pad_width=tuple(moved)))


def _sides(attrs: Any) -> tuple[list[Any], list[Any]]:
    return [pair[0] for pair in attrs.pad_width], [pair[1] for pair in attrs.pad_width]


def _edge_padded(data: Tensor, before: Sequence[Any], after: Sequence[Any]) -> Tensor:
    """Data continued by their first and last elements."""
    shape = [extent + first + last for extent, first, last in zip(data.shape, before, after, strict=True)]

    def element(*indices: Any) -> Any:
        places = [
            tir.Max(tir.Min(index - first, extent - 1), tir.const(0, index.dtype))
            for index, first, extent in zip(indices, before, data.shape, strict=True)
        ]
        return data(*places)

    made: Tensor = te.compute(shape, element, name="T_pad", tag=f"{tag.INJECTIVE},pad")
    return made


def _pad_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    data, value = inputs
    before, after = _sides(attrs)
    if attrs.pad_mode == "edge":
        return [_edge_padded(data, before, after)]
    if attrs.pad_mode == "reflect":
        return [topi.nn.mirror_pad(data, before, after, "REFLECT")]
    return [topi.nn.pad(data, before, after, value(*([0] * len(value.shape))), name="T_pad")]


def _pad_reference(attrs: Any, data: Any, value: Any) -> Any:
    if attrs.pad_mode != "constant":
        return np.pad(data, attrs.pad_width, mode=attrs.pad_mode)
    # A negative amount takes elements away.
    inner = tuple(
        slice(max(-first, 0), extent - max(-last, 0))
        for (first, last), extent in zip(attrs.pad_width, data.shape, strict=True)
    )
    widths = [(max(first, 0), max(last, 0)) for first, last in attrs.pad_width]
    filler = value.reshape(()).astype(data.dtype)
    return np.pad(data[inner], widths, constant_values=filler) if widths else data


PAD = define(
    "nn.pad",
    arguments=("data", "pad_val"),
    attrs=PadAttrs,
    relation=pad_relation,
    compute=_pad_compute,
    reference=_pad_reference,
    layout=pad_layouts,
    kind=OpPattern.INJECTIVE,
    level=2,
    description="The data with padding.",
)


def _pairs(pad_width: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(amount) for amount in pair) for pair in pad_width)


def pad(data: RelayExpr, pad_width: Any, pad_value: Any = 0, pad_mode: str = "constant") -> Call:
    """``data`` with ``pad_width`` elements, pairs of before and after, added to each axis: a value ("constant"), the
    edge, or the mirror image without the edge ("reflect"). Amounts that are an expression are found at run time."""
    if isinstance(pad_width, Constant):
        pad_width = pad_width.data.numpy()
    value = pad_value if isinstance(pad_value, RelayExpr) else const(pad_value)
    if isinstance(pad_width, RelayExpr):
        return call("dyn.nn.pad", data, pad_width, value, pad_mode=pad_mode)
    return Call(PAD, (data, value), PadAttrs(_pairs(pad_width), pad_mode))


MIRROR_PAD = define(
    "nn.mirror_pad",
    arguments=("data",),
    attrs=MirrorPadAttrs,
    relation=mirror_pad_relation,
    compute=lambda attrs, inputs, out_type: [topi.nn.mirror_pad(inputs[0], *_sides(attrs), attrs.mode)],
    reference=lambda attrs, data: np.pad(
        data, attrs.pad_width, mode="symmetric" if attrs.mode == "SYMMETRIC" else "reflect"
    ),
    layout=pad_layouts,
    kind=OpPattern.INJECTIVE,
    level=2,
    description="Data continued by their mirror image.",
)


def mirror_pad(data: RelayExpr, pad_width: Any, mode: str = "SYMMETRIC") -> Call:
    """``data`` continued by their mirror image; the edge itself is repeated in mode SYMMETRIC, not in mode REFLECT."""
    return Call(MIRROR_PAD, (data,), MirrorPadAttrs(mode, _pairs(pad_width)))


def dilate_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """Each axis longer by what is between its elements."""
    data = tensor(types[0], "the data")
    if data is None:
        return None
    if len(attrs.strides) != len(data.shape):
        raise RelationError(f"strides have {len(attrs.strides)} values for {len(data.shape)} dimensions")
    shape = [
        combine(lambda extent, stride=stride: (extent - 1) * stride + 1, extent)
        for extent, stride in zip(dims(data), attrs.strides, strict=True)
    ]
    return TensorType(shape, data.dtype)


def _dilate_reference(attrs: Any, data: Any) -> Any:
    shape = [(extent - 1) * stride + 1 for extent, stride in zip(data.shape, attrs.strides, strict=True)]
    made = np.full(shape, attrs.dilation_value, data.dtype)
    made[tuple(slice(None, None, stride) for stride in attrs.strides)] = data
    return made


DILATE = define(
    "nn.dilate",
    arguments=("x",),
    attrs=DilateAttrs,
    relation=dilate_relation,
    compute=lambda attrs, inputs, out_type: [topi.nn.dilate(inputs[0], attrs.strides, attrs.dilation_value)],
    reference=_dilate_reference,
    kind=OpPattern.INJECTIVE,
    level=10,
    description="Elements spread apart.",
)


def dilate(data: RelayExpr, strides: Any, dilation_value: float = 0.0) -> Call:
    """``data`` with ``stride - 1`` elements of ``dilation_value`` between its elements along each axis."""
    return Call(DILATE, (data,), DilateAttrs(tuple(strides), dilation_value))
