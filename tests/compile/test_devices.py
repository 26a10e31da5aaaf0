"""Code for a device with memory of its own: host functions launch kernels, from one loop to models on two devices.

The device is the guarded one: whoever reads its memory around its driver crashes. ``device`` counts what is left.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.compile.guarded_target import KIND, GuardedGenerator, guarded_target
from tests.runtime.device.guarded import counts, guarded
from tests.threads import in_threads

import tilewright as tvm
from tilewright import relay, te, tir
from tilewright.compile import Unit, compile_unit
from tilewright.contrib import graph_executor
from tilewright.ir.transform import PassContext
from tilewright.runtime import Device, Module, cpu, load_module
from tilewright.runtime import device as find_device
from tilewright.runtime import ndarray as nd
from tilewright.runtime.container import ADT
from tilewright.runtime.device_module import DeviceModule, Kernel
from tilewright.runtime.vm import Executable, VirtualMachine
from tilewright.support.cbuild import SOURCES, find_compiler, runtime_sources
from tilewright.support.errors import CodegenError, LoweringError, TargetError, TilewrightError
from tilewright.target import Target
from tilewright.target.kind import TargetKind, register_kind

TARGETS = {"cpu": "llvm", "guarded": "guarded"}


def scaled(factor: float, name: str = "scale", size: Any = None, target: str = KIND) -> Module:
    """x * factor, for vectors of any size or of one."""
    extent = te.var("n") if size is None else size
    x = te.placeholder((extent,), name="x")
    y = te.compute((extent,), lambda i: x[i] * factor, name="y")
    schedule = te.create_schedule(y.op)
    if target == KIND:
        block, thread = schedule[y].split(y.op.axis[0], 32)
        schedule[y].bind(block, te.thread_axis("blockIdx.x"))
        schedule[y].bind(thread, te.thread_axis("threadIdx.x"))
    return tvm.build(schedule, [x, y], target, name=name)


def call(function: Callable[..., Any], values: np.ndarray, place: Device) -> np.ndarray:
    """The result of a function of one array and its result on a device."""
    result = nd.empty(values.shape, "float32", place)
    function(nd.array(values, place), result)
    return result.numpy()


# ---- one function ----


def test_kernel(device: Device) -> None:
    """A tensor expression runs on the device of its arguments, whichever of the kind, for any size."""
    module = scaled(3.0)
    (kernels,) = module.imported_modules
    assert isinstance(kernels, DeviceModule) and kernels.type_key == "guarded"
    assert kernels.kernels == (
        Kernel("scale_kernel0", ("handle", "handle", "int32"), ("blockIdx.x", "threadIdx.x")),
    )
    for place in (device, guarded(1), device):
        for size in (1, 31, 32, 1000):
            values = np.arange(size, dtype="float32")
            np.testing.assert_array_equal(call(module["scale"], values, place), values * 3)
    launches = counts(device).launches
    call(module["scale"], np.zeros(4, "float32"), device)
    assert counts(device).launches == launches + 1


def test_several_stages_and_types(device: Device) -> None:
    """A stage is a kernel each; scalars of several types are arguments."""
    a, b = te.placeholder((40, 30), name="a"), te.placeholder((30,), "int8", name="b")
    scale, shift = te.var("scale", "float32"), te.var("shift", "int64")
    k = te.reduce_axis((0, 30), name="k")
    total = te.compute((40,), lambda i: te.sum(a[i, k] * b[k].astype("float32"), k), name="total")
    y = te.compute((40,), lambda i: te.exp(total[i] * scale) + shift.astype("float32"), name="y")
    schedule = te.create_schedule(y.op)
    for tensor in (total, y):
        block, thread = schedule[tensor].split(tensor.op.axis[0], 16)
        schedule[tensor].bind(block, te.thread_axis("blockIdx.x"))
        schedule[tensor].bind(thread, te.thread_axis("threadIdx.y"))
    module = tvm.build(schedule, [a, b, scale, shift, y], KIND)
    assert [len(one.arguments) for one in module.imported_modules[0].kernels] == [3, 4]
    rng = np.random.default_rng(0)
    values, weights = rng.random((40, 30), "float32"), rng.integers(-3, 4, 30).astype("int8")
    result = nd.empty((40,), "float32", device)
    module(nd.array(values, device), nd.array(weights, device), 0.25, -7, result)
    np.testing.assert_allclose(result.numpy(), np.exp(values @ weights * 0.25) - 7, rtol=1e-5, atol=1e-4)


def test_names_do_not_collide(device: Device) -> None:
    """Modules with kernels of one name each launch their own, whatever is registered, and when others have ended."""
    modules = [scaled(factor) for factor in (2.0, 3.0, 5.0)]
    values = np.arange(8, dtype="float32")

    @tvm.register_func("scale_kernel0", override=True)
    def wrong(*args: object) -> None:
        raise AssertionError("the registry was asked")

    try:
        for factor, module in zip((2, 3, 5), modules, strict=True):
            np.testing.assert_array_equal(call(module["scale"], values, device), values * factor)
        function = modules.pop()["scale"]
        del modules, module
        gc.collect()
        np.testing.assert_array_equal(call(function, values, device), values * 5)
    finally:
        tvm._ffi.registry.remove_global_func("scale_kernel0")


def test_modules_call_what_they_import(device: Device) -> None:
    """The first import with a name serves it, other host code included; without one, the registry does."""
    x = te.placeholder((4,), name="x")
    y = te.extern((4,), [x], lambda ins, outs: tir.call_packed("test_devices_add", ins[0], outs[0]), name="y")

    def adder(amount: float) -> Module:
        made = te.compute((4,), lambda i: x[i] + amount, name="made")
        return tvm.build(te.create_schedule(made.op), [x, made], "llvm", name="test_devices_add")

    importing = tvm.build(te.create_schedule(y.op), [x, y], "llvm", name="f")
    function, values = importing["f"], np.arange(4, dtype="float32")
    with pytest.raises(TilewrightError, match="no function of that name is registered"):
        call(function, values, cpu())
    importing.import_module(adder(1.0))
    importing.import_module(adder(2.0))
    np.testing.assert_array_equal(call(function, values, cpu()), values + 1)
    del importing
    gc.collect()
    np.testing.assert_array_equal(call(function, values, cpu()), values + 1)


def test_wrong_devices(device: Device) -> None:
    """An argument that is elsewhere is an error that says where it is and where it should be."""
    module = scaled(2.0)
    here, there = nd.array(np.zeros(4, "float32")), nd.array(np.zeros(4, "float32"), device)
    with pytest.raises(ValueError, match=r"scale: argument 0 \(x\) is on device cpu, expected guarded"):
        module(here, here)
    with pytest.raises(ValueError, match=r"scale: argument 1 \(y\) is on device cpu, expected guarded"):
        module(there, here)
    with pytest.raises(ValueError, match=r"the device number of argument 1 \(y\) is 1, expected 0"):
        module(there, nd.empty((4,), "float32", guarded(1)))
    kernel = module.imported_modules[0]["scale_kernel0"]
    with pytest.raises(
        ValueError, match=r"argument 0 of scale_kernel0 must be on guarded\(0\), not on cpu\(0\)"
    ):
        kernel(here, there, 4, 1, 32)
    with pytest.raises(TypeError, match="takes 3 arguments, then 2 extents of thread axes; 3 were given"):
        kernel(there, there, 4)


def test_unbound_stages(device: Device) -> None:
    """A stage that no thread runs would read the device's memory on the host: that is an error of the build."""
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] + 1, name="y")
    with pytest.raises(LoweringError, match="Did you forget to bind"):
        tvm.build(te.create_schedule(y.op), [x, y], KIND)


