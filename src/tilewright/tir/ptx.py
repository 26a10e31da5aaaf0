"""Tensor cores, asynchronous copies and the barriers that go with them: instructions of NVIDIA GPUs as operators.

Every function here builds one call, to be evaluated as a statement unless it says what it gives. Memory is named by
``pointer``: a place in a shared or local buffer with what is done there. Local buffers hold registers, so their offsets
must be constants. The documents of PTX say which thread of a warp holds which element of a fragment; ``fragment_index``
computes it.

The interpreter runs all of this except clusters of several blocks: an asynchronous copy happens when it is waited for,
and until then its destination holds garbage, so that a missing wait gives wrong numbers.

=================== ==================================================================================================
sm_75               ``ldmatrix``, ``mma`` of float16 with k = 8
sm_80               ``cp_async``, ``mma`` of float16, bfloat16 (k = 16), TF32 (k = 8), int8 (k = 32)
sm_89               ``mma`` of the eight-bit floats (k = 32), ``float8_encode``, ``float8_decode``
sm_90               ``stmatrix``, ``mbarrier_*``, ``bulk_*``, clusters, ``elect_sync``
sm_90a              ``wgmma*``, ``set_max_registers``
=================== ==================================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tilewright.ir import operators
from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import Call, ExprLike, PrimExpr, StringImm, Var
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError
from tilewright.tir.ptx_shapes import (
    SWIZZLES,
    check_mma,
    check_wgmma,
    mma_fragment_index,
    wgmma_fragment_index,
)

_ACCESS: Final = {"r": 1, "w": 2, "rw": 3}
TENSOR_MAP: Final = "tensor_map"
"""The key of the attribute that makes a kernel's pointer parameter a tensor map; its value is ``tensor_map(...)``."""
CLUSTER: Final = "tir.cluster_dims"
"""The key of the attribute that puts a kernel's blocks into clusters; its value is ``cluster(...)``."""

LARGEST_CLUSTER: Final = 8
"""Blocks of a cluster that every device with clusters can have."""


def _call(name: str, args: Sequence[Any], dtype: str = "int32") -> Call:
    made = operators.call(name, dtype, [StringImm(one) if isinstance(one, str) else one for one in args])
    assert isinstance(made, Call)
    return made


def pointer(memory: Any, offset: ExprLike = 0, access: str = "rw", extent: ExprLike = 1) -> PrimExpr:
    """The address of the element at ``offset`` of a buffer, an allocation of the builder or a typed pointer, where
    ``extent`` elements are read ("r"), written ("w") or both."""
    if access not in _ACCESS:
        raise ExpressionError(f"an access is r, w or rw, not {access!r}")
    if isinstance(memory, Buffer):
        data, dtype = memory.data, memory.dtype
        offset = operators.add(memory.elem_offset, offset)
    elif isinstance(memory, Var):
        kind = memory.type_annotation
        if not isinstance(kind, PointerType) or not isinstance(kind.element_type, PrimType):
            raise ExpressionError(f"{memory.name} is not a pointer to elements of a known type")
        data, dtype = memory, kind.element_type.dtype
    elif hasattr(memory, "asobject"):
        data, dtype = memory.asobject(), memory.dtype
    else:
        raise ExpressionError(f"{memory!r} is not memory: give a buffer, an allocation or a pointer")
    annotation = operators.call("type_annotation", dtype, [])
    return operators.call("tvm_access_ptr", "handle", [annotation, data, offset, extent, _ACCESS[access]])


# Matrices in registers


def ldmatrix(target: PrimExpr, source: PrimExpr, count: int, transposed: bool = False) -> Call:
    """Load ``count`` (1, 2 or 4) matrices of 8 x 8 elements of two bytes from shared memory. Thread ``8 * i + r`` gives
    the address of row ``r`` of matrix ``i``; every thread gets four bytes of each matrix, two elements of row
    ``thread / 4``, or of that column if ``transposed``."""
    return _call("ptx_ldmatrix", [_matrices(count), int(transposed), target, source])


def stmatrix(target: PrimExpr, source: PrimExpr, count: int, transposed: bool = False) -> Call:
    """The reverse of ``ldmatrix``."""
    return _call("ptx_stmatrix", [_matrices(count), int(transposed), target, source])


def _matrices(count: int) -> int:
    if count not in (1, 2, 4):
        raise ExpressionError(f"a warp loads 1, 2 or 4 matrices at a time, not {count}")
    return count


