"""``relay.build`` and what it gives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.compile.cache import prune
from tilewright.contrib import graph_executor
from tilewright.support.errors import TargetError, TilewrightError

GENERATOR = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test compiles into a cache of its own."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def network() -> tuple[tvm.IRModule, dict[str, np.ndarray]]:
    """A small convolutional network and its weights."""
    data = relay.var("data", shape=(1, 4, 8, 8))
    weight = relay.var("weight", shape=(8, 4, 3, 3))
    bias = relay.var("bias", shape=(8,))
    features = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(data, weight, padding=(1, 1)), bias))
    result = relay.nn.softmax(relay.nn.batch_flatten(relay.nn.max_pool2d(features, (2, 2), (2, 2))))
    params = {
        "weight": GENERATOR.standard_normal((8, 4, 3, 3)).astype("float32"),
        "bias": GENERATOR.standard_normal(8).astype("float32"),
    }
    return tvm.IRModule.from_expr(relay.Function([data, weight, bias], result)), params


def run(library: tvm.runtime.Module, data: np.ndarray) -> np.ndarray:
    """The first output of a model for one input."""
    model = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    model.set_input("data", data)
    model.run()
    return model.get_output(0).numpy()


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_a_network_computes_what_the_reference_does(level: int) -> None:
    """At every optimisation level."""
    module, params = network()
    data = GENERATOR.standard_normal((1, 4, 8, 8)).astype("float32")
    expected = relay.create_executor("debug", module, params=params).evaluate()(data).numpy()
    with tvm.transform.PassContext(opt_level=level):
        library = relay.build(module, "llvm", params=params)
    np.testing.assert_allclose(run(library, data), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("suffix", [".tar", ".so"])
def test_an_exported_model_runs_where_it_is_loaded(tmp_path: Path, suffix: str) -> None:
    """Graph, parameters and code travel in one file."""
    module, params = network()
    data = GENERATOR.standard_normal((1, 4, 8, 8)).astype("float32")
    library = relay.build(module, "llvm", params=params)
    path = str(tmp_path / f"model{suffix}")
    library.export_library(path)
    np.testing.assert_array_equal(run(tvm.runtime.load_module(path), data), run(library, data))


def test_constants_never_take_the_name_of_an_input() -> None:
    """However many inputs there are: the 67th of 70 is called like the first constant would be."""
    inputs = [relay.var("p0" if number == 66 else f"x{number}", shape=(4,)) for number in range(70)]
    total = relay.add(inputs[0], relay.const(np.arange(4, dtype="float32")))
    for one in inputs[1:]:
        total = relay.add(total, one)
    library = relay.build(tvm.IRModule.from_expr(relay.Function(inputs, total)), "llvm")
    model = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    for one in inputs:
        model.set_input(one.name_hint, np.ones(4, "float32"))
    model.run()
    np.testing.assert_array_equal(model.get_output(0).numpy(), np.arange(70, 74))


def test_it_unpacks_as_older_scripts_expect() -> None:
    """Graph, library, parameters; and the pieces make an executor again."""
    module, params = network()
    graph, library, values = relay.build(module, "llvm", params=params)
    model = graph_executor.create(graph, library, tvm.cpu(0))
    data = GENERATOR.standard_normal((1, 4, 8, 8)).astype("float32")
    model.set_input(**values)
    model.set_input("data", data)
    model.run()
    expected = relay.create_executor("debug", module, params=params).evaluate()(data).numpy()
    np.testing.assert_allclose(model.get_output(0).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_kernels_come_from_the_cache_the_second_time(own_cache: Path) -> None:
    """And are compiled again when their entry is damaged."""
    module, params = network()
    first = relay.build(module, "llvm", params=params)
    assert first.cache_report.cached == 0
    assert first.cache_report.compiled > 0
    second = relay.build(module, "llvm", params=params)
    assert second.cache_report.compiled == 0
    entry = next((own_cache / "code").rglob("*.unit"))
    entry.write_bytes(entry.read_bytes()[:-1])
    third = relay.build(module, "llvm", params=params)
    assert third.cache_report.compiled == 1
    data = GENERATOR.standard_normal((1, 4, 8, 8)).astype("float32")
    np.testing.assert_array_equal(run(third, data), run(first, data))


SECOND_PROCESS = """
import tilewright as tvm
from tilewright import relay
module = tvm.parser.fromtext({module!r})
report = relay.build(module, "llvm").cache_report
print(report.compiled, report.cached)
"""


def test_kernels_come_from_the_cache_in_another_process(own_cache: Path) -> None:
    """Whatever order its sets have: nothing is lowered either, because what decides the code reads the same."""
    x = relay.var("x", shape=(4, 6))
    module = tvm.IRModule.from_expr(relay.Function([x], relay.nn.softmax(x)))
    program = SECOND_PROCESS.format(module=module.astext())
    reports = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for seed in ("1", "2", "3")
    ]
    assert reports == [["1", "0"], ["0", "1"], ["0", "1"]]
    assert len(list((own_cache / "code").rglob("*.key"))) == 1


def test_what_a_user_registers_is_never_taken_from_the_cache(own_cache: Path) -> None:
    """A schedule of the user's own is asked at every build; its code is found by the loops that it makes."""
    asked = []

    def schedule(attrs: object, outs: list[tvm.te.Tensor], target: tvm.target.Target) -> tvm.te.Schedule:
        asked.append(target)
        return tvm.te.create_schedule([out.op for out in outs])

    operator = relay.op.get("exp")
    relay.op.register_schedule("exp", schedule, level=99)
    try:
        data = relay.var("x", shape=(4,))
        module = tvm.IRModule.from_expr(relay.Function([data], relay.exp(data)))
        for _ in range(2):
            relay.build(module, "llvm")
    finally:
        operator.reset_attr("FTVMSchedule")
    assert len(asked) == 2
    assert len(list((own_cache / "code").rglob("*.unit"))) == 1
    assert not list((own_cache / "code").rglob("*.key"))