def test_threads_that_wait_for_one_another(device: Device) -> None:
    """What the device cannot do is refused with the kernel's name."""
    x = te.placeholder((64,), name="x")
    k = te.reduce_axis((0, 64), name="k")
    y = te.compute((1,), lambda i: te.sum(x[k], k), name="y")
    schedule = te.create_schedule(y.op)
    schedule[y].bind(y.op.reduce_axis[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(
        CodegenError, match="default_function_kernel0 cannot run on guarded: its threads share memory"
    ):
        tvm.build(schedule, [x, y], KIND)


def test_code_as_data(device: Device) -> None:
    """A unit with kernels survives being written and read."""
    x = te.placeholder((40,), name="x")
    y = te.compute((40,), lambda i: x[i] + 1, name="y")
    schedule = te.create_schedule(y.op)
    schedule[y].bind(y.op.axis[0], te.thread_axis("threadIdx.x"))
    unit = compile_unit(tvm.lower(schedule, [x, y]), guarded_target(), Target("llvm"))
    again = Unit.from_bytes(unit.to_bytes())
    assert again.to_bytes() == unit.to_bytes()
    assert sorted(again.devices[0].code.stages(guarded_target())) == ["entries.c", "ll"]


@pytest.mark.parametrize("suffix", ["so", "tar"])
def test_exported_library(device: Device, tmp_path: Path, suffix: str) -> None:
    """A library carries its kernels: another process runs them, and one process may load it twice."""
    path = tmp_path / f"scale.{suffix}"
    scaled(7.0).export_library(str(path))
    values = np.arange(50, dtype="float32")
    first, second = load_module(path), load_module(path)
    np.testing.assert_array_equal(call(first["scale"], values, device), values * 7)
    np.testing.assert_array_equal(call(second["scale"], values, guarded(1)), values * 7)
    del first
    gc.collect()
    np.testing.assert_array_equal(call(second["scale"], values, device), values * 7)
    assert second.imported_modules[0].type_key == "guarded"
    assert "scale_kernel0" in second.imported_modules[0].get_source("c")
    program = (
        f"import sys\nsys.path[:0] = {sys.path!r}\n"
        "import numpy as np\n"
        "from tests.runtime.device.guarded import guarded\n"
        "from tilewright.runtime import load_module\n"
        "from tilewright.runtime import ndarray as nd\n"
        f"module = load_module({str(path)!r})\n"
        "x, y = nd.array(np.ones(9, 'float32'), guarded(1)), nd.empty((9,), 'float32', guarded(1))\n"
        "module['scale'](x, y)\n"
        "print(y.numpy().sum())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "63.0\n"), done.stderr


def test_exported_library_from_c(device: Device, tmp_path: Path) -> None:
    """A program without Python loads the library and launches its kernels; one whose kernels are damaged is refused."""
    library, program = tmp_path / "scale.so", tmp_path / "launch"
    scaled(7.0).export_library(str(library))
    flags = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-DTILEWRIGHT_STATIC", "-I", SOURCES]
    source = Path(__file__).with_name("launch.c")
    find_compiler().run([*flags, source, *runtime_sources(), "-o", program, "-pthread", "-ldl", "-lm"])
    done = subprocess.run([program, library], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "7 14 21 28 35 1", "")
    content = library.read_bytes()
    for damage in (
        (b'"kernels": [{', b'"kernelz": [{'),
        (b'"int32"], "axes"', b'"int9x"], "axes"'),
        (b"TWIMPORT", b"TWEXPORT"),
    ):
        assert damage[0] in content
        broken = tmp_path / "broken.so"
        broken.write_bytes(content.replace(*damage))
        done = subprocess.run([program, broken], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "the modules that it carries are not readable" in done.stderr


# ---- kinds of target, and names of devices ----


def test_a_kind_names_its_device(device: Device) -> None:
    """The kind of target and the driver's name find the device, which DLPack's name finds as before."""
    assert find_device("guarded", 1) == guarded(1) == find_device("ext_dev", 1)
    assert str(guarded(1)) == "guarded(1)"
    assert tvm.runtime.enabled("guarded") and Target("guarded").kind.device_type == device.device_type
    with pytest.raises(TargetError, match="there is a kind of target 'guarded' already, for device type 12"):
        register_kind(TargetKind("guarded", 13, ()))
    with pytest.raises(TilewrightError, match="'vulkan_host' is not a kind of device"):
        find_device("vulkan_host")
    with pytest.raises(TilewrightError, match="'gpu' is the name of device type 2, and cannot be that of 12"):
        register_kind(TargetKind("gpu", 12, ()))
    assert GuardedGenerator.kinds == ("guarded",)


# ---- models ----


def on_guarded(expr: relay.Expr) -> relay.Expr:
    """Computed on the device."""
    return relay.annotation.on_device(expr, "guarded")


def on_host(expr: relay.Expr) -> relay.Expr:
    """Computed on the host. Readers on different devices have an annotation each: it is what is copied."""
    return relay.annotation.on_device(expr, "cpu")


def residual_model() -> relay.Function:
    """A convolution and a softmax on the device, bias and activation on the host, a residual across both."""
    x, weight = relay.var("x", shape=(1, 3, 8, 8)), relay.var("weight", shape=(4, 3, 3, 3))
    bias = relay.var("bias", shape=(4,))
    convolved = on_guarded(relay.nn.conv2d(x, weight, padding=(1, 1)))
    active = relay.nn.relu(relay.nn.bias_add(convolved, bias))
    soft = on_guarded(relay.nn.softmax(on_host(active), axis=1))
    total = on_host(relay.add(soft, active))
    return relay.Function([x, weight, bias], relay.add(total, relay.const(1.0)))


def tuple_model() -> relay.Function:
    """Several results, and a tensor that is read on both devices."""
    x, weight = relay.var("x", shape=(5, 6)), relay.var("weight", shape=(4, 6))
    product = on_guarded(relay.nn.dense(x, weight))
    there = relay.tanh(product)
    back = on_guarded(relay.sum(on_host(there), axis=1))
    parts = relay.split(there, 2, axis=1)
    result = relay.Tuple([parts[0], relay.exp(back), relay.add(parts[1], relay.reshape(back, (5, 1)))])
    return relay.Function([x, weight], result)


def copying_model() -> relay.Function:
    """Explicit copies, there and back, twice."""
    x = relay.var("x", shape=(7,))
    there = relay.device_copy(relay.exp(x), "cpu", "guarded")
    doubled = relay.multiply(there, relay.const(2.0))
    back = relay.device_copy(doubled, "guarded", "cpu")
    again = relay.device_copy(relay.add(back, x), "cpu", "guarded")
    return relay.Function([x], relay.device_copy(relay.sqrt(again), "guarded", "cpu"))


MODELS = {"residual": residual_model, "tuple": tuple_model, "copies": copying_model}


def arguments_of(function: relay.Function) -> dict[str, np.ndarray]:
    """Values for the parameters of a function, by name."""
    rng = np.random.default_rng(1)
    return {
        parameter.name_hint: rng.random([int(one) for one in parameter.type_annotation.shape], "float32")
        for parameter in function.params
    }


def expected_of(module: tvm.IRModule, values: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What the interpreter computes."""
    names = [parameter.name_hint for parameter in module["main"].params]
    result = relay.create_executor("debug", module).evaluate()(*[values[name] for name in names])
    return [part.numpy() for part in (result if isinstance(result, (list, ADT)) else [result])]


def devices_for(targets: Any) -> list[Device]:
    """What a model for these targets is run on."""
    return [cpu(), guarded()] if isinstance(targets, dict) else [guarded()]


def run_graph(library: Any, targets: Any, values: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The results of a model for the graph executor."""
    model = graph_executor.GraphModule(library["default"](*devices_for(targets)))
    model.run(**values)
    model.run()
    return [model.get_output(place).numpy() for place in range(model.get_num_outputs())]


def run_machine(program: Executable, targets: Any, values: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The results of a model for the virtual machine."""
    machine = VirtualMachine(program, devices_for(targets))
    names = program.get_function_params("main")
    result: Any = None
    for _ in range(2):
        result = machine.run(*[values[name] for name in names])
    return [part.numpy() for part in (result if isinstance(result, tvm.runtime.container.ADT) else [result])]


def check_all(got: list[np.ndarray], expected: list[np.ndarray]) -> None:
    """Every result is what the interpreter computed."""
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("targets", [TARGETS, "guarded"], ids=["both", "one"])
@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("name", MODELS)
def test_models(device: Device, name: str, level: int, targets: Any) -> None:
    """A model on both devices, or wholly on the guarded one, gives the interpreter's numbers on both executors."""
    function = MODELS[name]()
    module = tvm.IRModule.from_expr(function)
    values = arguments_of(function)
    expected = expected_of(module, values)
    params = {one: value for one, value in values.items() if one != "x"}
    launches = counts(device).launches
    with PassContext(opt_level=level):
        check_all(
            run_graph(relay.build(module, targets, params=params), targets, values_but(values, params)),
            expected,
        )
        middle = counts(device).launches
        check_all(run_machine(relay.vm.compile(module, targets, params=params), targets, values), expected)
    assert launches < middle < counts(device).launches


def values_but(values: dict[str, np.ndarray], without: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The values that are not parameters of the model."""
    return {name: value for name, value in values.items() if name not in without}


def test_weights_are_on_the_device(device: Device) -> None:
    """They are copied there once, not with every run."""
    function = residual_model()
    values = arguments_of(function)
    library = relay.build(
        tvm.IRModule.from_expr(function), TARGETS, params=values_but(values, {"x": values["x"]})
    )
    model = graph_executor.GraphModule(library["default"](cpu(), device))
    # The image and the weights of the convolution are on the device, the bias is on the host.
    places = [model.module.input_device(place) for place in range(model.get_num_inputs())]
    assert sorted([place.device_type for place in places]) == [1, 12, 12]
    model.run(x=values["x"])
    model.get_output(0).numpy()
    copies = counts(device).copies
    model.run()
    model.get_output(0).numpy()
    # The convolution's result to the host, the activation to the device, the softmax back.
    assert counts(device).copies - copies == 3


def test_models_in_a_library(device: Device, tmp_path: Path) -> None:
    """Kernels of both devices, graph, program and weights travel in one file."""
    function = residual_model()
    module, values = tvm.IRModule.from_expr(function), arguments_of(function)
    params = values_but(values, {"x": values["x"]})
    expected = expected_of(module, values)
    relay.build(module, TARGETS, params=params).export_library(str(tmp_path / "graph.so"))
    check_all(run_graph(load_module(tmp_path / "graph.so"), TARGETS, {"x": values["x"]}), expected)
    relay.vm.compile(module, TARGETS, params=params).export_library(str(tmp_path / "machine.tar"))
    check_all(run_machine(Executable(load_module(tmp_path / "machine.tar")), TARGETS, values), expected)


def test_control_flow_and_unknown_shapes(device: Device) -> None:
    """The machine's conditions, recursion, data and computed shapes have their tensors on the device."""
    x, shape = relay.var("x", shape=(relay.Any(), 3)), relay.var("shape", shape=(3,), dtype="int64")
    count = relay.var("count", shape=(), dtype="int32")
    loop, value = relay.GlobalVar("loop"), relay.var("value", shape=(relay.Any(), 3))
    module = tvm.IRModule()
    again = loop(relay.subtract(count, relay.const(1)), relay.add(value, value))
    module[loop] = relay.Function(
        [count, value], relay.If(relay.greater(count, relay.const(0)), again, value), value.type_annotation
    )
    doubled = loop(relay.const(3), x)
    wide = relay.broadcast_to(doubled, shape)
    module["main"] = relay.Function([x, shape], relay.Tuple([doubled, relay.shape_of(wide), wide]))
    machine = VirtualMachine(relay.vm.compile(module, "guarded"), device)
    for rows in (2, 5):
        values = np.arange(rows * 3, dtype="float32").reshape(rows, 3)
        first, extents, broad = (part for part in machine.run(values, np.int64([4, rows, 3])))
        assert first.device == broad.device == device
        np.testing.assert_array_equal(first.numpy(), values * 8)
        np.testing.assert_array_equal(extents.numpy(), [4, rows, 3])
        np.testing.assert_array_equal(broad.numpy(), np.broadcast_to(values * 8, (4, rows, 3)))


def test_a_device_without_a_target(device: Device) -> None:
    """The error says which target is missing."""
    module = tvm.IRModule.from_expr(copying_model())
    for compile_it in (relay.build, relay.vm.compile):
        with pytest.raises(TargetError, match="values on guarded, and targets were given for cpu, cuda only"):
            compile_it(module, {"cpu": "llvm", "cuda": "cuda"})


UNARY = [relay.exp, relay.tanh, relay.nn.relu, relay.negative, relay.nn.softmax, relay.copy]
BINARY = [relay.add, relay.multiply, relay.subtract, relay.maximum]


@st.composite
def placed_graphs(draw: st.DrawFn) -> relay.Function:
    """Small graphs of operators on inputs and constants, each of them placed on a device."""
    places = st.sampled_from(["cpu", "guarded"])
    inputs = [relay.var(name, shape=(2, 3)) for name in ("x", "y")]
    values = [(one, draw(places)) for one in inputs]
    table = np.float32([[1, 2, 3], [-1, 0, 2]])

    def operand() -> relay.Expr:
        if draw(st.integers(0, 3)) == 0:
            return relay.const(table)
        expr, place = draw(st.sampled_from(values))
        return relay.annotation.on_device(expr, place)

    for _ in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            made = draw(st.sampled_from(UNARY))(operand())
        else:
            made = draw(st.sampled_from(BINARY))(operand(), operand())
        values.append((made, draw(places)))
    count = draw(st.integers(1, 2))
    results = [operand() for _ in range(count)]
    return relay.Function(inputs, results[0] if count == 1 else relay.Tuple(results))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(function=placed_graphs(), level=st.sampled_from([0, 1, 3]))
def test_random_placements(device: Device, function: relay.Function, level: int) -> None:
    """Wherever its operators are placed, a graph gives the interpreter's numbers."""
    module = tvm.IRModule.from_expr(function)
    values = arguments_of(function)
    expected = expected_of(module, values)
    with PassContext(opt_level=level):
        check_all(run_graph(relay.build(module, TARGETS), TARGETS, values), expected)
        check_all(run_machine(relay.vm.compile(module, TARGETS), TARGETS, values), expected)


def test_many_threads(device: Device) -> None:
    """Six threads build and run at once, functions and models, on both devices of the kind."""
    failures: list[str] = []

    def work(number: int) -> None:
        try:
            place = guarded(number % 2)
            module = scaled(float(number))
            values = np.arange(20, dtype="float32")
            function = tuple_model()
            library = relay.build(tvm.IRModule.from_expr(function), TARGETS)
            model = graph_executor.GraphModule(library["default"](cpu(), place))
            given = arguments_of(function)
            expected = np.tanh(given["x"] @ given["weight"].T)[:, :2]
            for _ in range(10):
                np.testing.assert_array_equal(call(module["scale"], values, place), values * number)
                model.run(**given)
                np.testing.assert_allclose(model.get_output(0).numpy(), expected, rtol=1e-4)
        except Exception as problem:  # noqa: BLE001 - the test says what failed in which thread
            failures.append(f"{number}: {problem!r}")

    in_threads(work, range(6))
    assert failures == []
