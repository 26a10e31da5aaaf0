"""Graphs with tensors on several devices: the host and two guarded ones, joined by copies."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests.runtime.device.guarded import Code, counts, guarded, set_memory
from tests.threads import in_threads

from tilewright.contrib import graph_executor
from tilewright.contrib.debugger import debug_executor
from tilewright.runtime import (
    Device,
    GraphExecutorFactory,
    Module,
    PackedFunc,
    convert_to_tvm_func,
    cpu,
    save_param_dict,
)
from tilewright.runtime import ndarray as nd
from tilewright.runtime.graph_executor import GraphExecutor

HOST, GUARDED = 1, 12
X = np.arange(6, dtype="float32").reshape(2, 3)


def make_graph(**changes: Any) -> str:
    """y = ((x + 1 on the device) + w + 1, the sum on the host) + 1 on the device: two ways across."""

    def operator(name: str, function: str, *inputs: int) -> dict[str, Any]:
        return {
            "op": "tvm_op",
            "name": name,
            "attrs": {"func_name": function, "num_outputs": "1", "flatten_data": "0"},
            "inputs": [[node, 0, 0] for node in inputs],
        }

    graph: dict[str, Any] = {
        "nodes": [
            {"op": "null", "name": "x", "inputs": []},
            {"op": "null", "name": "w", "inputs": []},
            operator("first", "add_one", 0),
            operator("to_host", "__copy", 2),
            operator("sum", "add_on_host", 3, 1),
            operator("to_device", "__copy", 4),
            operator("last", "add_one", 5),
        ],
        "arg_nodes": [0, 1],
        "heads": [[6, 0, 0], [4, 0, 0]],
        "node_row_ptr": list(range(8)),
        "attrs": {
            "shape": ["list_shape", [[2, 3]] * 7],
            "dltype": ["list_str", ["float32"] * 7],
            "storage_id": ["list_int", [0, 1, 2, 3, 4, 5, 2]],
            "device_index": ["list_int", [GUARDED, HOST, GUARDED, HOST, HOST, GUARDED, GUARDED]],
        },
    }
    graph["attrs"].update(changes)
    return json.dumps(graph)


class Kernels(Module):
    """The functions of the graph: one is launched on the device of its arguments, the other reads host memory."""

    def __init__(self, code: Code) -> None:
        super().__init__("kernels", ("add_one", "add_on_host"))
        self._code = code

    def _add_one(self, x: Any, out: Any) -> None:
        self._code.launch("add_one", x, out, x.size)

    def _add_on_host(self, x: Any, w: Any, out: Any) -> None:
        np.from_dlpack(out)[:] = np.from_dlpack(x) + np.from_dlpack(w) + 1

    def _find(self, name: str) -> PackedFunc | None:
        found = {"add_one": self._add_one, "add_on_host": self._add_on_host}.get(name)
        return convert_to_tvm_func(found) if found is not None else None


def create_model(device: Device, code: Code) -> graph_executor.GraphModule:
    """The model on the host and the first guarded device."""
    return graph_executor.create(make_graph(), Kernels(code), [cpu(), device])


def test_runs_on_two_devices(device: Device, code: Code) -> None:
    """Each tensor is on its device, inputs that nobody set are zero, and the result is right run after run."""
    model = create_model(device, code)
    model.run()
    np.testing.assert_array_equal(model.get_output(0).numpy(), np.full((2, 3), 3))
    for factor in range(1, 4):
        model.set_input("x", X * factor)
        model.set_input("w", X)
        model.run()
        np.testing.assert_array_equal(model.get_output(0).numpy(), X * factor + X + 3)
        np.testing.assert_array_equal(np.from_dlpack(model.get_output(1)), X * factor + X + 2)
    assert [model.get_output(0).device, model.get_output(1).device] == [device, cpu()]
    assert [model.get_input("x").device, model.get_input("w").device] == [device, cpu()]
    np.testing.assert_array_equal(model.debug_get_output("first").numpy(), X * 3 + 1)
    out = nd.empty((2, 3))
    model.run()
    np.testing.assert_array_equal(model.get_output(0, out).numpy(), X * 3 + X + 3)


def test_waits_only_where_the_host_reads(device: Device, code: Code) -> None:
    """A run waits for the copies to and from the host; its last kernel waits in the queue until its result is read."""
    model = create_model(device, code)
    model.set_input("x", X)
    before = counts(device)
    model.run()
    assert counts(device).waits - before.waits == 2
    assert counts(device).launches - before.launches == 2
    model.get_output(0).numpy()
    assert counts(device).waits - before.waits == 3


def test_inputs(device: Device, code: Code) -> None:
    """Inputs come from any device; in place, from their own alone."""
    model = create_model(device, code)
    model.set_input("x", nd.array(X, guarded(1)))
    model.set_input("w", nd.array(X * 2, device))
    model.run()
    np.testing.assert_array_equal(model.get_output(0).numpy(), X * 3 + 3)
    shared = nd.array(X * 10, device)
    model.set_input_zero_copy("x", shared)
    assert model.get_input("x").memory_range() == shared.memory_range()
    model.run()
    np.testing.assert_array_equal(model.get_output(0).numpy(), X * 12 + 3)
    shared.copyfrom(X * 20)
    model.run()
    np.testing.assert_array_equal(model.get_output(0).numpy(), X * 22 + 3)
    for wrong in (nd.array(X), nd.array(X, guarded(1))):
        with pytest.raises(ValueError, match=r"only if it is compact, on guarded\(0\) and aligned"):
            model.set_input_zero_copy("x", wrong)


def test_parameters(device: Device, code: Code) -> None:
    """Saved parameters go to their devices; another executor may share them there."""
    params = save_param_dict({"x": X, "w": X * 2})
    model = graph_executor.create(make_graph(), Kernels(code), [device, cpu()])
    model.load_params(params)
    model.run()
    np.testing.assert_array_equal(model.get_output(0).numpy(), X * 3 + 3)
    other = graph_executor.create(make_graph(), Kernels(code), [cpu(), device])
    other.share_params(model, params)
    assert other.get_input("x").memory_range() == model.get_input("x").memory_range()
    del model
    other.run()
    np.testing.assert_array_equal(other.get_output(0).numpy(), X * 3 + 3)


def test_factory(device: Device, code: Code) -> None:
    """Executors of one model share parameters on the host and have their own on a device."""
    kernels = Kernels(code)
    factory = GraphExecutorFactory(make_graph(), {"x": nd.array(X), "w": nd.array(X * 2)})
    kernels.import_module(factory)
    made = [graph_executor.GraphModule(kernels["default"](cpu(), device)) for _ in range(2)]
    for model in made:
        model.run()
        np.testing.assert_array_equal(model.get_output(0).numpy(), X * 3 + 3)
    assert made[0].get_input("w").memory_range() == made[1].get_input("w").memory_range()
    assert made[0].get_input("x").memory_range() != made[1].get_input("x").memory_range()


def test_all_on_one_device(device: Device, code: Code) -> None:
    """A graph that names no devices is on the first of the executor's, whichever that is."""
    graph = json.loads(make_graph())
    del graph["attrs"]["device_index"]
    graph["nodes"][4]["attrs"]["func_name"] = "add_one"
    graph["nodes"][4]["inputs"] = graph["nodes"][4]["inputs"][:1]
    executor = GraphExecutor(json.dumps(graph), Kernels(code), guarded(1))
    assert executor.get_output(0).device == guarded(1) and executor.input_device(0) == guarded(1)
    first = GraphExecutor(json.dumps(graph), Kernels(code), [device, cpu()])
    first.set_input("x", X)
    first.run()
    np.testing.assert_array_equal(first.get_output(0).numpy(), X + 3)
    for begins, seconds in first.run_timed(repeat=2):  # by the device's events
        assert [second > 0 for second in seconds] == [node["op"] != "null" for node in graph["nodes"]]
        np.testing.assert_allclose(begins, np.concatenate([[0], np.cumsum(seconds)[:-1]]))


