"""Where elements of buffers lie in flat memory."""

import pytest

from tilewright import tir
from tilewright.arith import Analyzer
from tilewright.support.errors import LoweringError
from tilewright.tir.transform.lib.buffer_view import BufferView, aligned_strides

I, J = tir.Var("i", "int32"), tir.Var("j", "int32")


def test_offsets():
    """Row-major without strides, by strides with them, from the start of a box, in lanes of a vector type."""
    view = BufferView.of_buffer(tir.decl_buffer((4, 6), name="A"))
    assert repr(view.element_offset([I, J], Analyzer())) == "i * 6 + j"
    strided = BufferView.of_buffer(tir.decl_buffer((4, 6), name="A", strides=[1, 4], elem_offset=3))
    assert repr(strided.element_offset([I, J], Analyzer())) == "i + j * 4 + 3"
    vector = BufferView.of_buffer(tir.decl_buffer((6,), "float32x4", name="A"))
    assert repr(vector.element_offset([I], Analyzer())) == "T.ramp(i * 4, 1, 4)"
    assert [stride.value for stride in view.all_strides()] == [6, 1]
    with pytest.raises(LoweringError, match="vector of indices"):
        vector.element_offset([tir.Ramp(0, 1, 2)], Analyzer())


def test_sizes():
    """The size reaches behind the last element, in scalars."""
    assert BufferView.of_buffer(tir.decl_buffer((4, 6), name="A")).size().value == 24
    assert (
        BufferView.of_buffer(tir.decl_buffer((4, 6), name="A", strides=[8, 1], elem_offset=2)).size().value
        == 32
    )
    assert BufferView.of_buffer(tir.decl_buffer((3,), "float32x4", name="A")).size().value == 12


@pytest.mark.parametrize(
    ("alignment", "strides"), [({}, [48, 8, 1]), ({1: (16, 4)}, [120, 20, 1]), ({0: (32, 0)}, [64, 8, 1])]
)
def test_aligned_strides(alignment, strides):
    """Each aligned dimension's stride has the asked remainder, and outer strides follow."""
    shape = [tir.const(extent) for extent in (2, 6, 8)]
    assert [stride.value for stride in aligned_strides(shape, alignment, Analyzer())] == strides
