"""GPU threads, simulated.

The outermost statement that binds a thread index is a kernel. Its blocks run one after another. Each thread of a block
has its own frame and runs as a generator that stops at barriers: all threads reach a barrier before any continues, and
a barrier that only some of them reach is an error, because it would hang a device. Memory in a shared scope exists once
per block, other memory once per thread. Virtual threads are threads with private shared memory.

Before barriers have been inserted (a kernel that uses shared memory and has none), the threads run in lockstep,
statement by statement, which is the meaning that the insertion of barriers preserves: before each statement a thread
yields its place in the program, as numbers of statements and iterations from the outside in. A kernel without shared
memory and barriers runs as plain loops.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tilewright.ir.expr import Call, CommReducer, IterVar, PrimExpr, StringImm, Var
from tilewright.ir.functor import post_order
from tilewright.ir.op import Op
from tilewright.support.dtype import DataType
from tilewright.support.errors import TilewrightError
from tilewright.tir.interpreter.block import IN_STEP, Block, Steps, run_block, run_in_step
from tilewright.tir.interpreter.expressions import Frame, Run, memory_cells
from tilewright.tir.interpreter.fragments import Shape
from tilewright.tir.interpreter.memory import Memory, Pointer
from tilewright.tir.interpreter.ptx import STEPS
from tilewright.tir.interpreter.statements import Enter, StatementCompiler
from tilewright.tir.interpreter.tensor_maps import MapOf, compile_tensor_map
from tilewright.tir.interpreter.warps import compile_shuffle, is_shuffle, shuffles_of, with_shuffles
from tilewright.tir.ptx import TENSOR_MAP
from tilewright.tir.stmt import (
    Allocate,
    AttrStmt,
    BlockRealize,
    BufferRealize,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
)

_MEETING_POINTS = frozenset({"tir.tvm_storage_sync", "tir.tvm_thread_allreduce", *STEPS})


def is_meeting_point(node: Any) -> bool:
    """True for a call at which threads wait for one another."""
    if is_shuffle(node):
        return True
    return isinstance(node, Call) and isinstance(node.op, Op) and node.op.name in _MEETING_POINTS


def binds_thread(stmt: Any) -> IterVar | None:
    """The thread index that a statement binds, if it does."""
    if isinstance(stmt, AttrStmt) and stmt.attr_key in ("thread_extent", "virtual_thread"):
        return stmt.node if isinstance(stmt.node, IterVar) else None
    return None


def _tag(axis: IterVar) -> Any:
    """The identity of a thread index: the tag, or for virtual threads the variable itself."""
    return (
        axis.var
        if axis.thread_tag.startswith(("vthread", "cthread")) or not axis.thread_tag
        else axis.thread_tag
    )


def _is_shared(scope: str) -> bool:
    return scope.startswith("shared")


@dataclass
class Kernel:
    """A kernel while it is compiled.

    Its thread indices, the place of each, and whether its threads wait for one another.
    """

    slots: dict[Any, int]
    extents: dict[Any, Run]
    waiting: set[int]
    in_step: bool
    virtual_slots: list[int]


class ThreadCompiler(StatementCompiler):
    """A statement compiler that knows kernels.

    ``visit`` gives a plain closure, or a generator inside a waiting kernel.
    """

    def __init__(self, lookup_function: Callable[[str], Callable[..., Any]]) -> None:
        super().__init__(lookup_function)
        self.kernel: Kernel | None = None
        self.reducers: list[CommReducer] = []
        self.tensor_maps: dict[Var, MapOf] = {}
        self.fragment_shapes: dict[Var, Shape] = {}

    def waits(self, stmt: Stmt) -> bool:
        """True if the threads may stop inside the statement, so that its closure is a generator."""
        return self.kernel is not None and (self.kernel.in_step or id(stmt) in self.kernel.waiting)

    def as_steps(self, stmt: Stmt) -> Callable[[Frame], Steps]:
        """A statement as a generator."""
        run = self.visit(stmt)
        if self.waits(stmt):
            return run  # type: ignore[no-any-return]

        def steps(frame: Frame) -> Steps:
            run(frame)
            return iter(())

        return steps

    def visit(self, node: Any) -> Any:
        made = super().visit(node)
        if (
            self.kernel is not None
            and id(node) in self.kernel.waiting
            and isinstance(node, Stmt)
            and _is_leaf(node)
        ):
            shuffles = shuffles_of(node)
            if shuffles:
                values = [(call, self.visit(call.args[1])) for call in shuffles]
                return with_shuffles(made, values, self.thread_number())
        if self.kernel is not None and self.kernel.in_step and isinstance(node, Stmt) and _is_leaf(node):
            return _wait_first(made)
        return made

    def visit_call(self, node: Call) -> Run:
        if self.kernel is not None and is_shuffle(node):
            return compile_shuffle(node, self.visit, self.thread_number())
        return super().visit_call(node)

    def thread_number(self) -> Run:
        """The number of a thread within its block, in the order in which warps are made of them."""
        assert self.kernel is not None
        parts: list[tuple[int, Run]] = []
        for tag in ("threadIdx.z", "threadIdx.y", "threadIdx.x"):
            if tag in self.kernel.slots:
                parts.append((self.kernel.slots[tag], self.kernel.extents[tag]))

        def number(frame: Frame) -> int:
            total = 0
            for slot, extent in parts:
                total = total * extent(frame) + frame[slot]
            return total

        return number

    # Where a kernel begins

    def visit_attr_stmt(self, node: AttrStmt) -> Run:
        axis = binds_thread(node)
        if axis is not None:
            return self._thread_index(node, axis) if self.kernel is not None else self._launch(node)
        if node.attr_key == TENSOR_MAP and isinstance(node.node, Var):
            self.tensor_maps[node.node] = compile_tensor_map(node.value, self.visit)
        if node.attr_key == "reduce_scope" and isinstance(node.node, CommReducer):
            self.reducers.append(node.node)
            body = self.visit(node.body)
            self.reducers.pop()
            return body  # type: ignore[no-any-return]
        return super().visit_attr_stmt(node)

    def _thread_index(self, node: AttrStmt, axis: IterVar) -> Run:
        """Inside a kernel, binding an index gives it another name."""
        assert self.kernel is not None
        self.slots[axis.var] = self.kernel.slots[_tag(axis)]
        extent, known = self.visit(node.value), self.kernel.extents[_tag(axis)]
        name = axis.thread_tag or axis.var.name

        def enter(frame: Frame) -> None:
            if extent(frame) != known(frame):
                raise TilewrightError(
                    f"{name} has {known(frame)} threads in this kernel, but {extent(frame)} here"
                )

        virtual = node.attr_key == "virtual_thread"
        if virtual:
            self.kernel.virtual_slots.append(self.slots[axis.var])
        run = self.scoped(enter, node.body)
        if virtual:
            self.kernel.virtual_slots.pop()
        return run

    def _launch(self, node: AttrStmt) -> Run:
        """A kernel: every index that is bound in it, run over all its values."""
        found = post_order(node)
        bindings = [stmt for stmt in reversed(found) if binds_thread(stmt) is not None]
        kernel = self.kernel = Kernel({}, {}, _waiting_statements(found), False, [])
        kernel.in_step = not kernel.waiting and any(_uses_shared(stmt) for stmt in found)
        for stmt in bindings:
            assert isinstance(stmt, AttrStmt)
            axis = binds_thread(stmt)
            assert axis is not None
            if _tag(axis) not in kernel.slots:
                kernel.slots[_tag(axis)] = self.define(axis.var)
                kernel.extents[_tag(axis)] = self._launch_extent(stmt.value, axis)
        body = self.visit(node)
        self.kernel = None
        block_tags = [tag for tag in kernel.slots if isinstance(tag, str) and tag.startswith("blockIdx")]
        thread_tags = [tag for tag in kernel.slots if tag not in block_tags]
        waits = kernel.in_step or bool(kernel.waiting)

        def launch(frame: Frame) -> None:
            for block_index in _indices(frame, kernel, block_tags):
                frame[0] = Block()
                for slot, value in block_index:
                    frame[slot] = value
                if not waits:
                    for thread_index in _indices(frame, kernel, thread_tags):
                        for slot, value in thread_index:
                            frame[slot] = value
                        body(frame)
                    continue
                threads = []
                for thread_index in _indices(frame, kernel, thread_tags):
                    own = frame.copy()
                    for slot, value in thread_index:
                        own[slot] = value
                    threads.append(body(own))
                if kernel.in_step:
                    run_in_step(threads)
                else:
                    run_block(threads, frame[0])

        return launch

    def _launch_extent(self, extent: PrimExpr, axis: IterVar) -> Run:
        """The number of threads, which must be known when the kernel starts."""
        for variable in post_order(extent):
            if isinstance(variable, Var) and variable not in self.slots:
                raise TilewrightError(
                    f"the extent {extent} of {axis.thread_tag} uses {variable.name}, "
                    "which is not known when the kernel starts"
                )
        return self.visit(extent)  # type: ignore[no-any-return]

    def allocator(self, owner: Any, data: Var, dtype: DataType) -> Callable[[Frame, int], Pointer]:
        if self.kernel is None or not _is_shared(data.storage_scope):
            return super().allocator(owner, data, dtype)
        virtual_slots = tuple(self.kernel.virtual_slots)

        def allocate(frame: Frame, count: int) -> Pointer:
            key = (id(owner), *[frame[slot] for slot in virtual_slots])
            shared: dict[Any, Pointer] = frame[0].memory
            if key not in shared:
                shared[key] = Pointer(Memory.fresh(data.name, dtype, count))
            return shared[key]

        return allocate

    # Statements whose bodies may wait

    def _place(self) -> Callable[[int, Steps], Steps]:
        """Says in a kernel that runs in step which statement or iteration steps are in; elsewhere nobody asks."""
        return _inside if self.kernel is not None and self.kernel.in_step else lambda _, steps: steps

    def scoped(self, enter: Enter, body: Stmt) -> Run:
        if not self.waits(body):
            return super().scoped(enter, body)
        inner = self.visit(body)

        def steps(frame: Frame) -> Steps:
            enter(frame)
            yield from inner(frame)

        return steps

    def visit_let_stmt(self, node: LetStmt) -> Run:
        shuffles = shuffles_of(node.value) if self.waits(node) else []
        if not shuffles:
            return super().visit_let_stmt(node)
        values = [(call, self.visit(call.args[1])) for call in shuffles]
        value, slot, body = self.visit(node.value), self.define(node.var), self.as_steps(node.body)

        def assign(frame: Frame) -> None:
            frame[slot] = value(frame)

        bind = with_shuffles(assign, values, self.thread_number())

        def steps(frame: Frame) -> Steps:
            yield from bind(frame)
            yield from body(frame)

        return steps

    def visit_seq_stmt(self, node: SeqStmt) -> Run:
        if not self.waits(node):
            return super().visit_seq_stmt(node)
        parts, place = [self.as_steps(part) for part in node.seq], self._place()

        def steps(frame: Frame) -> Steps:
            for number, part in enumerate(parts):
                yield from place(number, part(frame))

        return steps

    def visit_for(self, node: For) -> Run:
        if not self.waits(node):
            return super().visit_for(node)
        low, extent, slot, body = self.loop_parts(node)
        place = self._place()

        def steps(frame: Frame) -> Steps:
            start = low(frame)
            for value in range(start, start + extent(frame)):
                frame[slot] = value
                yield from place(value, body(frame))

        return steps

    def visit_while(self, node: While) -> Run:
        if not self.waits(node):
            return super().visit_while(node)
        condition, body, place = self.visit(node.condition), self.visit(node.body), self._place()

        def steps(frame: Frame) -> Steps:
            iteration = 0
            while condition(frame):
                yield from place(iteration, body(frame))
                iteration += 1

        return steps

    def visit_if_then_else(self, node: IfThenElse) -> Run:
        if not self.waits(node):
            return super().visit_if_then_else(node)
        condition, then_case = self.visit(node.condition), self.as_steps(node.then_case)
        else_case = None if node.else_case is None else self.as_steps(node.else_case)
        place = self._place()

        def steps(frame: Frame) -> Steps:
            if condition(frame):
                yield from place(0, then_case(frame))
            elif else_case is not None:
                yield from place(1, else_case(frame))

        return steps

    def visit_block_realize(self, node: BlockRealize) -> Run:
        if self.waits(node):
            raise TilewrightError("a block whose threads wait for one another must be lowered before it runs")
        return super().visit_block_realize(node)

    # Calls at which threads meet

    def visit_evaluate(self, node: Evaluate) -> Run:
        if not self.waits(node) or not is_meeting_point(node.value):
            return super().visit_evaluate(node)
        call = node.value
        assert isinstance(call, Call)
        if call.op.name in STEPS:
            return STEPS[call.op.name](self, call)
        if call.op.name == "tir.tvm_thread_allreduce":
            return self._all_reduce(call)
        scope = call.args[0].value if isinstance(call.args[0], StringImm) else "shared"
        if scope == "global":
            raise TilewrightError("a barrier across blocks cannot be simulated", span=call.span)
        barrier: Any = call if scope != "warp" else IN_STEP

        def wait(frame: Frame) -> Steps:
            yield barrier

        return wait

    def _all_reduce(self, call: Call) -> Run:
        """``tvm_thread_allreduce(n, values, condition, results, indices)``.

        Combines the values of all threads along indices.
        """
        if not self.reducers:
            raise TilewrightError("tvm_thread_allreduce is outside a reduce_scope", span=call.span)
        reducer = self.reducers[-1]
        count = len(reducer.lhs)
        sources = [self.visit(value) for value in call.args[1 : 1 + count]]
        condition = self.visit(call.args[1 + count])
        targets = list(call.args[2 + count : 2 + 2 * count])
        pointers = [self.visit(target) for target in targets]
        along = {self.slots[axis] for axis in call.args[2 + 2 * count :] if isinstance(axis, Var)}
        assert self.kernel is not None
        others = sorted(slot for slot in self.kernel.slots.values() if slot not in along)
        left = [self.define(variable) for variable in reducer.lhs]
        right = [self.define(variable) for variable in reducer.rhs]
        combine = [self.visit(value) for value in reducer.result]
        identity = [self.visit(value) for value in reducer.identity_element]
        types = [value.dtype for value in call.args[1 : 1 + count]]

        def meet(frame: Frame) -> Steps:
            group = (id(call), *[frame[slot] for slot in others])
            chosen = sources if condition(frame) else identity
            frame[0].brought.setdefault(group, []).append(tuple([value(frame) for value in chosen]))
            yield call
            brought = frame[0].brought[group]
            totals = list(brought[0])
            for values in brought[1:]:
                for slot, value in zip(left + right, totals + list(values), strict=True):
                    frame[slot] = value
                totals = [value(frame) for value in combine]
            for pointer, dtype, total in zip(pointers, types, totals, strict=True):
                memory_cells(pointer(frame), dtype, "the result of a reduction").store(0, total)
            yield call
            # A thread that went on may have brought the first value of the next round already.
            if frame[0].brought.get(group) is brought:
                del frame[0].brought[group]

        return meet


def _is_leaf(stmt: Stmt) -> bool:
    """True for a statement without statements in it."""
    return not any(isinstance(child, Stmt) for child in stmt.children())


def _wait_first(run: Run) -> Run:
    def steps(frame: Frame) -> Steps:
        yield ()
        run(frame)

    return steps


def _inside(number: int, steps: Steps) -> Steps:
    """The steps of a statement, or of one iteration, with its number before the places within it."""
    for place in steps:
        yield (number, *place)


def _waiting_statements(found: list[Any]) -> set[int]:
    """The statements in which threads meet, of all nodes of a kernel with children before parents."""
    waiting: set[int] = set()
    for node in found:
        if is_meeting_point(node) or any(id(child) in waiting for child in node.children()):
            waiting.add(id(node))
    return waiting


def _uses_shared(stmt: Any) -> bool:
    if isinstance(stmt, Allocate):
        return _is_shared(stmt.buffer_var.storage_scope)
    return isinstance(stmt, BufferRealize) and _is_shared(stmt.buffer.scope())


def _indices(frame: Frame, kernel: Kernel, tags: list[Any]) -> Iterator[list[tuple[int, int]]]:
    """Every combination of values of these indices, the last running fastest, as pairs of place and value."""
    ranges = [range(kernel.extents[tag](frame)) for tag in tags]
    slots = [kernel.slots[tag] for tag in tags]
    for point in itertools.product(*ranges):
        yield list(zip(slots, point, strict=True))
