"""The kernel of a product whose tiles the copy engine fetches.

One warp more than those that multiply asks the engine for tiles, as far ahead as there are stages, and the groups of
four warps never wait for each other: a barrier in memory for each stage says that its tiles are there, a second one
that all have read them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr
from tilewright.schedule.gpu.tensor_core.boxes import Boxes
from tilewright.schedule.gpu.tensor_core.epilogue import Epilogue
from tilewright.schedule.gpu.tensor_core.factors import Axis, Product, size
from tilewright.schedule.gpu.tensor_core.kernel import ProductKernel
from tilewright.schedule.gpu.tensor_core.multiply import TileProducts
from tilewright.schedule.gpu.tensor_core.tiling import Tiling
from tilewright.te.tensor import Tensor
from tilewright.tir import ptx
from tilewright.tir.ir_builder import BufferVar

WARP: Final = 32
STORING: Final = 1
"""The number of the barrier among the threads that multiply and store."""


class BulkProductKernel(ProductKernel):
    """Builds the statement of one kernel."""

    further_threads = WARP

    def __init__(
        self, product: Product, tiling: Tiling, epilogue: Epilogue | None, boxes: tuple[Boxes, Boxes]
    ) -> None:
        super().__init__(product, tiling, epilogue)
        self.boxes = boxes

    def _barrier(self) -> None:
        self.builder.emit(ptx.barrier_sync(STORING, self.tiling.threads))

    # ---- the sums ----

    def _sum_up(self, products: TileProducts, memory: Mapping[Tensor, BufferVar]) -> None:
        product, tiling, builder = self.product, self.tiling, self.builder
        steps = -(-size(product.depth) // (tiling.depth * tiling.splits))
        for one, (tile, _) in zip(self.boxes, self.shapes, strict=True):
            builder.scope_attr(memory[one.factor.tensor].asobject(), ptx.TENSOR_MAP, one.tensor_map(tile))
        self.full = builder.allocate("uint64", tiling.stages, "full", "shared")
        self.free = builder.allocate("uint64", tiling.stages, "free", "shared")
        first = builder.let("first", self.split * (steps * tiling.depth))
        self._begin(first, steps, memory)
        with builder.if_scope(self.thread < tiling.threads):
            products.clear()
            self._in_turns(0, steps, partial(self._multiply, products))
            products.finish()
        with builder.else_scope(), builder.if_scope(self.thread.equal(tiling.threads)):
            self._in_turns(1, steps, partial(self._fetch_later, first, memory))

    def _in_turns(self, first_turn: int, steps: int, body: Callable[[PrimExpr, int, PrimExpr], None]) -> None:
        """Emit what is done at each step, for each stage by itself: the places in shared memory are constants then."""
        stages = self.tiling.stages
        turns, rest = divmod(steps, stages)
        if turns > first_turn:
            with self.builder.for_range(first_turn, turns, name="turn") as turn:
                for stage in range(stages):
                    body(turn * stages + stage, stage, turn)
        for stage in range(rest if turns >= first_turn else 0):
            body(operators.const(turns * stages + stage), stage, operators.const(turns))

    def _multiply(self, products: TileProducts, step: PrimExpr, stage: int, turn: PrimExpr) -> None:
        """Multiply the tiles of a stage once they are there, and release those of the step before."""
        self.builder.emit(ptx.mbarrier_wait(ptx.pointer(self.full, stage, "r"), turn % 2))
        tiles = self._shared(self.product.a.dtype)
        a, b = self._places(stage)
        products.multiply((tiles, operators.const(a)), (tiles, operators.const(b)))
        products.step_done()
        if stage > 0:
            self._release(stage - 1)
        else:
            with self.builder.if_scope(step > 0):
                self._release(self.tiling.stages - 1)

    def _places(self, stage: int) -> tuple[int, int]:
        """Where the tiles of a stage are, in elements."""
        (a, _), (b, _) = self.shapes
        return stage * a.elements, stage * b.elements + self.tiling.stages * a.elements

    def _begin(self, first: PrimExpr, steps: int, memory: Mapping[Tensor, BufferVar]) -> None:
        """Prepare the barriers. The thread that does so fetches the first tiles at once."""
        builder, tiling = self.builder, self.tiling
        with builder.if_scope(self.thread.equal(tiling.threads)):
            for boxes in self.boxes:
                builder.emit(ptx.prefetch_tensor_map(memory[boxes.factor.tensor].asobject()))
            for stage in range(tiling.stages):
                builder.emit(ptx.mbarrier_init(ptx.pointer(self.full, stage, "w"), 1))
                # Each warp that multiplies says that it has read a tile.
                builder.emit(ptx.mbarrier_init(ptx.pointer(self.free, stage, "w"), tiling.threads // WARP))
            builder.emit(ptx.fence_mbarrier_init())
            for stage in range(min(tiling.stages, steps)):
                self._fetch(first, memory, operators.const(stage), stage)
        super()._barrier()

    def _fetch_later(
        self, first: PrimExpr, memory: Mapping[Tensor, BufferVar], step: PrimExpr, stage: int, turn: PrimExpr
    ) -> None:
        """Fetch once a stage's tiles of the turn before were read."""
        self.builder.emit(ptx.mbarrier_wait(ptx.pointer(self.free, stage, "r"), (turn + 1) % 2))
        self._fetch(first, memory, step, stage)

    def _fetch(self, first: PrimExpr, memory: Mapping[Tensor, BufferVar], step: PrimExpr, stage: int) -> None:
        """Ask for the tiles at a step of the depth, whose stage is free."""
        builder, tiling = self.builder, self.tiling
        num_bytes = sum(tile.elements * tile.itemsize for tile, _ in self.shapes)
        full = ptx.pointer(self.full, stage)
        builder.emit(ptx.mbarrier_arrive_expect_tx(full, num_bytes))
        depth = builder.let("depth", first + step * tiling.depth)
        tiles = self._shared(self.product.a.dtype)
        sides = (self.first_row, self.first_column)
        for boxes, (tile, _), side, place in zip(
            self.boxes, self.shapes, sides, self._places(stage), strict=True
        ):
            for within, extent, coordinates in boxes.copies(tile, side, depth):
                builder.emit(
                    ptx.bulk_tensor_load(
                        ptx.pointer(tiles, place + within, "w", extent),
                        memory[boxes.factor.tensor].asobject(),
                        full,
                        [*self._batch_coordinate(boxes), *coordinates],
                    )
                )

    def _batch_coordinate(self, boxes: Boxes) -> list[PrimExpr]:
        return [self._place_of(self.product.batch)] if boxes.batch > 1 else []

    def _place_of(self, axes: Sequence[Axis]) -> PrimExpr:
        """The place of this block's batch, counted over all axes."""
        place: PrimExpr = operators.const(0)
        for axis in axes:
            place = place * axis.extent + self.batch[axis.var]
        return place

    def _release(self, stage: int) -> None:
        """Say that this warp has read the tiles of a stage."""
        with self.builder.if_scope((self.thread % WARP).equal(0)):
            self.builder.emit(ptx.mbarrier_arrive(ptx.pointer(self.free, stage)))

    # ---- the result ----

    def _store(
        self, products: TileProducts, memory: Mapping[Tensor, BufferVar], outputs: Sequence[BufferVar]
    ) -> None:
        with self.builder.if_scope(self.thread < self.tiling.threads):
            super()._store(products, memory, outputs)
