"""Whether the loops of a program fit a GPU's blocks, seen before they are lowered any further."""

from __future__ import annotations

import math
from typing import Any

from tilewright.ir.expr import IntImm, IterVar
from tilewright.support.recursion import with_recursion_room
from tilewright.tir.stmt import AttrStmt, For, ForKind, ProducerRealize, Stmt


class _Use:
    """What a program uses at most, walking into its threads."""

    def __init__(self) -> None:
        self.threads: dict[str, int] = {}
        self.virtual_threads = 1
        self.most_threads = 1
        self.most_virtual = 1
        self.shared = 0
        self.most_shared = 0
        self.vector_bytes = 0

    def visit(self, statement: Stmt, widest: int) -> None:
        if isinstance(statement, AttrStmt) and isinstance(statement.node, IterVar):
            before = dict(self.threads), self.virtual_threads
            if statement.attr_key == "thread_extent" and statement.node.thread_tag.startswith("threadIdx"):
                self.threads[statement.node.thread_tag] = _constant(statement.value)
            elif statement.attr_key == "virtual_thread":
                self.virtual_threads *= _constant(statement.value)
            self.most_threads = max(self.most_threads, math.prod(self.threads.values()))
            self.most_virtual = max(self.most_virtual, self.virtual_threads)
            self.visit(statement.body, widest)
            self.threads, self.virtual_threads = before
            return
        if isinstance(statement, ProducerRealize):
            size = math.prod(_constant(bound.extent) for bound in statement.bounds) * _bytes(
                statement.producer
            )
            shared = size if statement.storage_scope == "shared" else 0
            self.shared += shared
            self.most_shared = max(self.most_shared, self.shared)
            self.visit(statement.body, _bytes(statement.producer))
            self.shared -= shared
            return
        if isinstance(statement, For) and statement.kind == ForKind.VECTORIZED:
            self.vector_bytes = max(self.vector_bytes, _constant(statement.extent) * widest)
        for child in statement.children():
            if isinstance(child, Stmt):
                self.visit(child, widest)


def _constant(value: Any) -> int:
    return value.value if isinstance(value, IntImm) else 1


def _bytes(tensor: Any) -> int:
    return max(1, int(tensor.dtype.bits) // 8)


@with_recursion_room
def fits_blocks(statement: Stmt, hardware: Any) -> bool:
    """True if threads, virtual threads, shared memory and vectors keep within the limits of a machine. A limit of zero
    is none. What later passes add is checked when the program is built."""
    use = _Use()
    use.visit(statement, 4)
    found = (
        (use.most_threads, hardware.max_threads_per_block),
        (use.most_virtual, hardware.max_vthread_extent),
        (use.most_shared, hardware.max_shared_memory_per_block),
        (use.vector_bytes, hardware.vector_unit_bytes),
    )
    return all(limit <= 0 or used <= limit for used, limit in found)
