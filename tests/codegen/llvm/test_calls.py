"""Intrinsics: bits, choices, addresses, fixed point, atomic additions, C functions, LLVM's own intrinsics."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tilewright.ir import operators
from tilewright.ir.expr import Broadcast, Call, IntImm, Load, Ramp, Var
from tilewright.support.errors import CodegenError
from tilewright.tir import op
from tilewright.tir.stmt import Evaluate, For, ForKind, LetStmt, Store


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int8", "uint64"])
@pytest.mark.parametrize("lanes", [1, 8])
def test_bits(kit, dtype, lanes):
    """And, or, exclusive or, not and shifts; signed numbers keep their sign when shifted down."""
    info = np.iinfo(dtype)
    a = np.random.default_rng(4).integers(info.min, info.max, 64, dtype=dtype, endpoint=True)
    b = np.random.default_rng(5).integers(0, info.bits, 64, dtype=dtype)
    functions = [
        operators.bitwise_and, operators.bitwise_or, operators.bitwise_xor, lambda x, y: operators.bitwise_not(x),
        operators.left_shift, operators.right_shift,
    ]  # fmt: skip
    results = kit.elementwise(functions, [a, b], dtype, lanes=lanes)
    np.testing.assert_array_equal(results, [a & b, a | b, a ^ b, ~a, a << b, a >> b])


def test_counting_bits(kit):
    """popcount counts ones, clz the zeros above the first one."""
    a = np.array([1, 2, 255, 2**31 - 1, 65536, 3, 7, 12345], "int32")
    np.testing.assert_array_equal(kit.elementwise(op.popcount, [a], "int32"), [bin(v).count("1") for v in a])
    np.testing.assert_array_equal(
        kit.elementwise(op.clz, [a], "int32", lanes=4), [32 - int(v).bit_length() for v in a]
    )


def test_reinterpreting(kit):
    """The bits of a float are an integer of the same size, and back."""
    a = np.array([1.5, -0.0, np.inf, 1e-40], "float32")
    np.testing.assert_array_equal(
        kit.elementwise(lambda x: op.reinterpret("int32", x), [a], "int32"), a.view("int32")
    )
    back = kit.elementwise(lambda x: op.reinterpret("float32x4", x), [a.view("int32")], "float32", lanes=4)
    np.testing.assert_array_equal(back, a)


def test_absolute_values(kit):
    """Magnitudes of floats, -0 and NaN included."""
    a = np.array([1.5, -2.5, -0.0, -np.inf, np.nan, 3, -7, 0], "float32")
    got = kit.elementwise(op.abs, [a], "float32", lanes=8)
    np.testing.assert_array_equal(got, np.abs(a))
    assert not np.signbit(got[2])


def test_only_the_branch_taken_is_evaluated(kit):
    """if_then_else guards its loads: nothing is read where the condition says so."""
    x, y, n, i = kit.buffer("x", 4), kit.buffer("y", 4096), Var("n"), Var("i")
    # Addresses gigabytes away would fault.
    value = op.if_then_else(i < n, Load("float32", x.data, i), op.if_then_else(i > 9, 2.0, 3.0))
    far = op.if_then_else(i < n, value, Load("float32", x.data, (i - i) + op.if_then_else(i < n, 1 << 30, 0)))
    module = kit.build([x, y, n], For(i, 0, 4096, ForKind.SERIAL, Store(y.data, far + value, i)))
    result = np.zeros(4096, "float32")
    module["f"](np.array([1, 2, 3, 4], "float32"), result, 4)
    np.testing.assert_array_equal(result[:10], [2, 4, 6, 8, 4, 4, 4, 4, 4, 4])
    np.testing.assert_array_equal(result[10:], np.full(4086, 3))


def test_a_vector_condition_masks_loads(kit):
    """Under a condition of several lanes, loads of the other lanes do not happen: padding reads no memory outside."""
    size = 1 << 20
    x, y, i = kit.buffer("x", 16), kit.buffer("y", 64), Var("i")
    place = Ramp(i * 8 - 24, 1, 8)
    inside = operators.logical_and(place >= 0, place < 16)
    # Far enough outside to fault, were it read.
    guarded = Load(
        "float32x8", x.data, place + operators.cast("int32x8", operators.logical_not(inside)) * size * 64
    )
    scalar = Broadcast(Load("float32", x.data, i - 3), 8)
    value = Call(
        "float32x8", "tir.if_then_else", [inside, guarded + scalar, Broadcast(operators.const(-1.0), 8)]
    )
    module = kit.build([x, y], For(i, 0, 8, ForKind.SERIAL, Store(y.data, value, Ramp(i * 8, 1, 8))))
    result = np.zeros(64, "float32")
    given = np.arange(100, 116, dtype="float32")
    module["f"](given, result)
    expected = np.full(64, -1, "float32")
    expected[24:40] = given + np.repeat(given[:2], 8)
    np.testing.assert_array_equal(result, expected)


def test_fixed_point_multiplication(kit):
    """q_multiply_shift rounds x * y * 2**(s - q) to nearest, halves up."""
    rng = np.random.default_rng(8)
    x, y = rng.integers(-(2**31), 2**31, 32).astype("int32"), rng.integers(2**30, 2**31, 32).astype("int32")
    for shift in (-5, 0):
        emit = lambda a, b: Call(
            "int32", "tir.q_multiply_shift", [a, b, IntImm("int32", 31), IntImm("int32", shift)]
        )
        expected = [
            (int(a) * int(b) + (1 << (30 - shift))) >> (31 - shift) for a, b in zip(x, y, strict=True)
        ]
        np.testing.assert_array_equal(kit.elementwise(emit, [x, y], "int32"), expected)


def test_fused_multiply_add_rounds_once(kit):
    """fma keeps the bits of the product that two roundings would lose, with the instruction and without."""
    a = np.array([1 + 2**-12, 3.0, -1.0, 0.1], "float32")
    c = -(a * a)
    exact = [float(x) * float(x) + float(y) for x, y in zip(a, c, strict=True)]
    for target in ("llvm -mcpu=haswell", "llvm -mcpu=x86-64"):
        np.testing.assert_array_equal(
            kit.elementwise(lambda x, y: op.fma(x, x, y), [a, c], "float32", target=target), np.float32(exact)
        )


def test_products_and_sums_contract(kit):
    """A product followed by a sum becomes one FMA instruction, without being asked."""
    x, y = kit.buffer("x", 64), kit.buffer("y", 64)
    i = Var("i")
    index = Ramp(i * 8, 1, 8)
    load = lambda buffer: Load("float32x8", buffer.data, index)
    body = For(i, 0, 8, ForKind.SERIAL, Store(y.data, load(x) * load(x) + load(y), index))
    assert "vfmadd" in kit.build([x, y], body, "llvm -mcpu=haswell").get_source("asm")
    assert "vfmadd" not in kit.build([x, y], body, "llvm -mcpu=haswell -fast-math-contract=0").get_source(
        "asm"
    )


def test_atomic_addition(kit):
    """The value before is returned, and no addition is lost among threads."""
    y, total, i = kit.buffer("y", 1000, "int32"), kit.buffer("total", 1, "int32"), Var("i")
    address = op.call_intrin("handle", "tir.address_of", Load("int32", total.data, 0))
    before = op.call_intrin("int32", "tir.atomic_add", address, IntImm("int32", 1))
    module = kit.build([y, total], For(i, 0, 1000, ForKind.PARALLEL, Store(y.data, before, i)))
    seen, count = np.zeros(1000, "int32"), np.zeros(1, "int32")
    module["f"](seen, count)
    assert count[0] == 1000
    np.testing.assert_array_equal(np.sort(seen), np.arange(1000))


def test_prefetch_and_addresses(kit):
    """A prefetch is an instruction without effect; the address of an element is its place in memory."""
    x, y = kit.buffer("x", 64), kit.buffer("y", 2, "int64")
    address = lambda k: op.call_intrin("handle", "tir.address_of", Load("float32", x.data, k))
    fetch = Evaluate(op.call_intrin("int32", "tir.prefetch", address(16), 0, 3, 1))
    distance = op.reinterpret("int64", address(10)) - op.reinterpret("int64", address(0))
    module = kit.build([x, y], LetStmt(Var("d", "int64"), distance, Store(y.data, distance, 0)))
    result = np.zeros(2, "int64")
    module["f"](np.zeros(64, "float32"), result)
    assert result[0] == 40
    assert "prefetcht0" in kit.build([x], fetch, "llvm -mcpu=haswell").get_source("asm")


def test_c_functions(kit):
    """call_pure_extern reaches the C library, small integers and floats alike."""
    a = np.array([0.5, 1.0, 2.0, -3.0], "float64")
    got = kit.elementwise(lambda x: op.call_pure_extern("float64", "cbrt", x), [a], "float64")
    np.testing.assert_allclose(got, np.cbrt(a), rtol=1e-15)
    letters = np.frombuffer(b"aZ3~", "int8").astype("int32")
    got = kit.elementwise(lambda x: op.call_pure_extern("int32", "toupper", x), [letters], "int32")
    np.testing.assert_array_equal(got, np.frombuffer(b"AZ3~", "int8"))


def test_unknown_c_functions_are_named(kit):
    """Code that calls what nobody defines says so when it is linked, and names it."""
    y = kit.buffer("y", 1)
    module = kit.build([y], Store(y.data, op.call_pure_extern("float32", "no_such_function_here"), 0))
    with pytest.raises(CodegenError, match="no_such_function_here"):
        module["f"]


def test_llvm_intrinsics(kit):
    """An intrinsic is found by its plain name and the types of its arguments."""
    a = np.array([4.0, 9.0, 16.0, 2.0], "float32")
    emit = lambda x: op.call_llvm_pure_intrin("float32x4", "llvm.sqrt", 1, x)
    np.testing.assert_array_equal(kit.elementwise(emit, [a], "float32", lanes=4), np.sqrt(a))


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("llvm.no.such.thing", "llvm"),
        ("llvm.aarch64.neon.sqabs", "llvm -mcpu=haswell"),
        ("llvm.x86.avx512.vpdpbusd.128", "llvm -mcpu=haswell"),
        ("llvm.x86.avx512.vpdpbusd.128", "llvm -mtriple=aarch64-linux-gnu"),
    ],
)
def test_wrong_intrinsics_are_refused(kit, name, target):
    """An intrinsic that does not exist, or that the target lacks, is an error and not the end of the process."""
    x = kit.buffer("x", 4, "int32")
    value = Load("int32x4", x.data, Ramp(0, 1, 4))
    call = op.call_llvm_pure_intrin("int32x4", name, 3, value, value, value)
    with pytest.raises(CodegenError, match="llvm"):
        kit.build([x], Store(x.data, call, Ramp(0, 1, 4)), target)


def test_dot_products_of_bytes(kit):
    """AVX-512 VNNI's instruction is reached through its intrinsic; the plain sum of products gives the same numbers."""
    a, b, c = kit.buffer("a", 64, "uint8"), kit.buffer("b", 64, "int8"), kit.buffer("c", 16, "int32")
    whole = lambda buffer, dtype, lanes: Load(dtype, buffer.data, Ramp(0, 1, lanes))
    packed = [
        op.reinterpret("int32x16", whole(a, "uint8x64", 64)),
        op.reinterpret("int32x16", whole(b, "int8x64", 64)),
    ]
    zero = Broadcast(IntImm("int32", 0), 16)
    call = op.call_llvm_pure_intrin("int32x16", "llvm.x86.avx512.vpdpbusd.512", 3, zero, *packed)
    store = Store(c.data, call, Ramp(0, 1, 16))
    target = "llvm -mcpu=icelake-server"
    assert "vpdpbusd" in kit.build([a, b, c], store, target).get_source("asm")
    part = lambda buffer, dtype, k: Load(dtype, buffer.data, Ramp(k, 4, 16)).astype("int32x16")
    total = zero
    for k in range(4):
        total = total + part(a, "uint8x16", k) * part(b, "int8x16", k)
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 255, 64).astype("uint8"), rng.integers(-128, 127, 64).astype("int8")
    result = np.zeros(16, "int32")
    kit.build([a, b, c], Store(c.data, total, Ramp(0, 1, 16)))["f"](left, right, result)
    np.testing.assert_array_equal(result, (left.astype("int32") * right).reshape(16, 4).sum(1))