def test_the_cache_forgets_what_was_used_longest_ago(own_cache: Path) -> None:
    """Until what is left fits."""
    module, params = network()
    relay.build(module, "llvm", params=params)
    entries = [path for path in (own_cache / "code").rglob("*") if path.is_file()]
    total = sum(entry.stat().st_size for entry in entries)
    assert prune(total) == 0
    assert prune(total // 2) >= total - total // 2
    assert prune(0) > 0
    assert not list((own_cache / "code").rglob("*.unit"))


def test_functions_of_one_structure_share_a_kernel() -> None:
    """Whatever their variables are called."""
    x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
    function = relay.Function([x, y], relay.Tuple([relay.nn.softmax(x), relay.nn.softmax(y)]))
    library = relay.build(tvm.IRModule.from_expr(function), "llvm")
    assert library.cache_report.compiled + library.cache_report.cached == 1


def test_results_that_are_arguments_are_given_too() -> None:
    """An output may be an input, or stand twice."""
    x = relay.var("x", shape=(3,))
    doubled = x + x
    function = relay.Function([x], relay.Tuple([x, doubled, doubled]))
    values = np.arange(3, dtype="float32")
    found = relay.create_executor("graph", tvm.IRModule.from_expr(function)).evaluate()(values)
    for array, expected in zip(found, (values, 2 * values, 2 * values), strict=True):
        np.testing.assert_array_equal(array.numpy(), expected)


def test_a_reshape_costs_no_memory() -> None:
    """It is another view of its argument."""
    x = relay.var("x", shape=(4, 4))
    body = relay.reshape(relay.nn.softmax(x), (16,))
    library = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), "llvm")
    assert library.memory.arena_bytes == 64
    assert "__nop" in library.get_graph_json()


def test_what_cannot_be_built_says_why() -> None:
    """Clear errors for a missing target, a missing function, and control flow."""
    x = relay.var("x", shape=(2,))
    module = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    with pytest.raises(TargetError, match="name a target"):
        relay.build(module)
    with pytest.raises(TilewrightError, match="no function main"):
        relay.build(tvm.IRModule(), "llvm")
    with pytest.raises(TargetError, match="no code generator for targets of kind 'rocm'"):
        relay.build(module, "rocm")
    with pytest.raises(TargetError, match="llvm -keys=cpu is not a target for cuda"):
        relay.build(module, {"cuda": "llvm"})
    with pytest.raises(TargetError, match="the dictionary is empty"):
        relay.build(module, {})
    with pytest.raises(TargetError, match="graph and aot"):
        relay.build(module, "llvm", executor="steam")
    condition = relay.var("c", shape=(), dtype="bool")
    branching = relay.Function([condition, x], relay.If(condition, x, relay.exp(x)))
    with pytest.raises(TilewrightError, match="virtual machine"):
        relay.build(tvm.IRModule.from_expr(branching), "llvm")
    with pytest.raises(TilewrightError, match="no value for the parameters x"):
        relay.create_executor("graph", module).evaluate()()


def test_ahead_of_time() -> None:
    """The same model as one C function, asked for by name or by the target."""
    module, params = network()
    model = relay.build(module, "llvm", params=params, executor="aot").get_lib()
    assert "tilewright_default_run" in model.header()
    source = relay.build(module, "c -executor=aot", params=params).get_lib()
    assert "int32_t tilewright_default_run" in source.header()


