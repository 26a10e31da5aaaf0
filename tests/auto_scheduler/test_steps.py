"""Every step: the state, the schedule, the Python text and the record agree."""

from __future__ import annotations

from typing import Any

import pytest
from tests.auto_scheduler.agreement import check_agreement
from tests.auto_scheduler.computations import matmul, matmul_relu

from tilewright import te
from tilewright.auto_scheduler import ComputeDAG, State
from tilewright.auto_scheduler.steps import STEPS
from tilewright.support.errors import ScheduleError


@pytest.fixture
def product() -> tuple[ComputeDAG, State, Any]:
    """A product, its first state and its result."""
    tensors = matmul()
    dag = ComputeDAG(tensors)
    return dag, dag.get_init_state(), tensors[2]


@pytest.fixture
def chain() -> tuple[ComputeDAG, State, list[Any]]:
    """A product with an elementwise tail: C, D and E."""
    tensors = matmul_relu()
    dag = ComputeDAG(tensors)
    state = dag.get_init_state()
    return dag, state, [operation.output(0) for operation in dag.ops if operation.name in "CDE"]


def extents(state: State, stage: Any) -> list[int | None]:
    return [one.extent for one in state[stage].iters]


def names(state: State, stage: Any) -> list[str]:
    return [one.name for one in state[stage].iters]


def test_there_are_the_fourteen_steps_of_the_format() -> None:
    wanted = {"AN", "FU", "PR", "RE", "SP", "FSP", "FFSP", "SA", "CA", "CI", "CR", "CHR", "CHW", "RF"}
    assert set(STEPS) == wanted


def test_split_from_the_inside_names_the_parts_in_order(product: Any) -> None:
    dag, state, c = product
    parts = state.split(c, state[c].iters[1], [2, 4])
    assert names(state, c) == ["i", "j.0", "j.1", "j.2", "k"]
    assert extents(state, c) == [8, 2, 2, 4, 12]
    assert parts == list(state[c].iters[1:4])
    assert state.transform_steps[0].to_record() == ["SP", 2, 1, 16, [2, 4], 1]
    check_agreement(dag, state)


def test_split_from_the_outside(product: Any) -> None:
    dag, state, c = product
    state.split(c, state[c].iters[1], [2, 4], inner_to_outer=False)
    assert extents(state, c) == [8, 2, 4, 2, 12]
    check_agreement(dag, state)


def test_split_that_leaves_a_rest_and_one_that_is_too_long(product: Any) -> None:
    dag, state, c = product
    state.split(c, state[c].iters[0], [3])
    state.split(c, state[c].iters[2], [100])
    assert extents(state, c) == [3, 3, 1, 16, 12]
    check_agreement(dag, state)


def test_follow_split_takes_the_lengths_of_another_stage(chain: Any) -> None:
    dag, state, (c, _, e) = chain
    state.split(c, state[c].iters[0], [2, 2])
    parts = state.follow_split(e, state[e].iters[0], 0, 1)
    assert [part.extent for part in parts] == [2, 4]
    state.follow_split(e, state[e].iters[2], 0, 2)
    assert state.transform_steps[1].to_record() == ["FSP", 4, 0, 0, 1]
    check_agreement(dag, state)


def test_follow_fused_split_takes_the_product_of_a_level(chain: Any) -> None:
    dag, state, (c, _, e) = chain
    state.split(c, state[c].iters[0], [2, 2])
    state.split(c, state[c].iters[3], [4, 2])
    fused = state.fuse(e, state[e].iters)
    parts = state.follow_fused_split(e, fused, [0, 1], 0, True)
    assert [part.extent for part in parts] == [16, 8]
    parts = state.follow_fused_split(e, parts[0], [0, 1], 1, False)
    assert [part.extent for part in parts] == [4, 4]
    check_agreement(dag, state)


def test_fuse_and_reorder(product: Any) -> None:
    dag, state, c = product
    i, j, k = state[c].iters
    state.reorder(c, [k, i, j])
    fused = state.fuse(c, [i, j])
    assert names(state, c) == ["k", "i@j@"] and fused.extent == 128
    assert [one.name for one in fused.orig_iters] == ["i", "j"]
    check_agreement(dag, state)


def test_fuse_of_nothing_makes_a_loop_of_one_iteration() -> None:
    a = te.placeholder((), name="A")
    b = te.compute((), lambda: a() + 1.0, name="B")
    dag = ComputeDAG([a, b])
    state = dag.get_init_state()
    state.parallel(b, state.fuse(b, []))
    assert extents(state, b) == [1]
    check_agreement(dag, state)


