"""The matrix unit: which instructions are made, and exact products where this machine has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.target.host import host_features
from tilewright.tir.packed_lanes import numbers_per_lane
from tilewright.topi import x86

KINDS = [("uint8", "int8", "tdpbusd"), ("bfloat16", "bfloat16", "tdpbf16ps")]


def dense(first: str, second: str, rows: int, blocks: int, depth: int, target: str) -> tuple[Any, list[Any]]:
    """A dense layer with packed weights in blocks of 32 units."""
    numbers = numbers_per_lane(first)
    data = te.placeholder((rows, depth), first, "x")
    weight = te.placeholder((blocks, depth // numbers, 32, numbers), second, "w")
    with tvm.target.Target(target):
        out = x86.dense_pack(data, weight, None, "int32" if first == "uint8" else "float32")
        return tvm.build(x86.schedule_dense_pack(out), [data, weight, out]), [data, weight, out]


@pytest.mark.parametrize(("first", "second", "instruction"), KINDS)
def test_instructions(first: str, second: str, instruction: str) -> None:
    """The unit is asked for, configured, used and released; the loops beside it are made too."""
    module, _ = dense(first, second, 64, 2, 128, "llvm -mcpu=sapphirerapids")
    text = module.get_source("asm")
    for needed in ("syscall", "ldtilecfg", instruction, "tilestored", "tilerelease"):
        assert needed in text
    assert ("vpdpbusd" if first == "uint8" else "vdpbf16ps") in text


def test_long_sums_store_tiles_on_the_way() -> None:
    """A core that has stored no tile for a while takes long for the next; 32 steps store one in iterations."""
    short, long = (
        dense("uint8", "int8", 32, 1, 64 * steps, "llvm -mcpu=sapphirerapids")[0].get_source("ll")
        for steps in (8, 32)
    )
    assert long.count("call void @llvm.x86.tilestored64(i8") > 4
    assert short.count("call void @llvm.x86.tilestored64(i8") == 4


@pytest.mark.skipif(not {"amx-int8", "amx-bf16"} <= host_features(), reason="this machine has no matrix unit")
@pytest.mark.parametrize(("first", "second", "instruction"), KINDS)
def test_products(first: str, second: str, instruction: str) -> None:
    """Rows that fill two tiles, one, and parts of them; several steps; several panels."""
    for rows, blocks, depth in [(64, 2, 128), (8, 1, 64), (37, 3, 192), (50, 1, 64)]:
        module, arguments = dense(first, second, rows, blocks, depth, "llvm")
        rng = np.random.default_rng(rows)
        shapes = [tuple(int(extent) for extent in argument.shape) for argument in arguments]
        if first == "uint8":
            x = rng.integers(0, 255, shapes[0], dtype="uint8", endpoint=True)
            w = rng.integers(-128, 127, shapes[1], dtype="int8", endpoint=True)
        else:
            bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
            x, w = (rng.standard_normal(shape).astype(bfloat16) for shape in shapes[:2])
        found = tvm.nd.array(np.zeros(shapes[2], "int32" if first == "uint8" else "float32"))
        module(tvm.nd.array(x), tvm.nd.array(w), found)
        whole = w.astype("float64").transpose(1, 3, 0, 2).reshape(depth, 32 * blocks)
        expected = x.astype("float64") @ whole
        bound = 0.0 if first == "uint8" else depth * 2.0**-24 * (np.abs(x.astype("float64")) @ np.abs(whole))
        assert (np.abs(found.numpy() - expected) <= bound).all()
