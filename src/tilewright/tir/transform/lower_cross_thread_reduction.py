"""Lowers blocks that reduce over threads.

A reduction block some of whose reduction loops are bound to ``threadIdx`` becomes several statements, all of them in
the loops over those threads:

* where other loops reduce as well, each thread first reduces its own share in them, into memory of its own;
* ``tvm_thread_allreduce`` combines the values of all threads, and gives the result to each;
* a block writes the result back.

Either the reduction loops are the innermost ones around the block, with nothing else in them; or those over threads are
outside, and what they hold may contain other blocks, which do not use the result. Afterwards no reduction is over
threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.ir import operators
from tilewright.ir.buffer import Buffer, BufferRegion, decl_buffer
from tilewright.ir.expr import BufferLoad, IterVar, PrimExpr, Range, Var, is_const
from tilewright.ir.functor import substitute_expr, uses_var
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import (
    AttrStmt,
    Block,
    BlockRealize,
    BufferStore,
    Evaluate,
    For,
    IfThenElse,
    Stmt,
    While,
    stmt_seq,
)
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.known_reduction import KnownReduction, known_reduction
from tilewright.tir.transform.lib.predicates import conjunction, conjuncts
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator

_THREADS = "threadIdx"


def is_thread_loop(loop: For) -> bool:
    """True for a loop over the threads of a block of threads, which can combine values."""
    return loop.thread_binding is not None and loop.thread_binding.thread_tag.startswith(_THREADS)


@dataclass
class _Found:
    """A reduction over threads: the block, what it computes, and the loops that it reduces over, outermost first."""

    realize: BlockRealize
    reduction: KnownReduction
    loops: list[For]
    temporaries: list[Buffer] = field(default_factory=list)

    @property
    def block(self) -> Block:
        return self.realize.block

    def temporary(self, name: str) -> Buffer:
        """Memory of each thread for one value."""
        dtype = self.reduction.buffer.dtype
        made = decl_buffer((1,), dtype, name, scope="local", strides=[1])
        self.temporaries.append(made)
        return made


class _Lowerer(StmtMutator):
    """Looks for such blocks from the outside, so that the outermost of their loops is replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.new_buffers: list[list[Buffer]] = [[]]
        self.threads: list[Var] = []

    def visit_block(self, node: Block) -> Stmt:
        self.new_buffers.append([])
        made: Block = node.map_children(self.visit)
        added = self.new_buffers.pop()
        return made.replace(alloc_buffers=(*made.alloc_buffers, *added)) if added else made

    def visit_for(self, node: For) -> Stmt:
        found = _reduction_below(node)
        if found is None and (mixed := _reduction_among_others(node)) is not None:
            lowered = self.visit(_lower_among_others(mixed, node))
            self.new_buffers[-1] += mixed.temporaries
            return lowered  # type: ignore[no-any-return]
        if found is None:
            self.threads += [node.loop_var] if is_thread_loop(node) and not is_const(node.extent, 1) else []
            made: Stmt = node.map_children(self.visit)
            self.threads = [one for one in self.threads if one is not node.loop_var]
            return made
        lowered = _lower(found)
        self.new_buffers[-1] += found.temporaries
        return lowered

    def visit_block_realize(self, node: BlockRealize) -> Stmt:
        pairs = zip(node.block.iter_vars, node.iter_values, strict=True)
        over = [value for axis, value in pairs if axis.iter_type == IterVar.CommReduce]
        if node.block.init is not None and any(uses_var(value, self.threads) for value in over):
            raise LoweringError(
                f"block {node.block.name_hint} reduces over threads in a loop with other statements: give it loops of "
                "its own"
            )
        made: Stmt = node.map_children(self.visit)
        return made


def _reduction_below(loop: For) -> _Found | None:
    """The reduction over threads whose loops begin with this one; an error if other loops or statements are between
    them."""
    chain = [loop]
    while isinstance(chain[-1].body, For):
        chain.append(chain[-1].body)
    realize = chain[-1].body
    if not isinstance(realize, BlockRealize) or realize.block.init is None:
        return None
    pairs = list(zip(realize.block.iter_vars, realize.iter_values, strict=True))
    values = [value for axis, value in pairs if axis.iter_type == IterVar.CommReduce]
    loops = [one for one in chain if any(uses_var(value, one.loop_var) for value in values)]
    if not any(is_thread_loop(one) for one in loops) or loops[0] is not loop:
        return None
    block = realize.block
    if loops != chain:
        other = next(one for one in chain if one not in loops)
        raise LoweringError(
            f"block {block.name_hint} reduces over threads, and loop {other.loop_var.name}, over which it does not "
            "reduce, is inside of its reduction loops: reorder the loops"
        )
    data = [value for axis, value in pairs if axis.iter_type != IterVar.CommReduce]
    if any(uses_var(value, one.loop_var) for value in data for one in loops):
        raise LoweringError(f"block {block.name_hint} reduces over threads that its data axes depend on, too")
    reduction = known_reduction(block)
    if reduction is None:
        raise LoweringError(
            f"block {block.name_hint} reduces over threads, and is not a sum, product, minimum or maximum that starts "
            "with the identity of the operation"
        )
    return _Found(realize, reduction, loops)


