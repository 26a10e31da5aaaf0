"""Loop metadata for LLVM.

A loop whose body holds vectors, or that the schedule unrolled, already has the intended form: LLVM must not vectorize
it again, and unrolls it only if the body is small. Annotations and pragmas of a schedule take precedence.
"""

from __future__ import annotations

from tilewright.codegen.llvm.writer import ModuleText
from tilewright.ir.expr import Load
from tilewright.ir.functor import post_order
from tilewright.tir.stmt import For, ForKind, Store, While

_SMALL_BODY = 8
"""Memory accesses: a vector loop with at most this many is left to LLVM to unroll."""


def metadata(module: ModuleText, node: For) -> str:
    """The suffix for the loop's branch; empty where LLVM may do as it likes."""
    hints = _hints(node)
    if not hints:
        return ""
    parts = ", ".join(module.metadata(f"!{{{hint}}}") for hint in hints)
    return f", !llvm.loop {module.distinct_metadata(parts)}"


def _hints(node: For) -> list[str]:
    if node.kind == ForKind.UNROLLED:
        return ['!"llvm.loop.unroll.full"', '!"llvm.loop.vectorize.enable", i1 false']
    nodes = post_order(node.body)
    if any(isinstance(found, (For, While)) for found in nodes):
        # LLVM vectorizes and unrolls innermost loops; an outer one may become innermost when its inner one is unrolled.
        return []
    accesses = [found for found in nodes if isinstance(found, (Load, Store))]
    vectors = [found for found in accesses if found.index.dtype.lanes > 1]
    if not vectors:
        return []
    hints = ['!"llvm.loop.vectorize.enable", i1 false']
    if len(accesses) > _SMALL_BODY:
        hints.append('!"llvm.loop.unroll.disable"')
    return hints
