"""Latency of whole models on an NVIDIA GPU: Tilewright against PyTorch.

Run it:  python bench/gpu_latency.py [--only resnet50,bert_base] [--settings fp16b1,fp16b32,fp32b1] [--rounds 7]

Writes bench/results/gpu_latency.md. The contenders are Tilewright (one CUDA graph a run), PyTorch's eager mode captured
in a CUDA graph (``torch``), and ``torch.compile`` with ``reduce-overhead`` (``inductor``). Each has a separate process,
their rounds alternate, and medians are compared. Inputs are on the device before the clock starts, and a run ends when
the device is done. Outputs must agree with float32 on the CPU before times count. No TF32.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
RESULTS = HERE / "results" / "gpu_latency.md"

MODELS = ("resnet50", "resnet18", "mobilenet_v2", "efficientnet_b0", "bert_base", "vit_b_16")
SETTINGS = {"fp16b1": ("float16", 1), "fp16b32": ("float16", 32), "fp32b1": ("float32", 1)}
CONTENDERS = ("tilewright", "torch", "inductor")
TOLERANCE = {"float16": 3e-2, "float32": 1e-3}
"""The largest difference from float32 on the CPU, as a part of the largest value there."""
RUNS = 20
"""Runs of a round; a round's time is their median."""


# ---- a contender's process ----


def made(name: str, batch: int) -> tuple[Any, list[Any]]:
    """A model and its inputs, the same in every process."""
    import torch
    from models.export import made as made_for_one

    model, inputs, _ = made_for_one(name)
    generator = torch.Generator().manual_seed(11)
    values = []
    for value in inputs.values():
        shape = (batch, *value.shape[1:])
        if value.is_floating_point():
            values.append(torch.rand(shape, generator=generator))
        else:
            values.append(
                torch.randint(0, int(value.max()) + 1, shape, generator=generator, dtype=value.dtype)
            )
    return model.eval(), values


def torch_runner(
    name: str, dtype: str, batch: int, compiled: bool
) -> tuple[Callable[[], None], Callable[[], np.ndarray]]:
    """PyTorch's run of a model, and its output."""
    import torch

    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    model, inputs = made(name, batch)
    kind = getattr(torch, dtype)
    model = model.to("cuda", kind)
    values = [value.to("cuda", kind) if value.is_floating_point() else value.to("cuda") for value in inputs]
    if any(value.dim() == 4 for value in values):
        model = model.to(memory_format=torch.channels_last)
        values = [
            value.contiguous(memory_format=torch.channels_last) if value.dim() == 4 else value
            for value in values
        ]
    kept: list[Any] = []

    def first(result: Any) -> Any:
        return result[0] if isinstance(result, (tuple, list)) else result

    with torch.no_grad():
        if compiled:
            faster = torch.compile(model, mode="reduce-overhead")
            for _ in range(4):
                kept[:] = [first(faster(*values))]

            def run() -> None:
                with torch.no_grad():
                    kept[:] = [first(faster(*values))]
                torch.cuda.synchronize()
        else:
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                for _ in range(3):
                    model(*values)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                kept[:] = [first(model(*values))]

            def run() -> None:
                graph.replay()
                torch.cuda.synchronize()

    return run, lambda: kept[0].float().cpu().numpy()


def tilewright_runner(
    name: str, dtype: str, batch: int
) -> tuple[Callable[[], None], Callable[[], np.ndarray]]:
    """Our run of a model, and its output. PyTorch only writes the ONNX file."""
    import onnx
    import torch

    import tilewright as tvm
    from tilewright import relay
    from tilewright.contrib import graph_executor

    model, inputs = made(name, batch)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        names = [f"input{number}" for number in range(len(inputs))]
        torch.onnx.export(model, tuple(inputs), str(path), input_names=names, opset_version=17, dynamo=False)
        program, params = relay.frontend.from_onnx(onnx.load(path))
    start = time.perf_counter()
    if dtype != "float32":
        program["main"] = relay.build_module.bind_params_by_name(program["main"], params)
        params = {}
        program = relay.transform.ToMixedPrecision(dtype)(relay.transform.InferType()(program))
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(program, "cuda", params=params)
    device = tvm.cuda(0)
    module = graph_executor.GraphModule(library["default"](device))
    for one, value in zip(names, inputs, strict=True):
        module.set_input(one, value.numpy())
    module.run()
    device.sync()
    print(json.dumps({"compiled": time.perf_counter() - start}), flush=True)

    def run() -> None:
        module.run()
        device.sync()

    return run, lambda: module.get_output(0).numpy()


def serve(contender: str, name: str, setting: str, output: str) -> None:
    """Get ready, write the output to a file, then time a round for every line that comes in."""
    dtype, batch = SETTINGS[setting]
    start = time.perf_counter()
    if contender == "tilewright":
        run, result = tilewright_runner(name, dtype, batch)
    else:
        run, result = torch_runner(name, dtype, batch, contender == "inductor")
    for _ in range(5):
        run()
    np.save(output, result().astype("float32"))
    print(json.dumps({"ready": time.perf_counter() - start}), flush=True)
    for _ in sys.stdin:
        times = []
        for _ in range(RUNS):
            begin = time.perf_counter()
            run()
            times.append(time.perf_counter() - begin)
        print(json.dumps({"seconds": statistics.median(times)}), flush=True)


# ---- the comparison ----


