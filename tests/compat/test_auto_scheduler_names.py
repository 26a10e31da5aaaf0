"""What TVM's AutoScheduler has beside measuring: contexts of states, features, cost models, tasks of models."""

from __future__ import annotations

import ctypes
import importlib
import logging
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.auto_scheduler.computations import matmul, matmul_relu

import tilewright as tvm
from tilewright import auto_scheduler, relay, te
from tilewright.auto_scheduler import dispatcher, feature, relay_integration
from tilewright.auto_scheduler.cost_model import cost_model
from tilewright.auto_scheduler.measure import MeasureInput, MeasureResult
from tilewright.auto_scheduler.utils import decode_workload_key
from tilewright.support.errors import TilewrightError

LLVM = tvm.target.Target("llvm")


@auto_scheduler.register_workload
def product_of_names(rows: int, columns: int, depth: int) -> list[te.Tensor]:
    """A product of matrices, then two elementwise steps."""
    return matmul_relu(rows, columns, depth)


@pytest.fixture(scope="module")
def task() -> auto_scheduler.SearchTask:
    return auto_scheduler.SearchTask(func="product_of_names", args=(8, 16, 12), target=LLVM)


def state_of(task: auto_scheduler.SearchTask, *lengths: int) -> Any:
    """The program with the rows of its last stage split."""
    state = task.compute_dag.get_init_state()
    last = len(state.stages) - 1
    for length in lengths:
        state.split(last, state.stages[last].iters[0], [length])
    return state


def result(seconds: float, error: int = 0) -> MeasureResult:
    return MeasureResult([seconds], error, "" if error == 0 else "failed", 0.1, 1.0)


def test_contexts_of_states(task: auto_scheduler.SearchTask, caplog: pytest.LogCaptureFixture) -> None:
    """The fallback has the states that it was given, and says once for each computation that it has none."""
    key, dag, state = task.workload_key, task.compute_dag, state_of(task, 4)
    context = dispatcher.FallbackContext()
    with caplog.at_level(logging.INFO, "auto_scheduler"):
        assert context.query(LLVM, key, False, dag, "product") is None and not caplog.records
        for _ in range(2):
            assert context.query(LLVM, key, True, dag, "product") is None
    assert [one.getMessage() for one in caplog.records] == [
        f"product has no tuned schedule for {LLVM}; the constructed one is used"
    ]
    context.update("llvm", key, state)
    assert context.query(LLVM, key, True, dag, "product") is state
    assert context.query("cuda", key, False, dag, "product") is None


def test_contexts_of_ones_own(task: auto_scheduler.SearchTask) -> None:
    """One that says nothing about ``update`` cannot be given states; contexts around it are asked after it."""
    state = state_of(task, 2)

    class Only(dispatcher.DispatchContext):
        def _query_inside(self, target: Any, workload_key: str, func_name: str) -> Any:
            return state if func_name == "mine" else None

    outer = dispatcher.FallbackContext()
    outer.update(LLVM, task.workload_key, "outer")
    with pytest.raises(TilewrightError, match="Only cannot be given states"):
        Only().update(LLVM, task.workload_key, state)
    with outer, Only() as inner:
        asked = (LLVM, task.workload_key, True, task.compute_dag)
        assert inner.query(*asked, "mine") is state and inner.query(*asked, "theirs") == "outer"


def test_entries_of_tables(task: auto_scheduler.SearchTask) -> None:
    """The part of a table of records for a target and a computation is made where it is not there, and found again."""
    table: dict[str, Any] = {}
    entry, name, arguments = dispatcher.ApplyHistoryBest.get_workload_entry(table, "llvm", task.workload_key)
    assert (name, arguments) == decode_workload_key(task.workload_key) and arguments == (8, 16, 12)
    entry[arguments] = "state"
    again = dispatcher.ApplyHistoryBest([]).get_workload_entry(table, "llvm", task.workload_key)[0]
    assert again is entry and table == {"llvm": {name: {(8, 16, 12): "state"}}}
    assert dispatcher.ApplyHistoryBest.get_workload_entry(table, "cuda", task.workload_key)[0] == {}


def same_features(found: list[np.ndarray], wanted: list[np.ndarray]) -> bool:
    return len(found) == len(wanted) and all(map(np.array_equal, found, wanted))


