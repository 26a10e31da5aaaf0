"""Scheduled tensor expressions against NumPy, PyTorch and the limits of the machine.

Run it:  python bench/tensor_expressions.py            (writes bench/results/tensor_expressions.md)

Figures are medians of alternating rounds, each contender in its own process; a ratio above one means that
Tilewright is faster.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]

from harness import SAMPLES, Contender, race, serve, thread_environment, timed, write_table  # noqa: E402

BIG = 64 * 1024 * 1024
"""Elements of the arrays of the bandwidth kernels: 256 MB."""


def prepare(who: str, kernel: str, size: int, threads: int) -> Callable[[], float]:
    """The timed run of one contender."""
    makers = {"tilewright": _tilewright, "numpy": _numpy, "torch": _torch, "limit": _limit}
    return makers[who](kernel, size, threads)


def _inputs(kernel: str, size: int) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    shapes = {
        "gemm": [(size, size)] * 2,
        "elementwise": [(BIG,)],
        "row_sum": [(BIG // 1024, 1024)],
        "softmax": [(4096, 1024)],
        "layer_norm": [(4096, 1024), (1024,), (1024,)],
    }[kernel]
    return [generator.standard_normal(shape, dtype="float32") for shape in shapes]


def _tilewright(kernel: str, size: int, threads: int) -> Callable[[], float]:
    import gemm
    import row_kernels

    import tilewright as tvm
    from tilewright.target.cpu import describe_cpu

    lanes = describe_cpu("llvm").lanes(32)
    makers: dict[str, Callable[[], Any]] = {
        "gemm": lambda: gemm.matrix_product(
            size, size, size, gemm.choose_tiles(describe_cpu("llvm"), size), threads > 1
        ),
        "elementwise": lambda: row_kernels.elementwise(BIG, lanes, streaming=True),
        "row_sum": lambda: row_kernels.row_sum(BIG // 1024, 1024, lanes),
        "softmax": lambda: row_kernels.softmax(4096, 1024, lanes),
        "layer_norm": lambda: row_kernels.layer_norm(4096, 1024, lanes),
    }
    schedule, arguments = makers[kernel]()
    module = tvm.build(schedule, arguments, "llvm", name=kernel)
    arrays = [tvm.nd.array(value) for value in _inputs(kernel, size)]
    output = tvm.nd.empty([int(extent) for extent in arguments[-1].shape], "float32")
    function = module[kernel]
    return timed(lambda: function(*arrays, output))


def _numpy(kernel: str, size: int, threads: int) -> Callable[[], float]:
    left, right = _inputs("gemm", size)
    output = np.empty((size, size), "float32")
    return timed(lambda: np.matmul(left, right, out=output))


def _torch(kernel: str, size: int, threads: int) -> Callable[[], float]:
    import torch

    torch.set_num_threads(threads)
    inputs = [torch.from_numpy(value) for value in _inputs(kernel, size)]
    output = torch.empty_like(inputs[0])
    calls: dict[str, Callable[[], object]] = {
        "softmax": lambda: torch.softmax(inputs[0], 1, out=output),
        "layer_norm": lambda: torch.nn.functional.layer_norm(inputs[0], (1024,), inputs[1], inputs[2]),
    }
    with torch.inference_mode():
        call = calls[kernel]
    return timed(lambda: _in_inference(torch, call))


def _in_inference(torch: Any, call: Callable[[], object]) -> object:
    with torch.inference_mode():
        return call()


def _limit(kernel: str, size: int, threads: int) -> Callable[[], float]:
    """Seconds that the kernel would take at the measured limit of the machine."""
    import limits

    if kernel == "gemm":
        return lambda: statistics.median(2 * size**3 / limits.peak_flops(1) for _ in range(SAMPLES))
    moved = {"elementwise": ("copy", 2 * 4 * BIG), "row_sum": ("read", 4 * BIG)}[kernel]
    return lambda: moved[1] / limits.bandwidth(256, threads, 1)[moved[0]]


def contender(who: str, kernel: str, size: int, threads: int) -> Contender:
    """The process of one contender."""
    arguments = (str(Path(__file__).resolve()), "--contender", who, kernel, str(size), str(threads))
    return Contender(who, arguments, thread_environment(threads))


CASES = [
    ("gemm", 1024, 1, ("tilewright", "numpy", "limit")),
    ("gemm", 2048, 1, ("tilewright", "numpy", "limit")),
    ("gemm", 1024, 2, ("tilewright", "numpy")),
    ("gemm", 2048, 2, ("tilewright", "numpy")),
    ("elementwise", 0, 2, ("tilewright", "limit")),
    ("row_sum", 0, 2, ("tilewright", "limit")),
    ("softmax", 0, 2, ("tilewright", "torch")),
    ("softmax", 0, 1, ("tilewright", "torch")),
    ("layer_norm", 0, 2, ("tilewright", "torch")),
    ("layer_norm", 0, 1, ("tilewright", "torch")),
]

_BUILD_SCRIPT = """
import sys, time
sys.path[:0] = sys.argv[1:]
import gemm, tilewright as tvm
from tilewright.target.cpu import describe_cpu
tvm.build(*gemm.matrix_product(64, 64, 64, gemm.choose_tiles(describe_cpu("llvm"), 64)), "llvm")
for _ in range(5):
    started = time.perf_counter()
    schedule, arguments = gemm.matrix_product(1024, 1024, 1024, gemm.choose_tiles(describe_cpu("llvm"), 1024))
    lowered = tvm.lower(schedule, arguments)
    middle = time.perf_counter()
    tvm.build(lowered, target="llvm")
    print(middle - started, time.perf_counter() - started)
