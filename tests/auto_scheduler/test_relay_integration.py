"""The functions of a model as tasks, and schedules from records while it is compiled."""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import auto_scheduler, relay
from tilewright.auto_scheduler.measure_types import MeasureInput, MeasureResult
from tilewright.auto_scheduler.untuned_note import untuned_note


def two_products() -> tuple[tvm.IRModule, dict[str, Any]]:
    """Two dense layers of one shape, with a rectifier, then a softmax."""
    x = relay.var("x", shape=(4, 16))
    weights = [relay.var(f"w{number}", shape=(16, 16)) for number in range(2)]
    value = x
    for weight in weights:
        value = relay.nn.relu(relay.nn.dense(value, weight))
    generator = np.random.default_rng(0)
    params = {f"w{number}": generator.standard_normal((16, 16)).astype("float32") for number in range(2)}
    return tvm.IRModule.from_expr(relay.Function([x, *weights], relay.nn.softmax(value))), params


@pytest.fixture(scope="module")
def model() -> tuple[tvm.IRModule, dict[str, Any]]:
    return two_products()


def test_tasks_and_weights(model: Any, tmp_path: Path) -> None:
    """The two layers are one task that counts twice."""
    mod, params = model
    tasks, weights = auto_scheduler.extract_tasks(mod["main"], params, "llvm")
    by_name = dict(zip([task.desc for task in tasks], weights, strict=True))
    assert set(by_name.values()) == {1, 2} and by_name["nn.softmax"] == 1
    log = tmp_path / "dags.json"
    everything, _ = auto_scheduler.extract_tasks(
        mod, params, "llvm", include_simple_tasks=True, dump_workload_to_dag_log=str(log)
    )
    assert len(everything) >= len(tasks)
    assert json.loads(log.read_text()) == {task.workload_key: str(task.compute_dag) for task in everything}


def test_unknown_sizes_are_left_out() -> None:
    data = relay.var("data", shape=(relay.Any(), 32))
    mod = tvm.IRModule.from_expr(relay.Function([data], relay.max(data)))
    assert auto_scheduler.extract_tasks(mod, None, "llvm") == ([], [])


def record_of(task: Any, cost: float) -> tuple[MeasureInput, MeasureResult]:
    """A record of a state that can be told from the constructed schedule: its only step unrolls a loop of two."""
    state = task.compute_dag.get_init_state()
    stage = len(state.stages) - 1
    inner = state.split(stage, state.stages[stage].iters[-1], [2])[1]
    state.unroll(stage, inner)
    return MeasureInput(task, state), MeasureResult([cost], 0, "", 0.1, 1.0)


def schedules_used(model: Any, context: Any) -> list[str]:
    """The traces of the schedules that a context gave while a model was compiled."""
    mod, params = model
    given: list[str] = []
    answer = context.schedule

    def noting(request: Any) -> Any:
        made = answer(request)
        if made is not None:
            given.append(str(made.trace))
        return made

    context.schedule = noting
    with context, tvm.transform.PassContext(opt_level=3, config={"relay.backend.use_auto_scheduler": True}):
        assert auto_scheduler.is_auto_scheduler_enabled()
        lib = relay.build(mod, "llvm", params=params)
    x = np.random.default_rng(1).standard_normal((4, 16)).astype("float32")
    executor = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    executor.set_input("x", x)
    executor.run()
    hidden = np.maximum(np.maximum(x @ params["w0"].T, 0) @ params["w1"].T, 0)
    expected = np.exp(hidden - hidden.max(1, keepdims=True))
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(executor.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)
    return given


def test_records_are_applied_while_a_model_is_compiled(model: Any, tmp_path: Path) -> None:
    """Its results stay the same; the schedule of one function is the record's. Slower records are not used."""
    tasks, _ = auto_scheduler.extract_tasks(model[0], model[1], "llvm")
    task = next(task for task in tasks if task.desc == "nn.softmax")
    path = tmp_path / "records.json"
    auto_scheduler.save_records(path, *[[one] for one in record_of(task, 1.0)])
    used = schedules_used(model, auto_scheduler.ApplyHistoryBest(str(path)))
    assert len(used) == 1 and "unroll" in used[0]
    slower = tmp_path / "slower.json"
    slower.write_text(untuned_note(task, 0.5) + "\n" + path.read_text())
    context = auto_scheduler.ApplyHistoryBest([slower])
    assert context.slower == 1 and schedules_used(model, context) == []


def test_what_records_may_be(model: Any, tmp_path: Path) -> None:
    """A name, several, an open file (as PyTorch's backend gives), pairs, or nothing."""
    tasks, _ = auto_scheduler.extract_tasks(model[0], model[1], "llvm")
    pair = record_of(tasks[0], 1.0)
    path = tmp_path / "records.json"
    auto_scheduler.save_records(path, [pair[0]], [pair[1]])
    for given in (str(path), path, [path], [pair], iter([pair])):
        assert len(auto_scheduler.ApplyHistoryBest(given).best) == 1
    with path.open() as stream:
        assert len(auto_scheduler.ApplyHistoryBest(stream).best) == 1
    with tempfile.NamedTemporaryFile() as empty:
        assert not auto_scheduler.ApplyHistoryBest(empty).best
    assert not auto_scheduler.ApplyHistoryBest(None).best


def test_contexts_nest(model: Any) -> None:
    """The inner one answers where it can, the outer one otherwise; a state may be given by hand."""
    tasks, _ = auto_scheduler.extract_tasks(model[0], model[1], "llvm")
    first, second = tasks[:2]
    outer = auto_scheduler.ApplyHistoryBest([record_of(first, 1.0)])
    inner = auto_scheduler.ApplyHistoryBest(None)
    own = second.compute_dag.get_init_state()
    inner.update("llvm", second.workload_key, own)
    with outer, inner:
        assert auto_scheduler.DispatchContext.current is inner
        asked = [
            inner.query("llvm", task.workload_key, True, task.compute_dag, "f") for task in (first, second)
        ]
    assert auto_scheduler.DispatchContext.current is None
    assert asked[0] is not None and asked[1] is own


def test_sampling_where_there_is_no_record(model: Any) -> None:
    """Without measuring, a program is taken by the model alone; results stay the same."""
    context = auto_scheduler.ApplyHistoryBestOrSample(None, num_measure=0)
    assert len(schedules_used(model, context)) >= 2
