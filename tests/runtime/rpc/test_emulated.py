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
from tilewright.support.cbuild import build_rpc_server, zig_command

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(zig_command() is None, reason="needs the ziglang package"),
]

MACHINES = {
    "aarch64": ("qemu-aarch64", "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"),
    "armv7a": ("qemu-arm", "llvm -mtriple=armv7a-linux-gnueabihf -mcpu=cortex-a7"),
    "riscv64": ("qemu-riscv64", "llvm -mtriple=riscv64-linux-gnu -mcpu=rv64gc"),
}
MOST_BYTES = 300 * 1024
LLVM_FAILS = {("armv7a", "uniform_computed_limits")}
"""Cases that LLVM 22 cannot compile: it ends with an assertion of its own on vectors of seven elements."""


class Emulated:
    """A session on an emulated machine, and the target of its code."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        emulator, self.target = MACHINES[name]
        if shutil.which(emulator) is None:
            pytest.skip(f"needs {emulator}, of QEMU's user-mode programs")
        self.program = folder / f"tw-rpc-server-{name}"
        build_rpc_server(self.program, f"{name}-linux")
        write_key(folder / "key")
        (folder / "sessions").mkdir()
        self.folder = folder
        command = [emulator, str(self.program), "--key-file", str(folder / "key")]
        self.server = StartedServer(command, folder / "sessions")
        self.session = rpc.connect(self.server.host, self.server.port, key_file=folder / "key")

    def load(self, function: Any, params: Any = None) -> graph_executor.GraphModule:
        """An executor there."""
        module = function if isinstance(function, tvm.IRModule) else tvm.IRModule.from_expr(function)
        with tvm.transform.PassContext(opt_level=3):
            library = relay.build(module, self.target, params=params)
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


@pytest.mark.parametrize("table", TABLES)
def test_operators(emulated: Emulated, table: str) -> None:
    """The cases of a family agree with the reference."""
    chosen = [case for case in cases(table) if (emulated.name, case.name) not in LLVM_FAILS]
    programs = [program(case) for case in chosen]
    static = [made for made in programs if is_static(made.function)]
    found: dict[str, str] = {}
    for start in range(0, len(static), 12):
        found |= failures_of(static[start : start + 12], _run_on(emulated))
    report(found)
