"""Names of AutoTVM's that templates and scripts of tuning use: contexts, spaces, tasks, tuners."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import autotvm, te, topi
from tilewright.autotvm import env
from tilewright.autotvm.graph_tuner import base_graph_tuner
from tilewright.autotvm.measure import MeasureErrorNo, MeasureInput, MeasureResult, measure_methods
from tilewright.autotvm.task import dispatcher
from tilewright.autotvm.task.code_hash import attach_code_hash_to_arg
from tilewright.autotvm.task.space import ConfigEntity, ConfigSpace, FallbackConfigEntity
from tilewright.autotvm.task.task import Task
from tilewright.autotvm.task.topi_integration import TaskExtractEnv, register_topi_compute
from tilewright.autotvm.tophub import check_backend
from tilewright.autotvm.tuner import callback
from tilewright.autotvm.tuner.index_based_tuner import IndexBaseTuner
from tilewright.autotvm.tuner.sa_model_optimizer import random_walk
from tilewright.autotvm.tuner.tuner import Tuner

LLVM = tvm.target.Target("llvm")
WORKLOAD = ("tests/names", ("TENSOR", (4,), "float32"))


@autotvm.template("tests/names")
def knobs(size: int) -> Any:
    """A template with a knob, whose operations are not arithmetic that could be counted."""
    cfg = autotvm.get_config()
    cfg.define_knob("factor", [1, 2, 4])
    cfg.add_flop(size)
    cfg.add_flop(tvm.tir.const(2 * size, "int32"))
    a = te.placeholder((size,), name="a")
    b = te.compute((size,), lambda i: a[size - 1 - i], name="b")
    s = te.create_schedule(b.op)
    s[b].split(s[b].op.axis[0], factor=cfg["factor"].val)
    return s, [a, b]


def config(index: int) -> ConfigEntity:
    """A configuration without knobs."""
    return ConfigEntity(index, None, {}, [])


@pytest.fixture
def settings() -> Iterator[env.AutotvmGlobalScope]:
    """The settings of the process, as they were afterwards."""
    scope, current = env.GLOBAL_SCOPE, env.AutotvmGlobalScope.current
    kept = (scope.in_tuning, scope.silent)
    yield scope
    scope.in_tuning, scope.silent = kept
    env.AutotvmGlobalScope.current = current


def test_settings_of_the_process(settings: env.AutotvmGlobalScope, caplog: pytest.LogCaptureFixture) -> None:
    """A scope becomes the current one when it is made; the process takes its settings by ``reset_global_scope``, and
    warns or is silent after them."""
    fresh = env.AutotvmGlobalScope()
    assert env.AutotvmGlobalScope.current is fresh and not fresh.in_tuning and not fresh.silent
    for silent in (True, False):
        fresh.silent = silent
        env.reset_global_scope(fresh)
        assert settings.silent is silent and env.AutotvmGlobalScope.current is fresh
        caplog.clear()
        with caplog.at_level(logging.WARNING, "autotvm"):
            dispatcher.FallbackContext().query(LLVM, WORKLOAD)
        assert bool(caplog.records) is not silent


def test_contexts_are_given_configurations() -> None:
    """``update`` says what a context answers from then on."""
    first, second = config(1), config(2)
    applied = dispatcher.ApplyConfig(first)
    assert applied.query(LLVM, WORKLOAD) is first
    applied.update(LLVM, WORKLOAD, second)
    assert applied.query(LLVM, WORKLOAD) is second and applied.workload == WORKLOAD

    planned = dispatcher.ApplyGraphBest([])
    assert isinstance(planned.query(LLVM, WORKLOAD), FallbackConfigEntity)
    planned.update(LLVM, WORKLOAD, first)
    assert planned.query(LLVM, WORKLOAD) is first
    assert isinstance(planned.query(LLVM, ("another",)), FallbackConfigEntity)

    class Plain(dispatcher.DispatchContext):
        """A context that has nothing to change."""

    with pytest.raises(NotImplementedError):
        Plain().update(LLVM, WORKLOAD, first)


def test_fallbacks_are_forgotten() -> None:
    """Where a workload was given a configuration in place of a record, it gets a fallback again; the outermost context
    is found from inside others."""
    context = dispatcher.FallbackContext()
    given = config(3)
    context.update(LLVM, WORKLOAD, given)
    assert context.query(LLVM, WORKLOAD) is given
    context.clear_cache(LLVM, WORKLOAD)
    context.clear_cache(LLVM, WORKLOAD)
    fallback = context.query(LLVM, WORKLOAD)
    assert fallback.is_fallback and context.query(LLVM, WORKLOAD) is fallback
    outermost: Any = dispatcher.DispatchContext.current
    outermost.update(LLVM, WORKLOAD, given)
    with dispatcher.ApplyHistoryBest([]) as inner:
        assert inner.query(LLVM, WORKLOAD) is given
        dispatcher.clear_fallback_cache(LLVM, WORKLOAD)
        assert inner.query(LLVM, WORKLOAD) is not given
    dispatcher.clear_fallback_cache(LLVM, WORKLOAD)


def test_operations_that_a_template_counts() -> None:
    """What ``add_flop`` was told adds up, and is what a task divides by; a space starts at zero."""
    space = ConfigSpace()
    assert space.flop == 0
    space.add_flop(3)
    space.add_flop(tvm.tir.const(4, "int32"))
    assert space.flop == 7
    assert autotvm.task.create("tests/names", args=(64,), target="llvm").flop == 3 * 64


def test_tasks_of_functions_that_are_called() -> None:
    """While an environment is active it collects them, each once; ``reset`` forgets them and says what is wanted."""

    @register_topi_compute("tests/names.compute")
    def twice(cfg: Any, data: te.Tensor) -> te.Tensor:
        return te.compute(data.shape, lambda i: data[i] * 2.0)

    collecting = TaskExtractEnv.get()
    with collecting, LLVM:
        for size in (4, 4, 8):
            twice(te.placeholder((size,), name="data"))
        found = collecting.get_tasks()
        assert [name for name, _ in found] == ["tests/names.compute"] * 2
        assert [arguments[0][1] for _, arguments in found] == [(4,), (8,)]
        collecting.reset(["nn.conv2d"])
        assert collecting.get_tasks() == [] and collecting.wanted_relay_ops == ["nn.conv2d"]
        twice(te.placeholder((8,), name="data"))
        assert len(collecting.get_tasks()) == 1
    collecting.reset()
    assert collecting.get_tasks() == [] and collecting.wanted_relay_ops is None


def test_hashes_of_templates() -> None:
    """The schedule among the arguments gets the hash of the function's source: the same for the same text."""

    class Scheduled:
        code_hash: str | None = None

    def first(cfg: Any, s: Any, more: int = 0) -> int:
        assert s.code_hash is not None
        return more

    def second(s: Any) -> str:
        return "another text"

    one, again, other = Scheduled(), Scheduled(), Scheduled()
    decorated = attach_code_hash_to_arg()(first)
    assert decorated(None, one, more=5) == 5 and decorated(None, again) == 0
    assert attach_code_hash_to_arg(0)(second)(other) == "another text"
    assert one.code_hash == again.code_hash != other.code_hash and len(str(one.code_hash)) == 40
    assert decorated.__name__ == "first"


