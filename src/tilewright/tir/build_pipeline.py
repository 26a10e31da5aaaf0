"""From lowered functions to the input of the code generators, pass by pass.

``mixed_passes`` run on all functions of a target, and end with host and device code in separate functions.
``host_passes`` then select and finish the host functions, ``device_passes`` the device functions.
"""

from __future__ import annotations

from tilewright.ir.transform import Pass, PassContext
from tilewright.target.cpu import describe_cpu
from tilewright.target.target import Target
from tilewright.tir.arg_binder import CPU
from tilewright.tir.transform.annotate_entry_func import AnnotateEntryFunc
from tilewright.tir.transform.bind_target import BindTarget
from tilewright.tir.transform.block_long_sums import SMALL_BYTES, BlockLongSums
from tilewright.tir.transform.combine_context_call import CombineContextCall
from tilewright.tir.transform.infer_fragment import InferFragment
from tilewright.tir.transform.keep_functions import KeepFunctions
from tilewright.tir.transform.load_scalars_together import LoadScalarsTogether
from tilewright.tir.transform.lower_custom_datatypes import LowerCustomDatatypes
from tilewright.tir.transform.lower_device_storage_access_info import LowerDeviceStorageAccessInfo
from tilewright.tir.transform.lower_intrin import LowerIntrin
from tilewright.tir.transform.lower_thread_allreduce import LowerThreadAllreduce
from tilewright.tir.transform.lower_tvm_builtin import LowerTVMBuiltin
from tilewright.tir.transform.lower_warp_memory import LowerWarpMemory
from tilewright.tir.transform.make_packed_api import MakePackedAPI
from tilewright.tir.transform.make_unpacked_api import MakeUnpackedAPI
from tilewright.tir.transform.merge_dynamic_shared_memory_allocations import (
    MergeDynamicSharedMemoryAllocations,
)
from tilewright.tir.transform.simplify import Simplify
from tilewright.tir.transform.skip_assert import SkipAssert
from tilewright.tir.transform.software_pipeline import SoftwarePipeline
from tilewright.tir.transform.split_host_device import SplitHostDevice
from tilewright.tir.transform.thread_sync import ThreadSync
from tilewright.tir.transform.threads_to_loops import ThreadsToLoops
from tilewright.tir.transform.verify_memory import VerifyMemory


def mixed_passes(target: Target, host: Target) -> list[Pass]:
    """For all functions of a target: threads made explicit, the calling convention, and the cut between host and
    device."""
    context = PassContext.current()
    passes: list[Pass] = [BindTarget(target), VerifyMemory()]
    if context.get("tir.is_entry_func"):
        passes.append(AnnotateEntryFunc())
    if target.kind.device_type != CPU:
        passes += _thread_passes(bool(context.get("tir.detect_global_barrier")))
    else:
        passes += [ThreadsToLoops(), BlockLongSums(_bytes_of_few_accumulators(target))]
    # From here on every argument is checked on entry, and the buffer map is empty.
    if _unpacked(target, host):
        passes.append(MakeUnpackedAPI())
    else:
        passes.append(MakePackedAPI(runtime_checks=host.kind.name == "llvm"))
    # From here on a function is host code or device code.
    passes.append(SplitHostDevice())
    return passes


def _bytes_of_few_accumulators(target: Target) -> int:
    """The size up to which accumulators are the sum of a row, not a register tile: four registers, where a tile of all
    registers is as small as the usual limit, and the sums of blocks would take the tile's registers."""
    if target.kind.name != "llvm":
        return SMALL_BYTES
    cpu = describe_cpu(target)
    vector_bytes = cpu.vector_bits // 8
    is_small = not cpu.folds_loads and 4 < vector_bytes <= SMALL_BYTES // cpu.vector_registers
    return 4 * vector_bytes if is_small else SMALL_BYTES


def _thread_passes(global_barrier: bool) -> list[Pass]:
    """The passes that only code with threads needs."""
    return [
        *([ThreadSync("global")] if global_barrier else []),
        # Before barriers are inserted: it says where one is needed, and where not.
        SoftwarePipeline(),
        ThreadSync("shared"),
        ThreadSync("shared.dyn"),
        MergeDynamicSharedMemoryAllocations(),
        ThreadSync("warp"),
        InferFragment(),
        # Inserts its own barriers, so it comes after the pass that inserts the program's.
        LowerThreadAllreduce(),
    ]


def host_passes(target: Target, host: Target) -> list[Pass]:
    """For the host's functions: calls into the runtime, and intrinsics of the host."""
    passes: list[Pass] = [KeepFunctions("host"), BindTarget(host)]
    if PassContext.current().get("tir.disable_assert"):
        # Before allocations get the assertion that they succeeded, which stays.
        passes.append(SkipAssert())
    if host.kind.name == "llvm" and describe_cpu(host).multiplies_by_element:
        cpu = describe_cpu(host)
        passes.append(LoadScalarsTogether(cpu.vector_bits, cpu.loads_scalars_together, cpu.multiplies_halves))
    return [
        *passes,
        LowerTVMBuiltin(),
        LowerCustomDatatypes(),
        LowerIntrin(),
        LowerDeviceStorageAccessInfo(),
        CombineContextCall(),
    ]


def device_passes(target: Target, host: Target) -> list[Pass]:
    """For kernels: warp memory, and intrinsics of the device."""
    return [
        KeepFunctions("device"),
        BindTarget(target),
        LowerWarpMemory(),
        Simplify(),
        LowerCustomDatatypes(),
        LowerDeviceStorageAccessInfo(),
        LowerIntrin(),
    ]


def _unpacked(target: Target, host: Target) -> bool:
    return bool(target.attrs.get("unpacked-api") or host.attrs.get("unpacked-api"))
