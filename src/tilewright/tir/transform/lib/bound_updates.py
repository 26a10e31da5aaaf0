"""Checks that every update of memory shared by threads belongs to one of them.

Once loops are bound to threads, all threads of a kernel run all of it. A statement outside the loops of some thread
axis then runs once in each of its threads. That is harmless for a plain store; an accumulation into memory that those
threads share would be applied many times.
"""

from __future__ import annotations

from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import BufferLoad, is_const
from tilewright.ir.functor import post_order
from tilewright.support.errors import LoweringError
from tilewright.tir.stmt import Block, BlockRealize, BufferStore, For, ForKind, Stmt
from tilewright.tir.storage_rank import StorageRank, is_shared_by, storage_rank
from tilewright.tir.transform.lib.scoped_rewriter import StmtVisitor


class _Updates(StmtVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.kernel: frozenset[str] = frozenset()
        self.bound: list[str] = []
        self.own: set[Buffer] = set()
        self.blocks: list[str] = []

    def visit_for(self, node: For) -> None:
        binding = node.thread_binding
        if node.kind != ForKind.THREAD_BINDING or binding is None:
            self.visit_default(node)
            return
        launches = not self.bound
        if launches:
            self.kernel = frozenset(_thread_tags(node))
        self.bound.append(binding.thread_tag)
        self.visit_default(node)
        self.bound.pop()
        if launches:
            self.kernel = frozenset()

    def visit_block_realize(self, node: BlockRealize) -> None:
        self.blocks.append(node.block.name_hint)
        self.visit_default(node)
        self.blocks.pop()

    def visit_block(self, node: Block) -> None:
        if self.bound:
            self.own.update(node.alloc_buffers)
        self.visit_default(node)

    def visit_buffer_store(self, node: BufferStore) -> None:
        buffer = node.buffer
        rank = storage_rank(buffer.scope())
        if rank == StorageRank.GLOBAL and buffer in self.own:
            return
        for tag in sorted(self.kernel.difference(self.bound)):
            if is_shared_by(rank, tag) and _adds(node):
                name = next((one for one in reversed(self.blocks) if one), "of the kernel")
                raise LoweringError(
                    f"block {name} updates {buffer.name}, which the threads of {tag} share, and none of its loops is "
                    f"bound to {tag}: every thread would do it. Bind a data-parallel loop of the block to {tag}, or "
                    "update local memory"
                )


def _thread_tags(stmt: Stmt) -> list[str]:
    """The thread axes of more than one thread that loops of a kernel are bound to."""
    return [
        one.thread_binding.thread_tag
        for one in post_order(stmt)
        if isinstance(one, For) and one.thread_binding is not None and not is_const(one.extent, 1)
    ]


def _adds(store: BufferStore) -> bool:
    """True if a store depends on what is there."""
    return any(isinstance(one, BufferLoad) and one.buffer is store.buffer for one in post_order(store.value))


def require_bound_updates(stmt: Stmt) -> None:
    """Refuse a kernel in which every thread would do one update; see the module's text."""
    _Updates().visit(stmt)
