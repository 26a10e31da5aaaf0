"""Schedules as JSON."""

import json
import pickle

import pytest

import tilewright as tvm
from tilewright import te
from tilewright.ir.serialize import SerializationError, load_json, save_json


def product():
    a = te.placeholder((64, 64), name="A")
    k = te.reduce_axis((0, 64), "k")
    b = te.compute((64, 64), lambda i, j: te.sum(a[i, k] * a[k, j], axis=k), name="B")
    return a, b


def scheduled(b):
    """Every kind of argument: axes, results of steps, stages, tensors, lists of them, threads and numbers."""
    schedule = te.create_schedule(b.op)
    local = schedule.cache_write(b, "local")
    shared = schedule.cache_read(b.op.input_tensors[0], "shared", [local])
    outer_i, outer_j, _, _ = schedule[b].tile(b.op.axis[0], b.op.axis[1], 8, 8)
    schedule[local].compute_at(schedule[b], outer_j)
    schedule[shared].compute_at(schedule[local], local.op.reduce_axis[0])
    schedule[b].pragma(outer_i, "auto_unroll_max_step", 16)
    schedule[b].bind(schedule[b].fuse(outer_i, outer_j), te.thread_axis("blockIdx.x"))
    schedule[shared].storage_align(schedule[shared].op.axis[0], 32, 0)
    return schedule


def lowered(schedule):
    """The loops of a schedule of ``product``, whatever tensors it is of."""
    origins = {stage.origin_op.name: stage.origin_op.output(0) for stage in schedule.stages}
    return tvm.lower(schedule, [origins["A"], origins["B"]])


@pytest.mark.parametrize(
    "again", [lambda s: load_json(save_json(s)), lambda s: pickle.loads(pickle.dumps(s))]
)
def test_a_schedule_is_read_as_it_was_written(again):
    """The same steps, the same loops, and operations of its own."""
    a, b = product()
    schedule = scheduled(b)
    found = again(schedule)
    assert isinstance(found, te.schedule.Schedule)
    assert found.trace.as_python() == schedule.trace.as_python()
    assert str(found.outputs[0].body) == str(schedule.outputs[0].body)
    assert found.outputs[0] is not schedule.outputs[0]
    tvm.ir.assert_structural_equal(lowered(found), lowered(schedule))


def test_a_schedule_without_steps():
    """As ``te.create_schedule`` makes it."""
    _, b = product()
    found = load_json(save_json(te.create_schedule(b.op)))
    assert len(found.trace) == 0 and [stage.op.name for stage in found.stages] == ["A", "B"]


def test_only_steps_of_schedules_are_taken():
    """A text that names something else is an error, and nothing is called."""
    _, b = product()
    schedule = te.create_schedule(b.op)
    schedule[b].parallel(b.op.axis[0])
    document = json.loads(save_json(schedule))
    for entry in document["nodes"]:
        if entry.get("value") == "parallel":
            entry["value"] = "__init__"
    with pytest.raises(SerializationError, match="is not a step of a schedule"):
        load_json(json.dumps(document))