def test_planned_offsets_count_in_the_arena_of_their_device(device: Device, code: Code) -> None:
    """Storages of different devices may have the same offset, and each arena is as large as its own need."""
    offsets = ["list_int", [0, 0, 0, 0, 64, 64]]
    executor = GraphExecutor(make_graph(storage_offset=offsets), Kernels(code), [cpu(), device])
    assert executor.arena_bytes == 128 + 128
    executor.set_input("x", X)
    executor.run()
    np.testing.assert_array_equal(executor.get_output(0).numpy(), X + 3)


def test_measurements(device: Device, code: Code) -> None:
    """Each node's time is its device's; a run is measured by the device's events."""
    model = create_model(device, code)
    runs = model.module.run_timed(repeat=2)
    for begins, seconds in runs:
        assert all(second > 0 for second in seconds[2:]) and begins == sorted(begins)
    assert model.module.time_node(6, number=3, repeat=2).min > 0
    assert model.benchmark(device, repeat=2, number=3).min > 0
    assert model.benchmark(cpu(), repeat=2, number=3, end_to_end=True).min > 0


def test_debugger(device: Device, code: Code, tmp_path: Any) -> None:
    """The debugging executor shows outputs of all devices."""
    model = debug_executor.create(make_graph(), Kernels(code), [cpu(), device], str(tmp_path))
    model.run(x=X, w=X)
    np.testing.assert_array_equal(model.get_output(0).numpy(), X * 2 + 3)
    model.exit()


