"""The runtimes that are compared, each in a separate process.

``python bench/contenders.py NAME FOLDER SCRATCH THREADS`` prepares a runtime for a model, runs it, writes its outputs
to SCRATCH/NAME.npz, prints a line of JSON, and then times one call for each line that it reads. ``compile`` is the
one-time step of a contender that has one: it leaves its result in SCRATCH.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from harness import timed  # noqa: E402

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """A model's files, its inputs, where a contender may write, and how many threads it has."""

    folder: Path
    scratch: Path
    threads: int

    @property
    def model(self) -> str:
        return str(self.folder / "model.onnx")

    @property
    def name(self) -> str:
        return str(self.about()["name"])

    def inputs(self) -> Arrays:
        with np.load(self.folder / "inputs.npz") as found:
            return dict(found)

    def about(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "about.json").read_text()))


@dataclass(frozen=True)
class Ready:
    """A model that runs: one call, and the outputs of the latest call in the model's order."""

    call: Callable[[], object]
    outputs: Callable[[], list[Any]]


# ---- Tilewright ----

TARGET = os.environ.get("TILEWRIGHT_BENCH_TARGET", "llvm")
"""What models are compiled for, where it is not all that this machine has; the other runtimes are not told."""


def built_by_tilewright(task: Task) -> tuple[Any, Any]:
    """The module read from the ONNX file, and what it is compiled to."""
    import tilewright as tvm
    from tilewright import relay

    module, params = relay.frontend.from_onnx(task.model, freeze_params=True)
    with tvm.transform.PassContext(opt_level=3):
        return module, relay.build(module, target=TARGET, params=params)


def compile_tilewright(task: Task) -> float:
    """From the ONNX file to a library; the seconds are those of reading and compiling.

    A model with a loop is for the virtual machine: what the graph executor cannot run is compiled for that.
    """
    import tilewright as tvm
    from tilewright import relay
    from tilewright.support.errors import LoweringError

    started = time.perf_counter()
    name = "tilewright.so"
    try:
        _, library = built_by_tilewright(task)
    except LoweringError as error:
        if "virtual machine" not in str(error):
            raise
        # What the attempt cost is left out: who has such a model compiles it for the machine at once.
        started = time.perf_counter()
        module, params = relay.frontend.from_onnx(task.model, freeze_params=True)
        with tvm.transform.PassContext(opt_level=3):
            library = relay.vm.compile(module, target=TARGET, params=params)
        name = "tilewright_vm.so"
    seconds = time.perf_counter() - started
    library.export_library(str(task.scratch / name))
    return seconds


def tilewright(task: Task) -> Ready:
    """The compiled library, as a user deploys it."""
    import tilewright as tvm
    from tilewright.contrib import graph_executor
    from tilewright.runtime.vm import Executable, VirtualMachine

    def graph() -> Ready:
        library = tvm.runtime.load_module(str(task.scratch / "tilewright.so"))
        executor = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
        for name, value in task.inputs().items():
            executor.set_input(name, value)
        outputs = range(executor.get_num_outputs())
        return Ready(executor.run, lambda: [executor.get_output(index).numpy() for index in outputs])

    def machine() -> Ready:
        library = tvm.runtime.load_module(str(task.scratch / "tilewright_vm.so"))
        made = VirtualMachine(Executable(library), tvm.cpu(0))
        given = {name: tvm.nd.array(value) for name, value in task.inputs().items()}
        made.set_input("main", **given)
        call = lambda: made.invoke_stateful("main")
        return Ready(call, lambda: [value.numpy() for value in made.get_outputs()])

    return measured(graph if (task.scratch / "tilewright.so").exists() else machine)


# ---- peers ----


def onnxruntime(task: Task) -> Ready:
    """ONNX Runtime with all optimisations; inputs and outputs stay where they are."""
    import onnxruntime as runtime

    def prepare() -> Ready:
        options = runtime.SessionOptions()
        options.intra_op_num_threads = task.threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_ALL
        session = runtime.InferenceSession(task.model, options, providers=["CPUExecutionProvider"])
        bound = session.io_binding()
        for name, value in task.inputs().items():
            bound.bind_ortvalue_input(name, runtime.OrtValue.ortvalue_from_numpy(value))
        for output in session.get_outputs():
            bound.bind_output(output.name)
        return Ready(lambda: session.run_with_iobinding(bound), bound.copy_outputs_to_cpu)

    return measured(prepare)


