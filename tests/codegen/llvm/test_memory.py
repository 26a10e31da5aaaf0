"""Loads and stores reach the elements they name, in as few instructions as their pattern allows."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tilewright.ir import operators as op
from tilewright.ir.expr import Broadcast, IntImm, Load, Ramp, Var
from tilewright.tir.stmt import AttrStmt, For, ForKind, Store, stmt_seq


def copy_through(
    kit, source_index, result_index, dtype="float32", lanes=8, size=64, target="llvm", predicate=None
):
    """y[result_index] = x[source_index] for vectors; the arrays, and the module."""
    x, y = kit.buffer("x", size, dtype), kit.buffer("y", size, dtype)
    value = Load(x.dtype.with_lanes(lanes), x.data, source_index, predicate)
    module = kit.build([x, y], Store(y.data, value, result_index, predicate), target)
    given, result = np.arange(size).astype(dtype), np.zeros(size, dtype)
    module["f"](given, result)
    return given, result, module


LANES = np.arange(8)


@pytest.mark.parametrize("stride", [1, -1, 2, 3, 4, 5, 7, 0])
def test_strided_loads(kit, stride):
    """Every constant stride picks its elements, backwards and zero included."""
    base = 60 if stride < 0 else 3
    given, result, _ = copy_through(kit, Ramp(base, stride, 8), Ramp(8, 1, 8))
    np.testing.assert_array_equal(result[8:16], given[base + stride * LANES])
    assert not result[:8].any() and not result[16:].any()


@pytest.mark.parametrize("stride", [-1, 2, 5])
def test_strided_stores(kit, stride):
    """Stores scatter as loads gather, and leave what is between alone."""
    base = 60 if stride < 0 else 3
    given, result, _ = copy_through(kit, Ramp(8, 1, 8), Ramp(base, stride, 8))
    expected = np.zeros(64, "float32")
    expected[base + stride * LANES] = given[8:16]
    np.testing.assert_array_equal(result, expected)


def test_no_element_outside_is_read(kit):
    """A strided load at the end of an array touches nothing past its last lane."""
    given, result, module = copy_through(kit, Ramp(49, 2, 8), Ramp(0, 1, 8))
    np.testing.assert_array_equal(result[:8], given[49:64:2])
    offsets = [
        int(number)
        for number in re.findall(
            r"getelementptr inbounds i32, ptr \S+, i64 (\d+)", module.get_source("unoptimized")
        )
    ]
    assert max(offsets) <= 56


def test_any_vector_of_indices(kit):
    """Indices computed from data gather and scatter, on machines with a gather instruction and without."""
    for target in ("llvm", "llvm -mcpu=x86-64"):
        places, x, y = kit.buffer("p", 8, "int32"), kit.buffer("x", 64), kit.buffer("y", 64)
        index = Load("int32x8", places.data, Ramp(0, 1, 8))
        body = stmt_seq(
            Store(y.data, Load("float32x8", x.data, index), Ramp(0, 1, 8)),
            Store(y.data, Load("float32x8", x.data, Ramp(0, 1, 8)), index + Broadcast(IntImm("int32", 8), 8)),
        )
        given, result = np.arange(64, dtype="float32"), np.zeros(64, "float32")
        where = np.array([7, 3, 50, 0, 1, 33, 12, 9], "int32")
        kit.build([places, x, y], body, target)["f"](where, given, result)
        expected = np.zeros(64, "float32")
        expected[:8] = given[where]
        expected[where + 8] = given[:8]
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", ["float32", "int8", "float16", "bool", "float64"])
@pytest.mark.parametrize("stride", [1, 3])
def test_masked_lanes_are_left_alone(kit, dtype, stride):
    """A predicate that is false in a lane keeps the load and the store of that lane from happening."""
    size = 64
    x, y = kit.buffer("x", size, dtype), kit.buffer("y", size, dtype)
    limit = kit.buffer("limit", 1, "int32")
    index = Ramp(Var("i") * 0 + 40, stride, 8) if stride == 1 else Ramp(40, stride, 8)
    index = Ramp(40, stride, 8)
    inside = index < Broadcast(Load("int32", limit.data, 0), 8)
    value = Load(x.dtype.with_lanes(8), x.data, index, inside)
    module = kit.build([x, y, limit], Store(y.data, value, index, inside))
    given, result = np.ones(size, dtype), np.zeros(size, dtype)
    module["f"](given, result, np.array([45], "int32"))
    expected = np.zeros(size, dtype)
    expected[40:45:stride] = 1
    np.testing.assert_array_equal(result, expected)


def test_scalar_predicate(kit):
    """A scalar access under a false predicate does not happen; its value counts as zero."""
    x, y = kit.buffer("x", 16), kit.buffer("y", 16)
    i = Var("i")
    body = For(i, 0, 16, ForKind.SERIAL, Store(y.data, Load("float32", x.data, i, i < 5) + 1.0, i, i > 2))
    result = np.zeros(16, "float32")
    kit.build([x, y], body)["f"](np.full(16, 7, "float32"), result)
    np.testing.assert_array_equal(result, [0, 0, 0, 8, 8, *[1] * 11])


def test_buffers_of_vectors_count_in_vectors(kit):
    """A vector access with a scalar index addresses the index-th vector."""
    given, result, _ = copy_through(kit, IntImm("int32", 2), IntImm("int32", 5))
    np.testing.assert_array_equal(result[40:48], given[16:24])


def test_index_sums_of_vectors_stay_contiguous(kit):
    """base + ramp, not yet simplified into one ramp, is still one vector load."""
    index = op.add(Ramp(0, 1, 8), Broadcast(IntImm("int32", 16), 8))
    _, result, module = copy_through(kit, index, Ramp(0, 1, 8))
    np.testing.assert_array_equal(result[:8], np.arange(16, 24))
    assert len(re.findall(r"load <8 x float>", module.get_source("unoptimized"))) == 1


def test_alignment_is_what_pointer_and_index_prove(kit):
    """64-byte memory read at multiples of eight floats is 32-byte aligned, at odd places four-byte aligned."""
    x, y = kit.buffer("x", 1024), kit.buffer("y", 1024)
    i = Var("i")
    body = For(
        i, 0, 8, ForKind.SERIAL,
        Store(y.data, Load("float32x8", x.data, Ramp(i * 8, 1, 8)), Ramp(i * 8 + 1, 1, 8)),
    )  # fmt: skip
    body = AttrStmt(x.data, "storage_alignment", 64, AttrStmt(y.data, "storage_alignment", 64, body))
    text = kit.build([x, y], body).get_source("unoptimized")
    assert re.search(r"load <8 x float>, ptr \S+, align 32", text)
    assert re.search(r"store <8 x float> \S+, ptr \S+, align 4", text)


def test_bool_takes_a_byte(kit):
    """Booleans are bytes of zero or one in memory, whatever vectors they were computed in."""
    a = np.arange(64, dtype="int32")
    got = kit.elementwise(lambda x: x < Broadcast(IntImm("int32", 20), 16), [a], "bool", lanes=16)
    np.testing.assert_array_equal(got.view("uint8"), (a < 20).astype("uint8"))


def test_small_integers_take_a_byte(kit):
    """int4 values live one to a byte, with their sign."""
    x, y = kit.buffer("x", 16, "int8"), kit.buffer("y", 16, "int8")
    i = Var("i")
    load = Load("int8", x.data, i).astype("int4") + op.const(3, "int4")
    result = np.zeros(16, "int8")
    body = For(i, 0, 16, ForKind.SERIAL, Store(y.data, load.astype("int8"), i))
    kit.build([x, y], body)["f"](np.arange(16, dtype="int8"), result)
    np.testing.assert_array_equal(result, [((k + 3 + 8) % 16) - 8 for k in range(16)])


@pytest.mark.parametrize("kind", [ForKind.SERIAL, ForKind.PARALLEL])
def test_streaming_stores(kit, kind):
    """pragma nontemporal_store writes past the caches where memory is aligned, plainly elsewhere; both are right."""
    x, y, i = kit.buffer("x", 256), kit.buffer("y", 256), Var("i")
    index = Ramp(i * 8, 1, 8)
    loop = For(
        i, 0, 32, kind, Store(y.data, Load("float32x8", x.data, index) + Broadcast(op.const(1.0), 8), index)
    )
    module = kit.build([x, y], AttrStmt(i, "pragma_nontemporal_store", 1, loop), "llvm -mcpu=haswell")
    assembly = module.get_source("asm")
    assert "vmovntps" in assembly and "sfence" in assembly
    memory = np.zeros(256 + 64, "float32")
    start = (-memory.ctypes.data % 64) // 4
    for offset in (start, start + 1):
        result = memory[offset : offset + 256]
        module["f"](np.arange(256, dtype="float32"), result)
        np.testing.assert_array_equal(result, np.arange(1, 257))
