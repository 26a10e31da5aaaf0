"""The innermost loop or block that contains all accesses to each buffer."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import BufferLoad, Var
from tilewright.support.recursion import recursion_room
from tilewright.tir.analysis.statement_visitor import StatementVisitor
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Block, BufferRealize, BufferStore, For, Stmt

Scope = tuple[Stmt, ...]


class _Accesses(StatementVisitor):
    """Keeps, for every buffer, the scopes that all accesses so far have in common."""

    def __init__(self, buffers: Iterable[Buffer]) -> None:
        super().__init__()
        self.scope: list[Stmt] = []
        self.common: dict[Buffer, Scope] = {}
        self.by_data: dict[Var, Buffer] = {}
        for buffer in buffers:
            self.declare(buffer)

    def declare(self, buffer: Buffer) -> None:
        """Make a buffer known by its data pointer, through which opaque code reaches it."""
        self.by_data.setdefault(buffer.data, buffer)

    def access(self, buffer: Buffer) -> None:
        """An access at this place."""
        known = self.common.get(buffer)
        if known is None:
            self.common[buffer] = tuple(self.scope)
            return
        shared = 0
        for one, other in zip(known, self.scope, strict=False):
            if one is not other:
                break
            shared += 1
        self.common[buffer] = known[:shared]

    def visit_for(self, node: For) -> None:
        self.visit(node.min)
        self.visit(node.extent)
        self.scope.append(node)
        self.visit(node.body)
        self.scope.pop()

    def visit_block(self, node: Block) -> None:
        for buffer in node.alloc_buffers:
            self.declare(buffer)
        self.scope.append(node)
        for match in node.match_buffers:
            self.declare(match.buffer)
            self.access(match.source.buffer)
        if node.init is not None:
            self.visit(node.init)
        self.visit(node.body)
        self.scope.pop()

    def visit_buffer_realize(self, node: BufferRealize) -> None:
        self.declare(node.buffer)
        self.visit_default(node)

    def visit_buffer_load(self, node: BufferLoad) -> None:
        self.access(node.buffer)
        self.visit_default(node)

    def visit_buffer_store(self, node: BufferStore) -> None:
        self.access(node.buffer)
        self.visit_default(node)

    def visit_var(self, node: Var) -> None:
        buffer = self.by_data.get(node)
        if buffer is not None:
            self.access(buffer)


def detect_buffer_access_lca(func: PrimFunc) -> dict[Buffer, Stmt | None]:
    """For each accessed buffer, the innermost For or Block around all its accesses; None for the whole function."""
    accesses = _Accesses(func.buffer_map.values())
    with recursion_room():
        accesses.visit(func.body)
    return {buffer: scope[-1] if scope else None for buffer, scope in accesses.common.items()}
