"""Programs in TVMScript, as users write them: each must parse, verify, print and parse again to the same program."""

from __future__ import annotations

from tilewright.script import ir_module
from tilewright.script import tir as T


@T.prim_func
def matmul(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, [16, 16])
    B = T.match_buffer(b, [16, 16])
    C = T.match_buffer(c, [16, 16])
    for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]


@T.prim_func
def symbolic_elementwise(a: T.handle, b: T.handle, n: T.int32) -> None:
    m = T.var("int32")
    A = T.match_buffer(a, (m, n * 2), "float32")
    B = T.match_buffer(b, (m, n * 2), "float32")
    for i, j in T.grid(m, n * 2):
        with T.block("update"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1.0


@T.prim_func
def tiled_with_predicate(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, [100], dtype="float32", elem_offset=0, align=128, offset_factor=1)
    C = T.match_buffer(c, [100], dtype="float32", scope="global")
    B = T.alloc_buffer([100], dtype="float32", scope="local")
    for i_0 in T.parallel(0, 7):
        for i_1 in T.vectorized(16, annotations={"pragma": 1, "name": "inner"}):
            with T.block("B"):
                vi = T.axis.spatial(100, i_0 * 16 + i_1)
                T.where(i_0 * 16 + i_1 < 100)
                T.reads([A[vi]])
                T.writes([B[vi]])
                T.block_attr({"key": "value", "list": [1, 2]})
                B[vi] = A[vi] * T.float32(2)
    for i in T.unroll(100):
        with T.block("C"):
            vi = T.axis.S((0, 100), i)
            C[vi] = T.max(B[vi], 0.5)


@T.prim_func
def matched_region(a: T.handle) -> None:
    A = T.match_buffer(a, (32, 32), "int32")
    for i, j in T.grid(4, 4):
        with T.block("window"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads()
            T.writes(A[vi * 8 : vi * 8 + 8, vj * 8 : vj * 8 + 8])
            s0 = T.var("int32")
            s1 = T.var("int32")
            window = T.match_buffer(
                A[vi * 8 : vi * 8 + 8, vj * 8 : vj * 8 + 8],
                (8, 8),
                "int32",
                strides=[s0, s1],
                offset_factor=1,
            )
            for x, y in T.grid(8, 8):
                window[x, y] = vi * 1000 + vj * 100 + x * 10 + y


@T.prim_func
def realized(a: T.handle, c: T.handle) -> None:
    T.func_attr({"global_symbol": "realized", "tir.noalias": True})
    packed = T.buffer_decl([4, 8], elem_offset=0, align=128, offset_factor=1)
    A = T.match_buffer(a, [32], elem_offset=0, align=128, offset_factor=1)
    C = T.match_buffer(c, [32], elem_offset=0, align=128, offset_factor=1)
    # body
    T.realize(packed[0:4, 0:8], "")
    for x in T.parallel(0, 4):
        for z in T.vectorized(0, 8):
            packed[x, z] = A[((x * 8) + z)]
    for x_outer in T.serial(0, 4):
        T.attr("default", "pragma", 1)
        C[T.ramp(x_outer * 8, 1, 8)] = packed[x_outer, T.ramp(0, 1, 8)] + T.broadcast(T.float32(1), 8)


@T.prim_func
def flat(a: T.handle, n: T.int32) -> T.int32:
    A = T.match_buffer(a, [64], dtype="float32")
    assert n > 0, "n must be positive"
    half: T.int32 = n // 2
    with T.allocate([8], "float32x4", "global") as temporary:
        for i in T.serial(half):
            T.store(temporary, i, T.load("float32x4", A.data, T.ramp(i * 4, 1, 4)), True)
        with T.let(twice, half * 2):
            T.evaluate(T.call_extern("ignore", twice, dtype="int32"))
    shared = T.allocate([4], "int8", "shared")
    if half == 3:
        T.store(shared, 0, T.int8(-3))
    elif half > 3 and not (n % 2 != 0):
        T.store(shared, 1, T.cast(n, "int8"))
    else:
        T.store(shared, 1, T.Select(n < 2, T.int8(1), T.int8(2)))
    while A[0] < T.float32(10):
        A[0] += T.float32(3)
    T.evaluate(T.ret(half, dtype="int32"))


@T.prim_func
def kernel(A: T.Ptr[T.float32], B: T.Ptr[T.float32, "global"]) -> None:
    bx = T.env_thread("blockIdx.x")
    tx = T.env_thread("threadIdx.x")
    T.launch_thread(bx, 4)
    shared = T.allocate([8], "float32", "shared")
    T.launch_thread(tx, 8)
    T.store(shared, tx, T.load("float32", A, bx * 8 + tx))
    T.evaluate(T.tvm_storage_sync("shared", dtype="int32"))
    T.store(B, bx * 8 + tx, T.load("float32", shared, 7 - tx))


@T.prim_func
def reductions(a: T.handle, c: T.handle) -> None:
    k = T.var("int32")
    v = T.var("float32")
    A = T.match_buffer(a, [4, 8], dtype="float32")
    C = T.match_buffer(c, [4], dtype="float32")
    for i in T.thread_binding(4, thread="threadIdx.x"):
        C[i] = T.Reduce(
            T.comm_reducer(lambda x, y: x + y, [T.float32(0)]),
            [A[i, k]],
            [T.iter_var(k, 0, 8)],
            A[i, k] > 0.0,
            0,
        )
        C[i] = T.let(v, C[i], v * v) + T.float32("inf") * T.float32(0)


@ir_module
class Module:
    @T.prim_func
    def main(a: T.handle) -> None:
        T.func_attr({"global_symbol": "main"})
        A = T.match_buffer(a, [4], dtype="int64")
        for i in T.serial(T.int64(0), T.int64(4)):
            A[i] = i * T.int64(10000000000)
        T.evaluate(T.call_function("helper", A.data, dtype="int32"))

    @T.prim_func
    def helper(a: T.Ptr[T.int64]) -> None:
        T.store(a, 0, T.int64(7))


FUNCTIONS = (
    matmul,
    symbolic_elementwise,
    tiled_with_predicate,
    matched_region,
    realized,
    flat,
    kernel,
    reductions,
)
