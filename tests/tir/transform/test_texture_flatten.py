"""Texture memory is refused; everything else passes through."""

import pytest

from tilewright import tir
from tilewright.ir.expr import Range
from tilewright.support.errors import LoweringError
from tilewright.tir.transform.texture_flatten import TextureFlatten


def realized(scope):
    """A function with one realized buffer in a scope."""
    buffer = tir.decl_buffer((4,), "float32", "T", scope=scope)
    return tir.PrimFunc([], tir.BufferRealize(buffer, [Range(0, 4)], True, tir.BufferStore(buffer, 1.0, [0])))


def test_texture_scope_is_an_error(apply):
    """The error names the buffer and its scope."""
    with pytest.raises(LoweringError, match=r"T is in global\.texture"):
        apply(realized("global.texture"), TextureFlatten())
    function = realized("global")
    assert apply(function, TextureFlatten()).body is function.body
