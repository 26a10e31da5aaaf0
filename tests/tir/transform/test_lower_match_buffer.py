"""Views of boxes are replaced by the buffers they are views of."""

import numpy as np
import pytest

from tilewright import tir
from tilewright.ir.buffer import BufferRegion
from tilewright.ir.expr import Range
from tilewright.support.errors import LoweringError
from tilewright.tir.stmt import MatchBufferRegion
from tilewright.tir.transform.lower_match_buffer import LowerMatchBuffer


def window(shape=(4, 4), **options):
    """A view with symbolic strides and offset."""
    strides = [tir.Var(f"w{position}", "int32") for position in range(len(shape))]
    return tir.decl_buffer(
        shape, "int32", "W", strides=strides, elem_offset=tir.Var("offset", "int32"), **options
    )


def program(view, body, box=None):
    """for i, j: a block whose view is the tile (i, j) of A"""
    a = tir.decl_buffer((8, 16), "int32", "A")
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    ranges = box(i, j) if box else ((i * 4, 4), (j * 4, 4))
    region = BufferRegion(a, tuple(Range.from_min_extent(*pair) for pair in ranges))
    block = tir.Block([], [region], [], "tile", body(view), match_buffers=[MatchBufferRegion(view, region)])
    return tir.PrimFunc([a], tir.For(i, 0, 2, 0, tir.For(j, 0, 4, 0, tir.BlockRealize([], True, block))))


def doubled(view):
    """view = view * 2 + its first stride"""
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    store = tir.BufferStore(view, view[x, y] * 2 + view.strides[0], [x, y])
    return tir.For(x, 0, 4, 0, tir.For(y, 0, 4, 0, store))


def test_accesses_move_to_the_source(apply, agree, nodes_of):
    """Loads and stores go to the source at the box's start, and the stride variable has its value."""
    before = program(window(), doubled)
    after = apply(before, LowerMatchBuffer())
    (block,) = nodes_of(after.body, tir.Block)
    assert block.match_buffers == ()
    (store,) = nodes_of(after.body, tir.BufferStore)
    assert store.buffer.name == "A"
    data = np.arange(128, dtype="int32").reshape(8, 16)
    (result,) = agree(before, after, data)
    np.testing.assert_array_equal(result, data * 2 + 16)


def test_offset_and_pointer_get_values(apply, nodes_of):
    """A call that takes the view's pointer and offset gets those of the source."""
    view = window()
    before = program(
        view, lambda view: tir.Evaluate(tir.call_extern("int32", "use", view.data, view.elem_offset))
    )
    after = apply(before, LowerMatchBuffer())
    (call,) = nodes_of(after.body, tir.Call)
    assert call.args[1].name == "A" and repr(call.args[2]) == "i * 64 + j * 4"


def test_view_that_does_not_fit_is_an_error(apply):
    """A compact view of a strided box is refused where its pointer is used; elements are found without."""
    compact = tir.decl_buffer((4, 4), "int32", "W", elem_offset=tir.Var("offset", "int32"))
    with pytest.raises(LoweringError, match="declared compact"):
        apply(program(compact, lambda view: tir.Evaluate(view.data)), LowerMatchBuffer())
    apply(program(compact, lambda view: tir.BufferStore(view, 1, [1, 2])), LowerMatchBuffer())
