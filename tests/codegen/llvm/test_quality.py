"""The machine code of a GEMM micro-kernel has the form that reaches the processor's peak."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tilewright.ir.expr import Broadcast, FloatImm, Load, Ramp, Var
from tilewright.ir.type import PointerType, PrimType
from tilewright.tir.stmt import Allocate, For, ForKind, SeqStmt, Store


def micro_kernel(kit, rows, vectors, lanes, depth, target):
    """C (rows x vectors * lanes) = A (depth x rows, packed) times B (depth x columns, packed)."""
    columns = vectors * lanes
    a, b, c = kit.buffer("a", depth * rows), kit.buffer("b", depth * columns), kit.buffer("c", rows * columns)
    tile, k = Var("tile", PointerType(PrimType("float32"))), Var("k")
    kind = f"float32x{lanes}"
    places = [
        (row, vector, Ramp(row * columns + vector * lanes, 1, lanes))
        for row in range(rows)
        for vector in range(vectors)
    ]
    clear = [Store(tile, Broadcast(FloatImm("float32", 0.0), lanes), place) for *_, place in places]
    update = [
        Store(
            tile,
            Load(kind, tile, place)
            + Broadcast(Load("float32", a.data, k * rows + row), lanes)
            * Load(kind, b.data, Ramp(k * columns + vector * lanes, 1, lanes)),
            place,
        )
        for row, vector, place in places
    ]
    write = [Store(c.data, Load(kind, tile, place), place) for *_, place in places]
    body = SeqStmt([*clear, For(k, 0, depth, ForKind.SERIAL, SeqStmt(update)), *write])
    return kit.build([a, b, c], Allocate(tile, "float32", [rows * columns], True, body), target)


def inner_loop(assembly: str) -> str:
    """The instructions of the loop that multiplies, from its label to its branch."""
    blocks = re.split(r"^\.LBB\S+:$", assembly, flags=re.MULTILINE)
    block = max(blocks, key=lambda block: len(re.findall(r"vfmadd|fmla", block)))
    return block[: block.index("\tj")]


@pytest.mark.parametrize(
    ("target", "shape", "register"),
    [("llvm -mcpu=haswell", (6, 2, 8), "ymm"), ("llvm -mcpu=skylake-avx512", (14, 2, 16), "zmm")],
)
def test_accumulators_stay_in_registers(kit, target, shape, register):
    """One multiply-add a register of the tile and nothing on the stack: no spill, no reload, no store in the loop."""
    rows, vectors, lanes = shape
    module = micro_kernel(kit, rows, vectors, lanes, 256, target)
    loop = inner_loop(module.get_source("asm"))
    assert len(re.findall(rf"vfmadd\S+\s.*%{register}", loop)) == rows * vectors
    assert "%rsp" not in loop
    assert not re.search(rf"vmov\S+\s+%{register}\d+, \S*\(", loop)


def test_the_kernel_is_right(kit):
    """The tile's product is NumPy's."""
    module = micro_kernel(kit, 6, 2, 8, 64, "llvm")
    rng = np.random.default_rng(0)
    a, b, c = rng.random((64, 6), "float32"), rng.random((64, 16), "float32"), np.zeros((6, 16), "float32")
    module["f"](a.ravel(), b.ravel(), c.ravel())
    np.testing.assert_allclose(c, a.T @ b, rtol=1e-5)


def test_buffers_that_may_meet_are_reloaded(kit):
    """Without the promise that arguments are distinct, nothing carries an alias scope of its own."""
    x, y, i = kit.buffer("x", 64), kit.buffer("y", 64), Var("i")
    body = For(i, 0, 64, ForKind.SERIAL, Store(y.data, Load("float32", x.data, i), i))
    load = r"load float, ptr \S+, align 4.*"
    promised = re.search(load, kit.build([x, y], body).get_source("unoptimized"))
    assert promised and "!noalias" in promised[0] and "!invariant.load" in promised[0]
    open_question = re.search(
        load, kit.build([x, y], body, **{"tir.noalias": False}).get_source("unoptimized")
    )
    assert open_question and "!noalias" not in open_question[0]


def test_overlapping_arguments_without_the_promise(kit):
    """Code that was not promised distinct buffers reads what it has just written."""
    x, y, i = kit.buffer("x", 64, "int32"), kit.buffer("y", 64, "int32"), Var("i")
    body = For(i, 0, 64, ForKind.SERIAL, Store(y.data, Load("int32", x.data, i) + 1, i))
    module = kit.build([x, y], body, **{"tir.noalias": False})
    memory = np.zeros(65, "int32")
    module["f"](memory[:64], memory[1:])
    np.testing.assert_array_equal(memory, np.arange(65))


def test_vector_loops_are_left_as_scheduled(kit):
    """A loop over vectors is not vectorized again; a large one is not unrolled either."""
    x, y, i = kit.buffer("x", 4096), kit.buffer("y", 4096), Var("i")
    many = [
        Store(y.data, Load("float32x8", x.data, Ramp(i * 64 + 8 * k, 1, 8)), Ramp(i * 64 + 8 * k, 1, 8))
        for k in range(8)
    ]
    source = kit.build([x, y], For(i, 0, 64, ForKind.SERIAL, SeqStmt(many))).get_source("unoptimized")
    assert "llvm.loop.vectorize.enable" in source and "llvm.loop.unroll.disable" in source
    unrolled = For(i, 0, 8, ForKind.UNROLLED, Store(y.data, Load("float32", x.data, i), i))
    assert "llvm.loop.unroll.full" in kit.build([x, y], unrolled).get_source("unoptimized")
