"""Constant weights of a model in the layouts in which the schedules of its records read them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import auto_scheduler, relay
from tilewright.auto_scheduler import LayoutRewriteOption, MeasureInput, MeasureResult
from tilewright.auto_scheduler.relay_integration import rewrite_compute_body
from tilewright.relay.op.rewritten_weight import layout_of
from tilewright.support.errors import ScheduleError, TilewrightError
from tilewright.te.rewritten_layout import RewrittenLayout

GENERATOR = np.random.default_rng(3)


def dense(units: int) -> tuple[Any, Any]:
    """Its weight becomes a packed one first, of one block or more."""
    x, w = relay.var("x", shape=(16, 32)), relay.var("w", shape=(units, 32))
    return relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))), (units, 32)


def convolution(kernel: int, strides: int = 1, layout: str = "NHWC") -> tuple[Any, Any]:
    shape = {"NHWC": (kernel, kernel, 16, 24), "NCHW": (24, 16, kernel, kernel)}[layout]
    x = relay.var("x", shape={"NHWC": (1, 9, 9, 16), "NCHW": (1, 16, 9, 9)}[layout])
    w = relay.var("w", shape=shape)
    made = relay.nn.conv2d(
        x,
        w,
        kernel_size=(kernel, kernel),
        channels=24,
        strides=strides,
        data_layout=layout,
        kernel_layout={"NHWC": "HWIO", "NCHW": "OIHW"}[layout],
    )
    return relay.Function([x, w], relay.nn.relu(made)), shape


def volume() -> tuple[Any, Any]:
    x, w = relay.var("x", shape=(1, 4, 5, 5, 8)), relay.var("w", shape=(1, 1, 1, 8, 16))
    made = relay.nn.conv3d(
        x, w, kernel_size=(1, 1, 1), channels=16, data_layout="NDHWC", kernel_layout="DHWIO"
    )
    return relay.Function([x, w], made), (1, 1, 1, 8, 16)


CASES = {
    "dense": lambda: dense(256),
    "dense of one block": lambda: dense(16),
    "pointwise": lambda: convolution(1),
    "strided": lambda: convolution(3, 2),
    "channels first": lambda: convolution(3, 2, "NCHW"),
    "winograd": lambda: convolution(3),
    "volume": volume,
}


def record_with_a_layout(task: Any, option: int = 2) -> tuple[MeasureInput, MeasureResult]:
    """A record of a sampled state that wants another layout for the weight."""
    task.layout_rewrite_option = LayoutRewriteOption(option)
    policy = auto_scheduler.SketchPolicy(task, params={"sample_init_min_population": 4}, seed=1, verbose=0)
    for state in policy.sample_initial_population():
        changes = task.compute_dag.layout_changes_from_state(state)
        if changes and len(changes[0].shape) > 4:
            return MeasureInput(task, state), MeasureResult([1e-9], 0, "", 0.1, 1.0)
    raise AssertionError("no state changes the layout")


def outputs(mod: Any, params: Any, x: Any, context: Any = None) -> tuple[Any, Any]:
    """The built model, and what it computes."""
    with tvm.transform.PassContext(opt_level=3, config={"relay.backend.use_auto_scheduler": True}):
        if context is None:
            lib = relay.build(mod, "llvm", params=params)
        else:
            with context:
                lib = relay.build(mod, "llvm", params=params)
    executor = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    executor.set_input("x", x)
    executor.run()
    return lib, executor.get_output(0).numpy()


def prepare(case: str) -> tuple[Any, Any, Any, Any]:
    """A model, its parameters, an input and its task."""
    function, shape = CASES[case]()
    mod = tvm.IRModule.from_expr(function)
    params = {"w": GENERATOR.standard_normal(shape).astype("float32")}
    x = GENERATOR.standard_normal([int(extent) for extent in function.params[0].type_annotation.shape])
    tasks, _ = auto_scheduler.extract_tasks(mod, params, "llvm")
    (task,) = [one for one in tasks if "weight_transform" not in one.desc]
    return mod, params, x.astype("float32"), task


def rewritten_calls(mod: Any) -> list[Any]:
    """The operators of a model whose weight is in another layout."""
    found: list[Any] = []

    def note(expr: Any) -> None:
        if isinstance(expr, relay.Call) and isinstance(expr.op, tvm.ir.Op):
            if layout_of(expr.op.name, expr.attrs) is not None:
                found.append(expr)

    relay.analysis.post_order_visit(mod["main"], note)
    return found


@pytest.mark.parametrize("case", CASES)
def test_a_record_runs_with_its_weight_rewritten(case: str) -> None:
    """The weight is rewritten while the model is compiled, and never again; the schedule is the record's."""
    mod, params, x, task = prepare(case)
    assert task.layout_rewrite_option == LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
    measured, result = record_with_a_layout(task)
    (change,) = task.compute_dag.layout_changes_from_state(measured.state)
    context = auto_scheduler.ApplyHistoryBest([(measured, result)])
    given = []
    answer = context.schedule

    def noting(request: Any) -> Any:
        made = answer(request)
        if made is not None:
            given.append([tuple(int(extent) for extent in one.shape) for one in request.arguments])
        return made

    context.schedule = noting  # type: ignore[method-assign]
    lib, found = outputs(mod, params, x, context)
    (call,) = rewritten_calls(lib.ir_mod)
    assert layout_of(call.op.name, call.attrs).shape == change.shape
    assert any(change.shape in shapes for shapes in given)
    assert "auto_scheduler_layout_transform" not in str(lib.ir_mod)
    assert change.shape in [one.shape for one in lib.get_params().values()]
    np.testing.assert_allclose(found, outputs(mod, params, x)[1], rtol=1e-4, atol=1e-4)


