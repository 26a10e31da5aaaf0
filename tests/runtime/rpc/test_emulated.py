"""Code for ARM and RISC-V on the C server for that machine, under QEMU: every operator family, and a model."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.relay.op.test_operators import TABLES, cases, failures_of, is_static, program, report
from tests.runtime.rpc.conftest import StartedServer

import tilewright as tvm
from tilewright import relay, rpc
from tilewright.contrib import graph_executor
from tilewright.relay.testing import resnet
from tilewright.rpc.keys import write_key
from tilewright.runtime.vm import VirtualMachine
from tilewright.support.cbuild import build_rpc_server, zig_command

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(zig_command() is None, reason="needs the ziglang package"),
]

MACHINES = {
    "aarch64": ("qemu-aarch64 -cpu max", "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"),
    "armv7a": ("qemu-arm -cpu max", "llvm -mtriple=armv7a-linux-gnueabihf -mcpu=cortex-a7"),
    "riscv64": (
        "qemu-riscv64 -cpu rv64,v=true,vlen=128,vext_spec=v1.0",
        "llvm -mtriple=riscv64-linux-gnu -mcpu=rv64gc",
    ),
}
MORE_TARGETS = {
    "aarch64": ["llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1"],
    "armv7a": ["llvm -mtriple=armv7a-linux-gnueabihf -mcpu=cortex-a9"],
    "riscv64": ["llvm -mtriple=riscv64-linux-gnu -mcpu=rv64gcv"],
}
"""Processors of the same machines with other arithmetic: dot and matrix products of int8 and arithmetic of float16, no
fused multiply-add, vectors."""
MOST_BYTES = 300_000
LLVM_FAILS = {("armv7a", "uniform_computed_limits")}
"""Cases that LLVM 22 cannot compile: it ends with an assertion of its own on vectors of seven elements."""


class Emulated:
    """A session on an emulated machine, and the target of its code."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        emulator, self.target = MACHINES[name]
        if shutil.which(emulator.split()[0]) is None:
            pytest.skip(f"needs {emulator.split()[0]}, of QEMU's user-mode programs")
        self.program = folder / f"tw-rpc-server-{name}"
        build_rpc_server(self.program, f"{name}-linux")
        write_key(folder / "key")
        (folder / "sessions").mkdir()
        self.folder = folder
        command = [*emulator.split(), str(self.program), "--key-file", str(folder / "key")]
        self.server = StartedServer(command, folder / "sessions")
        self.session = rpc.connect(self.server.host, self.server.port, key_file=folder / "key")

    def load(self, function: Any, params: Any = None, target: str = "") -> graph_executor.GraphModule:
        """An executor there."""
        module = function if isinstance(function, tvm.IRModule) else tvm.IRModule.from_expr(function)
        with tvm.transform.PassContext(opt_level=3):
            library = relay.build(module, target or self.target, params=params)
        path = self.folder / "model.tar"
        library.export_library(str(path))
        self.session.upload(str(path))
        loaded = self.session.load_module("model.tar")
        return graph_executor.GraphModule(loaded["default"](self.session.cpu()))


@pytest.fixture(scope="module", params=sorted(MACHINES))
def emulated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulated]:
    """Each machine in turn."""
    made = Emulated(str(request.param), tmp_path_factory.mktemp(str(request.param)))
    yield made
    made.session.close()
    made.server.stop()


def test_the_program_is_small(emulated: Emulated) -> None:
    """One static file of less than 300 KB."""
    content = emulated.program.read_bytes()
    assert len(content) < MOST_BYTES
    assert b"/ld-" not in content  # no dynamic loader is named


def test_resnet_18(emulated: Emulated) -> None:
    """A whole network gives what it gives on this machine."""
    module, params = resnet.get_workload(num_layers=18, image_shape=(3, 64, 64), num_classes=100)
    data = np.random.default_rng(0).uniform(-1, 1, (1, 3, 64, 64)).astype("float32")
    here = graph_executor.GraphModule(relay.build(module, "llvm", params=params)["default"](tvm.cpu()))
    there = emulated.load(module, params)
    for model in (here, there):
        model.set_input("data", data)
        model.run()
    wanted = here.get_output(0).numpy()
    np.testing.assert_allclose(there.get_output(0).numpy(), wanted, rtol=1e-3, atol=1e-5)
    assert wanted.std() > 0


