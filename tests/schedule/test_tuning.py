"""Scopes that give schedules found by search to the functions of a model."""

from __future__ import annotations

import numpy as np

import tilewright as tvm
from tilewright import relay, te
from tilewright.contrib import graph_executor
from tilewright.schedule.decisions import Decisions
from tilewright.schedule.tuning import ScheduleRequest, TuningScope, is_tuned


class Plain(TuningScope):
    """Gives products a schedule without any tile, and notes what is asked."""

    def __init__(self) -> None:
        self.asked: list[ScheduleRequest] = []

    def schedule(self, request: ScheduleRequest) -> te.Schedule | None:
        self.asked.append(request)
        if request.operator != "nn.dense":
            return None
        return te.create_schedule([tensor.op for tensor in request.outputs])


class Tiled(TuningScope):
    """Constructs schedules with another register tile."""

    def schedule(self, request: ScheduleRequest) -> te.Schedule | None:
        with Decisions() as decisions:
            request.construct()
        if "tile" not in decisions.asked:
            return None
        with Decisions({"tile": decisions.asked["tile"].candidates[-1]}):
            return request.construct()


def model() -> tuple[tvm.IRModule, np.ndarray]:
    """A product with an activation behind it, then a softmax."""
    x = relay.var("x", shape=(4, 24))
    weight = relay.const(np.random.default_rng(1).standard_normal((40, 24)).astype("float32"))
    body = relay.nn.softmax(relay.nn.relu(relay.nn.dense(x, weight)))
    return tvm.IRModule.from_expr(relay.Function([x], body)), np.linspace(-1, 1, 96, dtype="float32").reshape(
        4, 24
    )


def run(module: tvm.IRModule, x: np.ndarray) -> np.ndarray:
    """The model's result, compiled in the current scope."""
    executor = graph_executor.GraphModule(relay.build(module, "llvm")["default"](tvm.cpu()))
    executor.run(x=x)
    return executor.get_output(0).numpy()


def test_scopes_are_asked_for_every_function() -> None:
    """The innermost with an answer gives it; outside of scopes nothing changes."""
    module, x = model()
    before = run(module, x)
    outer, inner = Plain(), Plain()
    with outer, inner:
        assert is_tuned()
        np.testing.assert_allclose(run(module, x), before, rtol=1e-5)
    assert not is_tuned()
    assert sorted(request.operator for request in inner.asked) == ["nn.dense", "nn.softmax"]
    assert [request.operator for request in outer.asked] == ["nn.softmax"]
    dense = next(request for request in inner.asked if request.operator == "nn.dense")
    assert len(dense.arguments) == 3
    assert dense.arguments[-1] is dense.outputs[0]


def test_constructed_with_other_decisions() -> None:
    """The model computes the same with the worst of the tiles."""
    module, x = model()
    before = run(module, x)
    with Tiled():
        np.testing.assert_allclose(run(module, x), before, rtol=1e-5)
