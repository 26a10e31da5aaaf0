"""Functions that servers have so that clients can be tested, under the names of TVM's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.runtime.ndarray import NDArray, array
from tilewright.runtime.registry import register_func
from tilewright.runtime.use_count import object_use_count


@register_func("rpc.test.addone", override=True)
def _add_one(value: int) -> int:
    return value + 1


@register_func("rpc.test.strcat", override=True)
def _concatenate(name: str, number: int) -> str:
    return f"{name}:{number}"


@register_func("rpc.test.except", override=True)
def _fail(name: str) -> None:
    raise ValueError(name)


@register_func("rpc.test.runtime_str_concat", override=True)
def _join(first: str, second: str) -> str:
    return first + second


@register_func("rpc.test.remote_array_func", override=True)
def _check_array(values: NDArray) -> None:
    np.testing.assert_equal(values.numpy(), np.ones(values.shape))


@register_func("rpc.test.add_to_lhs", override=True)
def _adder(first: int) -> Callable[[int], int]:
    return lambda second: first + second


@register_func("rpc.test.remote_return_nd", override=True)
def _arrays(kind: str) -> Any:
    if kind == "get_arr":
        return lambda: _ARRAY
    if kind == "ref_count":
        return lambda: object_use_count(_ARRAY)
    if kind == "get_elem":
        return lambda index: float(_ARRAY.numpy().reshape(-1)[index])
    if kind == "get_arr_elem":
        return lambda values, index: float(values.numpy().reshape(-1)[index])
    raise ValueError(f"there is no {kind!r} in this test")


def raise_error_callback(message: str) -> Callable[..., None]:
    """A function that fails with a message, whatever it is given."""

    def fail(*ignored: Any) -> None:
        raise RuntimeError(message)

    return fail


_ARRAY = array(np.zeros(10, "float32"))
