"""Elements spread apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import te, tir
from tilewright.ir.operators import as_expr, cast
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.utils import InvalidShapeError, equal_const_int, simplify


def dilate(
    data: Tensor, strides: Sequence[Any], dilation_value: Any = 0.0, name: str = "DilatedInput"
) -> Tensor:
    """``data`` with ``stride - 1`` elements of ``dilation_value`` between neighbours along each dimension."""
    if len(strides) != len(data.shape):
        raise InvalidShapeError(
            f"dilate needs one stride for each of the {len(data.shape)} dimensions, not {len(strides)}"
        )
    shape = [
        extent if equal_const_int(stride, 1) else simplify((extent - 1) * stride + 1)
        for extent, stride in zip(data.shape, strides, strict=True)
    ]
    value = cast(data.dtype, as_expr(dilation_value))

    def element(*indices: Any) -> Any:
        on_grid = []
        source = []
        for index, stride in zip(indices, strides, strict=True):
            if equal_const_int(stride, 1):
                source.append(index)
            else:
                source.append(index // stride)
                on_grid.append((index % stride).equal(0))
        return tir.if_then_else(tir.all(*on_grid), data(*source), value) if on_grid else data(*source)

    made: Tensor = te.compute(shape, element, name=name, tag=f"{tag.INJECTIVE},dilate")
    return made