def mma(shape: str, a_type: str, b_type: str, c_type: str, a: PrimExpr, b: PrimExpr, c: PrimExpr) -> Call:
    """``c += a @ b`` for one warp, with the fragments of all three in local memory; ``shape`` is such as "m16n8k16",
    ``a`` is by rows and ``b`` by columns. Types are those of NumPy, "bfloat16", "tf32" (float32 registers), "e4m3",
    "e5m2"."""
    check_mma(shape, a_type, b_type, c_type)
    return _call("ptx_mma", [shape, a_type, b_type, c_type, a, b, c])


def fragment_index(operand: str, shape: str, dtype: str, thread: ExprLike, element: int) -> tuple[Any, Any]:
    """The row and the column of the ``element``-th number that a thread holds of ``mma``'s operand "a", "b" or "c".
    Those of "b" are its row along k and its column along n."""
    return mma_fragment_index(operand, shape, dtype, thread, element)


# Asynchronous copies


def cp_async(target: PrimExpr, source: PrimExpr, size: int, valid: ExprLike | None = None) -> Call:
    """Start a copy of ``size`` (4, 8 or 16) bytes from global to shared memory. Of the source only ``valid`` bytes are
    read; the rest of the target becomes zero."""
    if size not in (4, 8, 16):
        raise ExpressionError(f"an asynchronous copy moves 4, 8 or 16 bytes, not {size}")
    return _call("ptx_cp_async", [target, source, size, size if valid is None else valid])


def cp_async_commit() -> Call:
    """The copies that this thread has started since the last commit are one group."""
    return _call("ptx_cp_async_commit", [])


def cp_async_wait(groups: int) -> Call:
    """Wait until at most ``groups`` of this thread's latest groups are unfinished."""
    return _call("ptx_cp_async_wait", [groups])


def cp_async_mbarrier_arrive(barrier: PrimExpr) -> Call:
    """Arrive at a barrier once all copies that this thread has started are done."""
    return _call("ptx_cp_async_mbarrier_arrive", [barrier])


# Barriers


def mbarrier_init(barrier: PrimExpr, count: ExprLike) -> Call:
    """Make eight bytes of shared memory a barrier whose phase ends after ``count`` arrivals, and the bytes they
    expect."""
    return _call("ptx_mbarrier_init", [barrier, count])


def mbarrier_inval(barrier: PrimExpr) -> Call:
    """The barrier's memory is memory again."""
    return _call("ptx_mbarrier_inval", [barrier])


def mbarrier_arrive(barrier: PrimExpr) -> Call:
    """Arrive."""
    return _call("ptx_mbarrier_arrive", [barrier])


def mbarrier_arrive_expect_tx(barrier: PrimExpr, size: ExprLike) -> Call:
    """Arrive, and let the phase end only after ``size`` more bytes were copied."""
    return _call("ptx_mbarrier_arrive_expect_tx", [barrier, size])


def mbarrier_arrive_cluster(barrier: PrimExpr, rank: ExprLike, publishes: bool = True) -> Call:
    """Arrive at the barrier that is at the same place in another block of the cluster. What this thread has stored
    before is then visible there, unless it has nothing to publish, which takes a small part of the time."""
    return _call("ptx_mbarrier_arrive_cluster", [barrier, rank, int(publishes)])


def mbarrier_wait(barrier: PrimExpr, parity: ExprLike) -> Call:
    """Wait for the end of the phase of this parity: 0 for the first, 1 for the second, and so on in turn."""
    return _call("ptx_mbarrier_wait", [barrier, parity])


def barrier_sync(number: ExprLike, threads: ExprLike) -> Call:
    """Wait at barrier 1 to 15 for this many threads of the block, a multiple of 32. Barrier 0 is that of all
    threads."""
    return _call("ptx_barrier_sync", [number, threads])


def barrier_arrive(number: ExprLike, threads: ExprLike) -> Call:
    """Arrive at a barrier where others wait, and go on."""
    return _call("ptx_barrier_arrive", [number, threads])


def fence_proxy_async() -> Call:
    """What this thread has stored in shared memory is visible to bulk copies and ``wgmma``."""
    return _call("ptx_fence_proxy_async", [])


def fence_mbarrier_init() -> Call:
    """Initialised barriers are visible to the other blocks of the cluster and to bulk copies."""
    return _call("ptx_fence_mbarrier_init", [])


