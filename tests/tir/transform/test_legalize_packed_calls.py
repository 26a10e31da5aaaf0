"""Packed functions get tensors where a function passes its own pointers."""

from tilewright import tir
from tilewright.tir.transform.legalize_packed_calls import LegalizePackedCalls


def test_pointers_are_wrapped(apply, nodes_of):
    """A pointer parameter becomes an array of its element type; numbers and other pointers stay."""
    data = tir.decl_buffer((4,), "float16", name="A").data
    n = tir.Var("n")
    body = tir.Evaluate(tir.call_packed("f", data, n, "text"))
    after = apply(tir.PrimFunc([data, n], body), LegalizePackedCalls())
    call = after.body.value
    array = call.args[1]
    assert array.op.name == "tir.tvm_stack_make_array" and array.args[0] is data
    assert array.args[4].dtype == "float16"
    assert call.args[2] is n and call.args[3].value == "text"


def test_other_calls_stay(apply):
    """Only packed calls are concerned."""
    data = tir.decl_buffer((4,), name="A").data
    function = tir.PrimFunc([data], tir.Evaluate(tir.call_extern("int32", "f", data)))
    assert apply(function, LegalizePackedCalls()).body is function.body


def test_direct_calls_get_arrays_of_local_memory(apply):
    """A direct call gets an array for each pointer that is not an argument; arguments are tensors already."""
    given, local = tir.Var("given", "handle"), tir.Var("local", "handle")
    call = tir.call_intrin("int32", "tir.tvm_call_cpacked", tir.StringImm("f"), given, local)
    after = apply(tir.PrimFunc([given], tir.Evaluate(call)), LegalizePackedCalls()).body
    assert isinstance(after, tir.LetStmt) and after.value.op.name == "tir.tvm_stack_alloca"
    fill, called = after.body.seq
    assert fill.value.op.name == "tir.tvm_struct_set"
    assert fill.value.args[0] is after.var and fill.value.args[3] is local
    assert called.value.args[1] is given and called.value.args[2] is after.var
