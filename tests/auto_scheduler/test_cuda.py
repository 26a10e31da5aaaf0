"""Programs for CUDA that the sketches lead to: they keep the limits, compile, and compute the same on threads."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.auto_scheduler.computations import matmul, matmul_relu
from tests.search.gpu_candidates import TARGET, assert_compiles, results

from tilewright import auto_scheduler, te, topi
from tilewright.auto_scheduler.builders import state_loops
from tilewright.auto_scheduler.state_nodes import IteratorAnnotation
from tilewright.support.errors import ScheduleError
from tilewright.te.tensor import Tensor

BLOCK, VIRTUAL, THREAD = (
    IteratorAnnotation.BLOCK_X,
    IteratorAnnotation.VTHREAD,
    IteratorAnnotation.THREAD_X,
)


def row_sums() -> list[Tensor]:
    """Few results of many steps."""
    data = te.placeholder((6, 80), name="data")
    k = te.reduce_axis((0, 80), name="k")
    return [data, te.compute((6,), lambda i: te.sum(data[i, k], axis=k), name="sums")]


def softmax() -> list[Tensor]:
    data = te.placeholder((5, 70), name="data")
    return [data, topi.nn.softmax(data)]


def elementwise() -> list[Tensor]:
    data = te.placeholder((7, 30), name="data")
    return [data, te.compute((7, 30), lambda i, j: data[i, j] * 2.0 + 1.0, name="scaled")]


def convolution() -> list[Tensor]:
    """With padding, which is inlined into the copy to shared memory."""
    data, kernel = te.placeholder((1, 8, 8, 4), name="data"), te.placeholder((3, 3, 4, 16), name="kernel")
    return [data, kernel, topi.nn.relu(topi.nn.conv2d_nhwc(data, kernel, 1, 1, 1))]


def _convolved(data: Any, kernel: Any) -> Any:
    padded = np.pad(data, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    return np.maximum(np.einsum("nhwcyx,yxcf->nhwf", windows, kernel), 0)


def _softmax(data: Any) -> Any:
    shifted = np.exp(data - data.max(1, keepdims=True))
    return shifted / shifted.sum(1, keepdims=True)


@dataclass(frozen=True)
class Case:
    """A computation, what it gives, and what its programs must have."""

    tensors: Callable[[], list[Tensor]]
    expected: Callable[..., Any]
    annotations: frozenset[IteratorAnnotation]
    stages: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()


CASES = {
    "tiles": Case(
        lambda: matmul(32, 32, 8),
        lambda a, b: a @ b,
        frozenset({BLOCK, VIRTUAL, THREAD}),
        frozenset({"A.shared", "B.shared", "C.local"}),
        (".shared", "bar.sync"),
    ),
    "tiles with a tail": Case(
        lambda: matmul_relu(32, 32, 8),
        lambda a, b: (a @ b + 1) * 2,
        frozenset({BLOCK, VIRTUAL, THREAD}),
        frozenset({"A.shared", "B.shared"}),
        (".shared", "bar.sync"),
    ),
    "convolution": Case(
        convolution, _convolved, frozenset({BLOCK, THREAD}), frozenset({"kernel.shared"}), ("bar.sync",)
    ),
    "cross-thread reduction": Case(
        row_sums, lambda data: data.sum(1), frozenset({BLOCK, THREAD}), words=("shfl.sync",)
    ),
    "several reductions": Case(softmax, _softmax, frozenset({BLOCK, THREAD})),
    "simple bind": Case(elementwise, lambda data: data * 2 + 1, frozenset({BLOCK, THREAD})),
}


@pytest.mark.parametrize("name", CASES)
def test_programs(name: str, tmp_path: Path) -> None:
    """Of every sketch: sampled ones. The sketch that the case is about is among them."""
    case = CASES[name]
    task = auto_scheduler.SearchTask(compute_dag=auto_scheduler.ComputeDAG(case.tensors()), target=TARGET)
    policy = auto_scheduler.SketchPolicy(task, params={"sample_init_min_population": 16}, seed=2, verbose=0)
    found, stages, texts = set(), set(), ""
    programs = fitting(task, policy.sample_initial_population())
    for state in programs[:3]:
        texts += assert_compiles(*task.compute_dag.apply_steps_from_state(state), tmp_path)
        *given, result = results(*task.compute_dag.apply_steps_from_state(state))
        np.testing.assert_allclose(result, case.expected(*given), rtol=1e-3, atol=1e-4)
        for stage in state.stages:
            stages.add(stage.op.name)
            found |= {one.annotation for one in stage.iters}
    assert case.annotations <= found and case.stages <= stages
    assert all(word in texts for word in case.words)


def fitting(task: Any, states: list[Any]) -> list[Any]:
    """The programs that fit a block, one of each kind; most do."""
    programs = {str(state): state for state in states}
    found = []
    for state in programs.values():
        with suppress(ScheduleError):
            state_loops(auto_scheduler.MeasureInput(task, state))
            found.append(state)
    assert 2 * len(found) > len(programs)
    return found


def test_too_much_for_a_gpu_is_not_measured(tmp_path: Path) -> None:
    """A program of more threads than a block may have is refused before it is compiled."""
    task = auto_scheduler.SearchTask(compute_dag=auto_scheduler.ComputeDAG(matmul(64, 64, 8)), target=TARGET)
    state = task.compute_dag.get_init_state()
    fused = state.fuse(2, state.stages[2].iters[:2])
    block, thread = state.split(2, fused, [2048])
    state.bind(2, block, "blockIdx.x")
    state.bind(2, thread, "threadIdx.x")
    (built,) = auto_scheduler.LocalBuilder(n_parallel=1).build(
        [auto_scheduler.MeasureInput(task, state)], verbose=0
    )
    assert built.error_no != 0 and "threads" in str(built.error_msg)
