"""Padding: with a value, and with what lies inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import te, tir
from tilewright.ir.operators import as_expr, cast, maximum, minimum
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.utils import InvalidShapeError, get_const_tuple, simplify


def _amounts(
    data: Tensor, pad_before: Sequence[Any], pad_after: Sequence[Any] | None
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Both amounts for every dimension; those after are as those before unless they are given."""
    before = get_const_tuple(pad_before)
    after = before if not pad_after else get_const_tuple(pad_after)
    for amounts, what in ((before, "pad_before"), (after, "pad_after")):
        if len(amounts) != len(data.shape):
            raise InvalidShapeError(
                f"{what} needs one number for each of the {len(data.shape)} dimensions, not {len(amounts)}"
            )
    return before, after


def _may_be_positive(amount: Any) -> bool:
    return not isinstance(amount, int) or amount > 0


def pad(
    data: Tensor,
    pad_before: Sequence[Any],
    pad_after: Sequence[Any] | None = None,
    pad_value: Any = 0.0,
    name: str = "PadInput",
) -> Tensor:
    """``data`` with ``pad_before`` and ``pad_after`` elements of ``pad_value`` around it; negative amounts crop."""
    before, after = _amounts(data, pad_before, pad_after)
    shape = [
        simplify(extent + first + last) for extent, first, last in zip(data.shape, before, after, strict=True)
    ]
    value = cast(data.dtype, as_expr(pad_value))

    def element(*indices: Any) -> Any:
        inside = []
        source = []
        for index, extent, first, last in zip(indices, data.shape, before, after, strict=True):
            moved = index - first
            source.append(moved)
            if _may_be_positive(first):
                inside.append(index >= first)
            if _may_be_positive(last):
                inside.append(moved < extent)
        return tir.if_then_else(tir.all(*inside), data(*source), value) if inside else data(*source)

    made: Tensor = te.compute(shape, element, name=name, tag=f"{tag.INJECTIVE},pad")
    return made


def mirror_pad(
    data: Tensor,
    pad_before: Sequence[Any],
    pad_after: Sequence[Any] | None = None,
    mode: str = "SYMMETRIC",
    name: str = "MirrorPadInput",
) -> Tensor:
    """``data`` continued by its mirror image; the edge itself is repeated in mode SYMMETRIC, not in mode REFLECT."""
    if mode not in ("SYMMETRIC", "REFLECT"):
        raise OpAttributeInvalid(f"mirror_pad supports the modes SYMMETRIC and REFLECT, not {mode!r}")
    before, after = _amounts(data, pad_before, pad_after)
    edge = 0 if mode == "SYMMETRIC" else 1
    for extent, amounts in zip(get_const_tuple(data.shape), zip(before, after, strict=True), strict=True):
        for amount in amounts:
            if isinstance(amount, int) and (
                amount < 0 or (isinstance(extent, int) and amount > extent - edge)
            ):
                raise InvalidShapeError(
                    f"mirror_pad in mode {mode} cannot add {amount} elements to a dimension of size {extent}"
                )
    shape = [
        simplify(extent + first + last) for extent, first, last in zip(data.shape, before, after, strict=True)
    ]

    def element(*indices: Any) -> Any:
        source = []
        for index, extent, first, last in zip(indices, data.shape, before, after, strict=True):
            moved = index - first
            if _may_be_positive(last):
                moved = tir.Select(moved >= extent, 2 * extent - 1 - edge - moved, moved)
            if _may_be_positive(first):
                moved = tir.Select(index < first, first - index - 1 + edge, moved)
            if not isinstance(extent, tir.IntImm):
                # How wide a mirror image may be is checked before the program runs; nothing outside is read either way.
                moved = minimum(maximum(moved, 0), extent - 1)
            source.append(moved)
        return data(*source)

    made: Tensor = te.compute(shape, element, name=name, tag=f"{tag.INJECTIVE},pad")
    return made


def pad_spatial(
    data: Tensor,
    axes: Sequence[int],
    before: Sequence[Any],
    after: Sequence[Any],
    pad_value: Any = 0.0,
    name: str = "pad_temp",
) -> Tensor:
    """``data`` padded along some of its axes, in a stage of its own; itself where nothing is to be added."""
    if all(isinstance(amount, int) and amount == 0 for amount in (*before, *after)):
        return data
    every_before = [0] * len(data.shape)
    every_after = [0] * len(data.shape)
    for axis, first, last in zip(axes, before, after, strict=True):
        every_before[axis], every_after[axis] = first, last
    return pad(data, every_before, every_after, pad_value, name)