def test_annotations_and_pragmas(product: Any) -> None:
    dag, state, c = product
    i, j, k = state[c].iters
    state.parallel(c, i)
    state.vectorize(c, j)
    state.unroll(c, k)
    state.pragma(c, state[c].iters[0], "auto_unroll_max_step$64")
    assert state[c].attrs.auto_unroll_max_step == 64
    schedule = check_agreement(dag, state)
    assert "auto_unroll: 64" in str(state) and "parallel i (0,8)" in str(state)
    pragmas = schedule[c].attributes(schedule[c].leaf_iter_vars[0]).pragmas
    assert [key for key, _ in pragmas] == ["auto_unroll_max_step", "unroll_explicit"]


def test_unroll_leaves_a_loop_that_is_too_long(product: Any) -> None:
    _, state, c = product
    k = state[c].iters[2]
    assert state.unroll(c, k, max_unroll=4) is k and not state.transform_steps
    assert state.unroll(c, k, max_unroll=16) is not k


def test_threads(product: Any) -> None:
    dag, state, c = product
    parts = state.split(c, state[c].iters[1], [4, 2])
    for part, thread in zip(parts, ["blockIdx.x", "vthread", "threadIdx.x"], strict=True):
        state.bind(c, part, thread)
    check_agreement(dag, state)
    with pytest.raises(ScheduleError, match="'warp' is not a thread"):
        state.bind(c, state[c].iters[0], "warp")


def test_storage_align(chain: Any) -> None:
    dag, state, (c, _, _) = chain
    state.storage_align(c, state[c].iters[0], 32, 8)
    assert state[c].attrs.storage_offset == 8
    check_agreement(dag, state)


def test_storage_scope_is_a_pragma(chain: Any) -> None:
    """Constructed schedules keep accumulators in registers; TVM has no step for that."""
    dag, state, (c, _, e) = chain
    state.compute_at(c, e, state[e].iters[1])
    state.compute_inline(dag.ops[3])
    state.pragma(c, state[c].iters[0], "storage_scope$local")
    assert check_agreement(dag, state)[c].scope == "local"


def test_places(chain: Any) -> None:
    dag, state, (c, d, e) = chain
    state.compute_inline(d)
    state.compute_at(c, e, state[e].iters[0])
    assert extents(state, c) == [None, None, None]
    bounded = dag.infer_bound_from_state(state)
    assert extents(bounded, c) == [1, 16, 12]
    assert "    for i (None)" not in str(bounded)
    check_agreement(dag, state)
    state.compute_root(c)
    assert extents(dag.infer_bound_from_state(state), c) == [8, 16, 12]
    check_agreement(dag, state)


def test_places_follow_the_loop_that_is_split_fused_or_moved(chain: Any) -> None:
    dag, state, (c, d, e) = chain
    state.compute_inline(d)
    parts = state.split(e, state[e].iters[1], [4])
    state.compute_at(c, e, parts[0])
    assert state.attach_map.stage_to_attach_iter == {2: (4, 1)}
    state.split(e, state[e].iters[0], [2])
    assert state.attach_map.stage_to_attach_iter == {2: (4, 2)}
    state.split(e, state[e].iters[2], [2])
    assert state.attach_map.stage_to_attach_iter == {2: (4, 3)}
    i0, i1, j0, j1, j2 = state[e].iters
    state.reorder(e, [i0, j0, i1, j1, j2])
    check_agreement(dag, state)
    state.fuse(e, state[e].iters[2:4])
    assert state.attach_map.stage_to_attach_iter == {2: (4, 2)}
    check_agreement(dag, state)
    with pytest.raises(ScheduleError, match="stage C is computed between"):
        state.fuse(e, state[e].iters[2:4])


def test_new_stages_renumber_places(chain: Any) -> None:
    dag, state, (c, d, e) = chain
    state.compute_at(d, e, state[e].iters[0])
    assert state.attach_map.stage_to_attach_iter == {3: (4, 0)}
    local = state.cache_write(c, "local")
    assert state.attach_map.stage_to_attach_iter == {4: (5, 0)}
    assert [op.name for op in state.stage_ops] == ["A", "B", "C.local", "C", "D", "E"]
    assert [state[stage].op.name for stage in (c, d, e, local)] == ["C", "D", "E", "C.local"]
    check_agreement(dag, state)
    with pytest.raises(
        ScheduleError, match="stage D is computed inside stage E, whose loops this step replaces"
    ):
        state.cache_write(e, "local")


