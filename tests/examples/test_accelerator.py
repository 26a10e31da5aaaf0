"""The matrix engine of examples/accelerator: its simulator, its backend, its artefacts, and its C."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.contrib.graph_executor import GraphModule
from tilewright.driver import tvmc
from tilewright.relay.op.contrib import BACKENDS
from tilewright.support.cbuild import zig_command
from tilewright.target.kind import KINDS

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "accelerator"
GENERATOR = np.random.default_rng(11)
CC = shutil.which("cc")


@pytest.fixture(scope="module")
def example() -> Iterator[Any]:
    """The example's modules."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        import matrix_engine
        import network

        matrix_engine.network = network
        yield matrix_engine
    for name in [name for name in sys.modules if name.partition(".")[0] in ("matrix_engine", "network")]:
        del sys.modules[name]


@pytest.fixture
def engine(example: Any) -> Iterator[Any]:
    """The backend; a processor beside it that computes next to nothing, so that every layer is worth it."""
    KINDS.pop("matrix_engine", None)
    made = example.MatrixEngine(host_products=1e-9)
    made.register()
    yield made
    del KINDS["matrix_engine"]
    BACKENDS.pop("matrix_engine")


def output_of(library: Any, x: np.ndarray) -> np.ndarray:
    """What a model gives."""
    executor = GraphModule(library["default"](tvm.cpu()))
    executor.run(x=x)
    return executor.get_output(0).numpy()


def int8(*shape: int) -> np.ndarray:
    """Random numbers of the whole range."""
    return GENERATOR.integers(-128, 128, shape).astype("int8")


def compare(engine: Any, body: relay.Expr, shape: tuple[int, ...], parts: int = 1) -> None:
    """The engine's result is that of the compiled code, bit by bit."""
    model = tvm.IRModule.from_expr(body)
    partitioned = engine.partition(model)
    assert len(partitioned.functions) == 1 + parts, engine.explain()
    x = int8(*shape)
    expected = output_of(relay.build(model, "llvm"), x)
    assert len(np.unique(expected)) > 2 or expected.size < 4
    assert np.array_equal(output_of(relay.build(partitioned, "llvm"), x), expected)


def dense(example: Any, rows: int, depth: int, units: int, **options: Any) -> relay.Expr:
    """A dense layer of these sizes."""
    x = relay.var("x", shape=(rows, depth), dtype="int8")
    zeros = (relay.const(options.get("zero", 3)), relay.const(options.get("weight_zero", 0)))
    scales = (relay.const(0.1), relay.const(0.02))
    weights = np.sign(int8(units, depth)) if "scale" in options else int8(units, depth)
    made = relay.qnn.op.dense(x, relay.const(weights), *zeros, *scales, units=units)
    scale = options.get("scale", 1e-3 / depth**0.5)
    return example.network.requantized(made, scale, (0.1, 5), rounding=options.get("rounding", "UPWARD"))


@pytest.mark.parametrize(
    ("rows", "depth", "units", "options"),
    [
        (1, 1, 1, {}),
        (17, 33, 19, {"rounding": "TONEAREST", "weight_zero": -2}),
        (5, 1800, 40, {}),
        (20, 2, 7, {"scale": 0.4}),
        (20, 2, 7, {"scale": 0.1}),
    ],
)
def test_dense_layers(
    example: Any, engine: Any, rows: int, depth: int, units: int, options: dict[str, Any]
) -> None:
    """Sizes that do not divide the tile, a depth of several pieces, factors above and of one."""
    compare(engine, dense(example, rows, depth, units, **options), (rows, depth))


@pytest.mark.parametrize(
    ("shape", "kernel", "units", "options"),
    [
        ((1, 5, 5, 3), (3, 3), 4, {"padding": (1, 1, 1, 1)}),
        ((2, 7, 40, 2), (2, 5), 17, {"padding": (0, 2, 1, 3), "strides": (2, 3)}),
        ((1, 9, 9, 120), (3, 3), 5, {"dilation": (2, 2), "padding": (3, 3)}),
        ((2, 1, 1, 6), (3, 3), 3, {"padding": 1}),
        ((1, 3, 3, 1000), (1, 1), 2, {}),
    ],
)
def test_convolutions(
    example: Any,
    engine: Any,
    shape: tuple[int, ...],
    kernel: tuple[int, int],
    units: int,
    options: dict[str, Any],
) -> None:
    """Borders on each side, strides, dilation, several images, taps and channels in pieces."""
    x = relay.var("x", shape=shape, dtype="int8")
    made = example.network.convolution(x, int8(*kernel, shape[3], units), zero=-9, **options)
    made = relay.add(made, relay.const(GENERATOR.integers(-999, 999, units).astype("int32")))
    scales = GENERATOR.uniform(5e-4, 1e-3, units) / (shape[3] * kernel[0] * kernel[1]) ** 0.5
    made = relay.nn.relu(example.network.requantized(made, scales, (0.1, 20)))
    compare(engine, made, shape)