def test_other_executors_read_the_rewritten_weight() -> None:
    """The virtual machine, and the interpreter with the operators' references."""
    mod, params, x, task = prepare("pointwise")
    context = auto_scheduler.ApplyHistoryBest([record_with_a_layout(task)])
    expected = outputs(mod, params, x)[1]
    with context, tvm.transform.PassContext(opt_level=3):
        machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params), tvm.cpu())
        lib = relay.build(mod, "llvm", params=params)
    np.testing.assert_allclose(machine.run(x).numpy(), expected, rtol=1e-4, atol=1e-4)
    assert rewritten_calls(lib.ir_mod)
    interpreted = relay.create_executor("debug", lib.ir_mod).evaluate()(x).numpy()
    np.testing.assert_allclose(interpreted, expected, rtol=1e-4, atol=1e-4)
    # A model that is compiled without the records later still computes the same.
    rebuilt = outputs(lib.ir_mod, {}, x)[1]
    np.testing.assert_allclose(rebuilt, expected, rtol=1e-4, atol=1e-4)


def test_weights_that_keep_their_layout() -> None:
    """Those that are inputs of the model, and those of records that were measured without another layout."""
    function, _ = CASES["pointwise"]()
    mod = tvm.IRModule.from_expr(function)
    ((task,), _) = auto_scheduler.extract_tasks(mod, {}, "llvm")
    assert task.layout_rewrite_option == LayoutRewriteOption.NO_REWRITE
    record = record_with_a_layout(task)
    with auto_scheduler.ApplyHistoryBest([record]), tvm.transform.PassContext(opt_level=3):
        assert not rewritten_calls(relay.build(mod, "llvm").ir_mod)
    mod, params, x, task = prepare("pointwise")
    context = auto_scheduler.ApplyHistoryBest([record_with_a_layout(task, option=0)])
    assert not rewritten_calls(outputs(mod, params, x, context)[0].ir_mod)


