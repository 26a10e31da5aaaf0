"""Words of narrow numbers in machine code: loaded at once, multiplied exactly, by the instruction of each processor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.target.host import host_features
from tilewright.tir.packed_lanes import dot_word, numbers_per_lane, pack_word

DEPTH = 24


def product(first: str, second: str, columns: int, words_together: bool = True) -> tuple[Any, list[Any]]:
    """A row of ``first`` times a matrix of ``second`` (depth in words, columns, numbers of a word), in vectors."""
    numbers = numbers_per_lane(first)
    a = te.placeholder((DEPTH,), first, "a")
    shape = (DEPTH // numbers, columns, numbers) if words_together else (DEPTH, columns)
    b = te.placeholder(shape, second, "b")
    k = te.reduce_axis((0, DEPTH // numbers), "k")

    def element(j: Any) -> Any:
        left = pack_word(*[a[k.var * numbers + place] for place in range(numbers)])
        right = pack_word(
            *[b[k, j, place] if words_together else b[k.var * numbers + place, j] for place in range(numbers)]
        )
        return te.sum(dot_word(left, right, first, second), axis=k)

    c = te.compute((columns,), element, "c")
    schedule = te.create_schedule(c.op)
    (j,) = c.op.axis
    schedule[c].reorder(*c.op.reduce_axis, j)
    schedule[c].vectorize(j)
    return schedule, [a, b, c]


def extremes(kind: str, shape: tuple[int, ...], seed: int) -> Any:
    """Numbers of which many are the largest and the smallest of their type."""
    info = np.iinfo(kind)
    made = np.random.default_rng(seed).integers(info.min, info.max, shape, dtype=kind, endpoint=True)
    made[np.random.default_rng(seed + 1).random(shape) < 0.3] = info.max
    made[np.random.default_rng(seed + 2).random(shape) < 0.3] = info.min
    return made


TARGETS = [
    ("llvm", "sse2"),
    ("llvm -mcpu=x86-64", "sse2"),
    ("llvm -mcpu=haswell", "avx2"),
    ("llvm -mcpu=skylake-avx512", "avx512bw"),
    ("llvm -mcpu=cascadelake", "avx512vnni"),
    ("llvm -mcpu=alderlake", "avxvnni"),
    ("llvm -mcpu=cooperlake", "avx512bf16"),
]


def runs_here(target: str, feature: str) -> None:
    """Skip what this machine cannot run."""
    if target != "llvm" and feature not in host_features():
        pytest.skip(f"this machine has no {feature}")


@pytest.mark.parametrize(("target", "feature"), TARGETS)
@pytest.mark.parametrize("first", ["uint8", "int8"])
def test_integers_are_exact(first: str, target: str, feature: str) -> None:
    """No product saturates, in vectors of any number of lanes, with words in memory or put together."""
    runs_here(target, feature)
    a = extremes(first, (DEPTH,), 1)
    for columns, together in [(1, True), (3, True), (13, True), (13, False), (24, True), (32, True)]:
        schedule, arguments = product(first, "int8", columns, together)
        function = tvm.build(schedule, arguments, target)
        b = extremes("int8", tuple(int(extent) for extent in arguments[1].shape), columns)
        found = tvm.nd.array(np.zeros(columns, "int32"))
        function(tvm.nd.array(a), tvm.nd.array(b), found)
        whole = b.transpose(0, 2, 1).reshape(DEPTH, columns) if together else b
        expected = a.astype("int64") @ whole.astype("int64")
        np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize(("target", "feature"), TARGETS[:4])
def test_pairs_of_int16_wrap_like_int32(target: str, feature: str) -> None:
    """Sums of products are exact modulo 2 to the 32nd, the two largest products in one lane included."""
    runs_here(target, feature)
    a = extremes("int16", (DEPTH,), 1)
    for columns in (1, 13, 32):
        schedule, arguments = product("int16", "int16", columns)
        function = tvm.build(schedule, arguments, target)
        b = extremes("int16", (DEPTH // 2, columns, 2), columns)
        found = tvm.nd.array(np.zeros(columns, "int32"))
        function(tvm.nd.array(a), tvm.nd.array(b), found)
        whole = b.transpose(0, 2, 1).reshape(DEPTH, columns)
        np.testing.assert_array_equal(
            found.numpy(), (a.astype("int64") @ whole.astype("int64")).astype("int32")
        )


@pytest.mark.parametrize(("target", "feature"), TARGETS)
def test_bfloat16_is_added_in_float32(target: str, feature: str) -> None:
    """The error is that of float32 sums: depth times half a unit of the largest partial sum, and no more."""
    runs_here(target, feature)
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rng = np.random.default_rng(3)
    for columns in (1, 5, 16, 40):
        schedule, arguments = product("bfloat16", "bfloat16", columns)
        function = tvm.build(schedule, arguments, target)
        a = rng.standard_normal(DEPTH).astype(ml_dtypes.bfloat16)
        b = rng.standard_normal((DEPTH // 2, columns, 2)).astype(ml_dtypes.bfloat16)
        found = tvm.nd.array(np.zeros(columns, "float32"))
        function(tvm.nd.array(a), tvm.nd.array(b), found)
        wide, whole = a.astype("float64"), b.astype("float64").transpose(0, 2, 1).reshape(DEPTH, columns)
        bound = DEPTH * 2.0**-24 * (np.abs(wide) @ np.abs(whole))
        assert (np.abs(found.numpy() - wide @ whole) <= bound).all()


INSTRUCTIONS = [
    ("llvm -mcpu=cascadelake", "uint8", "vpdpbusd", 16),
    ("llvm -mcpu=alderlake", "uint8", "vpdpbusd", 8),
    ("llvm -mcpu=haswell", "uint8", "vpmaddwd", 8),
    ("llvm -mcpu=sierraforest", "int8", "vpdpbssd", 8),
    ("llvm -mcpu=cooperlake", "bfloat16", "vdpbf16ps", 16),
    ("llvm -mtriple=aarch64-linux-gnu -mattr=+dotprod", "int8", "sdot", 4),
    ("llvm -mtriple=aarch64-linux-gnu -mattr=+i8mm", "uint8", "usdot", 4),
]


@pytest.mark.parametrize(("target", "first", "instruction", "lanes"), INSTRUCTIONS)
def test_the_instruction_of_a_processor(target: str, first: str, instruction: str, lanes: int) -> None:
    """A multiplication, its addition and the load of the words are one instruction each, and nothing else."""
    second = "bfloat16" if first == "bfloat16" else "int8"
    schedule, arguments = product(first, second, 2 * lanes)
    text = tvm.build(schedule, arguments, target).get_source("asm")
    assert instruction in text
    unwanted = ("vpinsrb", "vpshufb", "vpmaddubsw")
    assert not any(word in text for word in unwanted)
