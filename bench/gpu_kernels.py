"""Memory-bound kernels and float32 products on a GPU, beside PyTorch: time, bandwidth, share of the limit.

    python bench/gpu_kernels.py [--only softmax] [--output results.json]

Each side runs all kernels in a process of its own, on one stream, and times them with the device's events: the median
of ``--repeat`` samples, each of as many calls as take a few milliseconds. The share is of the bandwidth of the device's
own copy of the same size; PyTorch's products are cuBLAS' float32, without TF32. Without PyTorch only our side is
printed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SAMPLE_MS = 4.0


@dataclass(frozen=True)
class Kernel:
    """A kernel: its inputs (shape and type), and what is counted: bytes moved, or operations."""

    name: str
    inputs: tuple[tuple[tuple[int, ...], str], ...]
    moved: int
    operations: int = 0


def _size(shape: tuple[int, ...], dtype: str) -> int:
    total = {"float16": 2, "float32": 4, "int8": 1}[dtype]
    for extent in shape:
        total *= extent
    return total


def _elementwise(name: str, shape: tuple[int, ...], dtype: str, inputs: int = 1) -> Kernel:
    return Kernel(name, ((shape, dtype),) * inputs, (inputs + 1) * _size(shape, dtype))


ROWS16, ROWS32, WIDE = (65536, 4096), (32768, 4096), (16384, 8192)
IMAGE_HWC, IMAGE_CHW = (64, 112, 112, 96), (64, 96, 112, 112)

KERNELS = [
    _elementwise("copy_float32", (1 << 14, 1 << 13), "float32"),
    _elementwise("copy_float16", (1 << 15, 1 << 13), "float16"),
    _elementwise("add_float32", (1 << 14, 1 << 13), "float32", 2),
    _elementwise("add_float16_odd", (16383, 8191), "float16", 2),
    _elementwise("exp_float32", (1 << 14, 1 << 13), "float32"),
    _elementwise("gelu_float16", (1 << 15, 1 << 13), "float16"),
    _elementwise("softmax_float16", ROWS16, "float16"),
    _elementwise("softmax_float32", ROWS32, "float32"),
    _elementwise("softmax_short_float16", (1 << 20, 197), "float16"),
    _elementwise("log_softmax_float32", ROWS32, "float32"),
    _elementwise("layer_norm_float16", ROWS16, "float16"),
    _elementwise("layer_norm_768_float16", (1 << 18, 768), "float16"),
    _elementwise("rms_norm_float16", ROWS16, "float16"),
    _elementwise("instance_norm_float32", (64, 96, 56, 56), "float32"),
    Kernel("sum_rows_float32", ((WIDE, "float32"),), _size(WIDE, "float32")),
    Kernel("sum_columns_float32", ((WIDE, "float32"),), _size(WIDE, "float32")),
    Kernel("sum_all_float32", ((WIDE, "float32"),), _size(WIDE, "float32")),
    Kernel("max_rows_float16", ((ROWS16, "float16"),), _size(ROWS16, "float16")),
    Kernel("argmax_rows_float32", ((ROWS32, "float32"),), _size(ROWS32, "float32")),
    _elementwise("transpose_float32", (1 << 14, 1 << 13), "float32"),
    _elementwise("transpose_float16", (1 << 14, 1 << 13), "float16"),
    _elementwise("nchw_to_nhwc_float16", IMAGE_CHW, "float16"),
    Kernel("concatenate_float16", ((ROWS16, "float16"), (ROWS16, "float16")), 4 * _size(ROWS16, "float16")),
    Kernel(
        "max_pool_nhwc_float16",
        ((IMAGE_HWC, "float16"),),
        _size(IMAGE_HWC, "float16") + _size((64, 56, 56, 96), "float16"),
    ),
    Kernel(
        "depthwise_nhwc_float16",
        ((IMAGE_HWC, "float16"), ((3, 3, 96, 1), "float16")),
        2 * _size(IMAGE_HWC, "float16"),
    ),
    Kernel(
        "depthwise_nchw_float32",
        ((IMAGE_CHW, "float32"), ((96, 1, 3, 3), "float32")),
        2 * _size(IMAGE_CHW, "float32"),
    ),
    Kernel("cumsum_float32", ((ROWS32, "float32"),), 2 * _size(ROWS32, "float32")),
    Kernel("sort_float32", (((4096, 1024), "float32"),), 2 * _size((4096, 1024), "float32")),
    Kernel("topk_float32", (((4096, 1024), "float32"),), _size((4096, 1024), "float32")),
    *(
        Kernel(f"product_{n}_float32", (((n, n), "float32"),) * 2, 3 * n * n * 4, 2 * n**3)
        for n in (512, 1024, 2048, 4096, 8192)
    ),
    Kernel(
        "product_transposed_4096_float32", (((4096, 4096), "float32"),) * 2, 3 * 4096 * 4096 * 4, 2 * 4096**3
    ),
    Kernel(
        "batched_product_float32",
        (((64, 512, 512), "float32"),) * 2,
        3 * 64 * 512 * 512 * 4,
        2 * 64 * 512**3,
    ),
    Kernel(
        "convolution_float32",
        (((32, 64, 56, 56), "float32"), ((64, 64, 3, 3), "float32")),
        2 * _size((32, 64, 56, 56), "float32"),
        2 * 32 * 64 * 64 * 56 * 56 * 9,
    ),
]


# ---- our side ----


def our_outputs(name: str, inputs: list[Any]) -> list[Any]:
    """The computation as tensor expressions."""
    from tilewright import te, topi

    a = inputs[0]
    if name.startswith("copy"):
        return [topi.identity(a)]
    if name.startswith("add"):
        return [topi.add(a, inputs[1])]
    if name.startswith("exp"):
        return [topi.exp(a)]
    if name.startswith("gelu"):
        wide = topi.cast(a, "float32")
        raised = topi.erf(topi.multiply(wide, 0.7071067811865476))
        return [topi.cast(topi.multiply(topi.multiply(wide, 0.5), topi.add(raised, 1.0)), str(a.dtype))]
    if name.startswith("softmax"):
        return [topi.nn.softmax(a)]
    if name.startswith("log_softmax"):
        return [topi.nn.log_softmax(a)]
    if name.startswith(("layer_norm", "instance_norm", "rms_norm")):
        axes = (2, 3) if name.startswith("instance") else (1,)
        count = float(int(a.shape[2]) * int(a.shape[3]) if name.startswith("instance") else int(a.shape[1]))
        wide = topi.cast(a, "float32") if str(a.dtype) == "float16" else a
        if not name.startswith("rms"):
            mean = topi.divide(topi.sum(wide, axis=axes, keepdims=True), count)
            wide = topi.subtract(wide, mean)
        variance = topi.divide(topi.sum(topi.multiply(wide, wide), axis=axes, keepdims=True), count)
        made = topi.multiply(wide, topi.rsqrt(topi.add(variance, 1e-5)))
        return [topi.cast(made, str(a.dtype))]
    if name.startswith("sum"):
        axis = {"sum_rows": 1, "sum_columns": 0, "sum_all": None}[name.rsplit("_", 1)[0]]
        return [topi.sum(a, axis=axis)]
    if name.startswith("max_rows"):
        return [topi.max(a, axis=1)]
    if name.startswith("argmax"):
        return [topi.argmax(a, axis=1)]
    if name.startswith("transpose"):
        return [topi.transpose(a)]
    if name.startswith("nchw_to_nhwc"):
        return [topi.transpose(a, (0, 2, 3, 1))]
    if name.startswith("concatenate"):
        return [topi.concatenate(inputs, axis=1)]
    if name.startswith("max_pool"):
        return [topi.nn.pool2d(a, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max", layout="NHWC")]
    if name.startswith("depthwise_nhwc"):
        return [topi.nn.depthwise_conv2d_nhwc(a, inputs[1], (1, 1), (1, 1), (1, 1), str(a.dtype))]
    if name.startswith("depthwise_nchw"):
        return [topi.nn.depthwise_conv2d_nchw(a, inputs[1], (1, 1), (1, 1), (1, 1), str(a.dtype))]
    if name.startswith("cumsum"):
        return [topi.cuda.cumsum(a, axis=1)]
    if name.startswith("sort"):
        return [topi.cuda.sort(a)]
    if name.startswith("topk"):
        return list(topi.cuda.topk(a, 32, dtype="int32"))
    if name.startswith("product_transposed"):
        return [topi.nn.dense(a, inputs[1])]
    if name.startswith("product"):
        return [topi.nn.matmul(a, inputs[1])]
    if name.startswith("batched"):
        return [topi.nn.batch_matmul(a, inputs[1], transpose_b=False)]
    if name.startswith("convolution"):
        return [topi.nn.conv2d_nchw(a, inputs[1], 1, 1, 1)]
    raise ValueError(f"no kernel {name}: {te}")


def our_side(kernel: Kernel, repeat: int) -> float:
    """The median time of a call in milliseconds."""
    import numpy as np

    import tilewright as tvm
    from tilewright import te
    from tilewright.schedule import schedule

    device = tvm.cuda(0)
    inputs = [te.placeholder(shape, dtype, name=f"x{i}") for i, (shape, dtype) in enumerate(kernel.inputs)]
    target = tvm.target.Target("cuda")
    with target:
        outputs = our_outputs(kernel.name, inputs)
    library = tvm.build(schedule(outputs, target), [*inputs, *outputs], target, name="kernel")
    random = np.random.default_rng(0)
    arrays = []
    for shape, dtype in kernel.inputs:
        tile = random.standard_normal(1 << 16).astype(dtype)
        count = int(np.prod(shape))
        arrays.append(tvm.nd.array(np.resize(tile, count).reshape(shape), device))
    results = [tvm.nd.empty([int(extent) for extent in one.shape], str(one.dtype), device) for one in outputs]
    evaluator = library.time_evaluator("kernel", device, number=1, repeat=3)
    once = max(min(evaluator(*arrays, *results).results) * 1e3, 1e-4)
    number = max(int(SAMPLE_MS / once), 1)
    evaluator = library.time_evaluator("kernel", device, number=number, repeat=repeat)
    return float(statistics.median(evaluator(*arrays, *results).results)) * 1e3


# ---- PyTorch's side ----


def torch_call(name: str, inputs: list[Any]) -> Callable[[], Any]:
    """The computation in PyTorch."""
    import torch
    import torch.nn.functional as f

    a = inputs[0]
    if name.startswith("copy"):
        out = torch.empty_like(a)
        return lambda: out.copy_(a)
    if name.startswith("add"):
        return lambda: torch.add(a, inputs[1])
    if name.startswith("exp"):
        return lambda: torch.exp(a)
    if name.startswith("gelu"):
        return lambda: f.gelu(a)
    if name.startswith("softmax"):
        return lambda: torch.softmax(a, -1)
    if name.startswith("log_softmax"):
        return lambda: torch.log_softmax(a, -1)
    if name.startswith("layer_norm"):
        return lambda: f.layer_norm(a, a.shape[-1:])
    if name.startswith("rms_norm"):
        return lambda: f.rms_norm(a, a.shape[-1:])
    if name.startswith("instance_norm"):
        return lambda: f.instance_norm(a)
    if name.startswith("sum_rows"):
        return lambda: a.sum(1)
    if name.startswith("sum_columns"):
        return lambda: a.sum(0)
    if name.startswith("sum_all"):
        return lambda: a.sum()
    if name.startswith("max_rows"):
        return lambda: a.amax(1)
    if name.startswith("argmax"):
        return lambda: a.argmax(1)
    if name.startswith("transpose"):
        return lambda: a.t().contiguous()
    if name.startswith("nchw_to_nhwc"):
        return lambda: a.permute(0, 2, 3, 1).contiguous()
    if name.startswith("concatenate"):
        return lambda: torch.cat(inputs, 1)
    if name.startswith("max_pool"):
        image = a.permute(0, 3, 1, 2)
        return lambda: f.max_pool2d(image, 3, 2, 1)
    if name.startswith("depthwise_nhwc"):
        image, weight = a.permute(0, 3, 1, 2), inputs[1].permute(2, 3, 0, 1).contiguous()
        return lambda: f.conv2d(image, weight, padding=1, groups=96)
    if name.startswith("depthwise_nchw"):
        return lambda: f.conv2d(a, inputs[1], padding=1, groups=96)
    if name.startswith("cumsum"):
        return lambda: a.cumsum(1)
    if name.startswith("sort"):
        return lambda: a.sort(-1)
    if name.startswith("topk"):
        return lambda: a.topk(32, -1)
    if name.startswith("product_transposed"):
        return lambda: a @ inputs[1].t()
    if name.startswith(("product", "batched")):
        return lambda: a @ inputs[1]
    if name.startswith("convolution"):
        return lambda: f.conv2d(a, inputs[1], padding=1)
    raise ValueError(f"no kernel {name}")


def torch_side(kernel: Kernel, repeat: int) -> float:
    """The median time of a call in milliseconds."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    inputs = [
        torch.randn(shape, device="cuda", dtype=getattr(torch, dtype)) for shape, dtype in kernel.inputs
    ]
    return torch_time(torch_call(kernel.name, inputs), repeat)


