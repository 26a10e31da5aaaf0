"""A script gives the same numbers in Python, in the interpreter, as machine code, and printed as a script again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import tilewright as tvm
from tilewright import te
from tilewright.tir.interpreter import interpret

UNTOUCHED = 77
"""What outputs hold before a run: a script that leaves an element alone would show it."""


def sample(tensor: te.Tensor, sizes: Mapping[tvm.tir.Var, int], seed: int = 0) -> np.ndarray:
    """Values for an input."""
    analyzer = tvm.arith.Analyzer()
    shape = [
        int(analyzer.simplify(tvm.tir.stmt_functor.substitute(extent, sizes))) for extent in tensor.shape
    ]
    values = np.random.default_rng(seed).standard_normal(shape) * 4
    return values.astype(tensor.dtype)


def close(found: Any, expected: Any) -> None:
    """Equal but for the last digits."""
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def as_list(value: Any) -> list[Any]:
    """One or several results as a list."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def run_lowered(
    schedule: te.Schedule, parameters: Sequence[Any], values: Sequence[Any], results: Sequence[np.ndarray]
) -> None:
    """Interpreter and machine code give these results."""
    module = tvm.lower(schedule, parameters)
    compiled = tvm.build(schedule, parameters, "llvm")
    for run in (lambda *given: interpret(module["main"], *given), compiled):
        outputs = [np.full(result.shape, UNTOUCHED, result.dtype) for result in results]
        run(*[np.copy(value) if isinstance(value, np.ndarray) else value for value in values], *outputs)
        for output, result in zip(outputs, results, strict=True):
            close(output, result)


def check_everywhere(
    function: Any,
    arguments: Sequence[Any],
    sizes: Mapping[tvm.tir.Var, int] | None = None,
    schedule: Any = None,
) -> list[np.ndarray]:
    """Run a script in the four ways and compare; ``schedule`` changes a schedule given the first output."""
    sizes = dict(sizes or {})
    outputs = as_list(function(*arguments))
    made = te.create_schedule(outputs[0].op)
    if schedule is not None:
        schedule(made, outputs[0])
    emulated: list[Any] = []
    parameters: list[Any] = []
    values: list[Any] = []
    for position, argument in enumerate(arguments):
        if isinstance(argument, te.Tensor):
            emulated.append(sample(argument, sizes, position))
        elif isinstance(argument, tvm.tir.Var):
            emulated.append(sizes[argument])
        else:
            emulated.append(argument)
            continue
        parameters.append(argument)
        values.append(np.copy(emulated[-1]) if isinstance(argument, te.Tensor) else emulated[-1])
    results = as_list(function(*emulated))
    for output, result in zip(outputs, results, strict=True):
        assert result.dtype == output.dtype
    run_lowered(made, [*parameters, *outputs], values, results)
    printed = te.hybrid.build(made, parameters, outputs)
    again = as_list(
        printed(*[np.copy(value) if isinstance(value, np.ndarray) else value for value in values])
    )
    for found, result in zip(again, results, strict=True):
        close(found, result)
    return results
