"""Kernels with the default schedules, compared with the machine's peak rate of multiply-adds.

Run it:  python bench/kernels.py [--threads 1] [--only resnet] [--isa avx2]

Matrix products, the convolutions of ResNet-50 and the depthwise ones of MobileNet-V2 in blocked layouts, softmax and
pooling, each with a fused bias and relu where a model has them. Times are the best of many rounds over all kernels, so
that a busy minute of the machine affects all of them.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from isa import add_option, start_again  # noqa: E402


@dataclass(frozen=True)
class Kernel:
    """A computation to time: what makes its output and inputs, and how many operations it has."""

    name: str
    make: Callable[[], tuple[Any, list[Any]]]
    operations: int


RESNET_50 = [
    # channels, size, outputs, kernel, stride, how often the model has it
    (3, 224, 64, 7, 2, 1),
    (64, 56, 64, 1, 1, 1),
    (64, 56, 64, 3, 1, 3),
    (64, 56, 256, 1, 1, 4),
    (256, 56, 64, 1, 1, 2),
    (256, 56, 128, 1, 1, 1),
    (128, 56, 128, 3, 2, 1),
    (256, 56, 512, 1, 2, 1),
    (128, 28, 512, 1, 1, 4),
    (512, 28, 128, 1, 1, 3),
    (128, 28, 128, 3, 1, 3),
    (512, 28, 256, 1, 1, 1),
    (256, 28, 256, 3, 2, 1),
    (512, 28, 1024, 1, 2, 1),
    (256, 14, 1024, 1, 1, 6),
    (1024, 14, 256, 1, 1, 5),
    (256, 14, 256, 3, 1, 5),
    (1024, 14, 512, 1, 1, 1),
    (512, 14, 512, 3, 2, 1),
    (1024, 14, 2048, 1, 2, 1),
    (512, 7, 2048, 1, 1, 3),
    (2048, 7, 512, 1, 1, 2),
    (512, 7, 512, 3, 1, 2),
]

MOBILENET_V2 = [
    # channels, size, stride
    (32, 112, 1),
    (96, 112, 2),
    (144, 56, 1),
    (144, 56, 2),
    (192, 28, 1),
    (384, 14, 1),
    (576, 14, 2),
    (960, 7, 1),
]


def convolution(channels: int, size: int, outputs: int, kernel: int, stride: int, name: str) -> Kernel:
    """A blocked convolution with its bias and relu."""
    from tilewright import te, topi

    depthwise = name.startswith("depthwise")
    layouts = topi.x86.conv2d_layouts(channels, outputs, channels if depthwise else 1)
    padding = kernel // 2
    after = (size + 2 * padding - kernel) // stride + 1

    def make() -> tuple[Any, list[Any]]:
        inputs, block = layouts.ic_bn, layouts.oc_bn
        inner = (1, 1) if depthwise else (channels // inputs, inputs)
        data = te.placeholder((1, channels // inputs, size, size, inputs), name="data")
        weight = te.placeholder((outputs // block, inner[0], kernel, kernel, inner[1], block), name="kernel")
        bias = te.placeholder((1, outputs // block, 1, 1, block), name="bias")
        operator = topi.x86.depthwise_conv2d_NCHWc if depthwise else topi.x86.conv2d_NCHWc
        product = operator(data, weight, stride, padding, 1, layouts.data_layout, layouts.out_layout)
        return topi.nn.relu(topi.add(product, bias)), [data, weight, bias]

    work = 2 * (1 if depthwise else channels) * outputs * kernel * kernel * after * after
    return Kernel(f"{name} {channels}x{size} -> {outputs}, {kernel}x{kernel}/{stride}", make, work)


def product(rows: int, units: int, depth: int, packed: bool) -> Kernel:
    """A dense layer with its bias and relu."""
    from tilewright import te, topi

    def make() -> tuple[Any, list[Any]]:
        data, bias = te.placeholder((rows, depth), name="data"), te.placeholder((units,), name="bias")
        if packed:
            block = topi.x86.dense_block(units, rows, depth)
            weight = te.placeholder((units // block, depth, block), name="weight")
            made = topi.x86.dense_pack(data, weight, bias)
        else:
            weight = te.placeholder((units, depth), name="weight")
            made = topi.x86.dense(data, weight, bias)
        return topi.nn.relu(made), [data, weight, bias]

    kind = "packed weights" if packed else "weights as they are"
    return Kernel(f"dense {rows}x{units}x{depth}, {kind}", make, 2 * rows * units * depth)


def other_kernels() -> list[Kernel]:
    """A product of batches, softmax and pooling; the last two are bound by memory."""
    from tilewright import te, topi

    def attention() -> tuple[Any, list[Any]]:
        a, b = te.placeholder((12, 128, 64), name="a"), te.placeholder((12, 128, 64), name="b")
        return topi.x86.batch_matmul(a, b), [a, b]

    def softmax() -> tuple[Any, list[Any]]:
        x = te.placeholder((12, 128, 128), name="x")
        return topi.nn.softmax(x), [x]

    def pool() -> tuple[Any, list[Any]]:
        x = te.placeholder((1, 4, 112, 112, 16), name="x")
        return topi.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1,) * 4, "max", layout="NCHW16c"), [x]

    return [
        Kernel("batch_matmul 12x128x128x64", attention, 2 * 12 * 128 * 128 * 64),
        Kernel("softmax 12x128x128", softmax, 0),
        Kernel("max pooling 64x112, 3x3/2", pool, 0),
    ]


def all_kernels() -> list[tuple[Kernel, int]]:
    """Every kernel, and how often ResNet-50 has it."""
    found = [
        (product(1024, 1024, 1024, True), 0),
        (product(1024, 1024, 1024, False), 0),
        (product(128, 768, 768, True), 0),
        (product(1, 4096, 4096, False), 0),
    ]
    found += [(convolution(*layer[:5], "resnet"), layer[5]) for layer in RESNET_50]
    found += [(convolution(c, size, c, 3, stride, "depthwise"), 0) for c, size, stride in MOBILENET_V2]
    return found + [(kernel, 0) for kernel in other_kernels()]


def prepare(kernel: Kernel) -> tuple[Callable[[], float], float]:
    """A timed run of a kernel, and the seconds that it took to compile."""
    import numpy as np

    import tilewright as tvm
    from tilewright import topi

    started = time.perf_counter()
    output, placeholders = kernel.make()
    module = tvm.build(topi.generic.schedule_default(output), [*placeholders, output], "llvm", name="kernel")
    compiled = time.perf_counter() - started
    generator = np.random.default_rng(0)
    shapes = [[int(extent) for extent in tensor.shape] for tensor in (*placeholders, output)]
    arrays = [tvm.nd.array(generator.standard_normal(shape, dtype="float32")) for shape in shapes]
    evaluator = module.time_evaluator("kernel", tvm.cpu(), number=2, repeat=2)
    module["kernel"](*arrays)
    return lambda: float(min(evaluator(*arrays).results)), compiled


def main() -> None:
    """Time all kernels and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="kernels whose name has this in it")
    add_option(parser)
    given = parser.parse_args()
    start_again(given.isa)
    os.environ["TILEWRIGHT_NUM_THREADS"] = str(given.threads)

    import limits

    chosen = [(kernel, count) for kernel, count in all_kernels() if given.only in kernel.name]
    runs = [prepare(kernel) for kernel, _ in chosen]
    best = [float("inf")] * len(chosen)
    peak = 0.0
    for _ in range(given.rounds):
        peak = max(peak, limits.peak_flops(1))
        for index, (run, _) in enumerate(runs):
            best[index] = min(best[index], run())
    total = peak * given.threads
    print(f"peak of one thread: {peak / 1e9:.0f} GFLOP/s; {given.threads} thread(s)")
    for (kernel, _), seconds, (_, compiled) in zip(chosen, best, runs, strict=True):
        rate = f"{kernel.operations / seconds / 1e9:6.0f} GFLOP/s {kernel.operations / seconds / total:5.0%}"
        rate = rate if kernel.operations else " " * len(rate)
        print(f"{kernel.name:48s} {seconds * 1e6:10.1f} us {rate}   compiled in {compiled * 1e3:4.0f} ms")
    weighted = [
        (count * kernel.operations, count * best[index]) for index, (kernel, count) in enumerate(chosen)
    ]
    if any(seconds for _, seconds in weighted):
        work, seconds = (sum(column) for column in zip(*weighted, strict=True))
        print(
            f"all convolutions of ResNet-50: {seconds * 1e3:.1f} ms, {work / seconds / total:.0%} of the peak"
        )
        print(f"all kernels compiled in {sum(compiled for _, compiled in runs):.1f} s")


if __name__ == "__main__":
    main()