def test_cache_write(product: Any) -> None:
    dag, state, c = product
    local = state.cache_write(c, "local")
    assert [op.name for op in state.stage_ops] == ["A", "B", "C.local", "C"]
    assert names(state, local) == ["i_c", "j_c", "k"] and names(state, c) == ["i", "j"]
    parts = state.split(c, state[c].iters[1], [4])
    state.compute_at(local, c, parts[0])
    check_agreement(dag, state)


def test_cache_read_comes_after_its_source(product: Any) -> None:
    dag, state, c = product
    shared = state.cache_read(dag.tensors[0], "shared", [c])
    assert [op.name for op in state.stage_ops] == ["A", "A.shared", "B", "C"]
    state.compute_at(shared, c, state[c].iters[0])
    check_agreement(dag, state)


def test_rfactor(product: Any) -> None:
    dag, state, c = product
    parts = state.split(c, state[c].iters[2], [4])
    factored = state.rfactor(c, parts[1], 2)
    assert [op.name for op in state.stage_ops] == ["A", "B", "C.rf", "C"]
    assert extents(state, factored) == [8, 16, 4, 3] and extents(state, c) == [8, 16, 4]
    state.compute_at(factored, c, state[c].iters[0])
    check_agreement(dag, state)


def test_a_step_leaves_other_copies_as_they_were(product: Any) -> None:
    _, state, c = product
    state.split(c, state[c].iters[0], [2])
    before, other = str(state), state.copy()
    other.parallel(c, other[c].iters[0])
    other.cache_write(c, "local")
    assert str(state) == before and len(state.transform_steps) == 1
    assert state.stages[0] is other.stages[0]


def test_stages_are_named_by_tensors_operations_and_numbers(product: Any) -> None:
    _, state, c = product
    assert state[c] is state[c.op] is state[2]
    with pytest.raises(ScheduleError, match="is not a stage of this state, whose stages are A, B, C"):
        state[te.placeholder((1,), name="Z")]
    with pytest.raises(ScheduleError, match="there are 3 stages"):
        state[7]


def test_an_iterator_that_was_replaced_is_refused_with_advice(product: Any) -> None:
    _, state, c = product
    i = state[c].iters[0]
    state.split(c, i, [2])
    with pytest.raises(
        ScheduleError, match="'i' is not an iterator of stage C, whose iterators are i.0, i.1, j, k"
    ):
        state.parallel(c, i)


def test_an_open_length_makes_a_sketch(product: Any) -> None:
    dag, state, c = product
    state.split(c, state[c].iters[0], [None, 2])
    assert not state.concrete and extents(state, c) == [None, None, 2, 16, 12]
    state.cache_read(dag.tensors[0], "shared", [c])
    with pytest.raises(ScheduleError, match="lengths of some of its splits are not known"):
        dag.apply_steps_from_state(state)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda s, c: s.fuse(c, [s[c].iters[0], s[c].iters[2]]), "do not follow one another"),
        (lambda s, c: s.fuse(c, s[c].iters[1:3]), "a reduction loop and a data loop"),
        (lambda s, c: s.reorder(c, s[c].iters[:2]), "does not name every iterator"),
        (lambda s, c: s.split(c, s[c].iters[0], [0]), "length 0 .* is not positive"),
        (lambda s, c: s.split(c, s[c].iters[0], []), "no lengths"),
        (lambda s, c: s.split(c, s[c].iters[0], [2.5]), "is not a length"),
        (lambda s, c: s.follow_split(c, s[c].iters[0], 3, 1), "there is no step 3 to follow"),
        (lambda s, c: s.compute_inline(c), "is a reduction"),
        (lambda s, c: s.compute_inline(0), "stage A is an input"),
        (lambda s, c: s.compute_at(c, c, s[c].iters[0]), "itself computed inside"),
        (lambda s, c: s.cache_read(c, "local", [0]), "does not read stage C"),
        (lambda s, c: s.cache_write(0, "local"), "stage A is an input"),
        (lambda s, c: s.rfactor(c, s[c].iters[0], 0), "is not one of a reduction"),
        (lambda s, c: s.pragma(c, s[c].iters[0], "auto_unroll_max_step"), "does not end in a number"),
    ],
)
def test_an_illegal_step_is_refused_and_changes_nothing(product: Any, act: Any, message: str) -> None:
    _, state, c = product
    before = state.state_object
    with pytest.raises(ScheduleError, match=message):
        act(state, c)
    assert state.state_object is before


def test_states_are_equal_if_they_read_the_same(product: Any) -> None:
    """However they were reached, and with lengths inferred again."""
    dag, state, result = product
    state.split(result, state[result].iters[0], [4])
    again = dag.infer_bound_from_state(state)
    assert again is not state and again == state and again != dag.get_init_state()
    assert str(state.state_object) == str(state)
