"""How many sketches a computation has, and what is in them."""

from typing import Any

import pytest
from tests.auto_scheduler.computations import matmul, matmul_relu

from tilewright import auto_scheduler, te, topi
from tilewright.auto_scheduler.sketch import queries
from tilewright.auto_scheduler.state_nodes import ComputeAtKind, IteratorAnnotation
from tilewright.te.tensor import Tensor


def sketches(tensors: list[Tensor], target: str = "llvm", **options: Any) -> list[auto_scheduler.State]:
    """The sketches on a machine of four cores."""
    given = {} if target == "cuda" else {"num_cores": 4}
    task = auto_scheduler.SearchTask(
        compute_dag=auto_scheduler.ComputeDAG(tensors),
        target=target,
        hardware_params=auto_scheduler.HardwareParams(**given, target=target),
    )
    return auto_scheduler.SketchPolicy(task, verbose=0, **options).generate_sketches()


def row_minimum(rows: int, columns: int) -> list[Tensor]:
    data = te.placeholder((rows, columns), name="A")
    return [data, topi.min(data, axis=-1)]


def softmax(rows: int, columns: int) -> list[Tensor]:
    data = te.placeholder((rows, columns), name="A")
    return [data, topi.nn.softmax(data, axis=1)]


@pytest.mark.parametrize(
    ("tensors", "on_cpu", "on_gpu"),
    [
        (matmul(512, 512, 512), 3, 1),  # tiled; or in a local copy, placed at one of two levels
        (matmul(8, 8, 512), 5, 2),  # and the reduction in two parts, by its outer or inner loop
        (matmul_relu(512, 512, 512), 3, 1),  # the tail is inlined, the product in its tiles or apart
        (row_minimum(10, 1024), 3, 2),
        (softmax(1, 1024), 9, 4),  # two reductions, three ways each
        (row_minimum(64, 2), 1, 1),  # too short to divide
    ],
)
def test_numbers(tensors: list[Tensor], on_cpu: int, on_gpu: int) -> None:
    assert len(sketches(tensors)) == on_cpu
    assert len(sketches(tensors, "cuda")) == on_gpu


def test_a_product_on_a_processor() -> None:
    """First without a copy, then with one inside the outer and inside the inner tiles."""
    plain, outer, inner = sketches(matmul(512, 512, 512))
    assert [one.name for one in plain.stages[2].iters] == [
        *("i.0", "j.0", "i.1", "j.1", "k.0", "i.2", "j.2", "k.1", "i.3", "j.3")
    ]
    assert not plain.concrete
    for state, count in ((outer, 1), (inner, 2)):
        assert queries.has_cache_write(state.state_object, 2)
        assert state.stages[2].compute_at == ComputeAtKind.ITER
        assert state.attach_map.stage_to_attach_iter[2] == (3, 2 * count - 1)


def test_a_product_on_a_gpu() -> None:
    """Both operands in shared memory, the tile in registers."""
    (state,) = sketches(matmul(512, 512, 512), "cuda")
    assert [stage.op.name for stage in state.stages] == ["A", "A.shared", "B", "B.shared", "C.local", "C"]
    assert {1, 3, 4} == set(state.attach_map.stage_to_attach_iter)
    assert queries.has_cache_read(state.state_object, 0) and queries.has_cache_read(state.state_object, 2)


def test_a_reduction_by_a_warp() -> None:
    reduced, plain = sketches(row_minimum(10, 1024), "cuda")
    (thread,) = [one for one in reduced.stages[1].iters if one.annotation == IteratorAnnotation.THREAD_X]
    assert thread.extent == 32
    assert not plain.transform_steps


def test_a_rule_of_ones_own() -> None:
    """It comes first, and what it returns is checked."""
    rule = auto_scheduler.PreloadCustomSketchRule

    def apply(policy: Any, state: Any, stage_id: int) -> list[Any]:
        split = auto_scheduler.State(state, policy.search_task.compute_dag)
        split.split(2, split.stages[2].iters[0], [8, 2])
        return [[state, -1], [split.state_object, -1]]

    made = sketches(
        matmul(512, 512, 512),
        init_search_callbacks=[rule(lambda *_: rule.APPLY_AND_SKIP_REST, apply)],
    )
    assert [len(state.stages[2].iters) for state in made] == [3, 5]
    # A rule that only adds: the others apply as well. One of them puts another stage at number 2.
    more = sketches(
        matmul(512, 512, 512),
        init_search_callbacks=[rule(lambda policy, state, stage: int(stage == 2), apply)],
    )
    assert len(more) == 3 + 2 * 2
    with pytest.raises(
        auto_scheduler.search_policy.ScheduleError, match="MyRule returned 7; it returns PASS"
    ):
        sketches(matmul(), init_search_callbacks=[rule(lambda *_: 7, apply, "MyRule")])
