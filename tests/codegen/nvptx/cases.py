"""Constructs of kernels, one small program each, with inputs and what must come out.

The interpreter runs all of them here, ptxas takes their PTX, and ``test_on_device`` runs them on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.codegen.nvptx import kernels

from tilewright import te, tir
from tilewright.tir import ptx
from tilewright.tir.interpreter.float8 import decode
from tilewright.tir.packed_lanes import dot_word, pack_word


@dataclass(frozen=True)
class Case:
    """A program: what is lowered, its tensors, the arrays that it is called with and what they hold afterwards."""

    schedule: Any
    args: list[Any]
    arrays: list[Any]
    wanted: list[Any]
    """The arrays after the call; None for one that is not looked at."""
    tolerance: float = 0.0
    arch: str = "sm_75"
    """The first generation that can run it."""


CASES: dict[str, Callable[[], Case]] = {}


def case(function: Callable[[], Case]) -> Callable[[], Case]:
    CASES[function.__name__] = function
    return function


def random(seed: int, shape: tuple[int, ...], dtype: str = "float32") -> Any:
    generator = np.random.default_rng(seed)
    if dtype.startswith(("int", "uint")):
        low, high = (0, 200) if dtype.startswith("u") else (-100, 100)
        return generator.integers(low, high, shape).astype(dtype)
    return generator.standard_normal(shape).astype(dtype)


def bound(stage: Any, axis: Any, threads: int = 64, lanes: int = 1) -> None:
    """Deal an axis out to blocks of threads, each with some lanes."""
    outer, inner = stage.split(axis, factor=threads * lanes)
    if lanes > 1:
        inner, lane = stage.split(inner, factor=lanes)
        stage.vectorize(lane)
    stage.bind(outer, te.thread_axis("blockIdx.x"))
    stage.bind(inner, te.thread_axis("threadIdx.x"))


def elementwise(
    n: int, dtypes: list[str], body: Any, lanes: int = 1, threads: int = 64
) -> tuple[Any, list[Any]]:
    """A function of the elements of some tensors."""
    inputs = [te.placeholder((n,), dtype, name=f"I{place}") for place, dtype in enumerate(dtypes)]
    made = te.compute((n,), lambda i: body(*[one[i] for one in inputs]), name="out")
    s = te.create_schedule(made.op)
    bound(s[made], made.op.axis[0], threads, lanes)
    return s, [*inputs, made]


@case
def guarded_end() -> Case:
    """The last block has fewer elements than threads."""
    s, args = elementwise(1000, ["float32", "float32"], lambda a, b: a + b * 2.0)
    x, y = random(1, (1000,)), random(2, (1000,))
    return Case(s, args, [x, y, np.zeros_like(x)], [None, None, x + y * 2], 1e-6)


@case
def symbolic_extent() -> Case:
    """The number of elements is known when the kernel is launched."""
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    bound(s[b], b.op.axis[0])
    x = random(1, (777,))
    return Case(s, [a, b], [x, np.zeros_like(x)], [None, x + 1])


@case
def vectors_float32() -> Case:
    s, args = elementwise(2048, ["float32"], lambda a: a * 3.0, lanes=4)
    x = random(1, (2048,))
    return Case(s, args, [x, np.zeros_like(x)], [None, x * np.float32(3)])


@case
def vectors_float16() -> Case:
    s, args = elementwise(2048, ["float16", "float16"], lambda a, b: a * b + a, lanes=8)
    x, y = random(1, (2048,), "float16"), random(2, (2048,), "float16")
    return Case(s, args, [x, y, np.zeros_like(x)], [None, None, x * y + x], 4e-3)


@case
def vectors_int8() -> Case:
    s, args = elementwise(4096, ["int8", "int8"], lambda a, b: a + b, lanes=16)
    x, y = random(1, (4096,), "int8"), random(2, (4096,), "int8")
    return Case(s, args, [x, y, np.zeros_like(x)], [None, None, x + y])


@case
def conversions() -> Case:
    """Floats become integers by truncation; integers, float16 and float32 become one another."""
    values = np.array([1.9, -1.9, 100.5, -100.5, 127.0, -128.0, -0.0, 0.5] * 8, "float32")
    s, args = elementwise(64, ["float32"], lambda a: a.astype("int8").astype("float16").astype("float32"))
    return Case(s, args, [values, np.zeros_like(values)], [None, np.trunc(values) + 0])


@case
def signed_division() -> Case:
    """Quotients and remainders round down, or towards zero; divisors are constants and numbers."""
    s, args = elementwise(
        128,
        ["int32", "int32"],
        lambda a, b: (
            tir.floordiv(a, 7) * 1000
            + tir.floormod(a, 7) * 100
            + tir.truncdiv(a, b) * 10
            + tir.truncmod(a, b)
            + tir.floordiv(a, b)
        ),
    )
    x, y = random(1, (128,), "int32"), random(2, (128,), "int32")
    y[y == 0] = 3
    quotient = np.trunc(x / y).astype("int32")
    wanted = x // 7 * 1000 + x % 7 * 100 + quotient * 10 + (x - quotient * y) + x // y
    return Case(s, args, [x, y, np.zeros_like(x)], [None, None, wanted])


@case
def not_a_number() -> Case:
    """max gives NaN where an operand is one."""
    x = np.array([np.nan, 1.0, np.nan, 0.0, 2.0, -3.0, np.inf, -np.inf] * 8, "float32")
    y = np.array([1.0, np.nan, np.nan, 0.0, -2.0, 3.0, -np.inf, 1.0] * 8, "float32")
    s, args = elementwise(64, ["float32", "float32"], tir.max)
    return Case(s, args, [x, y, np.zeros_like(x)], [None, None, np.maximum(x, y)])


@case
def clipped() -> Case:
    """relu6, also of a NaN, by the hardware's minimum and maximum."""
    x = np.array([np.nan, 1.0, 7.0, 0.0, -2.0, 6.0, np.inf, -np.inf] * 8, "float32")
    s, args = elementwise(64, ["float32"], lambda a: tir.min(tir.max(a, 0.0), 6.0))
    return Case(s, args, [x, np.zeros_like(x)], [None, np.minimum(np.maximum(x, 0), 6)])


