"""Graph tuners: plans with the least time, by both methods, and the layouts of records."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import autotvm, relay
from tilewright.autotvm.graph_tuner import DPTuner, PBQPTuner
from tilewright.autotvm.graph_tuner.layouts import conv2d_infer_layout
from tilewright.autotvm.measure import MeasureInput, MeasureResult
from tilewright.autotvm.task.space import ConfigEntity
from tilewright.autotvm.task.task import Task
from tilewright.support.errors import TilewrightError

SHAPE = (1, 16, 8, 8)


def _graph() -> relay.Function:
    """Two convolutions, the second of which is added to its input."""
    data = relay.var("data")
    first, second = (relay.var(name, shape=(16, 16, 3, 3)) for name in ("w0", "w1"))
    one = relay.nn.conv2d(data, first, padding=(1, 1), channels=16, kernel_size=(3, 3))
    two = relay.nn.conv2d(one, second, padding=(1, 1), channels=16, kernel_size=(3, 3))
    return relay.Function([data, first, second], relay.add(two, one))


def _records(costs: dict[tuple[int, int], float]) -> list[Any]:
    """Records of the convolution with blocks of (inputs, outputs)."""
    args = (("TENSOR", SHAPE, "float32"), ("TENSOR", (16, 16, 3, 3), "float32"))
    args += ((1, 1), (1, 1, 1, 1), (1, 1), "NCHW", "NCHW", "float32")
    task = Task("conv2d_NCHWc.x86", args)
    made = []
    for number, ((inner, outer), seconds) in enumerate(costs.items()):
        entity = [["tile_ic", "sp", [-1, inner]], ["tile_oc", "sp", [-1, outer]]]
        config = ConfigEntity.from_json_dict({"index": number, "code_hash": None, "entity": entity})
        made.append(
            (MeasureInput(tvm.target.Target("llvm"), task, config), MeasureResult((seconds,), 0, 0, 0))
        )
    return made


def _transforms(seconds: float) -> list[Any]:
    """One known layout transform of 1024 elements."""
    task = Task("layout_transform", (("TENSOR", (1, 16, 8, 8), "float32"), "NCHW", "NCHW16c"))
    config = ConfigEntity(0, None, {}, [])
    return [(MeasureInput(tvm.target.Target("llvm"), task, config), MeasureResult((seconds,), 0, 0, 0))]


@pytest.mark.parametrize("kind", [DPTuner, PBQPTuner])
def test_plans(kind: Any, tmp_path: Any) -> None:
    """With cheap transforms each convolution is fastest by itself; with dear ones their layouts agree."""
    records = _records({(16, 8): 1.0, (8, 8): 1.3, (16, 16): 1.4})
    chosen = {}
    for name, seconds in (("cheap", 1e-3), ("dear", 0.5)):
        tuner = kind(_graph(), {"data": SHAPE}, records, [relay.op.get("nn.conv2d")], "llvm")
        tuner.benchmark_layout_transform(layout_records=_transforms(seconds), infer_layout=True)
        assert {res.costs[0] for _, res in tuner.layout_transform_perf_records.values()} == {seconds}
        tuner.run()
        chosen[name] = [inp.config.index for inp, _ in tuner.get_optimal_records()]
        tuner.write_opt_sch2record_file(str(tmp_path / "plan.log"))
    assert chosen["cheap"] == [0, 0]
    # 16 to 8, then 8 to 8: only the transform of the input is left.
    assert chosen["dear"] == [0, 1]
    with autotvm.apply_graph_best(str(tmp_path / "plan.log")) as plan:
        workload = records[0][0].task.workload
        assert plan.query(tvm.target.Target("llvm"), workload)["tile_oc"].size == [-1, 8]


def test_both_methods_find_the_least() -> None:
    """Random problems of six nodes, against trying everything."""
    random = np.random.default_rng(0)
    exact, reducing = DPTuner.__new__(DPTuner), PBQPTuner.__new__(PBQPTuner)
    for _ in range(20):
        costs = [list(random.random(3)) for _ in range(6)]
        edges = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (1, 4)]
        pairs = {edge: random.random((3, 3)).tolist() for edge in edges}

        def total(states: Any, costs: Any = costs, pairs: Any = pairs) -> float:
            own = sum(row[state] for row, state in zip(costs, states, strict=True))
            return own + sum(rows[states[one]][states[two]] for (one, two), rows in pairs.items())

        least = min(total(states) for states in product(range(3), repeat=6))
        assert total(exact.solve(costs, pairs)) == pytest.approx(least)
        assert total(reducing.solve(costs, pairs)) == pytest.approx(least)


def test_missing_records_are_said() -> None:
    """The operator and its workload are in the error."""
    with pytest.raises(TilewrightError, match="there are no records of nn.conv2d"):
        DPTuner(_graph(), {"data": SHAPE}, [], [relay.op.get("nn.conv2d")], "llvm")


def test_layouts_of_records() -> None:
    """The blocks of a record of TVM's; without any, those that a build has."""
    inp, _ = _records({(8, 4): 1.0})[0]
    (before,), (after,) = conv2d_infer_layout(inp.task.workload, inp.config)
    assert before == ((1, 2, 8, 8, 8), "NCHW8c") and after == ((1, 4, 8, 8, 4), "NCHW4c")
    (before,), _ = conv2d_infer_layout(inp.task.workload, ConfigEntity(0, None, {}, []))
    assert before[0][1] * before[0][4] == 16 and before[1] == f"NCHW{before[0][4]}c"
