"""Packed functions: values through C and back, in every direction."""

import ctypes
import gc
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.threads import in_threads

from tilewright.runtime import Module, PackedFunc, convert_to_tvm_func, cuda
from tilewright.runtime import ndarray as nd
from tilewright.runtime.packed_func import register_extension
from tilewright.support.dtype import DataType
from tilewright.support.errors import TilewrightError

torch = pytest.importorskip("torch")


@convert_to_tvm_func
def echo(*args: Any) -> Any:
    """Gives the first argument back."""
    return args[0]


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
)


@given(values)
def test_plain_values_come_back(value: object) -> None:
    """Numbers, text, bytes and None pass through C unchanged, with their type."""
    returned = echo(value)
    assert returned == value and type(returned) is type(value)


def test_other_values_come_back() -> None:
    """Devices, data types, pointers, functions and any other Python object pass too."""
    assert echo(cuda(3)) == cuda(3)
    assert echo(DataType("float16x4")) is DataType("float16x4")
    assert echo(np.dtype("int8")) is DataType("int8")
    assert echo(ctypes.c_void_p(0xDEADBEEF)).value == 0xDEADBEEF
    assert echo(np.int16(-3)) == -3 and echo(np.float32(0.5)) == 0.5 and echo(np.bool_(True)) is True
    assert echo(bytearray(b"ab\0c")) == b"ab\0c"
    listed = [1, {"a": 2}]
    assert echo(listed) is listed
    assert echo(lambda x: x + 1)(41) == 42
    assert echo(echo)("again") == "again"


def test_type_indices(kernels: Module) -> None:
    """Compiled code sees the type indices of the calling convention."""
    describe = kernels["describe"]
    expected = {None: 0, 5: 1, True: 2, 1.5: 3, "text": 8, b"bytes": 9, "zero\0inside": 65}
    assert {value: describe(value) for value in expected} == expected
    pointer = ctypes.pointer(ctypes.c_int(3))
    others = [
        ctypes.c_void_p(1),
        pointer,
        DataType("int8"),
        cuda(0),
        np.zeros(2),
        nd.empty((2,)),
        torch.zeros(2),
        echo,
        [1],
    ]
    assert [describe(value) for value in others] == [4, 4, 5, 6, 7, 70, 7, 68, 74]


@pytest.mark.parametrize("make", [nd.array, np.asarray, torch.from_numpy], ids=["ndarray", "numpy", "torch"])
def test_arrays_are_passed_without_a_copy(kernels: Module, make: Any) -> None:
    """A compiled function reads and writes the caller's own memory, whichever library it belongs to."""
    a, b = make(np.arange(5, dtype="float32")), make(np.zeros(5, dtype="float32"))
    kernels["add_one"](a, b)
    np.testing.assert_array_equal(np.from_dlpack(b), [1, 2, 3, 4, 5])


def test_strided_and_read_only_arguments(kernels: Module) -> None:
    """Strides are passed on, and read-only arrays may be read."""
    source = np.arange(10, dtype="float32")[::2]
    source.flags.writeable = False
    target = np.zeros(5, dtype="float32")
    kernels["add_one"](source, target)
    np.testing.assert_array_equal(target, [1, 3, 5, 7, 9])


def test_callback_may_keep_an_array() -> None:
    """What a Python function receives for an NDArray stays valid after the call."""
    kept: list[Any] = []
    convert_to_tvm_func(kept.append)(nd.array(np.arange(3.0)))
    gc.collect()
    np.testing.assert_array_equal(kept[0].numpy(), [0, 1, 2])


def test_returned_view_is_copied() -> None:
    """A view of the caller's memory that a callback returns becomes an array of its own."""
    source = np.arange(3.0)
    returned = echo(source)
    source[:] = 9
    np.testing.assert_array_equal(returned.numpy(), [0, 1, 2])


