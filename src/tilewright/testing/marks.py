"""Helpers for tests with pytest: which targets there are, and what a test needs.

pytest is loaded when a helper is used; it comes with ``pip install tilewright[test]``.
"""

from __future__ import annotations

import copy
import copyreg
import functools
import importlib.util
import inspect
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.codegen import what_is_made
from tilewright.contrib import cudnn
from tilewright.runtime.device import Device, device
from tilewright.runtime.external import cublas
from tilewright.runtime.loading import enabled
from tilewright.support.errors import TilewrightError
from tilewright.support.options import targets_for_tests
from tilewright.target.kind import KINDS
from tilewright.target.target import Target


def _gpu_kinds() -> list[str]:
    """The kinds of GPU that code can be made for."""
    return [kind.name for kind in KINDS.values() if "gpu" in kind.default_keys and what_is_made(kind.name)]


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
    names = targets_for_tests() or ("llvm", *_gpu_kinds())
    return [(name, device(Target(name).kind.name, 0)) for name in names if device_enabled(name)]


class Marks(list[Any]):
    """Marks that belong together: a decorator, and what ``pytest.param(..., marks=...)`` and ``pytestmark`` take."""

    def __call__(self, function: Any) -> Any:
        """The test with all of them."""
        for mark in self:
            function = mark(function)
        return function


def _decorate(marks: Sequence[Any], args: tuple[Any, ...]) -> Any:
    """A test with marks, or the marks where no test is given."""
    return Marks(marks)(args[0]) if args else Marks(marks)


MARKS = {
    "gpu": "uses a GPU where there is one",
    "cuda": "needs an NVIDIA GPU",
    "tensorcore": "needs an NVIDIA GPU with tensor cores",
    "opencl": "needs OpenCL",
    "rocm": "needs an AMD GPU",
    "vulkan": "needs Vulkan",
    "metal": "needs an Apple GPU",
    "llvm": "needs LLVM",
    "ethosn": "needs an Ethos-N",
    "hexagon": "needs a Hexagon DSP",
}
"""The marks that the decorators put on tests, for ``pytest -m``, and what each says."""


def register_marks(config: Any) -> None:
    """Tell pytest the marks of the decorators, which it warns of otherwise."""
    for name, meaning in MARKS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def _requirement(
    name: str, available: Callable[[], bool], description: str, *marked: str
) -> Callable[..., Any]:
    """A decorator that skips a test where something is missing, and marks it by these names."""

    def requires(*args: Any) -> Any:
        marks = _pytest().mark
        skip = marks.skipif(not available(), reason=f"{description} is not available")
        return _decorate([*(getattr(marks, one) for one in marked), skip], args)

    requires.__name__ = requires.__qualname__ = name
    requires.__doc__ = f"Skip the test where {description} is not available."
    if marked:
        requires.__doc__ += f" Mark it for ``pytest -m``: {', '.join(marked)}."
    return requires


def _any_gpu() -> bool:
    return any(enabled(kind) for kind in _gpu_kinds())


def _has_tensor_cores() -> bool:
    """True if the first GPU is an NVIDIA one from compute capability 7.0 on."""
    version = device("cuda", 0).compute_version if enabled("cuda") else None
    return version is not None and int(version.partition(".")[0]) >= 7


def _has_cudnn() -> bool:
    return enabled("cuda") and cudnn.exists()


def _has_cublas() -> bool:
    return enabled("cuda") and cublas.is_available()


def uses_gpu(*args: Any) -> Any:
    """The test uses a GPU where there is one, and runs without one too: it is marked ``gpu``, for ``pytest -m gpu``."""
    return _decorate([_pytest().mark.gpu], args)


requires_gpu = _requirement("requires_gpu", _any_gpu, "a GPU", "gpu")
requires_cuda = _requirement("requires_cuda", lambda: enabled("cuda"), "CUDA", "cuda", "gpu")
requires_opencl = _requirement("requires_opencl", lambda: enabled("opencl"), "OpenCL", "opencl", "gpu")
requires_rocm = _requirement("requires_rocm", lambda: enabled("rocm"), "ROCm", "rocm", "gpu")
requires_metal = _requirement("requires_metal", lambda: enabled("metal"), "Metal", "metal", "gpu")
requires_vulkan = _requirement("requires_vulkan", lambda: enabled("vulkan"), "Vulkan", "vulkan", "gpu")
requires_llvm = _requirement("requires_llvm", lambda: enabled("llvm"), "LLVM", "llvm")
requires_hexagon = _requirement("requires_hexagon", lambda: enabled("hexagon"), "Hexagon", "hexagon", "llvm")
requires_nvptx = _requirement("requires_nvptx", lambda: enabled("nvptx"), "NVPTX", "llvm", "gpu")
requires_tensorcore = _requirement(
    "requires_tensorcore", _has_tensor_cores, "a GPU with tensor cores", "tensorcore", "gpu"
)
requires_cudagraph = _requirement("requires_cudagraph", lambda: enabled("cuda"), "CUDA graphs", "cuda", "gpu")
requires_cudnn = _requirement("requires_cudnn", _has_cudnn, "cuDNN", "cuda", "gpu")
requires_cublas = _requirement("requires_cublas", _has_cublas, "cuBLAS", "cuda", "gpu")
requires_micro = _requirement("requires_micro", lambda: False, "the project interface of microcontrollers")
requires_rpc = _requirement("requires_rpc", lambda: enabled("rpc"), "RPC")
requires_ethosn = _requirement("requires_ethosn", lambda: False, "Ethos-N", "ethosn")
requires_cmsisnn = _requirement("requires_cmsisnn", lambda: False, "CMSIS-NN")


