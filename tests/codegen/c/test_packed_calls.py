"""What a compiled function says to arguments that do not fit, and that it takes those that do."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from tilewright.codegen.c.host import generate_c
from tilewright.ir import operators
from tilewright.ir.buffer import decl_buffer
from tilewright.ir.expr import Load, SizeVar, Var
from tilewright.ir.module import IRModule
from tilewright.runtime import ndarray as nd
from tilewright.runtime.packed_func import PackedFunc
from tilewright.target.target import Target
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Evaluate, For, SeqStmt, Stmt, Store
from tilewright.tir.transform.lower_tvm_builtin import LowerTVMBuiltin
from tilewright.tir.transform.make_packed_api import MakePackedAPI


def compiled(compile_c: Any, params: list[Any], body: Stmt) -> PackedFunc:
    function = PrimFunc(params, body, attrs={"global_symbol": "f", "target": Target("c")})
    module = LowerTVMBuiltin()(MakePackedAPI()(IRModule({"f": function})))
    return compile_c(generate_c(module), "f")


@pytest.fixture(scope="module")
def twice(compile_c: Any) -> PackedFunc:
    """B[i, j] = 2 * A[i, j] for A and B of shape (n, 4)."""
    n, i = SizeVar("n"), Var("i")
    a, b = decl_buffer((n, 4), name="A"), decl_buffer((n, 4), name="B")
    return compiled(
        compile_c, [a, b], For(i, 0, n * 4, 0, Store(b.data, Load("float32", a.data, i) * 2.0, i))
    )


def tensors(rows: int = 3) -> tuple[Any, Any]:
    return nd.array(np.arange(rows * 4, dtype="float32").reshape(rows, 4)), nd.array(
        np.zeros((rows, 4), "float32")
    )


def test_right_arguments(twice: PackedFunc) -> None:
    """Fitting arguments of any size are accepted, empty ones too."""
    for rows in (3, 1, 0):
        a, b = tensors(rows)
        twice(a, b)
        np.testing.assert_array_equal(b.numpy(), 2 * a.numpy())


def test_numpy_arrays(twice: PackedFunc) -> None:
    """Arrays of NumPy are taken as they are, at any address their elements may have."""
    memory = np.zeros(64, "float32")
    a = memory[1:13].reshape(3, 4)
    a[:] = 1.5
    b = np.zeros((3, 4), "float32")
    twice(a, b)
    np.testing.assert_array_equal(b, np.full((3, 4), 3.0, "float32"))


@pytest.mark.parametrize(
    ("first", "kind", "text"),
    [
        (1, TypeError, r"argument 0 \(A\) must be a tensor, not an integer"),
        (None, TypeError, r"argument 0 \(A\) must be a tensor, not None"),
        ("text", TypeError, r"argument 0 \(A\) must be a tensor, not a string"),
        (np.zeros((3, 4), "float64"), TypeError, r"argument 0 \(A\) has data type float64, expected float32"),
        (np.zeros(3, "float32"), ValueError, r"argument 0 \(A\) has 1 dimensions, expected 2"),
        (np.zeros((3, 5), "float32"), ValueError, r"dimension 1 of argument 0 \(A\) is 5, expected 4"),
        (
            np.zeros((4, 3), "float32").T,
            ValueError,
            r"stride 0 of argument 0 \(A\) is 1, expected 4: the array must be compact",
        ),
    ],
)
def test_wrong_first_argument(twice: PackedFunc, first: Any, kind: type[Exception], text: str) -> None:
    """The message names the argument, what was expected and what came."""
    with pytest.raises(kind, match="f: " + text):
        twice(first, np.zeros((3, 4), "float32"))


def test_sizes_must_agree(twice: PackedFunc) -> None:
    """The first argument gives n its value; a later one that disagrees is refused with both numbers."""
    with pytest.raises(
        ValueError, match=r"dimension 0 of argument 1 \(B\) is 2, expected 3 \(the value of n\)"
    ):
        twice(np.zeros((3, 4), "float32"), np.zeros((2, 4), "float32"))


def test_number_of_arguments(twice: PackedFunc) -> None:
    """Too few and too many arguments are refused before any is read."""
    with pytest.raises(TypeError, match="f: expected 2 arguments, got 1"):
        twice(np.zeros((3, 4), "float32"))
    with pytest.raises(TypeError, match="f: expected 2 arguments, got 3"):
        twice(*tensors(), 7)


def described(array: np.ndarray[Any, Any], **changes: Any) -> Any:
    """A DLTensor of an array, with some fields as a careless caller might set them."""
    made = nd.numpyasarray(array)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def test_null_data(compile_c: Any, twice: PackedFunc) -> None:
    """A NULL pointer is refused where there are elements, and fine where there are none."""
    a, b = np.zeros((3, 4), "float32"), np.zeros((3, 4), "float32")
    with pytest.raises(ValueError, match=r"argument 0 \(A\) has elements, but its data pointer is NULL"):
        call_raw(twice, described(a, data=None), described(b))
    empty = np.zeros((0, 4), "float32")
    call_raw(twice, described(empty, data=None), described(empty, data=None))


def test_other_device(twice: PackedFunc) -> None:
    """Memory of another device is not touched."""
    a, b = described(np.zeros((3, 4), "float32")), described(np.zeros((3, 4), "float32"))
    a.device.device_type = 2
    with pytest.raises(ValueError, match=r"argument 0 \(A\) is on device cuda, expected cpu"):
        call_raw(twice, a, b)
    a.device.device_type = 1
    b.device.device_id = 1
    with pytest.raises(ValueError, match=r"the device number of argument 1 \(B\) is 1, expected 0"):
        call_raw(twice, a, b)


def test_byte_offset(twice: PackedFunc) -> None:
    """The offset moves the start of the data."""
    memory = np.arange(16, dtype="float32")
    a, b = described(memory[:4].reshape(1, 4), byte_offset=32), np.zeros((1, 4), "float32")
    call_raw(twice, a, described(b))
    np.testing.assert_array_equal(b, [[16, 18, 20, 22]])


def test_misaligned(twice: PackedFunc) -> None:
    """Elements at addresses that are not a multiple of their size are refused."""
    a, b = described(np.zeros((3, 4), "float32"), byte_offset=2), described(np.zeros((2, 4), "float32"))
    with pytest.raises(
        ValueError, match=r"memory of argument 0 \(A\) must be aligned to 4 bytes, it is 2 bytes past"
    ):
        call_raw(twice, a, b)


def call_raw(function: PackedFunc, *tensors: Any) -> None:
    """Call with DLTensor structures as they are."""
    function(*[TensorPointer(tensor) for tensor in tensors])


class TensorPointer:
    """Passes a DLTensor through ``__dlpack__``, unchecked."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __dlpack__(self, **_: Any) -> object:
        managed = (ctypes.c_byte * 64)()
        ctypes.memmove(managed, ctypes.byref(self.tensor), 48)
        self.managed = managed
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return make(ctypes.addressof(managed), b"dltensor", None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.device.device_type, self.tensor.device.device_id


def test_alignment_that_a_buffer_asks_for(compile_c: Any) -> None:
    """An alignment of the buffer's own is required of the argument."""
    a = decl_buffer((4,), name="A", data_alignment=256)
    function = compiled(compile_c, [a], Store(a.data, operators.const(1.0, "float32"), 0))
    memory = np.zeros(256, "float32")
    start = (-memory.ctypes.data % 256) // 4
    function(memory[start : start + 4])
    assert memory[start] == 1
    with pytest.raises(ValueError, match=r"must be aligned to 256 bytes, it is 16 bytes past"):
        function(memory[start + 4 : start + 8])


def test_sizes_that_do_not_fit_the_index_type(twice: PackedFunc) -> None:
    """A size beyond the program's index type is refused instead of wrapping around."""
    a = described(np.zeros((3, 4), "float32"))
    a.shape = (ctypes.c_int64 * 2)(1 << 32, 4)
    with pytest.raises(
        ValueError, match=r"dimension 0 of argument 0 \(A\) is 4294967296, expected 0 to 2147483647"
    ):
        call_raw(twice, a, described(np.zeros((3, 4), "float32")))


def test_relations_use_later_arguments(compile_c: Any) -> None:
    """A size given by a later argument is known to the checks of an earlier one."""
    n = Var("n")
    a, b = decl_buffer((n * 2,), name="A"), decl_buffer((n,), name="B")
    function = compiled(compile_c, [a, b], Store(b.data, Load("float32", a.data, n), 0))
    out = np.zeros(3, "float32")
    function(np.arange(6, dtype="float32"), out)
    assert out[0] == 3
    with pytest.raises(ValueError, match=r"dimension 0 of argument 0 \(A\) is 5, expected 6"):
        function(np.arange(5, dtype="float32"), out)


def test_strides_are_bound(compile_c: Any) -> None:
    """A buffer with symbolic strides takes what the argument has, compact or not."""
    n, s = Var("n"), Var("s")
    a, b = decl_buffer((n,), name="A", strides=[s]), decl_buffer((n,), name="B")
    i = Var("i")
    body = For(i, 0, n, 0, Store(b.data, Load("float32", a.data, i * s), i))
    function = compiled(compile_c, [a, b], body)
    out = np.zeros(3, "float32")
    function(np.arange(6, dtype="float32")[::2], out)
    np.testing.assert_array_equal(out, [0, 2, 4])
    function(nd.array(np.arange(3, dtype="float32")), out)
    np.testing.assert_array_equal(out, [0, 1, 2])


def test_element_offset(compile_c: Any) -> None:
    """A symbolic offset is the argument's byte offset in elements, and must divide."""
    a = decl_buffer((4,), name="A", offset_factor=4)
    b = decl_buffer((1,), "int32", name="B")
    function = compiled(compile_c, [a, b], Store(b.data, a.elem_offset, 0))
    memory, out = np.zeros(32, "float32"), np.zeros(1, "int32")
    call_raw(function, described(memory[:4], byte_offset=32), described(out))
    assert out[0] == 8
    with pytest.raises(ValueError, match=r"byte offset of argument 0 \(A\) is 20, expected a multiple of 16"):
        call_raw(function, described(memory[:4], byte_offset=20), described(out))


def test_bool_arrays(compile_c: Any) -> None:
    """A bool buffer takes bools as any library writes them."""
    a, b = decl_buffer((3,), "bool", name="A"), decl_buffer((3,), "int32", name="B")
    i = Var("i")
    body = For(i, 0, 3, 0, Store(b.data, operators.cast("int32", Load("bool", a.data, i)), i))
    function = compiled(compile_c, [a, b], body)
    for given in (np.array([True, False, True]), np.array([1, 0, 1], "uint8"), np.array([1, 0, 1], "int8")):
        out = np.zeros(3, "int32")
        function(given, out)
        np.testing.assert_array_equal(out, [1, 0, 1])
    with pytest.raises(TypeError, match="has data type int32, expected bool"):
        function(np.array([1, 0, 1], "int32"), np.zeros(3, "int32"))


def test_scalars(compile_c: Any) -> None:
    """Numbers come as any kind that fits; others are refused, and integers never wrap around."""
    count, factor, out = Var("count", "int32"), Var("factor", "float32"), decl_buffer((2,), name="out")
    body = SeqStmt([Store(out.data, operators.cast("float32", count), 0), Store(out.data, factor, 1)])
    function = compiled(compile_c, [count, factor, out], body)
    result = np.zeros(2, "float32")
    for given, expected in ((7, 2.5), [7, 2.5]), ((True, 3), [1, 3]), ((-1, False), [-1, 0]):
        function(*given, result)
        np.testing.assert_array_equal(result, expected)
    with pytest.raises(TypeError, match=r"argument 0 \(count\) must be an integer \(int32\), not a float"):
        function(1.0, 1.0, result)
    with pytest.raises(TypeError, match=r"argument 1 \(factor\) must be a number \(float32\), not a string"):
        function(1, "x", result)
    with pytest.raises(
        ValueError, match=r"argument 0 \(count\) is 2147483648, expected -2147483648 to 2147483647"
    ):
        function(1 << 31, 1.0, result)


def test_results(compile_c: Any) -> None:
    """What a function returns arrives with its kind."""
    x = Var("x", "int32")
    for value, expected in (
        (x * 2, 42),
        (operators.cast("float64", x), 21.0),
        (operators.greater(x, 3), True),
    ):
        function = compiled(compile_c, [x], Evaluate(operators.call("ret", value.dtype, [value])))
        result = function(21)
        assert result == expected and type(result) is type(expected)


def test_pointers(compile_c: Any) -> None:
    """A typed pointer takes memory as a tensor or as an address, an untyped one whatever it is given."""
    typed = decl_buffer((1,), name="data").data
    function = compiled(compile_c, [typed], Store(typed, operators.const(2.0, "float32"), 1))
    values = np.zeros(4, "float32")
    function(values)
    assert values[1] == 2
    function(ctypes.c_void_p(values.ctypes.data + 4))
    assert values[2] == 2
    call_raw(function, described(values, byte_offset=8))
    assert values[3] == 2
    with pytest.raises(
        TypeError, match=r"argument 0 \(data\) points to elements of type int32, expected float32"
    ):
        function(np.zeros(4, "int32"))
    for wrong, text in ((1.5, "a float"), (None, "None"), ("text", "a string")):
        with pytest.raises(
            TypeError, match=rf"argument 0 \(data\) must be a tensor of float32 or a pointer, not {text}"
        ):
            function(wrong)
    elsewhere = described(values)
    elsewhere.device.device_type = 2
    with pytest.raises(ValueError, match=r"argument 0 \(data\) is on device cuda, expected cpu"):
        call_raw(function, elsewhere)


def test_arguments_that_share_memory(compile_c: Any) -> None:
    """Two buffers over one pointer need the same memory twice."""
    a = decl_buffer((4,), name="A")
    b = decl_buffer((4,), name="B", data=a.data)
    function = compiled(compile_c, [a, b], Store(a.data, operators.const(3.0, "float32"), 0))
    values = np.zeros(4, "float32")
    function(values, values)
    assert values[0] == 3
    with pytest.raises(
        ValueError, match=r"the memory of argument 1 \(B\) must be the same as that of an earlier"
    ):
        function(values, np.zeros(4, "float32"))


def test_no_dimensions_and_wide_ones(compile_c: Any) -> None:
    """An array may have no dimensions, and sizes may be of 64 bits and stand twice."""
    n = Var("n", "int64")
    zero, square = decl_buffer((), "int64", name="Z"), decl_buffer((n, n), name="S")
    function = compiled(compile_c, [square, zero], Store(zero.data, n, 0))
    out = np.zeros((), "int64")
    function(np.zeros((5, 5), "float32"), out)
    assert out == 5
    with pytest.raises(
        ValueError, match=r"dimension 1 of argument 0 \(S\) is 6, expected 5 \(the value of n\)"
    ):
        function(np.zeros((5, 6), "float32"), out)
    with pytest.raises(ValueError, match=r"argument 1 \(Z\) has 1 dimensions, expected 0"):
        function(np.zeros((5, 5), "float32"), np.zeros(1, "int64"))