def test_the_network_stays_together(example: Any, engine: Any, tmp_path: Path) -> None:
    """Neighbouring layers are one function; the artefact runs in a process without the backend."""
    model = example.network.network()
    partitioned = engine.partition(model)
    assert len(partitioned.functions) == 3
    library = relay.build(partitioned, "llvm")
    assert len(engine.cycles) == 3
    x = int8(*example.network.SHAPE)
    expected = output_of(relay.build(model, "llvm"), x)
    assert np.array_equal(output_of(library, x), expected)
    library.export_library(str(tmp_path / "model.so"))
    np.save(tmp_path / "x.npy", x)
    code = (
        "import numpy as np, tilewright as tvm\n"
        "from tilewright.contrib.graph_executor import GraphModule\n"
        "executor = GraphModule(tvm.runtime.load_module('model.so')['default'](tvm.cpu()))\n"
        "executor.run(x=np.load('x.npy'))\n"
        "np.save('y.npy', executor.get_output(0).numpy())\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert np.array_equal(np.load(tmp_path / "y.npy"), expected)


def test_as_a_target_of_tvmc(example: Any, engine: Any) -> None:
    """The backend beside the processor, in the text of a target."""
    model = tvmc.TVMCModel(example.network.network(), {})
    package = tvmc.compile(model, target="llvm, matrix_engine")
    x = int8(*example.network.SHAPE)
    found = tvmc.run(package, device="cpu", inputs={"x": x}).get_output("output_0")
    assert len(engine.cycles) == 3
    assert np.array_equal(found, output_of(relay.build(example.network.network(), "llvm"), x))


ZIG = zig_command()
BUILDS = {
    "here": ([CC], [], CC is not None),
    "arm": (
        [*(ZIG or ()), "-target", "arm-linux-musleabihf", "-static"],
        ["qemu-arm"],
        ZIG is not None and shutil.which("qemu-arm") is not None,
    ),
}
"""How to compile for a machine, how to run there, and whether both can be done."""


@pytest.mark.parametrize("machine", BUILDS)
def test_ahead_of_time(example: Any, engine: Any, tmp_path: Path, machine: str) -> None:
    """C without a runtime: command streams, the driver once, and the pooling as compiled loops."""
    compiler, runner, is_there = BUILDS[machine]
    if not is_there:
        pytest.skip("there is no compiler for this machine, or nothing to run it")
    model = example.network.network()
    partitioned = engine.partition(model)
    made = relay.build(partitioned, "c -executor=aot", mod_name="model")
    made.lib.export_library(str(tmp_path / "model.c"))
    text = (tmp_path / "model.c").read_text()
    assert text.count("int8_t scratchpad[") == 1 and text.count("_commands[] =") == 3
    x = int8(*example.network.SHAPE)
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "model.h"\n'
        f"static _Alignas(64) int8_t x[{x.size}] = {{{', '.join(str(one) for one in x.ravel())}}};\n"
        "static _Alignas(64) int8_t y[32];\n"
        "static _Alignas(64) unsigned char workspace[TILEWRIGHT_MODEL_WORKSPACE_SIZE];\n"
        "int main(void) {\n"
        "  struct tilewright_model_inputs inputs = {x};\n"
        "  struct tilewright_model_outputs outputs = {y};\n"
        "  if (tilewright_model_run(&inputs, &outputs, workspace) != 0) return 1;\n"
        '  for (int i = 0; i < 32; ++i) printf("%d\\n", y[i]);\n  return 0;\n}\n'
    )
    flags = ["-std=c11", "-O1", "-Wall", "-Werror=implicit-function-declaration"]
    subprocess.run([*compiler, *flags, "main.c", "model.c", "-lm", "-o", "main"], cwd=tmp_path, check=True)
    ran = subprocess.run([*runner, "./main"], cwd=tmp_path, check=True, capture_output=True, text=True)
    printed = ran.stdout
    assert [int(line) for line in printed.split()] == output_of(
        relay.build(model, "llvm"), x
    ).ravel().tolist()
    with pytest.raises(tvm.TVMError, match="use the target c, not llvm"):
        relay.build(partitioned, "llvm -executor=aot")


def test_the_page_quotes_the_example() -> None:
    """Every excerpt of docs/accelerator.md stands in the file that it names."""
    page = (FOLDER.parents[1] / "docs" / "accelerator.md").read_text()
    found = re.findall(r"^```py\n# (\S+)\n(.*?)^```$", page, re.M | re.S)
    assert len(found) >= 5
    for name, lines in found:
        assert lines in (FOLDER.parents[1] / name).read_text(), name


