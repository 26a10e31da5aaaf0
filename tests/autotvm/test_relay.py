"""Tasks of Relay programs: their names, their spaces, and builds that use what was found."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import autotvm, relay, te, topi
from tilewright.autotvm.measure import MeasureInput, MeasureResult
from tilewright.autotvm.record import decode
from tilewright.autotvm.task.constructed.description import described
from tilewright.autotvm.task.constructed.kinds import workloads_of
from tilewright.autotvm.task.space import ConfigEntity, OtherOptionEntity, SplitEntity
from tilewright.contrib import graph_executor
from tilewright.relay.testing.temp_op_attr import TempOpAttr


def _call(name: str, *shapes: tuple[int, ...], dtype: str = "float32", **attributes: Any) -> tvm.IRModule:
    variables = [relay.var(f"x{number}", shape=shape, dtype=dtype) for number, shape in enumerate(shapes)]
    operator = getattr(relay.nn, name)
    return tvm.IRModule.from_expr(relay.Function(variables, operator(*variables, **attributes)))


CONV = {"padding": (1, 1), "kernel_size": (3, 3)}
CALLS = [
    (_call("conv2d", (1, 8, 8, 8), (16, 8, 3, 3), **CONV), ["conv2d_NCHWc.x86"]),
    (_call("conv2d", (1, 16, 8, 8), (16, 1, 3, 3), groups=16, **CONV), ["depthwise_conv2d_NCHWc.x86"]),
    (_call("conv2d", (1, 16, 8, 8), (16, 4, 3, 3), groups=4, **CONV), ["group_conv2d_nchw.x86"]),
    (
        _call("conv2d", (1, 8, 8, 8), (3, 3, 8, 16), data_layout="NHWC", kernel_layout="HWIO", **CONV),
        ["conv2d_nhwc.x86"],
    ),
    (_call("dense", (8, 32), (16, 32)), ["dense_nopack.x86", "dense_pack.x86"]),
    (_call("batch_matmul", (2, 8, 16), (2, 12, 16)), ["batch_matmul.x86"]),
]


@pytest.mark.parametrize(("module", "names"), CALLS, ids=[names[0] for _, names in CALLS])
def test_tasks_have_the_names_of_tvm(module: tvm.IRModule, names: list[str]) -> None:
    """Each has a space, whose first point can be instantiated, and work to count."""
    tasks = autotvm.task.extract_from_program(module, {}, "llvm")
    assert [task.name for task in tasks] == names
    for task in tasks:
        assert len(task.config_space) > 1 and task.config_space.default_index == 0 and task.flop > 0
        with tvm.target.Target("llvm"):
            task.instantiate(task.config_space.get(len(task.config_space) - 1))


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (_call("conv1d", (1, 8, 16), (16, 8, 3), padding=(1,)), "conv1d_ncw.x86"),
        (_call("conv2d_transpose", (1, 8, 4, 4), (8, 16, 3, 3), strides=(2, 2)), "conv2d_transpose_nchw.x86"),
        (_call("max_pool2d", (1, 8, 8, 8), pool_size=(2, 2)), "max_pool2d.x86"),
    ],
)
def test_operators_that_are_asked_for(module: tvm.IRModule, name: str) -> None:
    """Operators that passes rewrite, and those without arguments of their own, are tasks if ``ops`` names them."""
    operator = next(part.op for part in [module["main"].body])
    (task,) = autotvm.task.extract_from_program(module, {}, "llvm", ops=(operator,))
    assert task.name == name
    assert autotvm.task.create(task.name, task.args, "llvm").workload == task.workload


@pytest.fixture(scope="module")
def convolution() -> Any:
    """A convolution with a bias and an activation, its only task, and its result."""
    x, w, b = (
        relay.var("x", shape=(1, 8, 12, 12)),
        relay.var("w", shape=(16, 8, 3, 3)),
        relay.var("b", shape=(16,)),
    )
    body = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, w, padding=(1, 1), kernel_size=(3, 3)), b))
    module = tvm.IRModule.from_expr(relay.Function([x, w, b], body))
    random = np.random.default_rng(0)
    params = {
        "w": random.standard_normal((16, 8, 3, 3)).astype("float32"),
        "b": random.standard_normal(16).astype("float32"),
    }
    (task,) = autotvm.task.extract_from_program(module, params, "llvm")
    return module, params, task


def _build(module: Any, params: Any, **options: Any) -> tuple[np.ndarray, list[str]]:
    with tvm.transform.PassContext(opt_level=3, **options):
        library = relay.build(module, "llvm", params=params)
    runner = graph_executor.GraphModule(library["default"](tvm.cpu()))
    runner.set_input("x", np.random.default_rng(1).standard_normal((1, 8, 12, 12)).astype("float32"))
    runner.run()
    return runner.get_output(0).numpy(), [
        name for name in library.get_lib().function_names if "conv2d" in name
    ]


def _record(task: Any, config: Any, seconds: float = 1e-6) -> Any:
    return MeasureInput(task.target, task, config), MeasureResult((seconds,), 0, 0.0, 0.0)


def _with(task: Any, **choices: Any) -> Any:
    """The first configuration of a space with these choices."""
    for variant in task.config_space.variants:
        merged = {**variant.fixed, **{name: values[0] for name, values in variant.knobs.items()}}
        if all(merged.get(name) == value for name, value in choices.items() if name in variant.fixed):
            entities = {name: OtherOptionEntity(value) for name, value in {**merged, **choices}.items()}
            return ConfigEntity(0, None, entities, [])
    raise AssertionError(choices)


def test_a_build_uses_what_was_found(convolution: Any) -> None:
    """The algorithm and the register tile of the record are those of the kernel, and it computes the same."""
    module, params, task = convolution
    expected, _ = _build(module, params)
    direct = next(variant for variant in task.config_space.variants if variant.fixed["algorithm"] == 0)
    config = _with(task, algorithm=0, tile=direct.knobs["tile"][3])
    with autotvm.apply_history_best([_record(task, config)]) as best:
        found, names = _build(module, params)
    assert len(best.fit.used) == 1 and not best.fit.refused
    assert "winograd" not in names[0]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    with autotvm.apply_history_best([_record(task, _with(task, algorithm=4))]):
        found, names = _build(module, params)
    assert "winograd" in names[0]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_records_that_do_not_fit_are_reported(convolution: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A tile that no schedule here has leaves the kernel untuned; one warning says so."""
    module, params, task = convolution
    config = _with(task, algorithm=0, tile=(999, 1, 8, 1))
    with caplog.at_level(logging.WARNING, "autotvm"), autotvm.apply_history_best([_record(task, config)]):
        _build(module, params)
    assert caplog.text.count("do not fit") == 1 and "999" in caplog.text


