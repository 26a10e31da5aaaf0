"""A program under scheduling: its module, a reference for each loop and block, and the single way to change it.

Every function of the module that has a body of blocks can be scheduled. ``replace`` replaces statements and preserves
references: a loop is identified by its variable, a block by object identity or by the map of blocks that the caller
gives. Nothing else changes a program, so a step is undone by restoring a ``Snapshot``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Any

from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import Var
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.support.errors import ScheduleError
from tilewright.support.recursion import recursion_room
from tilewright.support.span import user_span
from tilewright.tir.analysis.block_access_region import get_block_access_region
from tilewright.tir.function import PrimFunc
from tilewright.tir.functor import Substitute
from tilewright.tir.schedule.block_scope import BlockScope, StmtSRef
from tilewright.tir.schedule.flags import CachedFlags, flags_of
from tilewright.tir.stmt import Block, BlockRealize, For, SeqStmt, Stmt, stmt_seq
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator
from tilewright.tir.verify import verify_module


class ScheduleDebugMask(IntFlag):
    """The checks after every step."""

    VERIFY_SREF_TREE = 1
    """Every reference is what the program says."""
    VERIFY_PROGRAM = 2
    """The program passes the verifier."""


DEBUG_MASKS = {"none": 0, "all": int(ScheduleDebugMask.VERIFY_SREF_TREE | ScheduleDebugMask.VERIFY_PROGRAM)}


class _Replacer(StmtMutator):
    """Puts new statements in their places and notes what becomes of the blocks around them."""

    def __init__(self, changes: Mapping[Stmt, Stmt], blocks: dict[Block, Block]) -> None:
        super().__init__()
        self.changes = changes
        self.blocks = blocks

    def visit(self, node: Any) -> Any:
        if not isinstance(node, Stmt):
            return node
        found = self.changes.get(node)
        if found is not None:
            return found
        made = super().visit(node)
        if isinstance(node, Block) and made is not node:
            self.blocks[node] = made
        return made

    def visit_seq_stmt(self, node: SeqStmt) -> Stmt:
        made: SeqStmt = node.map_children(self.visit)
        return node if made is node else stmt_seq(*made.seq)


class TrackingSubstitute(Substitute):
    """Replaces variables and notes what becomes of blocks."""

    def __init__(self, mapping: Mapping[Any, Any], blocks: dict[Block, Block]) -> None:
        super().__init__(mapping)
        self.blocks = blocks

    def visit_block(self, node: Block) -> Any:
        made = super().visit_block(node)
        if made is not node:
            self.blocks[node] = made
        return made


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A saved state."""

    mod: IRModule
    references: dict[Stmt, StmtSRef]
    parents: dict[StmtSRef, StmtSRef | None]
    realizes: dict[Block, BlockRealize]


