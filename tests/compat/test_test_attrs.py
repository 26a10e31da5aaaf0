"""The attributes that TVM has for tests of attributes."""

import pytest

import tilewright as tvm
from tilewright.compat.test_attrs import KEY


def test_fields() -> None:
    """Unknown fields and an axis out of range are refused; numbers in lists are constants."""
    made = tvm.ir.make_node(KEY, name="xx", padding=(3, 4))
    assert (made.name, made.axis, [one.value for one in made.padding]) == ("xx", 10, [3, 4])
    for wrong in ({"size": 1}, {"axis": 100}):
        with pytest.raises(AttributeError, match=next(iter(wrong))):
            tvm.ir.make_node(KEY, name="xx", **wrong)


def test_equality_and_json() -> None:
    """They are equal by their fields, and a text form keeps a function among them."""
    function = tvm.ir.EnvFunc.get("tvm.relay.type_relation.Broadcast")
    made = tvm.ir.make_node(KEY, name="xx", func=function)
    again = tvm.ir.load_json(tvm.ir.save_json(made))
    assert tvm.ir.structural_equal(again, made)
    assert isinstance(again.func, tvm.ir.EnvFunc) and again.func.name == function.name
    assert not tvm.ir.structural_equal(made, tvm.ir.make_node(KEY, name="xx", axis=2, func=function))
