"""Workloads and tasks: their keys, arguments and records."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.auto_scheduler.computations import matmul

import tilewright as tvm
from tilewright.auto_scheduler import (
    ComputeDAG,
    HardwareParams,
    LayoutRewriteOption,
    SearchTask,
    make_workload_key,
    register_workload,
)
from tilewright.auto_scheduler import workload_registry as registry
from tilewright.auto_scheduler.task_inputs import TASK_INPUT_BUFFER_TABLE
from tilewright.auto_scheduler.utils import calc_workload_dis_factor, decode_workload_key
from tilewright.support.errors import ScheduleError


@register_workload
def tasks_matmul(rows: int, columns: int, depth: int) -> list[Any]:
    return matmul(rows, columns, depth)


def test_a_function_is_registered_by_its_name_or_another() -> None:
    assert make_workload_key(tasks_matmul, (8, 16, 12)) == '["tasks_matmul", 8, 16, 12]'
    assert make_workload_key("tasks_matmul", [(1, 2), 3.5]) == '["tasks_matmul", [1, 2], 3.5]'
    tensors = registry.workload_key_to_tensors('["tasks_matmul", 8, 16, 12]')
    assert [tensor.name for tensor in tensors] == ["A", "B", "C"]
    register_workload("tasks_matmul_again", tasks_matmul)
    with pytest.raises(ScheduleError, match="tasks_matmul is registered already"):
        register_workload("tasks_matmul", lambda: None)
    with pytest.raises(ScheduleError, match="put @auto_scheduler.register_workload above it"):
        make_workload_key("tasks_nobody", ())
    with pytest.raises(ScheduleError, match="must be a number, a text"):
        make_workload_key("tasks_matmul", [object()])


@pytest.mark.parametrize("key", ["no JSON", "[]", "[1]", '{"a": 1}', '["tasks_nobody", 1]'])
def test_a_bad_key_is_refused(key: str) -> None:
    with pytest.raises(ScheduleError, match="not the key of a workload|is not registered in this program"):
        ComputeDAG(key)


def test_a_workload_must_give_tensors() -> None:
    register_workload("tasks_nothing", lambda: 3, override=True)
    with pytest.raises(ScheduleError, match="must return a list of tensors"):
        ComputeDAG('["tasks_nothing"]')


def test_registries_travel_without_code(tmp_path: Path) -> None:
    """Tensors are written; of a function only its name, and reading it back imports nothing."""
    dag = ComputeDAG(matmul(4, 4, 4))
    key = registry.register_workload_tensors(dag.workload_key(), dag.tensors)
    registry.save_workload_func_registry(str(tmp_path / "registry.json"))
    del registry.WORKLOAD_FUNC_REGISTRY[key]
    registry.load_workload_func_registry(str(tmp_path / "registry.json"))
    assert ComputeDAG(key).workload_key() == key
    entry = registry.serialize_workload_registry_entry('["tasks_matmul", 8, 16, 12]')
    assert entry[1]["function"] == "tasks_matmul"
    with pytest.raises(ScheduleError, match="import that module first"):
        registry.deserialize_workload_registry_entry(
            ["tasks_elsewhere", {"module": "os", "function": "system"}]
        )


def test_a_task_knows_its_graph_and_machine() -> None:
    task = SearchTask(func=tasks_matmul, args=(8, 16, 12), target="llvm")
    assert task.workload_key == '["tasks_matmul", 8, 16, 12]'
    assert task.layout_rewrite_option == LayoutRewriteOption.INSERT_TRANSFORM_STAGE
    assert task.compute_dag.flop_ct == 2 * 8 * 16 * 12 and task.hardware_params.num_cores >= 1
    other = SearchTask(
        compute_dag=task.compute_dag,
        target="cuda",
        target_host="llvm",
        hardware_params=HardwareParams(0, 16, 64, 49152, 2**31 - 1, 1024, 8, 32),
    )
    record = other.to_record()
    assert record[1:] == [
        str(tvm.target.Target("cuda")),
        [0, 16, 64, 49152, 2147483647, 1024, 8, 32],
        "llvm -keys=cpu",
        0,
        [],
    ]
    again = SearchTask.from_record(json.loads(json.dumps(record)))
    assert str(again.target.host) == "llvm -keys=cpu" and again.hardware_params == other.hardware_params
    with pytest.raises(ScheduleError, match="needs a function and its arguments, a compute_dag"):
        SearchTask(target="llvm")
    with pytest.raises(ScheduleError, match="needs a target"):
        SearchTask(func=tasks_matmul, args=(8, 16, 12))
    with tvm.target.Target("llvm -mcpu=generic"):
        assert "generic" in str(SearchTask(func=tasks_matmul, args=(8, 16, 12)).target)


def test_task_inputs_are_named_in_records() -> None:
    data = np.ones((8, 12), "float32")
    task = SearchTask(func=tasks_matmul, args=(8, 16, 12), target="llvm", task_inputs={"A": data})
    assert task.task_input_names == ["A"]
    assert TASK_INPUT_BUFFER_TABLE[task.workload_key]["A"].numpy().sum() == 96
    assert SearchTask.from_record(task.to_record()).task_input_names == ["A"]


def test_tasks_travel_between_processes() -> None:
    dag = ComputeDAG(matmul(4, 8, 4))
    for task in (
        SearchTask(func=tasks_matmul, args=(8, 16, 12), target="llvm", desc="product"),
        SearchTask(compute_dag=dag, workload_key='["tasks-by-hand"]', target="llvm"),
    ):
        again = pickle.loads(pickle.dumps(task))
        assert isinstance(again, SearchTask) and again.desc == task.desc
        assert again.to_record() == task.to_record()
        assert str(again.compute_dag) == str(task.compute_dag)


def test_workloads_are_compared_by_their_sizes() -> None:
    pairs = [decode_workload_key(key) for key in ('["f", [4, 8], 2]', '["f", [8, 8], 2]', '["g", [4, 8], 2]')]
    assert calc_workload_dis_factor(pairs[0], pairs[0]) == 1
    assert calc_workload_dis_factor(pairs[1], pairs[0]) == 2
    assert calc_workload_dis_factor(pairs[0], pairs[1]) == float("inf")
    assert calc_workload_dis_factor(pairs[0], pairs[2]) == float("inf")
