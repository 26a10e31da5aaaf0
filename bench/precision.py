"""int8 and bfloat16 products against float32.

Run it:  python bench/precision.py [--threads 2]

Dense layers, and convolutions of ResNet-50, built as a user builds them (``relay.build`` for ``llvm``) in uint8, int8,
bfloat16 and float32. A multiply-add counts as two operations. In brackets: times float32's rate, and per cent of the
peak, which the instruction that multiplies most of the type at once reaches without any memory (that of a matrix unit
is computed from float32's). A Winograd convolution counts the operations of the direct form, and may be beyond the
peak. Only the longest kernel of the program is timed:
the layout transforms around it, which a whole model does not have, are left out.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from typing import Any

DENSE = [(1024, 1024, 1024), (128, 3072, 768), (128, 768, 3072), (1, 4096, 4096)]
"""Rows, units, depth."""
CONVOLUTIONS = [(64, 56, 64, 3), (128, 28, 128, 3), (256, 14, 256, 3), (512, 7, 512, 3), (1024, 14, 256, 1)]
"""Channels, size, outputs, kernel."""
TYPES = {"uint8": ("int8", "int32"), "int8": ("int8", "int32"), "bfloat16": ("bfloat16", "float32")}
TYPES["float32"] = ("float32", "float32")
SECONDS = 0.4
"""How long each kernel is run; the shortest time counts."""
PEAK_STEPS, PEAK_REPEATS = 100_000, 300
"""Calls that measure the peak take a fraction of a millisecond, and the best counts, as with kernels: the clock changes
with time, and a mean over a longer call would be below what a kernel reaches in its best moment."""


def numbers(kind: str, shape: tuple[int, ...], seed: int) -> Any:
    """Random numbers of a type."""
    import numpy as np

    rng = np.random.default_rng(seed)
    if kind == "bfloat16":
        import ml_dtypes

        return rng.standard_normal(shape).astype(ml_dtypes.bfloat16)
    if kind == "float32":
        return rng.standard_normal(shape).astype("float32")
    return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, dtype=kind, endpoint=True)


def shortest(made: Any, feeds: dict[str, Any], params: dict[str, Any]) -> float:
    """Seconds of the kernel that multiplies: the longest of a program's, at its best."""
    import tilewright as tvm
    from tilewright import relay
    from tilewright.contrib.debugger import debug_executor

    module = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(made), made))
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(module, "llvm", params=params)
    executor = debug_executor.create(library.get_graph_json(), library.get_lib(), tvm.cpu(0))
    executor.set_input(**feeds, **library.get_params())
    best, end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        best = min(best, 1e-3 * max(executor.run_individual(1)))
    return best


def measured_peaks(threads: int) -> dict[str, float]:
    """The peak of each type in thousands of millions of operations a second, in calls as short as those of kernels."""
    from tilewright.codegen.llvm.peaks import peak_operations, rate_type

    kinds = {rate_type(kind) for kind in TYPES}
    found = {one: 1e-9 * peak_operations(one, PEAK_REPEATS, threads, PEAK_STEPS) for one in kinds}
    return {kind: found[rate_type(kind)] for kind in TYPES}


def rows_of_results() -> Iterator[tuple[str, dict[str, float]]]:
    """Each product's name and its operations per second, in thousands of millions, by type."""
    from tilewright import relay

    for rows, units, depth in DENSE:
        rates = {}
        for kind, (second, result) in TYPES.items():
            x, w = numbers(kind, (rows, depth), 1), numbers(second, (units, depth), 2)
            data, weight = (
                relay.var(n, shape=v.shape, dtype=k) for n, v, k in (("x", x, kind), ("w", w, second))
            )
            made = relay.nn.dense(data, weight, out_dtype=result)
            rates[kind] = 2e-9 * rows * units * depth / shortest(made, {"x": x}, {"w": w})
        yield f"dense {rows} x {units} x {depth}", rates
    for channels, size, outputs, kernel in CONVOLUTIONS:
        rates = {}
        for kind, (second, result) in TYPES.items():
            x = numbers(kind, (1, channels, size, size), 1)
            w = numbers(second, (outputs, channels, kernel, kernel), 2)
            data, weight = (
                relay.var(n, shape=v.shape, dtype=k) for n, v, k in (("x", x, kind), ("w", w, second))
            )
            made = relay.nn.conv2d(
                data, weight, padding=kernel // 2, channels=outputs, kernel_size=kernel, out_dtype=result
            )
            work = 2e-9 * channels * size * size * outputs * kernel * kernel
            rates[kind] = work / shortest(made, {"x": x}, {"w": w})
        yield f"conv {channels} x {size} x {size}, {outputs} of {kernel} x {kernel}", rates


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    threads = parser.parse_args().threads
    os.environ["TVM_NUM_THREADS"] = str(threads)
    # The peak is measured again between the products: the clock may be another by then.
    peaks, rows = measured_peaks(threads), []
    for row in rows_of_results():
        rows.append(row)
        peaks = {kind: max(peak, peaks[kind]) for kind, peak in measured_peaks(threads).items()}
    print("| GOP/s | " + " | ".join(TYPES) + " |")
    print("|---|" + "---:|" * len(TYPES))
    print("| peak | " + " | ".join(f"{peak:.0f}" for peak in peaks.values()) + " |")
    for name, rates in rows:
        cells = []
        for kind, rate in rates.items():
            times = "" if kind == "float32" else f"{rate / rates['float32']:.1f} times, "
            cells.append(f"{rate:.0f} ({times}{100 * rate / peaks[kind]:.0f} %)")
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