def test_reasons(example: Any) -> None:
    """What is refused, with the reason: by type, by what the engine has not, by cost."""
    engine = example.MatrixEngine()
    engine.register()
    try:
        x = relay.var("x", shape=(1, 8, 8, 4), dtype="int8")
        wide = relay.var("w", shape=(1, 8, 8, 4), dtype="uint8")
        weights = int8(3, 3, 4, 4)
        cases = [
            (example.network.convolution(wide, weights, 0), (0.1, 0), "int8 by int8, not uint8 by int8"),
            (
                example.network.convolution(x, int8(3, 3, 1, 4), 0, groups=4),
                (0.1, 0),
                "4 groups: the engine multiplies every",
            ),
            (example.network.convolution(x, weights, 0), (1e-12, 0), "beyond a shift by 30 bits"),
            (dense(example, 1, 2, 2).args[0], (0.1, 0), "cycles on the engine, and about 2 on the processor"),
        ]
        for body, out, reason in cases:
            module = engine.partition(tvm.IRModule.from_expr(example.network.requantized(body, 1e-2, out)))
            assert len(module.functions) == 1 and re.search(reason, engine.explain()), engine.explain()
    finally:
        del KINDS["matrix_engine"]
        BACKENDS.pop("matrix_engine")


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The engine on its own."""
    if CC is None:
        pytest.skip("there is no C compiler here")
    library = tmp_path_factory.mktemp("engine") / "engine.so"
    sanitize = ["-fsanitize=undefined", "-fno-sanitize-recover=all", "-static-libubsan"]
    command = [CC, "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o", str(library)]
    source = str(FOLDER / "engine" / "matrix_engine.c")
    if subprocess.run([*command, *sanitize, source], check=False, capture_output=True).returncode != 0:
        subprocess.run([*command, source], check=True)
    return ctypes.CDLL(str(library))


class Buffer(ctypes.Structure):
    """matrix_engine_buffer."""

    _fields_ = (("data", ctypes.c_void_p), ("size", ctypes.c_int64), ("is_output", ctypes.c_int32))


class Report(ctypes.Structure):
    """matrix_engine_report."""

    _fields_ = (("fault", ctypes.c_int32), ("command", ctypes.c_int32), ("cycles", ctypes.c_int64))


def run_stream(simulator: ctypes.CDLL, words: np.ndarray, arrays: list[np.ndarray]) -> Report:
    """What the engine reports of a stream; the last array is the output."""
    buffers = (Buffer * len(arrays))(
        *(Buffer(one.ctypes.data, one.nbytes, number == len(arrays) - 1) for number, one in enumerate(arrays))
    )
    report = Report()
    stream = np.ascontiguousarray(words, "int32")
    simulator.matrix_engine_run(
        ctypes.c_void_p(stream.ctypes.data), stream.size // 12, buffers, len(arrays), ctypes.byref(report)
    )
    return report


def test_the_cost_is_what_the_engine_counts(example: Any, simulator: ctypes.CDLL) -> None:
    """The code generator's cycles are the simulator's."""
    from matrix_engine.layers import read_layer
    from matrix_engine.schedule import command_stream, table_of

    from tilewright.relay.infer import infer_expr

    layer = read_layer(infer_expr(dense(example, 20, 1000, 21)))
    program = command_stream(layer)
    arrays = [int8(20, 1000), layer.weights, table_of(layer), np.zeros((20, 21), "int8")]
    report = run_stream(simulator, np.array(program.words), arrays)
    assert (report.fault, report.cycles) == (0, program.cycles)


def test_hostile_streams(simulator: ctypes.CDLL) -> None:
    """No stream of commands reaches beyond the engine's memory or the buffers: it is a fault, and the engine stops."""
    data, out = int8(64), np.zeros(64, "int8")
    for words, fault in [
        ([9], 1),
        ([1, 5, 0, 0, 0, 0, 1, 1], 2),
        ([1, 0, 60, 0, 0, 0, 1, 8], 2),
        ([1, 0, 0, 0, 32765, 0, 1, 8], 3),
        ([2, 0, 0, 0, 0, 0, 1, 1], 2),
        ([5, 0, 0, 0, 0, 17, 1, 1, 0, 0], 4),
        ([6, 0, 64, 32760, 16, 16, 16, 0, -128, 127, 0], 3),
        ([4, 0, 16], 5),
    ]:
        stream = np.zeros(12, "int32")
        stream[: len(words)] = words
        report = run_stream(simulator, stream, [data, out])
        assert (report.fault, report.command) == (fault, 0), words
    generator = np.random.default_rng(3)
    seen = set()
    for _ in range(3000):
        stream = generator.integers(-3, 40, (6, 12)).astype("int32")
        stream[:, 0] = generator.integers(0, 8, 6)
        wild = generator.random((6, 12)) < 0.05
        stream[wild] = generator.integers(-(2**31), 2**31, wild.sum())
        seen.add(run_stream(simulator, stream, [data, out]).fault)
    assert seen >= {0, 1, 2, 3, 4}
