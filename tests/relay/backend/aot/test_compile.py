"""Models compiled ahead of time run in C programs that have no runtime, and give what the graph executor gives."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, tir
from tilewright.contrib import graph_executor
from tilewright.relay.backend.aot import AOTModule, compile_aot
from tilewright.support.cbuild import zig_command
from tilewright.support.errors import LoweringError, ModelError, TargetError

TARGETS = ["c", "llvm", "llvm -mcpu=generic"]

MACHINES = [
    ("aarch64-linux-gnu", "cortex-a53", 183),
    ("armv7-linux-gnueabihf", "cortex-a7", 40),
    ("riscv32-none-elf", "generic-rv32", 243),
]
"""Triples with a processor and the number that ELF has for them."""

PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
#include "m.h"

static void* read_all(const char* name, size_t size) {
  void* memory = aligned_alloc(64, (size + 63) / 64 * 64);
  FILE* file = fopen(name, "rb");
  if (file == NULL || fread(memory, 1, size, file) != size) exit(3);
  fclose(file);
  return memory;
}

int main(void) {
  float* x = read_all("x.bin", TILEWRIGHT_NET_INPUT_x_SIZE);
  char* workspace = aligned_alloc(TILEWRIGHT_NET_WORKSPACE_ALIGNMENT, TILEWRIGHT_NET_WORKSPACE_SIZE);
  float* y[5];
  size_t sizes[5] = {TILEWRIGHT_NET_OUTPUT0_SIZE, TILEWRIGHT_NET_OUTPUT1_SIZE, TILEWRIGHT_NET_OUTPUT2_SIZE,
                     TILEWRIGHT_NET_OUTPUT3_SIZE, TILEWRIGHT_NET_OUTPUT4_SIZE};
  for (int i = 0; i < 5; ++i) y[i] = malloc(sizes[i]);
  struct tilewright_net_inputs inputs = {x};
  struct tilewright_net_outputs outputs = {y[0], y[1], y[2], y[3], y[4]};
#ifdef TILEWRIGHT_NET_CONSTANTS_SIZE
  void* constants = read_all("m.bin", TILEWRIGHT_NET_CONSTANTS_SIZE);
#define RUN(workspace) tilewright_net_run(&inputs, &outputs, constants, workspace)
#else
#define RUN(workspace) tilewright_net_run(&inputs, &outputs, workspace)
#endif
  if (RUN(workspace + 1) != TILEWRIGHT_NET_INVALID_ARGUMENT) return 4;
  if (RUN(NULL) != TILEWRIGHT_NET_INVALID_ARGUMENT) return 5;
  outputs.output1 = NULL;
  if (RUN(workspace) != TILEWRIGHT_NET_INVALID_ARGUMENT) return 6;
  outputs.output1 = y[1];
  if (RUN(workspace) != TILEWRIGHT_NET_OK || RUN(workspace) != TILEWRIGHT_NET_OK) return 7;
  for (int i = 0; i < 5; ++i) {
    fwrite(y[i], 1, sizes[i], stdout);
    free(y[i]);
  }
  free(x);
  free(workspace);
#ifdef TILEWRIGHT_NET_CONSTANTS_SIZE
  free(constants);
#endif
  return 0;
}
"""

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")


def compiled(model: Any, target: str, **options: Any) -> AOTModule:
    return compile_aot(model.graph, {"w": model.weight}, model.kernels, target, "net", **options)