def test_returned_numpy_array_is_shared() -> None:
    """A NumPy array that a callback returns becomes an array over the same memory."""
    made = np.arange(4.0)
    returned = convert_to_tvm_func(lambda: made)()
    made[0] = 5
    assert returned.numpy()[0] == 5


def test_exception_keeps_its_type_message_and_traceback() -> None:
    """An exception of a callback is the very same object on the other side."""

    class OwnError(Exception):
        pass

    error = OwnError("thrown inside")

    def throw() -> None:
        raise error

    with pytest.raises(OwnError) as caught:
        convert_to_tvm_func(throw)()
    assert caught.value is error
    assert "throw" in [entry.name for entry in caught.traceback]


def test_interrupts_pass_too() -> None:
    """KeyboardInterrupt and SystemExit are not swallowed."""

    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        convert_to_tvm_func(leave)()


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("ValueError", ValueError),
        ("TypeError", TypeError),
        ("IndexError", IndexError),
        ("KeyError", KeyError),
        ("AssertionError", AssertionError),
        ("MemoryError", MemoryError),
        ("NotImplementedError", NotImplementedError),
        ("RuntimeError", RuntimeError),
        ("OSError", OSError),
        ("SomethingElse", RuntimeError),
    ],
)
def test_errors_of_compiled_code(kernels: Module, kind: str, expected: type[Exception]) -> None:
    """An error's kind decides the class; every one is a TilewrightError and has the message."""
    with pytest.raises(expected) as caught:
        kernels["fail"](kind)
    assert isinstance(caught.value, TilewrightError)
    assert str(caught.value) == (
        "asked to fail" if kind != "SomethingElse" else "SomethingElse: asked to fail"
    )


def test_integers_that_do_not_fit() -> None:
    """An integer of more than 64 bits is an error, not another number."""
    with pytest.raises(OverflowError, match="does not fit in 64 bits"):
        echo(1 << 63)


def test_many_arguments() -> None:
    """There is no limit on the number of arguments."""
    assert convert_to_tvm_func(lambda *args: sum(args))(*range(200)) == sum(range(200))


def test_functions_release_what_they_hold() -> None:
    """The callable goes when the packed function goes; one that C holds on to stays."""

    class Callable:
        def __call__(self) -> int:
            return 5

    target = Callable()
    watch = weakref.ref(target)
    function = convert_to_tvm_func(target)
    del target
    assert function() == 5
    del function
    gc.collect()
    assert watch() is None


def test_calls_from_many_threads(kernels: Module) -> None:
    """Packed functions may be called from many threads at once; errors stay with their thread."""
    failures: list[str] = []

    def work(number: int) -> None:
        for _ in range(200):
            if echo(number) != number or kernels["sum_workspace"](number) != number * (number - 1) // 2:
                failures.append(f"wrong value in {number}")
            try:
                kernels["fail"]("KeyError" if number % 2 else "IndexError")
            except (KeyError, IndexError) as error:
                if isinstance(error, KeyError) != bool(number % 2):
                    failures.append(f"wrong error in {number}")

    in_threads(work, range(6))
    assert failures == []


def test_converting_twice_changes_nothing() -> None:
    """A packed function is returned as it is, and prints its name."""
    assert convert_to_tvm_func(echo) is echo
    assert isinstance(echo, PackedFunc)
    assert repr(echo) == "PackedFunc(echo)"


def test_extension_types() -> None:
    """Values of a class that is registered are passed by the address that they give; other codes are refused."""

    class View:
        _tvm_tcode = 7  # a DLTensor

        def __init__(self, array: nd.NDArray) -> None:
            self._tvm_handle = array._tvm_handle

    assert register_extension(View) is View
    array = nd.array(np.arange(3, dtype="float32"))
    seen: list[np.ndarray] = []
    convert_to_tvm_func(lambda given: seen.append(given.numpy().copy()))(View(array))
    np.testing.assert_array_equal(seen[0], [0, 1, 2])
    View._tvm_tcode = 11
    with pytest.raises(ValueError, match="_tvm_tcode is 11"):
        register_extension(View)
