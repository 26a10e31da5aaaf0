"""What the operators on windows share: attributes per axis, padding, layouts, and the type that sums are kept in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright import te
from tilewright.ir.expr import Select
from tilewright.ir.operators import least
from tilewright.support.dtype import DataType
from tilewright.support.errors import OpAttributeInvalid
from tilewright.target.target import Target
from tilewright.te import Tensor
from tilewright.te.rewritten_layout import RewrittenLayout
from tilewright.tir.data_layout import Layout
from tilewright.tir.reducer import comm_reducer
from tilewright.topi import tag
from tilewright.topi.utils import InvalidShapeError, equal_const_int, get_const_tuple, simplify


def per_axis(value: Any, count: int, what: str) -> tuple[Any, ...]:
    """One value for each of ``count`` axes, from one for all or one each."""
    values = tuple(value) if isinstance(value, (tuple, list, np.ndarray)) else (value,)
    if len(values) == 1:
        values *= count
    if len(values) != count:
        raise OpAttributeInvalid(f"{what} needs one value or {count}, not {value}")
    return get_const_tuple(values)


def pad_amounts(padding: Any, kernel: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The elements to add before and after each spatial axis, for windows of the given (dilated) extents.

    ``padding`` is ``"VALID"``, ``"SAME"``, one number, one for each axis, or all those before and then all those after.
    """
    count = len(kernel)
    if isinstance(padding, str):
        if padding.upper() == "VALID":
            return [0] * count, [0] * count
        if padding.upper() != "SAME":
            raise OpAttributeInvalid(f'padding is "VALID", "SAME" or numbers, not {padding!r}')
        total = [simplify(extent - 1) for extent in kernel]
        before = [simplify((amount + 1) // 2) for amount in total]
        return before, [simplify(amount - first) for amount, first in zip(total, before, strict=True)]
    values = list(padding) if isinstance(padding, (tuple, list)) else [padding]
    values = list(get_const_tuple(values))
    if len(values) == 1:
        values *= count
    if len(values) == count:
        return values, list(values)
    if len(values) == 2 * count:
        return values[:count], values[count:]
    raise OpAttributeInvalid(
        f"padding of {count} axes is one number, {count} numbers or {2 * count} numbers, not {padding}"
    )


def get_pad_tuple(padding: Any, kernel: Sequence[Any]) -> tuple[Any, Any, Any, Any]:
    """The padding (top, left, bottom, right) of a two-dimensional window."""
    (top, left), (down, right) = pad_amounts(padding, kernel)
    return top, left, down, right


def get_pad_tuple1d(padding: Any, kernel: Any) -> tuple[Any, Any]:
    """The padding (left, right) of a one-dimensional window."""
    extents = kernel if isinstance(kernel, (tuple, list)) else (kernel,)
    (left,), (right,) = pad_amounts(padding, extents)
    return left, right


def get_pad_tuple3d(padding: Any, kernel: Sequence[Any]) -> tuple[Any, Any, Any, Any, Any, Any]:
    """The padding (front, top, left, back, bottom, right) of a three-dimensional window."""
    (front, top, left), (back, down, right) = pad_amounts(padding, kernel)
    return front, top, left, back, down, right


def infer_pad(data: Tensor, data_pad: Tensor | None) -> tuple[Any, Any]:
    """The padding (vertical, horizontal) on each side that made ``data_pad`` of ``data``, both NCHW."""
    if data_pad is None:
        return 0, 0
    amounts = [
        simplify((padded - extent) // 2)
        for extent, padded in zip(data.shape[2:4], data_pad.shape[2:4], strict=True)
    ]
    vertical, horizontal = get_const_tuple(amounts)
    return vertical, horizontal


def infer_stride(data: Tensor, kernel: Tensor, out: Tensor) -> tuple[Any, Any]:
    """The strides (vertical, horizontal) of a convolution without padding, all tensors NCHW."""
    strides = [
        simplify((extent - window) // (given - 1)) if not equal_const_int(given, 1) else 1
        for extent, window, given in zip(data.shape[2:4], kernel.shape[2:4], out.shape[2:4], strict=True)
    ]
    vertical, horizontal = get_const_tuple(strides)
    return vertical, horizontal


def spatial_axes(layout: str, rank: int, letters: str) -> list[int]:
    """The positions of the spatial axes in a layout such as ``NCHW`` or ``NHWC16c``; they must not be split."""
    axes = Layout(layout)
    if len(axes) != rank:
        raise InvalidShapeError(f"layout {layout} has {len(axes)} axes, the tensor {rank}")
    positions = [axes.index_of(letter) for letter in letters]
    split = [letter for letter in letters if letter.lower() in axes]
    if -1 in positions or split:
        raise OpAttributeInvalid(
            f"layout {layout} must have the axes {', '.join(letters)}, and those must not be split into blocks"
        )
    return positions


def channel_block(layout: str) -> int:
    """The channels of a block of ``NCHW16c``; -1 for NCHW. Other layouts are an error."""
    block = Layout(layout).factor_of("C")
    if layout not in ("NCHW", f"NCHW{block}c"):
        raise OpAttributeInvalid(f"the layout is NCHW with or without blocks of channels, not {layout!r}")
    return block


def in_rewritten_layout(
    weight: Tensor, layout: str, axes: Sequence[str], compute: Callable[[Tensor], Tensor]
) -> Tensor:
    """What a computation gives, with its weight in the layout that the auto-scheduler chose: ``4k16j8k`` lists the
    extents and names of parts of axes. ``axes`` are the names of the weight's dimensions in its own layout."""
    (made,) = RewrittenLayout.from_text(layout, axes).compute(weight, lambda original: [compute(original)])
    return made


def sum_types(dtype: str, out_dtype: str | None) -> tuple[DataType, DataType]:
    """The type to add products in, and the type of the result.

    Sixteen-bit floats are added in float32 and rounded once at the end; any other ``out_dtype`` is used for both.
    """
    kind = DataType(out_dtype or dtype)
    return (DataType("float32") if kind.is_float and kind.bits == 16 else kind), kind


_largest_of_numbers = comm_reducer(lambda x, y: Select(y > x, y, x), least, name="largest_number")


def largest_number(element: Any, axis: Any) -> Any:
    """The maximum, for softmax: that of what is not NaN will do, because the sum of a row finds the NaN in any case.

    CPUs have an instruction for that one, GPUs for the maximum that propagates NaN.
    """
    target = Target.current()
    reducer = te.max if target is not None and "gpu" in target.keys else _largest_of_numbers
    return reducer(element, axis=axis)


def as_type(tensor: Tensor, dtype: str) -> Tensor:
    """The tensor in a type: itself where it has it, else an element-wise conversion."""
    if tensor.dtype is DataType(dtype):
        return tensor
    made: Tensor = te.compute(
        tensor.shape,
        lambda *indices: tensor(*indices).astype(dtype),
        name=f"{tensor.op.name}_cast",
        tag=tag.ELEMWISE,
    )
    return made
