"""The kernel of a product: copies that run ahead of the multiplication, then the epilogue from shared memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import PrimExpr, Select, StringImm, Var
from tilewright.ir.functor import substitute_expr
from tilewright.schedule.gpu.tensor_core.copies import PIECE_BYTES, TileCopies, TileShape
from tilewright.schedule.gpu.tensor_core.epilogue import Epilogue, ReadBuffers
from tilewright.schedule.gpu.tensor_core.factors import Axis, Factor, Product, decode, size
from tilewright.schedule.gpu.tensor_core.multiply import (
    GroupProducts,
    SplitProducts,
    TileProducts,
    WarpProducts,
)
from tilewright.schedule.gpu.tensor_core.tiling import SUM_PADDING, Tiling
from tilewright.support.dtype import DataType
from tilewright.te.operation import thread_axis
from tilewright.te.tensor import Tensor
from tilewright.tir import ir_builder, ptx
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.tir.stmt import EXPLICIT_SYNC, Stmt

SHARED: Final = "shared.dyn"


class ProductKernel:
    """Builds the statement of one kernel."""

    further_threads = 0
    """Threads of a block beside those that multiply."""

    def __init__(self, product: Product, tiling: Tiling, epilogue: Epilogue | None) -> None:
        """Without an epilogue the sums are stored as they are, split by split."""
        self.product = product
        self.tiling = tiling
        self.epilogue = epilogue
        self.builder: IRBuilder = ir_builder.create()

    def build(self, inputs: Mapping[Tensor, Buffer], outputs: Sequence[Buffer]) -> Stmt:
        """The statement, for buffers of the tensors that it reads and of those that it writes."""
        builder = self.builder
        memory = {tensor: builder.buffer_ptr(buffer) for tensor, buffer in inputs.items()}
        self._launch()
        # Copies are in flight across barriers, so barriers are placed here and by no pass.
        builder.scope_attr("kernel", EXPLICIT_SYNC, 1)
        shared = builder.allocate(
            "uint8", self.tiling.shared_bytes(self.product.a.dtype.itemsize), "shared", SHARED
        )
        self.shared = shared.asobject()
        products = self._products()
        self._sum_up(products, memory)
        self._store(products, memory, [builder.buffer_ptr(buffer) for buffer in outputs])
        return builder.get()

    # ---- which part of the result a block computes ----

    def _launch(self) -> None:
        product, tiling, builder = self.product, self.tiling, self.builder
        self.row_tiles = -(-size(product.rows) // tiling.rows)
        self.column_tiles = -(-size(product.columns) // tiling.columns)
        tile, part = thread_axis("blockIdx.x"), thread_axis("blockIdx.y")
        thread = thread_axis("threadIdx.x")
        builder.scope_attr(tile, "thread_extent", self.row_tiles * self.column_tiles)
        builder.scope_attr(part, "thread_extent", size(product.batch) * tiling.splits)
        builder.scope_attr(thread, "thread_extent", tiling.threads + self.further_threads)
        self.thread: PrimExpr = thread.var
        row, column = self._tile_of(tile.var)
        self.first_row = builder.let("first_row", row * tiling.rows)
        self.first_column = builder.let("first_column", column * tiling.columns)
        self.split = builder.let("split", part.var % tiling.splits)
        self.batch = self._values(part.var // tiling.splits, product.batch)

    def _tile_of(self, number: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        """The row and column of a tile. Bands of rows are gone through column by column: the blocks that run at one
        time then read few rows and columns, which stay in L2."""
        band = min(self.tiling.band, self.row_tiles)
        if band <= 1 or self.column_tiles == 1:
            return number // self.column_tiles, number % self.column_tiles
        per_band = band * self.column_tiles
        first = number // per_band * band
        height: PrimExpr = operators.const(band)
        if self.row_tiles % band:
            height = self.builder.let("height", operators.minimum(self.row_tiles - first, band))
        within = number % per_band
        return first + within % height, within // height

    def _values(self, place: PrimExpr, axes: Sequence[Axis]) -> dict[Var, PrimExpr]:
        return {
            variable: self.builder.let(variable.name, value) if value.children() else value
            for variable, value in decode(place, axes).items()
        }

    def _shared(self, dtype: DataType) -> BufferVar:
        """The block's shared memory as elements of a type. First the tiles are in it, then the sums."""
        return BufferVar(self.builder, self.shared, None, dtype)

    def _barrier(self) -> None:
        self.builder.emit(operators.call("tvm_storage_sync", "int32", [StringImm("shared")]))

    # ---- the sums ----

    def _shape(
        self, factor: Factor, side: Sequence[Axis], extent: int, along_side: bool
    ) -> tuple[TileShape, int]:
        """How a factor's tiles lie in shared memory, and how many elements are copied at once."""
        axis = side[-1] if along_side else self.product.depth[-1]
        run = factor.run_along(axis, self.product.ranges, PIECE_BYTES // factor.dtype.itemsize)
        return TileShape(extent, self.tiling.depth, factor.dtype.itemsize, not along_side), run

    def _products(self) -> TileProducts:
        product, tiling = self.product, self.tiling
        self.shapes = (
            self._shape(product.a, product.rows, tiling.rows, product.reads_rows),
            self._shape(product.b, product.columns, tiling.columns, product.reads_columns),
        )
        (a, _), (b, _) = self.shapes
        kinds = product.a.dtype, product.sum_type
        if tiling.uses_groups:
            return GroupProducts(self.builder, *kinds, a, b, self.thread)
        of_warps = SplitProducts if product.is_split else WarpProducts
        return of_warps(self.builder, *kinds, a, b, self.thread, tiling.warps)

    def _sum_up(self, products: TileProducts, memory: Mapping[Tensor, BufferVar]) -> None:
        """The sums over this block's part of the depth."""
        product, tiling, builder = self.product, self.tiling, self.builder
        depth = size(product.depth)
        steps = -(-depth // (tiling.depth * tiling.splits))
        end = None if depth == steps * tiling.depth * tiling.splits else operators.const(depth)
        first_step = builder.let("first_step", self.split * steps)
        analyzer = Analyzer()
        for variable, domain in product.ranges.items():
            analyzer.bind(variable, domain)
        tiles = self._shared(product.a.dtype)
        starts = (0, tiling.stages * self.shapes[0][0].elements)
        copies = []
        sides = ((product.rows, self.first_row), (product.columns, self.first_column))
        for factor, (side, first), (shape, run) in zip(
            (product.a, product.b), sides, self.shapes, strict=True
        ):
            copies.append(
                TileCopies(
                    builder,
                    factor.substituted(self.batch, analyzer),
                    memory[factor.tensor],
                    shape,
                    (side, product.depth),
                    first,
                    end,
                    self.thread,
                    tiling.threads,
                    run,
                )
            )

        def copy(step: PrimExpr, stage: PrimExpr) -> None:
            for one, start in zip(copies, starts, strict=True):
                one.copy(first_step + step, tiles, stage * one.tile.elements + start)

        def multiply(stage: PrimExpr) -> None:
            a, b = (stage * one.tile.elements + start for one, start in zip(copies, starts, strict=True))
            products.multiply((tiles, a), (tiles, b))

        products.clear()
        # A stage is free for its next tile when every thread is past the multiplication that reads it: one step later,
        # or two where multiplications run on by themselves.
        ahead = tiling.stages - products.steps_in_flight
        for step in range(ahead):
            if step < steps:
                copy(operators.const(step), operators.const(step))
            builder.emit(ptx.cp_async_commit())
        current, next_stage = self._counter("current", 0), self._counter("next", ahead)
        with builder.for_range(0, steps, name="step") as step:
            builder.emit(ptx.cp_async_wait(ahead - 1))
            products.tiles_arrived()
            self._barrier()
            multiply(self._count_on(current))
            with builder.if_scope(step + ahead < steps):
                copy(step + ahead, self._count_on(next_stage))
            builder.emit(ptx.cp_async_commit())
            products.step_done()
        products.finish()

    def _counter(self, name: str, start: int) -> BufferVar:
        """A register that counts through the stages: a remainder would be on the way to each address."""
        counter = self.builder.allocate("int32", 1, name, "local")
        counter[0] = operators.const(start % self.tiling.stages)
        return counter

    def _count_on(self, counter: BufferVar) -> PrimExpr:
        """The stage that a counter is at, which then goes on to the next."""
        stage = self.builder.let("stage", counter[0])
        last = operators.const(self.tiling.stages - 1)
        counter[0] = Select(stage >= last, operators.const(0), stage + 1)
        return stage

    # ---- the result ----

    def _store(
        self, products: TileProducts, memory: Mapping[Tensor, BufferVar], outputs: Sequence[BufferVar]
    ) -> None:
        """The sums go through shared memory, so that each thread has adjacent columns and stores 16 bytes."""
        product, tiling, builder = self.product, self.tiling, self.builder
        pitch = tiling.columns + SUM_PADDING
        sums = self._shared(product.sum_type)
        self._barrier()
        for position, row, column in products.pairs():
            place = builder.let("place", row * pitch + column)
            for lane in range(2):
                sums[place + lane] = products.sums[position + lane]
        self._barrier()
        run = self._store_run(outputs)
        units = tiling.columns // run
        with builder.for_range(0, tiling.rows * units // tiling.threads, name="part", kind="unroll") as part:
            unit = builder.let("unit", part * tiling.threads + self.thread)
            row = builder.let("row", unit // units)
            column = builder.let("column", unit % units * run)
            exists = self._exists(self.first_row + row, product.rows, tiling.rows)
            exists = operators.logical_and(
                exists, self._exists(self.first_column + column, product.columns, tiling.columns)
            )
            with builder.if_scope(exists), builder.for_range(0, run, name="lane", kind="vectorize") as lane:
                self._store_element(row, column + lane, sums[row * pitch + column + lane], memory, outputs)

    def _exists(self, place: PrimExpr, axes: Sequence[Axis], tile: int) -> PrimExpr:
        return operators.const_true() if size(axes) % tile == 0 else place < size(axes)

    def _store_run(self, outputs: Sequence[BufferVar]) -> int:
        """How many columns one thread stores at once."""
        widest = max(output.dtype.itemsize for output in outputs)
        run = min(PIECE_BYTES // widest, 8)
        last = self.product.columns[-1].extent if self.product.columns else 1
        while run > 1 and last % run:
            run //= 2
        return run

    def _store_element(
        self,
        row: PrimExpr,
        column: PrimExpr,
        value: PrimExpr,
        memory: Mapping[Tensor, BufferVar],
        outputs: Sequence[BufferVar],
    ) -> None:
        product = self.product
        places = {
            **self.batch,
            **decode(self.first_row + row, product.rows),
            **decode(self.first_column + column, product.columns),
        }
        indices = {variable: substitute_expr(origin, places) for variable, origin in product.origin.items()}
        if self.epilogue is None:
            place = [indices[axis.var] for axis in product.result.axes]
            outputs[0][(self.split, *place)] = value
            return
        operation = self.epilogue.operation
        own = self.epilogue.indices(indices)
        read = ReadBuffers(memory, product.result.output(0), value)
        for body, output in zip(operation.body, outputs, strict=True):
            computed = value if operation is product.result else read.visit(substitute_expr(body, own))
            output[tuple([own[axis.var] for axis in operation.axes])] = computed
