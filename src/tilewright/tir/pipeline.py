"""The passes that turn a scheduled function into flat loops, in a straight line.

A comment at each group says what holds after it. ``simple_mode`` leaves out what makes the program harder to read. A
user's own passes (``tir.add_lower_pass``: pairs of phase and pass) run at the end of their phase, 0 to 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tilewright.ir.transform import Pass, PassContext, module_pass
from tilewright.support.errors import LoweringError
from tilewright.tir.transform.bf16_legalize import BF16Legalize
from tilewright.tir.transform.bind_fused_parts import BindFusedParts
from tilewright.tir.transform.compact_buffer_allocation import CompactBufferAllocation
from tilewright.tir.transform.convert_blocks_to_opaque import ConvertBlocksToOpaque
from tilewright.tir.transform.flatten_buffer import FlattenBuffer
from tilewright.tir.transform.hoist_if_then_else import HoistIfThenElse
from tilewright.tir.transform.inject_double_buffer import InjectDoubleBuffer
from tilewright.tir.transform.inject_prefetch import InjectPrefetch
from tilewright.tir.transform.inject_virtual_thread import InjectVirtualThread
from tilewright.tir.transform.instrument_bound_checkers import InstrumentBoundCheckers
from tilewright.tir.transform.join_lookups import JoinLookups
from tilewright.tir.transform.loop_partition import LoopPartition
from tilewright.tir.transform.lower_cross_thread_reduction import LowerCrossThreadReduction
from tilewright.tir.transform.lower_init_block import LowerInitBlock
from tilewright.tir.transform.lower_match_buffer import LowerMatchBuffer
from tilewright.tir.transform.narrow_data_type import NarrowDataType
from tilewright.tir.transform.overlap_products import OverlapProducts
from tilewright.tir.transform.plan_buffer_allocation import PlanAndUpdateBufferAllocationLocation
from tilewright.tir.transform.prefetch_panels import PrefetchPanels
from tilewright.tir.transform.remove_no_op import RemoveNoOp
from tilewright.tir.transform.rewrite_unsafe_select import RewriteUnsafeSelect
from tilewright.tir.transform.simplify import Simplify
from tilewright.tir.transform.split_uniform_loads import SplitUniformLoads
from tilewright.tir.transform.storage_flatten import StorageFlatten
from tilewright.tir.transform.storage_rewrite import StorageRewrite
from tilewright.tir.transform.texture_flatten import TextureFlatten
from tilewright.tir.transform.tile_remainder import TileRemainder
from tilewright.tir.transform.unify_thread_binding import UnifyThreadBinding
from tilewright.tir.transform.unroll_loop import UnrollLoop
from tilewright.tir.transform.use_matrix_unit import UseMatrixUnit
from tilewright.tir.transform.vectorize_loop import VectorizeLoop
from tilewright.tir.transform.verify_reads import VerifyReads

CACHE_LINE_SIZE = 64
"""Bytes; the granularity of prefetches."""

INDEX_BITS = 32
"""Indices are computed in so many bits where they fit."""


def lowering_passes(simple_mode: bool = False, context: PassContext | None = None) -> list[Pass]:
    """The passes of lowering in order, with the options of the context; the current one if none is given."""
    context = context or PassContext.current()
    check_bounds = context.get("tir.instrument_bound_checkers")
    added = _added_passes(context)

    passes: list[Pass] = [*added[0]]
    # Memory becomes flat; before, programs of blocks become loops.
    passes += [
        InjectPrefetch(),
        TextureFlatten(),
        StorageFlatten(CACHE_LINE_SIZE, check_bounds, handwritten=True),
        LowerCrossThreadReduction(),
        LowerInitBlock(),
        PlanAndUpdateBufferAllocationLocation(),
        ConvertBlocksToOpaque(),
        UnifyThreadBinding(),
        CompactBufferAllocation(),
        LowerMatchBuffer(),
        FlattenBuffer(likely_predicates=True),
        BF16Legalize(),
        NarrowDataType(INDEX_BITS),
        Simplify(),
        *added[1],
    ]
    # What tiles of dynamic extents leave over has loops of its own.
    passes.append(TileRemainder())
    if not simple_mode:
        # Guards leave the hot loops. This must come before vectorization, which cannot look past a guard.
        passes.append(LoopPartition(constant_loops=True, from_zero=False))
    # Products that a schedule gives to the matrix unit are single calls after this, next to their loops.
    passes += [UseMatrixUnit(), OverlapProducts()]
    # Every loop kind but serial, parallel and thread binding is gone after this.
    passes += [
        VectorizeLoop(not context.get("tir.disable_vectorize")),
        InjectVirtualThread(),
        InjectDoubleBuffer(),
        StorageRewrite(),
        UnrollLoop(),
        *added[2],
        SplitUniformLoads(),
        Simplify(),
        RemoveNoOp(),
        RewriteUnsafeSelect(),
        HoistIfThenElse("basic"),
        JoinLookups(),
        # Loops are what they will be: addresses ahead of them can be told.
        PrefetchPanels(CACHE_LINE_SIZE),
        *added[3],
    ]
    if check_bounds:
        passes.append(InstrumentBoundCheckers())
    else:
        # With the accesses checked at run time, a program may read outside: it stops there with a message.
        passes.append(VerifyReads())
    # Indices are divided once by the extents of fused loops; analyses no longer look through them.
    passes.append(BindFusedParts())
    return passes


def _added_passes(context: PassContext) -> list[list[Pass]]:
    """The user's passes by phase; a plain function of (function, module, context) is made a pass."""
    phases: list[list[Pass]] = [[], [], [], []]
    given: Iterable[Any] = context.get("tir.add_lower_pass")
    for entry in given:
        try:
            phase, added = entry
        except (TypeError, ValueError):
            raise LoweringError(f"tir.add_lower_pass takes pairs of phase and pass, not {entry!r}") from None
        number = int(phase)
        if not number >= 0:
            raise LoweringError(f"tir.add_lower_pass: phase {number} is not 0 or more")
        phases[min(number, 3)].append(added if isinstance(added, Pass) else _as_pass(added))
    return phases


def _as_pass(function: Callable[..., Any]) -> Pass:
    if not callable(function):
        raise LoweringError(f"tir.add_lower_pass takes passes and functions, not {type(function).__name__}")
    return module_pass(function, opt_level=0, name=getattr(function, "__name__", "user_pass"))