def test_a_program_with_open_extents(emulated: Emulated) -> None:
    """The virtual machine runs there: shapes that are computed, a branch, and a tuple."""
    x, limit = relay.var("x", shape=(relay.Any(), 8)), relay.var("limit", shape=())
    weights = np.random.default_rng(3).uniform(-1, 1, (5, 8)).astype("float32")
    made = relay.nn.dense(relay.concatenate([x, x], axis=0), relay.const(weights))
    body = relay.If(relay.sum(x) > limit, relay.Tuple([made, x]), relay.Tuple([relay.nn.relu(made), -x]))
    module = tvm.IRModule.from_expr(relay.Function([x, limit], body))
    path = emulated.folder / "program.tar"
    relay.vm.compile(module, emulated.target).mod.export_library(str(path))
    emulated.session.upload(str(path))
    machine = VirtualMachine(emulated.session.load_module("program.tar"), emulated.session.cpu())
    for rows, bound in ((1, 100.0), (7, -100.0)):
        values = np.random.default_rng(rows).uniform(-1, 1, (rows, 8)).astype("float32")
        product = np.concatenate([values, values]) @ weights.T
        wanted = (np.maximum(product, 0), -values) if bound > 0 else (product, values)
        for found, expected in zip(machine.run(values, np.float32(bound)), wanted, strict=True):
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)


def _shaped(kind: Any, values: Iterator[Any]) -> Any:
    """The outputs in the form of the result's type."""
    fields = getattr(kind, "fields", None)
    return next(values) if fields is None else [_shaped(one, values) for one in fields]


def _run_on(emulated: Emulated) -> Callable[[relay.Function, list[Any]], Any]:
    def run(function: relay.Function, arguments: list[Any]) -> Any:
        module = relay.transform.InferType()(tvm.IRModule.from_expr(function))
        model = emulated.load(module)
        for parameter, value in zip(function.params, arguments, strict=True):
            if model.module["get_input_index"](parameter.name_hint) >= 0:
                model.set_input(parameter.name_hint, value)
        model.run()
        outputs = (tvm.nd.array(model.get_output(index).numpy()) for index in range(model.get_num_outputs()))
        return _shaped(module["main"].ret_type, outputs)

    return run


def _run_program_on(emulated: Emulated) -> Callable[[relay.Function, list[Any]], Any]:
    def fetched(value: Any) -> Any:
        return [fetched(one) for one in value] if isinstance(value, list) else tvm.nd.array(value.numpy())

    def run(function: relay.Function, arguments: list[Any]) -> Any:
        with tvm.transform.PassContext(opt_level=3):
            executable = relay.vm.compile(tvm.IRModule.from_expr(function), emulated.target)
        path = emulated.folder / "program.tar"
        executable.mod.export_library(str(path))
        emulated.session.upload(str(path))
        machine = VirtualMachine(emulated.session.load_module("program.tar"), emulated.session.cpu())
        return fetched(machine.run(*arguments))

    return run


@pytest.mark.parametrize("table", TABLES)
def test_operators(emulated: Emulated, table: str) -> None:
    """The cases of a family agree with the reference: on the graph executor, and where the shapes of results are open
    on the virtual machine."""
    chosen = [case for case in cases(table) if (emulated.name, case.name) not in LLVM_FAILS]
    programs = [program(case) for case in chosen]
    found: dict[str, str] = {}
    for run, is_wanted in ((_run_on(emulated), True), (_run_program_on(emulated), False)):
        wanted = [made for made in programs if is_static(made.function) == is_wanted]
        for start in range(0, len(wanted), 12):
            found |= failures_of(wanted[start : start + 12], run)
    report(found)


