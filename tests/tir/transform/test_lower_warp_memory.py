"""Warp memory becomes registers, and reads of other lanes shuffles."""

import pytest

from tilewright import te, tir
from tilewright.support.errors import LoweringError
from tilewright.target import Target
from tilewright.tir.transform.lower_warp_memory import LowerWarpMemory


def program(read, size=32, threads=32, per_lane=1):
    """Each thread writes its elements of a warp buffer and reads those that ``read`` says."""
    builder = tir.ir_builder.create()
    out = builder.pointer("int32", name="out")
    tx = te.thread_axis("threadIdx.x")
    builder.scope_attr(tx, "thread_extent", threads)
    warp = builder.allocate("int32", size, name="W", scope="warp")
    with builder.for_range(0, per_lane, name="k") as k:
        warp[tx.var * per_lane + k] = tx.var * 100 + k
    out[tx.var] = warp[read(tx.var)]
    return tir.PrimFunc([out.asobject()], builder.get(), attrs={"target": Target("cuda")})


def shuffles(nodes_of, function):
    return [call for call in nodes_of(function.body, tir.Call) if call.op.name == "tir.tvm_warp_shuffle"]


def test_other_lanes_are_read_by_shuffles(apply, nodes_of):
    """Element i lies in lane i; a register of each thread holds it."""
    after = apply(program(lambda tx: 31 - tx), LowerWarpMemory())
    (allocate,) = nodes_of(after.body, tir.Allocate)
    assert allocate.buffer_var.storage_scope == "local" and allocate.extents[0].value == 1
    (shuffle,) = shuffles(nodes_of, after)
    assert str(shuffle.args[2]) == "31 - threadIdx.x"
    assert [int(width) for width in shuffle.args[3:]] == [32, 32]


def test_own_lane_is_read_directly(apply, nodes_of):
    """No exchange is needed for what a thread wrote itself."""
    after = apply(program(lambda tx: tx), LowerWarpMemory())
    assert shuffles(nodes_of, after) == []


def test_several_elements_in_a_lane(apply, nodes_of):
    """With two neighbours in a lane, element i is register i % 2 of lane i / 2."""
    after = apply(program(lambda tx: tir.const(9), size=64, per_lane=2), LowerWarpMemory())
    (allocate,) = nodes_of(after.body, tir.Allocate)
    assert allocate.extents[0].value == 2
    (shuffle,) = shuffles(nodes_of, after)
    assert int(shuffle.args[2]) == 4 and int(shuffle.args[1].index) == 1


@pytest.mark.parametrize(
    ("threads", "text"), [(24, "divides the warp of 32, not 24"), (64, "divides the warp of 32")]
)
def test_threads_must_divide_a_warp(apply, threads, text):
    """Lanes of two warps do not reach one another."""
    with pytest.raises(LoweringError, match=text):
        apply(program(lambda tx: tx, size=threads, threads=threads), LowerWarpMemory())


def test_the_size_must_spread(apply):
    """Every lane holds as many elements."""
    with pytest.raises(LoweringError, match="do not spread over 32 lanes"):
        apply(program(lambda tx: tx, size=40), LowerWarpMemory())


def test_registers_cannot_depend_on_the_reader(apply):
    """A lane gives one register to all; which one must be the same for every reader."""
    with pytest.raises(LoweringError, match="must not depend on the thread that reads"):
        apply(program(lambda tx: tir.floormod(tx * 3, 64), size=64, per_lane=2), LowerWarpMemory())
