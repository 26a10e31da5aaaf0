"""float16 products and attention on a GPU, beside PyTorch (cuBLAS, and its scaled_dot_product_attention).

    python bench/gpu_products.py [--output results.json]

Microseconds of one call, both from CUDA graphs of ten. Results must agree before times count. Nothing is tuned.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

PRODUCTS = (
    *((size, size, size) for size in (1024, 2048, 4096, 8192)),
    *((128, 768, 768), (128, 3072, 768), (128, 768, 3072)),
    *((4096, 768, 768), (4096, 3072, 768), (4096, 768, 3072), (1, 1000, 2048)),
)
"""Rows, columns and depth."""
ATTENTIONS = (
    *((1, 12, 128, 64), (1, 12, 197, 64), (32, 12, 128, 64), (32, 12, 197, 64)),
    *((4, 16, 512, 64), (4, 16, 2048, 64), (4, 16, 8192, 64), (4, 16, 2048, 128)),
)
"""Batch, heads, tokens and channels of a head."""
TOLERANCE = 4e-3


def build(case: tuple[str, tuple[int, ...], str]) -> str:
    """Compile a case in a process of its own; the library's path."""
    import tilewright as tvm
    from tilewright import te, topi
    from tilewright.schedule import schedule
    from tilewright.schedule.gpu.tensor_core.attention import attention
    from tilewright.topi.nn.attention import AttentionShape

    kind, shape, folder = case
    target = tvm.target.Target("cuda")
    with target:
        if kind == "product":
            rows, columns, depth = shape
            inputs = [te.placeholder(one, "float16") for one in ((rows, depth), (columns, depth))]
            output = topi.nn.dense(*inputs, None, "float16")
        else:
            batch, heads, tokens, size = shape
            inputs = [te.placeholder((batch, tokens, heads, size), "float16") for _ in range(3)]
            described = AttentionShape(batch, heads, tokens, tokens, size, size)
            output = attention(*inputs, None, described, size**-0.5, ("NTHC",) * 4, (0, 0, 0))
        made = schedule([output], target)
    path = str(Path(folder) / f"{kind}_{'x'.join(map(str, shape))}.so")
    tvm.build(made, [*inputs, output], target, name="kernel").export_library(path)
    return path


def torch_side(kind: str, shape: tuple[int, ...]) -> tuple[list[Any], Callable[[], Any], int]:
    """Inputs, PyTorch's computation, and its operations."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    def random(*extents: int) -> Any:
        return torch.randn(extents, device="cuda", dtype=torch.float16)

    if kind == "product":
        rows, columns, depth = shape
        x, y = random(rows, depth) / 8, random(columns, depth)
        return [x, y], lambda: x @ y.t(), 2 * rows * columns * depth
    batch, heads, tokens, size = shape
    values = [random(batch, tokens, heads, size) for _ in range(3)]

    def run() -> Any:
        made = scaled_dot_product_attention(*(one.transpose(1, 2) for one in values))
        return made.transpose(1, 2)

    return values, run, 4 * batch * heads * tokens * tokens * size


def graph_time(run: Callable[[], Any], calls: int = 10) -> float:
    """Microseconds of a call in a CUDA graph, after one outside of it."""
    import torch

    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(calls):
            run()
    graph.replay()
    times = []
    for _ in range(9):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / calls * 1e3)
    return statistics.median(times)


def kernel_time(path: str, inputs: list[Any], expected: Any) -> float:
    """Microseconds of a call of a library's kernel in a CUDA graph, once its result was seen to be right."""
    import torch

    import tilewright as tvm

    result = torch.full_like(expected, float("nan"), memory_format=torch.contiguous_format)
    arrays = [tvm.nd.from_dlpack(one) for one in (*inputs, result)]
    function, device = tvm.runtime.load_module(path)["kernel"], tvm.cuda(0)

    def run() -> None:
        device.set_raw_stream(torch.cuda.current_stream().cuda_stream)
        function(*arrays)

    run()
    torch.cuda.synchronize()
    error = float((result - expected).abs().max() / expected.abs().max())
    if not error < TOLERANCE:
        raise SystemExit(f"{Path(path).stem} differs from PyTorch's by {error:.1e} of the largest element")
    time = graph_time(run)
    device.set_raw_stream(None)
    return time


def measure(kind: str, shape: tuple[int, ...], path: str) -> dict[str, Any]:
    """A row of the table."""
    inputs, run, operations = torch_side(kind, shape)
    ours, theirs = kernel_time(path, inputs, run()), graph_time(run)
    rate = operations / ours / 1e6
    return {"kind": kind, "shape": shape, "us": ours, "torch": theirs, "ratio": theirs / ours, "tflops": rate}


def main() -> None:
    """Build all cases, measure one by one, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, help="a JSON file for the results")
    options = parser.parse_args()
    cases = [("product", one) for one in PRODUCTS] + [("attention", one) for one in ATTENTIONS]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            paths = list(pool.map(build, [(*case, folder) for case in cases]))
        print("| | us | PyTorch us | TFLOP/s | ratio |\n|---|---|---|---|---|")
        for (kind, shape), path in zip(cases, paths, strict=True):
            row = measure(kind, shape, path)
            rows.append(row)
            sizes = "x".join(map(str, shape))
            print(
                f"| {kind} {sizes} | {row['us']:.2f} | {row['torch']:.2f} | {row['tflops']:.0f} | {row['ratio']:.2f} |"
            )
    if options.output:
        options.output.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
