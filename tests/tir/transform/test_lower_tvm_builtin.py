"""Calls into the runtime are lowered; that they run is tested on compiled code, in tests/codegen/c."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, tir
from tilewright.ir.type import PointerType, PrimType
from tilewright.script import tir as T
from tilewright.support.errors import LoweringError
from tilewright.tir.transform.lower_tvm_builtin import LowerTVMBuiltin, fits_stack


def lowered_calls(nodes_of, function):
    found = nodes_of(function.body, tir.Call)
    return [call for call in found if call.op.name == "tir.tvm_call_packed_lowered"]


def test_packed_call(apply, nodes_of):
    """Arguments are written to the stack with their kinds, and the result's slot is cleared."""
    x = tir.Var("x", "float32")
    call = tir.call_packed("f", 1, x, "text", True)
    made = apply(tir.PrimFunc([x], tir.Evaluate(call)), LowerTVMBuiltin())
    (lowered,) = lowered_calls(nodes_of, made)
    assert [argument.value for argument in lowered.args[2:]] == [0, 4]
    kinds = {
        int(write.args[1]): int(write.args[3])
        for write in nodes_of(made.body, tir.Call)
        if write.op.name == "tir.tvm_struct_set" and int(write.args[2]) == 13
    }
    assert kinds == {0: 1, 1: 3, 2: 8, 3: 2, 4: 0}
    (stack,) = nodes_of(made.body, tir.LetStmt)
    assert [argument.value for argument in stack.value.args] == ["arg_value", 5]


def test_statements_share_the_stack(apply, nodes_of):
    """Two calls one after the other use the same slots; nested ones do not."""
    one = tir.Evaluate(tir.call_packed("f", 1))
    nested = tir.Evaluate(tir.call_packed("f", tir.call_packed("g", 2).astype("int64")))
    made = apply(tir.PrimFunc([], tir.SeqStmt([one, one])), LowerTVMBuiltin())
    assert [int(call.args[2]) for call in lowered_calls(nodes_of, made)] == [0, 0]
    made = apply(tir.PrimFunc([], nested), LowerTVMBuiltin())
    ranges = [(int(call.args[2]), int(call.args[3])) for call in lowered_calls(nodes_of, made)]
    assert sorted(ranges) == [(0, 1), (2, 3)]


def test_results_are_checked(apply, nodes_of):
    """A number is expected where the value of a call is used."""
    a = tir.decl_buffer((1,), "int32", name="A")
    made = apply(tir.PrimFunc([a], tir.Store(a.data, tir.call_packed("f"), 0)), LowerTVMBuiltin())
    (assertion,) = nodes_of(made.body, tir.AssertStmt)
    assert assertion.message.args[0].value == "TypeError: f returned {0:a}, expected a number (int32)"


def test_parallel_loops_have_stacks_of_their_own(apply, nodes_of):
    """Threads must not write to one another's slots."""
    i = tir.Var("i")
    body = tir.For(i, 0, 4, tir.ForKind.PARALLEL, tir.Evaluate(tir.call_packed("f", i)))
    made = apply(tir.PrimFunc([], body), LowerTVMBuiltin())
    assert isinstance(made.body, tir.For) and isinstance(made.body.body, tir.LetStmt)


def test_arrays_on_the_stack(apply, nodes_of):
    """An array argument becomes a tensor with its shape, type and offset."""
    data = tir.Var("data", "handle")
    shape = tir.call_intrin("handle", "tir.tvm_stack_make_shape", 3, 4)
    array = tir.call_intrin(
        "handle", "tir.tvm_stack_make_array", data, shape, 0, 2, tir.const(0, "float32"), 5
    )
    made = apply(tir.PrimFunc([data], tir.Evaluate(tir.call_packed("f", array))), LowerTVMBuiltin())
    kinds = {let.value.args[0].value: int(let.value.args[1]) for let in nodes_of(made.body, tir.LetStmt)}
    assert kinds == {"shape": 2, "array": 1, "arg_value": 2}
    fields = {
        int(write.args[2]): write.args[3]
        for write in nodes_of(made.body, tir.Call)
        if write.op.name == "tir.tvm_struct_set" and int(write.args[2]) <= 10
    }
    assert int(fields[4]) == 2 and int(fields[8]) == 20
    assert [int(fields[kind]) for kind in (5, 6, 7)] == [2, 32, 1]
    assert [int(store.value) for store in nodes_of(made.body, tir.Store)] == [3, 4]


@pytest.mark.parametrize(
    ("extents", "stays"), [([256], True), ([257], False), ([16, 16], True), (["n"], False)]
)
def test_large_buffers_come_from_the_pool(apply, nodes_of, extents, stays):
    """Up to 1 KiB of known size is left on the stack."""
    n = tir.Var("n")
    pointer = tir.decl_buffer((1,), name="T").data
    sizes = [n if size == "n" else size for size in extents]
    body = tir.Allocate(pointer, "float32", sizes, True, tir.Store(pointer, tir.const(0.0, "float32"), 0))
    made = apply(tir.PrimFunc([n], body), LowerTVMBuiltin())
    externs = [
        call.args[0].value for call in nodes_of(made.body, tir.Call) if call.op.name == "tir.call_extern"
    ]
    assert bool(nodes_of(made.body, tir.Allocate)) is stays
    assert externs == ([] if stays else ["tilewright_workspace_alloc", "tilewright_workspace_free"])
    assert len(nodes_of(made.body, tir.AssertStmt)) == (0 if stays else 1)