"""


def build_times() -> tuple[float, float]:
    """Median seconds to lower and to build the product of 1024 matrices, in a separate process that has built
    something before."""
    printed = subprocess.run(
        [sys.executable, "-c", _BUILD_SCRIPT, str(HERE.parent / "examples")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    pairs = [tuple(map(float, line.split())) for line in printed.splitlines()]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def main() -> None:
    """Race all cases and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contender", nargs=4, metavar=("WHO", "KERNEL", "SIZE", "THREADS"))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", help="cases whose kernel has this name")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "tensor_expressions.md")
    given = parser.parse_args()
    if given.contender:
        who, kernel, size, threads = given.contender
        serve(lambda: prepare(who, kernel, int(size), int(threads)))
        return
    rows = []
    for kernel, size, threads, names in CASES:
        if given.only and kernel != given.only:
            continue
        times = race([contender(who, kernel, size, threads) for who in names], given.rounds)
        ours = times["tilewright"]
        others = [(name, times[name] / ours) for name in names if name != "tilewright"]
        compared = ", ".join(
            f"{ratio * 100:.0f} % of the limit" if name == "limit" else f"{ratio:.2f} x {name}"
            for name, ratio in others
        )
        label = f"{kernel} {size}" if size else kernel
        rows.append([label, str(threads), f"{ours * 1e3:.3f} ms", compared])
        print(*rows[-1], flush=True)
    lower, build = build_times()
    rows.append(["lower gemm 1024", "1", f"{lower * 1e3:.0f} ms", "bar 100 ms"])
    rows.append(["lower and build gemm 1024", "1", f"{build * 1e3:.0f} ms", "bar 500 ms"])
    notes = (
        "A ratio is the other's median time divided by Tilewright's: above one, Tilewright is faster. The limit of "
        "gemm is the rate of independent multiply-adds of one thread; that of elementwise the better of copying with "
        "ordinary and with non-temporal stores, that of row_sum reading, over 256 MB. "
        f"Measured {time.strftime('%Y-%m-%d')}, {given.rounds} rounds."
    )
    write_table(
        given.output, "Tensor expressions", ["kernel", "threads", "Tilewright", "compared"], rows, notes
    )


if __name__ == "__main__":
    main()