@case
def comparison() -> Case:
    s, args = elementwise(256, ["float32", "float32"], lambda a, b: a > b)
    x, y = random(1, (256,)), random(2, (256,))
    return Case(s, args, [x, y, np.zeros(256, bool)], [None, None, x > y])


@case
def padding() -> Case:
    """What is outside is not read."""
    a = te.placeholder((30,), name="A")
    b = te.compute((34,), lambda i: tir.if_then_else(tir.all(i >= 2, i < 32), a[i - 2], 0.0), name="B")
    s = te.create_schedule(b.op)
    bound(s[b], b.op.axis[0], 32)
    x = random(1, (30,))
    return Case(s, [a, b], [x, np.zeros(34, "float32")], [None, np.pad(x, 2)])


@case
def padding_of_vectors() -> Case:
    """Lanes that are outside are not read."""
    a = te.placeholder((30,), name="A")
    b = te.compute((32,), lambda i: tir.if_then_else(tir.all(i >= 1, i < 31), a[i - 1], 0.0), name="B")
    s = te.create_schedule(b.op)
    bound(s[b], b.op.axis[0], 8, lanes=4)
    x = random(1, (30,))
    return Case(s, [a, b], [x, np.zeros(32, "float32")], [None, np.pad(x, 1)])


def _product(scope: str, stages: int = 0) -> Case:
    n = 32
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    shared = [s.cache_read(tensor, scope, [c]) for tensor in (a, b)]
    total = s.cache_write(c, "local")
    ty, tx = te.thread_axis("threadIdx.y"), te.thread_axis("threadIdx.x")
    io, ii = s[c].split(c.op.axis[0], factor=8)
    jo, ji = s[c].split(c.op.axis[1], factor=8)
    s[c].reorder(io, jo, ii, ji)
    for axis, tag in (
        (io, te.thread_axis("blockIdx.y")),
        (jo, te.thread_axis("blockIdx.x")),
        (ii, ty),
        (ji, tx),
    ):
        s[c].bind(axis, tag)
    s[total].compute_at(s[c], ji)
    ko, ki = s[total].split(s[total].op.reduce_axis[0], factor=8)
    s[total].unroll(ki)
    if stages:
        s[total].pragma(ko, "software_pipeline", stages)
    for tensor in shared:
        s[tensor].compute_at(s[total], ko)
        s[tensor].bind(s[tensor].op.axis[0], ty)
        s[tensor].bind(s[tensor].op.axis[1], tx)
    x, y = random(1, (n, n)), random(2, (n, n))
    return Case(s, [a, b, c], [x, y, np.zeros((n, n), "float32")], [None, None, x @ y], 1e-4)


@case
def product_in_shared_memory() -> Case:
    return _product("shared")


@case
def product_in_dynamic_shared_memory() -> Case:
    return _product("shared.dyn")


@case
def pipelined_product() -> Case:
    """Tiles are copied three iterations ahead, where there is cp.async."""
    return _product("shared", stages=4)


@case
def reduction_by_threads() -> Case:
    """A row's sum by the threads of a block: shuffles within warps, shared memory between them."""
    a = te.placeholder((8, 128), name="A")
    k = te.reduce_axis((0, 128), name="k")
    b = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    s[b].bind(b.op.axis[0], te.thread_axis("blockIdx.x"))
    s[b].bind(b.op.reduce_axis[0], te.thread_axis("threadIdx.x"))
    x = random(1, (8, 128))
    return Case(s, [a, b], [x, np.zeros(8, "float32")], [None, x.sum(1)], 1e-4)