def test_tuners_of_ones_own() -> None:
    """A tuner says what it proposes; what it does not say is an error. Only those with a model learn from records."""
    task = autotvm.task.create("tests/names", args=(8,), target="llvm")

    class Mine(Tuner):
        def has_next(self) -> bool:
            return super().has_next()  # type: ignore[safe-super]

        def next_batch(self, batch_size: int) -> list[Any]:
            return super().next_batch(batch_size)  # type: ignore[safe-super]

    mine = Mine(task)
    for call in (mine.has_next, lambda: mine.next_batch(2), lambda: mine.load_history([])):
        with pytest.raises(NotImplementedError, match="Mine does not"):
            call()

    class Ends(IndexBaseTuner):
        def next_batch(self, batch_size: int) -> list[Any]:
            return []

    ends = Ends(task)
    assert ends.has_next()
    ends.load_history([("any", "records")], min_seed_records=1)
    assert ends.visited == [] and ends.best_config is None


def test_a_monitor() -> None:
    """Has the speed of each measurement, zero for a failure, until it is reset."""
    task = autotvm.task.create("tests/names", args=(8,), target="llvm")
    inputs = [MeasureInput(LLVM, task, task.config_space.get(index)) for index in range(2)]
    results = [
        MeasureResult((0.5,), MeasureErrorNo.NO_ERROR, 1.0, 10.0),
        MeasureResult((RuntimeError(),), MeasureErrorNo.RUNTIME_DEVICE, 1.0, 11.0),
    ]
    monitor = callback.Monitor()
    monitor(None, inputs, results)
    assert monitor.trial_scores().tolist() == [24 / 0.5, 0.0] and monitor.trial_timestamps().tolist() == [
        10,
        11,
    ]
    monitor.reset()
    assert monitor.trial_scores().size == monitor.trial_timestamps().size == 0
    monitor(None, inputs[:1], results[:1])
    assert monitor.trial_scores().tolist() == [48.0]


def test_a_random_step() -> None:
    """Leads to any point that differs in one knob, and to no other; where no knob has a choice, nowhere."""
    np.random.seed(0)
    dims = [3, 1, 4]
    start = 2 + 3 * 1
    reached = {random_walk(start, dims) for _ in range(300)}
    assert reached == {3, 4} | {2, 2 + 3 * 2, 2 + 3 * 3}
    assert random_walk(0, [1, 1]) == 0


def test_files_of_records(tmp_path: Path) -> None:
    """A folder has records for a kind of target under its name, with or without TVM's version, or for its alias."""
    assert not check_backend(tmp_path, "llvm")
    (tmp_path / "llvm_v0.04.log").touch()
    (tmp_path / "opencl.log").touch()
    assert check_backend(tmp_path, "llvm") and check_backend(str(tmp_path), "vulkan")
    assert not check_backend(tmp_path, "cuda")


def test_the_task_of_a_layout_transform() -> None:
    """A template of a tensor and two layouts, whose operations are its elements."""
    data = te.placeholder((1, 8, 2, 3), name="data")
    with LLVM:
        schedule, tensors = base_graph_tuner.layout_transform(data, "NCHW", "NCHW4c")
    function = tvm.build(schedule, tensors, "llvm")
    values = np.arange(48, dtype="float32").reshape(1, 8, 2, 3)
    out = tvm.nd.empty((1, 2, 2, 3, 4))
    function(tvm.nd.array(values), out)
    np.testing.assert_array_equal(out.numpy(), values.reshape(1, 2, 4, 2, 3).transpose(0, 1, 3, 4, 2))
    task = autotvm.task.create("layout_transform", args=(data, "NCHW", "NCHW4c"), target="llvm")
    assert isinstance(task, Task) and task.flop == 48
    assert topi.utils.get_const_tuple(tensors[1].shape) == (1, 2, 2, 3, 4)


def test_the_architecture_of_a_gpu(caplog: pytest.LogCaptureFixture) -> None:
    """Is an option of the target; the function says so, and changes nothing."""
    with caplog.at_level(logging.WARNING, "autotvm"):
        measure_methods.set_cuda_target_arch("sm_70")
    assert "use a target such as 'cuda -arch=sm_70'" in caplog.text
