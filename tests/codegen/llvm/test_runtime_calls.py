"""Calls into the runtime: packed functions, results, tensors made on the stack."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.expr import Load, StringImm, Var
from tilewright.ir.type import PointerType, PrimType
from tilewright.runtime.registry import register_func
from tilewright.support.errors import CodegenError
from tilewright.tir import op
from tilewright.tir.buffer import decl_buffer
from tilewright.tir.stmt import Allocate, Evaluate, For, ForKind, Store, stmt_seq


def test_packed_calls_pass_values_and_tensors(kit):
    """A registered function receives numbers, strings and arrays, and its result comes back as a number."""
    seen = []

    def remember(number, real, text, array):
        seen.append((number, real, text, array.numpy().copy()))
        return 42

    register_func("test.llvm.remember", remember, override=True)
    y, n = kit.buffer("y", 4, "int32"), Var("n")
    call = op.call_packed("test.llvm.remember", n, n.astype("float64") * 0.5, StringImm("hello"), y)
    module = kit.build([y, n], stmt_seq(Store(y.data, 7, 1), Store(y.data, call, 0)))
    result = np.zeros(4, "int32")
    module["f"](result, 9)
    number, real, text, array = seen[0]
    assert (number, real, text) == (9, 4.5, "hello")
    np.testing.assert_array_equal(array, [0, 7, 0, 0])
    assert result[0] == 42


def test_a_failing_packed_call_fails_the_function(kit):
    """What a called function raises reaches the caller, and the statements after the call do not run."""

    def refuse():
        raise ValueError("not today")

    register_func("test.llvm.refuse", refuse, override=True)
    y = kit.buffer("y", 1, "int32")
    module = kit.build([y], stmt_seq(Evaluate(op.call_packed("test.llvm.refuse")), Store(y.data, 1, 0)))
    result = np.zeros(1, "int32")
    with pytest.raises(ValueError, match="not today"):
        module["f"](result)
    assert result[0] == 0


def test_large_buffers_come_from_the_workspace(kit):
    """A buffer beyond the stack's share is taken from the runtime's pool, aligned, and given back."""
    y, i = kit.buffer("y", 100000), Var("i")
    large = Var("large", PointerType(PrimType("float32")))
    body = stmt_seq(
        For(i, 0, 100000, ForKind.SERIAL, Store(large, i.astype("float32"), i)),
        For(i, 0, 100000, ForKind.SERIAL, Store(y.data, Load("float32", large, i) + 1.0, i)),
    )
    module = kit.build([y], Allocate(large, "float32", [100000], True, body))
    result = np.zeros(100000, "float32")
    for _ in range(3):
        module["f"](result)
    np.testing.assert_array_equal(result, np.arange(1, 100001, dtype="float32"))
    assert "noalias align 64 ptr @tilewright_workspace_alloc" in module.get_source("unoptimized")


def test_wrong_arguments_are_described(kit):
    """Types, shapes and numbers of arguments are checked before anything is touched."""
    module = kit.build([kit.buffer("y", 4, "int32"), Var("n")], Evaluate(0))
    with pytest.raises(Exception, match="float64"):
        module["f"](np.zeros(4), 1)
    with pytest.raises(ValueError, match="expected 4"):
        module["f"](np.zeros(5, "int32"), 1)
    with pytest.raises(TypeError):
        module["f"](np.zeros(4, "int32"))


def test_misuse_of_the_stack_is_refused(kit):
    """Unknown kinds of stack memory and unknown fields are errors of the program."""
    n = Var("n")
    with pytest.raises(CodegenError, match="no kind 'heap'"):
        kit.build([n], Evaluate(op.call_intrin("handle", "tir.tvm_stack_alloca", "heap", 1)))
    with pytest.raises(CodegenError, match="is not a field"):
        kit.build([n], Evaluate(op.call_intrin("int32", "tir.tvm_struct_get", op.const(0, "handle"), 0, 99)))


def test_offsets_and_strides_are_honoured(kit):
    """A view that starts in the middle of an array reads from there."""
    y = decl_buffer((4,), "int32", "y", data_alignment=4)
    i = Var("i")
    module = kit.build([y], For(i, 0, 4, ForKind.SERIAL, Store(y.data, i + 1, i)))
    whole = np.zeros(12, "int32")
    module["f"](whole[5:9])
    np.testing.assert_array_equal(whole, [0] * 5 + [1, 2, 3, 4] + [0] * 3)
