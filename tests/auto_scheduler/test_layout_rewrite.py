"""Inputs in the layout in which loops read them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.auto_scheduler.computations import matmul, matmul_relu

import tilewright as tvm
from tilewright import te
from tilewright.auto_scheduler import ComputeDAG, LayoutRewriteOption, State, get_shape_from_rewritten_layout
from tilewright.support.errors import ScheduleError

PRE, INSERT = LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED, LayoutRewriteOption.INSERT_TRANSFORM_STAGE


def tiled(dag: ComputeDAG, number: int = 2) -> State:
    """Both data loops and the reduction tiled once, the outer ones fused."""
    state = dag.get_init_state()
    i = state.split(number, state.stages[number].iters[0], [4])
    j = state.split(number, state.stages[number].iters[2], [8])
    k = state.split(number, state.stages[number].iters[4], [3])
    state.reorder(number, [i[0], j[0], k[0], i[1], k[1], j[1]])
    return state


def run(schedule: Any, tensors: Any, weight: Any, columns: int = 16) -> np.ndarray:
    generator = np.random.default_rng(1)
    left = generator.uniform(-1, 1, (8, 12)).astype("float32")
    out = np.zeros((8, columns), "float32")
    tvm.build(schedule, tensors, "llvm")(left, np.ascontiguousarray(weight), out)
    return out


WEIGHT = np.random.default_rng(2).uniform(-1, 1, (12, 16)).astype("float32")


def check(dag: ComputeDAG, state: State, shape: list[int]) -> None:
    """The three options compute the same, and the rewritten weight has this shape."""
    expected = run(*dag.apply_steps_from_state(state), WEIGHT)
    inserted, tensors = dag.apply_steps_from_state(state, INSERT)
    assert [int(extent) for extent in tensors[1].shape] == [12, 16]
    np.testing.assert_allclose(run(inserted, tensors, WEIGHT), expected, rtol=1e-5)
    schedule, tensors = dag.apply_steps_from_state(state, PRE)
    assert [int(extent) for extent in tensors[1].shape] == shape
    assert len(tensors) == 3
    (change,) = dag.layout_changes_from_state(state)
    moved = np.empty(change.shape, "float32")
    for place in np.ndindex(*change.shape):
        old = [0, 0]
        for part, index in zip(change.parts, place, strict=True):
            old[part.dimension] += part.stride * index
        moved[place] = WEIGHT[tuple(old)]
    np.testing.assert_allclose(run(schedule, tensors, moved), expected, rtol=1e-5)
    assert get_shape_from_rewritten_layout(change.new_layout, ["k", "j"]) == [12, 16]
    assert change.original_layout == "12k16j"
    rewritten = dag.rewrite_layout_from_state(state)
    assert [int(extent) for extent in rewritten.tensors[1].shape] == shape


def test_the_weight_has_a_dimension_for_each_loop_over_it() -> None:
    dag = ComputeDAG(matmul())
    state = tiled(dag)
    assert dag.layout_changes_from_state(state)[0].new_layout == "2j4k3k8j"
    check(dag, state, [2, 4, 3, 8])


def test_fused_loops_count_as_their_parts() -> None:
    dag = ComputeDAG(matmul())
    state = tiled(dag)
    state.parallel(2, state.fuse(2, state.stages[2].iters[:2]))
    check(dag, state, [2, 4, 3, 8])


def test_loops_around_a_cache_count() -> None:
    """The accumulator is computed in a tile of the result: the tile's loops go over the weight as well."""
    dag = ComputeDAG(matmul())
    state = dag.get_init_state()
    state.cache_write(2, "local")
    i = state.split(3, state.stages[3].iters[0], [4])
    j = state.split(3, state.stages[3].iters[2], [8])
    state.reorder(3, [i[0], j[0], i[1], j[1]])
    state.compute_at(2, 3, j[0])
    inner = state.split(2, state.stages[2].iters[1], [2])
    rows, columns, depth = state.stages[2].iters[0], inner, state.stages[2].iters[3]
    state.reorder(2, [columns[0], depth, rows, columns[1]])
    check(dag, state, [2, 4, 12, 2])


def test_loops_of_a_fused_consumer_count_through_inlined_stages() -> None:
    dag = ComputeDAG(matmul_relu())
    state = dag.get_init_state()
    state.compute_inline(3)
    j = state.split(4, state.stages[4].iters[1], [4])
    state.reorder(4, [j[0], state.stages[4].iters[0], j[1]])
    state.compute_at(2, 4, state.stages[4].iters[0])
    i, j, k = state.stages[2].iters
    state.reorder(2, [k, i, j])
    check(dag, state, [4, 12, 4])


def test_a_split_that_leaves_a_rest_keeps_the_layout() -> None:
    dag = ComputeDAG(matmul())
    state = dag.get_init_state()
    state.split(2, state.stages[2].iters[1], [5])
    assert dag.layout_changes_from_state(state) == []
    _, tensors = dag.apply_steps_from_state(state, PRE)
    assert [int(extent) for extent in tensors[1].shape] == [12, 16]


def test_a_weight_that_is_copied_or_read_twice_keeps_its_layout() -> None:
    dag = ComputeDAG(matmul())
    state = tiled(dag)
    state.cache_read(1, "local", [2])
    assert dag.layout_changes_from_state(state) == []
    a, b, c = matmul()
    again = te.compute((8, 12), lambda i, j: c[i, j] + b[j, i], name="D")
    dag = ComputeDAG([a, b, again])
    assert dag.layout_changes_from_state(tiled(dag)) == []


def test_a_weight_that_is_computed_keeps_its_layout() -> None:
    a = te.placeholder((8, 12), name="A")
    b = te.placeholder((16, 12), name="B")
    turned = te.compute((12, 16), lambda i, j: b[j, i], name="turned")
    k = te.reduce_axis((0, 12), name="k")
    c = te.compute(
        (8, 16),
        lambda i, j: te.sum(a[i, k] * turned[k, j], axis=k),
        name="C",
        attrs={"layout_free_placeholders": [turned]},
    )
    dag = ComputeDAG([a, b, c])
    assert dag.layout_changes_from_state(tiled(dag, dag.ops.index(c.op))) == []


def test_defaults_of_targets_and_layout_texts() -> None:
    default = LayoutRewriteOption.get_target_default
    assert default("llvm") == INSERT and default("llvm", in_relay_integration=True) == PRE
    assert default("cuda") == LayoutRewriteOption.NO_REWRITE
    assert get_shape_from_rewritten_layout("2a3b4a", ["a", "b"]) == [8, 3]
    with pytest.raises(ScheduleError, match="has no axis z"):
        get_shape_from_rewritten_layout("2a3b4a", ["z"])
    with pytest.raises(ScheduleError, match="is not a layout"):
        get_shape_from_rewritten_layout("abc", ["a"])
