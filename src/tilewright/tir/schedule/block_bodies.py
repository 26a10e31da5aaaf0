"""Rewriting inside blocks: replacing reads of a buffer, replacing buffers, and recomputing the regions of blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.ir.buffer import Buffer, BufferRegion, decl_buffer
from tilewright.ir.expr import BufferLoad, PrimExpr, Var
from tilewright.ir.functor import post_order
from tilewright.tir.analysis.block_access_region import get_block_read_write_region
from tilewright.tir.stmt import Block, BufferStore, Stmt
from tilewright.tir.transform.lib.block_rewriter import BlockMutator

LoadRewriter = Callable[[Sequence[PrimExpr]], PrimExpr]


class LoadReplacer(BlockMutator):
    """Replaces every read of one buffer by an expression of its indices; the boxes of the blocks follow."""

    def __init__(self, buffer: Buffer, value: LoadRewriter, buffers: Mapping[Var, Buffer]) -> None:
        super().__init__()
        self.buffer = buffer
        self.value = value
        self.buffers = buffers
        self.blocks: dict[Block, Block] = {}

    def visit_buffer_load(self, node: BufferLoad) -> Any:
        made = node.map_children(self.visit)
        return self.value(made.indices) if node.buffer is self.buffer else made

    def visit_block(self, node: Block) -> Stmt:
        made: Block = node.map_children(self.visit)
        if made is node:
            return node
        if any(region.buffer is self.buffer for region in node.reads):
            made = with_regions(made, self.buffers)
        self.blocks[node] = made
        return made


class BufferReplacer(BlockMutator):
    """Replaces one buffer by another everywhere, its pointer too."""

    def __init__(self, old: Buffer, new: Buffer) -> None:
        super().__init__()
        self.old = old
        self.new = new
        self.blocks: dict[Block, Block] = {}

    def visit_buffer(self, node: Buffer) -> Buffer:
        return self.new if node is self.old else node

    def visit_var(self, node: Var) -> Var:
        return self.new.data if node is self.old.data else node

    def visit_block(self, node: Block) -> Stmt:
        made = super().visit_block(node)
        assert isinstance(made, Block)
        if made is not node:
            self.blocks[node] = made
        return made


def with_regions(block: Block, buffers: Mapping[Var, Buffer]) -> Block:
    """The block with its reads and writes as its body has them."""
    reads, writes = get_block_read_write_region(block, buffers)
    return block.replace(reads=tuple(reads), writes=tuple(writes))


def has_view(stmt: Stmt, buffer: Buffer) -> bool:
    """True if a block matches another buffer with a part of this one."""
    return any(
        isinstance(node, Block) and any(match.source.buffer is buffer for match in node.match_buffers)
        for node in post_order(stmt)
    )


def is_hidden(stmt: Stmt, buffer: Buffer) -> bool:
    """True if a buffer is reached otherwise than by loads and stores: through a view, or by its pointer."""
    return has_view(stmt, buffer) or any(node is buffer.data for node in post_order(stmt))


def loads_of(stmt: Stmt, buffer: Buffer) -> list[BufferLoad]:
    """The reads of a buffer below a statement."""
    return [node for node in post_order(stmt) if isinstance(node, BufferLoad) and node.buffer is buffer]


def single_store(block: Block) -> BufferStore | None:
    """The store that is all that a block does; None if it does more."""
    plain = not block.match_buffers and not block.alloc_buffers
    return block.body if plain and isinstance(block.body, BufferStore) else None


def distinct_variables(indices: Sequence[PrimExpr]) -> list[Var] | None:
    """The indices, if they are variables each of which is there once; else None."""
    found = [index for index in indices if isinstance(index, Var)]
    return found if len(found) == len(indices) == len(set(found)) else None


def regions_of(regions: Sequence[BufferRegion], buffer: Buffer) -> list[BufferRegion]:
    """Those of the regions that are of a buffer."""
    return [region for region in regions if region.buffer is buffer]


def new_buffer(like: Buffer, name: str, shape: Sequence[PrimExpr], storage_scope: str) -> Buffer:
    """A buffer of the same type; "global" is the memory that buffers have when nothing is said."""
    scope = "" if storage_scope == "global" else storage_scope
    return decl_buffer(shape, like.dtype, name, scope=scope)
