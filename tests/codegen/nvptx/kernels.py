"""Kernels with tensor cores and asynchronous copies, written by hand, that several tests share."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import te, tir
from tilewright.ir.expr import Var
from tilewright.tir import ptx
from tilewright.tir.function import PrimFunc
from tilewright.tir.interpreter.float8 import decode
from tilewright.tir.ptx_shapes import BITS, wgmma_k, wgmma_offset
from tilewright.tir.stmt import EXPLICIT_SYNC, AttrStmt


class Kernel:
    """A builder of one kernel: buffers, thread axes, and calls as statements."""

    def __init__(self) -> None:
        self.ib = tir.ir_builder.create()
        self.buffers: list[Any] = []

    def buffer(self, name: str, shape: tuple[int, ...], dtype: str) -> Any:
        made = tir.decl_buffer(shape, dtype, name=name)
        self.buffers.append(made)
        return self.ib.buffer_ptr(made)

    def axis(self, tag: str, extent: int) -> Any:
        axis = te.thread_axis(tag)
        self.ib.scope_attr(axis, "thread_extent", extent)
        return axis.var

    def __call__(self, call: Any) -> None:
        self.ib.emit(call)

    def function(self, *, explicit_sync: bool = False, **attrs: Any) -> PrimFunc:
        params = [Var(buffer.name, "handle") for buffer in self.buffers]
        body = self.ib.get()
        if explicit_sync:
            body = AttrStmt("kernel", EXPLICIT_SYNC, 1, body)
        made = PrimFunc(params, body, buffer_map=dict(zip(params, self.buffers, strict=True)))
        for key, value in {"global_symbol": "main", "tir.noalias": True, **attrs}.items():
            made = made.with_attr(key, value)
        return made


def warp_product(
    rows: int,
    columns: int,
    depth: int,
    a_type: str = "float16",
    c_type: str = "float32",
    transposed_b: bool = True,
) -> PrimFunc:
    """C = A B' (or A B) by ``mma.sync``: a warp has 16 x 8 elements, with tiles of A and B in shared memory."""
    k = Kernel()
    a = k.buffer("A", (rows, depth), a_type)
    b = k.buffer("B", (columns, depth) if transposed_b else (depth, columns), a_type)
    c = k.buffer("C", (rows, columns), c_type)
    ib = k.ib
    by, bx = k.axis("blockIdx.y", rows // 16), k.axis("blockIdx.x", columns // 8)
    tx = k.axis("threadIdx.x", 32)
    a_shared = ib.allocate(a_type, (16 * 16,), name="a_shared", scope="shared")
    b_shared = ib.allocate(a_type, (16 * 8,), name="b_shared", scope="shared")
    a_local = ib.allocate(a_type, (8,), name="a_local", scope="local")
    b_local = ib.allocate(a_type, (4,), name="b_local", scope="local")
    total = ib.allocate(c_type, (4,), name="total", scope="local")
    for place in range(4):
        total[place] = tir.const(0, c_type)
    with ib.for_range(0, depth // 16, name="step") as step:
        row, half = tir.floordiv(tx, 2), tir.floormod(tx, 2)
        source = (by * 16 + row) * depth + step * 16 + half * 8
        k(
            ptx.cp_async(
                ptx.pointer(a_shared, row * 16 + half * 8, "w", 8), ptx.pointer(a, source, "r", 8), 16
            )
        )
        if transposed_b:
            with ib.if_scope(tx < 16):
                source = (bx * 8 + row) * depth + step * 16 + half * 8
                target = ptx.pointer(b_shared, row * 16 + half * 8, "w", 8)
                k(ptx.cp_async(target, ptx.pointer(b, source, "r", 8), 16))
        else:
            with ib.if_scope(tx < 16):
                source = (step * 16 + tx) * columns + bx * 8
                k(ptx.cp_async(ptx.pointer(b_shared, tx * 8, "w", 8), ptx.pointer(b, source, "r", 8), 16))
        k(ptx.cp_async_commit())
        k(ptx.cp_async_wait(0))
        place = tir.floormod(tx, 16) * 16 + tir.floordiv(tx, 16) * 8
        k(ptx.ldmatrix(ptx.pointer(a_local, 0, "w", 8), ptx.pointer(a_shared, place, "r", 8), 4))
        lane = tir.floormod(tx, 16)
        place = tir.floormod(lane, 8) * 16 + tir.floordiv(lane, 8) * 8 if transposed_b else lane * 8
        k(
            ptx.ldmatrix(
                ptx.pointer(b_local, 0, "w", 4),
                ptx.pointer(b_shared, place, "r", 8),
                2,
                transposed=not transposed_b,
            )
        )
        operands = [
            ptx.pointer(a_local, 0, "r", 8),
            ptx.pointer(b_local, 0, "r", 4),
            ptx.pointer(total, 0, "rw", 4),
        ]
        k(ptx.mma("m16n8k16", a_type, a_type, c_type, *operands))
    for place in range(4):
        row, column = ptx.fragment_index("c", "m16n8k16", c_type, tx, place)
        c[(by * 16 + row) * columns + bx * 8 + column] = total[place]
    return k.function()


def group_product(columns: int, depth: int, stages: int = 3, swizzle: int = 128) -> PrimFunc:
    """C = A B' by ``wgmma``: one block with 64 rows, a group that fetches boxes of A and B, and a group of four warps
    that multiplies them."""
    width = swizzle // 2
    k = Kernel()
    ib = k.ib
    a = k.buffer("A", (64, depth), "float16")
    b = k.buffer("B", (columns, depth), "float16")
    c = k.buffer("C", (64, columns), "float32")
    k.axis("blockIdx.x", 1)
    tx = k.axis("threadIdx.x", 256)
    maps = []
    for tensor, rows in ((a, 64), (b, columns)):
        var = tensor.asobject()
        described = ptx.tensor_map("float16", (rows, depth), (depth, 1), (rows, width), swizzle)
        ib.scope_attr(var, ptx.TENSOR_MAP, described)
        maps.append(var)
    a_size, b_size = 64 * width, columns * width
    a_shared = ib.allocate("float16", (stages * a_size,), name="a_shared", scope="shared.dyn")
    b_shared = ib.allocate("float16", (stages * b_size,), name="b_shared", scope="shared.dyn")
    for shared in (a_shared, b_shared):
        ib.scope_attr(shared.asobject(), "storage_alignment", 1024)
    full = ib.allocate("uint64", (stages,), name="full", scope="shared")
    free = ib.allocate("uint64", (stages,), name="free", scope="shared")
    count = columns // 2
    total = ib.allocate("float32", (count,), name="total", scope="local")
    with ib.if_scope(tx.equal(0)):
        for stage in range(stages):
            k(ptx.mbarrier_init(ptx.pointer(full, stage, "w"), 1))
            k(ptx.mbarrier_init(ptx.pointer(free, stage, "w"), 128))
        k(ptx.fence_mbarrier_init())
    k(tir.call_intrin("int32", "tir.tvm_storage_sync", "shared"))
    steps = depth // width
    with ib.if_scope(tx >= 128):
        k(ptx.set_max_registers(40, increase=False))
        with ib.if_scope(tx.equal(128)), ib.for_range(0, steps, name="step") as step:
            stage, turn = tir.floormod(step, stages), tir.floordiv(step, stages)
            # The barrier is free before its first phase ends: the parity of the phase before that.
            k(ptx.mbarrier_wait(ptx.pointer(free, stage, "r"), tir.floormod(turn + 1, 2)))
            k(ptx.mbarrier_arrive_expect_tx(ptx.pointer(full, stage), 2 * (a_size + b_size)))
            for var, shared, size in ((maps[0], a_shared, a_size), (maps[1], b_shared, b_size)):
                k(
                    ptx.bulk_tensor_load(
                        ptx.pointer(shared, stage * size, "w", size),
                        var,
                        ptx.pointer(full, stage),
                        [0, step * width],
                    )
                )
    with ib.else_scope():
        k(ptx.set_max_registers(232, increase=True))
        with ib.for_range(0, steps, name="step") as step:
            stage, turn = tir.floormod(step, stages), tir.floordiv(step, stages)
            k(ptx.mbarrier_wait(ptx.pointer(full, stage, "r"), tir.floormod(turn, 2)))
            k(ptx.wgmma_fence())
            for inner in range(width // 16):
                left = ptx.wgmma_descriptor(
                    ptx.pointer(a_shared, stage * a_size + inner * 16, "r"), 16, 8 * swizzle, swizzle
                )
                right = ptx.wgmma_descriptor(
                    ptx.pointer(b_shared, stage * b_size + inner * 16, "r"), 16, 8 * swizzle, swizzle
                )
                keep = tir.if_then_else(step > 0, 1, 0) if inner == 0 else 1
                target = ptx.pointer(total, 0, "rw", count)
                k(ptx.wgmma(columns, "float16", "float16", "float32", left, right, target, keep))
            k(ptx.wgmma_commit())
            k(ptx.wgmma_wait(0))
            k(ptx.mbarrier_arrive(ptx.pointer(free, stage)))
        for place in range(count):
            row, column = ptx.wgmma_index("float32", tx, place)
            c[row * columns + column] = total[place]
    return k.function(explicit_sync=True, **{"tir.min_blocks_per_multiprocessor": 1})


def fragment_product(shape: str, a_type: str, c_type: str, stored: str) -> PrimFunc:
    """C = A B' of one ``mma`` whose fragments every thread loads by itself."""
    depth = int(shape.rsplit("k", 1)[-1])
    k = Kernel()
    ib = k.ib
    a, b = k.buffer("A", (16, depth), stored), k.buffer("B", (8, depth), stored)
    c = k.buffer("C", (16, 8), c_type)
    tx = k.axis("threadIdx.x", 32)
    counts = (16 * depth // 32, 8 * depth // 32)
    a_local, b_local = (
        ib.allocate(stored, (count,), name=name, scope="local")
        for name, count in zip(("a_local", "b_local"), counts, strict=True)
    )
    total = ib.allocate(c_type, (4,), name="total", scope="local")
    for place in range(counts[0]):
        row, column = ptx.fragment_index("a", shape, a_type, tx, place)
        a_local[place] = a[row * depth + column]
    for place in range(counts[1]):
        row, column = ptx.fragment_index("b", shape, a_type, tx, place)
        b_local[place] = b[column * depth + row]
    for place in range(4):
        total[place] = tir.const(0, c_type)
    operands = [
        ptx.pointer(a_local, 0, "r", counts[0]),
        ptx.pointer(b_local, 0, "r", counts[1]),
        ptx.pointer(total),
    ]
    k(ptx.mma(shape, a_type, a_type, c_type, *operands))
    for place in range(4):
        row, column = ptx.fragment_index("c", shape, c_type, tx, place)
        c[row * 8 + column] = total[place]
    return k.function()


def one_wgmma(
    n: int,
    a_type: str,
    c_type: str,
    stored: str,
    from_registers: bool = False,
    a_transposed: bool = False,
    b_transposed: bool = False,
) -> PrimFunc:
    """C = A B' of one ``wgmma``: 128 threads write A and B to shared memory in the layout without swizzle."""
    depth, itemsize = wgmma_k(a_type), BITS[a_type] // 8
    k = Kernel()
    ib = k.ib
    a, b = k.buffer("A", (64, depth), stored), k.buffer("B", (n, depth), stored)
    c = k.buffer("C", (64, n), c_type)
    tx = k.axis("threadIdx.x", 128)
    count = n // 2
    a_local = ib.allocate(stored, (64 * depth // 128,), name="a_local", scope="local")
    total = ib.allocate(c_type, (count,), name="total", scope="local")
    descriptors = []
    for name, source, rows, transposed in (("a", a, 64, a_transposed), ("b", b, n, b_transposed)):
        shared = ib.allocate(stored, (rows * depth,), name=f"{name}_shared", scope="shared")
        # Without a swizzle, units of eight rows of 16 bytes follow one another along k, then along m or n.
        leading, stride = (128, 128 * depth * itemsize // 16) if not transposed else (128, 16 * depth)
        with ib.for_range(0, -(-rows * depth // 128), name="piece") as piece:
            place = piece * 128 + tx
            with ib.if_scope(place < rows * depth):
                row, column = tir.floordiv(place, depth), tir.floormod(place, depth)
                offset = wgmma_offset(row, column, itemsize, leading, stride, 0, transposed)
                shared[tir.floordiv(offset, itemsize)] = source[place]
        descriptors.append(
            ptx.wgmma_descriptor(ptx.pointer(shared, 0, "r", rows * depth), leading, stride, 0)
        )
    for place in range(64 * depth // 128):
        row, column = ptx.fragment_index("a", f"m16n8k{depth}", a_type, tir.floormod(tx, 32), place)
        a_local[place] = a[(tir.floordiv(tx, 32) * 16 + row) * depth + column]
    for place in range(count):
        total[place] = tir.const(1, c_type)
    k(ptx.fence_proxy_async())
    k(tir.call_intrin("int32", "tir.tvm_storage_sync", "shared"))
    left = ptx.pointer(a_local, 0, "r", 64 * depth // 128) if from_registers else descriptors[0]
    target = ptx.pointer(total, 0, "rw", count)
    k(ptx.wgmma_fence())
    k(ptx.wgmma(n, a_type, a_type, c_type, left, descriptors[1], target, 1, a_transposed, b_transposed))
    k(ptx.wgmma_commit())
    k(ptx.wgmma_wait(0))
    for place in range(count):
        row, column = ptx.wgmma_index(c_type, tx, place)
        c[row * n + column] = total[place]
    return k.function(explicit_sync=True)


def box_copy(rows: int, columns: int, swizzle: int = 0) -> PrimFunc:
    """B = A by bulk copies of boxes of 8 x 32 float32, some of which reach over the edge; one warp."""
    k = Kernel()
    ib = k.ib
    a, b = k.buffer("A", (rows, columns), "float32"), k.buffer("B", (rows, columns), "float32")
    by, bx = k.axis("blockIdx.y", -(-rows // 8)), k.axis("blockIdx.x", -(-columns // 32))
    k.axis("threadIdx.x", 32)
    for tensor in (a, b):
        described = ptx.tensor_map("float32", (rows, columns), (columns, 1), (8, 32), swizzle)
        ib.scope_attr(tensor.asobject(), ptx.TENSOR_MAP, described)
    shared = ib.allocate("float32", (256,), name="box", scope="shared")
    ib.scope_attr(shared.asobject(), "storage_alignment", 1024)
    barrier = ib.allocate("uint64", (1,), name="barrier", scope="shared")
    with ib.if_scope(ptx.elect_sync()):
        k(ptx.prefetch_tensor_map(a.asobject()))
        k(ptx.mbarrier_init(ptx.pointer(barrier), 1))
        k(ptx.fence_mbarrier_init())
        k(ptx.mbarrier_arrive_expect_tx(ptx.pointer(barrier), 1024))
        place = [by * 8, bx * 32]
        k(ptx.bulk_tensor_load(ptx.pointer(shared, 0, "w", 256), a.asobject(), ptx.pointer(barrier), place))
        k(ptx.mbarrier_wait(ptx.pointer(barrier), 0))
        k(ptx.bulk_tensor_store(b.asobject(), ptx.pointer(shared, 0, "r", 256), place))
        k(ptx.bulk_commit())
        k(ptx.bulk_wait(0))
        k(ptx.mbarrier_inval(ptx.pointer(barrier)))
    return k.function(explicit_sync=True)


def roles() -> PrimFunc:
    """Two warps that hand numbers over with named barriers; what one stores by ``stmatrix`` the other one reads."""
    k = Kernel()
    ib = k.ib
    a, b = k.buffer("A", (2, 64), "float16"), k.buffer("B", (2, 64), "float16")
    tx = k.axis("threadIdx.x", 64)
    shared = ib.allocate("float16", (64,), name="tile", scope="shared")
    own = ib.allocate("float16", (2,), name="own", scope="local")
    with ib.for_range(0, 2, name="turn") as turn:
        with ib.if_scope(tx < 32):
            for place in range(2):
                own[place] = a[turn * 64 + tx * 2 + place]
            address = ptx.pointer(shared, tir.floormod(tx, 8) * 8, "w", 8)
            k(ptx.stmatrix(address, ptx.pointer(own, 0, "r", 2), 1, transposed=True))
            k(ptx.barrier_arrive(1, 64))
            k(ptx.barrier_sync(2, 64))
        with ib.else_scope():
            k(ptx.barrier_sync(1, 64))
            for place in range(2):
                b[turn * 64 + (tx - 32) * 2 + place] = shared[(tx - 32) * 2 + place]
            k(ptx.barrier_arrive(2, 64))
    return k.function(explicit_sync=True)


KINDS_OF_WGMMA = [
    (8, "float16", "float32", "float16", {}),
    (24, "float16", "float32", "float16", {"b_transposed": True}),
    (16, "float16", "float32", "float16", {"a_transposed": True}),
    (32, "float16", "float32", "float16", {"from_registers": True}),
    (16, "float16", "float16", "float16", {}),
    (16, "tf32", "float32", "float32", {}),
    (32, "int8", "int32", "int8", {}),
    (32, "e4m3", "float32", "uint8", {"from_registers": True}),
]
"""Arguments of ``one_wgmma``: every type, transposed operands, and operands from registers."""


def wgmma_operands(n: int, stored: str) -> tuple[Any, Any]:
    """Whole numbers for ``one_wgmma``, whose product every type holds exactly."""
    depth = 256 // {"float32": 32, "float16": 16}.get(stored, 8)
    low, high = (0, 60) if stored in ("int8", "uint8") else (-8, 8)
    generator = np.random.default_rng(1)
    a, b = (generator.integers(low, high, (rows, depth)).astype(stored) for rows in (64, n))
    return a, b


def wgmma_result(a: Any, b: Any, a_type: str, c_type: str) -> Any:
    """What ``one_wgmma`` computes: the product, added to ones."""
    left, right = (decode(one, a_type) if a_type == "e4m3" else one for one in (a, b))
    return (left.astype("float64") @ right.astype("float64").T + 1).astype(c_type)