def test_device_of_the_pool(apply, nodes_of):
    """The attributes of the calling convention say where memory is taken, and are gone afterwards."""
    pointer = tir.decl_buffer((1,), name="T").data
    body = tir.Allocate(pointer, "float32", [8], True, tir.Store(pointer, tir.const(0.0, "float32"), 0))
    body = tir.AttrStmt("default", "device_id", 3, tir.AttrStmt("default", "device_type", 2, body))
    made = apply(tir.PrimFunc([], body), LowerTVMBuiltin())
    allocation = next(call for call in nodes_of(made.body, tir.Call) if call.op.name == "tir.call_extern")
    assert [int(argument) for argument in allocation.args[1:]] == [2, 3, 32]
    assert not nodes_of(made.body, tir.AttrStmt)


def test_vectors_cannot_be_passed(apply):
    """A packed function takes numbers, and says so."""
    value = tir.Broadcast(tir.const(1.0, "float32"), 4)
    with pytest.raises(LoweringError, match="takes numbers and pointers, not vectors"):
        apply(tir.PrimFunc([], tir.Evaluate(tir.call_packed("f", value))), LowerTVMBuiltin())


def test_condition_of_a_while_loop(apply):
    """A packed call in the condition would run once instead of each time."""
    body = tir.While(tir.call_packed("more") > 0, tir.Evaluate(tir.call_packed("step")))
    with pytest.raises(LoweringError, match="condition of a while loop calls a packed function"):
        apply(tir.PrimFunc([], body), LowerTVMBuiltin())


def test_unused_results_are_released(apply, nodes_of):
    """An object that a packed function returns belongs to the caller, who lets go of it."""
    made = apply(tir.PrimFunc([], tir.Evaluate(tir.call_packed("f"))), LowerTVMBuiltin())
    (branch,) = nodes_of(made.body, tir.IfThenElse)
    assert int(branch.condition.b) == 64
    assert branch.then_case.value.args[0].value == "tilewright_any_release"


@pytest.mark.parametrize(
    ("scope", "count", "stays"), [("local", 2048, True), ("local", 2049, False), ("global", 2048, False)]
)
def test_what_is_meant_for_registers_stays_on_the_stack(scope: str, count: int, stays: bool) -> None:
    """Eight kilobytes of the scope "local" do; memory of other scopes comes from the workspace much sooner."""
    buffer = tir.Var("accumulators", PointerType(PrimType("float32"), scope))
    body = tir.Allocate(buffer, "float32", [count], tir.const(True, "bool"), tir.Evaluate(tir.const(0)))
    assert fits_stack(body) == stays


def test_statements_that_run_once():
    """The scope of TVMBackendRunOnce is skipped from the second call on; another coprocessor's is refused."""
    buffer = tir.decl_buffer((1,), "int64", name="A")
    axis = te.thread_axis((0, 1), "cop")
    add = tir.Store(buffer.data, tir.Load("int64", buffer.data, 0) + 1, 0)

    def scoped(name):
        body = tir.AttrStmt(axis, "coproc_uop_scope", tir.StringImm(name), add)
        return tir.PrimFunc([buffer], body).with_attr("global_symbol", "once")

    function = tvm.build(tvm.IRModule({"once": scoped("TVMBackendRunOnce")}), target="llvm")
    values = tvm.nd.array(np.zeros(1, "int64"))
    function(values)
    function(values)
    assert values.numpy()[0] == 1
    with pytest.raises(LoweringError, match='"VTAPushGEMMOp", which no supported target has'):
        tvm.build(tvm.IRModule({"once": scoped("VTAPushGEMMOp")}), target="llvm")


def test_workspaces_that_programs_write_out():
    """``T.TVMBackendAllocWorkspace`` and its release run as the runtime's own, in the text form too."""

    @T.prim_func
    def double(a: T.handle) -> None:
        T.func_attr({"global_symbol": "double", "tir.noalias": True})
        A = T.match_buffer(a, (8,), "float32")
        memory = T.var("handle")
        with T.let(memory, T.TVMBackendAllocWorkspace(1, 0, T.uint64(32), 2, 32, dtype="handle")):
            if T.isnullptr(memory, dtype="bool"):
                T.evaluate(T.tvm_throw_last_error(dtype="int32"))
            for i in T.serial(0, 8):
                T.store(memory, i, A[i] + A[i], True)
            for i in T.serial(0, 8):
                A[i] = T.load("float32", memory, 7 - i)
            if T.TVMBackendFreeWorkspace(1, 0, memory, dtype="int32") != 0:
                T.evaluate(T.tvm_throw_last_error(dtype="int32"))

    tvm.ir.assert_structural_equal(tvm.script.from_source(double.script()), double, True)
    data = tvm.nd.array(np.arange(8, dtype="float32"))
    tvm.build(double, target="llvm")["double"](data)
    np.testing.assert_array_equal(data.numpy(), np.arange(7, -1, -1) * 2)
