"""Tuning with builders on a Ray cluster: here two workers on this machine.

Run it:  python examples/tune_on_ray.py [SECONDS] [ADDRESS]       (needs tilewright[tune])

With an address, such as ray://host:10001, builders are on that cluster. Candidates are measured here in any case.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import tilewright as tvm
from tilewright import te
from tilewright.search.cluster import RayBuilders
from tilewright.search.kernel_records import TunedKernels, read_kernel_records
from tilewright.search.kernel_task import expression_task
from tilewright.search.kernel_tuner import KernelTuner, TuneOptions
from tilewright.search.records import RecordFile

ROWS, COLUMNS, INNER = 65, 100, 130


def main(seconds: float, address: str | None) -> None:
    """Tune a product with a bias and a relu, and check what it computes."""
    target = tvm.target.Target("llvm")
    a, b = te.placeholder((ROWS, INNER), name="a"), te.placeholder((INNER, COLUMNS), name="b")
    bias = te.placeholder((COLUMNS,), name="bias")
    k = te.reduce_axis((0, INNER), "k")
    c = te.compute((ROWS, COLUMNS), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    y = te.compute(c.shape, lambda i, j: te.max(c[i, j] + bias[j], 0.0), name="y")
    arguments = [a, b, bias, y]
    task = expression_task("product", arguments, [y], target)
    with tempfile.TemporaryDirectory() as folder:
        file = RecordFile(Path(folder) / "records.json")
        with RayBuilders(address, workers=2):
            tuner = KernelTuner([task], file, TuneOptions(seconds=seconds))
            tuner.tune()
        found = TunedKernels(read_kernel_records(file).records).schedule(task.request)
    built = tvm.build(found or task.request.construct(), arguments, target)
    generator = np.random.default_rng(0)
    values = [
        generator.standard_normal([int(one) for one in tensor.shape]).astype("float32")
        for tensor in arguments
    ]
    given = [tvm.nd.array(value) for value in values]
    built(*given)
    expected = np.maximum(values[0] @ values[1] + values[2], 0)
    np.testing.assert_allclose(given[3].numpy(), expected, rtol=1e-3, atol=1e-3)
    print(f"{tuner.trials} candidates built by two workers; {task.gain:.2f} times as fast as untuned")
    print("agrees with NumPy")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 30.0, sys.argv[2] if len(sys.argv) > 2 else None)
