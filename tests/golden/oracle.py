"""Programs before and after a pass, run by the interpreters on the same random arguments."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.ir.buffer import Buffer
from tilewright.ir.module import IRModule
from tilewright.relay.infer import infer_module
from tilewright.relay.interpreter import Interpreter
from tilewright.relay.op.shapes import dims
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.tir.function import PrimFunc
from tilewright.tir.interpreter import interpret
from tilewright.tir.transform.keep_functions import is_device_function

SIZE = 7
"""What integer parameters of loop programs are, and so the extents that are named by them."""


def assert_same_results(before: IRModule, after: IRModule, tolerance: float, seed: int = 0) -> None:
    """An AssertionError where the two modules' main functions give different results."""
    for expected, found in zip(_results(before, seed), _results(after, seed), strict=True):
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
        assert np.isfinite(expected.astype("float64")).all(), "the arguments give no numbers to compare"
        np.testing.assert_allclose(
            found.astype("float64"), expected.astype("float64"), rtol=tolerance, atol=tolerance
        )


def _results(module: IRModule, seed: int) -> list[np.ndarray]:
    main = module["main"]
    return _run_loops(module, main, seed) if isinstance(main, PrimFunc) else _run_graph(module, seed)


def _run_graph(module: IRModule, seed: int) -> list[np.ndarray]:
    module = infer_module(module)
    main: relay.Function = module["main"]
    arguments = []
    for parameter in main.params:
        kind = parameter.checked_type
        arguments.append(_array(dims(kind), kind.dtype, parameter.name_hint, seed))
    return _flat(Interpreter(module).run(main, arguments))


def _flat(result: Any) -> list[np.ndarray]:
    return [one for part in result for one in _flat(part)] if isinstance(result, tuple) else [result]


def _run_loops(module: IRModule, main: PrimFunc, seed: int) -> list[np.ndarray]:
    """Every array that the function is given, as it leaves it."""
    arguments: list[Any] = []
    for parameter in main.params:
        buffer = main.buffer_map.get(parameter)
        if buffer is None:
            assert parameter.dtype.is_integral, "parameters of golden programs are buffers and integers"
            arguments.append(SIZE)
        else:
            arguments.append(_array(_extents(buffer), buffer.dtype, buffer.name, seed))
    interpret(main, *arguments, module=module, functions=_kernels(module))
    return [one for one in arguments if isinstance(one, np.ndarray)]


def _kernels(module: IRModule) -> dict[str, Callable[..., Any]]:
    """The kernels that the host launches. The extents of the launch, which come last, stand in the kernel as well."""

    def launcher(kernel: PrimFunc) -> Callable[..., Any]:
        return lambda *arguments: interpret(kernel, *arguments[: len(kernel.params)])

    return {
        variable.name_hint: launcher(function)
        for variable, function in module.functions.items()
        if isinstance(function, PrimFunc) and is_device_function(function)
    }


def _extents(buffer: Buffer) -> tuple[int, ...]:
    return tuple(int(getattr(extent, "value", SIZE)) for extent in buffer.shape)


def _array(shape: tuple[int, ...], dtype: Any, name: str, seed: int) -> np.ndarray:
    """Numbers around zero, positive ones for a variance, and small integers. They depend on the name, so that a pass
    may drop or reorder parameters."""
    generator = np.random.default_rng([seed, zlib.crc32(name.encode())])
    values = generator.standard_normal(shape)
    if "variance" in name:
        values = np.abs(values) + 0.5
    if str(dtype) == "bool":
        values = values > 0
    elif not dtype.is_float:
        values = generator.integers(-8, 8, shape)
    return np.asarray(values).astype(numpy_dtype(dtype))
