"""Candidates of both tuners are built for a GPU and measured on it, or on the simulated driver."""

from __future__ import annotations

import pytest
from tests.auto_scheduler.computations import matmul

import tilewright as tvm
from tilewright import auto_scheduler, autotvm, te
from tilewright.te import Schedule, Tensor

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not tvm.cuda(0).exist, reason="there is no NVIDIA GPU here"),
]


@autotvm.template("tests/measure_on_gpu")
def product(size: int) -> tuple[Schedule, list[Tensor]]:
    """A product whose rows are dealt out to blocks, and columns to threads."""
    a, b = (te.placeholder((size, size), name=name) for name in "ab")
    k = te.reduce_axis((0, size), name="k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    schedule = te.create_schedule(c.op)
    config = autotvm.get_config()
    config.define_split("rows", size, num_outputs=2)
    i, j = c.op.axis
    outer, inner = config["rows"].apply(schedule, c, i)
    schedule[c].bind(outer, te.thread_axis("blockIdx.x"))
    schedule[c].bind(inner, te.thread_axis("threadIdx.y"))
    schedule[c].bind(j, te.thread_axis("threadIdx.x"))
    return schedule, [a, b, c]


def test_sketches_are_measured() -> None:
    """The host code that launches a candidate is made for this machine, where the target names no host."""
    key = auto_scheduler.register_workload(matmul).__name__
    task = auto_scheduler.SearchTask(func=key, args=(64, 64, 64), target=tvm.target.Target("cuda"))
    states = auto_scheduler.SketchPolicy(task, verbose=0).sample_initial_population()
    inputs = [auto_scheduler.MeasureInput(task, state) for state in states[:8]]
    context = auto_scheduler.LocalRPCMeasureContext(repeat=2, number=2, timeout=60)
    built = auto_scheduler.LocalBuilder(timeout=60).build(inputs)
    assert [one for one in built if one.error_no == 0], [one.error_msg for one in built]
    for made, result in zip(built, context.runner.run(inputs, built), strict=True):
        if made.error_no == 0:
            assert result.error_no == 0 and min(map(float, result.costs)) > 0, result.error_msg


def test_templates_are_measured() -> None:
    task = autotvm.task.create("tests/measure_on_gpu", args=(32,), target="cuda")
    inputs = [autotvm.MeasureInput(task.target, task, task.config_space.get(number)) for number in range(3)]
    runner = autotvm.LocalRunner(number=2, repeat=2, timeout=60)
    runner.set_task(task)
    built = autotvm.LocalBuilder(timeout=60).build(inputs)
    for result in runner.run(inputs, built):
        assert result.error_no == 0 and min(result.costs) > 0, result.costs
