"""Passes over loop programs, one file each. Code that several of them share is in ``lib``."""

from tilewright.tir.transform.annotate_entry_func import AnnotateEntryFunc
from tilewright.tir.transform.apply import Apply
from tilewright.tir.transform.bf16_cast_elimination import BF16CastElimination
from tilewright.tir.transform.bf16_legalize import BF16Legalize
from tilewright.tir.transform.bf16_promote import BF16Promote
from tilewright.tir.transform.bf16_type_lowering import BF16TypeLowering
from tilewright.tir.transform.bind_target import BindTarget
from tilewright.tir.transform.block_long_sums import BlockLongSums
from tilewright.tir.transform.combine_context_call import CombineContextCall
from tilewright.tir.transform.compact_buffer_allocation import CompactBufferAllocation
from tilewright.tir.transform.convert_blocks_to_opaque import ConvertBlocksToOpaque
from tilewright.tir.transform.convert_for_loops_to_serial import ConvertForLoopsToSerial
from tilewright.tir.transform.coproc_sync import CoProcSync
from tilewright.tir.transform.decorate_device_scope import DecorateDeviceScope
from tilewright.tir.transform.filter import Filter
from tilewright.tir.transform.flatten_buffer import FlattenBuffer
from tilewright.tir.transform.function_pass import PrimFuncPass, prim_func_pass
from tilewright.tir.transform.hoist_if_then_else import HoistIfThenElse
from tilewright.tir.transform.infer_fragment import InferFragment
from tilewright.tir.transform.inject_copy_intrin import InjectCopyIntrin
from tilewright.tir.transform.inject_double_buffer import InjectDoubleBuffer
from tilewright.tir.transform.inject_prefetch import InjectPrefetch
from tilewright.tir.transform.inject_virtual_thread import InjectVirtualThread
from tilewright.tir.transform.instrument_bound_checkers import InstrumentBoundCheckers
from tilewright.tir.transform.join_lookups import JoinLookups
from tilewright.tir.transform.keep_functions import KeepFunctions
from tilewright.tir.transform.legalize_packed_calls import LegalizePackedCalls
from tilewright.tir.transform.lift_attr_scope import LiftAttrScope
from tilewright.tir.transform.loop_partition import LoopPartition
from tilewright.tir.transform.lower_cross_thread_reduction import LowerCrossThreadReduction
from tilewright.tir.transform.lower_custom_datatypes import LowerCustomDatatypes
from tilewright.tir.transform.lower_device_storage_access_info import LowerDeviceStorageAccessInfo
from tilewright.tir.transform.lower_init_block import LowerInitBlock
from tilewright.tir.transform.lower_intrin import LowerIntrin
from tilewright.tir.transform.lower_match_buffer import LowerMatchBuffer
from tilewright.tir.transform.lower_thread_allreduce import LowerThreadAllreduce
from tilewright.tir.transform.lower_tvm_builtin import LowerTVMBuiltin
from tilewright.tir.transform.lower_warp_memory import LowerWarpMemory
from tilewright.tir.transform.make_packed_api import MakePackedAPI
from tilewright.tir.transform.make_unpacked_api import MakeUnpackedAPI
from tilewright.tir.transform.merge_dynamic_shared_memory_allocations import (
    MergeDynamicSharedMemoryAllocations,
)
from tilewright.tir.transform.narrow_data_type import NarrowDataType
from tilewright.tir.transform.plan_buffer_allocation import PlanAndUpdateBufferAllocationLocation
from tilewright.tir.transform.prefetch_panels import PrefetchPanels
from tilewright.tir.transform.remove_no_op import RemoveNoOp
from tilewright.tir.transform.rewrite_unsafe_select import RewriteUnsafeSelect
from tilewright.tir.transform.simplify import Simplify
from tilewright.tir.transform.skip_assert import SkipAssert
from tilewright.tir.transform.software_pipeline import SoftwarePipeline
from tilewright.tir.transform.split_host_device import SplitHostDevice
from tilewright.tir.transform.split_uniform_loads import SplitUniformLoads
from tilewright.tir.transform.storage_flatten import StorageFlatten
from tilewright.tir.transform.storage_rewrite import StorageRewrite
from tilewright.tir.transform.texture_flatten import TextureFlatten
from tilewright.tir.transform.thread_sync import ThreadSync
from tilewright.tir.transform.threads_to_loops import ThreadsToLoops
from tilewright.tir.transform.unify_thread_binding import UnifyThreadBinding
from tilewright.tir.transform.unroll_loop import UnrollLoop
from tilewright.tir.transform.vectorize_loop import VectorizeLoop
from tilewright.tir.transform.verify_memory import VerifyMemory
from tilewright.tir.transform.verify_reads import VerifyReads

__all__ = [
    "AnnotateEntryFunc",
    "Apply",
    "BF16CastElimination",
    "BF16Legalize",
    "BF16Promote",
    "BF16TypeLowering",
    "BindTarget",
    "BlockLongSums",
    "CoProcSync",
    "CombineContextCall",
    "CompactBufferAllocation",
    "ConvertBlocksToOpaque",
    "ConvertForLoopsToSerial",
    "DecorateDeviceScope",
    "Filter",
    "FlattenBuffer",
    "HoistIfThenElse",
    "InferFragment",
    "InjectCopyIntrin",
    "InjectDoubleBuffer",
    "InjectPrefetch",
    "InjectVirtualThread",
    "InstrumentBoundCheckers",
    "JoinLookups",
    "KeepFunctions",
    "LegalizePackedCalls",
    "LiftAttrScope",
    "LoopPartition",
    "LowerCrossThreadReduction",
    "LowerCustomDatatypes",
    "LowerDeviceStorageAccessInfo",
    "LowerInitBlock",
    "LowerIntrin",
    "LowerMatchBuffer",
    "LowerTVMBuiltin",
    "LowerThreadAllreduce",
    "LowerWarpMemory",
    "MakePackedAPI",
    "MakeUnpackedAPI",
    "MergeDynamicSharedMemoryAllocations",
    "NarrowDataType",
    "PlanAndUpdateBufferAllocationLocation",
    "PrimFuncPass",
    "PrefetchPanels",
    "RemoveNoOp",
    "RewriteUnsafeSelect",
    "Simplify",
    "SkipAssert",
    "SoftwarePipeline",
    "SplitHostDevice",
    "SplitUniformLoads",
    "StorageFlatten",
    "StorageRewrite",
    "TextureFlatten",
    "ThreadSync",
    "ThreadsToLoops",
    "UnifyThreadBinding",
    "UnrollLoop",
    "VectorizeLoop",
    "VerifyMemory",
    "VerifyReads",
    "prim_func_pass",
]
