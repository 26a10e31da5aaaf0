"""Functions get the exported form; what its checks say is tested on compiled code, in tests/codegen/c."""

import pytest

from tilewright import tir
from tilewright.ir.function import CallingConv
from tilewright.support.errors import LoweringError
from tilewright.target import Target
from tilewright.tir.transform.make_packed_api import MakePackedAPI, make_packed_api
from tilewright.tir.undefined import undefined_vars


def copy_function(**attrs):
    n, i = tir.SizeVar("n"), tir.Var("i")
    a, b = tir.decl_buffer((n,), name="A"), tir.decl_buffer((n,), name="B")
    body = tir.For(i, 0, n, 0, tir.Store(b.data, tir.Load("float32", a.data, i), i))
    return tir.PrimFunc([a, b], body, attrs={"global_symbol": "copy", "target": Target("llvm"), **attrs})


def test_the_exported_form(apply, nodes_of):
    """Four parameters, an integer result, no buffer map, and a return of zero at the end."""
    made = apply(copy_function(), MakePackedAPI())
    assert [param.name for param in made.params] == ["self_handle", "args", "num_args", "result"]
    assert made.ret_type.dtype == "int32" and not made.buffer_map
    assert made.attrs["calling_conv"] == CallingConv.C_PACKED_FUNC
    assert undefined_vars(made.body, made.params) == []
    returns = [call for call in nodes_of(made.body, tir.Call) if call.op.name == "tir.ret"]
    assert [int(call.args[0]) for call in returns] == [0]


def test_every_dimension_is_bound_once_and_checked_after(apply, nodes_of):
    """The first argument gives n its value, and an assertion compares it with the second."""
    made = apply(copy_function(), MakePackedAPI())
    assert [let.var.name for let in nodes_of(made.body, tir.LetStmt)].count("n") == 1
    messages = [
        assertion.message.args[0].value
        for assertion in nodes_of(made.body, tir.AssertStmt)
        if isinstance(assertion.message, tir.Call)
    ]
    assert any(
        "dimension 0 of argument 1 (B) is {0}, expected {1} (the value of n)" in text for text in messages
    )


def test_running_it_again_changes_nothing():
    """A function in the exported form stays as it is."""
    made = make_packed_api(copy_function())
    assert make_packed_api(made) is made


def test_internal_functions_stay():
    """A function without a global symbol is not exported."""
    function = copy_function().without_attr("global_symbol")
    assert make_packed_api(function) is function


def test_a_target_is_needed():
    """Which memory the arguments must be in depends on the target."""
    with pytest.raises(LoweringError, match="run BindTarget before MakePackedAPI"):
        make_packed_api(copy_function().without_attr("target"))


def test_a_size_that_no_argument_gives():
    """A variable of a shape that nothing binds is an error that names it."""
    n, m = tir.Var("n"), tir.Var("m")
    a = tir.decl_buffer((n + m,), name="A")
    function = tir.PrimFunc([a], tir.Evaluate(0), attrs={"global_symbol": "f", "target": Target("llvm")})
    with pytest.raises(LoweringError, match=r"no argument gives the value of n; pass n as an argument"):
        make_packed_api(function)


def test_a_value_that_no_argument_gives():
    """A variable of the body that nothing binds is an error that names it."""
    a, m = tir.decl_buffer((4,), name="A"), tir.Var("m")
    body = tir.Store(a.data, tir.Cast("float32", m), 0)
    function = tir.PrimFunc([a], body, attrs={"global_symbol": "f", "target": Target("llvm")})
    with pytest.raises(LoweringError, match="f uses m, which no argument gives"):
        make_packed_api(function)


def test_the_device_is_selected(nodes_of):
    """A function for a GPU tells the driver which one its arguments are on."""
    made = make_packed_api(copy_function(target=Target("cuda")))
    calls = [call for call in nodes_of(made.body, tir.Call) if call.op.name == "tir.tvm_call_packed"]
    assert [call.args[0].value for call in calls] == ["__tvm_set_device"]
    assert int(calls[0].args[1]) == 2
    attributes = {node.attr_key for node in nodes_of(made.body, tir.AttrStmt)}
    assert {"device_type", "device_id", "compute_scope", "storage_alignment"} <= attributes


def test_unpacked_parameters(apply):
    """The last parameters can come as they are."""
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    function = tir.PrimFunc(
        [x, y], tir.Evaluate(tir.ret(x + y)), attrs={"global_symbol": "f", "target": Target("c")}
    )
    made = apply(function, MakePackedAPI(1))
    assert [param.name for param in made.params][4:] == ["y"]
    with pytest.raises(LoweringError, match="num_unpacked_params is 3, the function has 2 parameters"):
        make_packed_api(function, 3)