def test_tasks_are_of_the_models_own_layouts(tmp_path: Path) -> None:
    """Also within a context that rewrites weights, so that a search can go on."""
    mod, params, _, task = prepare("pointwise")
    record = record_with_a_layout(task)
    path = tmp_path / "records.json"
    auto_scheduler.save_records(path, [record[0]], [record[1]])
    with auto_scheduler.ApplyHistoryBest(str(path)):
        ((again,), _) = auto_scheduler.extract_tasks(mod, params, "llvm")
    assert again.workload_key == task.workload_key


def test_a_weight_that_does_not_have_its_layout() -> None:
    """A type error that names the operator."""
    attrs = relay.nn.dense(relay.var("x", shape=(4, 8)), relay.var("w", shape=(6, 8))).attrs
    weight = relay.var("w", shape=(3, 8, 2))
    x = relay.var("x", shape=(4, 8))

    def typed(layout: str) -> Any:
        call = relay.Call(
            relay.op.get("nn.dense"), [x, weight], attrs.replace(auto_scheduler_rewritten_layout=layout)
        )
        return relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, weight], call)))

    assert typed("3j8k2j")["main"].ret_type.shape == (4, 6)
    with pytest.raises(TilewrightError, match="does not have the layout 3j4k2j"):
        typed("3j4k2j")
    with pytest.raises(TilewrightError, match="has no axis k"):
        typed("3j8m2j")


def test_a_computation_with_its_weight_rewritten() -> None:
    """By hand, as TVM's own operators do it."""
    a, b = tvm.te.placeholder((4, 8), name="A"), tvm.te.placeholder((8, 6), name="B")
    k = tvm.te.reduce_axis((0, 8), name="k")
    c = tvm.te.compute(
        (4, 6),
        lambda i, j: tvm.te.sum(a[i, k] * b[k, j], axis=k),
        name="C",
        attrs={"layout_free_placeholders": [b]},
    )
    made = rewrite_compute_body(c, "3j8k2j")
    weight = next(one for one in made.op.input_tensors if one.op.name == "B")
    assert [int(extent) for extent in weight.shape] == [3, 8, 2]
    left, right = GENERATOR.standard_normal((4, 8)), GENERATOR.standard_normal((8, 6))
    out = np.zeros((4, 6), "float32")
    kernel = tvm.build(tvm.te.create_schedule(made.op), [a, weight, made], "llvm")
    moved = right.reshape(8, 3, 2).transpose(1, 0, 2)
    kernel(left.astype("float32"), np.ascontiguousarray(moved.astype("float32")), out)
    np.testing.assert_allclose(out, left @ right, rtol=1e-4, atol=1e-4)
    with pytest.raises(ScheduleError, match="names 0 inputs"):
        rewrite_compute_body(made, "3j8k2j")


@pytest.mark.parametrize("is_right", [True, False])
def test_a_rewritten_candidate_takes_turns_with_the_constructed_schedule(
    is_right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the same weights, each in its own layout; one that computes something else is found out."""
    _, _, _, task = prepare("pointwise")
    measured, _ = record_with_a_layout(task)
    measurer = auto_scheduler.TuningOptions(
        runner=auto_scheduler.LocalRunner(number=1, repeat=1, min_repeat_ms=0), verbose=0
    ).measurer()
    policy = auto_scheduler.SketchPolicy(task, verbose=0)
    assert measurer.measure_untuned(task, policy) is not None
    if not is_right:
        monkeypatch.setattr(
            RewrittenLayout, "rewrite", lambda self, weight: np.zeros(self.shape, weight.dtype)
        )
    results: list[MeasureResult] = []
    monkeypatch.setattr(
        measurer,
        "callbacks",
        [SimpleNamespace(callback=lambda _, __, found: results.extend(found), untuned=lambda *_: None)],
    )
    measurer.confirm(task, policy, measured)
    (result,) = results
    assert (result.error_no == 0) == is_right
    assert is_right or "differs from the incumbent" in str(result.error_msg)
