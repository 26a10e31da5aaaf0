"""Statements as closures over a frame.

Memory that a statement allocates exists while its body runs. Parallel, vectorised and unrolled loops run serially,
because they promise that the order does not matter. GPU threads are in ``threads.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tilewright.ir.buffer import Buffer, BufferRegion
from tilewright.ir.expr import IterVar, PrimExpr, Var, is_const
from tilewright.support.dtype import DataType
from tilewright.support.errors import TilewrightError
from tilewright.tir.interpreter.expressions import ExpressionCompiler, Frame, Run, memory_cells
from tilewright.tir.interpreter.memory import Memory, Pointer, View, compact_strides
from tilewright.tir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BlockRealize,
    BufferRealize,
    BufferStore,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    MatchBufferRegion,
    Prefetch,
    ProducerRealize,
    ProducerStore,
    SeqStmt,
    Stmt,
    Store,
    While,
)

Enter: TypeAlias = Callable[[Frame], None]


class StatementCompiler(ExpressionCompiler):
    """Makes closures of statements. A statement that prepares something for its body is an ``Enter`` and the body."""

    def __init__(self, lookup_function: Callable[[str], Callable[..., Any]]) -> None:
        super().__init__(lookup_function)
        self.view_variables: set[Var] = set()

    def visit_producer_store(self, node: ProducerStore | ProducerRealize) -> Run:
        raise TilewrightError(
            f"tensor {node.producer.name_hint} has no memory yet: lower the program before running it"
        )

    visit_producer_realize = visit_producer_store

    # Control

    def visit_seq_stmt(self, node: SeqStmt) -> Run:
        parts = [self.visit(part) for part in node.seq]
        if len(parts) == 2:
            first, second = parts

            def both(frame: Frame) -> None:
                first(frame)
                second(frame)

            return both

        def run(frame: Frame) -> None:
            for part in parts:
                part(frame)

        return run

    def visit_for(self, node: For) -> Run:
        low, extent, slot, body = self.loop_parts(node)

        def run(frame: Frame) -> None:
            start = low(frame)
            for value in range(start, start + extent(frame)):
                frame[slot] = value
                body(frame)

        return run

    def loop_parts(self, node: For) -> tuple[Run, Run, int, Run]:
        """First value, number of iterations, place of the variable, and body."""
        low, extent = self.visit(node.min), self.visit(node.extent)
        slot = self.define(node.loop_var)
        if node.thread_binding is not None:
            return low, extent, slot, self._also_defines(node.thread_binding.var, slot, node.body)
        return low, extent, slot, self.visit(node.body)

    def _also_defines(self, variable: Var, slot: int, body: Stmt) -> Run:
        """The body of a loop that is bound to a thread: the thread's variable is another name of the loop's."""
        self.slots.setdefault(variable, slot)
        return self.visit(body)  # type: ignore[no-any-return]

    def visit_while(self, node: While) -> Run:
        condition, body = self.visit(node.condition), self.visit(node.body)

        def run(frame: Frame) -> None:
            while condition(frame):
                body(frame)

        return run

    def visit_if_then_else(self, node: IfThenElse) -> Run:
        condition, then_case = self.whole(node.condition), self.visit(node.then_case)
        else_case = None if node.else_case is None else self.visit(node.else_case)

        def run(frame: Frame) -> None:
            if condition(frame):
                then_case(frame)
            elif else_case is not None:
                else_case(frame)

        return run

    def visit_evaluate(self, node: Evaluate) -> Run:
        return self.whole(node.value)

    def visit_prefetch(self, node: Prefetch) -> Run:
        return lambda frame: None

    def scoped(self, enter: Enter, body: Stmt) -> Run:
        """Runs the preparation of a statement, then its body."""
        inner = self.visit(body)

        def run(frame: Frame) -> None:
            enter(frame)
            inner(frame)

        return run

    def visit_let_stmt(self, node: LetStmt) -> Run:
        value = self.whole(node.value)
        slot = self.define(node.var)

        def enter(frame: Frame) -> None:
            frame[slot] = value(frame)

        return self.scoped(enter, node.body)

    def visit_assert_stmt(self, node: AssertStmt) -> Run:
        condition, message = self.visit(node.condition), self.visit(node.message)

        def enter(frame: Frame) -> None:
            if not condition(frame):
                raise TilewrightError(f"assertion failed: {message(frame)}", span=node.span)

        return self.scoped(enter, node.body)

    def visit_attr_stmt(self, node: AttrStmt) -> Run:
        if node.attr_key == "buffer_bind_scope":
            return self.scoped(self._bind_scope(node), node.body)
        return self.visit(node.body)  # type: ignore[no-any-return]

    # Flat memory

    def visit_store(self, node: Store) -> Run:
        pointer, value, index = self.visit(node.buffer_var), self.whole(node.value), self.whole(node.index)
        dtype, lanes, name = node.value.dtype.element, node.value.dtype.lanes, node.buffer_var.name
        if lanes == 1:
            mask = None if is_const(node.predicate, 1) else self.visit(node.predicate)

            slot = self.slots[node.buffer_var]

            def store(frame: Frame) -> None:
                # What ``memory_cells(...).store(...)`` does, written out.
                result = value(frame)
                if mask is None or mask(frame):
                    target = frame[slot]
                    cells = (
                        target.cells[dtype] if type(target) is Pointer else memory_cells(target, dtype, name)
                    )
                    position = index(frame) + cells.start
                    if not 0 <= position < cells.length:
                        raise cells.outside(position)
                    cells.items[position] = result

            return store
        positions = self.lane_positions(index, lanes, node.index.dtype.lanes)
        lane_mask = self.lane_mask(node.predicate, lanes)

        def store_lanes(frame: Frame) -> None:
            result, places = value(frame), positions(frame)
            if lane_mask is not None:
                chosen = lane_mask(frame)
                result, places = result[chosen], places[chosen]
            memory_cells(pointer(frame), dtype, name).store_lanes(places, result)

        return store_lanes

    def visit_allocate(self, node: Allocate) -> Run:
        slot = self.define(node.buffer_var)
        extents = [self.visit(extent) for extent in node.extents]
        allocate = self.allocator(node, node.buffer_var, node.dtype)

        def enter(frame: Frame) -> None:
            frame[slot] = allocate(frame, math.prod([extent(frame) for extent in extents]))

        return self.scoped(enter, node.body)

    def allocator(self, owner: Any, data: Var, dtype: DataType) -> Callable[[Frame, int], Pointer]:
        """How memory for this many elements is got; ``owner`` is the statement or buffer it belongs to."""
        name = data.name
        return lambda frame, count: Pointer(Memory.fresh(name, dtype, count))

    # Buffers

    def visit_buffer_store(self, node: BufferStore) -> Run:
        value = self.whole(node.value)
        if node.value.dtype.lanes > 1:
            cells_and_positions = self.buffer_lanes(node.buffer, node.indices)

            def store_lanes(frame: Frame) -> None:
                result = value(frame)
                cells, positions = cells_and_positions(frame)
                cells.store_lanes(positions, result)

            return store_lanes
        view_of, locate = self.view(node.buffer), self.locate(node.indices)

        def store(frame: Frame) -> None:
            view = view_of(frame)
            cells = view.cells
            result = value(frame)
            position = locate(frame, view) + cells.start
            if not 0 <= position < cells.length:
                raise cells.outside(position)
            cells.items[position] = result

        return store

    def visit_buffer_realize(self, node: BufferRealize) -> Run:
        lows = [self.visit(bound.min) for bound in node.bounds]
        extents = [self.visit(bound.extent) for bound in node.bounds]
        return self.scoped(self.give_memory(node.buffer, lows, extents), node.body)

    def give_memory(self, buffer: Buffer, lows: Sequence[Run] | None, extents: Sequence[Run]) -> Enter:
        """Memory for a box of a buffer. Without ``lows`` the box starts at zero and the buffer's own strides hold."""
        slot, data_slot = self.define_view(buffer), self.define(buffer.data)
        strides = [self.visit(stride) for stride in buffer.strides] if lows is None else []
        offset = self.visit(buffer.elem_offset) if lows is None else None
        allocate = self.allocator(buffer, buffer.data, buffer.dtype)

        def enter(frame: Frame) -> None:
            sizes = [extent(frame) for extent in extents]
            steps = [stride(frame) for stride in strides] if strides else compact_strides(sizes)
            start = 0 if offset is None else offset(frame)
            count = start + 1 + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
            pointer = frame[data_slot] = allocate(frame, 0 if 0 in sizes else count)
            begin = [0] * len(sizes) if lows is None else [low(frame) for low in lows]
            frame[slot] = View(buffer.name, pointer, buffer.dtype, start, begin, sizes, steps)

        return enter

    def _bind_scope(self, node: AttrStmt) -> Enter:
        """``buffer_bind_scope``.

        A buffer that stands for a box of another, given as pairs of first index and extent.
        """
        target, source = node.node[0], node.node[1]
        if not isinstance(source, Buffer):
            raise TilewrightError(
                f"buffer {target.name} is bound to a tensor that has no memory yet: lower the program"
            )
        region = list(getattr(node.value, "args", ()))
        return self.bind_view(target, source, region[0::2], region[1::2])

    def bind_view(
        self, target: Buffer, source: Buffer, lows: Sequence[PrimExpr], extents: Sequence[PrimExpr]
    ) -> Enter:
        """``target`` becomes another view of a box of ``source``; its free variables are bound from that box."""
        view_of = self.view(source)
        begin = [self.visit(low) for low in lows]
        sizes = [self.visit(extent) for extent in extents]
        data_slot = self.define(target.data)
        bound: set[Var] = set()
        bind_offset = self.bind_or_check(target.elem_offset, f"the offset of {target.name}", bound)
        bind_shape = [
            self.bind_or_check(extent, f"the shape of {target.name}", bound) for extent in target.shape
        ]
        bind_strides = [
            self.bind_or_check(step, f"a stride of {target.name}", bound) for step in target.strides
        ]
        slot = self.define_view(target)

        def enter(frame: Frame) -> None:
            view = view_of(frame)
            indices = [low(frame) for low in begin]
            position = view.offset + sum(
                index * step for index, step in zip(indices, view.strides, strict=True)
            )
            box = [size(frame) for size in sizes]
            rank = len(target.shape)
            shape, strides = box[len(box) - rank :], list(view.strides[len(box) - rank :])
            frame[data_slot] = view.pointer
            if isinstance(target.elem_offset, Var):
                bind_offset(frame, position)
                offset = position
            else:
                # A buffer whose offset is not free starts where its pointer does.
                size = target.dtype.itemsize * target.dtype.lanes
                frame[data_slot], offset = view.pointer.moved(position * size), 0
            for bind, value in zip(bind_shape, shape, strict=True):
                bind(frame, value)
            for bind, value in zip(bind_strides, strides, strict=False):
                bind(frame, value)
            frame[slot] = View(
                target.name, frame[data_slot], target.dtype, offset, [0] * rank, shape, strides
            )

        return enter

    def bind_or_check(self, expected: PrimExpr, what: str, bound: set[Var]) -> Callable[[Frame, int], None]:
        """Gives a variable that a view defines its value; anything else must have that value already.

        ``bound`` holds the variables that the same view has defined so far. A copy of a statement defines them anew.
        """
        if isinstance(expected, Var) and expected not in bound:
            if expected not in self.slots:
                self.view_variables.add(expected)
            if expected not in self.view_variables:
                return self._checker(expected, what)
            bound.add(expected)
            slot = self.define(expected)

            def bind(frame: Frame, value: int) -> None:
                frame[slot] = value

            return bind
        return self._checker(expected, what)

    def _checker(self, expected: PrimExpr, what: str) -> Callable[[Frame, int], None]:
        wanted = self.visit(expected)

        def check(frame: Frame, value: int) -> None:
            if wanted(frame) != value:
                raise TilewrightError(f"{what} must be {expected} = {wanted(frame)}, it is {value}")

        return check

    # Blocks

    def visit_block_realize(self, node: BlockRealize) -> Run:
        values = [self.visit(value) for value in node.iter_values]
        predicate = None if is_const(node.predicate, 1) else self.visit(node.predicate)
        slots = [self.define(axis.var) for axis in node.block.iter_vars]
        prepare = self.block_memory(node)
        starts = self._reduction_starts(node.block.iter_vars) if node.block.init is not None else None
        init = None if node.block.init is None else self.visit(node.block.init)
        body = self.visit(node.block.body)

        def run(frame: Frame) -> None:
            if predicate is not None and not predicate(frame):
                return
            for slot, value in zip(slots, [value(frame) for value in values], strict=True):
                frame[slot] = value
            for enter in prepare:
                enter(frame)
            if init is not None and starts is not None and starts(frame):
                init(frame)
            body(frame)

        return run

    def block_memory(self, node: BlockRealize) -> list[Enter]:
        """Allocates the buffers of a block."""
        prepare: list[Enter] = []
        for buffer in node.block.alloc_buffers:
            extents = [self.visit(extent) for extent in buffer.shape]
            prepare.append(self.give_memory(buffer, None, extents))
        prepare.extend([self._match_buffer(match) for match in node.block.match_buffers])
        return prepare

    def _match_buffer(self, match: MatchBufferRegion) -> Enter:
        region: BufferRegion = match.source
        return self.bind_view(
            match.buffer,
            region.buffer,
            [box.min for box in region.region],
            [box.extent for box in region.region],
        )

    def _reduction_starts(self, axes: Sequence[IterVar]) -> Callable[[Frame], bool]:
        """True in the first step of a reduction: every reduction axis is at the beginning of its range."""
        first = []
        for axis in axes:
            if axis.iter_type == IterVar.CommReduce:
                assert axis.dom is not None
                first.append((self.slots[axis.var], self.visit(axis.dom.min)))

        def starts(frame: Frame) -> bool:
            return all(frame[slot] == low(frame) for slot, low in first)

        return starts
