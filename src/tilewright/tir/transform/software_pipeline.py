"""Overlaps copies to shared memory with the work on what was copied before.

A loop with the annotation ``software_pipeline`` (or the pragma of that name around it) fills shared buffers in each
iteration and then uses them. With ``n`` stages, each of these buffers gets ``n`` times its size, and the copies for
iteration ``i + n - 1`` are started before the work of iteration ``i``: asynchronous ones where the target has
``cp.async`` and a copy moves 4, 8 or 16 aligned bytes from global memory, ordinary ones elsewhere.

Before, with three stages::

    for i:                       After:    copy(0, into 0); commit; copy(1, into 1); commit
        copy(i)                            for i:
        work(i)                                wait until one group is unfinished; barrier
                                               if i + 2 < extent: copy(i + 2, into (i + 2) % 3)
                                               commit
                                               work(i, from i % 3)

The barrier makes what all threads copied visible, and is behind the work that used the stage which is filled next. A
group is committed in every iteration, empty at the end, so that the count of unfinished ones stays right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tilewright.ir import operators
from tilewright.ir.buffer import READ, WRITE
from tilewright.ir.expr import Call, IntImm, Load, PrimExpr, Var
from tilewright.ir.functor import Mutator, post_order
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.target.gpu import describe_arch
from tilewright.target.target import Target
from tilewright.tir import ptx
from tilewright.tir.function import PrimFunc
from tilewright.tir.functor import substitute
from tilewright.tir.stmt import Allocate, AttrStmt, Evaluate, For, IfThenElse, SeqStmt, Stmt, Store, stmt_seq
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.async_copies import AsyncCopies
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator

PIPELINE: Final = "software_pipeline"
_PRAGMA: Final = f"pragma_{PIPELINE}"
_WRITE: Final = "double_buffer_write"
_MOST_STAGES: Final = 16


class _Pipeline(StmtMutator):
    """Rewrites the marked loops of a function."""

    def __init__(self, has_async_copies: bool, body: Stmt) -> None:
        super().__init__()
        self.has_async_copies = has_async_copies
        self.body = body
        self.sizes = _sizes(body)
        self.stages: dict[Var, int] = {}

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key != _PRAGMA:
            return node.map_children(self.visit)
        if not isinstance(node.body, For):
            return self.visit(node.body)  # type: ignore[no-any-return]
        return self._loop(node.body, node.value)

    def visit_for(self, node: For) -> Stmt:
        wanted = node.annotations.get(PIPELINE, node.annotations.get(_PRAGMA))
        return node.map_children(self.visit) if wanted is None else self._loop(node, wanted)

    def visit_allocate(self, node: Allocate) -> Stmt:
        made: Allocate = node.map_children(self.visit)
        stages = self.stages.get(node.buffer_var)
        if stages is None:
            return made
        return made.replace(extents=(operators.const(stages, node.extents[0].dtype), *node.extents))

    def _loop(self, node: For, wanted: Any) -> Stmt:
        stages = wanted.value if isinstance(wanted, IntImm) else wanted
        if not isinstance(stages, int) or not 1 <= stages <= _MOST_STAGES:
            raise LoweringError(
                f"software_pipeline of loop {node.loop_var.name}: the number of stages is 1 to {_MOST_STAGES}, "
                f"not {wanted}"
            )
        rest = {key: value for key, value in node.annotations.items() if key not in (PIPELINE, _PRAGMA)}
        loop = node.replace(annotations=rest)
        return loop if stages == 1 else self._pipelined(loop, stages)

    def _pipelined(self, loop: For, stages: int) -> Stmt:
        parts = list(loop.body.seq) if isinstance(loop.body, SeqStmt) else [loop.body]
        copies, work = _divided(loop, parts)
        buffers = sorted({var for copy in copies for var in _stored(copy)}, key=lambda var: var.name)
        for buffer in buffers:
            if buffer not in self.sizes or buffer in self.stages:
                raise LoweringError(
                    f"software_pipeline of loop {loop.loop_var.name}: {buffer.name} is not allocated in this function, "
                    "or is filled by two such loops"
                )
            if _accesses(self.body, buffer) - _accesses(loop, buffer):
                raise LoweringError(
                    f"software_pipeline of loop {loop.loop_var.name}: {buffer.name} is used outside the loop, too"
                )
        self.stages.update(dict.fromkeys(buffers, stages))
        ahead = stages - 1
        copier = AsyncCopies() if self.has_async_copies else None
        first = operators.subtract(loop.loop_var, loop.min)
        filled = [copier.visit(copy) if copier is not None else copy for copy in copies]
        if copier is not None and not copier.made:
            copier = None

        def stage_of(iteration: PrimExpr) -> dict[Var, PrimExpr]:
            stage = operators.floormod(iteration, stages)
            return {buffer: operators.multiply(stage, self.sizes[buffer]) for buffer in buffers}

        def copy_for(iteration: PrimExpr) -> Stmt:
            body: Stmt = substitute(stmt_seq(*filled), {loop.loop_var: operators.add(loop.min, iteration)})
            body = _Moved(stage_of(iteration)).visit(body)
            inside = operators.less(iteration, loop.extent)
            if isinstance(inside, IntImm):
                body = body if inside.value else stmt_seq()
            else:
                body = IfThenElse(inside, body)
            for buffer in buffers:
                body = AttrStmt(buffer, _WRITE, 1, body)
            return body

        def with_commit(copy: Stmt) -> list[Stmt]:
            return [copy, Evaluate(ptx.cp_async_commit())] if copier is not None else [copy]

        before: list[Stmt] = []
        for number in range(ahead):
            before += with_commit(copy_for(operators.const(number, loop.loop_var.dtype)))
        used = _Moved(stage_of(first)).visit(stmt_seq(*work))
        scopes = sorted({buffer.storage_scope for buffer in buffers})
        body = [
            *([Evaluate(ptx.cp_async_wait(ahead - 1))] if copier is not None else []),
            *[Evaluate(operators.call("tvm_storage_sync", "int32", [scope])) for scope in scopes],
            *with_commit(copy_for(operators.add(first, ahead))),
            used,
        ]
        return stmt_seq(*before, loop.replace(body=stmt_seq(*body)))


class _Moved(Mutator):
    """Accesses to buffers, moved by some elements."""

    memoize = True

    def __init__(self, offsets: dict[Var, PrimExpr]) -> None:
        super().__init__()
        self.offsets = offsets

    def visit_load(self, node: Load) -> PrimExpr:
        made: Load = node.map_children(self.visit)
        offset = self.offsets.get(node.buffer_var)
        return made if offset is None else made.replace(index=operators.add(made.index, offset))

    def visit_store(self, node: Store) -> Stmt:
        made: Store = node.map_children(self.visit)
        offset = self.offsets.get(node.buffer_var)
        return made if offset is None else made.replace(index=operators.add(made.index, offset))

    def visit_call(self, node: Call) -> PrimExpr:
        made: Call = node.map_children(self.visit)
        if not _is_pointer(node) or node.args[1] not in self.offsets:
            return made
        annotation, data, start, extent, mask = made.args
        assert isinstance(data, Var)
        moved = operators.add(start, self.offsets[data])
        return made.replace(args=(annotation, data, moved, extent, mask))


def _divided(loop: For, parts: list[Stmt]) -> tuple[list[Stmt], list[Stmt]]:
    """The statements of a loop that only fill shared memory from global memory, and the others."""
    copies = [part for part in parts if _is_copy(part)]
    work = [part for part in parts if not _is_copy(part)]
    name = f"software_pipeline of loop {loop.loop_var.name}"
    if not copies:
        raise LoweringError(
            f"{name}: no statement of its body does nothing but copy to shared memory; compute the shared stages at "
            "this loop (compute_at)"
        )
    filled = {var for copy in copies for var in _stored(copy)}
    read = {var for copy in copies for var in _loaded(copy)}
    for part in work:
        for var in sorted(_stored(part) & (filled | read), key=lambda one: one.name):
            raise LoweringError(
                f"{name}: {var.name} is written by the work, too, so copies cannot be started early"
            )
    return copies, work


def _is_copy(stmt: Stmt) -> bool:
    stored, loaded = _stored(stmt), _loaded(stmt)
    return (
        bool(stored)
        and all(var.storage_scope.startswith("shared") for var in stored)
        and all(var.storage_scope in ("", "global") for var in loaded)
    )


def _stored(stmt: Stmt) -> set[Var]:
    """The buffers that a statement writes."""
    found = {node.buffer_var for node in post_order(stmt) if isinstance(node, Store)}
    return found | {var for var, mask in _pointers(stmt) if mask & WRITE}


def _loaded(stmt: Stmt) -> set[Var]:
    """The buffers that a statement reads."""
    found = {node.buffer_var for node in post_order(stmt) if isinstance(node, Load)}
    return found | {var for var, mask in _pointers(stmt) if mask & READ}


def _accesses(stmt: Stmt, buffer: Var) -> set[int]:
    """The nodes that access a buffer."""
    return {
        id(node)
        for node in post_order(stmt)
        if (isinstance(node, (Load, Store)) and node.buffer_var is buffer)
        or (isinstance(node, Call) and _is_pointer(node) and node.args[1] is buffer)
    }


def _pointers(stmt: Stmt) -> list[tuple[Var, int]]:
    found = []
    for node in post_order(stmt):
        if isinstance(node, Call) and _is_pointer(node) and isinstance(node.args[1], Var):
            mask = node.args[4]
            found.append((node.args[1], mask.value if isinstance(mask, IntImm) else READ | WRITE))
    return found


def _is_pointer(node: Call) -> bool:
    return isinstance(node.op, Op) and node.op.name == "tir.tvm_access_ptr"


def _sizes(body: Stmt) -> dict[Var, PrimExpr]:
    """The elements of each allocation."""
    found: dict[Var, PrimExpr] = {}
    for node in post_order(body):
        if isinstance(node, Allocate):
            size: PrimExpr = operators.const(node.dtype.lanes, "int32")
            for extent in node.extents:
                size = operators.multiply(size, extent)
            found[node.buffer_var] = size
    return found


@dataclass(frozen=True)
class SoftwarePipeline(PrimFuncPass):
    """Start the copies of marked loops some iterations ahead."""

    name = "tir.SoftwarePipeline"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        if not any(_is_marked(node) for node in post_order(function.body)):
            return function
        target = function.attrs.get("target")
        is_cuda = isinstance(target, Target) and target.kind.name == "cuda"
        pipeline = _Pipeline(is_cuda and describe_arch(target).has_async_copy, function.body)
        return function.with_body(pipeline.visit(function.body))


def _is_marked(node: Any) -> bool:
    if isinstance(node, AttrStmt):
        return node.attr_key == _PRAGMA
    return isinstance(node, For) and (PIPELINE in node.annotations or _PRAGMA in node.annotations)
