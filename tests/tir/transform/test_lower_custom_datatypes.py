"""Custom number formats become calls on unsigned integers."""

import pytest

from tilewright import tir
from tilewright.support.errors import TargetError
from tilewright.target import Target, datatype
from tilewright.tir.transform.lower_custom_datatypes import LowerCustomDatatypes, is_custom


@pytest.fixture(scope="module", autouse=True)
def posit():
    """A format of 32 bits with sums and conversions."""
    datatype.register("tests_posit", 180)
    lower = datatype.create_lower_func
    datatype.register_op(lower({(32, 32): "FromFloat"}), "Cast", "llvm", "float", "tests_posit")
    datatype.register_op(lower({(32, 32): "ToFloat"}), "Cast", "llvm", "tests_posit", "float")
    datatype.register_op(lower({32: "PositAdd"}), "Add", "llvm", "tests_posit")
    datatype.register_op(lower({32: "PositExp"}), "Call", "llvm", "tests_posit", intrinsic_name="tir.exp")


KIND = "custom[tests_posit]32"


def program(make):
    """out = float(make(x as a posit)), through a buffer of posits."""
    x, out = tir.Var("x", "float32"), tir.decl_buffer((1,), name="out")
    pointer = tir.decl_buffer((1,), KIND, name="T").data
    value = make(tir.Cast(KIND, x))
    body = tir.SeqStmt(
        [
            tir.Store(pointer, value, 0),
            tir.Store(out.data, tir.Cast("float32", tir.Load(KIND, pointer, 0)), 0),
        ]
    )
    body = tir.Allocate(pointer, KIND, [1], True, body)
    return tir.PrimFunc([x, out], body, attrs={"target": Target("llvm")})


def test_operations_become_calls(apply, nodes_of):
    """Sums, conversions and intrinsics call the registered functions; nothing of the type is left."""
    exp = lambda value: tir.call_intrin(KIND, "tir.exp", value)
    after = apply(program(lambda value: tir.Add(value, exp(value))), LowerCustomDatatypes())
    names = {call.args[0].value for call in nodes_of(after.body, tir.Call)}
    assert names == {"FromFloat", "ToFloat", "PositAdd", "PositExp"}
    assert not any(is_custom(node.dtype) for node in nodes_of(after.body, tir.PrimExpr))
    (allocate,) = nodes_of(after.body, tir.Allocate)
    assert allocate.dtype == "uint32" and allocate.buffer_var.element_type == "uint32"


def test_missing_operations_are_named(apply):
    """What nobody registered is an error that says what to register."""
    with pytest.raises(TargetError, match="no lowering is registered for Mul tests_posit"):
        apply(program(lambda value: tir.Mul(value, value)), LowerCustomDatatypes())


def test_other_programs_stay(apply):
    """Functions without custom types are the same afterwards."""
    a = tir.decl_buffer((1,), name="A")
    function = tir.PrimFunc([a], tir.Store(a.data, tir.const(1.0, "float32"), 0))
    assert apply(function, LowerCustomDatatypes()).body is function.body
