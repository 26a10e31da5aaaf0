"""Whether the program of a state computes what the program without any step does."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

import tilewright as tvm
from tilewright.auto_scheduler import ComputeDAG
from tilewright.te.operation import PlaceholderOp


def run(dag: ComputeDAG, state: Any) -> list[np.ndarray[Any, Any]]:
    """The results of a program on numbers that are always the same."""
    schedule, tensors = dag.apply_steps_from_state(state)
    generator = np.random.default_rng(0)
    arrays = []
    for tensor in tensors:
        shape = [int(extent) for extent in tensor.shape]
        values = (
            generator.standard_normal(shape)
            if isinstance(tensor.op, PlaceholderOp)
            else np.full(shape, np.nan)
        )
        arrays.append(tvm.nd.array(values.astype(tensor.dtype)))
    tvm.build(schedule, tensors, "llvm")(*arrays)
    return [
        array.numpy()
        for array, tensor in zip(arrays, tensors, strict=True)
        if not isinstance(tensor.op, PlaceholderOp)
    ]


@lru_cache(maxsize=16)
def plain_results(dag: ComputeDAG) -> list[np.ndarray[Any, Any]]:
    return run(dag, dag.init_state)


def agrees(dag: ComputeDAG, state: Any) -> None:
    """Fails where a state's program gives other results."""
    for found, expected in zip(run(dag, state), plain_results(dag), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
