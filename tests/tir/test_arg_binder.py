"""The runtime's checks of arguments say what the checks that are written out say; tests/codegen/c has those."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from tilewright.codegen import build
from tilewright.ir.buffer import decl_buffer
from tilewright.ir.expr import Call, Load, SizeVar, Var
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.runtime import ndarray as nd
from tilewright.runtime.module import Module
from tilewright.target.target import Target
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import AssertStmt, For, Store
from tilewright.tir.transform.lower_tvm_builtin import LowerTVMBuiltin
from tilewright.tir.transform.make_packed_api import MakePackedAPI


def copies(rows: Any, dtype: str, runtime_checks: bool, **options: Any) -> IRModule:
    """B[i] = A[i] for A and B of shape (rows, 4), in the exported form."""
    i = Var("i")
    a, b = (decl_buffer((rows, 4), dtype, name, **options) for name in "AB")
    body = For(i, 0, rows * 4, 0, Store(b.data, Load(dtype, a.data, i), i))
    function = PrimFunc([a, b], body, attrs={"global_symbol": "f", "target": Target("llvm")})
    return MakePackedAPI(runtime_checks=runtime_checks)(IRModule({"f": function}))


def both(rows: Any, dtype: str = "float32", **options: Any) -> tuple[Module, Module]:
    """With the checks written out, and with the runtime's."""
    written, called = (
        build(LowerTVMBuiltin()(copies(rows, dtype, checks, **options)), "llvm") for checks in (False, True)
    )
    return written, called


def outcome(module: Module, *arguments: Any) -> tuple[str, str]:
    """The kind of error of a call and its message; nothing for one that succeeds."""
    try:
        module["f"](*arguments)
    except Exception as problem:  # noqa: BLE001 - what kind it is is the question
        return type(problem).__name__, str(problem).splitlines()[-1]
    return "", ""


@pytest.fixture(scope="module")
def of_any_rows() -> tuple[Module, Module]:
    return both(SizeVar("n"))


@pytest.fixture(scope="module")
def of_three_rows() -> tuple[Module, Module]:
    return both(3)


@pytest.fixture(scope="module")
def of_bools() -> tuple[Module, Module]:
    return both(3, "bool")


def zeros(*shape: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    return np.zeros(shape, dtype)


def read_only() -> np.ndarray[Any, Any]:
    made = zeros(3, 4)
    made.flags.writeable = False
    return made


def at_odd_address() -> np.ndarray[Any, Any]:
    return np.zeros(49, "int8")[1:].view("float32").reshape(3, 4)


WRONG = {
    "one argument": (zeros(3, 4),),
    "an integer": (1, zeros(3, 4)),
    "None": (zeros(3, 4), None),
    "other type": (zeros(3, 4, dtype="float64"), zeros(3, 4)),
    "fewer dimensions": (zeros(3), zeros(3, 4)),
    "other row": (zeros(3, 5), zeros(3, 4)),
    "other rows": (zeros(3, 4), zeros(2, 4)),
    "strides of two dimensions": (zeros(4, 3).T, zeros(3, 4)),
    "stride of the last": (zeros(3, 8)[:, ::2], zeros(3, 4)),
    "stride of the first": (zeros(6, 4)[::2], zeros(3, 4)),
    "memory that must not be written": (zeros(3, 4), read_only()),
    "an odd address": (at_odd_address(), zeros(3, 4)),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_same_words(
    name: str, of_any_rows: tuple[Module, Module], of_three_rows: tuple[Module, Module]
) -> None:
    """What does not fit is refused by the same kind of error, in the same words."""
    for written, called in (of_any_rows, of_three_rows):
        expected = outcome(written, *WRONG[name])
        assert expected[0] in ("TypeError", "ValueError") and expected[1]
        assert outcome(called, *WRONG[name]) == expected


def test_what_fits(of_any_rows: tuple[Module, Module]) -> None:
    """Tensors of any number of rows are copied: empty ones and those of one row with any strides."""
    for rows in (0, 1, 3):
        given = np.arange(rows * 4, dtype="float32").reshape(rows, 4)
        for module in of_any_rows:
            made = zeros(rows, 4)
            module["f"](given, made)
            np.testing.assert_array_equal(made, given)
    for module in of_any_rows:
        module["f"](zeros(4, 0).T, zeros(0, 4))
        module["f"](zeros(8, 4)[::8], zeros(1, 4))


def test_every_form_of_truth_values(of_bools: tuple[Module, Module]) -> None:
    """Truth values come as DLPack's bool, as bytes, and as one bit; other types are refused."""
    given = np.array([[True, False, True, True]] * 3)
    for module in of_bools:
        for dtype in ("bool", "uint8", "int8"):
            made = zeros(3, 4, dtype="bool")
            module["f"](given.view(dtype), made)
            np.testing.assert_array_equal(made, given)
    written, called = of_bools
    wrong = zeros(3, 4), zeros(3, 4, dtype="bool")
    assert outcome(called, *wrong) == outcome(written, *wrong)


def test_tensors_without_memory(of_three_rows: tuple[Module, Module]) -> None:
    """A tensor that has elements has memory."""
    a = nd.array(zeros(3, 4))
    address = ctypes.cast(a.handle, ctypes.POINTER(ctypes.c_void_p))
    kept, address[0] = address[0], None
    try:
        written, called = (outcome(module, a, zeros(3, 4)) for module in of_three_rows)
    finally:
        address[0] = kept
    assert called == written and "its data pointer is NULL" in called[1]


def checking_calls(function: PrimFunc) -> list[Call]:
    """The calls of the runtime's check."""
    found = [node for node in post_order(function.body) if isinstance(node, Call)]
    return [call for call in found if call.op.name == "tir.check_tensors"]


def messages(function: PrimFunc) -> list[str]:
    """What the assertions of a function say."""
    return [str(node.message) for node in post_order(function.body) if isinstance(node, AssertStmt)]


def test_one_call_checks_all() -> None:
    """The call has the number of arguments, and for each tensor its index, whether it is written, its type, device and
    alignment, and its dimensions; only what relates sizes to each other is written out."""
    made = copies(SizeVar("n"), "float32", runtime_checks=True)["f"]
    calls = checking_calls(made)
    assert len(calls) == 1
    assert calls[0].args[2].value == "f\nA\nB"
    float32 = 2 | 32 << 8 | 1 << 16
    expected = [2, 2, *(0, 0, float32, 1, 4, 2, -1, 4), *(1, 1, float32, 1, 4, 2, -1, 4)]
    assert [number.value for number in calls[0].args[3:]] == expected
    words = messages(made)
    assert all("dimension 0" in text for text in words) and len(words) == 2


def test_strides_are_written_out() -> None:
    """A tensor with strides of its own is none of the table's."""
    i, step = Var("i"), Var("step")
    a = decl_buffer((4,), "float32", "A", strides=[step])
    body = For(i, 0, 4, 0, Store(a.data, 0.0, i * step))
    function = PrimFunc([a], body, attrs={"global_symbol": "f", "target": Target("llvm")})
    made = MakePackedAPI(runtime_checks=True)(IRModule({"f": function}))["f"]
    assert not checking_calls(made)
    assert any("must be a tensor" in text for text in messages(made))
