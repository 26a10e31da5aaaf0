"""Nodes by the name of their class."""

import pytest

import tilewright as tvm
from tilewright import te, tir


def test_nodes_and_attributes_by_name() -> None:
    """The fields are the arguments of the class; the level tells classes of one name apart."""
    one = tvm.ir.make_node("IntImm", dtype="int32", value=10)
    assert isinstance(one, tir.IntImm) and one.value == 10
    x = te.var("x")
    tvm.ir.assert_structural_equal(tvm.ir.make_node("tir.Add", a=x, b=one), tir.Add(x, one))
    assert isinstance(tvm.ir.make_node("relay.Var", name_hint="x"), tvm.relay.Var)
    assert isinstance(tvm.ir.make_node("tir.Var", name="x", dtype="int32"), tir.Var)
    assert tvm.ir.make_node("relay.attrs.TakeAttrs", axis=1, mode="clip").axis == 1
    assert tvm.ir.make_node("DictAttrs", level=3)["level"] == 3
    assert tvm.ir.attrs.make_node is tvm.ir.make_node


def test_unknown_names_are_errors() -> None:
    """A name that no class has, and fields that the class has not."""
    with pytest.raises(AttributeError, match="nosuch"):
        tvm.ir.make_node("tir.nosuch", a=1)
    with pytest.raises(TypeError):
        tvm.ir.make_node("IntImm", dtype="int32", nosuch=10)