# Bulk tensor copies


def tensor_map(
    dtype: str, shape: Sequence[ExprLike], strides: Sequence[ExprLike], box: Sequence[int], swizzle: int = 0
) -> Call:
    """The description of a tensor in global memory for bulk copies: of type ``dtype``, with the extents ``shape`` and
    the distances ``strides`` (in elements, the last one 1), outermost first; copies move ``box`` elements, written to
    shared memory densely or with a swizzle of 32, 64 or 128 bytes. What is outside the tensor reads as zero and is not
    written.

    It is the value of an attribute ``TENSOR_MAP`` of a pointer to the tensor, around the kernel's statements.
    """
    rank = len(shape)
    if not 1 <= rank <= 5 or len(strides) != rank or len(box) != rank:
        raise ExpressionError(
            f"a tensor map has 1 to 5 dimensions with a stride and a box each, not {rank}, {len(strides)}, {len(box)}"
        )
    if any(not 1 <= extent <= 256 for extent in box):
        raise ExpressionError(f"each side of a box has 1 to 256 elements, not {tuple(box)}")
    width = box[-1] * DataType(dtype).itemsize
    if swizzle not in SWIZZLES:
        raise ExpressionError(f"a swizzle has 32, 64 or 128 bytes, or 0 for none, not {swizzle}")
    if width % 16 or (swizzle and width > swizzle):
        raise ExpressionError(
            f"rows of a box are multiples of 16 bytes and at most the swizzle's {swizzle or 'any'}, not {width}"
        )
    return _call("tvm_tuple", [dtype, swizzle, rank, *shape, *strides, *box], "handle")


def bulk_tensor_load(
    target: PrimExpr,
    tensor: Var,
    barrier: PrimExpr,
    coordinates: Sequence[ExprLike],
    multicast: ExprLike | None = None,
    cache_hint: ExprLike | None = None,
) -> Call:
    """Start a copy of the box at ``coordinates`` (outermost first) of a tensor map's tensor to shared memory, which
    then counts the bytes at ``barrier``. One thread does this for all. ``multicast`` is a mask of the blocks of the
    cluster that get the box, ``cache_hint`` a policy of L2."""
    flags = int(multicast is not None) + 2 * int(cache_hint is not None)
    extra = [one for one in (multicast, cache_hint) if one is not None]
    return _call(
        "ptx_bulk_tensor_load", [len(coordinates), flags, target, tensor, barrier, *coordinates, *extra]
    )


def bulk_tensor_store(tensor: Var, source: PrimExpr, coordinates: Sequence[ExprLike]) -> Call:
    """Start a copy of a box from shared memory to a tensor map's tensor, as part of this thread's open group."""
    return _call("ptx_bulk_tensor_store", [len(coordinates), tensor, source, *coordinates])


def bulk_commit() -> Call:
    """The bulk stores that this thread has started since the last commit are one group."""
    return _call("ptx_bulk_commit", [])


def bulk_wait(groups: int, read: bool = False) -> Call:
    """Wait until at most ``groups`` of this thread's latest groups of bulk stores are unfinished, or until only as many
    still read shared memory."""
    return _call("ptx_bulk_wait", [groups, int(read)])


def prefetch_tensor_map(tensor: Var) -> Call:
    """Bring a tensor map near."""
    return _call("ptx_prefetch_tensor_map", [tensor])


# Products of a group of four warps


def wgmma_descriptor(source: PrimExpr, leading: int, stride: int, swizzle: int) -> PrimExpr:
    """How ``wgmma`` finds a matrix in shared memory (a uint64): where it begins, and the distances in bytes that the
    layout of its swizzle (0, 32, 64 or 128) has. See ``tir.ptx_shapes.wgmma_offset`` for the layouts."""
    if swizzle not in SWIZZLES:
        raise ExpressionError(f"a swizzle has 32, 64 or 128 bytes, or 0 for none, not {swizzle}")
    for distance in (leading, stride):
        if distance % 16 or not 0 <= distance < 1 << 18:
            raise ExpressionError(f"distances are multiples of 16 bytes below 256 KB, not {distance}")
    return _call("ptx_wgmma_descriptor", [source, leading, stride, swizzle], "uint64")


