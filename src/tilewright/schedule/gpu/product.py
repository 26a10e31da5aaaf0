"""Sums of products on ordinary cores: matrix products, batched ones, and convolutions as implicit products.

A block computes a tile of rows and columns. Both factors pass through shared memory, a few steps of the reduction at a
time, in the order in which they are used: the operands of a convolution are gathered there, never stored elsewhere.
Each thread has a tile in registers, made of groups of four neighbours that are read from shared memory with 16 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from math import prod
from typing import Final

from tilewright.ir import operators
from tilewright.ir.expr import Call, IterVar, PrimExpr, ProducerLoad, Range, Reduce, Var
from tilewright.ir.functor import substitute_expr
from tilewright.schedule.cpu.access import Read, extent_of, reads_of
from tilewright.schedule.cpu.graph import MaterializedStage
from tilewright.schedule.decisions import decide
from tilewright.schedule.gpu.contraction import Contraction
from tilewright.schedule.gpu.machine import GpuMachine, power_of_two_divisor
from tilewright.te.operation import ComputeOp, thread_axis
from tilewright.te.schedule.dataflow import replace_dataflow, set_operation
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Operation, Tensor

GROUP: Final = 4
"""Neighbouring elements of a thread: 16 bytes of float32."""

STAGES: Final = 3
"""Tiles of the operands in shared memory at a time, where copies are asynchronous."""

FEW: Final = 8
"""With fewer rows or columns there is nothing to share: such a product is a reduction of rows."""


@dataclass(frozen=True)
class Tile:
    """The tile of a block, the steps of the reduction that are in shared memory at a time, and a thread's tile."""

    rows: int
    columns: int
    steps: int
    thread_rows: int
    thread_columns: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return (self.rows // self.thread_rows) * (self.columns // self.thread_columns)


TILES: Final = (
    Tile(128, 128, 8, 8, 8),
    Tile(128, 64, 8, 8, 4),
    Tile(64, 128, 8, 4, 8),
    Tile(64, 64, 16, 4, 4),
    Tile(64, 32, 16, 4, 4),
    Tile(32, 64, 16, 4, 4),
    Tile(32, 32, 16, 4, 4),
    Tile(16, 32, 16, 4, 4),
    Tile(32, 16, 16, 4, 4),
    Tile(16, 16, 16, 4, 4),
)
"""From the most reuse to the most blocks."""


def is_product(found: Contraction, anchor: MaterializedStage) -> bool:
    """True if rows share columns and columns share rows, so that tiles save loads."""
    rows, columns, _ = found.counts(anchor.compute.axes)
    steps = prod(extent_of(axis) for axis in anchor.compute.reduce_axis)
    return rows >= FEW and columns >= FEW and steps >= 4


def choose_tile(rows: int, columns: int, batches: int, machine: GpuMachine, word_bytes: int = 4) -> Tile:
    """The tile with which the whole device is done first."""

    def cost(tile: Tile) -> float:
        blocks = -(-rows // tile.rows) * -(-columns // tile.columns) * batches
        warps = max(tile.threads // 32, 1)
        # A multiprocessor runs blocks side by side, as far as registers and threads allow.
        per_multiprocessor = max(min(512 // tile.threads, 2048 // tile.threads), 1)
        waves = -(-blocks // (machine.multiprocessors * per_multiprocessor))
        at_once = min(blocks / machine.multiprocessors, per_multiprocessor)
        work = tile.rows * tile.columns * per_multiprocessor
        # Loads from shared memory per product, and too few warps to hide latency.
        reuse = 1 + 2 * (1 / tile.thread_rows + 1 / tile.thread_columns)
        starved = 8 / min(8, max(warps * max(at_once, 1), 1))
        return waves * work * reuse * starved

    fitting = [tile for tile in TILES if tile.threads <= machine.max_threads]
    return min(fitting, key=cost)


def schedule_product(
    schedule: Schedule,
    root: MaterializedStage,
    anchor: MaterializedStage,
    found: Contraction,
    machine: GpuMachine,
) -> None:
    """Schedules the product with its epilogue; ``root`` may be the product itself."""
    counts = found.counts(anchor.compute.axes)
    best = choose_tile(*counts, machine)
    fitting = [one for one in TILES if one.threads <= machine.max_threads]
    tile = Tile(*decide("tile", astuple(best), lambda: map(astuple, fitting)))
    _ProductSchedule(schedule, root, anchor, found, tile, machine).run()


class _ProductSchedule:
    def __init__(
        self,
        schedule: Schedule,
        root: MaterializedStage,
        anchor: MaterializedStage,
        found: Contraction,
        tile: Tile,
        machine: GpuMachine,
    ) -> None:
        self.machine = machine
        self.schedule = schedule
        self.root = root.stage
        self.anchor = anchor.stage
        self.found = found
        self.tile = tile
        self.thread = thread_axis((0, tile.threads), "threadIdx.x")
        self.sides: list[_Side] = []

    def run(self) -> None:
        """Schedules all stages."""
        self.rewrite()
        place = self.deal_out()
        sums = self.schedule[self.sums]
        sums.compute_at(self.root, place)
        step, inner = self.reduction_loops(sums)
        is_async = self.machine.has_async_copy and all(_is_plain_copy(side) for side in self.sides)
        if is_async:
            sums.pragma(step, "software_pipeline", STAGES)
        for side in self.sides:
            self.stage_operand(side, sums, step, is_async)
            self.load_fragment(side, sums, inner)

    # ---- the product as a sum over one axis of two operands in shared memory ----

    def rewrite(self) -> None:
        """Makes stages of the operands in shared memory, of a thread's part of them in registers, and of its sums; the
        product itself then only stores the sums."""
        operation = self.anchor.op
        assert isinstance(operation, ComputeOp)
        reduce = operation.body[0]
        assert isinstance(reduce, Reduce)
        count = prod(extent_of(axis) for axis in operation.reduce_axis)
        steps = -(-count // self.tile.steps) * self.tile.steps
        self.sides = [
            self.side(
                "rows", self.found.first, self.found.rows, self.tile.rows, self.tile.thread_rows, count, steps
            ),
            self.side(
                *("columns", self.found.second, self.found.columns),
                *(self.tile.columns, self.tile.thread_columns, count, steps),
            ),
        ]
        axes = operation.axes
        along = IterVar(Range(0, steps), Var("k", "int32"), IterVar.CommReduce)
        batch = _axis("b", prod(extent_of(axes[position]) for position in self.found.batches))
        parts = [side.new_axes() for side in self.sides]
        loads = [
            ProducerLoad(side.fragment, [batch.var, along.var, *(axis.var for axis in own)])
            for side, own in zip(self.sides, parts, strict=True)
        ]
        body = Reduce(
            reduce.combiner,
            [operators.multiply(loads[0], loads[1])],
            [along],
            reduce.condition,
            0,
            [],
            reduce.span,
        )
        sums = ComputeOp(
            f"{operation.name}.sums", "", None, [batch, *parts[0], *parts[1]], [body], operation.span
        )
        self.sums = sums.output(0)
        indices = [_flat(axes, self.found.batches)]
        for side, own in zip(self.sides, (self.found.rows, self.found.columns), strict=True):
            indices += side.place(_flat(axes, own))
        copy = ComputeOp(
            operation.name,
            operation.tag,
            operation.attrs,
            axes,
            [ProducerLoad(self.sums, indices)],
            operation.span,
        )
        position = self.schedule.stages.index(self.anchor)
        made: list[tuple[Operation, str]] = [(sums, "local")]
        for side in self.sides:
            made += [(side.fragment.op, "local"), (side.shared.op, "shared")]
        for one, scope in made:
            stage = self.schedule.add_stage(one, position)
            stage.scope = scope
            stage.group = self.anchor.group
        outputs = dict(zip(operation.outputs, copy.outputs, strict=True))
        set_operation(self.anchor, copy)
        self.anchor.start_from(copy)
        replace_dataflow(self.schedule.stages, outputs)
        if self.root is not self.anchor:
            self.anchor.compute_inline()

    def side(
        self, name: str, factor: PrimExpr, own: Sequence[int], block: int, each: int, count: int, steps: int
    ) -> _Side:
        """A factor by batch, step and its own index, and a thread's part of it."""
        operation = self.anchor.op
        assert isinstance(operation, ComputeOp)
        axes = operation.axes
        size = prod(extent_of(axes[position]) for position in own)
        blocks = -(-size // block)
        batch = _axis("b", prod(extent_of(axes[position]) for position in self.found.batches))
        step, index = _axis("k", steps), _axis("i", blocks * block)
        values: dict[Var, PrimExpr] = {}
        _unflatten(values, [axes[position] for position in self.found.batches], batch.var)
        _unflatten(values, list(operation.reduce_axis), step.var)
        _unflatten(values, [axes[position] for position in own], index.var)
        value = substitute_expr(factor, values)
        guards = [_below(step.var, count)] if steps != count else []
        guards += [_below(index.var, size)] if blocks * block != size else []
        for guard in guards:
            zero = operators.make_zero(value.dtype)
            value = operators.call("if_then_else", value.dtype, [guard, value, zero])
        shared = ComputeOp(
            f"{operation.name}.{name}", "", None, [batch, step, index], [value], operation.span
        )
        made = _Side(shared.output(0), shared.output(0), blocks, block, each)
        parts = [_axis("b", extent_of(batch)), _axis("k", steps), *made.new_axes()]
        load = ProducerLoad(shared.output(0), [parts[0].var, parts[1].var, made.number(parts[2:])])
        fragment = ComputeOp(f"{operation.name}.{name}.local", "", None, parts, [load], operation.span)
        return replace(made, fragment=fragment.output(0))

    # ---- the result ----

    def split_result(self, stage: Stage) -> tuple[list[IterVar], list[IterVar], list[IterVar]]:
        """The loops of a result: (batch, row block, column block), (thread rows, thread columns), and those of a
        thread: groups of rows, rows, groups of columns, columns."""
        axes = list(stage.op.axis)
        batches, rows, columns = (
            [axes[position] for position in positions]
            for positions in (self.found.batches, self.found.rows, self.found.columns)
        )
        stage.reorder(*batches, *rows, *columns)
        batch = stage.fuse(*batches) if len(batches) > 1 else (batches[0] if batches else None)
        row = stage.fuse(*rows) if len(rows) > 1 else rows[0]
        column = stage.fuse(*columns) if len(columns) > 1 else columns[0]
        row_block, row_loops = self.split_side(stage, row, self.tile.rows, self.tile.thread_rows)
        column_block, column_loops = self.split_side(
            stage, column, self.tile.columns, self.tile.thread_columns
        )
        blocks = [*([] if batch is None else [batch]), row_block, column_block]
        threads = [row_loops[1], column_loops[1]]
        own = [row_loops[0], row_loops[2], column_loops[0], column_loops[2]]
        stage.reorder(*blocks, *threads, *own)
        return blocks, threads, own

    def split_side(
        self, stage: Stage, axis: IterVar, block: int, each: int
    ) -> tuple[IterVar, tuple[IterVar, IterVar, IterVar]]:
        """One side of the tile: its block, and groups of a thread, threads, and neighbours."""
        outer, inside = stage.split_exact(axis, block)
        pieces, neighbour = stage.split_exact(inside, GROUP)
        group, thread = stage.split_exact(pieces, block // each)
        return outer, (group, thread, neighbour)

    def deal_out(self) -> IterVar:
        """Binds the root: the axis inside which a thread's tile is computed."""
        stage = self.root
        blocks, (thread_row, thread_column), own = self.split_result(stage)
        block = stage.fuse(*blocks)
        stage.bind(block, thread_axis("blockIdx.x"))
        # A warp has four by eight threads: what its lanes read from shared memory is 64 and 128 bytes.
        down, across = self.tile.rows // self.tile.thread_rows, self.tile.columns // self.tile.thread_columns
        row_high, row_low = stage.split(thread_row, factor=min(4, down))
        column_high, column_low = stage.split(thread_column, factor=min(8, across))
        stage.reorder(row_high, column_high, row_low, column_low)
        thread = stage.fuse(row_high, column_high, row_low, column_low)
        stage.bind(thread, self.thread)
        for axis in own[:-1]:
            stage.unroll(axis)
        if self.stores_vectors(stage):
            stage.vectorize(own[-1])
        else:
            stage.unroll(own[-1])
        return thread

    def stores_vectors(self, stage: Stage) -> bool:
        """True if the columns of a group are adjacent in the result."""
        axes = stage.op.axis
        last = [position for position in range(len(axes)) if extent_of(axes[position]) > 1][-1]
        tail = [position for position in self.found.columns if extent_of(axes[position]) > 1]
        adjacent = 1
        for position in reversed(range(len(axes))):
            if position not in self.found.columns and extent_of(axes[position]) > 1:
                break
            adjacent *= extent_of(axes[position])
        return tail[-1] == last and adjacent % GROUP == 0

    # ---- the sums ----

    def reduction_loops(self, sums: Stage) -> tuple[IterVar, IterVar]:
        """The loop over what is in shared memory at a time, and the loop inside."""
        operation = sums.op
        assert isinstance(operation, ComputeOp)
        (along,) = operation.reduce_axis
        outer, inner = sums.split(along, factor=self.tile.steps)
        own = list(operation.axes)
        sums.reorder(outer, inner, *own)
        sums.unroll(inner)
        for axis in own[1:]:
            sums.unroll(axis)
        return outer, inner

    # ---- the operands ----

    def stage_operand(self, side: _Side, sums: Stage, step: IterVar, is_async: bool) -> None:
        """Fills the shared memory of an operand with all threads of the block."""
        stage = self.schedule[side.shared]
        stage.compute_at(sums, step)
        if not is_async:
            stage.double_buffer()
        operation = stage.op
        assert isinstance(operation, ComputeOp)
        batch, along, index = operation.axes
        width, by_step = _load_width(operation, self.tile.steps * side.block // self.tile.threads)
        if by_step and is_async:
            # Element by element, as asynchronous copies cannot transpose: lanes have neighbouring steps of a few rows,
            # and the pitch puts those into different banks.
            stage.storage_align(along, 2 * GROUP, GROUP)
            stage.reorder(batch, index, along)
            pieces = stage.fuse(batch, index, along)
            turn, thread = stage.split_exact(pieces, self.tile.threads)
            stage.reorder(thread, turn)
            stage.bind(thread, self.thread)
            stage.unroll(turn)
            return
        if by_step:
            outer, vector = stage.split(along, factor=width)
            stage.reorder(batch, outer, index, vector)
            pieces = stage.fuse(batch, outer, index)
        else:
            outer, vector = stage.split(index, factor=width)
            stage.reorder(batch, along, outer, vector)
            pieces = stage.fuse(batch, along, outer)
        turn, thread = stage.split_exact(pieces, self.tile.threads)
        stage.reorder(thread, turn, vector)
        stage.bind(thread, self.thread)
        stage.unroll(turn)
        if width > 1:
            stage.vectorize(vector)

    def load_fragment(self, side: _Side, sums: Stage, inner: IterVar) -> None:
        """Loads the operands of one step of a thread from shared memory, 16 bytes at a time."""
        stage = self.schedule[side.fragment]
        stage.compute_at(sums, inner)
        _, _, _, group, _, neighbour = stage.op.axis
        stage.unroll(group)
        stage.vectorize(neighbour)


def _is_plain_copy(side: _Side) -> bool:
    """True if an operand is what memory holds, in elements that an asynchronous copy can move."""
    operation = side.shared.op
    assert isinstance(operation, ComputeOp)
    value = operation.body[0]
    while isinstance(value, Call) and getattr(value.op, "name", "") == "tir.if_then_else":
        value = value.args[1]
    return isinstance(value, ProducerLoad) and value.dtype.bits in (32, 64)


@dataclass(frozen=True, eq=False)
class _Side:
    """An operand: its stage in shared memory, a thread's part in registers, and the tile along its own index."""

    shared: Tensor
    fragment: Tensor
    blocks: int
    block: int
    each: int

    def new_axes(self) -> list[IterVar]:
        """Axes over blocks, groups of a thread, threads, and neighbours."""
        threads = self.block // self.each
        extents = (self.blocks, self.each // GROUP, threads, GROUP)
        return [_axis(name, extent) for name, extent in zip(("o", "g", "t", "n"), extents, strict=True)]

    def number(self, axes: Sequence[IterVar]) -> PrimExpr:
        """The index at a point of these axes."""
        return _flat(axes, range(len(axes)))

    def place(self, number: PrimExpr) -> list[PrimExpr]:
        """The values of such axes at an index."""
        threads = self.block // self.each
        pieces = operators.floordiv(number, GROUP)
        return [
            operators.floordiv(number, self.block),
            operators.floormod(operators.floordiv(pieces, threads), self.each // GROUP),
            operators.floormod(pieces, threads),
            operators.floormod(number, GROUP),
        ]


def _below(number: PrimExpr, limit: int) -> PrimExpr:
    """A condition that is the same for the neighbours that one load takes, where the limit allows it."""
    width = power_of_two_divisor(limit, GROUP)
    return operators.less(operators.floordiv(number, width), limit // width)


def _axis(name: str, extent: int) -> IterVar:
    return IterVar(Range(0, extent), Var(name, "int32"), IterVar.DataPar)


def _flat(axes: Sequence[IterVar], positions: Sequence[int]) -> PrimExpr:
    """The number of a point along some axes, the last running fastest."""
    total: PrimExpr = operators.const(0, "int32")
    for position in positions:
        total = operators.add(operators.multiply(total, extent_of(axes[position])), axes[position].var)
    return total


def _unflatten(values: dict[Var, PrimExpr], axes: Sequence[IterVar], number: PrimExpr) -> None:
    """The values of axes at the point with a number."""
    for place in range(len(axes) - 1, -1, -1):
        axis, extent = axes[place], extent_of(axes[place])
        value = number if place == 0 else operators.floormod(number, extent)
        values[axis.var] = operators.cast(axis.var.dtype, value)
        number = operators.floordiv(number, extent)


def _load_width(operation: ComputeOp, share: int) -> tuple[int, bool]:
    """Elements that a thread loads at a time, and whether they follow each other along the reduction."""
    reads = [read for read in reads_of(operation) if read.moves_with(operation.axes[1])]
    for axis, by_step in ((operation.axes[2], False), (operation.axes[1], True)):
        width = power_of_two_divisor(share, GROUP)
        while width > 1 and not all(_is_adjacent(read, axis, width) for read in reads):
            width //= 2
        if width > 1:
            return width, by_step
    return 1, False


def _is_adjacent(read: Read, axis: IterVar, width: int) -> bool:
    if extent_of(axis) % width:
        return False
    for number in range(6):
        point = {
            one.var: (5 * number * (place + 2) + number) % max(extent_of(one), 1)
            for place, one in enumerate(read.axes)
        }
        start = point[axis.var] // width * width
        found = [read.address({**point, axis.var: start + offset}) for offset in range(width)]
        first = found[0]
        if first is None or first % width or found != [first + offset for offset in range(width)]:
            return False
    return True