def test_records_of_tvm_are_used_where_they_fit(convolution: Any) -> None:
    """The tile of a record that TVM made is the register tile here, if the schedule can have it."""
    module, params, task = convolution
    direct = next(variant for variant in task.config_space.variants if variant.fixed["algorithm"] == 0)
    rows, _, columns, panels = next(tile for tile in direct.knobs["tile"][1:] if tile[1] == 1)
    entities = {
        "tile_ic": SplitEntity([-1, 8]),
        "tile_oc": SplitEntity([-1, columns * panels]),
        "tile_ow": SplitEntity([-1, rows]),
        "unroll_kw": OtherOptionEntity(True),
    }
    record = _record(task, ConfigEntity(7, None, entities, []))
    with autotvm.apply_history_best([record]) as best:
        _build(module, params, config={"relay.winograd.largest_tile": 0})
    fitted = {**best.fit.partly, **dict.fromkeys(best.fit.used)}
    assert list(fitted) == [task.workload] and not best.fit.refused


def test_the_faster_form_of_a_dense_layer(convolution: Any) -> None:
    """Of the tasks of a dense layer, the one measured faster decides whether its weight is packed."""
    module = _call("dense", (8, 32), (16, 32))
    whole, packed = autotvm.task.extract_from_program(module, {}, "llvm")
    names = {}
    for fast, slow in ((whole, packed), (packed, whole)):
        records = [
            _record(fast, fast.config_space.get(0), 1e-6),
            _record(slow, slow.config_space.get(0), 1e-3),
        ]
        with autotvm.apply_history_best(records), tvm.transform.PassContext(opt_level=3):
            library = relay.build(module, "llvm")
        names[fast.name] = " ".join(library.get_lib().function_names)
    assert "dense_pack" in names["dense_pack.x86"] and "dense_pack" not in names["dense_nopack.x86"]