def _reduction_among_others(loop: For) -> _Found | None:
    """The one reduction over all threads of nested loops, this one outermost, that hold other blocks, too. There are no
    conditions in them: all threads get to the end."""
    threads = [loop]
    while isinstance(threads[-1].body, For) and is_thread_loop(threads[-1].body):
        threads.append(threads[-1].body)
    inside = _blocks_in(threads[-1].body)
    if not is_thread_loop(loop) or inside is None:
        return None
    over = [(one, loops) for one, loops in inside if _reduced_loops(one, threads)]
    if len(over) != 1:
        return None
    realize, around = over[0]
    block, reduction = realize.block, known_reduction(realize.block)
    if reduction is None or len(_reduced_loops(realize, threads)) != len(threads):
        return None
    pairs = zip(block.iter_vars, realize.iter_values, strict=True)
    data = [value for axis, value in pairs if axis.iter_type != IterVar.CommReduce]
    if any(uses_var(value, [one.loop_var for one in (*threads, *around)]) for value in data):
        return None
    for other, _ in inside:
        touched = (*other.block.reads, *other.block.writes)
        if other is not realize and any(region.buffer is reduction.buffer for region in touched):
            raise LoweringError(
                f"block {other.block.name_hint} uses {reduction.buffer.name} in the loops over threads in which block "
                f"{block.name_hint} reduces into it"
            )
    return _Found(realize, reduction, [*threads, *around])


def _reduced_loops(realize: BlockRealize, loops: list[For]) -> list[For]:
    """Those of some loops that a block with an initialisation reduces over."""
    if realize.block.init is None:
        return []
    pairs = zip(realize.block.iter_vars, realize.iter_values, strict=True)
    values = [value for axis, value in pairs if axis.iter_type == IterVar.CommReduce]
    return [one for one in loops if any(uses_var(value, one.loop_var) for value in values)]


def _blocks_in(body: Stmt) -> list[tuple[BlockRealize, list[For]]] | None:
    """The blocks below a statement with no other block between, and the loops around each; None if there are conditions
    around them."""
    found: list[tuple[BlockRealize, list[For]]] = []
    stack: list[tuple[Stmt, list[For]]] = [(body, [])]
    while stack:
        node, loops = stack.pop()
        if isinstance(node, BlockRealize):
            found.append((node, loops))
            continue
        if isinstance(node, (IfThenElse, While)):
            return None
        inner = [*loops, node] if isinstance(node, For) else loops
        stack += [(child, inner) for child in reversed(node.children()) if isinstance(child, Stmt)]
    return found


class _Exchange(StmtMutator):
    """Puts one statement in the place of another."""

    def __init__(self, old: Stmt, new: Stmt) -> None:
        super().__init__()
        self.old, self.new = old, new

    def visit_block_realize(self, node: BlockRealize) -> Stmt:
        return self.new if node is self.old else node


def _lower_among_others(found: _Found, loop: For) -> Stmt:
    """The loops over threads with each thread's own reduction where the block was, and the rest at their end."""
    threads = [loop]
    while isinstance(threads[-1].body, For) and is_thread_loop(threads[-1].body):
        threads.append(threads[-1].body)
    result = found.temporary("reduce_temp")
    init, update = _own_share(found)
    body = stmt_seq(
        init,
        _Exchange(found.realize, update).visit(threads[-1].body),
        _across_threads(found, threads, found.temporaries[-1], result),
        _write_back(found, result),
    )
    for one in reversed(threads):
        body = one.replace(body=body)
    return body


def _lower(found: _Found) -> Stmt:
    """The statements of a reduction over threads, in the loops over the threads."""
    threads = [one for one in found.loops if is_thread_loop(one)]
    serial = [one for one in found.loops if not is_thread_loop(one)]
    result = found.temporary("reduce_temp")
    parts: list[Stmt] = []
    share = None
    if serial:
        init, nest = _own_share(found)
        for loop in reversed(serial):
            nest = loop.replace(body=nest)
        parts, share = [init, nest], found.temporaries[-1]
    parts.append(_across_threads(found, threads, share, result))
    parts.append(_write_back(found, result))
    body = stmt_seq(*parts)
    for loop in reversed(threads):
        body = loop.replace(body=body)
    return body