@case
def shuffles() -> Case:
    """Values of other lanes, of several types."""
    k = kernels.Kernel()
    a, h = k.buffer("A", (32,), "float32"), k.buffer("H", (32,), "float16")
    out = k.buffer("O", (4, 32), "float32")
    tx = k.axis("threadIdx.x", 32)
    ib = k.ib
    local = ib.allocate("float32", (4,), name="local", scope="local")
    mask = tir.call_intrin("uint32", "tir.tvm_warp_activemask")
    wide = ib.allocate("float16", (1,), name="wide", scope="local")
    local[0] = tir.call_intrin("float32", "tir.tvm_warp_shuffle", mask, a[tx], 31 - tx, 32, 32)
    local[1] = tir.call_intrin("float32", "tir.tvm_warp_shuffle_up", mask, a[tx], 3, 32, 32)
    local[2] = tir.call_intrin("float32", "tir.tvm_warp_shuffle_down", mask, a[tx], 2, 8, 32)
    wide[0] = tir.call_intrin("float16", "tir.tvm_warp_shuffle", mask, h[tx], 5, 32, 32)
    local[3] = wide[0].astype("float32")
    for place in range(4):
        out[place * 32 + tx] = local[place]
    x, y = random(1, (32,)), random(2, (32,), "float16")
    lane = np.arange(32)
    up = np.where(lane < 3, lane, lane - 3)
    down = np.where(lane % 8 + 2 < 8, lane + 2, lane)
    wanted = np.stack([x[::-1], x[up], x[down], np.full(32, y[5], "float32")])
    return Case(k.function(), [], [x, y, np.zeros((4, 32), "float32")], [None, None, wanted])


@case
def atomics() -> Case:
    """Threads of several blocks count into few places."""
    k = kernels.Kernel()
    keys = k.buffer("K", (256,), "int32")
    counts, sums, halves = (
        k.buffer(name, (8,), kind) for name, kind in (("C", "int32"), ("S", "float32"), ("H", "float16"))
    )
    bx, tx = k.axis("blockIdx.x", 4), k.axis("threadIdx.x", 64)
    key = keys[bx * 64 + tx]
    for target, one in (
        (counts, tir.const(1, "int32")),
        (sums, tir.const(0.5, "float32")),
        (halves, tir.const(1, "float16")),
    ):
        address = tir.call_intrin("handle", "tir.address_of", target[key])
        k(tir.call_intrin(str(one.dtype), "tir.atomic_add", address, one))
    x = random(1, (256,), "int32") % 8
    count = np.bincount(x, minlength=8)
    arrays = [x, np.zeros(8, "int32"), np.zeros(8, "float32"), np.zeros(8, "float16")]
    return Case(k.function(), [], arrays, [None, count, count * 0.5, count])


@case
def int8_dot_products() -> Case:
    """Four products in one instruction."""
    a, b = te.placeholder((64, 4), "int8", name="A"), te.placeholder((64, 4), "int8", name="B")
    c = te.compute(
        (64,),
        lambda i: dot_word(
            pack_word(*[a[i, lane] for lane in range(4)]),
            pack_word(*[b[i, lane] for lane in range(4)]),
            "int8",
            "int8",
        ),
        name="C",
    )
    s = te.create_schedule(c.op)
    s[c].bind(c.op.axis[0], te.thread_axis("threadIdx.x"))
    x, y = random(1, (64, 4), "int8"), random(2, (64, 4), "int8")
    wanted = (x.astype("int32") * y).sum(1)
    return Case(s, [a, b, c], [x, y, np.zeros(64, "int32")], [None, None, wanted])


@case
def while_loop() -> Case:
    """Each thread searches an ordered array."""
    k = kernels.Kernel()
    ib = k.ib
    ordered, wanted, out = (
        k.buffer("A", (100,), "int32"),
        k.buffer("W", (64,), "int32"),
        k.buffer("O", (64,), "int32"),
    )
    tx = k.axis("threadIdx.x", 64)
    low, high = (ib.allocate("int32", (1,), name=name, scope="local") for name in ("low", "high"))
    low[0], high[0] = 0, 100
    with ib.while_loop(low[0] < high[0]):
        middle = tir.floordiv(low[0] + high[0], 2)
        with ib.if_scope(ordered[middle] < wanted[tx]):
            low[0] = middle + 1
        with ib.else_scope():
            high[0] = middle
    out[tx] = low[0]
    x, y = np.sort(random(1, (100,), "int32")), random(2, (64,), "int32")
    return Case(k.function(), [], [x, y, np.zeros(64, "int32")], [None, None, np.searchsorted(x, y)])


