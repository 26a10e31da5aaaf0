"""Names of functions, and registered functions as values."""

import pytest

from tilewright.ir.env_func import EnvFunc
from tilewright.ir.expr import Call, Var
from tilewright.ir.function import CallingConv
from tilewright.ir.global_var import GlobalVar
from tilewright.runtime.registry import register_func, remove_global_func
from tilewright.support.errors import ExpressionError, TilewrightError
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Evaluate


def test_calls_of_functions() -> None:
    """A global variable called with values is a call of the function."""
    callee = GlobalVar("helper")
    call = callee(Var("x"), 1)
    assert isinstance(call, Call) and call.op is callee and len(call.args) == 2
    assert repr(callee) == "@helper"
    with pytest.raises(ExpressionError, match="cannot be called with arguments of types list"):
        callee([])
    with pytest.raises(ExpressionError, match="needs a name"):
        GlobalVar("")


def test_attributes_of_functions() -> None:
    """Attributes are set and removed on copies."""
    function = PrimFunc([Var("x")], Evaluate(0))
    marked = function.with_attr("calling_conv", CallingConv.C_PACKED_FUNC).with_attr({"a": 1, "b": 2})
    assert marked.attrs["calling_conv"] == 1 and marked.attrs["b"] == 2 and "a" not in function.attrs
    assert "a" not in marked.without_attr("a").attrs


def test_registered_functions() -> None:
    """A registered function is a value by its name."""
    register_func("test.env_func.double", lambda value: value * 2)
    try:
        function = EnvFunc.get("test.env_func.double")
        assert function(21) == 42 and function.name == "test.env_func.double"
    finally:
        remove_global_func("test.env_func.double")
    with pytest.raises(TilewrightError):
        EnvFunc.get("test.env_func.double")
