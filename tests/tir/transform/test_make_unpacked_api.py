"""Functions get plain C parameters."""

import pytest

from tilewright import tir
from tilewright.support.errors import LoweringError
from tilewright.target import Target
from tilewright.tir.transform.make_unpacked_api import MakeUnpackedAPI

ATTRS = {"global_symbol": "f", "target": Target("llvm")}


def test_buffers_become_pointers(apply, nodes_of):
    """Each buffer is its data pointer, each number itself, and the function returns zero."""
    a, n, i = tir.decl_buffer((8,), name="A"), tir.Var("n"), tir.Var("i")
    body = tir.For(i, 0, n, 0, tir.Store(a.data, tir.Cast("float32", i), i))
    made = apply(tir.PrimFunc([a, n], body, attrs=ATTRS), MakeUnpackedAPI())
    assert [param.name for param in made.params] == ["arg0", "arg1"] and not made.buffer_map
    bound = {let.var: let.value for let in nodes_of(made.body, tir.LetStmt)}
    assert bound == {n: made.params[1], a.data: made.params[0]}
    assert made.ret_type.dtype == "int32"
    assert not nodes_of(made.body, tir.AssertStmt)
    assert [call.op.name for call in nodes_of(made.body, tir.Call)] == ["tir.ret"]


def test_symbolic_shapes_need_parameters(apply):
    """Without an argument that carries it, a size must be passed."""
    n, i = tir.Var("n"), tir.Var("i")
    a = tir.decl_buffer((n,), name="A")
    body = tir.For(i, 0, n, 0, tir.Store(a.data, tir.Cast("float32", i), i))
    with pytest.raises(LoweringError, match="f uses n"):
        apply(tir.PrimFunc([a], body, attrs=ATTRS), MakeUnpackedAPI())


@pytest.mark.parametrize(
    ("attrs", "message"),
    [({"target": Target("llvm")}, "global_symbol attribute"), ({"global_symbol": "f"}, "target attribute")],
)
def test_what_has_to_be_known(apply, attrs, message):
    """A C function has a name and a target."""
    a = tir.decl_buffer((8,), name="A")
    with pytest.raises(LoweringError, match=message):
        apply(tir.PrimFunc([a], tir.Evaluate(0), attrs=attrs), MakeUnpackedAPI())


def test_one_buffer_for_two_parameters(apply, nodes_of):
    """The second argument has to be the first one's memory."""
    a = tir.decl_buffer((8,), name="A")
    made = apply(tir.PrimFunc([a, a], tir.Evaluate(0), attrs=ATTRS), MakeUnpackedAPI())
    (compared,) = nodes_of(made.body, tir.AssertStmt)
    assert (compared.condition.a, compared.condition.b) == (a.data, made.params[1])
