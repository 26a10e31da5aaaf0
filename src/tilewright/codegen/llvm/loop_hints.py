"""Loop metadata for LLVM.

A loop whose body holds vectors, or that the schedule unrolled, already has the intended form: LLVM must not vectorize
it again, and unrolls it only if the body is small. Annotations and pragmas of a schedule take precedence.
"""

from __future__ import annotations

from tilewright.codegen.llvm.writer import ModuleText
from tilewright.ir.expr import Load
from tilewright.ir.functor import post_order
from tilewright.tir.stmt import For, ForKind, Stmt, Store, While

_SMALL_BODY = 8
"""Memory accesses: a vector loop with at most this many is left to LLVM to unroll."""
_KEEP_VECTORS = '!"llvm.loop.vectorize.enable", i1 false'
_UNROLL = '!"llvm.loop.unroll.full"'


def metadata(module: ModuleText, node: For) -> str:
    """The suffix for the loop's branch; empty where LLVM may do as it likes. The module notes what LLVM has to do."""
    if node.kind == ForKind.UNROLLED:
        # What is around it may be vectorized when it is unrolled.
        module.has_scalar_loops |= not _has_vectors(_accesses(node))
        hints = [_UNROLL, _KEEP_VECTORS]
    elif _has_loops(node.body):
        # LLVM vectorizes and unrolls innermost loops; an outer one may become innermost when its inner one is unrolled.
        hints = []
    else:
        hints = _innermost(module, node)
    if not hints:
        return ""
    parts = ", ".join(module.metadata(f"!{{{hint}}}") for hint in hints)
    return f", !llvm.loop {module.distinct_metadata(parts)}"


def _innermost(module: ModuleText, node: For) -> list[str]:
    accesses = _accesses(node)
    if not _has_vectors(accesses):
        module.has_scalar_loops = True
        return []
    if len(accesses) > _SMALL_BODY:
        return [_KEEP_VECTORS, '!"llvm.loop.unroll.disable"']
    module.has_small_loops = True
    return [_KEEP_VECTORS]


def _accesses(node: For) -> list[Load | Store]:
    return [found for found in post_order(node.body) if isinstance(found, (Load, Store))]


def _has_vectors(accesses: list[Load | Store]) -> bool:
    return any(access.index.dtype.lanes > 1 for access in accesses)


def _has_loops(body: Stmt) -> bool:
    """True if there is a loop in a statement. Expressions have none, so they are not searched."""
    pending = [body]
    while pending:
        statement = pending.pop()
        if isinstance(statement, (For, While)):
            return True
        pending.extend(child for child in statement.children() if isinstance(child, Stmt))
    return False