def requires_package(*packages: str) -> Any:
    """Skip the test where one of these Python packages is missing."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    return _pytest().mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def target_marks(target: str | Target) -> list[Any]:
    """What a test on this target is marked with: it is skipped where the target cannot run."""
    return [_pytest().mark.skipif(not device_enabled(target), reason=f"{target} cannot run here")]


def parametrize_targets(*args: Any) -> Any:
    """Run a test that takes ``target``, ``dev`` or both on each of these targets that can run, or on every enabled
    one."""

    def apply(function: Any, targets: Sequence[str]) -> Any:
        taken = inspect.signature(function).parameters
        # Without either of its own, the test has a fixture that takes the target.
        names = [name for name in ("target", "dev") if name in taken] or ["target"]
        parameters = []
        for name in targets or [name for name, _ in enabled_targets()]:
            values = {"target": name, "dev": device(Target(name).kind.name, 0)}
            chosen = [values[one] for one in names]
            parameters.append(_pytest().param(*chosen, marks=target_marks(name), id=name))
        return _pytest().mark.parametrize(",".join(names), parameters)(function)

    if len(args) == 1 and callable(args[0]):
        return apply(args[0], ())
    return lambda function: apply(function, args)


def _noted(name: str, args: tuple[Any, ...]) -> Any:
    """A decorator that notes targets on a test, for the plugin."""
    return lambda function: _with_attribute(function, name, {*getattr(function, name, ()), *args})


def _with_attribute(function: Any, name: str, value: Any) -> Any:
    setattr(function, name, value)
    return function


def exclude_targets(*args: str) -> Any:
    """A test that the plugin (``tilewright.testing.plugin``) runs on every enabled target but these."""
    return _noted(EXCLUDED, args)


def known_failing_targets(*args: str) -> Any:
    """A test that the plugin (``tilewright.testing.plugin``) expects to fail on these targets."""
    return _noted(FAILING, args)


EXCLUDED, FAILING, GROUP = "excluded_targets", "known_failing_targets", "parameter_group"
"""The attributes of functions in which these things are noted."""


def parameter(*values: Any, ids: Any = None, by_dict: dict[str, Any] | None = None) -> Any:
    """A fixture with these values, or with those of ``by_dict`` under their names: a test that takes it runs once for
    each."""
    if by_dict is not None:
        if values or ids:
            raise TilewrightError("parameter takes values, or names and values as by_dict, not both")
        ids, values = list(by_dict), tuple(by_dict.values())
    return _pytest().fixture(params=values, ids=ids)(_parameter_value())


def _parameter_value() -> Any:
    """A fixture's function that gives its parameter, in a module or in a class, which is then the first argument."""

    def value(*_instance: Any, request: Any) -> Any:
        return request.param

    return value


def parameters(*value_sets: Sequence[Any], ids: Sequence[str] | None = None) -> list[Any]:
    """Fixtures that vary together: ``x, y = parameters((1, 2), (3, 4))`` runs a test for (1, 2) and for (3, 4). The
    plugin (``tilewright.testing.plugin``) puts them together."""
    group = object()
    return [
        _member(group, position, column, ids) for position, column in enumerate(zip(*value_sets, strict=True))
    ]


def _member(group: object, position: int, column: tuple[Any, ...], ids: Sequence[str] | None) -> Any:
    noted = _with_attribute(_parameter_value(), GROUP, (group, position, column, ids))
    return _pytest().fixture(noted)


def fixture(func: Any = None, *, cache_return_value: bool = False) -> Any:
    """A fixture; with ``cache_return_value`` its value is made once for the same arguments, and copied for each
    test. ``num_tests_use_this_fixture`` of such a fixture holds how many tests are still to use it: the values are
    forgotten after the last one. The plugin counts them."""
    if func is None:
        return lambda function: fixture(function, cache_return_value=cache_return_value)
    if not cache_return_value:
        return _pytest().fixture(func)
    cached = _cached(func)
    made = _pytest().fixture(cached)
    made.num_tests_use_this_fixture = cached.num_tests_use_this_fixture
    return made


def _cached(func: Any) -> Any:
    """The function, called once for arguments that print the same. The instance of a test class, which each test has
    its own of, is not one of them."""
    known: dict[str, Any] = {}
    remaining = [0]
    instances = 1 if next(iter(inspect.signature(func).parameters), "") == "self" else 0

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        named = {name: value for name, value in kwargs.items() if name != "self"}
        key = repr((args[instances:], sorted(named.items())))
        if key not in known:
            value = func(*args, **kwargs)
            _require_copies(value)
            known[key] = value
        made = copy.deepcopy(known[key])
        remaining[0] -= 1
        if remaining[0] == 0:
            known.clear()
        return made

    call.num_tests_use_this_fixture = remaining  # type: ignore[attr-defined]
    return call


def _require_copies(value: Any) -> None:
    """Raise ``TypeError`` for a value whose class does not say how it is copied: tests would share parts of it."""
    kind = type(value)
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    if isinstance(value, (list, tuple, set, frozenset)):
        for element in value:
            _require_copies(element)
        return
    own = [name for base in kind.__mro__ if base is not object for name in vars(base)]
    says = any(name in own for name in ("__deepcopy__", "__reduce__", "__reduce_ex__"))
    if not (says or kind.__module__ == "builtins" or kind in copyreg.dispatch_table or callable(value)):
        raise TypeError(
            f"a fixture that is cached gives {kind.__name__}, which does not say how it is copied: "
            "define __deepcopy__ or __reduce__, or leave out cache_return_value"
        )


def identity_after(x: Any, sleep: float) -> Any:
    """The value, after a while: for tests of timeouts."""
    time.sleep(sleep)
    return x


def terminate_self() -> None:
    """End this process at once: for tests of what survives it."""
    os._exit(-1)