@case
def float8() -> Case:
    """e4m3 and back: rounded to the nearest, too large a number to the largest."""
    s, args = elementwise(64, ["float32"], lambda a: ptx.float8_decode(ptx.float8_encode(a, "e4m3"), "e4m3"))
    x = np.concatenate([random(1, (60,)) * 20, np.array([1000.0, -1000.0, 0.01, 0.0], "float32")])
    digits = np.maximum(np.floor(np.log2(np.maximum(np.abs(x), 2.0**-6))) - 3, -9)
    wanted = np.clip(np.round(x / 2.0**digits) * 2.0**digits, -448, 448)
    return Case(s, args, [x, np.zeros_like(x)], [None, wanted.astype("float32")], arch="sm_89")


@case
def wmma_fragments() -> Case:
    """The fragments that tensor intrinsics of te use: four products of 16 x 16, by one warp."""
    k = kernels.Kernel()
    ib = k.ib
    a, b = k.buffer("A", (16, 64), "float16"), k.buffer("B", (16, 64), "float16")
    c = k.buffer("C", (16, 16), "float32")
    k.axis("threadIdx.x", 32)
    scopes = {"a": ("float16", "matrix_a"), "b": ("float16", "matrix_b"), "c": ("float32", "accumulator")}
    memory = {
        name: ib.allocate(kind, (256,), name=f"fragment_{name}", scope=f"wmma.{scope}").asobject()
        for name, (kind, scope) in scopes.items()
    }
    shape = (16, 16, 16)

    def do(name: str, *arguments: Any) -> None:
        k(tir.call_intrin("handle", f"tir.tvm_{name}", *arguments))

    do("fill_fragment", memory["c"], *shape, 0, tir.const(0, "float32"))
    with ib.for_range(0, 4, name="step") as step:
        do("load_matrix_sync", memory["a"], *shape, 0, ptx.pointer(a, step * 16, "r", 976), 64, "row_major")
        do("load_matrix_sync", memory["b"], *shape, 0, ptx.pointer(b, step * 16, "r", 976), 64, "col_major")
        do("mma_sync", memory["c"], 0, memory["a"], 0, memory["b"], 0, memory["c"], 0)
    do("store_matrix_sync", memory["c"], *shape, 0, ptx.pointer(c, 0, "w", 256), 16, "row_major")
    x, y = random(1, (16, 64), "float16"), random(2, (16, 64), "float16")
    wanted = x.astype("float32") @ y.T.astype("float32")
    return Case(k.function(), [], [x, y, np.zeros((16, 16), "float32")], [None, None, wanted], 1e-3)


def _fragments(shape: str, a_type: str, c_type: str, stored: str, arch: str = "sm_80") -> Case:
    """One mma whose fragments every thread loads by itself."""
    depth = int(shape.rsplit("k", 1)[-1])
    k = kernels.fragment_product(shape, a_type, c_type, stored)
    plain = "float32" if stored == "bfloat16" else stored
    x, y = random(1, (16, depth), plain), random(2, (8, depth), plain)
    if a_type == "tf32":
        x, y = ((one.view("uint32") & np.uint32(0xFFFFE000)).view("float32") for one in (x, y))
    if a_type in ("e4m3", "e5m2"):
        x, y = x % 0x40, y % 0x40
        left, right = decode(x, a_type), decode(y, a_type)
    elif a_type == "bfloat16":
        x, y = ((one.view("uint32") >> 16).astype("uint16") for one in (x, y))
        left, right = ((one.astype("uint32") << 16).view("float32") for one in (x, y))
    else:
        left, right = x.astype("float64"), y.astype("float64")
    wanted = left.astype("float64") @ right.astype("float64").T
    return Case(
        k,
        [],
        [x, y, np.zeros((16, 8), c_type)],
        [None, None, wanted],
        2e-2 if c_type == "float16" else 1e-3,
        arch,
    )


for _shape, _a, _c, _stored, _arch in (
    ("m16n8k16", "float16", "float32", "float16", "sm_80"),
    ("m16n8k8", "float16", "float32", "float16", "sm_75"),
    ("m16n8k16", "float16", "float16", "float16", "sm_80"),
    ("m16n8k16", "bfloat16", "float32", "bfloat16", "sm_80"),
    ("m16n8k8", "tf32", "float32", "float32", "sm_80"),
    ("m16n8k32", "int8", "int32", "int8", "sm_80"),
    ("m16n8k32", "uint8", "int32", "uint8", "sm_80"),
    ("m16n8k32", "e4m3", "float32", "uint8", "sm_89"),
):
    CASES[f"mma_{_a}_{_c}_{_shape}"] = lambda shape=_shape, a=_a, c=_c, stored=_stored, arch=_arch: (
        _fragments(  # type: ignore[misc]
            shape, a, c, stored, arch
        )
    )
