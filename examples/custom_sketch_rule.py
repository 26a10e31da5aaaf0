"""A sketch rule of one's own: a structure that the built-in rules do not derive.

Run it:  python examples/custom_sketch_rule.py [trials]

The computation is a sum over the columns of a matrix. The built-in rules reduce each row as a whole, or in two parts.
This rule reduces blocks of rows together, with the rows innermost, so that the loop over rows can be vectorized. The
search then chooses the block, the unrolling and the rest.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tvm
from tilewright import auto_scheduler, te

Rule = auto_scheduler.PreloadCustomSketchRule


@auto_scheduler.register_workload
def sums_of_rows(rows: int, columns: int) -> list[te.Tensor]:
    """The sum of each row."""
    data = te.placeholder((rows, columns), name="data")
    k = te.reduce_axis((0, columns), name="k")
    return [data, te.compute((rows,), lambda i: te.sum(data[i, k], axis=k), name="sums")]


def applies(policy: Any, state: Any, stage_id: int) -> int:
    """To the reduction, in place of the built-in rules; they derive the rest."""
    name = state.stages[stage_id].op.name
    return Rule.APPLY_AND_SKIP_REST if name == "sums" else Rule.PASS


def blocks_of_rows(policy: Any, state: Any, stage_id: int) -> list[Any]:
    """Rows in blocks, columns outside of the rows of a block. None is a length that the search chooses."""
    made = auto_scheduler.State(state, policy.search_task.compute_dag)
    rows, columns = made.stages[stage_id].iters
    blocks, inside = made.split(stage_id, rows, [None])
    made.reorder(stage_id, [blocks, columns, inside])
    return [(made.state_object, stage_id - 1)]


def main(trials: int = 6) -> None:
    """Tune with the rule, and compare with NumPy."""
    task = auto_scheduler.SearchTask(func=sums_of_rows, args=(256, 128), target="llvm")
    policy = auto_scheduler.SketchPolicy(
        task, seed=0, init_search_callbacks=[Rule(applies, blocks_of_rows, "blocks_of_rows")]
    )
    (sketch,) = policy.generate_sketches()
    print(sketch)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sums.json"
        options = auto_scheduler.TuningOptions(
            trials,
            num_measures_per_round=trials,
            runner=auto_scheduler.LocalRunner(min_repeat_ms=10),
            measure_callbacks=[auto_scheduler.RecordToFile(path)],
        )
        task.tune(options, policy)
        schedule, arguments = task.apply_best(path)
    function = tvm.build(schedule, arguments, "llvm")
    data = np.random.default_rng(0).standard_normal((256, 128)).astype("float32")
    sums = tvm.nd.empty((256,))
    function(tvm.nd.array(data), sums)
    np.testing.assert_allclose(sums.numpy(), data.sum(1), rtol=1e-4, atol=1e-4)
    print("blocks_of_rows: agrees with NumPy")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:2]))
