"""The arguments of sparse products that programs are measured on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import tilewright as tvm
from tilewright import auto_scheduler, te, topi
from tilewright.auto_scheduler.task_inputs import prepare_input_map

ROWS, COLUMNS, COUNT = 32, 24, 8
MATRIX = sp.random(ROWS, COLUMNS, 0.4, "csr", "float32", np.random.default_rng(3)).tobsr((8, 2))
PARTS = {"W_data": MATRIX.data, "W_indices": MATRIX.indices, "W_indptr": MATRIX.indptr}
PREFIX = f"sparse_dense_bsr_{ROWS}_{COLUMNS}_8_2_{len(MATRIX.indices)}_{len(MATRIX.indptr)}_"


@auto_scheduler.register_workload
def sparse_layer(count: int, rows: int, columns: int, blocks: int) -> list[te.Tensor]:
    """A layer with sparse weights, a bias and ReLU."""
    x = te.placeholder((count, columns), name="x")
    data, indices = te.placeholder((blocks, 8, 2)), te.placeholder((blocks,), "int32")
    starts, bias = te.placeholder((rows // 8 + 1,), "int32"), te.placeholder((count, rows))
    product = topi.nn.sparse_dense(x, data, indices, starts)
    return [x, data, indices, starts, bias, topi.nn.relu(topi.add(product, bias))]


def test_the_matrix_is_found_below_other_operators() -> None:
    """Its three arguments by their names; a program without one has none."""
    args = sparse_layer(COUNT, ROWS, COLUMNS, len(MATRIX.indices))
    assert prepare_input_map(args) == {
        args[1]: f"{PREFIX}W_data",
        args[2]: f"{PREFIX}W_indices",
        args[3]: f"{PREFIX}W_indptr",
    }
    x = te.placeholder((4, 4), name="x")
    assert auto_scheduler.try_get_sparse_input([x, topi.nn.relu(x)]) == {}


def is_sparse(policy: Any, state: Any, stage: int) -> int:
    """Condition of a sketch rule: one of the two stages of the product."""
    operation = auto_scheduler.loop_state.State(state, policy.search_task.compute_dag).stages[stage].op
    rule = auto_scheduler.PreloadCustomSketchRule
    return rule.APPLY_AND_SKIP_REST if operation.tag.startswith("sparse_dense_sp_rhs") else rule.PASS


def tile(policy: Any, state: Any, stage: int) -> list[list[object]]:
    """A sketch rule: rows and blocks in two levels, sums within the tiles of the result."""
    made = auto_scheduler.loop_state.State(state, policy.search_task.compute_dag)
    result = made.stages[stage].op
    if result.tag == "sparse_dense_sp_rhs_bsrmm_block":
        return [[made.state_object, stage - 1]]
    blocks = made.stages[stage - 1].op
    m, row, part, element, column = made[blocks].iters
    m_outer, m_inner = made.split(blocks, m, [None])
    result_m, result_n = made[result].iters
    outer, inner = made.follow_split(result, result_m, len(made.transform_steps) - 1, 1)
    made.reorder(blocks, [m_outer, row, element, m_inner, part, column])
    made.reorder(result, [outer, inner, result_n])
    made.compute_at(blocks, result, outer)
    return [[made.state_object, stage - 2]]


def test_a_sparse_layer_is_tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the matrix that the task is given; the best program computes what NumPy does."""
    monkeypatch.chdir(tmp_path)
    task = auto_scheduler.SearchTask(
        func=sparse_layer,
        args=(COUNT, ROWS, COLUMNS, len(MATRIX.indices)),
        target="llvm",
        task_inputs={PREFIX + name: tvm.nd.array(value) for name, value in PARTS.items()},
        task_inputs_save_to_file=True,
    )
    options = auto_scheduler.TuningOptions(
        num_measure_trials=2, measure_callbacks=[auto_scheduler.RecordToFile("log.json")], verbose=0
    )
    rule = auto_scheduler.PreloadCustomSketchRule(is_sparse, tile, "sparse")
    model = auto_scheduler.RandomModel()
    task.tune(options, auto_scheduler.SketchPolicy(task, model, init_search_callbacks=[rule], verbose=0))
    schedule, args = task.apply_best("log.json")
    x = np.random.default_rng(4).standard_normal((COUNT, COLUMNS)).astype("float32")
    bias = np.random.default_rng(5).standard_normal((COUNT, ROWS)).astype("float32")
    out = tvm.nd.empty((COUNT, ROWS))
    function = tvm.build(schedule, args, "llvm")
    function(*map(tvm.nd.array, (x, *PARTS.values(), bias)), out)
    np.testing.assert_allclose(
        out.numpy(), np.maximum(x @ MATRIX.toarray().T + bias, 0), rtol=1e-4, atol=1e-5
    )
