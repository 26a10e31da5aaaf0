"""Factors that the copy engine of Hopper can fetch: matrices, or a batch of them, with one stride along each side.

The engine copies boxes of a tensor by itself, in the order that the matrix units read, and fills in zeros beyond the
tensor's edges. One thread asks for a box.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tilewright.arith import Analyzer
from tilewright.arith.pattern import integer_coefficients
from tilewright.ir.expr import IntImm, PrimExpr, Var, is_const
from tilewright.schedule.gpu.tensor_core.copies import PIECE_BYTES, ROW_BYTES, TileShape
from tilewright.schedule.gpu.tensor_core.factors import Axis, Factor, Product, size
from tilewright.tir import ptx

FARTHEST_STRIDE: Final = 1 << 40
"""Bytes between rows that a tensor map can express."""


@dataclass(frozen=True)
class Boxes:
    """A factor as ``batch`` matrices of ``outer`` by ``inner`` elements, the inner ones adjacent. The inner side is the
    depth if ``along_depth``, and the rows or columns of the product otherwise."""

    factor: Factor
    along_depth: bool
    batch: int
    outer: int
    inner: int
    batch_stride: int
    outer_stride: int

    def tensor_map(self, tile: TileShape) -> PrimExpr:
        """What the engine is told of the tensor, for copies of a tile, or of one of its panels."""
        shape, strides = [self.outer, self.inner], [self.outer_stride, 1]
        box = [tile.side if self.along_depth else tile.depth, tile.row]
        if self.batch > 1:
            shape, strides, box = [self.batch, *shape], [self.batch_stride, *strides], [1, *box]
        return ptx.tensor_map(str(self.factor.dtype), shape, strides, box, ROW_BYTES)

    def copies(
        self, tile: TileShape, side: PrimExpr, depth: PrimExpr
    ) -> list[tuple[int, int, list[PrimExpr]]]:
        """The copies of the tile at a side and a depth: the place in the tile, the number of elements, and the
        coordinates without that of the batch."""
        if self.along_depth:
            return [(0, tile.elements, [side, depth])]
        panel = tile.depth * tile.row
        return [
            (number * panel, panel, [depth, side + number * tile.row])
            for number in range(tile.side // tile.row)
        ]


def find_boxes(product: Product) -> tuple[Boxes, Boxes] | None:
    """Both factors of a product as the copy engine sees them, if it can fetch them."""
    a = _boxes(product, product.a, product.rows, not product.reads_rows)
    b = _boxes(product, product.b, product.columns, not product.reads_columns)
    # One tensor has one map, and that has one size of boxes.
    return None if a is None or b is None or product.a.tensor == product.b.tensor else (a, b)


def _boxes(product: Product, factor: Factor, side: Sequence[Axis], along_depth: bool) -> Boxes | None:
    if factor.inside or not all(isinstance(extent, IntImm) for extent in factor.tensor.shape):
        return None
    strides = _strides(factor, product)
    if strides is None:
        return None
    of_side, of_depth, of_batch = (_chain(axes, strides) for axes in (side, product.depth, product.batch))
    if of_side is None or of_depth is None or of_batch is None:
        return None
    outer_stride, inner_stride = (of_side, of_depth) if along_depth else (of_depth, of_side)
    outer, inner = (side, product.depth) if along_depth else (product.depth, side)
    if inner_stride != 1:
        return None
    # A stride that no step takes only has to be a possible one.
    outer_stride = outer_stride if size(outer) > 1 else _whole_pieces(size(inner), factor)
    batch = size(product.batch) if of_batch else 1
    for stride in (outer_stride, of_batch if batch > 1 else PIECE_BYTES):
        num_bytes = stride * factor.dtype.itemsize
        if stride <= 0 or num_bytes % PIECE_BYTES or num_bytes >= FARTHEST_STRIDE:
            return None
    return Boxes(factor, along_depth, batch, size(outer), size(inner), of_batch, outer_stride)


def _whole_pieces(elements: int, factor: Factor) -> int:
    piece = PIECE_BYTES // factor.dtype.itemsize
    return -(-elements // piece) * piece


def _strides(factor: Factor, product: Product) -> Mapping[Var, int] | None:
    """How far a step along each axis leads, if all begin at the first element and steps always lead equally far."""
    variables = [axis.var for axis in product.axes]
    analyzer = Analyzer()
    for variable, domain in product.ranges.items():
        analyzer.bind(variable, domain)
    found = integer_coefficients(analyzer.simplify(factor.address()), variables)
    if found is None or not is_const(found[1], 0):
        return None
    return dict(zip(variables, found[0], strict=True))


def _chain(axes: Sequence[Axis], strides: Mapping[Var, int]) -> int | None:
    """The stride of several axes as one; 0 if none of them moves."""
    stride: int | None = None
    expected = 0
    for axis in reversed([one for one in axes if one.extent > 1]):
        if stride is None:
            stride = strides[axis.var]
        elif strides[axis.var] != expected:
            return None
        expected = strides[axis.var] * axis.extent
    return stride or 0
