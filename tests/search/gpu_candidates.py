"""What a candidate of a search for a GPU must hold where there is none to run it: limits, PTX, ptxas, and numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tests.codegen.nvptx.conftest import Kit, find_ptxas

import tilewright as tvm
from tilewright.target import Target
from tilewright.te.operation import PlaceholderOp
from tilewright.tir.analysis import verify_gpu_code
from tilewright.tir.interpreter import interpret

TARGET = Target("cuda -arch=sm_80")
LIMITS = {"max_threads_per_block": 1024, "max_shared_memory_per_block": 49152}


def assert_compiles(schedule: Any, tensors: Any, folder: Path) -> str:
    """A program keeps the limits of a GPU, and its PTX, which is given, is what ptxas takes where it is installed."""
    kit = Kit(folder)
    with TARGET:
        assert verify_gpu_code(tvm.lower(schedule, list(tensors), name="main")["main"], LIMITS)
        ptx = kit.ptx(schedule, tensors)
    assert ".entry" in ptx
    if find_ptxas() is not None:
        kit.assemble(ptx)
    return ptx


def results(schedule: Any, tensors: Any) -> list[Any]:
    """All arrays of a program after a run in the interpreter's threads."""
    generator = np.random.default_rng(0)
    arrays = []
    for tensor in tensors:
        shape = [int(extent) for extent in tensor.shape]
        given = isinstance(tensor.op, PlaceholderOp)
        values = generator.standard_normal(shape) if given else np.full(shape, np.nan)
        arrays.append(values.astype(str(tensor.dtype)))
    with TARGET:
        interpret(Kit(Path()).threaded(schedule, tensors), *arrays)
    return arrays