class Child:
    """A contender's process."""

    def __init__(self, contender: str, name: str, setting: str, folder: str) -> None:
        self.output = Path(folder) / f"{contender}.npy"
        self.log = Path(folder) / f"{contender}.log"
        command = [sys.executable, __file__, "--serve", contender, name, setting, str(self.output)]
        # Many get ready at once: none should take all cores.
        environment = {**os.environ, "OMP_NUM_THREADS": "2", "TORCHINDUCTOR_COMPILE_THREADS": "2"}
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log.open("w"),
            text=True,
        )
        self.compiled: float | None = None
        self.ready: float | None = None

    def wait(self) -> None:
        """Wait until it is ready, or gone."""
        self.ready = self._answer("ready")

    def _answer(self, key: str) -> float | None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                found = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(found, dict) and "compiled" in found:
                self.compiled = found["compiled"]
            if isinstance(found, dict) and key in found:
                return float(found[key])
        return None

    def round(self) -> float | None:
        """The seconds of one round; None where the process is gone."""
        if self.ready is None or self.process.stdin is None:
            return None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self._answer("seconds")

    def close(self) -> None:
        """End the process."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()


def reference(name: str, batch: int) -> np.ndarray:
    """The model's output in float32 on the CPU."""
    import torch

    model, inputs = made(name, batch)
    with torch.no_grad():
        result = model(*inputs)
    return np.asarray((result[0] if isinstance(result, (tuple, list)) else result).float())


def compare(
    names: Sequence[str], setting: str, rounds: int, contenders: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The medians of all contenders on each model, in milliseconds. All get ready at the same time, because most of the
    time goes into that; they are timed one by one."""
    _, batch = SETTINGS[setting]
    with tempfile.TemporaryDirectory() as folder:
        children: dict[str, dict[str, Child]] = {}
        for name in names:
            own = Path(folder) / name
            own.mkdir()
            children[name] = {one: Child(one, name, setting, str(own)) for one in contenders}
        expected = {name: reference(name, batch) for name in names}
        for group in children.values():
            for child in group.values():
                child.wait()
        for name, group in children.items():
            times: dict[str, list[float]] = {contender: [] for contender in contenders}
            for _ in range(rounds):
                for contender, child in group.items():
                    seconds = child.round()
                    if seconds is not None:
                        times[contender].append(seconds)
            yield {"model": name, "setting": setting} | _outcome(setting, group, times, expected[name])


def _outcome(
    setting: str, group: dict[str, Child], times: dict[str, list[float]], expected: np.ndarray
) -> dict[str, Any]:
    """A row of the table: times where the output is right, and what went wrong elsewhere."""
    dtype, _ = SETTINGS[setting]
    row: dict[str, Any] = {}
    for contender, child in group.items():
        child.close()
        if not times[contender]:
            row[f"{contender}_failed"] = child.log.read_text()[-600:]
            continue
        error = float(np.abs(np.load(child.output) - expected).max() / np.abs(expected).max())
        row[f"{contender}_error"] = error
        if not error < TOLERANCE[dtype]:
            row[f"{contender}_failed"] = f"its output differs by {error:.1e}"
            continue
        row[contender] = statistics.median(times[contender]) * 1e3
        row[f"{contender}_compiled"] = child.compiled if child.compiled is not None else child.ready
    return row


def ratio(row: dict[str, Any]) -> float | None:
    """How many times faster than the better of the others."""
    others = [row[one] for one in CONTENDERS[1:] if one in row]
    return min(others) / row["tilewright"] if others and "tilewright" in row else None


def table(rows: list[dict[str, Any]], device: str) -> str:
    """The report."""
    lines = [
        "# Latency on a GPU",
        "",
        f"{device}; medians in milliseconds; `ratio` is against the better of the two others. All compiled at "
        "the same time on the machine's cores. Made by `python bench/gpu_latency.py`.",
        "",
        "| model | setting | tilewright | torch, CUDA graph | torch.compile | ratio | compile s | torch.compile s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [f"{row[one]:.3f}" if one in row else "failed" for one in CONTENDERS]
        found = ratio(row)
        seconds = [
            f"{row[key]:.1f}" if row.get(key) is not None else ""
            for key in ("tilewright_compiled", "inductor_compiled")
        ]
        lines.append(
            f"| {row['model']} | {row['setting']} | {' | '.join(cells)} | "
            f"{'' if found is None else f'{found:.2f}'} | {' | '.join(seconds)} |"
        )
    for setting in SETTINGS:
        found = [value for row in rows if row["setting"] == setting and (value := ratio(row)) is not None]
        if found:
            mean = math.exp(statistics.fmean(math.log(value) for value in found))
            lines += [
                "",
                f"{setting}: geometric mean {mean:.2f}, worst {min(found):.2f}, {len(found)} models",
            ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the comparison, or serve as one of its contenders."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--contenders", default=",".join(CONTENDERS))
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--serve", nargs=4, metavar=("CONTENDER", "MODEL", "SETTING", "OUTPUT"))
    options = parser.parse_args()
    if options.serve:
        serve(*options.serve)
        return
    import torch

    device = torch.cuda.get_device_name(0)
    rows: list[dict[str, Any]] = []
    for setting in options.settings.split(","):
        for row in compare(options.only.split(","), setting, options.rounds, options.contenders.split(",")):
            rows.append(row)
            print(json.dumps(row), flush=True)
            options.output.write_text(table(rows, device))
    print(table(rows, device))


if __name__ == "__main__":
    main()