def test_refused(device: Device, code: Code) -> None:
    """What a graph lacks, and what it cannot mean, is said when it is created; nothing is lost on the way."""
    kernels = Kernels(code)

    def create(devices: list[Device] | None = None, **changes: Any) -> None:
        GraphExecutor(make_graph(**changes), kernels, [cpu(), device] if devices is None else devices)

    with pytest.raises(ValueError, match="on a device of the kind guarded, and the executor was given none"):
        create([cpu()])
    with pytest.raises(ValueError, match="on a device of the kind cpu, and the executor was given none"):
        create([device])
    with pytest.raises(RuntimeError, match=r"metal\(0\) cannot be used: this runtime has no driver"):
        create([cpu(), device, Device(8)])
    with pytest.raises(ValueError, match="does not have a device for each tensor"):
        create(device_index=["list_int", [1, 1]])
    with pytest.raises(ValueError, match="a storage has tensors on different devices"):
        create(storage_id=["list_int", [0, 1, 2, 2, 4, 5, 2]])
    with pytest.raises(ValueError, match="impossible device"):
        create(device_index=["list_int", [1, 1, 1, 1, 1, 1, -1]])
    graph = json.loads(make_graph())
    graph["nodes"][3]["inputs"] = [[2, 0, 0], [1, 0, 0]]
    with pytest.raises(ValueError, match="a node that copies has not one input and one output"):
        GraphExecutor(json.dumps(graph), kernels, [cpu(), device])
    set_memory(device, 4096)
    try:
        with pytest.raises(MemoryError, match=r"guarded\(0\) has no memory for"):
            create(shape=["list_shape", [[100, 100]] * 7])
    finally:
        set_memory(device, 0)


def test_copies_must_fit(device: Device, code: Code) -> None:
    """A copy between tensors of different shapes is an error of the run."""
    graph = make_graph(shape=["list_shape", [[2, 3]] * 3 + [[6]] + [[2, 3]] * 3])
    with pytest.raises(ValueError, match="cannot copy between tensors of different shapes"):
        GraphExecutor(graph, Kernels(code), [cpu(), device]).run()


def test_many_executors_at_once(device: Device, code: Code) -> None:
    """Threads with an executor each get their own results."""
    failures: list[int] = []

    def work(number: int) -> None:
        model = graph_executor.create(make_graph(), Kernels(code), [cpu(), device])
        for turn in range(10):
            model.run(x=X * number, w=X * turn)
            if not np.array_equal(model.get_output(0).numpy(), X * number + X * turn + 3):
                failures.append(number)

    in_threads(work, range(6))
    assert failures == []
