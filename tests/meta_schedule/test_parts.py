"""The parts of a tuning: descriptions of arguments, builders, runners, databases, spaces, strategies, schedulers."""

import math
import time
from pathlib import Path

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, tir
from tilewright.meta_schedule import TuneContext
from tilewright.meta_schedule.arg_info import ArgInfo, TensorInfo
from tilewright.meta_schedule.builder import BuilderInput, BuilderResult, LocalBuilder, PyBuilder
from tilewright.meta_schedule.database import JSONDatabase, TuningRecord, Workload
from tilewright.meta_schedule.integration import (
    ApplyHistoryBest,
    MetaScheduleContext,
    TaskExtraction,
    extract_task,
)
from tilewright.meta_schedule.runner import (
    EvaluatorConfig,
    LocalRunner,
    PyRunner,
    RPCConfig,
    RPCRunner,
    RunnerInput,
    RunnerResult,
)
from tilewright.meta_schedule.runner.runner import RunnerFuture, known_future
from tilewright.meta_schedule.search_strategy import ReplayTrace
from tilewright.meta_schedule.space_generator import PySpaceGenerator, ScheduleFn, SpaceGeneratorUnion
from tilewright.meta_schedule.task_scheduler import PyTaskScheduler, RoundRobin
from tilewright.meta_schedule.testing import LocalRPC, get_network
from tilewright.meta_schedule.utils import get_global_func_with_default_on_worker, remove_build_dir
from tilewright.relay import Function, var
from tilewright.relay.op import nn
from tilewright.support.errors import TilewrightError

QUICK = EvaluatorConfig(number=1, repeat=2, min_repeat_ms=0)


def doubled(size=16):
    """B = A * 2 as a module."""
    a = te.placeholder((size,), name="A")
    b = te.compute((size,), lambda i: a[i] * 2.0, name="B")
    return tvm.IRModule({"main": te.create_prim_func([a, b]).with_attr("global_symbol", "main")})


def tiled(schedule):
    """Split the only loop at a sampled place."""
    (i,) = schedule.get_loops(schedule.get_block("B"))
    schedule.split(i, schedule.sample_perfect_tile(i, n=2))


def built():
    """The file of a module that runs, and what its arguments are."""
    (result,) = LocalBuilder().build([BuilderInput(doubled(), "llvm")])
    assert result.error_msg is None
    return result.artifact_path, [TensorInfo("float32", [16])] * 2


def test_arguments_are_described():
    """The description of a function's arguments is text and JSON, and both can be read again."""
    infos = ArgInfo.from_prim_func(doubled()["main"])
    assert [str(one) for one in infos] == ['TensorInfo("float32", [16])'] * 2
    assert str(ArgInfo.from_json(infos[0].as_json())) == str(infos[0])
    with pytest.raises(TilewrightError, match="TENSOR"):
        ArgInfo.from_json(["SCALAR", "float32"])
    n = te.size_var("n")
    unknown = te.placeholder((n,), name="A")
    with pytest.raises(TilewrightError, match="not known"):
        ArgInfo.from_prim_func(te.create_prim_func([unknown, te.compute((n,), lambda i: unknown[i])]))


def test_builders():
    """A build gives a file; what fails, or takes too long, gives a message; a name nobody registered is refused."""
    path, _ = built()
    assert Path(path).exists()
    remove_build_dir(path)
    assert not Path(path).parent.exists()

    def initializer():
        tvm.register_func("test.meta_schedule.fails", _fails, override=True)

    failing = LocalBuilder(f_build="test.meta_schedule.fails", initializer=initializer)
    (result,) = failing.build([BuilderInput(doubled(), "llvm")])
    assert (
        result.error_msg.startswith("LocalBuilder: An exception occurred") and "no luck" in result.error_msg
    )
    slow = LocalBuilder(timeout_sec=0.2, f_build=lambda mod, target: time.sleep(2))
    (result,) = slow.build([BuilderInput(doubled(), "llvm")])
    assert result.artifact_path is None and result.error_msg.startswith("LocalBuilder: Timeout")
    with pytest.raises(ValueError, match="wrong-name"):
        LocalBuilder(f_build="wrong-name")
    with pytest.raises(NotImplementedError, match="build"):
        PyBuilder()


def _fails(mod, target):
    raise ValueError("no luck")


def test_local_runner():
    """A candidate is measured as often as asked for; one that fails or hangs says so."""
    path, infos = built()
    given = RunnerInput(path, "cpu", infos)
    (future,) = LocalRunner(evaluator_config=QUICK).run([given])
    result = future.result()
    assert future.done() and result.error_msg is None
    assert len(result.run_secs) == 2 and all(one >= 0 for one in result.run_secs)

    def nothing(device, args_info, alloc_repeat):
        raise RuntimeError("no memory")

    (future,) = LocalRunner(evaluator_config=QUICK, f_alloc_argument=nothing).run([given])
    assert future.result().error_msg.startswith("LocalRunner: An exception occurred\n")
    hanging = LocalRunner(timeout_sec=0.2, f_alloc_argument=lambda *_: time.sleep(2))
    (future,) = hanging.run([given])
    assert future.result().error_msg.startswith("LocalRunner: Timeout, killed after 0.2")
    remove_build_dir(path)