def openvino(task: Task) -> Ready:
    """OpenVINO for latency, in float32: on a CPU with bfloat16 it would use that by default."""
    import openvino as runtime

    options = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": task.threads,
        "NUM_STREAMS": 1,
    }
    compiled = runtime.Core().compile_model(task.model, "CPU", options)
    request = compiled.create_infer_request()
    for name, value in task.inputs().items():
        request.set_tensor(name, runtime.Tensor(value))
    outputs = range(len(compiled.outputs))
    return Ready(request.infer, lambda: [request.get_output_tensor(index).data for index in outputs])


def compile_mnn(task: Task) -> float:
    """MNN's own format, by its converter.

    The converter's library is called and not its program ``mnnconvert``: that one installs packages into the
    environment that it runs in (and with them replaces the protobuf that others need), and reports each use.
    """
    import _tools  # the converter's module, as the MNN package calls it

    target = task.scratch / "model.mnn"
    started = time.perf_counter()
    options = ["-f", "ONNX", "--modelFile", task.model, "--MNNModel", str(target), "--bizCode", "bench"]
    _tools.mnnconvert(["mnnconvert", *options])
    if not target.exists():
        raise RuntimeError("MNN's converter wrote no model")
    return time.perf_counter() - started


def mnn(task: Task) -> Ready:
    """MNN through its module interface, which takes what its expressions compute as inputs."""
    import MNN

    inputs = task.inputs()
    names = list(task.about()["outputs"])
    manager = MNN.nn.create_runtime_manager(
        ({"backend": "CPU", "numThread": task.threads, "precision": "high"},)
    )
    model = str(task.scratch / "model.mnn")
    net = MNN.nn.load_module_from_file(model, list(inputs), names, runtime_manager=manager)
    values = []
    for value in inputs.values():
        integer = value.dtype.kind == "i"
        kind, dtype = (MNN.expr.int, np.int32) if integer else (MNN.expr.float, np.float32)
        placed = MNN.expr.placeholder(list(value.shape), MNN.expr.NCHW, kind)
        placed.write(np.ascontiguousarray(value, dtype).ravel())
        values.append(placed)
    latest: list[Any] = []

    def call() -> None:
        latest[:] = net.forward(values)
        for value in latest:
            # What is computed later, on demand, is computed now.
            _ = value.ptr

    def outputs() -> list[Any]:
        plain = [MNN.expr.convert(value, MNN.expr.NCHW) for value in latest]
        return [np.array(value.read()).reshape(value.shape) for value in plain]

    return Ready(call, outputs)


def torch_model(task: Task) -> tuple[Any, list[Any]]:
    """The definition that the ONNX file came from, with the same weights, and its inputs."""
    import torch
    from models.export import made

    torch.set_num_threads(task.threads)
    model, inputs, _ = made(task.name)
    return model, list(inputs.values())


def torch_ready(model: Any, inputs: list[Any]) -> Ready:
    """Calls without a record for gradients."""
    import torch

    latest: list[Any] = []

    def call() -> None:
        with torch.inference_mode():
            found = model(*inputs)
        latest[:] = found if isinstance(found, tuple) else [found]

    return Ready(call, lambda: [value.numpy() for value in latest])


def torch_eager(task: Task) -> Ready:
    """PyTorch as it is written."""
    return torch_ready(*torch_model(task))


def torch_compile(task: Task) -> Ready:
    """PyTorch's compiler, which may take the weights for constants, as the others do."""
    import torch
    import torch._inductor.config as config

    model, inputs = torch_model(task)
    config.freezing = True
    # Only the kernels compiled by this process, so that this version's code is timed.
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(task.scratch / "inductor")
    return torch_ready(torch.compile(model), inputs)


def compile_ncnn(task: Task) -> float:
    """ncnn's own format, by pnnx, from a trace of the torch definition."""
    import pnnx
    import torch

    started = time.perf_counter()
    model, inputs = torch_model(task)
    folder = task.scratch / "ncnn"
    folder.mkdir(exist_ok=True)
    with torch.no_grad():
        torch.jit.trace(model, tuple(inputs), check_trace=False).save(str(folder / "model.pt"))
    kinds = {torch.float32: "f32", torch.int64: "i64"}
    shapes = ",".join(f"[{','.join(map(str, value.shape))}]{kinds[value.dtype]}" for value in inputs)
    # The program, and not the function of the package, which then loads Python code that is not always valid.
    command = [pnnx.EXEC_PATH, "model.pt", f"inputshape={shapes}", "fp16=0"]
    finished = subprocess.run(command, cwd=folder, stdout=sys.stderr, check=False)
    if finished.returncode or not (folder / "model.ncnn.param").exists():
        raise RuntimeError(f"pnnx wrote no model for ncnn (exit {finished.returncode})")
    return time.perf_counter() - started


