"""Multiplication of two tiles in shared memory by the matrix units, with the sums in registers.

``WarpProducts`` uses the instructions of a warp (``mma.sync``, from Ampere on), which take fragments from registers;
``SplitProducts`` does the same for float32, each number as the sum of two that the matrix units know; ``GroupProducts``
uses those of a group of four warps (``wgmma``, Hopper only), which read shared memory themselves. All leave the sums in
the same order: a thread has pairs of adjacent columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final

from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr, Var
from tilewright.ir.functor import substitute_expr
from tilewright.schedule.gpu.tensor_core.copies import PIECE_BYTES, TileShape
from tilewright.support.dtype import DataType
from tilewright.tir import ptx
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.tir.op import reinterpret

STEP_BYTES: Final = 32
"""Bytes along the depth that one instruction takes of each row."""
DROPPED_BITS: Final = 13
"""Bits at the end of a float32 that the matrix units do not read."""
GROUP_THREADS: Final = 128
GROUP_ROWS: Final = 64


Tile = tuple[BufferVar, PrimExpr]
"""A tile in shared memory: the array, and the place of its first element."""


class TileProducts(ABC):
    """The sums of one tile of the result, over all threads of a block."""

    sums: BufferVar
    steps_in_flight = 1
    """How many steps of the depth a stage is still read after it was multiplied, with that one."""

    def __init__(
        self, builder: IRBuilder, kind: DataType, sum_type: DataType, a: TileShape, b: TileShape
    ) -> None:
        self.builder = builder
        self.kind, self.sum_type = kind, sum_type
        self.a, self.b = a, b
        self.steps = self.a.depth * kind.itemsize // STEP_BYTES
        self.piece = PIECE_BYTES // kind.itemsize

    def clear(self) -> None:
        """Set the sums to zero."""
        for position in range(self.count):
            self.sums[position] = operators.make_zero(self.sum_type)

    @property
    @abstractmethod
    def count(self) -> int:
        """Sums of a thread."""

    @abstractmethod
    def multiply(self, a: Tile, b: Tile) -> None:
        """Emit the multiplication of two tiles."""

    def tiles_arrived(self) -> None:  # noqa: B027
        """Make what this thread has copied visible to the multiplication; a barrier follows."""

    def step_done(self) -> None:  # noqa: B027
        """End a step: one multiplication may be left running."""

    def finish(self) -> None:  # noqa: B027
        """Wait for the sums."""

    @abstractmethod
    def pairs(self) -> Iterator[tuple[int, PrimExpr, PrimExpr]]:
        """For each two adjacent sums of a thread: their position in ``sums``, and the row and column of the first."""


class WarpProducts(TileProducts):
    """Sums of ``grid`` warps, each with an equal part of the tile."""

    def __init__(
        self,
        builder: IRBuilder,
        kind: DataType,
        sum_type: DataType,
        a: TileShape,
        b: TileShape,
        thread: PrimExpr,
        grid: tuple[int, int],
    ) -> None:
        super().__init__(builder, kind, sum_type, a, b)
        self.row_tiles = self.a.side // grid[0] // 16
        self.column_tiles = self.b.side // grid[1] // 8
        self.lane: Var = builder.let("lane", thread % 32)
        warp = builder.let("warp", thread // 32)
        self.first_row = builder.let("first_row", warp // grid[1] * (self.row_tiles * 16))
        self.first_column = builder.let("first_column", warp % grid[1] * (self.column_tiles * 8))
        self.sums = builder.allocate(sum_type, self.count, "sums", "local")
        self.fragments_a = builder.allocate(
            kind, self.row_tiles * 4 * self._per_register, "fragment_a", "local"
        )
        self.fragments_b = builder.allocate(
            kind, self.column_tiles * 2 * self._per_register, "fragment_b", "local"
        )

    @property
    def count(self) -> int:
        return self.row_tiles * self.column_tiles * 4

    @property
    def _per_register(self) -> int:
        return 4 // self.kind.itemsize

    def multiply(self, a: Tile, b: Tile) -> None:
        for step in range(self.steps):
            for tile in range(self.row_tiles):
                self._load_a(step, tile, a)
            for tile in range(0, self.column_tiles, 2):
                self._load_b(step, tile, b)
            self._multiply_fragments()

    def _multiply_fragments(self) -> None:
        """Emit the products of the fragments that were loaded."""
        self._add_products(str(self.kind), self.fragments_a, self.fragments_b, self.sums)

    def _add_products(self, kind: str, a: BufferVar, b: BufferVar, sums: BufferVar) -> None:
        """Add the products of all fragments of ``a`` and ``b`` to sums."""
        per_register = self._per_register
        for row in range(self.row_tiles):
            for column in range(self.column_tiles):
                self.builder.emit(
                    ptx.mma(
                        f"m16n8k{STEP_BYTES // self.kind.itemsize}",
                        *(kind, kind, str(self.sum_type)),
                        ptx.pointer(a, row * 4 * per_register, "r", 4 * per_register),
                        ptx.pointer(b, column * 2 * per_register, "r", 2 * per_register),
                        ptx.pointer(sums, (row * self.column_tiles + column) * 4, "rw", 4),
                    )
                )

    def _load_a(self, step: int, tile: int, source: Tile) -> None:
        """A fragment of 16 rows: four matrices of eight rows by 16 bytes, those of the depth's upper half last."""
        matrix, line = self.lane // 8, self.lane % 8
        side = self.first_row + tile * 16 + matrix % 2 * 8
        along = matrix // 2
        self._load(self.a, source, self.fragments_a, tile * 4, side, along + step * 2, line)

    def _load_b(self, step: int, tile: int, source: Tile) -> None:
        """Fragments of two times eight columns, each two matrices along the depth."""
        matrix, line = self.lane // 8, self.lane % 8
        side = self.first_column + tile * 8 + matrix // 2 * 8
        along = matrix % 2
        self._load(self.b, source, self.fragments_b, tile * 2, side, along + step * 2, line)

    def _load(
        self,
        tile: TileShape,
        source: Tile,
        fragments: BufferVar,
        register: int,
        side: PrimExpr,
        piece: PrimExpr,
        line: PrimExpr,
    ) -> None:
        """Four matrices; each lane names a row of one: ``side`` and ``piece`` say which matrix, ``line`` which row."""
        memory, offset = source
        if tile.along_depth:
            place = tile.place(side + line, piece * self.piece)
        else:
            place = tile.place(side // tile.row * tile.depth + piece * self.piece + line, side % tile.row)
        self.builder.emit(
            ptx.ldmatrix(
                ptx.pointer(fragments, register * self._per_register, "w", 4 * self._per_register),
                ptx.pointer(memory, offset + place, "r", self.piece),
                4,
                not tile.along_depth,
            )
        )

    def pairs(self) -> Iterator[tuple[int, PrimExpr, PrimExpr]]:
        row, column = self.first_row + self.lane // 4, self.first_column + self.lane % 4 * 2
        for row_tile in range(self.row_tiles):
            for column_tile in range(self.column_tiles):
                for half in range(2):
                    position = (row_tile * self.column_tiles + column_tile) * 4 + half * 2
                    yield position, row + (row_tile * 16 + half * 8), column + column_tile * 8


class SplitProducts(WarpProducts):
    """Sums of float32 products by the units for TF32, which keep 11 of 24 bits of a factor.

    Each factor is the sum of a high part of 11 bits and the rest, and three of the four products of the parts are
    added up, the small ones first. What is left out, the product of both rests, is below 2**-22 of the whole, less than
    what float32 rounds off a sum of a few terms. An infinite factor has no rest, and makes the sum NaN.

    The units cut sums off instead of rounding them, which adds up over a long depth. So they sum the terms of one tile
    only, and ordinary additions the tiles.
    """

    def __init__(
        self,
        builder: IRBuilder,
        kind: DataType,
        sum_type: DataType,
        a: TileShape,
        b: TileShape,
        thread: PrimExpr,
        grid: tuple[int, int],
    ) -> None:
        super().__init__(builder, kind, sum_type, a, b, thread, grid)
        self.rest_a = builder.allocate(kind, self.row_tiles * 4, "rest_a", "local")
        self.rest_b = builder.allocate(kind, self.column_tiles * 2, "rest_b", "local")
        self.sums_of_tile = builder.allocate(sum_type, self.count, "sums_of_tile", "local")

    def multiply(self, a: Tile, b: Tile) -> None:
        for position in range(self.count):
            self.sums_of_tile[position] = operators.make_zero(self.sum_type)
        super().multiply(a, b)
        for position in range(self.count):
            self.sums[position] = self.sums[position] + self.sums_of_tile[position]

    def _multiply_fragments(self) -> None:
        self._split(self.fragments_a, self.rest_a, self.row_tiles * 4)
        self._split(self.fragments_b, self.rest_b, self.column_tiles * 2)
        for a, b in (
            (self.rest_a, self.fragments_b),
            (self.fragments_a, self.rest_b),
            (self.fragments_a, self.fragments_b),
        ):
            self._add_products("tf32", a, b, self.sums_of_tile)

    def _split(self, whole: BufferVar, rest: BufferVar, count: int) -> None:
        """Leave the high part of each element, rounded, and put what is left into ``rest``."""
        for place in range(count):
            value = self.builder.let("value", whole[place])
            rounded = reinterpret("uint32", value) + operators.const(1 << DROPPED_BITS - 1, "uint32")
            kept = operators.const(0xFFFFFFFF >> DROPPED_BITS << DROPPED_BITS, "uint32")
            high = self.builder.let("high", reinterpret("float32", operators.bitwise_and(rounded, kept)))
            whole[place] = high
            rest[place] = value - high

    def _load(
        self,
        tile: TileShape,
        source: Tile,
        fragments: BufferVar,
        register: int,
        side: PrimExpr,
        piece: PrimExpr,
        line: PrimExpr,
    ) -> None:
        if tile.along_depth:
            super()._load(tile, source, fragments, register, side, piece, line)
            return
        # ``ldmatrix`` turns matrices of two-byte elements only. Here a thread loads its own element of each of the four
        # matrices, which ``side`` and ``piece`` name by the number of the thread's group of eight.
        memory, offset = source
        for matrix in range(4):
            here = {self.lane: operators.const(8 * matrix)}
            row = substitute_expr(piece, here) * self.piece + self.lane % 4
            along = substitute_expr(side, here) + self.lane // 4
            place = tile.place(along // tile.row * tile.depth + row, along % tile.row)
            fragments[register + matrix] = memory[offset + place]


class GroupProducts(TileProducts):
    """Sums of groups of four warps, each with 64 rows of the tile and all columns."""

    steps_in_flight = 2

    def __init__(
        self,
        builder: IRBuilder,
        kind: DataType,
        sum_type: DataType,
        a: TileShape,
        b: TileShape,
        thread: PrimExpr,
    ) -> None:
        super().__init__(builder, kind, sum_type, a, b)
        self.thread = thread
        self.group = builder.let("group", thread // GROUP_THREADS)
        self.sums = builder.allocate(sum_type, self.count, "sums", "local")

    @property
    def count(self) -> int:
        return self.b.side // 2

    def tiles_arrived(self) -> None:
        self.builder.emit(ptx.fence_proxy_async())

    def step_done(self) -> None:
        self.builder.emit(ptx.wgmma_wait(1))

    def finish(self) -> None:
        self.builder.emit(ptx.wgmma_wait(0))

    def multiply(self, a: Tile, b: Tile) -> None:
        self.builder.emit(ptx.wgmma_fence())
        for step in range(self.steps):
            self.builder.emit(
                ptx.wgmma(
                    self.b.side,
                    *(str(self.kind), str(self.kind), str(self.sum_type)),
                    self._descriptor(self.a, a, self.group * GROUP_ROWS, step),
                    self._descriptor(self.b, b, None, step),
                    ptx.pointer(self.sums, 0, "rw", self.count),
                    a_transposed=not self.a.along_depth,
                    b_transposed=not self.b.along_depth,
                )
            )
        self.builder.emit(ptx.wgmma_commit())

    def _descriptor(self, tile: TileShape, source: Tile, side: PrimExpr | None, step: int) -> PrimExpr:
        """Where the instruction finds its part of a tile, from row or column ``side`` on, at a step of the depth."""
        memory, offset = source
        if tile.along_depth:
            start = offset + step * STEP_BYTES // tile.itemsize
            start = start if side is None else start + side * tile.row
            # Groups of eight rows of 128 bytes follow each other; there is one panel.
            return ptx.wgmma_descriptor(ptx.pointer(memory, start, "r", tile.elements), 16, 1024, 128)
        start = offset + step * STEP_BYTES // tile.itemsize * tile.row
        start = start if side is None else start + side // tile.row * (tile.depth * tile.row)
        panel = tile.depth * tile.row * tile.itemsize
        return ptx.wgmma_descriptor(ptx.pointer(memory, start, "r", tile.elements), panel, 1024, 128)

    def pairs(self) -> Iterator[tuple[int, PrimExpr, PrimExpr]]:
        lane, warp = self.thread % 32, self.thread // 32
        row, column = warp * 16 + lane // 4, lane % 4 * 2
        for tile in range(self.b.side // 8):
            for half in range(2):
                yield tile * 4 + half * 2, row + half * 8, column + tile * 8
