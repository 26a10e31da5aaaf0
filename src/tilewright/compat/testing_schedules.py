"""The schedules of a target, chosen as tests choose them, and a comparison of an operator with an array."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.compat import x86
from tilewright.compat.named_schedules import attributes
from tilewright.compile import build
from tilewright.runtime.device import Device
from tilewright.runtime.ndarray import array, empty
from tilewright.target.target import Target
from tilewright.te.operation import placeholder
from tilewright.testing.numeric import assert_allclose
from tilewright.topi import nn

__all__ = [
    "compare_numpy_tvm",
    "dispatch",
    "get_broadcast_schedule",
    "get_conv2d_nchw_implement",
    "get_elemwise_schedule",
    "get_injective_schedule",
    "get_reduce_schedule",
]

_PACKAGES = {"generic": attributes("topi.generic"), "cpu": attributes("topi.x86")}
_ELEMWISE, _BROADCAST, _INJECTIVE, _REDUCE, _CONV2D = (
    {key: names[f"schedule_{name}"] for key, names in _PACKAGES.items()}
    for name in ("elemwise", "broadcast", "injective", "reduce", "conv2d_nchw")
)
_CONV2D_NCHW = {
    "generic": (nn.conv2d_nchw, _CONV2D["generic"]),
    "cpu": (x86.conv2d_nchw, _CONV2D["cpu"]),
}


def dispatch(target: str | Target, dispatch_map: Mapping[str, Any]) -> Any:
    """The entry for the first of the target's keys that has one; else that for ``"generic"``."""
    for key in Target(target).keys:
        if key in dispatch_map:
            return dispatch_map[key]
    return dispatch_map["generic"]


def get_elemwise_schedule(target: str | Target) -> Any:
    """The schedule of elementwise operators."""
    return dispatch(target, _ELEMWISE)


def get_broadcast_schedule(target: str | Target) -> Any:
    """The schedule of operators that broadcast."""
    return dispatch(target, _BROADCAST)


def get_injective_schedule(target: str | Target) -> Any:
    """The schedule of operators that move elements."""
    return dispatch(target, _INJECTIVE)


def get_reduce_schedule(target: str | Target) -> Any:
    """The schedule of reductions."""
    return dispatch(target, _REDUCE)


def get_conv2d_nchw_implement(target: str | Target) -> Any:
    """The computation and the schedule of a convolution of ``NCHW`` data."""
    return dispatch(target, _CONV2D_NCHW)


def compare_numpy_tvm(
    inputs: Sequence[Any],
    output: Any,
    target: str | Target,
    device: Device,
    compute: Callable[..., Any],
    schedule: Callable[..., Any],
) -> None:
    """Compile an operator for these inputs, run it, and require this output."""
    placeholders = [
        placeholder(value.shape, str(value.dtype), name=f"input{position}")
        for position, value in enumerate(inputs)
    ]
    with Target(target):
        result = compute(*placeholders)
        function = build(schedule([result]), [*placeholders, result], target)
    found = empty(output.shape, str(output.dtype), device)
    function(*[array(value, device) for value in inputs], found)
    assert_allclose(found.numpy(), output, rtol=1e-4, atol=1e-4)
