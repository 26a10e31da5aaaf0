"""The global registry, from Python and from compiled code."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tilewright.runtime import (
    Module,
    get_global_func,
    list_global_func_names,
    num_threads,
    register_func,
    remove_global_func,
)

CALLBACK = "test.runtime.callback"


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Leaves no test functions behind."""
    yield
    for name in list_global_func_names():
        if name.startswith("test.runtime") or name == "plainly_named":
            remove_global_func(name)


def test_register_and_look_up() -> None:
    """A function registered with a decorator or in a call is found, and the decorated function stays itself."""

    @register_func("test.runtime.add")
    def add(a: int, b: int) -> int:
        return a + b

    assert add(1, 2) == 3
    assert get_global_func("test.runtime.add")(3, 4) == 7
    register_func("test.runtime.upper", str.upper)
    assert get_global_func("test.runtime.upper")("abc") == "ABC"
    assert {"test.runtime.add", "test.runtime.upper"} <= set(list_global_func_names())

    @register_func
    def plainly_named() -> str:
        return "named"

    assert get_global_func("plainly_named")() == "named"


def test_names_are_unique_unless_overridden() -> None:
    """A taken name is an error that says how to replace the function."""
    register_func("test.runtime.f", lambda: 1)
    with pytest.raises(ValueError, match=r"test\.runtime\.f is registered already; pass override"):
        register_func("test.runtime.f", lambda: 2)
    register_func("test.runtime.f", lambda: 3, override=True)
    assert get_global_func("test.runtime.f")() == 3
    with pytest.raises(TypeError, match="name is a string"):
        register_func(3, lambda: 1)  # type: ignore[call-overload]


def test_missing_functions() -> None:
    """A missing function is an error or None, as asked."""
    with pytest.raises(ValueError, match=r"no global function 'test\.runtime\.absent'"):
        get_global_func("test.runtime.absent")
    assert get_global_func("test.runtime.absent", allow_missing=True) is None
    with pytest.raises(ValueError, match="to remove"):
        remove_global_func("test.runtime.absent")


def test_compiled_code_calls_python(kernels: Module) -> None:
    """Compiled code calls a registered Python function from parallel tasks, with tensors it may write."""

    @register_func(CALLBACK)
    def callback(task: int, tensor: Any) -> None:
        np.from_dlpack(tensor)[task] = task + 10

    values = np.zeros(4, dtype="float32")
    kernels["call_back"](values)
    np.testing.assert_array_equal(values, [10, 11, 12, 13])


def test_compiled_code_sees_replacements(kernels: Module) -> None:
    """A function that is replaced, removed and registered again is seen by code that has called it before."""
    values = np.zeros(4, dtype="float32")
    with pytest.raises(ValueError, match=r"calls the global function test\.runtime\.callback"):
        kernels["call_back"](values)
    seen: list[str] = []
    register_func(CALLBACK, lambda task, tensor: seen.append("first"))
    kernels["call_back"](values)
    register_func(CALLBACK, lambda task, tensor: seen.append("second"), override=True)
    kernels["call_back"](values)
    assert seen == ["first"] * 4 + ["second"] * 4
    remove_global_func(CALLBACK)
    with pytest.raises(ValueError, match="no function of that name"):
        kernels["call_back"](values)


def test_exceptions_cross_threads_of_the_pool(kernels: Module) -> None:
    """An exception raised on a worker thread reaches the Python caller as itself."""
    assert num_threads() >= 1

    class OwnError(Exception):
        pass

    @register_func(CALLBACK)
    def callback(task: int, tensor: Any) -> None:
        raise OwnError(f"task {task}")

    for _ in range(20):
        with pytest.raises(OwnError, match=r"task \d"):
            kernels["call_back"](np.zeros(4, dtype="float32"))
