"""A small task, its records, and a runner that only pretends: for tests of tuners."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import te
from tilewright.autotvm.measure.measure import MeasureInput, MeasureResult, Runner
from tilewright.autotvm.task.task import Task, create, get_config, template
from tilewright.target.target import Target


class DummyRunner(Runner):
    """Gives every candidate a random time."""

    def __init__(self) -> None:
        super().__init__(1, 1)

    def run(
        self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[Any]
    ) -> list[MeasureResult]:
        """A random time for each."""
        return [MeasureResult((np.random.random(),), 0, 0.2, time.time()) for _ in measure_inputs]

    def get_build_kwargs(self) -> dict[str, Any]:
        """Nothing special."""
        return {}


def _matmul(N: int, L: int, M: int, dtype: str) -> Any:
    """A matrix product in tiles."""
    return _tiled(N, L, M, dtype, "tile_x")


def _bad_matmul(N: int, L: int, M: int, dtype: str) -> Any:
    """The product, with a knob that is not defined for a target of which a device is expected."""
    current = Target.current()
    if current is not None and "bad_device" in current.keys:
        return _tiled(N, L, M, dtype, "undefined")
    return _tiled(N, L, M, dtype, "tile_x")


def _tiled(N: int, L: int, M: int, dtype: str, last: str) -> Any:
    a = te.placeholder((N, L), name="A", dtype=dtype)
    b = te.placeholder((L, M), name="B", dtype=dtype)
    k = te.reduce_axis((0, L), name="k")
    c = te.compute((N, M), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    y, x = s[c].op.axis
    k = s[c].op.reduce_axis[0]
    config = get_config()
    config.define_split("tile_y", y, num_outputs=2)
    config.define_split("tile_x", x, num_outputs=2)
    config.define_split("tile_k", k, num_outputs=2)
    yo, yi = config["tile_y"].apply(s, c, y)
    xo, xi = config[last].apply(s, c, x)
    ko, ki = config["tile_k"].apply(s, c, k)
    s[c].reorder(yo, xo, ko, ki, yi, xi)
    return s, [a, b, c]


matmul = template("testing/matmul", _matmul)
bad_matmul = template("testing/bad_matmul", _bad_matmul)


def get_sample_task(n: int = 128) -> tuple[Task, Target]:
    """A product of square matrices, and its target."""
    target = Target("llvm")
    return create("testing/matmul", args=(n, n, n, "float32"), target=target), target


def get_sample_records(n: int) -> list[tuple[MeasureInput, MeasureResult]]:
    """So many records of the sample task: the first is the fastest."""
    task, target = get_sample_task()
    return [
        (
            MeasureInput(target, task, task.config_space.get(number)),
            MeasureResult((number + 1,), 0, number, time.time()),
        )
        for number in range(n)
    ]
