"""The debugging executor: every node's output and time, and the files it writes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.contrib.debugger import debug_executor, debug_result
from tilewright.runtime import Module, PackedFunc, convert_to_tvm_func, cpu, load_param_dict
from tilewright.runtime import ndarray as nd

GRAPH = json.dumps(
    {
        "nodes": [
            {"op": "null", "name": "x", "inputs": []},
            {
                "op": "tvm_op",
                "name": "one",
                "attrs": {"func_name": "shift", "num_outputs": "1"},
                "inputs": [[0, 0, 0]],
            },
            {
                "op": "tvm_op",
                "name": "view",
                "attrs": {"func_name": "__nop", "num_outputs": "1"},
                "inputs": [[1, 0, 0]],
            },
            {
                "op": "tvm_op",
                "name": "two",
                "attrs": {"func_name": "shift", "num_outputs": "1"},
                "inputs": [[2, 0, 0]],
            },
        ],
        "arg_nodes": [0],
        "heads": [[3, 0, 0]],
        "node_row_ptr": [0, 1, 2, 3, 4],
        "attrs": {
            "shape": ["list_shape", [[3], [3], [3], [3]]],
            "dltype": ["list_str", ["float32"] * 4],
            # The last node works in place: its output has the memory of its input.
            "storage_id": ["list_int", [0, 1, 1, 1]],
        },
    }
)


class Operators(Module):
    """The graph's one function."""

    def __init__(self) -> None:
        super().__init__("operators", ("shift",))

    def _find(self, name: str) -> PackedFunc | None:
        def shift(x: Any, out: Any) -> None:
            np.from_dlpack(out)[:] = np.from_dlpack(x) + 1

        return convert_to_tvm_func(shift) if name == "shift" else None


@pytest.fixture
def model(tmp_path: Path) -> debug_executor.GraphModuleDebug:
    """The model, writing into the test's folder."""
    return debug_executor.create(GRAPH, Operators(), cpu(0), str(tmp_path / "dump"))


def test_run_keeps_every_output(model: debug_executor.GraphModuleDebug) -> None:
    """Each node runs once, and its output is kept though later nodes use its memory."""
    model.run(x=nd.array(np.zeros(3, "float32")))
    assert {name: value.numpy().tolist() for name, value in model.outputs.items()} == {
        "one____0": [1, 1, 1],
        "two____0": [2, 2, 2],
    }
    assert model.get_output(0).numpy().tolist() == [2, 2, 2]


def test_files(model: debug_executor.GraphModuleDebug) -> None:
    """The graph is there from the start; a trace in which each node begins and ends in order, and the outputs, after a
    run; exit removes them."""
    folder = Path(model.dump_path)
    assert folder.name == "_tvmdbg_device_CPU_0"
    assert [path.name for path in folder.iterdir()] == [debug_result.GRAPH_DUMP_FILE_NAME]
    model.run(x=nd.array(np.zeros(3, "float32")))
    trace = json.loads((folder / debug_result.CHROME_TRACE_FILE_NAME).read_text())
    events = trace["traceEvents"]
    names = ["x", "one", "view", "two"]
    assert [(event["name"], event["ph"]) for event in events] == [(n, p) for n in names for p in "BE"]
    assert [event["ts"] for event in events] == sorted(event["ts"] for event in events)
    assert events[3]["ts"] > events[2]["ts"]
    loaded = load_param_dict((folder / debug_result.OUTPUT_TENSORS_FILE_NAME).read_bytes())
    assert loaded["two____0"].numpy().tolist() == [2, 2, 2]
    nodes = json.loads((folder / debug_result.GRAPH_DUMP_FILE_NAME).read_text())["nodes"]
    assert [node["microseconds"] > 0 for node in nodes] == [False, True, False, True]
    model.exit()
    assert not folder.exists()


def test_table(model: debug_executor.GraphModuleDebug, capsys: pytest.CaptureFixture[str]) -> None:
    """The nodes that ran, the slowest first, with their functions and shapes; then the total."""
    model.run(x=nd.array(np.zeros(3, "float32")))
    lines = model.debug_datum.get_debug_result().split("\n")
    cells = [[cell.strip() for cell in line.split("  ") if cell] for line in lines]
    assert cells[0] == ["Node Name", "Ops", "Time(us)", "Time(%)", "Shape", "Inputs", "Outputs"]
    assert {row[0] for row in cells[2:4]} == {"one", "two"}
    assert cells[2][1] == "shift" and cells[2][4:] == ["(3,)", "1", "1"]
    assert float(cells[2][2]) >= float(cells[3][2]) > 0
    assert cells[4][0] == "Total_time"
    in_order = model.debug_datum.get_debug_result(sort_by_time=False).split("\n")
    assert [line.split()[0] for line in in_order[2:4]] == ["one", "two"]
    model.debug_datum.display_debug_result()
    assert "Total_time" in capsys.readouterr().out
    assert sorted(model.debug_datum.get_output_tensors()) == ["one____0", "two____0"]


def test_times(model: debug_executor.GraphModuleDebug) -> None:
    """Nodes that call a function have a time in every form of the report; others have none."""
    times = model.run_individual(number=2, repeat=2)
    assert [time > 0 for time in times] == [False, True, False, True]
    rested = model.run_individual(
        1, 2, cooldown_interval_ms=1, repeats_to_cooldown=1, limit_zero_time_iterations=0
    )
    assert [time > 0 for time in rested] == [time > 0 for time in times]
    one, none = model.run_individual_node(1, number=2, repeat=3), model.run_individual_node(0, repeat=3)
    assert len(one.results) == len(none.results) == 3 and one.min > 0 == none.max
    report = model.profile(x=nd.array(np.zeros(3, "float32")))
    assert [run.name for run in report.runs] == ["one", "two"]
    assert report.total_seconds == sum(run.seconds for run in report.runs) > 0
    assert "Total" in str(report)
    assert [call["Name"]["string"] for call in json.loads(report.json())["calls"]] == ["shift", "shift"]


def test_own_folder_and_bad_graph() -> None:
    """Without a folder one is made; a graph must be a text."""
    model = debug_executor.create(GRAPH, Operators(), cpu(0))
    assert Path(model.dump_path).is_dir()
    model.exit()
    assert not Path(model.dump_path).exists()
    with pytest.raises(ValueError, match="the graph is a text"):
        debug_executor.create(b"{}", Operators(), cpu(0))  # type: ignore[arg-type]