def wgmma(
    n: int,
    a_type: str,
    b_type: str,
    c_type: str,
    a: PrimExpr,
    b: PrimExpr,
    c: PrimExpr,
    scale_c: ExprLike = 1,
    a_transposed: bool = False,
    b_transposed: bool = False,
) -> Call:
    """Start ``c = a @ b + scale_c * c`` for 128 threads: ``a`` has 64 rows, ``b`` has ``n`` columns (8 to 256 by 8),
    and k takes 32 bytes. ``b`` is a descriptor, ``a`` a descriptor or a pointer to a local fragment, ``c`` a local
    fragment of ``n / 2`` numbers. ``scale_c`` is 0 or 1. Operands are K-major; of two-byte types those in shared memory
    may be transposed."""
    from_registers = a.dtype.is_handle
    check_wgmma(n, a_type, b_type, c_type, a_transposed, b_transposed, from_registers)
    flags = int(from_registers) + 2 * int(a_transposed) + 4 * int(b_transposed)
    return _call("ptx_wgmma", [n, a_type, b_type, c_type, flags, a, b, c, scale_c])


def wgmma_index(dtype: str, thread: ExprLike, element: int) -> tuple[Any, Any]:
    """The row and the column of the ``element``-th number that a thread of the group holds of ``wgmma``'s result."""
    return wgmma_fragment_index(dtype, thread, element)


def wgmma_fence() -> Call:
    """Registers and shared memory are ready for ``wgmma``."""
    return _call("ptx_wgmma_fence", [])


def wgmma_commit() -> Call:
    """The products started since the last commit are one group."""
    return _call("ptx_wgmma_commit", [])


def wgmma_wait(groups: int) -> Call:
    """Wait until at most ``groups`` of the latest groups are unfinished."""
    return _call("ptx_wgmma_wait", [groups])


def set_max_registers(count: int, increase: bool) -> Call:
    """The threads of this warp group ask for more registers, or give back some: ``count`` (24 to 256 by 8) each."""
    if count % 8 or not 24 <= count <= 256:
        raise ExpressionError(f"a thread has 24 to 256 registers by 8, not {count}")
    return _call("ptx_set_max_registers", [count, int(increase)])


# Threads and blocks


def elect_sync() -> PrimExpr:
    """True in one thread of the warp, the first."""
    return _call("ptx_elect_sync", [], "bool")


def cluster(x: int, y: int = 1, z: int = 1) -> Call:
    """The blocks of a cluster along each axis of the grid. It is the value of an attribute ``CLUSTER`` around the
    kernel's statements."""
    if min(x, y, z) < 1 or x * y * z > LARGEST_CLUSTER:
        raise ExpressionError(f"a cluster has 1 to {LARGEST_CLUSTER} blocks, not {x} x {y} x {z}")
    return _call("tvm_tuple", [x, y, z], "handle")


def cluster_rank() -> PrimExpr:
    """The number of this block in its cluster."""
    return _call("ptx_cluster_rank", [])


def cluster_arrive() -> Call:
    """Arrive at the barrier of the cluster."""
    return _call("ptx_cluster_arrive", [])


def cluster_wait() -> Call:
    """Wait until all threads of the cluster have arrived."""
    return _call("ptx_cluster_wait", [])


def grid_wait() -> Call:
    """Wait until the kernels before this one in its stream have ended; for kernels that are launched before that."""
    return _call("ptx_grid_wait", [])


def grid_launch() -> Call:
    """The kernel behind this one may be launched: what this block still does, it does not wait for."""
    return _call("ptx_grid_launch", [])


# Eight-bit floats


def float8_encode(value: PrimExpr, kind: str) -> PrimExpr:
    """The bits (uint8) of the "e4m3" or "e5m2" number nearest to a float32; what is too large becomes the largest."""
    return _float8("ptx_float8_encode", value, kind, "uint8")


def float8_decode(bits: PrimExpr, kind: str) -> PrimExpr:
    """The float32 that an "e4m3" or "e5m2" number with these bits is."""
    return _float8("ptx_float8_decode", bits, kind, "float32")


def _float8(name: str, value: PrimExpr, kind: str, dtype: str) -> PrimExpr:
    if kind not in ("e4m3", "e5m2"):
        raise ExpressionError(f"an eight-bit float is e4m3 or e5m2, not {kind!r}")
    return _call(name, [value, kind], str(DataType(dtype).with_lanes(value.dtype.lanes)))
