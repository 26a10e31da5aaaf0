"""A matrix product without a schedule, given to AutoScheduler.

Run it:  python examples/auto_scheduler_matmul.py [size] [trials]

A task is a registered function, its arguments and a target. Its search measures the constructed schedule first, then
candidates; everything goes to a file, and running the script again goes on from there. What is applied at the end is
the fastest of all, the constructed schedule included.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import tilewright as tvm
from tilewright import auto_scheduler, te


@auto_scheduler.register_workload
def product_with_bias(m: int, n: int, k: int) -> list[te.Tensor]:
    """``A @ B + bias``, as it is written down."""
    a = te.placeholder((m, k), name="A")
    b = te.placeholder((k, n), name="B")
    bias = te.placeholder((n,), name="bias")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    out = te.compute((m, n), lambda i, j: c[i, j] + bias[j], name="out")
    return [a, b, bias, out]


def main(size: int = 128, trials: int = 12, records: Path | None = None) -> None:
    """Tune, apply what was found, and compare it with NumPy."""
    with tempfile.TemporaryDirectory() as folder:
        path = records or Path(folder) / "product.json"
        task = auto_scheduler.SearchTask(func=product_with_bias, args=(size, size, size), target="llvm")
        known = [auto_scheduler.PreloadMeasuredStates(path)] if path.exists() else None
        policy = auto_scheduler.SketchPolicy(
            task, auto_scheduler.XGBModel(num_warmup_sample=8), seed=0, init_search_callbacks=known
        )
        task.tune(
            auto_scheduler.TuningOptions(
                num_measure_trials=trials,
                num_measures_per_round=max(trials // 2, 1),
                runner=auto_scheduler.LocalRunner(repeat=3, min_repeat_ms=20),
                measure_callbacks=[auto_scheduler.RecordToFile(path)],
            ),
            policy,
        )
        print(f"the fastest of {len(list(auto_scheduler.load_records(path)))} records as a schedule:")
        print(task.print_best(path))
        schedule, arguments = task.apply_best(path)

    product = tvm.build(schedule, arguments, task.target)
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal((size, size)).astype("float32") for _ in range(2))
    bias = generator.standard_normal(size).astype("float32")
    values = [tvm.nd.array(one) for one in (a, b, bias, np.empty((size, size), "float32"))]
    product(*values)
    np.testing.assert_allclose(values[-1].numpy(), a @ b + bias, rtol=1e-3, atol=1e-3)
    seconds = product.time_evaluator(product.entry_name, tvm.cpu(), number=20)(*values).mean
    print(f"agrees with NumPy; {2 * size**3 / seconds / 1e9:.1f} GFLOP/s")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3]))
