"""A matrix product of one's own, tuned with AutoTVM.

    python examples/autotvm_matmul.py [--size 512] [--trials 64] [--log matmul.log]

The template tiles the product, orders its loops and vectorizes it. The tuner measures candidates of the knobs; the
records stay in the log, and running it again starts from them. At the end the product is built with the best ones.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tvm
from tilewright import autotvm, te


@autotvm.template("examples/matmul")
def matmul(size: int) -> Any:
    """The product of two square matrices, in tiles."""
    a = te.placeholder((size, size), name="a")
    b = te.placeholder((size, size), name="b")
    k = te.reduce_axis((0, size), name="k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    s = te.create_schedule(c.op)

    cfg = autotvm.get_config()
    local = s.cache_write(c, "local")
    y, x = s[c].op.axis
    cfg.define_split("tile_y", y, num_outputs=2, filter=lambda split: split.size[-1] <= 16)
    cfg.define_split("tile_x", x, num_outputs=2, filter=lambda split: 4 <= split.size[-1] <= 64)
    outer_y, inner_y = cfg["tile_y"].apply(s, c, y)
    outer_x, inner_x = cfg["tile_x"].apply(s, c, x)
    cfg.define_knob("columns_first", [False, True])
    first, second = (outer_x, outer_y) if cfg["columns_first"].val else (outer_y, outer_x)
    s[c].reorder(first, second, inner_y, inner_x)
    s[c].vectorize(inner_x)
    s[c].parallel(first)

    s[local].compute_at(s[c], second)
    local_y, local_x = s[local].op.axis
    cfg.define_split("tile_k", s[local].op.reduce_axis[0], num_outputs=2, max_factor=8)
    outer_k, inner_k = cfg["tile_k"].apply(s, local, s[local].op.reduce_axis[0])
    s[local].reorder(outer_k, inner_k, local_y, local_x)
    cfg.define_annotate("unroll", [inner_k, local_y], policy="try_unroll")
    cfg["unroll"].apply(s, local, [inner_k, local_y])
    s[local].vectorize(local_x)
    return s, [a, b, c]


def seconds_of(function: Any, arguments: list[Any]) -> float:
    """The median time of a call."""
    return float(
        np.median(
            function.time_evaluator(function.entry_name, tvm.cpu(), number=3, repeat=5)(*arguments).results
        )
    )


def main() -> None:
    """Tune, then compare with the template's first configuration, and with NumPy's result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--log", default="matmul.log")
    given = parser.parse_args()

    target = tvm.target.Target("llvm")
    task = autotvm.task.create("examples/matmul", args=(given.size,), target=target)
    print(task.config_space)

    tuner = autotvm.tuner.XGBTuner(task, feature_type="knob", plan_size=16)
    if Path(given.log).exists():
        tuner.load_history(autotvm.record.load_from_file(given.log), min_seed_records=16)
    tuner.tune(
        n_trial=given.trials,
        measure_option=autotvm.measure_option(
            autotvm.LocalBuilder(), autotvm.LocalRunner(number=3, repeat=3)
        ),
        callbacks=[autotvm.callback.log_to_file(given.log), autotvm.callback.progress_bar(given.trials)],
    )

    values = [
        np.random.default_rng(number).standard_normal((given.size,) * 2).astype("float32")
        for number in (0, 1)
    ]
    arguments = [*map(tvm.nd.array, values), tvm.nd.empty((given.size,) * 2)]
    with target:
        before = tvm.build(*task.instantiate(task.config_space.get(0)), target)
        with autotvm.apply_history_best(given.log):
            after = tvm.build(*matmul(given.size), target)
    untuned, tuned = seconds_of(before, arguments), seconds_of(after, arguments)
    np.testing.assert_allclose(arguments[2].numpy(), values[0] @ values[1], rtol=1e-3, atol=1e-3)
    print(f"untuned {untuned * 1e3:.3f} ms, tuned {tuned * 1e3:.3f} ms: {untuned / tuned:.1f} times faster")
    print("matmul: agrees with NumPy")


if __name__ == "__main__":
    main()
