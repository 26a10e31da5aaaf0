"""Helpers for tests with pytest: which targets there are, and what a test needs.

pytest is loaded when a helper is used; it comes with ``pip install tilewright[test]``.
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.runtime.device import Device, device
from tilewright.runtime.loading import enabled
from tilewright.support.errors import TilewrightError
from tilewright.support.options import targets_for_tests
from tilewright.target.target import Target

_GPU_KINDS = ("cuda", "opencl", "rocm", "metal", "vulkan", "webgpu")


def _pytest() -> Any:
    if importlib.util.find_spec("pytest") is None:
        raise TilewrightError("this needs pytest: pip install tilewright[test]")
    import pytest

    return pytest


def device_enabled(target: str | Target) -> bool:
    """True if code for the target can run in this process."""
    return enabled(str(target))


def enabled_targets() -> list[tuple[str, Device]]:
    """The targets that tests run on, with their first device: those of ``TVM_TEST_TARGETS``, or all that can run."""
    names = targets_for_tests() or ("llvm", *_GPU_KINDS)
    return [(name, device(Target(name).kind.name, 0)) for name in names if device_enabled(name)]


def _decorate(marks: Sequence[Any], args: tuple[Any, ...]) -> Any:
    """Marks on a test, or as a decorator where no test is given."""

    def apply(function: Any) -> Any:
        for mark in marks:
            function = mark(function)
        return function

    return apply(args[0]) if args else apply


def _requirement(name: str, available: Callable[[], bool], description: str) -> Callable[..., Any]:
    """A decorator that skips a test where something is missing."""

    def requires(*args: Any) -> Any:
        mark = _pytest().mark.skipif(not available(), reason=f"{description} is not available")
        return _decorate([mark], args)

    requires.__name__ = requires.__qualname__ = name
    requires.__doc__ = f"Skip the test where {description} is not available."
    return requires


def _any_gpu() -> bool:
    return any(enabled(kind) for kind in _GPU_KINDS)


def uses_gpu(*args: Any) -> Any:
    """The test uses a GPU where there is one, and runs without one too."""
    return _decorate([], args)


requires_gpu = _requirement("requires_gpu", _any_gpu, "a GPU")
requires_cuda = _requirement("requires_cuda", lambda: enabled("cuda"), "CUDA")
requires_opencl = _requirement("requires_opencl", lambda: enabled("opencl"), "OpenCL")
requires_rocm = _requirement("requires_rocm", lambda: enabled("rocm"), "ROCm")
requires_metal = _requirement("requires_metal", lambda: enabled("metal"), "Metal")
requires_vulkan = _requirement("requires_vulkan", lambda: enabled("vulkan"), "Vulkan")
requires_llvm = _requirement("requires_llvm", lambda: enabled("llvm"), "LLVM")


def requires_package(*packages: str) -> Any:
    """Skip the test where one of these Python packages is missing."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    return _pytest().mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def parametrize_targets(*args: Any) -> Any:
    """Run a test that takes ``target`` and ``dev`` on each of these targets that can run, or on every enabled one."""

    def apply(function: Any, targets: Sequence[str]) -> Any:
        chosen = targets or [name for name, _ in enabled_targets()]
        pytest = _pytest()
        parameters = [
            pytest.param(
                name,
                device(Target(name).kind.name, 0),
                marks=[] if device_enabled(name) else [pytest.mark.skip(reason=f"{name} cannot run here")],
                id=name,
            )
            for name in chosen
        ]
        return pytest.mark.parametrize(("target", "dev"), parameters)(function)

    if len(args) == 1 and callable(args[0]):
        return apply(args[0], ())
    return lambda function: apply(function, args)


def parameter(*values: Any, ids: Any = None) -> Any:
    """A fixture with these values: a test that takes it runs once for each."""
    return _pytest().fixture(params=values, ids=ids)(lambda request: request.param)


def fixture(func: Any = None, *, cache_return_value: bool = False) -> Any:
    """A fixture; with ``cache_return_value`` it is made once for a session."""
    scope = "session" if cache_return_value else "function"
    made = _pytest().fixture(scope=scope)
    return made if func is None else made(func)


def identity_after(x: Any, sleep: float) -> Any:
    """The value, after a while: for tests of timeouts."""
    time.sleep(sleep)
    return x


def terminate_self() -> None:
    """End this process at once: for tests of what survives it."""
    os._exit(-1)