def copy_side(kernel: Kernel, repeat: int) -> float:
    """The median time of a copy that reads and writes as many bytes as the kernel."""
    import torch

    source = torch.randint(256, (kernel.moved // 2,), device="cuda", dtype=torch.uint8)
    target = torch.empty_like(source)
    return torch_time(lambda: target.copy_(source), repeat)


def torch_time(call: Callable[[], Any], repeat: int) -> float:
    """The median time of a call in milliseconds."""
    import torch

    def sample(number: int) -> float:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(number):
            call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / number

    for _ in range(3):
        once = sample(1)
    number = max(int(SAMPLE_MS / max(once, 1e-4)), 1)
    return statistics.median(sample(number) for _ in range(repeat))


SIDES = {"ours": our_side, "torch": torch_side, "copy": copy_side}


# ---- the table ----


def serve(side: str, names: list[str], repeat: int) -> None:
    """One side's process: a line of JSON for each kernel."""
    for kernel in KERNELS:
        if kernel.name not in names:
            continue
        try:
            line = {"name": kernel.name, "ms": SIDES[side](kernel, repeat)}
        except Exception as error:  # noqa: BLE001 - one kernel's failure must not end the run
            line = {"name": kernel.name, "error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(line), flush=True)


def collect(side: str, names: list[str], repeat: int) -> dict[str, dict[str, Any]]:
    """The results of one side."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, __file__, "--side", side, "--repeat", str(repeat), "--names", ",".join(names)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    found = {}
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            result = json.loads(line)
            found[result["name"]] = result
    if done.returncode:
        print(f"{side} stopped with {done.returncode}: {done.stderr.strip()[-500:]}")
    return found


def main() -> None:
    """Run both sides and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--only", default="", help="parts of the names of the kernels to run, with commas between them"
    )
    parser.add_argument("--repeat", type=int, default=11)
    parser.add_argument("--output", help="a JSON file for the results")
    parser.add_argument("--side", choices=sorted(SIDES), help=argparse.SUPPRESS)
    parser.add_argument("--names", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        serve(options.side, options.names.split(","), options.repeat)
        return
    parts = options.only.split(",")
    chosen = [kernel for kernel in KERNELS if any(part in kernel.name for part in parts)]
    names = [kernel.name for kernel in chosen]
    results = {side: collect(side, names, options.repeat) for side in SIDES}
    print(
        f"{'kernel':34} {'ours ms':>9} {'torch ms':>9} {'faster':>7} {'GB/s':>7} {'of copy':>8} {'TFLOP/s':>8}"
    )
    for kernel in chosen:
        ours, theirs, copy = (results[side].get(kernel.name, {}) for side in SIDES)
        if "ms" not in ours:
            print(f"{kernel.name:34} {ours.get('error', 'no result')}")
            continue
        rate = kernel.moved / ours["ms"] / 1e6
        cells = [f"{kernel.name:34} {ours['ms']:9.4f}"]
        cells.append(f"{theirs['ms']:9.4f} {theirs['ms'] / ours['ms']:6.2f}x" if "ms" in theirs else " " * 17)
        cells.append(f"{rate:7.0f}" if not kernel.operations else " " * 7)
        counts_copy = "ms" in copy and not kernel.operations
        cells.append(f"{copy['ms'] / ours['ms']:8.0%}" if counts_copy else " " * 8)
        cells.append(f"{kernel.operations / ours['ms'] / 1e9:8.1f}" if kernel.operations else "")
        print(" ".join(cells))
    if options.output:
        record = {"kernels": [asdict(kernel) for kernel in chosen], **results}
        Path(options.output).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