@pytest.mark.parametrize(
    "target", ["c -executor=aot", "llvm --executor=aot --link-params --workspace-byte-alignment=8"]
)
def test_a_model_ahead_of_time_is_exported(target: str, tmp_path: Path) -> None:
    """What the build gives writes an object with its header, and a library."""
    module, params = network()
    made = relay.build(module, target, params=params)
    assert isinstance(made, relay.backend.executor_factory.AOTExecutorFactoryModule)
    made.export_library(str(tmp_path / "model.o"))
    assert (tmp_path / "model.o").read_bytes()[:4] == b"\x7fELF"
    assert "tilewright_default_run" in (tmp_path / "model.h").read_text()
    made.export_library(str(tmp_path / "model.so"))
    assert b"tilewright_default_run" in (tmp_path / "model.so").read_bytes()


@pytest.mark.parametrize("target", ["c", "c --runtime=c --system-lib --link-params"])
def test_graphs_as_c_source(target: str, tmp_path: Path) -> None:
    """The kernels are C, which the machine's compiler makes a library of; until then it is source, and says so."""
    module, params = network()
    data = GENERATOR.standard_normal((1, 4, 8, 8)).astype("float32")
    expected = relay.create_executor("debug", module, params=params).evaluate()(data).numpy()
    library = relay.build(module, target, params=params)
    assert "int32_t __tvm_ffi_tvmgen_default_fused_nn_conv2d" in library.get_lib().get_source("c")
    with pytest.raises(TilewrightError, match="c source"):
        run(library, data)
    for name in ("model.so", "model.tar"):
        path = str(tmp_path / name)
        library.export_library(path)
        np.testing.assert_allclose(run(tvm.runtime.load_module(path), data), expected, rtol=1e-5, atol=1e-6)


def test_a_model_without_kernels_as_c_source(tmp_path: Path) -> None:
    """A library without a kernel is one all the same."""
    data = relay.var("data", shape=(2, 3))
    module = tvm.IRModule.from_expr(relay.Function([data], relay.reshape(data, (3, 2))))
    relay.build(module, "c").export_library(str(tmp_path / "model.so"))
    values = np.arange(6, dtype="float32").reshape(2, 3)
    found = run(tvm.runtime.load_module(str(tmp_path / "model.so")), values)
    np.testing.assert_array_equal(found, values.reshape(3, 2))


def test_a_model_without_kernels() -> None:
    """Reshapes alone need no code."""
    x = relay.var("x", shape=(2, 3))
    module = tvm.IRModule.from_expr(relay.Function([x], relay.reshape(x, (3, 2))))
    values = np.arange(6, dtype="float32").reshape(2, 3)
    found = relay.create_executor("graph", module).evaluate()(values)
    np.testing.assert_array_equal(found.numpy(), values.reshape(3, 2))


def test_unknown_sizes_are_for_the_virtual_machine() -> None:
    """The graph executor says so."""
    x = relay.var("x", shape=(relay.Any(), 3))
    with pytest.raises(TilewrightError, match="needs every size.*virtual machine"):
        relay.build(tvm.IRModule.from_expr(relay.exp(x)), "llvm")


def test_bools_have_room() -> None:
    """Each takes a byte: what stands beside them in the arena is not written over."""
    x = relay.var("x", shape=(125,), dtype="bool")
    y = relay.var("y", shape=(5,))
    body = relay.Tuple([relay.negative(y), relay.logical_and(x, relay.const(np.ones(125, "bool")))])
    with tvm.transform.PassContext(opt_level=0):
        library = relay.build(tvm.IRModule.from_expr(relay.Function([x, y], body)), "llvm")
    model = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    model.set_input("x", np.arange(125) % 3 == 0)
    model.set_input("y", np.arange(5, dtype="float32"))
    model.run()
    assert (model.get_output(0).numpy() == -np.arange(5)).all()
    assert (model.get_output(1).numpy() == (np.arange(125) % 3 == 0)).all()


def test_functions_become_part_of_the_graph() -> None:
    """Those of the module, those that a let binds and calls twice, and those that are written where they are called."""
    module = tvm.parser.parse(
        """#[version = "0.0.5"]
        def @twice(%f: fn (Tensor[(3), float32]) -> Tensor[(3), float32], %x: Tensor[(3), float32]) {
          %f(%f(%x))
        }
        def @main(%x: Tensor[(3), float32], %y: Tensor[(3), float32]) {
          let %shift = fn (%a: Tensor[(3), float32]) { add(%a, %y) };
          let %pair = (%shift(%x), %shift(%y));
          (@twice(%shift, %pair.0), fn (%b: Tensor[(3), float32]) { negative(%b) }(%pair.1))
        }"""
    )
    library = relay.build(module, "llvm")
    model = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    model.run(x=np.full(3, 1, "float32"), y=np.full(3, 10, "float32"))
    assert model.get_output(0).numpy().tolist() == [31, 31, 31]
    assert model.get_output(1).numpy().tolist() == [-20, -20, -20]