class ScheduleState:
    """A module and references to its loops and blocks."""

    def __init__(self, mod: IRModule | PrimFunc, *, debug_mask: str | int = "none") -> None:
        if isinstance(mod, PrimFunc):
            mod = IRModule({"main": mod})
        if not isinstance(mod, IRModule):
            raise ScheduleError(
                f"a schedule is created from a PrimFunc or an IRModule, not from {mod!r}", span=user_span()
            )
        if isinstance(debug_mask, str):
            if debug_mask not in DEBUG_MASKS:
                raise ScheduleError(f'debug_mask is "all", "none" or a number, not {debug_mask!r}')
            debug_mask = DEBUG_MASKS[debug_mask]
        self.debug_mask = int(debug_mask)
        self.mod = mod
        self.references: dict[Stmt, StmtSRef] = {}
        self.realizes: dict[Block, BlockRealize] = {}
        self._index({})
        for function in self.functions().values():
            _require_declared(function)

    # Questions

    def get_sref(self, stmt: Block | For) -> StmtSRef:
        """The reference to a loop or block of the program."""
        found = self.references.get(stmt)
        if found is None:
            raise ScheduleError(
                f"this {type(stmt).__name__} is not part of the scheduled program", span=user_span()
            )
        return found

    def get_block_scope(self, block: StmtSRef) -> BlockScope:
        """The dependencies among the blocks directly below a block."""
        return BlockScope(self.child_blocks(block))

    def _get_cached_flags(self, block_sref: StmtSRef) -> CachedFlags:
        """What is known about a block: whether its binding is affine, what it reads is written before, and its scope
        is a pipeline."""
        return flags_of(self, block_sref)

    def children(self, reference: StmtSRef) -> list[StmtSRef]:
        """The loops and blocks directly below, in order."""
        return list(self._below.get(reference, ()))

    def child_blocks(self, reference: StmtSRef) -> list[StmtSRef]:
        """The blocks below with no other block between, in order; of a block itself those below it."""
        found: list[StmtSRef] = []
        waiting = self.children(reference)
        while waiting:
            first = waiting.pop(0)
            if first.is_block:
                found.append(first)
            else:
                waiting = self.children(first) + waiting
        return found

    def realize(self, block: StmtSRef) -> BlockRealize:
        """The statement that runs a block."""
        return self.realizes[block.block]

    def root(self, function: PrimFunc) -> StmtSRef:
        """The outermost block of a function."""
        body = function.body
        assert isinstance(body, BlockRealize)
        return self.references[body.block]

    def functions(self) -> dict[GlobalVar, PrimFunc]:
        """The functions of the module that can be scheduled."""
        return {
            name: function
            for name, function in self.mod.functions.items()
            if isinstance(function, PrimFunc) and isinstance(function.body, BlockRealize)
        }

    def function_of(self, reference: StmtSRef) -> PrimFunc:
        """The function that a loop or block is in."""
        while reference.parent is not None:
            reference = reference.parent
        return next(one for one in self.functions().values() if self.root(one) is reference)

    # Changes

    def replace(
        self,
        changes: Mapping[Stmt, Stmt] | StmtSRef,
        blocks: Mapping[Block, Block] | Stmt | None = None,
        block_sref_reuse: Mapping[Block, Block] | None = None,
    ) -> None:
        """Replace statements by others, all in one function: a mapping, or a reference and the new statement.

        ``blocks`` says which blocks of the new statements are what old ones have become. Loops with the variable of
        an old loop are that loop. References to anything else that is gone become empty.
        """
        if isinstance(changes, StmtSRef):
            if changes.stmt is None or not isinstance(blocks, Stmt):
                raise ScheduleError(
                    "replace takes a reference to a statement of the program and a statement for its place",
                    span=user_span(),
                )
            changes, blocks = {changes.stmt: blocks}, block_sref_reuse
        assert not isinstance(blocks, Stmt)
        became: dict[Block, Block] = dict(blocks or {})
        made: dict[GlobalVar, PrimFunc] = {}
        with recursion_room():
            for name, function in self.functions().items():
                body = _Replacer(changes, became).visit(function.body)
                if body is not function.body:
                    made[name] = function.with_body(body)
        self.mod = self.mod.with_functions({**self.mod.functions, **made})
        self._index({new: old for old, new in became.items()})
        self._check()

    def replace_in_scope(
        self,
        scope: StmtSRef,
        changes: Mapping[Stmt, Stmt],
        blocks: Mapping[Block, Block] | None = None,
        *,
        added: Sequence[Buffer] = (),
        removed: Sequence[Buffer] = (),
    ) -> None:
        """Replace statements inside one block, which also gets other allocated buffers."""
        became: dict[Block, Block] = dict(blocks or {})
        old = scope.block
        with recursion_room():
            body = _Replacer(changes, became).visit(old.body)
        kept = [buffer for buffer in old.alloc_buffers if not any(buffer is one for one in removed)]
        became[old] = old.replace(body=body, alloc_buffers=(*kept, *added))
        self.replace({old: became[old]}, became)

    def snapshot(self) -> Snapshot:
        """Saves the current state."""
        parents = {reference: reference.parent for reference in self.references.values()}
        return Snapshot(self.mod, self.references, parents, self.realizes)

    def restore(self, saved: Snapshot) -> None:
        """Go back to what the state was."""
        for reference in self.references.values():
            reference.stmt = None
        self.mod, self.references, self.realizes = saved.mod, saved.references, saved.realizes
        for stmt, reference in saved.references.items():
            assert isinstance(stmt, (Block, For))
            reference.stmt, reference.parent = stmt, saved.parents[reference]
        self._link()

    def copy(self) -> tuple[ScheduleState, dict[StmtSRef, StmtSRef]]:
        """Another state of the same program, and its references by those of this one."""
        made = ScheduleState(self.mod, debug_mask=self.debug_mask)
        return made, {old: made.references[stmt] for stmt, old in self.references.items()}

    def _index(self, origin: Mapping[Block, Block]) -> None:
        """Find the references of all loops and blocks anew; ``origin`` says what new blocks were."""
        known = self.references
        loops: dict[Var, StmtSRef] = {
            stmt.loop_var: reference for stmt, reference in known.items() if isinstance(stmt, For)
        }
        self.references, self.realizes = {}, {}
        used: set[StmtSRef] = set()
        for function in self.functions().values():
            stack: list[tuple[Any, StmtSRef | None]] = [(function.body, None)]
            while stack:
                node, parent = stack.pop()
                if isinstance(node, BlockRealize):
                    self.realizes[node.block] = node
                if isinstance(node, (Block, For)):
                    if node in self.references:
                        raise ScheduleError(
                            f"{StmtSRef(node, None).label} occurs at two places of the program: a schedule needs "
                            "a program in which every loop and block is a distinct object"
                        )
                    found: StmtSRef | None
                    if isinstance(node, For):
                        found = loops.pop(node.loop_var, None)
                    else:
                        before = node
                        while before not in known and before in origin:
                            before = origin[before]
                        found = known.get(before)
                    if found is None or found in used:
                        found = StmtSRef(node, parent)
                    found.stmt, found.parent = node, parent
                    used.add(found)
                    self.references[node] = parent = found
                stack.extend(
                    (child, parent) for child in reversed(node.children()) if isinstance(child, Stmt)
                )
        for reference in known.values():
            if reference not in used:
                reference.stmt = None
        self._link()

    def _link(self) -> None:
        """Find what is directly below each loop and block."""
        self._below: dict[StmtSRef, list[StmtSRef]] = {}
        for reference in self.references.values():
            if reference.parent is not None:
                self._below.setdefault(reference.parent, []).append(reference)

    def _check(self) -> None:
        """Runs the checks of the debug mask."""
        if self.debug_mask & ScheduleDebugMask.VERIFY_SREF_TREE:
            for stmt, reference in self.references.items():
                assert reference.stmt is stmt
                parent = reference.parent
                assert parent is None or self.references[parent.stmt or stmt] is parent
        if self.debug_mask & ScheduleDebugMask.VERIFY_PROGRAM:
            verify_module(self.mod)


