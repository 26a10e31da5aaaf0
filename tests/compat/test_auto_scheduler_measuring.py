"""Building and measuring states by the functions and classes that TVM has for it, and by classes of one's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.auto_scheduler.computations import matmul
from tests.rpc.boards import tracker_with_a_board

import tilewright as tvm
from tilewright import auto_scheduler, rpc, te
from tilewright.auto_scheduler import measure, measure_record, search_policy, search_task
from tilewright.auto_scheduler.measure import (
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    ProgramMeasurer,
)
from tilewright.auto_scheduler.task_inputs import TASK_INPUT_CHECK_FUNC_REGISTRY, prepare_input_map
from tilewright.support.errors import TilewrightError


@auto_scheduler.register_workload
def product_to_measure(rows: int, columns: int, depth: int) -> list[te.Tensor]:
    """A product of matrices."""
    return matmul(rows, columns, depth)


@pytest.fixture(scope="module")
def task() -> auto_scheduler.SearchTask:
    """A small product, by the older name of what makes a task."""
    return search_task.create_task("product_to_measure", (8, 16, 12), tvm.target.Target("llvm"))


@pytest.fixture(scope="module")
def inputs(task: auto_scheduler.SearchTask) -> list[MeasureInput]:
    """The program as it is, and with a loop unrolled."""
    dag = task.compute_dag
    unrolled = dag.get_init_state()
    unrolled.unroll(2, unrolled.stages[2].iters[2])
    return [MeasureInput(task, dag.get_init_state()), MeasureInput(task, unrolled)]


@pytest.fixture(scope="module")
def built(inputs: list[MeasureInput]) -> list[Any]:
    """The programs of the inputs."""
    return measure.local_builder_build(inputs, 60, 1, verbose=0)


def good(results: Sequence[MeasureResult], repeat: int) -> bool:
    """True if there are so many times for each program."""
    return all(
        one.error_no == MeasureErrorNo.NO_ERROR
        and len(one.costs) == repeat
        and min(map(float, one.costs)) > 0
        for one in results
    )


def test_tasks_by_their_older_name(task: auto_scheduler.SearchTask) -> None:
    """The same task as by the class; a function may stand for the name that it is registered by."""
    same = auto_scheduler.SearchTask(func="product_to_measure", args=(8, 16, 12), target="llvm")
    assert isinstance(task, auto_scheduler.SearchTask) and task.workload_key == same.workload_key
    hardware = auto_scheduler.HardwareParams(num_cores=3, target="llvm")
    other = search_task.create_task(product_to_measure, (8, 16, 12), "llvm", "llvm", hardware)
    assert other.workload_key == same.workload_key and other.hardware_params.num_cores == 3


def test_building(inputs: list[MeasureInput], built: list[Any]) -> None:
    """One result for each program, with its arguments; a function of one's own may give the loops."""
    assert [one.error_no for one in built] == [MeasureErrorNo.NO_ERROR] * 2
    assert [[int(size) for size in one.shape] for one in built[0].args] == [[8, 12], [12, 16], [8, 16]]
    assert measure.BuildFunc.name == "default"
    again = measure.local_builder_build(inputs[:1], 60, 1, measure.BuildFunc.name)
    assert again[0].error_no == MeasureErrorNo.NO_ERROR

    def refuses(measured: MeasureInput) -> Any:
        raise ValueError("no loops today")

    (failed,) = measure.local_builder_build(inputs[:1], 60, 1, refuses)  # type: ignore[arg-type]
    assert failed.error_no != MeasureErrorNo.NO_ERROR and "no loops today" in failed.error_msg
    with pytest.raises(TilewrightError, match="build_func is 'default', 'ndk' or a function"):
        measure.local_builder_build(inputs, 60, 1, "fast")


def test_running_on_this_machine(inputs: list[MeasureInput], built: list[Any]) -> None:
    """Each program is measured ``repeat`` times; TVM's context for it has a runner that does so."""
    assert good(measure.local_run(inputs, built, 30, number=1, repeat=2, verbose=0), 2)
    context = measure.LocalRPCMeasureContext(timeout=30, number=1, repeat=3)
    assert good(context.runner.run(inputs, built), 3)
    with pytest.raises(TilewrightError, match="n_parallel is 0"):
        measure.LocalRPCMeasureContext(n_parallel=0)


@pytest.fixture(scope="module")
def tracker() -> Iterator[rpc.Tracker]:
    """A tracker with one device."""
    with tracker_with_a_board() as made:
        yield made


def test_running_on_a_device(inputs: list[MeasureInput], built: list[Any], tracker: rpc.Tracker) -> None:
    """Of a tracker; a program that was not built stays what it is."""
    missing = measure.BuildResult(None, [], MeasureErrorNo.COMPILE_HOST, "does not compile", 0.5)
    results = measure.rpc_runner_run(
        [*inputs, inputs[0]],
        [*built, missing],
        "board",
        "127.0.0.1",
        tracker.port,
        timeout=30,
        number=1,
        repeat=2,
        verbose=0,
    )
    assert good(results[:2], 2)
    assert results[2].error_no == MeasureErrorNo.COMPILE_HOST and results[2].error_msg == "does not compile"


