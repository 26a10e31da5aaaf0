"""Rewriting goes through the boxes that blocks read, write and match."""

from tilewright import tir
from tilewright.ir.buffer import BufferRegion
from tilewright.ir.expr import Range
from tilewright.tir.stmt import MatchBufferRegion
from tilewright.tir.transform.lib.block_rewriter import BlockSubstitute, has_blocks

I, N = tir.Var("i", "int32"), tir.Var("n", "int32")


def test_substitution_reaches_boxes_and_buffers():
    """A variable is replaced in the boxes, the views and the shapes of buffers, one buffer staying one."""
    a, view = tir.decl_buffer((N,), "int32", "A"), tir.decl_buffer((4,), "int32", "W")
    region = BufferRegion(a, (Range.from_min_extent(I, 4),))
    block = tir.Block(
        [],
        [region],
        [region],
        "b",
        tir.BufferStore(a, 1, [I]),
        match_buffers=[MatchBufferRegion(view, region)],
    )
    made = BlockSubstitute({I: tir.const(3), N: tir.const(9)}).visit(tir.BlockRealize([], True, block)).block
    assert made.reads[0].region[0].min.value == 3 and made.match_buffers[0].source.region[0].min.value == 3
    buffer = made.body.buffer
    assert buffer.shape[0].value == 9
    assert made.reads[0].buffer is buffer and made.writes[0].buffer is buffer
    assert made.match_buffers[0].source.buffer is buffer and made.match_buffers[0].buffer is view


def test_has_blocks():
    """A program of blocks is told from one of plain loops."""
    a = tir.decl_buffer((4,), "int32", "A")
    store = tir.BufferStore(a, 1, [0])
    assert not has_blocks(tir.PrimFunc([a], store))
    assert has_blocks(tir.PrimFunc([a], tir.BlockRealize([], True, tir.Block([], [], [], "b", store))))