def test_features(task: auto_scheduler.SearchTask, tmp_path: Path) -> None:
    """A row of named numbers for each tensor that a state writes, whether it comes from states, from measurements or
    from a file; throughputs are parts of the best of a task."""
    states = [state_of(task), state_of(task, 4), state_of(task, 4, 2)]
    rows = feature.get_per_store_features_from_states(states, task)
    names = feature.get_per_store_feature_names()
    assert len(names) == len(set(names)) and all(one.shape == (3, len(names)) for one in rows)
    assert not np.array_equal(rows[0], rows[1])
    (few,) = feature.get_per_store_features_from_states(states[:1], task, max_n_bufs=2)
    assert few.shape == (len(rows[0]), len(feature.get_per_store_feature_names(2))) and len(few[0]) < len(
        names
    )

    other = auto_scheduler.SearchTask(func="product_of_names", args=(8, 8, 12), target=LLVM)
    inputs = [MeasureInput(task, one) for one in states] + [MeasureInput(other, state_of(other))]
    results = [result(0.2), result(0.1), result(0.5, error=4), result(3.0)]
    found, throughputs, tasks = feature.get_per_store_features_from_measure_pairs(inputs, results)
    assert same_features(found[:3], rows)
    np.testing.assert_allclose(throughputs, [0.5, 1, 0, 1], rtol=1e-6)
    assert tasks.tolist() == [0, 0, 0, 1]
    skipped, throughputs, _ = feature.get_per_store_features_from_measure_pairs(inputs, results, 2)
    assert [len(one) for one in skipped[:2]] == [0, 0] and same_features(skipped[2:], found[2:])
    np.testing.assert_allclose(throughputs, [0.5, 1, 0, 1], rtol=1e-6)

    log = tmp_path / "records.json"
    auto_scheduler.save_records(str(log), inputs, results)
    read, speeds, numbers = feature.get_per_store_features_from_file(str(log), 2)
    assert same_features(read, found[:2]) and numbers.tolist() == [0, 0]
    np.testing.assert_allclose(speeds, [0.5, 1], rtol=1e-6)


def test_packed_features() -> None:
    """TVM's form in bytes: sizes, then for each program the number of its rows and their values."""
    rows = np.arange(6, dtype="float32").reshape(2, 3)
    packed = struct.pack("i4i", 2, 7, 0, 2, 2)
    packed += struct.pack("7f", 2.0, *rows.reshape(-1)) + struct.pack("2f2i", 1.0, 0.25, 0, 1)
    for given in (packed, bytearray(packed)):
        features, throughputs, tasks = feature.unpack_feature(given)
        np.testing.assert_array_equal(features[0], rows)
        assert len(features) == 2 and len(features[1]) == 0
        assert throughputs.tolist() == [1.0, 0.25] and tasks.tolist() == [0, 1]


def test_cost_models_of_ones_own(task: auto_scheduler.SearchTask) -> None:
    """A model scores states, and may learn; a search takes what it scores highest. What it does not say is an error."""
    states = [state_of(task), state_of(task, 4)]

    class Counts(cost_model.PythonBasedModel):
        """The more steps, the better."""

        def __init__(self) -> None:
            super().__init__()
            self.learnt = 0

        def update(self, inputs: Any, results: Any) -> None:
            super().update(inputs, results)
            self.learnt += len(inputs)

        def predict(self, task: Any, states: Any) -> list[float]:
            return [float(len(one.state_object.transform_steps)) for one in states]

    model = Counts()
    assert isinstance(model, cost_model.CostModel) and not model.is_random
    assert model.predict(task, states) == [0.0, 1.0]
    model.update([MeasureInput(task, states[0])], [result(0.1)])
    assert model.learnt == 1
    with pytest.raises(NotImplementedError, match="Counts has no method predict_stages"):
        model.predict_stages(task, states)
    small = {"evolutionary_search_population": 8, "sample_init_min_population": 4}
    policy = auto_scheduler.SketchPolicy(task, model, params=small, seed=1, verbose=0)
    start = policy.sample_initial_population()
    best = policy.evolutionary_search(start, 3)
    most = max(model.predict(task, start))
    assert max(model.predict(task, best)) >= most

    plain = cost_model.PythonBasedModel()
    with pytest.raises(NotImplementedError, match="PythonBasedModel has no method predict"):
        plain.predict(task, states)
    for call in (
        lambda: cost_model.CostModel().update([], []),
        lambda: cost_model.CostModel().predict(task, []),
    ):
        with pytest.raises(NotImplementedError, match="CostModel has no method"):
            call()


