"""Factors that all lanes share are loaded as vectors where neighbours are read in a straight line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import tir
from tilewright.ir.functor import post_order
from tilewright.tir.interpreter import interpret
from tilewright.tir.packed_lanes import dot_word, pack_word
from tilewright.tir.transform.load_scalars_together import LoadScalarsTogether

POINTER = tvm.ir.PointerType(tvm.ir.PrimType("float32"))


def unrolled(steps: list[int], allocated: bool = True, guarded: bool = False) -> tvm.IRModule:
    """``y[0:8] = sum over the steps of x[step] * w[8 * step : 8 * step + 8]``, summed up in memory of its own."""
    x, w, y = (tir.decl_buffer((size,), "float32", name) for size, name in ((16, "x"), (128, "w"), (8, "y")))
    total = tir.Var("total", POINTER) if allocated else y.data
    place = tir.Ramp(0, 1, 8)
    stores: list[Any] = [tir.Store(total, tir.Broadcast(tir.const(0.0, "float32"), 8), place)]
    for step in steps:
        factor: Any = tir.Broadcast(tir.Load("float32", x.data, step), 8)
        if guarded:
            factor = tir.Select(tir.Broadcast(tir.const(True, "bool"), 8), factor, factor)
        panel = tir.Load("float32x8", w.data, tir.Ramp(8 * step, 1, 8))
        stores.append(tir.Store(total, tir.Load("float32x8", total, place) + factor * panel, place))
    if allocated:
        stores.append(tir.Store(y.data, tir.Load("float32x8", total, place), place))
    body: Any = tir.SeqStmt(stores)
    if allocated:
        body = tir.Allocate(total, "float32", [8], tir.const(True, "bool"), body)
    parameters = [tir.Var(name, "handle") for name in "xwy"]
    function = tir.PrimFunc(parameters, body, buffer_map=dict(zip(parameters, (x, w, y), strict=True)))
    return tvm.IRModule({"f": function})


def loads_of(module: tvm.IRModule) -> list[int]:
    """The lanes of the loads from x."""
    parts = post_order(module["f"].body)
    return [
        part.dtype.lanes for part in parts if isinstance(part, tir.Load) and part.buffer_var.name_hint == "x"
    ]


@pytest.mark.parametrize(
    ("steps", "lanes"),
    [
        ([0, 1, 2, 3], [4]),
        ([0, 1, 2, 3, 4, 5, 6, 7], [4, 4]),
        ([3, 1, 0, 2], [4]),
        ([1, 2, 3, 4, 9], [1, 4]),
        ([0, 1, 2], [1, 1, 1]),
        ([0, 2, 4, 6], [1, 1, 1, 1]),
    ],
)
def test_neighbours_become_one_load(steps: list[int], lanes: list[int]) -> None:
    """As many as a vector holds, in whatever order they are used; others stay. The numbers are the same."""
    before = unrolled(steps)
    after = LoadScalarsTogether(128)(before)
    assert sorted(loads_of(after)) == lanes
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=16).astype("float32"), rng.normal(size=128).astype("float32")
    results = []
    for module in (before, after):
        y = np.zeros(8, "float32")
        interpret(module["f"], x, w, y)
        results.append(y)
    np.testing.assert_array_equal(results[1], results[0])
    assert results[0].any()


def test_a_store_to_what_may_be_read_keeps_the_loads() -> None:
    """The output may be the input's memory, so that loads do not move across stores to it."""
    assert loads_of(LoadScalarsTogether(128)(unrolled([0, 1, 2, 3], allocated=False))) == [1, 1, 1, 1]


def test_a_guarded_load_stays() -> None:
    """What may not be evaluated is not loaded earlier."""
    assert set(loads_of(LoadScalarsTogether(128)(unrolled([0, 1, 2, 3], guarded=True)))) == {1}


@pytest.mark.parametrize(
    ("kind", "count", "keeps_float16"),
    [("float16", 1, False), ("float16", 1, True), ("int8", 4, False)],
    ids=["widened numbers", "numbers that stay narrow", "words of packed lanes"],
)
def test_other_factors(kind: str, count: int, keeps_float16: bool) -> None:
    """Factors that are widened are loaded and widened as a vector, or each where it is used; words of four bytes are
    loaded as words."""
    x = tir.decl_buffer((16,), kind, "x")
    y = tir.decl_buffer((8,), "float32" if count == 1 else "int32", "y")
    total, place = tir.Var("total", POINTER), tir.Ramp(0, 1, 8)
    stores = [tir.Store(total, tir.Broadcast(tir.const(0, y.dtype), 8), place)]
    for step in range(4):
        numbers = [tir.Load(kind, x.data, step * count + number) for number in range(count)]
        if count == 1:
            term = tir.Broadcast(numbers[0].astype("float32"), 8) * tir.Broadcast(
                tir.const(2.0, "float32"), 8
            )
        else:
            ones = tir.Broadcast(tir.const(0x01010101, "int32"), 8)
            term = dot_word(tir.Broadcast(pack_word(*numbers), 8), ones, "int8", "int8")
        stores.append(tir.Store(total, tir.Load(f"{y.dtype}x8", total, place) + term, place))
    stores.append(tir.Store(y.data, tir.Load(f"{y.dtype}x8", total, place), place))
    body = tir.Allocate(total, y.dtype, [8], tir.const(True, "bool"), tir.SeqStmt(stores))
    parameters = [tir.Var(name, "handle") for name in "xy"]
    function = tir.PrimFunc(parameters, body, buffer_map=dict(zip(parameters, (x, y), strict=True)))
    before = tvm.IRModule({"f": function})
    after = LoadScalarsTogether(128, also_float32=False, keeps_float16=keeps_float16)(before)
    assert loads_of(after) == [4] * count
    widened = [part.dtype.lanes for part in post_order(after["f"].body) if isinstance(part, tir.Cast)]
    assert widened == ([] if count > 1 else [8] * 4 if keeps_float16 else [4])
    values = np.arange(-8, 8).astype(kind)
    results = []
    for module in (before, after):
        found = np.zeros(8, str(y.dtype))
        interpret(module["f"], values, found)
        results.append(found)
    np.testing.assert_array_equal(results[1], results[0])
    assert results[0].any()
