"""Runs tensor expressions: compiled on the CPU with the default schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import tilewright as tvm
from tilewright import te
from tilewright.arith.analyzer import Analyzer
from tilewright.ir.functor import substitute_expr
from tilewright.topi.utils import get_const_int


def evaluate(
    outputs: Any, feeds: Mapping[te.Tensor, np.ndarray], shapes: Sequence[tuple[int, ...]] | None = None
) -> Any:
    """The values of tensors for values of their inputs; ``shapes`` says what the inputs do not determine."""
    single = isinstance(outputs, te.Tensor)
    tensors = [outputs] if single else list(outputs)
    sizes = {
        extent: tvm.tir.const(actual)
        for tensor, value in feeds.items()
        for extent, actual in zip(tensor.shape, np.shape(value), strict=True)
        if isinstance(extent, tvm.tir.Var)
    }

    def known(extent: Any) -> int:
        return get_const_int(Analyzer().simplify(substitute_expr(extent, sizes)))

    schedule = te.create_schedule(list(dict.fromkeys(tensor.op for tensor in tensors)))
    function = tvm.build(schedule, [*feeds, *tensors], "llvm")
    actual = shapes or [tuple(known(extent) for extent in tensor.shape) for tensor in tensors]
    results = [tvm.nd.empty(shape, tensor.dtype) for shape, tensor in zip(actual, tensors, strict=True)]
    function(*[tvm.nd.array(value) for value in feeds.values()], *results)
    arrays = [result.numpy() for result in results]
    return arrays[0] if single else arrays


def inputs(*values: Any, symbolic: bool = False) -> dict[te.Tensor, np.ndarray]:
    """A placeholder for each array; with symbolic dimensions on request."""
    made = {}
    for position, value in enumerate(values):
        array = np.asarray(value)
        shape = [
            te.size_var(f"n{position}_{axis}") if symbolic else extent
            for axis, extent in enumerate(array.shape)
        ]
        made[te.placeholder(shape, str(array.dtype), name=f"input{position}")] = array
    return made


def apply(operator: Any, *values: Any, symbolic: bool = False, **options: Any) -> Any:
    """What an operator makes of arrays."""
    feeds = inputs(*values, symbolic=symbolic)
    return evaluate(operator(*feeds, **options), feeds)