def ncnn(task: Task) -> Ready:
    """ncnn in float32. Its tensors have no batch: the program that pnnx wrote says which axis that was."""
    import ncnn as runtime

    folder = task.scratch / "ncnn"
    example = (folder / "model_ncnn.py").read_text()
    net = runtime.Net()
    options = net.opt
    options.num_threads = task.threads
    for name in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_storage", "bf16_packed"):
        if hasattr(options, f"use_{name}"):
            setattr(options, f"use_{name}", False)
    if net.load_param(str(folder / "model.ncnn.param")) or net.load_model(str(folder / "model.ncnn.bin")):
        raise RuntimeError("ncnn does not load what pnnx wrote")
    values = {}
    for index, value in enumerate(task.inputs().values()):
        if f'ex.input("in{index}"' not in example:
            raise RuntimeError(f"pnnx left out input {index}")
        batch = re.search(rf'ex\.input\("in{index}".*batch_index=(\d+)', example)
        plain = np.take(value, 0, int(batch[1])) if batch else value
        plain = plain.astype(np.int32) if plain.dtype.kind == "i" else plain
        values[f"in{index}"] = runtime.Mat(np.ascontiguousarray(plain)).clone()
    count = len(task.about()["outputs"])
    latest: list[Any] = []

    def call() -> None:
        extractor = net.create_extractor()
        for name, value in values.items():
            extractor.input(name, value)
        found = [extractor.extract(f"out{index}") for index in range(count)]
        if any(status for status, _ in found):
            raise RuntimeError("ncnn did not compute an output")
        latest[:] = [value for _, value in found]

    return Ready(call, lambda: [np.array(value) for value in latest])


# ---- the process ----


@dataclass(frozen=True)
class Kind:
    """A contender: what it is called in the table, the package, its first step and what gets it ready."""

    title: str
    package: str
    prepare: Callable[[Task], Ready]
    compile: Callable[[Task], float] | None = None


CONTENDERS: Mapping[str, Kind] = {
    "tilewright": Kind("Tilewright", "tilewright", tilewright, compile_tilewright),
    "onnxruntime": Kind("ONNX Runtime", "onnxruntime", onnxruntime),
    "openvino": Kind("OpenVINO", "openvino", openvino),
    "mnn": Kind("MNN", "MNN", mnn, compile_mnn),
    "torch": Kind("torch", "torch", torch_eager),
    "torch_compile": Kind("torch.compile", "torch", torch_compile),
    "ncnn": Kind("ncnn", "ncnn", ncnn, compile_ncnn),
}


def installed(name: str) -> bool:
    """Whether a contender's package is there."""
    return importlib.util.find_spec(CONTENDERS[name].package) is not None


def version(name: str) -> str:
    """The version of a contender's package, empty where it is not installed or runs from its sources."""
    try:
        return importlib.metadata.version(CONTENDERS[name].package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def resident(field: str) -> int:
    """Bytes of this process, by the kernel's name: VmRSS now, VmHWM at most since the mark was last set back."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return 0


BASELINE: list[int] = []


def measured(prepare: Callable[[], Ready]) -> Ready:
    """Prepare once the packages are loaded, and remember what memory the process had then."""
    BASELINE.append(resident("VmRSS"))
    return prepare()


def memory_while_running(call: Callable[[], object]) -> int | None:
    """The most memory of a few runs, beyond what the process had before the model was loaded."""
    mark = Path("/proc/self/clear_refs")
    if not BASELINE or not os.access(mark, os.W_OK):
        return None
    mark.write_text("5")
    for _ in range(3):
        call()
    return resident("VmHWM") - BASELINE[0]


def main() -> None:
    name, folder, scratch, threads = sys.argv[1:5]
    # Libraries write to the standard output; ours keeps a copy of it to itself.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    task = Task(Path(folder), Path(scratch), int(threads))
    kind = CONTENDERS[name]
    if sys.argv[5:] == ["compile"]:
        assert kind.compile is not None
        answers.write(json.dumps({"compile": kind.compile(task)}) + "\n")
        return
    ready = kind.prepare(task)
    for _ in range(3):
        ready.call()
    found = ready.outputs()
    np.savez(task.scratch / f"{name}.npz", *found)
    answers.write(json.dumps({"memory": memory_while_running(ready.call)}) + "\n")
    run = timed(ready.call)
    for _ in sys.stdin:
        answers.write(repr(run()) + "\n")
    shutil.rmtree(task.scratch / "inductor", ignore_errors=True)


if __name__ == "__main__":
    main()
