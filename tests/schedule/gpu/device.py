"""Runs a schedule for a GPU in the interpreter's threads, as the device's code generator would get it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tilewright as tvm
from tilewright.ir.transform import Sequential
from tilewright.schedule import schedule
from tilewright.te import Tensor
from tilewright.tir.analysis import verify_memory
from tilewright.tir.interpreter import interpret
from tilewright.tir.transform.bind_target import BindTarget
from tilewright.tir.transform.lower_thread_allreduce import LowerThreadAllreduce
from tilewright.tir.transform.software_pipeline import SoftwarePipeline
from tilewright.tir.transform.thread_sync import ThreadSync
from tilewright.tir.transform.verify_memory import VerifyMemory

CUDA = tvm.target.Target("cuda -arch=sm_80")


def device_function(inputs: Sequence[Tensor], outputs: Sequence[Tensor], target: Any = CUDA) -> Any:
    """The scheduled function with its barriers and exchanges between threads."""
    module = tvm.lower(schedule(list(outputs), target), [*inputs, *outputs], name="main")
    passes = [
        BindTarget(target),
        VerifyMemory(),
        SoftwarePipeline(),
        ThreadSync("shared"),
        LowerThreadAllreduce(),
    ]
    made = Sequential(passes)(module)["main"]
    assert verify_memory(made)
    return made


def run(inputs: Sequence[Tensor], outputs: Sequence[Tensor], *arrays: Any, target: Any = CUDA) -> list[Any]:
    """The results of a schedule on arrays."""
    function = device_function(inputs, outputs, target)
    results = [np.zeros([int(extent) for extent in one.shape], str(one.dtype)) for one in outputs]
    interpret(function, *arrays, *results)
    return results


def random_arrays(inputs: Sequence[Tensor], seed: int = 1) -> list[Any]:
    """Arrays for placeholders: small numbers, so that sums in sixteen bits stay exact enough."""
    random = np.random.default_rng(seed)
    made = []
    for one in inputs:
        shape = [int(extent) for extent in one.shape]
        if one.dtype.is_integral:
            made.append(random.integers(0, 5, shape).astype(str(one.dtype)))
        else:
            made.append(random.standard_normal(shape).astype(str(one.dtype)))
    return made