def _own_share(found: _Found) -> tuple[Stmt, Stmt]:
    """The start and the step of each thread's own reduction, over the loops that are not over threads."""
    share, reduction, block = found.temporary("normal_reduce_temp"), found.reduction, found.block
    at = _whole(share)
    zero = operators.const(0)
    init = Block(
        [], [], [at], f"{block.name_hint}_in_thread_init", BufferStore(share, reduction.start, [zero])
    )
    axes, values = _copied(block.iter_vars)
    added = reduction.operation(BufferLoad(share, [zero]), substitute_expr(reduction.value, values))
    update = Block(
        axes,
        [*_other_reads(found, values), at],
        [at],
        f"{block.name_hint}_in_thread",
        BufferStore(share, added, [zero]),
    )
    return (
        BlockRealize([], operators.const_true(), init),
        BlockRealize(found.realize.iter_values, found.realize.predicate, update),
    )


def _across_threads(found: _Found, threads: list[For], share: Buffer | None, result: Buffer) -> Stmt:
    """The combination of all threads' values."""
    block, zero = found.block, operators.const(0)
    axes: list[IterVar] = []
    values: tuple[PrimExpr, ...] = ()
    condition = operators.const_true()
    if share is None:
        axes, renamed = _copied(block.iter_vars)
        values = found.realize.iter_values
        # Every thread takes part; one whose predicate is false contributes the identity.
        condition = found.realize.predicate
        value, reads = substitute_expr(found.reduction.value, renamed), _other_reads(found, renamed)
    else:
        value, reads = BufferLoad(share, [zero]), [_whole(share)]
    arguments = [
        operators.const(1, "uint32"),
        value,
        condition,
        result.data,
        *[loop.loop_var for loop in threads],
    ]
    call = Evaluate(operators.call("tvm_thread_allreduce", "handle", arguments))
    nowhere = operators.call("reinterpret", "handle", [operators.const(0, "uint64")])
    body = AttrStmt(found.reduction.reducer, "reduce_scope", nowhere, call)
    made = Block(axes, reads, [_whole(result)], f"{block.name_hint}_cross_thread", body)
    return BlockRealize(values, operators.const_true(), made)


def _write_back(found: _Found, result: Buffer) -> Stmt:
    """Every thread writes the result: what the conditions on the reduction do not concern."""
    block, realize = found.block, found.realize
    pairs = list(zip(block.iter_vars, realize.iter_values, strict=True))
    kept = [(axis, value) for axis, value in pairs if axis.iter_type != IterVar.CommReduce]
    axes, renamed = _copied([axis for axis, _ in kept])
    indices = [substitute_expr(one, renamed) for one in found.reduction.indices]
    loops = [loop.loop_var for loop in found.loops]
    conditions = [one for one in conjuncts(realize.predicate) if not uses_var(one, loops)]
    writes = [_renamed(region, renamed) for region in block.writes]
    store = BufferStore(found.reduction.buffer, BufferLoad(result, [operators.const(0)]), indices)
    made = Block(axes, [_whole(result)], writes, f"{block.name_hint}_write_back", store)
    return BlockRealize([value for _, value in kept], conjunction(conditions), made)


def _whole(buffer: Buffer) -> BufferRegion:
    """The one element of a temporary."""
    return BufferRegion(buffer, (Range.from_min_extent(operators.const(0), operators.const(1)),))


def _copied(axes: list[IterVar] | tuple[IterVar, ...]) -> tuple[list[IterVar], dict[Var, PrimExpr]]:
    """Axes with variables of their own, and those by the old ones."""
    made = [IterVar(axis.dom, Var(axis.var.name, axis.var.dtype), axis.iter_type) for axis in axes]
    return made, {old.var: new.var for old, new in zip(axes, made, strict=True)}


def _renamed(region: BufferRegion, values: dict[Var, PrimExpr]) -> BufferRegion:
    ranges = [
        Range.from_min_extent(substitute_expr(one.min, values), substitute_expr(one.extent, values))
        for one in region.region
    ]
    return BufferRegion(region.buffer, tuple(ranges))


def _other_reads(found: _Found, values: dict[Var, PrimExpr]) -> list[BufferRegion]:
    """What the block reads but for what it reduces into."""
    buffer = found.reduction.buffer
    return [_renamed(region, values) for region in found.block.reads if region.buffer is not buffer]


@dataclass(frozen=True)
class LowerCrossThreadReduction(PrimFuncPass):
    """Let threads combine the values of blocks that reduce over them."""

    name = "tir.LowerCrossThreadReduction"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(_Lowerer().visit(function.body))
