"""Loops whose iterations do not depend on one another, found by looking at what they read and write."""

from __future__ import annotations

from typing import Any

from tilewright.ir.expr import BufferLoad, Call, IntImm, Load, PrimExpr, Var
from tilewright.ir.functor import free_vars, post_order
from tilewright.tir.analysis.expr_deep_equal import expr_deep_equal
from tilewright.tir.analysis.index_terms import index_terms
from tilewright.tir.stmt import (
    Allocate,
    AttrStmt,
    BufferStore,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    Store,
    While,
)


def is_independent(loop: For) -> bool:
    """True if no iteration reads or writes an element that another one writes.

    Shown only for loops whose stores move by a constant from one iteration to the next and by less inside of it, and
    whose other reads of the same memory are at the stored index.
    """
    if any(isinstance(node, (Call, While)) and _has_effect(node) for node in post_order(loop.body)):
        return False
    own = {node.buffer_var for node in post_order(loop.body) if isinstance(node, Allocate)}
    stores = [node for node in post_order(loop.body) if isinstance(node, (Store, BufferStore))]
    if not stores or any(isinstance(store, BufferStore) for store in stores):
        return False
    outside = [store for store in stores if isinstance(store, Store) and store.buffer_var not in own]
    inner = _inner_extents(loop.body)
    for store in outside:
        if not _moves_apart(store.index, loop.loop_var, inner):
            return False
    for store in outside:
        for other in outside:
            if other is not store and other.buffer_var is store.buffer_var:
                if not expr_deep_equal(other.index, store.index):
                    return False
    written = {store.buffer_var: store.index for store in outside}
    for node in post_order(loop.body):
        if isinstance(node, Load) and node.buffer_var in written:
            if not expr_deep_equal(node.index, written[node.buffer_var]):
                return False
        if isinstance(node, BufferLoad) and node.buffer.data in written:
            return False
    return _is_plain(loop.body)


def _has_effect(node: Any) -> bool:
    if isinstance(node, While):
        return True
    return any(isinstance(one, Var) and one.dtype.is_handle for one in node.args)


def _is_plain(stmt: Stmt) -> bool:
    """True if there are only statements whose effects were looked at."""
    allowed = (Store, For, IfThenElse, LetStmt, SeqStmt, Allocate, AttrStmt)
    return all(isinstance(node, allowed) for node in post_order(stmt) if isinstance(node, Stmt))


def _inner_extents(stmt: Stmt) -> dict[Var, int | None]:
    """The extents of the loops inside; None for one that is not known."""
    return {
        node.loop_var: int(node.extent.value) if isinstance(node.extent, IntImm) else None
        for node in post_order(stmt)
        if isinstance(node, For)
    }


def _moves_apart(index: PrimExpr, variable: Var, inner: dict[Var, int | None]) -> bool:
    """True if the index moves by more with the variable than with all inner loops together."""
    strides, rest = index_terms(index, {variable, *inner})
    if not all(_is_fixed(part, variable, inner) for part in rest):
        return False
    step = abs(strides.pop(variable, 0))
    reach = 0
    for name, stride in strides.items():
        extent = inner[name]
        if extent is None:
            return False
        reach += abs(stride) * max(extent - 1, 0)
    return step > reach


def _is_fixed(part: PrimExpr, variable: Var, inner: dict[Var, int | None]) -> bool:
    """True for an expression of constants and of names from outside the loop only."""
    if any(isinstance(node, (Load, BufferLoad, Call)) for node in post_order(part)):
        return False
    found = set(free_vars(part))
    return variable not in found and not (found & set(inner))
