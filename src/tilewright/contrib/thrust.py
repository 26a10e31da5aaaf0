"""Whether sorting and scanning by Thrust can be used: NVIDIA distributes it as C++ headers, so that a function of its
name is there only where a program registers one."""

from __future__ import annotations

from tilewright.runtime.registry import get_global_func
from tilewright.target import Target


def maybe_warn(target: Target, func_name: str) -> None:
    """An error if a target asks for Thrust and there is no such function."""
    if "thrust" in _libraries(target) and get_global_func(func_name, allow_missing=True) is None:
        raise ValueError(f"the target {target} has -libs=thrust, but no function {func_name} is registered")


def can_use_thrust(target: Target, func_name: str) -> bool:
    """True if a target for NVIDIA's GPUs asks for Thrust and a function of this name is registered."""
    return _can_use(target, func_name, "cuda", "thrust")


def can_use_rocthrust(target: Target, func_name: str) -> bool:
    """True if a target for AMD's GPUs asks for rocThrust and a function of this name is registered."""
    return _can_use(target, func_name, "rocm", "rocthrust") or _can_use(target, func_name, "rocm", "thrust")


def _libraries(target: Target) -> list[str]:
    return [str(name) for name in target.libs]


def _can_use(target: Target, func_name: str, kind: str, library: str) -> bool:
    wanted = target.kind.name in (kind, "vulkan") and library in _libraries(target)
    return wanted and get_global_func(func_name, allow_missing=True) is not None