def test_blocked_calls_are_the_workloads_of_plain_ones() -> None:
    """Blocks of channels, and blocks of blocks, do not change what a convolution is called in records."""
    window = SimpleNamespace(strides=(1, 1), padding=(1, 1), dilation=(1, 1), groups=1, out_dtype="int32")
    plain = SimpleNamespace(**vars(window), data_layout="NCHW", kernel_layout="OIHW", out_layout="")
    blocked = SimpleNamespace(
        **vars(window), data_layout="NCHW16c", kernel_layout="OIHW4i8o4i", out_layout="NCHW8c"
    )
    tensors = [te.placeholder(shape, dtype="uint8") for shape in ((1, 32, 8, 8), (16, 32, 3, 3))]
    packed = [te.placeholder(shape, dtype="uint8") for shape in ((1, 2, 8, 8, 16), (2, 2, 3, 3, 4, 8, 4))]
    target = tvm.target.Target("llvm")
    expected = workloads_of(described("nn.conv2d", plain, tensors), target)
    assert [workload[0] for workload in expected] == ["conv2d_NCHWc_int8.x86"]
    assert workloads_of(described("nn.contrib_conv2d_NCHWc", blocked, packed), target) == expected


def test_templates_of_topi() -> None:
    """A strategy's own templates are extracted, get their configuration in a build, and compete by their records."""

    @autotvm.register_topi_compute("tests/dense")
    def compute(cfg: Any, data: Any, weight: Any, bias: Any, out_dtype: Any) -> Any:
        cfg.define_knob("factor", [1, 4])
        return topi.nn.dense(data, weight, bias, out_dtype)

    seen: list[Any] = []

    @autotvm.register_topi_schedule("tests/dense")
    def schedule(cfg: Any, outs: Any) -> Any:
        seen.append(cfg["factor"].val)
        return te.create_schedule([out.op for out in outs])

    @tvm.target.override_native_generic_func("tests_dense_strategy")
    def strategy(attrs: Any, inputs: Any, out_type: Any, target: Any) -> Any:
        made = relay.op.OpStrategy()
        wrapped = relay.op.strategy.wrap_compute_dense(compute)
        made.add_implementation(wrapped, relay.op.strategy.wrap_topi_schedule(schedule), "tests.dense", 15)
        return made

    module = _call("dense", (4, 8), (4, 8))
    with TempOpAttr("nn.dense", "FTVMStrategy", strategy):
        tasks = autotvm.task.extract_from_program(module, {}, "llvm", ops=(relay.op.get("nn.dense"),))
        (task,) = [task for task in tasks if task.name == "tests/dense"]
        with autotvm.apply_history_best([_record(task, task.config_space.get(1))]):
            relay.build(module, "llvm")
    assert len(task.config_space) == 2 and seen[-1] == 4


def test_a_record_of_another_rank_is_used() -> None:
    """A convolution of lines is compiled as one of images; its records count there."""
    module = _call("conv1d", (1, 8, 16), (16, 8, 3), padding=(1,))
    (task,) = autotvm.task.extract_from_program(module, {}, "llvm", ops=(relay.op.get("nn.conv1d"),))
    records = [_record(task, task.config_space.get(0))]
    with autotvm.apply_history_best(records) as best, tvm.transform.PassContext(opt_level=3):
        relay.build(module, "llvm")
    assert best.fit.used or best.fit.partly


def test_records_without_a_template_here() -> None:
    """Records of unknown templates are read; only instantiating one is an error, which names the template."""
    line = (
        '{"input": ["llvm", "elsewhere/conv", [1, 2], {}], "config": {"index": 0, "code_hash": null, "entity": []}, '
        '"result": [[1.0], 0, 1.0, 1.0], "version": 0.2, "tvm_version": "0.8.0"}'
    )
    record = decode(line)
    assert record is not None
    with pytest.raises(ValueError, match="elsewhere/conv"):
        record[0].task.instantiate(record[0].config)


def test_tiles_of_tensor_cores_are_knobs() -> None:
    """A product there is a kernel written as statements: its operations are those of the computation."""
    x, w = relay.var("x", shape=(64, 32), dtype="float16"), relay.var("w", shape=(48, 32), dtype="float16")
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    (task,) = autotvm.task.extract_from_program(module["main"], {}, tvm.target.Target("cuda -arch=sm_90a"))
    assert "tensor_core_tile" in task.config_space.space_map and len(task.config_space) > 8
    assert task.flop == 2 * 64 * 48 * 32