def test_rpc_runner():
    """A candidate is measured by a server that the tracker lends."""
    path, infos = built()
    with LocalRPC() as rpc:
        config = RPCConfig(rpc.tracker_host, rpc.tracker_port, rpc.tracker_key, session_timeout_sec=60)
        (future,) = RPCRunner(config, QUICK).run([RunnerInput(path, "cpu", infos)])
    assert future.result().error_msg is None and len(future.result().run_secs) == 2
    remove_build_dir(path)


def test_database(tmp_path):
    """Records come back in the order of their means, from memory and from the files."""
    names = [str(tmp_path / name) for name in ("workloads.json", "records.json")]
    database = JSONDatabase(*names)
    mod = doubled()
    workload = database.commit_workload(mod)
    assert database.commit_workload(doubled()) is workload
    schedule = tir.Schedule(mod, seed=1)
    tiled(schedule)
    infos = ArgInfo.from_prim_func(mod["main"])
    for seconds in ([3.0, 4.0], [1.0], [2.0, 2.0]):
        database.commit_tuning_record(TuningRecord(schedule.trace, seconds, workload, "llvm", infos))
    for one in (database, JSONDatabase(*names)):
        best = one.get_top_k(one.commit_workload(mod), 2)
        assert len(one) == 3 and [record.run_secs for record in best] == [[1.0], [2.0, 2.0]]
        assert str(best[0].trace) == str(schedule.trace)
        assert one.get_top_k(Workload(doubled(8)), 1) == []
    with pytest.raises(TilewrightError, match="allow_missing"):
        JSONDatabase(str(tmp_path / "a"), str(tmp_path / "b"), allow_missing=False)
    answer = ApplyHistoryBest(database).query("double", mod, [mod])
    assert tvm.ir.structural_equal(answer, best[0].trace and schedule.mod)


def test_spaces_and_replays():
    """A function spans a space; a replay takes other decisions of the same steps."""
    mod = doubled()
    union = SpaceGeneratorUnion([ScheduleFn(tiled), ScheduleFn(tiled)])
    spaces = union.generate_design_space(mod)
    assert len(spaces) == 2
    assert all(math.prod(decision) == 16 for decision in spaces[0].trace.decisions.values())
    strategy = ReplayTrace(num_trials_per_iter=3, num_trials_total=7)
    strategy.initialize_with_tune_context(TuneContext(mod=mod, rand_state=1))
    with pytest.raises(TilewrightError, match="pre_tuning"):
        strategy.generate_measure_candidates()
    strategy.pre_tuning(spaces)
    counts = []
    while (candidates := strategy.generate_measure_candidates()) is not None:
        counts.append(len(candidates))
        assert all(len(one.sch.trace) == len(spaces[0].trace) for one in candidates)
        strategy.notify_runner_results([RunnerResult([1.0], None)] * len(candidates))
    strategy.post_tuning()
    assert counts == [3, 3, 1]
    with pytest.raises(NotImplementedError, match="generate_design_space"):
        PySpaceGenerator()


class _Builds(PyBuilder):
    def build(self, build_inputs):
        return [BuilderResult("file", None if number else "broken") for number, _ in enumerate(build_inputs)]


class _Runs(PyRunner):
    def run(self, runner_inputs):
        return [known_future(RunnerResult([0.5], None)) for _ in runner_inputs]


def test_task_scheduler(tmp_path):
    """Tasks take turns until each has its trials; what could not be built is no record."""
    database = JSONDatabase(str(tmp_path / "workloads"), str(tmp_path / "records"))
    tasks = [
        TuneContext(doubled(size), "llvm", ScheduleFn(tiled), ReplayTrace(2, 5), f"size {size}", 1)
        for size in (8, 16)
    ]
    RoundRobin(tasks, _Builds(), _Runs(), database).tune()
    assert all(task.is_stopped for task in tasks)
    # Two of two trials twice, then one of one: the first of each batch was not built.
    assert [len(database.get_top_k(Workload(task.mod), 99)) for task in tasks] == [2, 2]
    with pytest.raises(NotImplementedError, match="next_task_id"):
        PyTaskScheduler(tasks, _Builds(), _Runs(), database)
    with pytest.raises(NotImplementedError, match="done and result"):
        RunnerFuture()


def test_contexts_are_asked():
    """A context collects what it is asked about, and only one is in use at a time."""
    mod = doubled()
    assert MetaScheduleContext.current() is None
    with TaskExtraction() as extraction:
        assert MetaScheduleContext.current() is extraction
        MetaScheduleContext.query_inside_with_scope("double", mod, [mod])
        with pytest.raises(ValueError, match="already in use"), TaskExtraction():
            pass
    (task,) = extraction.tasks
    assert task.task_name == "double" and task.dispatched == [mod]


def test_tasks_of_a_model():
    """Each function of a model is a task with a program that can be scheduled."""
    x, w = var("x", shape=(2, 8)), var("w", shape=(4, 8))
    model = Function([x, w], nn.relu(nn.dense(x, w)))
    tasks = extract_task(model, "llvm")
    assert tasks and all(isinstance(tir.Schedule(one.dispatched[0]), tir.Schedule) for one in tasks)
    with pytest.raises(TilewrightError, match="no network"):
        get_network("alexnet", 1)


def test_functions_by_name():
    """A step is a function, the name of one, or the default."""
    assert get_global_func_with_default_on_worker(None, math.sin) is math.sin
    assert get_global_func_with_default_on_worker(np.cos, None) is np.cos
    assert get_global_func_with_default_on_worker("meta_schedule.remove_build_dir", None) is not None