def _kernels() -> dict[str, Any]:
    """Operators whose kernels depend most on the processor, at sizes that have whole tiles and remainders."""

    def image(*shape: int, dtype: str = "float32") -> Any:
        return relay.var("x", shape=shape, dtype=dtype)

    rng = np.random.default_rng(1)

    def weights(*shape: int, dtype: str = "float32") -> Any:
        values = rng.integers(-4, 5, shape) if dtype.startswith("int") else rng.uniform(-1, 1, shape)
        return relay.const(values.astype(dtype))

    conv2d = relay.nn.conv2d
    data = image(1, 16, 13, 13)
    return {
        "conv2d": conv2d(data, weights(24, 16, 3, 3), padding=(1, 1), strides=(2, 2)),
        "dilated": conv2d(data, weights(16, 16, 3, 3), dilation=(2, 2)),
        "long sums": conv2d(image(1, 128, 9, 9), weights(16, 128, 3, 3), padding=(1, 1), strides=(2, 2)),
        "winograd": conv2d(data, weights(16, 16, 3, 3), padding=(1, 1)),
        "pointwise": conv2d(data, weights(40, 16, 1, 1)),
        "depthwise": conv2d(data, weights(16, 1, 3, 3), padding=(1, 1), groups=16),
        "grouped": conv2d(data, weights(16, 4, 3, 3), padding=(1, 1), groups=4),
        "odd channels": conv2d(image(1, 5, 13, 13), weights(7, 5, 3, 3), padding=(1, 1)),
        "transposed": relay.nn.conv2d_transpose(data, weights(16, 8, 3, 3), strides=(2, 2), padding=(1, 1)),
        "dense": relay.nn.dense(image(13, 100), weights(37, 100)),
        "batch_matmul": relay.nn.batch_matmul(image(3, 13, 36), weights(3, 20, 36)),
        "attention": relay.nn.batch_matmul(
            relay.nn.softmax(relay.nn.batch_matmul(image(2, 24, 16), weights(2, 24, 16))), weights(2, 16, 24)
        ),
        "layer_norm": relay.nn.layer_norm(image(5, 67), weights(67), weights(67)),
        "pool": relay.nn.max_pool2d(data, pool_size=(3, 3), strides=(2, 2), padding=(1, 1)),
        "resize": relay.image.resize2d(image(1, 4, 9, 9), size=(17, 15)),
        "topk": relay.topk(image(3, 50), k=5, ret_type="values"),
        "int8 conv2d": conv2d(
            image(1, 32, 9, 9, dtype="int8"),
            weights(16, 32, 3, 3, dtype="int8"),
            padding=(1, 1),
            out_dtype="int32",
        ),
        "int8 dense": relay.nn.dense(
            image(9, 64, dtype="int8"), weights(24, 64, dtype="int8"), out_dtype="int32"
        ),
        "float16 dense": relay.nn.dense(image(9, 64, dtype="float16"), weights(24, 64, dtype="float16")),
        "float16 pointwise": conv2d(
            image(1, 16, 12, 12, dtype="float16"), weights(40, 16, 1, 1, dtype="float16")
        ),
    }


def test_kernels(emulated: Emulated) -> None:
    """The kernels for each processor agree with the reference."""
    wrong = {}
    for name, body in _kernels().items():
        function = relay.Function(relay.analysis.free_vars(body), body)
        kind = function.params[0].type_annotation
        random = np.random.default_rng(2).uniform(-1, 1, [int(size) for size in kind.shape])
        value = (random * 4 if kind.dtype == "int8" else random).astype(kind.dtype)
        wanted = relay.create_executor("debug", tvm.IRModule.from_expr(function)).evaluate()(value).numpy()
        for target in (emulated.target, *MORE_TARGETS[emulated.name]):
            model = emulated.load(function, target=target)
            model.set_input("x", value)
            model.run()
            found = model.get_output(0).numpy()
            near = 2e-2 if kind.dtype == "float16" else 1e-4
            if not np.allclose(found, wanted, rtol=near, atol=near):
                wrong[name, target] = float(np.abs(found - wanted).max())
    assert not wrong
