"""Functions get plain C parameters."""

import pytest

from tilewright import tir
from tilewright.support.errors import LoweringError
from tilewright.tir.transform.make_unpacked_api import MakeUnpackedAPI


def test_buffers_become_pointers(apply, nodes_of):
    """Each buffer is its data pointer, each number itself, and the function returns zero."""
    a, n, i = tir.decl_buffer((8,), name="A"), tir.Var("n"), tir.Var("i")
    body = tir.For(i, 0, n, 0, tir.Store(a.data, tir.Cast("float32", i), i))
    made = apply(tir.PrimFunc([a, n], body, attrs={"global_symbol": "f"}), MakeUnpackedAPI())
    assert made.params == (a.data, n) and not made.buffer_map
    assert made.ret_type.dtype == "int32"
    assert not nodes_of(made.body, tir.AssertStmt)
    assert [call.op.name for call in nodes_of(made.body, tir.Call)] == ["tir.ret"]


def test_symbolic_shapes_need_parameters(apply):
    """Without an argument that carries it, a size must be passed."""
    n, i = tir.Var("n"), tir.Var("i")
    a = tir.decl_buffer((n,), name="A")
    body = tir.For(i, 0, n, 0, tir.Store(a.data, tir.Cast("float32", i), i))
    with pytest.raises(LoweringError, match="f uses n"):
        apply(tir.PrimFunc([a], body, attrs={"global_symbol": "f"}), MakeUnpackedAPI())