def run_program(
    module: AOTModule,
    model: Any,
    folder: Path,
    flags: list[str],
    suffix: str,
    compiler: tuple[str, ...] = ("cc",),
    runner: tuple[str, ...] = (),
) -> list[Any]:
    """Build the program with the exported code, run it, and read its five outputs."""
    module.export_library(str(folder / f"m{suffix}"))
    (folder / "main.c").write_text(PROGRAM)
    model.value.tofile(folder / "x.bin")
    command = [*compiler, "-std=c11", *flags, "main.c", f"m{suffix}", "-o", "main", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run([*runner, "./main"], cwd=folder, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    values = np.frombuffer(done.stdout, "float32")
    assert values.size == 256 * 2 + 512 * 3
    return np.split(values, [256, 512, 1024, 1536])


@needs_cc
@pytest.mark.parametrize("embed", [True, False], ids=["embedded", "constants of the caller"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_program_without_a_runtime(target: str, embed: bool, model: Any, tmp_path: Path) -> None:
    """A C program links the model with libc alone, and gets NumPy's numbers; wrong pointers are error codes."""
    module = compiled(model, target, embed_constants=embed)
    flags = ["-O2", "-Wall", "-Wextra", "-Werror"]
    outputs = run_program(module, model, tmp_path, flags, ".c" if target == "c" else ".o")
    for actual, expected in zip(outputs, model.reference(), strict=True):
        np.testing.assert_allclose(actual, expected.reshape(-1), rtol=2e-5, atol=1e-6)
    assert (tmp_path / "m.bin").exists() is not embed


@needs_cc
def test_stays_inside_its_memory(model: Any, tmp_path: Path) -> None:
    """With every region exactly as large as the header says, no access is outside."""
    flags = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    outputs = run_program(compiled(model, "c"), model, tmp_path, flags, ".c")
    np.testing.assert_allclose(outputs[2], model.reference()[2].reshape(-1), rtol=2e-5)


@needs_cc
@pytest.mark.parametrize("target", ["c", "llvm"])
def test_needs_nothing_but_libc(target: str, model: Any, tmp_path: Path) -> None:
    """The object refers to functions of libc and libm alone, and defines one public function."""
    if shutil.which("nm") is None:
        pytest.skip("needs nm")
    path = tmp_path / "m.o"
    path.write_bytes(compiled(model, target).object_code())
    listed = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines()
    undefined = {line.split()[-1] for line in listed if " U " in line}
    assert undefined <= {"memcpy", "memset", "expf", "_GLOBAL_OFFSET_TABLE_"}
    assert [line.split()[-1] for line in listed if " T " in line] == ["tilewright_net_run"]


@pytest.mark.parametrize("target", ["c", "llvm"])
def test_packed(target: str, model: Any, tmp_path: Path) -> None:
    """The packed form loads as a library and agrees with the graph executor to the last bit."""
    module = compiled(model, target, interface="packed")
    path = tmp_path / "net.so"
    module.export_library(str(path))
    run = tvm.runtime.load_module(path)["net"]
    outputs = [tvm.nd.empty(argument.tensor.shape) for argument in module.outputs]
    workspace = tvm.nd.empty((module.memory.workspace,), "uint8")
    run(tvm.nd.array(model.value), *outputs, workspace)
    executor = graph_executor.create(model.graph, tvm.build(model.kernels, target="llvm"), tvm.cpu(0))
    executor.set_input(x=tvm.nd.array(model.value), w=tvm.nd.array(model.weight))
    executor.run()
    for position, output in enumerate(outputs):
        expected = executor.get_output(position).numpy()
        if target == "llvm":
            np.testing.assert_array_equal(output.numpy(), expected)
        else:
            np.testing.assert_allclose(output.numpy(), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="argument 6 .workspace. is 64, expected"):
        run(tvm.nd.array(model.value), *outputs, tvm.nd.empty((64,), "uint8"))
    raw = np.zeros(module.memory.workspace + 128, "uint8")
    start = -raw.ctypes.data % 64 + 1
    with pytest.raises(ValueError, match="memory of workspace must be aligned to 64 bytes"):
        run(tvm.nd.array(model.value), *outputs, raw[start : start + module.memory.workspace])


def test_packed_constants_of_the_caller(model: Any) -> None:
    """Without constants inside, they are an argument before the workspace; the code runs where it was compiled."""
    module = compiled(model, "llvm", unpacked_api=False, embed_constants=False)
    outputs = [tvm.nd.empty(argument.tensor.shape) for argument in module.outputs]
    constants = tvm.nd.array(np.frombuffer(module.constants, "uint8"))
    workspace = tvm.nd.empty((module.memory.workspace,), "uint8")
    module.lib["net"](tvm.nd.array(model.value), *outputs, constants, workspace)
    np.testing.assert_allclose(outputs[2].numpy(), model.reference()[2], rtol=2e-5)


def test_loops_can_be_read(model: Any) -> None:
    """The loop programs have the entry and the kernels, and not the parameters' bytes."""
    text = compiled(model, "llvm").loops.script()
    assert "tilewright_net_run" in text and "tilewright_net_softmax" in text
    assert len(text) < 20_000


def test_memory_is_reported(model: Any) -> None:
    """The sizes are those of the plan: three tensors and scratch memory take turns in the workspace."""
    memory = compiled(model, "c").memory
    assert (memory.constants, memory.inputs, memory.outputs) == (16384, 2048, 1024 * 2 + 2048 * 3)
    assert memory.workspace == 3 * 2048


def test_interfaces() -> None:
    """The interface is what is asked for, by either name or by the target; a contradiction is an error."""
    graph, kernels = single(lambda x: x + 1.0)

    def chosen(target: str, **options: Any) -> str:
        return compile_aot(graph, None, kernels, target, **options).interface

    assert chosen("c") == chosen("c", unpacked_api=True) == "c"
    assert chosen("c", unpacked_api=False) == chosen("c", interface="packed") == "packed"
    assert chosen("c -unpacked-api=1 -interface-api=c") == "c"
    assert chosen("c -interface-api=packed") == "packed"
    assert chosen("c -unpacked-api=1 -interface-api=packed") == "packed"
    with pytest.raises(TargetError, match="Packed interface required for packed operators"):
        chosen("c", interface="c", unpacked_api=False)
    with pytest.raises(TargetError, match="'c' or 'packed', not 'rest'"):
        chosen("c", interface="rest")
    with pytest.raises(TargetError, match="for the targets c and llvm, not cuda"):
        chosen("cuda")


def single(compute: Any) -> tuple[str, Any]:
    """A graph of one kernel over four numbers."""
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: compute(x[i]), name="y")
    nodes = [
        {"op": "null", "name": "x", "inputs": []},
        {
            "op": "tvm_op",
            "name": "y",
            "attrs": {"func_name": "run", "num_outputs": "1"},
            "inputs": [[0, 0, 0]],
        },
    ]
    attributes = {"shape": ["list_shape", [[4], [4]]], "dltype": ["list_str", ["float32", "float32"]]}
    graph = {"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]], "attrs": attributes}
    return json.dumps(graph), tvm.lower(te.create_schedule(y.op), [x, y], name="run")


def test_names_do_not_collide() -> None:
    """A kernel called like the entry gets another symbol."""
    graph, kernels = single(lambda x: x * 2.0)
    module = compile_aot(graph, None, kernels, "llvm", "f", interface="packed")
    out = tvm.nd.empty((4,))
    module.lib["f"](tvm.nd.array(np.arange(4, dtype="float32")), out)
    np.testing.assert_array_equal(out.numpy(), [0, 2, 4, 6])


@pytest.mark.parametrize("target", ["c", "llvm"])
def test_empty_tensors(target: str, tmp_path: Path) -> None:
    """Tensors without elements go through: as input, parameter, between kernels and as output."""
    a, b = te.placeholder((0, 4), name="a"), te.placeholder((0, 4), name="b")
    c = te.compute((0, 4), lambda i, j: a[i, j] + b[i, j], name="c")
    kernel = tvm.lower(te.create_schedule(c.op), [a, b, c], name="add")
    call = {"op": "tvm_op", "attrs": {"func_name": "add", "num_outputs": "1"}}
    nodes = [
        {"op": "null", "name": "x"},
        {"op": "null", "name": "w"},
        {**call, "name": "y", "inputs": [[0, 0, 0], [1, 0, 0]]},
        {**call, "name": "z", "inputs": [[2, 0, 0], [1, 0, 0]]},
    ]
    attributes = {"shape": ["", [[0, 4]] * 4], "dltype": ["", ["float32"] * 4]}
    graph = json.dumps({"nodes": nodes, "arg_nodes": [0, 1], "heads": [[3, 0, 0]], "attrs": attributes})
    params = {"w": np.zeros((0, 4), "float32")}
    module = compile_aot(graph, params, kernel, target, interface="packed")
    module.export_library(str(tmp_path / "empty.so"))
    run = tvm.runtime.load_module(tmp_path / "empty.so")["model"]
    workspace = tvm.nd.empty((module.memory.workspace,), "uint8")
    run(tvm.nd.empty((0, 4)), tvm.nd.empty((0, 4)), workspace)
    with pytest.raises(ValueError, match="dimension 0 of argument 0 .x. is 1, expected 0"):
        run(tvm.nd.empty((1, 4)), tvm.nd.empty((0, 4)), workspace)


def test_a_failing_kernel(model: Any) -> None:
    """A kernel's failure is the model's: an error with its name in the packed form."""
    a, b = (tir.decl_buffer((4,), "float32", name=name) for name in "ab")
    store = tir.Store(b.data, tir.Load("float32", a.data, 0), 0)
    positive = tir.Load("float32", a.data, 0) > tir.const(0, "float32")
    body = tir.AssertStmt(positive, tir.StringImm("ValueError: not positive"), store)
    kernel = tir.PrimFunc([a, b], body, attrs={"global_symbol": "run"})
    graph, _ = single(lambda x: x)
    run = compile_aot(graph, None, kernel, "llvm", "f", interface="packed").lib["f"]
    out = tvm.nd.array(np.zeros(4, "float32"))
    run(tvm.nd.array(np.full(4, 3, "float32")), out)
    assert out.numpy()[0] == 3
    with pytest.raises(RuntimeError, match="a kernel of the model f failed"):
        run(tvm.nd.array(np.zeros(4, "float32")), out)


def test_errors(model: Any) -> None:
    """Kernels that are missing or need the runtime, wrong parameters and impossible names are errors that say so."""
    graph, kernels = single(lambda x: x + 1.0)
    with pytest.raises(ModelError, match="calls softmax; the kernels are dense"):
        compile_aot(model.graph, {"w": model.weight}, model.kernels[:1], "c")
    with pytest.raises(ModelError, match=r"parameter 'w' is float64 of shape \[64, 64\]"):
        compile_aot(model.graph, {"w": model.weight.astype("float64")}, model.kernels, "c")
    with pytest.raises(ModelError, match="'my model' cannot be a model's name"):
        compile_aot(graph, None, kernels, "c", "my model")
    with pytest.raises(ModelError, match="compile it for the target c"):
        compile_aot(graph, None, kernels, "llvm").c_source()
    a, b = (tir.decl_buffer((4,), "float32", name=name) for name in "ab")
    call = tir.Evaluate(tir.call_packed("test.aot.absent", tir.const(1, "int32")))
    needs = tir.PrimFunc([a, b], call, attrs={"global_symbol": "run"})
    with pytest.raises(LoweringError, match="calls test.aot.absent, which needs the runtime"):
        compile_aot(graph, None, needs, "c")


def test_cross_compiled(model: Any) -> None:
    """Objects for other machines are made here: 32-bit ones too."""
    for triple, cpu, machine in MACHINES:
        code = compiled(model, f"llvm -mtriple={triple} -mcpu={cpu}").object_code()
        assert code[:4] == b"\x7fELF" and int.from_bytes(code[18:20], "little") == machine


@pytest.mark.slow
@pytest.mark.parametrize("form", ["c", "llvm"])
@pytest.mark.parametrize(("processor", "system"), [("aarch64", "linux-musl"), ("arm", "linux-musleabihf")])
def test_on_another_processor(processor: str, system: str, form: str, model: Any, tmp_path: Path) -> None:
    """The program gives the same numbers on a 64-bit and a 32-bit ARM, emulated."""
    zig = zig_command()
    if zig is None or shutil.which(f"qemu-{processor}") is None:
        pytest.skip(f"needs the ziglang package and qemu-{processor}")
    triple, cpu, _ = next(one for one in MACHINES if one[0].startswith(processor))
    module = compiled(model, "c" if form == "c" else f"llvm -mtriple={triple} -mcpu={cpu}")
    compiler = (*zig, "-target", f"{processor}-{system}")
    suffix = ".c" if form == "c" else ".o"
    outputs = run_program(
        module, model, tmp_path, ["-static", "-O1"], suffix, compiler, (f"qemu-{processor}",)
    )
    for actual, expected in zip(outputs, model.reference(), strict=True):
        np.testing.assert_allclose(actual, expected.reshape(-1), rtol=2e-5, atol=1e-6)