def _require_declared(function: PrimFunc) -> None:
    """Reject a function with a block that accesses a buffer without declaring it: dependences would be missed."""
    buffers = function_buffers(function)
    stack: list[tuple[Any, bool]] = [(function.body, True)]
    while stack:
        node, outermost = stack.pop()
        if isinstance(node, Block) and not outermost:
            inside = {buffer.data for buffer in node.alloc_buffers}
            inside.update(match.buffer.data for match in node.match_buffers)
            reads, writes, opaque = get_block_access_region(node, buffers)
            either = (*node.reads, *node.writes)
            for verb, touched, declared in (
                ("reads", reads, node.reads),
                ("writes", writes, node.writes),
                ("takes the pointer of", opaque, either),
            ):
                known = {region.buffer.data for region in declared} | inside
                if node.init is not None:
                    # That a reduction reads what it updates need not be said.
                    known |= {region.buffer.data for region in node.writes}
                missed = [region.buffer.name for region in touched if region.buffer.data not in known]
                if missed:
                    raise ScheduleError(
                        f"block {node.name_hint} {verb} {', '.join(missed)} and does not say so: a schedule needs to "
                        "know what depends on what. Write it into T.reads or T.writes of the block",
                        span=user_span(),
                    )
        inner = outermost and not isinstance(node, Block)
        stack.extend((child, inner) for child in node.children() if isinstance(child, Stmt))


def function_buffers(function: PrimFunc) -> dict[Var, Buffer]:
    """Every buffer of a function by its data pointer."""
    found = {buffer.data: buffer for buffer in function.buffer_map.values()}
    stack: list[Stmt] = [function.body]
    while stack:
        node = stack.pop()
        if isinstance(node, Block):
            found.update({buffer.data: buffer for buffer in node.alloc_buffers})
            found.update({match.buffer.data: match.buffer for match in node.match_buffers})
        stack.extend(child for child in node.children() if isinstance(child, Stmt))
    return found
