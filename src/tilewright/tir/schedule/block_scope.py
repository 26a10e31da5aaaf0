"""References to loops and blocks that survive rewriting, and the dependences between the blocks of a scope.

A scope is a block together with the blocks directly below it. A dependence leads from an earlier block to a later one
that accesses the same buffer; "earlier" is the order of the text.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import IntEnum

from tilewright.support.node import Object
from tilewright.tir.stmt import Block, For


class StmtSRef(Object):
    """A loop or a block of a scheduled program. ``stmt`` is what it is now, None when it is no longer there."""

    __slots__ = ("__weakref__", "parent", "stmt")

    def __init__(self, stmt: Block | For, parent: StmtSRef | None) -> None:
        self.stmt: Block | For | None = stmt
        self.parent = parent

    @property
    def block(self) -> Block:
        """The block that this refers to."""
        assert isinstance(self.stmt, Block)
        return self.stmt

    @property
    def loop(self) -> For:
        """The loop that this refers to."""
        assert isinstance(self.stmt, For)
        return self.stmt

    @property
    def is_block(self) -> bool:
        """True for a block, False for a loop."""
        return isinstance(self.stmt, Block)

    @property
    def label(self) -> str:
        """How messages name it."""
        if isinstance(self.stmt, Block):
            return f"block {self.stmt.name_hint}"
        return f"loop {self.stmt.loop_var.name}" if self.stmt is not None else "a removed statement"

    def __repr__(self) -> str:
        return f"StmtSRef({self.label})"


class DepKind(IntEnum):
    """Why one block must stay after another."""

    RAW = 0
    """It reads what the other writes."""
    WAW = 1
    """It writes what the other writes."""
    WAR = 2
    """It writes what the other reads."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """``dst`` must stay after ``src``."""

    src: StmtSRef
    dst: StmtSRef
    kind: DepKind


class BlockScope:
    """The dependencies among the child blocks of one scope, which are given in the order of the text."""

    def __init__(self, child_blocks: list[StmtSRef]) -> None:
        self.child_blocks = child_blocks
        self.dependencies: list[Dependency] = []
        readers: dict[object, list[StmtSRef]] = defaultdict(list)
        writers: dict[object, list[StmtSRef]] = defaultdict(list)
        for dst in child_blocks:
            reads = dict.fromkeys(region.buffer.data for region in dst.block.reads)
            writes = dict.fromkeys(region.buffer.data for region in dst.block.writes)
            for data in reads:
                self._add(writers[data], dst, DepKind.RAW)
            for data in writes:
                self._add(writers[data], dst, DepKind.WAW)
                self._add(readers[data], dst, DepKind.WAR)
            for data in reads:
                readers[data].append(dst)
            for data in writes:
                writers[data].append(dst)

    def _add(self, sources: list[StmtSRef], dst: StmtSRef, kind: DepKind) -> None:
        known = {(one.src, one.kind) for one in self.dependencies if one.dst is dst}
        for src in sources:
            if (src, kind) not in known:
                self.dependencies.append(Dependency(src, dst, kind))

    def get_deps_by_src(self, block: StmtSRef) -> list[Dependency]:
        """The dependences from the block."""
        return [one for one in self.dependencies if one.src is block]

    def get_deps_by_dst(self, block: StmtSRef) -> list[Dependency]:
        """The dependences that lead to the block."""
        return [one for one in self.dependencies if one.dst is block]

    def producers(self, block: StmtSRef) -> list[StmtSRef]:
        """The blocks that write what this one reads, in order, each once."""
        return list(dict.fromkeys(one.src for one in self.get_deps_by_dst(block) if one.kind == DepKind.RAW))

    def consumers(self, block: StmtSRef) -> list[StmtSRef]:
        """The blocks that read what this one writes, in order, each once."""
        return list(dict.fromkeys(one.dst for one in self.get_deps_by_src(block) if one.kind == DepKind.RAW))