def test_large_unsigned_constants(kit):
    """large_uint_imm builds a number from two halves."""
    y = kit.buffer("y", 1, "uint64")
    halves = [operators.const(0x89ABCDEF, "uint32"), operators.const(0xFEDCBA98, "uint32")]
    result = np.zeros(1, "uint64")
    kit.build([y], Store(y.data, Call("uint64", "tir.large_uint_imm", halves), 0))["f"](result)
    assert int(result[0]) == 0xFEDCBA9889ABCDEF


def test_halves_of_vectors(kit):
    """vectorlow, vectorhigh and vectorcombine take vectors apart and put them together."""
    a = np.arange(8, dtype="int32")
    swapped = lambda x: op.vectorcombine("int32x8", op.vectorhigh("int32x4", x), op.vectorlow("int32x4", x))
    np.testing.assert_array_equal(kit.elementwise(swapped, [a], "int32", lanes=8), [4, 5, 6, 7, 0, 1, 2, 3])


def test_exact_powers_of_float64(kit):
    """float64 powers are those of the C library where these are exact."""
    a = np.array([2.0, 10.0, 4.0, 3.0])
    np.testing.assert_array_equal(
        kit.elementwise(lambda x: op.power(x, x), [a], "float64"), [math.pow(v, v) for v in a]
    )
