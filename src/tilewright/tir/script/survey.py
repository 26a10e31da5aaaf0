"""The definitions and uses in a program, in the order of its text: what a printed function must declare in its head."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilewright.ir.buffer import Buffer, BufferRegion
from tilewright.ir.expr import CommReducer, IterVar, Let, Reduce, Var
from tilewright.support.node import Node
from tilewright.tir import stmt as nodes

_BUFFER_FIELDS = ("buffer", "alloc_buffers", "reads", "writes", "match_buffers")


class Survey:
    """A walk over a program. The dictionaries are ordered sets."""

    def __init__(self, root: Any) -> None:
        self.used: dict[Var, None] = {}
        self.defined: dict[Var, None] = {}
        """Variables that a statement or a lambda introduces with its own text."""
        self.buffers: dict[Buffer, None] = {}
        self.declared: dict[Buffer, None] = {}
        """Buffers that a block declares."""
        self.realized: dict[Buffer, None] = {}
        """Buffers that a statement gives memory to."""
        self.threads: dict[IterVar, None] = {}
        self.has_blocks = False
        self._walk(root)

    def _walk(self, root: Any) -> None:
        """Visit every distinct node, parents before children. Iterative."""
        stack: list[Any] = [root]
        seen: set[int] = set()
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            self._look(node)
            stack.extend(reversed(list(_parts(node))))

    def _look(self, node: Any) -> None:
        if isinstance(node, Var):
            self.used[node] = None
        elif isinstance(node, Buffer):
            self.buffers[node] = None
        elif isinstance(node, nodes.For):
            self.defined[node.loop_var] = None
        elif isinstance(node, nodes.LetStmt):
            self.defined[node.var] = None
        elif isinstance(node, nodes.Allocate):
            self.defined[node.buffer_var] = None
        elif isinstance(node, nodes.BufferRealize):
            self.realized[node.buffer] = None
        elif isinstance(node, CommReducer):
            self.defined.update(dict.fromkeys((*node.lhs, *node.rhs)))
        elif isinstance(node, (Let, IterVar)):
            self.used[node.var] = None
        elif isinstance(node, nodes.AttrStmt) and isinstance(node.node, IterVar):
            self.threads[node.node] = None
        elif isinstance(node, nodes.Block):
            self.has_blocks = True
            self.defined.update(dict.fromkeys([axis.var for axis in node.iter_vars]))
            self.declared.update(dict.fromkeys(node.alloc_buffers))
            self.declared.update(dict.fromkeys([match.buffer for match in node.match_buffers]))


def _parts(node: Any) -> Iterator[Any]:
    """Everything a node refers to, its buffers and other fields that are not children included."""
    if isinstance(node, (list, tuple)):
        yield from node
        return
    if not isinstance(node, Node):
        return
    if isinstance(node, Buffer):
        yield from (node.data, *node.shape, *node.strides, node.elem_offset)
        return
    if isinstance(node, BufferRegion):
        yield from (node.buffer, *node.region)
        return
    if isinstance(node, nodes.MatchBufferRegion):
        yield from (node.source, node.buffer)
        return
    if isinstance(node, nodes.For) and node.thread_binding is not None:
        # A thread that is only named by its tag has a variable that nothing refers to.
        if node.thread_binding.dom is not None:
            yield node.thread_binding
    elif isinstance(node, nodes.AttrStmt):
        yield node.node
    elif isinstance(node, Reduce):
        yield from (node.combiner, *node.axis)
    for name in _BUFFER_FIELDS:
        found = getattr(node, name, None)
        if isinstance(found, (Node, tuple)):
            yield found
    yield from node.children()


def free_variables(buffer: Buffer) -> dict[Var, None]:
    """The variables that a buffer's declaration mentions."""
    return Survey(buffer).used
