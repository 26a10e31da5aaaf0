"""Visiting and rewriting statements together with the expressions in them.

``Visitor`` and ``Mutator`` of ``ir.functor`` already handle statements, because a statement's children are its
expressions and sub-statements. This file adds the public functions over both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tilewright.ir.buffer import Buffer, BufferRegion
from tilewright.ir.expr import BufferLoad, IterVar, PrimExpr, Reduce, Var
from tilewright.ir.functor import Mutator, post_order
from tilewright.support.node import Node
from tilewright.support.recursion import with_recursion_room
from tilewright.tir.stmt import (
    AttrStmt,
    Block,
    BufferRealize,
    BufferStore,
    MatchBufferRegion,
    Prefetch,
    Stmt,
)

N = TypeVar("N", bound=Node)


def post_order_visit(stmt: Node, fvisit: Callable[[Any], None]) -> None:
    """Call ``fvisit`` for every distinct node, children first."""
    for found in post_order(stmt):
        fvisit(found)


def statements_in(root: Stmt) -> list[Stmt]:
    """Every distinct statement below and including ``root``, children first. Expressions, most of a program, are not
    looked into."""
    order: list[Stmt] = []
    seen = {id(root)}
    path, pending = [root], [iter(root.children())]
    while pending:
        for child in pending[-1]:
            if isinstance(child, Stmt) and id(child) not in seen:
                seen.add(id(child))
                path.append(child)
                pending.append(iter(child.children()))
                break
        else:
            pending.pop()
            order.append(path.pop())
    return order


class _Transform(Mutator):
    """``ir_transform``: a hook before and a hook after the children."""

    def __init__(
        self,
        preorder: Callable[[Any], Any] | None,
        postorder: Callable[[Any], Any] | None,
        only: frozenset[str] | None,
    ) -> None:
        super().__init__()
        self.preorder = preorder
        self.postorder = postorder
        self.only = only

    def visit_default(self, node: Any) -> Any:
        enabled = self.only is None or type(node).__name__ in self.only
        if enabled and self.preorder is not None:
            made = self.preorder(node)
            if made is not None:
                return made
        rebuilt = node.map_children(self.visit)
        if enabled and self.postorder is not None:
            made = self.postorder(rebuilt)
            if made is not None:
                return made
        return rebuilt


@with_recursion_room
def ir_transform(
    stmt: N,
    preorder: Callable[[Any], Any] | None,
    postorder: Callable[[Any], Any] | None,
    only_enable: Sequence[str] | None = None,
) -> N:
    """Rewrite with hooks that return a replacement or None; a replacement from ``preorder`` is not looked into.

    ``only_enable`` names the node classes that the hooks see, with or without the prefix ``tir.``.
    """
    only = frozenset(name.removeprefix("tir.") for name in only_enable) if only_enable is not None else None
    return _Transform(preorder, postorder, only).visit(stmt)  # type: ignore[no-any-return]


class Substitute(Mutator):
    """Replaces variables, also inside buffers whose data, shape, strides or offset name them."""

    memoize = True

    def __init__(
        self, mapping: Mapping[Any, PrimExpr], known: Mapping[int, tuple[Any, Any]] | None = None
    ) -> None:
        """``known`` are results by the node's id, with the node: see ``independent_nodes``."""
        super().__init__()
        self.mapping = mapping
        if known:
            self._memo.update(known)

    def visit_var(self, node: Var) -> PrimExpr:
        found = self.mapping.get(node)
        return node if found is None else found

    def visit_buffer(self, node: Buffer) -> Buffer:
        data = self.visit(node.data)
        shape = tuple([self.visit(extent) for extent in node.shape])
        strides = tuple([self.visit(stride) for stride in node.strides])
        offset = self.visit(node.elem_offset)
        same = data is node.data and offset is node.elem_offset
        same = same and all(new is old for new, old in zip(shape, node.shape, strict=True))
        same = same and all(new is old for new, old in zip(strides, node.strides, strict=True))
        return node if same else node.replace(data=data, shape=shape, strides=strides, elem_offset=offset)

    def visit_buffer_load(self, node: BufferLoad) -> Any:
        made = node.map_children(self.visit)
        buffer = self.visit(node.buffer)
        return made if buffer is node.buffer else made.replace(buffer=buffer)

    def visit_buffer_store(self, node: BufferStore) -> Any:
        made = node.map_children(self.visit)
        buffer = self.visit(node.buffer)
        return made if buffer is node.buffer else made.replace(buffer=buffer)

    def visit_buffer_realize(self, node: BufferRealize) -> Any:
        made = node.map_children(self.visit)
        buffer = self.visit(node.buffer)
        return made if buffer is node.buffer else made.replace(buffer=buffer)

    def visit_buffer_region(self, node: BufferRegion) -> BufferRegion:
        made = node.map_children(self.visit)
        buffer = self.visit(node.buffer)
        return made if buffer is node.buffer else made.replace(buffer=buffer)

    def visit_match_buffer_region(self, node: MatchBufferRegion) -> MatchBufferRegion:
        buffer, source = self.visit(node.buffer), self.visit(node.source)
        return node if buffer is node.buffer and source is node.source else MatchBufferRegion(buffer, source)

    def visit_block(self, node: Block) -> Any:
        made = node.map_children(self.visit)
        changes = {}
        for name in ("reads", "writes", "alloc_buffers", "match_buffers"):
            old = getattr(node, name)
            new = tuple([self.visit(part) for part in old])
            if any(part is not kept for part, kept in zip(new, old, strict=True)):
                changes[name] = new
        return made.replace(**changes) if changes else made

    def visit_reduce(self, node: Reduce) -> Any:
        made = node.map_children(self.visit)
        axes = tuple([self.visit(axis) for axis in node.axis])
        same = all(new is old for new, old in zip(axes, node.axis, strict=True))
        return made if same else made.replace(axis=axes)

    def visit_prefetch(self, node: Prefetch) -> Any:
        made = node.map_children(self.visit)
        buffer = self.visit(node.buffer) if isinstance(node.buffer, Buffer) else node.buffer
        return made if buffer is node.buffer else made.replace(buffer=buffer)

    def visit_attr_stmt(self, node: AttrStmt) -> Any:
        made = node.map_children(self.visit)
        holder = self.visit(node.node) if isinstance(node.node, (Var, IterVar, Buffer)) else node.node
        return made if holder is node.node else made.replace(node=holder)


_HOLD_MORE_THAN_CHILDREN = (
    *(AttrStmt, Block, Buffer, BufferLoad, BufferRealize, BufferRegion, BufferStore, MatchBufferRegion),
    *(Prefetch, Reduce),
)
"""The classes for which ``Substitute`` looks at other fields than the children."""


def independent_nodes(root: Node, variable: Var) -> dict[int, tuple[Any, Any]]:
    """The nodes below ``root`` that no value of a variable changes, as ``Substitute`` remembers them: to begin each of
    many substitutions of one variable with."""
    found: dict[int, tuple[Any, Any]] = {}
    for node in post_order(root):
        if node is variable or isinstance(node, _HOLD_MORE_THAN_CHILDREN):
            continue
        for child in node.children():
            if id(child) not in found:
                break
        else:
            found[id(node)] = (node, node)
    return found


@with_recursion_room
def substitute(node: N, vmap: Mapping[Any, PrimExpr]) -> N:
    """The expression or statement with variables replaced."""
    return Substitute(vmap).visit(node) if vmap else node
