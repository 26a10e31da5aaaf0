"""Records in TVM 0.8's format: read, written, refused, distilled."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.auto_scheduler.computations import matmul

from tilewright.auto_scheduler import (
    RecordReader,
    RecordToFile,
    SearchTask,
    load_best_record,
    load_records,
    measure_record,
    register_workload,
    save_records,
)
from tilewright.auto_scheduler.measure_record import (
    dump_record_to_string,
    load_record_from_string,
    recover_measure_input,
)
from tilewright.auto_scheduler.measure_types import MeasureInput, MeasureResult
from tilewright.support.errors import ScheduleError

TVM_LINE = (
    '{"i": [["[\\"records_matmul\\", 8, 16, 12]", "llvm -keys=cpu -link-params=0 -mcpu=core-avx2", '
    '[6, 32, 64, 0, 0, 0, 0, 0], "", 1, []], [[], [["CHW", 2, "local"], ["SP", 2, 0, 8, [2, 1, 4], 1], '
    '["SP", 2, 4, 16, [1, 1, 8], 1], ["SP", 2, 8, 12, [4], 1], '
    '["RE", 2, [0, 4, 1, 5, 8, 2, 6, 9, 3, 7]], ["FSP", 3, 0, 1, 1], ["FSP", 3, 2, 2, 1], ["RE", 3, [0, 2, 1, 3]], '
    '["CA", 2, 3, 1], ["FU", 3, [0, 1]], ["AN", 3, 0, 3], ["PR", 2, 0, "auto_unroll_max_step$64"], '
    '["AN", 2, 9, 2], ["AN", 3, 2, 2]]]], "r": [[2.5e-05, 2.6e-05], 0, 1.25, 1605175428], "v": "v0.6"}'
)
"""A record as TVM 0.8 writes it."""


@register_workload("records_matmul")
def records_matmul(rows: int, columns: int, depth: int) -> list[Any]:
    return matmul(rows, columns, depth)


@pytest.fixture
def task() -> SearchTask:
    return SearchTask(func="records_matmul", args=(8, 16, 12), target="llvm")


def measured(task: SearchTask, length: int) -> MeasureInput:
    state = task.compute_dag.get_init_state()
    state.split(2, state.stages[2].iters[0], [length])
    return MeasureInput(task, state)


def result(*costs: float, error: int = 0) -> MeasureResult:
    return MeasureResult(costs, error, "", 0.5, 1700000000)


def test_a_line_of_tvm_is_read_replayed_and_written_again() -> None:
    found, times = load_record_from_string(TVM_LINE)
    assert str(found.task.target) == "llvm -keys=cpu -mcpu=core-avx2"
    assert found.task.hardware_params.num_cores == 6 and found.task.hardware_params.vector_unit_bytes == 32
    assert times.costs == (2.5e-05, 2.6e-05) and times.timestamp == 1605175428
    whole = recover_measure_input(found, rebuild_state=True)
    assert [stage.op.name for stage in whole.state.stages] == ["A", "B", "C.local", "C"]
    assert [one.extent for one in whole.state.stages[3].iters] == [2, 8, 8]
    assert "parallel i.0@j.0@ (0,2)" in str(whole.state)
    found.task.compute_dag.apply_steps_from_state(found.state)
    again = json.loads(dump_record_to_string(found, times))
    wanted = json.loads(TVM_LINE)
    wanted["i"][0][1] = "llvm -keys=cpu -mcpu=core-avx2"
    assert again == wanted


def test_a_record_of_an_older_version_has_fewer_items() -> None:
    line = '{"i": [["[\\"records_matmul\\", 8, 16, 12]", "llvm"], [[], []]], "r": [[0.1], 0, 0.2, 1], "v": "v0.2"}'
    found, _ = load_record_from_string(line)
    assert found.task.task_input_names == [] and found.task.hardware_params.num_cores > 0


def test_a_failure_is_written_as_tvm_does(task: SearchTask) -> None:
    line = json.loads(dump_record_to_string(measured(task, 2), result(error=4)))
    assert line["r"] == [[1e10], 4, 0.5, 1700000000]
    _, again = load_record_from_string(json.dumps(line))
    assert again.mean == float("inf")


def change(path: list[Any], value: Any) -> str:
    document = json.loads(TVM_LINE)
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (TVM_LINE[:100], "not JSON"),
        ("[1, 2]", "an object with"),
        (change(["v"], 6), "the version"),
        (change(["i"], []), "a list of a task and a state"),
        (change(["i", 0], ["key"]), "the record of a task"),
        (change(["i", 0, 1], "no-such-target"), "the record's target"),
        (change(["i", 0, 2], [1, 2]), "8 sizes of a machine"),
        (change(["i", 0, 4], 7), "layout option 7"),
        (change(["i", 0, 5], [1]), "names of task inputs"),
        (change(["i", 1], [[]]), "the record of a state"),
        (change(["i", 1, 1, 0], "CHW"), "step 0: 'CHW' is not the record of a step"),
        (change(["i", 1, 1, 0], ["XX", 1]), "step 0: 'XX' is not the prefix of a step"),
        (change(["i", 1, 1, 1], ["SP", 2, 0]), "step 1: .* has 2 items after its prefix, SplitStep has 5"),
        (change(["i", 1, 1, 1, 4], [2, 0]), "lengths is .*a list of positive numbers"),
        (change(["i", 1, 1, 1, 1], -1), "stage_id is -1, it must be a number that is not negative"),
        (change(["i", 1, 1, 1, 5], 2), "inner_to_outer is 2, it must be 0 or 1"),
        (change(["r"], [[0.1], 0]), "the record of a result"),
        (change(["r", 0], ["fast"]), "are not a list of times"),
        (change(["r", 0], []), "has no costs"),
        (change(["r", 1], 99), "99 is not the number of an error"),
        (change(["r", 2], None), "is not a number"),
    ],
)
def test_a_bad_record_is_refused_with_its_reason(line: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        load_record_from_string(line)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["i", 1, 1, 1, 1], 9, r"step 1 \(SP 9 .*there are 4 stages, there is no number 9"),
        (["i", 1, 1, 4, 2], [0, 1], r"step 4 \(RE .*does not name every iterator"),
        (["i", 1, 1, 5, 3], 0, r"step 5 \(FSP .*step 0 is not a split"),
        (["i", 1, 1, 8, 3], 40, r"step 8 \(CA .*there is no number 40"),
        (["i", 1, 1, 10, 3], 33, r"step 10 \(AN .*33 is not the number of an annotation"),
    ],
)
def test_a_record_whose_steps_do_not_fit_says_which(path: list[Any], value: Any, message: str) -> None:
    found, _ = load_record_from_string(change(path, value))
    with pytest.raises(ScheduleError, match=message):
        recover_measure_input(found, rebuild_state=True)
    with pytest.raises(ScheduleError, match=message):
        found.task.compute_dag.apply_steps_from_state(found.state)


def test_a_record_of_an_unknown_workload_is_read_but_not_replayed() -> None:
    line = change(["i", 0, 0], '["nobody_registered_this", 1]')
    found, _ = load_record_from_string(line)
    assert not found.task.is_known
    with pytest.raises(ScheduleError, match="nobody_registered_this is not registered in this program"):
        recover_measure_input(found)


def test_files_of_records(tmp_path: Path, task: SearchTask, caplog: Any) -> None:
    path = tmp_path / "deep" / "records.json"
    RecordToFile(path).callback(None, [measured(task, 2), measured(task, 4)], [result(0.2), result(0.1)])
    with path.open("a") as file:
        file.write("damaged\n")
    save_records(path, [measured(task, 8)], [result(error=6)])
    with path.open("a") as file:
        file.write('{"i": [["half')
    with caplog.at_level(logging.WARNING, "auto_scheduler"):
        inputs, results = RecordReader(path).read_lines()
    assert "line 3 is skipped (not JSON)" in caplog.text
    assert [one.mean for one in results] == [0.2, 0.1, float("inf")]
    assert len(RecordReader(path).read_lines(max_lines=1, skip_lines=1)[0]) == 1
    assert len(list(load_records(path))) == 3
    best, time = load_best_record(path, task.workload_key, "llvm")
    assert time is not None and time.mean == 0.1 and best is not None
    assert best.state.transform_steps == inputs[1].state.transform_steps
    assert load_best_record(path, task.workload_key, "cuda") == (None, None)
    other = SearchTask(func="records_matmul", args=(16, 16, 12), target="llvm")
    assert load_best_record(path, other.workload_key) == (None, None)
    assert load_best_record(path, other.workload_key, include_compatible=True)[0] is not None


def test_the_best_record_is_applied_and_printed(tmp_path: Path, task: SearchTask) -> None:
    path = tmp_path / "records.json"
    with pytest.raises(ScheduleError, match="has no record of"):
        task.apply_best(path)
    save_records(path, [measured(task, 2), measured(task, 4)], [result(0.2), result(0.1)])
    schedule, tensors = task.apply_best(path, layout_rewrite_option=0)
    assert [tensor.name for tensor in tensors] == ["A", "B", "C"]
    assert "factor=4" in task.print_best(path) and "s[C].split(C_i" in task.print_best(path)
    assert "split" in str(schedule.trace)
    with pytest.raises(ScheduleError, match="print_mode is 'asm'"):
        task.print_best(path, "asm")


def test_distilling_keeps_the_best_of_each_workload(tmp_path: Path, task: SearchTask, capsys: Any) -> None:
    path, best = tmp_path / "records.json", tmp_path / "best.json"
    other = SearchTask(func="records_matmul", args=(16, 16, 12), target="llvm")
    inputs = [measured(task, 2), measured(task, 4), measured(other, 2), measured(other, 4)]
    save_records(path, inputs, [result(0.3), result(0.1), result(0.2), result(error=4)])
    with pytest.raises(SystemExit) as left:
        measure_record.main(["--mode", "distill", "-i", str(path), "-o", str(best)])
    assert left.value.code == 0
    assert [one.mean for _, one in load_records(best)] == [0.1, 0.2]
    with pytest.raises(SystemExit) as left:
        measure_record.main(["--mode", "distill", "-i", str(tmp_path / "missing.json")])
    assert left.value.code == 2


GPU_STEPS = [
    ["CHW", 2, "local"],
    ["SP", 2, 0, 8, [1, 2, 2], 1],
    ["SP", 2, 4, 16, [2, 4, 1], 1],
    ["SP", 2, 8, 12, [3], 1],
    ["RE", 2, [0, 4, 1, 5, 2, 6, 8, 9, 3, 7]],
    ["FSP", 3, 0, 1, 3],
    ["FSP", 3, 4, 2, 3],
    ["RE", 3, [0, 4, 1, 5, 2, 6, 3, 7]],
    ["CA", 2, 3, 5],
    ["CHR", 0, "shared", [2]],
    ["CA", 1, 3, 6],
    ["FU", 4, [0, 1]],
    ["FU", 4, [1, 2]],
    ["FU", 4, [2, 3]],
    ["FU", 1, [0, 1]],
    ["FFSP", 1, 0, [1, 2], 1, 1],
    ["AN", 1, 1, 6],
    ["AN", 4, 0, 5],
    ["AN", 4, 1, 4],
    ["AN", 4, 2, 6],
    ["PR", 3, 0, "auto_unroll_max_step$16"],
]
"""A product on a GPU: the operand is copied to shared memory by the threads that read it."""

GPU_LOOPS = """\
Placeholder: A, B
blockIdx.x i.0@j.0@ (0,4)
  vthread i.1@j.1@ (0,2)
    threadIdx.x i.2@j.2@ (0,8)
      C.local auto_unroll: 16
      for k.0 (0,4)
        for ax0@ax1@.0 (0,2)
          threadIdx.x ax0@ax1@.1 (0,8)
            A.shared = ...
        for k.1 (0,3)
          for i_c.3 (0,2)
            C.local = ...
      for i.3 (0,2)
        C = ...
"""


def test_a_record_of_a_gpu_program_gives_its_loops() -> None:
    """Stages are renumbered by each stage that is added, and places follow the loops that are fused."""
    line = change(["i", 1, 1], GPU_STEPS)
    found, _ = load_record_from_string(line.replace("llvm -keys=cpu -link-params=0 -mcpu=core-avx2", "cuda"))
    whole = recover_measure_input(found, rebuild_state=True)
    assert str(whole.state) == GPU_LOOPS
