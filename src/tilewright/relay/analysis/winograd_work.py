"""The operations that a Winograd convolution really does: fewer products than its definition, and the transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Call
from tilewright.tir.data_layout import Layout
from tilewright.topi.nn.winograd_util import winograd_matrices

WINOGRAD_CONVOLUTIONS: Final = frozenset(
    f"nn.contrib_conv{rank}d_winograd_without_weight_transform" for rank in (2, 3)
)


def winograd_operations(call: Call) -> int:
    """The operations of one convolution whose weight was transformed beforehand: a multiply-accumulate for each element
    of the weight and each tile, and both transforms of every tile. A convolution of volumes counts the products only.
    """
    attrs: Any = call.attrs
    weight, result = _shape(call.args[1].checked_type), _shape(call.checked_type)
    layout = Layout(attrs.out_layout or attrs.data_layout)
    taps = int(attrs.kernel_size[-1]) if attrs.kernel_size is not None else 3
    positions = weight[0]
    tile = positions - taps + 1
    # A volume whose depth is not transformed has the depth's taps in its weight, and a tile for each plane.
    tiled = "HW" if "D" not in layout or weight[2] != positions else "DHW"
    tiles = result[layout.index_of("N")]
    for axis in "DHW":
        if axis in layout:
            tiles *= (
                math.ceil(result[layout.index_of(axis)] / tile)
                if axis in tiled
                else result[layout.index_of(axis)]
            )
    products = 2 * tiles * math.prod(weight)
    if "D" in layout:
        return products
    outputs = _channels(result, layout)
    inputs = math.prod(weight) // (positions * positions * outputs)
    back, there, _ = winograd_matrices(tile, taps)
    into = 2 * positions * input_transform_operations(there.T.tolist())
    out = (positions + tile) * output_transform_operations(back.T.tolist())
    return products + tiles * (inputs * into + outputs * out)


def _shape(kind: Any) -> tuple[int, ...]:
    assert isinstance(kind, TensorType)
    return kind.concrete_shape


def _channels(shape: Sequence[int], layout: Layout) -> int:
    inner = layout.index_of("c")
    return shape[layout.index_of("C")] * (shape[inner] if inner >= 0 else 1)


def _sum_operations(coefficients: Sequence[float]) -> int:
    """Additions of a weighted sum, and multiplications by what is neither one nor its negative."""
    present = [abs(one) for one in coefficients if one]
    return max(len(present) - 1, 0) + sum(one != 1 for one in present)


def input_transform_operations(matrix: Sequence[Sequence[float]]) -> int:
    """Operations of ``matrix @ vector``, where rows of opposite points share the sums of even and of odd elements."""
    halves: set[tuple[int, tuple[float, ...]]] = set()
    total = 0
    for row in matrix:
        parts = [(first, _positive(row[first::2])) for first in (0, 1) if any(row[first::2])]
        total += len(parts) - 1
        halves.update(parts)
    return total + sum(_sum_operations(coefficients) for _, coefficients in halves)


def _positive(coefficients: Sequence[float]) -> tuple[float, ...]:
    """The coefficients with the sign that makes the first of them positive."""
    sign = next(math.copysign(1.0, one) for one in coefficients if one)
    return tuple(sign * one for one in coefficients)


def output_transform_operations(matrix: Sequence[Sequence[float]]) -> int:
    """Operations of ``matrix @ vector``, where the sums and differences of opposite points are made once."""
    pairs = (len(matrix[0]) - 2) // 2
    rows = [[row[0], *row[1:-1:2], row[-1]] for row in matrix]
    return 2 * pairs + sum(_sum_operations(row) for row in rows)
