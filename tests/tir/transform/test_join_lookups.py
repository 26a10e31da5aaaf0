"""Lookups in tables of bytes that are done together."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.ir.functor import post_order
from tilewright.tir.byte_table import lookup_byte

TABLE = np.random.default_rng(3).integers(0, 256, 256, dtype="uint8")
HEX = TABLE.tobytes().hex()
OTHER = TABLE[::-1].tobytes().hex()
SHAPE = (6, 8, 16)


def _schedule(lanes, tables=(HEX,)):
    """A lookup of pixels of 16 channels, ``lanes`` at a time and all pixels of a row unrolled."""
    data = te.placeholder(SHAPE, "uint8", name="data")
    results = [te.compute(SHAPE, lambda *at, t=table: lookup_byte(data(*at), t)) for table in tables]
    schedule = te.create_schedule([result.op for result in results])
    for result in results:
        _, pixel, channel = result.op.axis
        outer, inner = schedule[result].split(channel, factor=lanes)
        schedule[result].reorder(outer, pixel, inner)
        schedule[result].unroll(pixel)
        schedule[result].vectorize(inner)
    return schedule, [data, *results]


def _lookups(schedule, tensors):
    """The lanes of every lookup in the lowered program."""
    lowered = tvm.lower(schedule, tensors, name="look_up")["look_up"]
    calls = [node for node in post_order(lowered.body) if isinstance(node, tvm.tir.Call)]
    return [call.dtype.lanes for call in calls if call.op.name == "tir.lookup_byte"]


@pytest.mark.parametrize(("lanes", "expected"), [(16, [32] * 4), (8, [32] * 2)])
def test_as_many_lanes_as_a_register_has(lanes, expected):
    """Eight pixels of 16 channels are looked up two at a time, and halves of them four at a time."""
    assert _lookups(*_schedule(lanes)) == expected


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("cpu", ["x86-64", "core-avx2", None])
def test_the_same_entries(lanes, cpu):
    """Joined lookups store the same bytes, whether they are adjacent (16 lanes) or not."""
    look_up = tvm.build(*_schedule(lanes), target=f"llvm -mcpu={cpu}" if cpu else "llvm")
    given = np.random.default_rng(1).integers(0, 256, SHAPE, dtype="uint8")
    found = tvm.nd.empty(SHAPE, "uint8")
    look_up(tvm.nd.array(given), found)
    np.testing.assert_array_equal(found.numpy(), TABLE[given])


def _stores(*lookups):
    """A program of stores of 16 entries each: (buffer it reads, where from, where to, table)."""
    data, result = tvm.tir.Var("data", "handle"), tvm.tir.Var("result", "handle")
    buffers = {"data": data, "result": result}
    statements = [
        tvm.tir.Store(
            result,
            lookup_byte_of(tvm.tir.Load("uint8x16", buffers[source], tvm.tir.Ramp(start, 1, 16)), table),
            tvm.tir.Ramp(place, 1, 16),
        )
        for source, start, place, table in lookups
    ]
    function = tvm.tir.PrimFunc([data, result], tvm.tir.SeqStmt(statements))
    changed = tvm.tir.transform.JoinLookups()(tvm.IRModule({"main": function}))["main"]
    calls = [node for node in post_order(changed.body) if isinstance(node, tvm.tir.Call)]
    return [call.dtype.lanes for call in calls]


def lookup_byte_of(index, table):
    """The entries of a vector of indices."""
    return tvm.tir.Call("uint8x16", "tir.lookup_byte", [index, tvm.tir.StringImm(table)])


def test_two_tables():
    """Lookups in different tables stay apart."""
    assert _stores(("data", 0, 0, HEX), ("data", 16, 16, OTHER)) == [16, 16]
    assert _stores(("data", 0, 0, HEX), ("data", 16, 16, HEX), ("data", 32, 32, OTHER)) == [32, 16]


def test_an_index_that_was_stored_before():
    """An entry that is looked up again is there only after the first store."""
    assert _stores(("data", 0, 0, HEX), ("result", 0, 16, HEX)) == [16, 16]


def test_places_apart():
    """What is not adjacent is looked up together, and stored in parts."""
    assert _stores(("data", 0, 64, HEX), ("data", 16, 0, HEX)) == [32]