def test_random_numbers_in_memory() -> None:
    """An array, or memory by a pointer or an address, is filled with numbers between 0 and 1, and nothing behind it."""
    array = np.full(100, -1, "float32")
    memory = (ctypes.c_float * 100)(*[-1.0] * 100)
    cost_model.random_fill_float(60, array)
    cost_model.random_fill_float(60, ctypes.cast(memory, ctypes.c_void_p))
    for found in (array, np.array(memory)):
        assert (found[:60] >= 0).all() and (found[:60] < 1).all() and len(set(found[:60])) > 50
        assert (found[60:] == -1).all()
    cost_model.random_fill_float(100, ctypes.addressof(memory))
    assert min(memory) >= 0


def test_functions_of_a_model() -> None:
    """For each fused function what its schedule is made for, and how often it is called."""
    x, weight = relay.var("x", shape=(4, 8)), relay.const(np.ones((8, 8), "float32"))
    value = x
    for _ in range(3):
        value = relay.nn.relu(relay.nn.dense(value, weight))
    module = tvm.IRModule.from_expr(relay.Function([x], relay.nn.softmax(value)))
    found = relay_integration.call_all_topi_funcs(module, {}, LLVM)
    counts = {request.operator: count for request, count in found}
    assert counts["nn.softmax"] == 1
    assert any("dense" in name and count == 3 for name, count in counts.items())
    apart = relay_integration.call_all_topi_funcs(module, {}, LLVM, opt_level=0)
    assert len(apart) > len(found)


def test_tensors_of_a_graph() -> None:
    """Its inputs and outputs, whether an input may have any layout, and whether it has a reduction."""
    a, b, c = matmul(8, 16, 12)
    shown, layout_free, reduces = relay_integration.traverse_to_get_io_tensors([c])
    assert shown == [a, b, c] and layout_free and reduces
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] + 1.0)
    z = te.compute((4,), lambda i: y[i] * x[i])
    assert relay_integration.traverse_to_get_io_tensors([z]) == ([x, z], False, False)
    assert relay_integration.traverse_to_get_io_tensors([y, z]) == ([x, y, z], False, False)


def test_schedules_of_tensors() -> None:
    """The current context's, replayed on the tensors; none where there is no context or no record."""
    tensors = matmul(8, 16, 12)
    dag = auto_scheduler.ComputeDAG(tensors)
    auto_scheduler.workload_registry.register_workload_tensors(dag.workload_key(), tensors)
    task = auto_scheduler.SearchTask(compute_dag=dag, workload_key=dag.workload_key(), target=LLVM)
    state = task.compute_dag.get_init_state()
    state.split(2, state.stages[2].iters[0], [4])
    assert relay_integration.auto_schedule_topi("product", tensors[2]) is None
    with LLVM, auto_scheduler.ApplyHistoryBest([]):
        assert relay_integration.auto_schedule_topi("product", [tensors[2]]) is None
    with LLVM, auto_scheduler.ApplyHistoryBest([(MeasureInput(task, state), result(0.1))]):
        schedule = relay_integration.auto_schedule_topi("product", tensors[2])
    assert schedule is not None
    stage = schedule[schedule.outputs[0]]
    assert [one.var.name for one in stage.leaf_iter_vars][:2] != [one.var.name for one in stage.op.axis]
    function = tvm.build(schedule, tensors, "llvm")
    values = [np.random.default_rng(0).random((8, 12), "float32"), np.ones((12, 16), "float32")]
    out = tvm.nd.empty((8, 16))
    function(*map(tvm.nd.array, values), out)
    np.testing.assert_allclose(out.numpy(), values[0] @ values[1], rtol=1e-5)


def test_who_reads_a_stage(task: auto_scheduler.SearchTask) -> None:
    """A sketch rule of one's own asks for the readers of a stage, and whether one reads element by element."""
    names = importlib.import_module("tilewright.auto_scheduler._ffi_api")
    state = task.compute_dag.get_init_state()
    last = len(state.stages) - 1
    readers = names.SearchPolicyUtilsGetConsumers(task, state.state_object, last - 1)
    assert [int(reader) for reader, _ in readers.items()] == [last]
    assert len(names.SearchPolicyUtilsGetConsumers(task, state, last)) == 0
    assert names.SearchPolicyUtilsIsElementwiseMatch(task, state, last - 1, last)
    assert not names.SearchPolicyUtilsIsElementwiseMatch(task, state, 0, last)
