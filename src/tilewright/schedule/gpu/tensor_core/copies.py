"""Copies of tiles from global to shared memory: what each thread copies, and where it puts it.

A tile is kept in rows of 128 bytes. Along such a row runs the axis that is contiguous in memory: the depth, with a row
for each row (or column) of the product; or the rows (or columns), as many as fit to a *panel*, with a row for each step
of the depth. The 16-byte pieces of row ``r`` are stored in the order ``piece ^ (r % 8)``, so that neither copies nor
multiplications meet bank conflicts; the matrix units of Hopper and its copy engine know the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr, Range, Select, Var
from tilewright.ir.functor import substitute_expr, uses_var
from tilewright.schedule.gpu.tensor_core.factors import Axis, Factor, decode, size
from tilewright.tir import ptx
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.tir.op import if_then_else

ROW_BYTES: Final = 128
PIECE_BYTES: Final = 16
LEAST_ASYNC_BYTES: Final = 4


@dataclass(frozen=True)
class TileShape:
    """A tile of ``side`` rows or columns by ``depth`` steps in shared memory."""

    side: int
    depth: int
    itemsize: int
    along_depth: bool

    @property
    def elements(self) -> int:
        """Its size."""
        return self.side * self.depth

    @property
    def row(self) -> int:
        """Elements of a row of 128 bytes."""
        return ROW_BYTES // self.itemsize

    def place(self, row: PrimExpr, position: PrimExpr) -> PrimExpr:
        """Where an element of a row of 128 bytes is; rows are counted through all panels."""
        piece = PIECE_BYTES // self.itemsize
        return row * self.row + ((position // piece) ^ (row % 8)) * piece + position % piece


@dataclass(frozen=True)
class Place:
    """One row or column, as a thread keeps it through all steps of the depth."""

    values: Mapping[Var, PrimExpr]
    address: PrimExpr
    sums: Sequence[PrimExpr]
    exists: PrimExpr | None


@dataclass(frozen=True)
class Step:
    """One place along the depth."""

    values: Mapping[Var, PrimExpr]
    exists: PrimExpr | None


class TileCopies:
    """The copies of one factor's tiles by all threads of a block."""

    def __init__(
        self,
        builder: IRBuilder,
        factor: Factor,
        source: BufferVar,
        tile: TileShape,
        axes: tuple[Sequence[Axis], Sequence[Axis]],
        first: PrimExpr,
        end: PrimExpr | None,
        thread: PrimExpr,
        threads: int,
        run: int,
    ) -> None:
        """``axes`` are those of the side and of the depth. ``first`` is the tile's first row or column, ``run`` how
        many elements are copied at once; from ``end`` on the depth counts as zero, if it is given."""
        self.builder = builder
        self.factor = factor
        self.source = source
        self.tile = tile
        self.side_axes, self.depth_axes = axes
        self.run = run
        self.end = end
        units = tile.row // run
        self.rows_at_once = threads // units
        self.rows = tile.elements // tile.row
        # Threads that copy at the same time are in one panel.
        assert tile.along_depth or tile.depth % self.rows_at_once == 0
        self.unit = builder.let("unit", thread % units * run)
        self.row = builder.let("row", thread // units)
        analyzer = Analyzer()
        for axis in (*self.side_axes, *self.depth_axes):
            analyzer.bind(axis.var, Range(0, axis.extent))
        self.address = self._parted(factor.address(), analyzer)
        self.inside = [(self._parted(one.a - one.b, analyzer), type(one)) for one in factor.inside]
        if tile.along_depth:
            within = [self.row + number * self.rows_at_once for number in range(self.passes)]
        else:
            within = [self.unit + number * tile.row for number in range(tile.side // tile.row)]
        self.places = [self._place(builder.let("side", first + one)) for one in within]

    @property
    def passes(self) -> int:
        """How many rows of 128 bytes each thread copies a part of."""
        return -(-self.rows // self.rows_at_once)

    def _parted(self, expr: PrimExpr, analyzer: Analyzer) -> tuple[PrimExpr, PrimExpr]:
        """An expression as the sum of what depends on the side only, computed once, and of the rest."""
        origin = {axis.var: operators.const(0, axis.var.dtype) for axis in self.depth_axes}
        of_side = analyzer.simplify(substitute_expr(expr, origin))
        rest = analyzer.simplify(expr - of_side)
        if any(uses_var(rest, axis.var) for axis in self.side_axes):
            return operators.const(0, expr.dtype), expr
        return of_side, rest

    def _values(self, place: PrimExpr, axes: Sequence[Axis]) -> dict[Var, PrimExpr]:
        """The axes at a place, each computed once."""
        return {
            variable: self.builder.let(variable.name, value) if value.children() else value
            for variable, value in decode(place, axes).items()
        }

    def _place(self, place: PrimExpr) -> Place:
        values = self._values(place, self.side_axes)
        address = self.builder.let("address", substitute_expr(self.address[0], values))
        sums = [self.builder.let("edge", substitute_expr(part[0], values)) for part, _ in self.inside]
        extent = size(self.side_axes)
        return Place(values, address, sums, None if extent % self.tile.side == 0 else place < extent)

    def _step(self, place: PrimExpr) -> Step:
        depth = self.builder.let("depth", place)
        return Step(self._values(depth, self.depth_axes), None if self.end is None else depth < self.end)

    def copy(self, step: PrimExpr, target: BufferVar, offset: PrimExpr) -> None:
        """Emit the copies of the tile at a step of the depth to ``offset`` (in elements) of shared memory."""
        start = self.builder.let("start", step * self.tile.depth)
        along_depth = self._step(start + self.unit) if self.tile.along_depth else None
        for number in range(self.passes):
            row = self.row + number * self.rows_at_once
            if along_depth is not None:
                place, at = self.places[number], along_depth
            else:
                # A panel has a row for each step of the depth.
                panel = number * self.rows_at_once // self.tile.depth
                place, at = self.places[panel], self._step(start + row - panel * self.tile.depth)
            if (number + 1) * self.rows_at_once > self.rows:
                with self.builder.if_scope(row < self.rows):
                    self._copy_unit(row, place, at, target, offset)
            else:
                self._copy_unit(row, place, at, target, offset)

    def _copy_unit(self, row: PrimExpr, place: Place, at: Step, target: BufferVar, offset: PrimExpr) -> None:
        """One run of elements, by one thread."""
        values = {**place.values, **at.values}
        inside: PrimExpr = operators.const_true()
        for exists in (place.exists, at.exists):
            inside = inside if exists is None else operators.logical_and(inside, exists)
        for total, (part, compare) in zip(place.sums, self.inside, strict=True):
            value = total + substitute_expr(part[1], values)
            inside = operators.logical_and(inside, compare(value, operators.const(0, value.dtype)))
        source = place.address + substitute_expr(self.address[1], values)
        slot = offset + self.tile.place(row, self.unit)
        num_bytes = self.run * self.tile.itemsize
        if num_bytes < LEAST_ASYNC_BYTES:
            zero = operators.make_zero(self.factor.dtype)
            for number in range(self.run):
                target[slot + number] = if_then_else(inside, self.source[source + number], zero)
            return
        safe = Select(inside, source, operators.const(0, source.dtype))
        self.builder.emit(
            ptx.cp_async(
                ptx.pointer(target, slot, "w", self.run),
                ptx.pointer(self.source, safe, "r", self.run),
                num_bytes,
                Select(inside, operators.const(num_bytes), operators.const(0)),
            )
        )
