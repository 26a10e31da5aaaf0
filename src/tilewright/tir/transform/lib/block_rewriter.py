"""A rewriter for passes over blocks: it also visits the regions that blocks read, write and match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.ir.buffer import Buffer, BufferRegion
from tilewright.ir.expr import BufferLoad, IterVar, PrimExpr
from tilewright.ir.functor import Mutator
from tilewright.tir.function import PrimFunc
from tilewright.tir.functor import Substitute, statements_in
from tilewright.tir.stmt import Block, BlockRealize, BufferStore, MatchBufferRegion, Stmt


def has_blocks(function: PrimFunc) -> bool:
    """True for a program of blocks: tensor-expression schedules have none."""
    return any(isinstance(found, BlockRealize) for found in statements_in(function.body))


class BlockMutator(Mutator):
    """Rewrites statements and expressions, and the boxes of blocks; ``visit_buffer`` says what a buffer becomes."""

    def visit_buffer(self, node: Buffer) -> Buffer:
        """The buffer that stands for this one."""
        return node

    def visit_iter_var(self, node: IterVar) -> IterVar:
        return node.map_children(self.visit)

    def visit_buffer_load(self, node: BufferLoad) -> Any:
        made = node.map_children(self.visit)
        buffer = self.visit_buffer(node.buffer)
        return made if buffer is node.buffer else made.replace(buffer=buffer)

    def visit_buffer_store(self, node: BufferStore) -> Any:
        made = node.map_children(self.visit)
        buffer = self.visit_buffer(node.buffer)
        return made if buffer is node.buffer else made.replace(buffer=buffer)

    def visit_buffer_region(self, node: BufferRegion) -> BufferRegion:
        """A box: its ranges rewritten, its buffer replaced."""
        made: BufferRegion = node.map_children(self.visit)
        buffer = self.visit_buffer(node.buffer)
        return made if buffer is node.buffer else made.replace(buffer=buffer)

    def visit_match_buffer_region(self, node: MatchBufferRegion) -> MatchBufferRegion:
        """A view: its source rewritten, itself replaced."""
        source, buffer = self.visit_buffer_region(node.source), self.visit_buffer(node.buffer)
        return (
            node
            if source is node.source and buffer is node.buffer
            else node.replace(source=source, buffer=buffer)
        )

    def visit_block(self, node: Block) -> Stmt:
        made: Block = node.map_children(self.visit)
        changes: dict[str, Any] = {}
        for field, rewrite in (
            ("reads", self.visit_buffer_region),
            ("writes", self.visit_buffer_region),
            ("match_buffers", self.visit_match_buffer_region),
            ("alloc_buffers", self.visit_buffer),
        ):
            old = getattr(node, field)
            new = tuple([rewrite(item) for item in old])
            if any(after is not before for after, before in zip(new, old, strict=True)):
                changes[field] = new
        return made.replace(**changes) if changes else made


class BlockSubstitute(Substitute):
    """Replaces variables by a mapping that may grow on the way.

    So only buffers are cached: each becomes one buffer, wherever it occurs.
    """

    memoize = False

    def __init__(self, mapping: Mapping[Any, PrimExpr]) -> None:
        super().__init__(mapping)
        self.buffers: dict[Buffer, Buffer] = {}

    def visit_buffer(self, node: Buffer) -> Buffer:
        found = self.buffers.get(node)
        if found is None:
            found = self.buffers[node] = super().visit_buffer(node)
        return found