class Fixed(measure.ProgramRunner):
    """A runner for which every program takes as long as the last."""

    def run(self, measure_inputs: Any, build_results: Any, verbose: int = 1) -> list[MeasureResult]:
        return [MeasureResult([0.25], 0, "", 0.1, 1.0) for _ in measure_inputs]


class Pretends(measure.ProgramBuilder):
    """A builder that builds nothing."""

    def build(self, measure_inputs: Any, verbose: int = 1) -> list[Any]:
        return [measure.BuildResult(None, [], 0, "", 0.1) for _ in measure_inputs]


class Told(measure.PythonBasedMeasureCallback):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[tuple[Any, list[Any], list[Any]]] = []

    def callback(self, policy: Any, inputs: Any, results: Any) -> None:
        self.batches.append((policy, list(inputs), list(results)))


def test_builders_runners_and_callbacks_of_ones_own(task: auto_scheduler.SearchTask) -> None:
    """A measurer uses them; a policy that has no steps measures the program as it is, and gives its state."""
    told = Told()
    measurer = ProgramMeasurer(Pretends(), Fixed(), [told], verbose=0)
    policy = search_policy.EmptyPolicy(task)
    policy.set_verbose(0)
    assert policy.verbose == 0 and isinstance(policy, search_policy.SearchPolicy)
    found, results = policy.continue_search_one_round(5, measurer)
    assert len(found) == len(results) == 1 and results[0].costs == (0.25,)
    assert told.batches[0][0] is policy and told.batches[0][2] == results
    best = policy.search(10, -1, 1, measurer)
    assert best is not None and not best.state_object.transform_steps and len(told.batches) == 2
    assert policy.search(0, -1, 1, measurer) is not None and len(told.batches) == 2


def test_what_has_to_be_said() -> None:
    """A class that lacks its method names itself and the method."""
    for make, call in (
        (measure.ProgramBuilder, lambda one: one.build([])),
        (measure.ProgramRunner, lambda one: one.run([], [])),
        (measure.MeasureCallback, lambda one: one.callback(None, [], [])),
        (measure.PythonBasedMeasureCallback, lambda one: one.callback(None, [], [])),
        (search_policy.SearchCallback, lambda one: one.apply(None)),
    ):
        with pytest.raises(NotImplementedError, match=f"{make.__name__} has no method"):
            call(make())
    plain = search_policy.SearchPolicy(None)
    with pytest.raises(NotImplementedError):
        plain.continue_search_one_round(1, None)  # type: ignore[arg-type]


def test_callbacks_of_a_search(task: auto_scheduler.SearchTask) -> None:
    """One that is given to a policy prepares it before the search."""

    class Quiet(search_policy.SearchCallback):
        def apply(self, policy: Any) -> None:
            policy.set_verbose(0)
            policy.prepared = True

    policy: Any = search_policy.SketchPolicy(task, init_search_callbacks=[Quiet()], verbose=1)
    assert policy.prepared and policy.verbose == 0


def test_arguments_with_given_values() -> None:
    """A registered function names those that random numbers would not do for."""
    x, rows = te.placeholder((4,), name="x"), te.placeholder((4,), "int32", name="rows")
    try:

        @measure.register_task_input_check_func
        def integers(args: Sequence[Any]) -> dict[Any, str]:
            return {one: f"given_{one.name}" for one in args if one.dtype == "int32"}

        assert prepare_input_map([x, rows]) == {rows: "given_rows"}
        with pytest.raises(TilewrightError, match="integers is registered already"):
            measure.register_task_input_check_func("integers", lambda args: {})
        nothing = measure.register_task_input_check_func("integers", lambda args: {}, override=True)
        assert nothing([x]) == {} and prepare_input_map([x, rows]) == {}
    finally:
        TASK_INPUT_CHECK_FUNC_REGISTRY.pop("integers", None)


def test_records_of_unknown_workloads(
    inputs: list[MeasureInput], tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A reader warns of those whose programs cannot be made here, and of no others."""
    reader = measure_record.RecordReader(tmp_path / "records.json")
    with caplog.at_level("WARNING", "auto_scheduler"):
        reader.check_workload_key(inputs)
        assert not caplog.records
        unknown = [
            measure_record.load_record_from_string(
                f'{{"i": [["[\\"{name}\\", 1]", "llvm"], [[], []]], "r": [[0.1], 0, 0.2, 1], "v": "v0.2"}}'
            )[0]
            for name in ("nobody_knows", "or_this")
        ]
        reader.check_workload_key([*inputs, *unknown])
    (warning,) = caplog.records
    assert 'workload ["nobody_knows", 1], and 1 others is not registered' in warning.getMessage()
