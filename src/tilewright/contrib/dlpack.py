"""Packed functions that take another library's tensors.

Compiled functions accept anything with ``__dlpack__``; these wrappers are for libraries that have their own conversion
function, and for scripts that were written for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.runtime.dlpack import request_capsule
from tilewright.runtime.failure import failure
from tilewright.runtime.ndarray import NDArray, from_dlpack


def convert_func(
    tvm_func: Callable[..., Any], tensor_type: type, to_dlpack_func: Callable[[Any], Any]
) -> Callable[..., Any]:
    """The function with its arguments of ``tensor_type`` converted by ``to_dlpack_func``, without a copy."""
    if not callable(tvm_func):
        raise failure("TypeError", f"expected a function, not a {type(tvm_func).__name__}")

    def convert(value: Any) -> Any:
        return from_dlpack(to_dlpack_func(value)) if isinstance(value, tensor_type) else value

    def call(*args: Any) -> Any:
        return tvm_func(*[convert(value) for value in args])

    return call


def to_pytorch_func(tvm_func: Callable[..., Any]) -> Callable[..., Any]:
    """The function for PyTorch tensors; a tensor that it returns is a PyTorch tensor that shares the memory."""
    try:
        import torch
    except ImportError as error:
        raise failure(
            "RuntimeError", "to_pytorch_func needs PyTorch: pip install tilewright[torch]"
        ) from error
    inner = convert_func(tvm_func, torch.Tensor, lambda tensor: request_capsule(tensor.detach()))

    def call(*args: Any) -> Any:
        result = inner(*args)
        return torch.from_dlpack(result) if isinstance(result, NDArray) else result

    return call
