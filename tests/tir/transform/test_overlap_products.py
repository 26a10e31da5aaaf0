"""Products of the next tile are computed before the epilogue of this one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.ir.expr import Call, IntImm
from tilewright.ir.functor import post_order
from tilewright.runtime import cpu
from tilewright.schedule.cpu.matrix_unit import has_matrix_unit
from tilewright.target.cpu import describe_cpu
from tilewright.tir.interpreter import interpret
from tilewright.tir.stmt import Allocate, For, ForKind
from tilewright.tir.transform.overlap_products import FEWEST_CHUNKS
from tilewright.topi import x86

TARGET = "llvm -mcpu=sapphirerapids"


def dense_with_epilogue(rows: int, target: str = TARGET) -> Any:
    """A dense layer of 64 inputs and 32 units, whose sums are halved and rounded to a byte."""
    data, weight = te.placeholder((rows, 64), "uint8", "x"), te.placeholder((1, 16, 32, 4), "int8", "w")
    with tvm.target.Target(target):
        sums = x86.dense_pack(data, weight, None, "int32")
        out = te.compute(sums.shape, lambda *i: tvm.tir.Cast("int8", sums(*i) >> 10), tag="elemwise")
        schedule = x86.schedule_dense_pack(out)
    return schedule, [data, weight, out]


def reference(x: Any, w: Any) -> Any:
    whole = w[0].transpose(0, 2, 1).reshape(64, 32).astype("int64")
    return ((x.astype("int64") @ whole) >> 10).astype("int8")


def operands(rows: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 255, (rows, 64), dtype="uint8", endpoint=True)
    return x, rng.integers(-128, 127, (1, 16, 32, 4), dtype="int8", endpoint=True)


def lowered(rows: int) -> Any:
    schedule, arguments = dense_with_epilogue(rows)
    with tvm.target.Target(TARGET):
        return tvm.lower(schedule, arguments, name="f")["f"]


def products(stmt: Any) -> int:
    return sum(
        isinstance(part, Call) and part.op.name == "tir.matrix_multiply_add" for part in post_order(stmt)
    )


def test_many_tiles_are_computed_in_chunks() -> None:
    """128 tiles: chunks of four, each with a first product ahead of its loop, and a buffer of two tiles."""
    function = lowered(128 * 32)
    parts = post_order(function.body)
    (chunks,) = [part for part in parts if isinstance(part, For) and part.kind == ForKind.PARALLEL]
    assert isinstance(chunks.extent, IntImm) and chunks.extent.value == FEWEST_CHUNKS
    assert products(chunks) == 2
    (sums,) = [part for part in parts if isinstance(part, Allocate) and str(part.dtype) == "int32"]
    assert np.prod([extent.value for extent in sums.extents]) == 2 * 32 * 32


def test_few_tiles_stay_a_parallel_loop() -> None:
    """Chunks of them would leave cores idle."""
    assert products(lowered(32 * 32).body) == 1


@pytest.mark.parametrize("rows", [64, 128 * 32, 100 * 32 + 8])
def test_results(rows: int) -> None:
    """The interpreter, and this machine if it has the unit, compute the same."""
    x, w = operands(rows)
    found = np.zeros((rows, 32), "int8")
    interpret(lowered(rows), x, w, found)
    np.testing.assert_array_equal(found, reference(x, w))
    if has_matrix_unit(describe_cpu("llvm"), "int8"):
        schedule, arguments = dense_with_epilogue(rows, "llvm")
        made = tvm.build(schedule, arguments, target="llvm", name="f")
        result = tvm.nd.array(np.zeros((rows, 32), "int8"), cpu())
        made(tvm.nd.array(x), tvm.nd.array(w), result)
        np.testing.assert_array_equal(result.numpy(), reference(x, w))
