"""How loops run: what may run at the same time, and what may not."""

from __future__ import annotations

import json

import pytest
from tests.tir.schedule.programs import Program, elementwise, matmul, refused

import tilewright as tvm
from tilewright import tir
from tilewright.script import tir as T
from tilewright.tir import ForKind


@pytest.mark.parametrize(
    ("step", "kind"),
    [("parallel", ForKind.PARALLEL), ("vectorize", ForKind.VECTORIZED), ("unroll", ForKind.UNROLLED)],
)
def test_kinds(step: str, kind: ForKind) -> None:
    """The loop has the kind, and the program computes what it did."""
    program = elementwise()
    schedule = tir.Schedule(program.function, debug_mask="all")
    _, j = schedule.get_loops(schedule.get_block("C"))
    getattr(schedule, step)(j)
    assert schedule.get(j).kind == kind
    program.check(schedule.mod["main"])


@pytest.mark.parametrize("step", ["parallel", "vectorize", "bind"])
def test_reduction_axes_are_refused(step: str) -> None:
    """Iterations that add to one place cannot run at the same time, nor as blocks of threads; unrolled they can be."""
    schedule = tir.Schedule(matmul().function)
    k = schedule.get_loops(schedule.get_block("C"))[2]
    arguments = (k, "blockIdx.x") if step == "bind" else (k,)
    refused(
        schedule,
        lambda: getattr(schedule, step)(*arguments),
        f"{step} on loop k: reduction axis v_k of block C depends on it",
    )
    schedule.unroll(k)
    matmul().check(schedule.mod["main"])


def test_one_place_from_many_iterations() -> None:
    """An axis that is called data-parallel and is not, by where it writes."""

    @T.prim_func
    def program(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (16,))
        B = T.match_buffer(b, (16,))
        for i in T.serial(0, 16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi // 2] = A[vi]
        for i in T.serial(0, 15):
            with T.block("C"):
                vi = T.axis.spatial(15, i)
                A[vi] = A[vi + 1]

    schedule = tir.Schedule(program)
    (i,) = schedule.get_loops(schedule.get_block("B"))
    refused(
        schedule, lambda: schedule.parallel(i), "the indices of B are not a one-to-one affine map of the axes"
    )
    (i,) = schedule.get_loops(schedule.get_block("C"))
    refused(schedule, lambda: schedule.vectorize(i), "A is read at another place than it is written at")


def test_vectors_have_a_constant_length() -> None:
    """A loop of unknown length must be split first."""

    @T.prim_func
    def program(a: T.handle, b: T.handle, n: T.int32) -> None:
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        for i in T.serial(0, n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi]

    schedule = tir.Schedule(program)
    (i,) = schedule.get_loops(schedule.get_block("B"))
    refused(schedule, lambda: schedule.vectorize(i), "its extent, n, is not a constant")
    schedule.vectorize(schedule.split(i, [None, 4])[1])


def test_threads_become_a_kernel() -> None:
    """Bound loops are the block and thread numbers of CUDA source."""
    schedule = tir.Schedule(matmul(64, 64, 8).function)
    block = schedule.get_block("C")
    i, j, _ = schedule.get_loops(block)
    i0, i1 = schedule.split(i, [None, 8])
    j0, j1 = schedule.split(j, [None, 16])
    schedule.reorder(i0, j0, i1, j1)
    for loop, axis in zip(
        (i0, j0, i1, j1), ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"), strict=True
    ):
        schedule.bind(loop, axis)
    assert schedule.get(i0).thread_binding.thread_tag == "blockIdx.y"
    source = tvm.build(schedule.mod["main"], target="cuda").imported_modules[0].get_source()
    for name in ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x", "__global__"):
        assert name in source


def test_thread_axes_have_names() -> None:
    """Only the axes that devices have, each once in a nest."""
    schedule = tir.Schedule(elementwise().function)
    i, j = schedule.get_loops(schedule.get_block("B"))
    refused(
        schedule,
        lambda: schedule.bind(i, "threadIdx"),
        "'threadIdx' is not a thread axis; the axes",
    )
    schedule.bind(i, "threadIdx.x")
    refused(
        schedule,
        lambda: schedule.bind(j, "threadIdx.x"),
        "loop i of the same nest is bound to it already, and",
    )


@T.prim_func
def row_sums(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (6, 4, 5))
    B = T.match_buffer(b, (6, 4))
    for i in range(6):
        with T.block("outer"):
            vi = T.axis.S(6, i)
            with T.init():
                for j in range(4):
                    with T.block("init"):
                        vj = T.axis.S(4, j)
                        B[vi, vj] = 0.0
            for k, j in T.grid(5, 4):
                with T.block("inner"):
                    vj, vk = T.axis.remap("SR", [j, k])
                    B[vi, vj] = B[vi, vj] + A[vi, vj, vk]


def test_blocks_of_blocks() -> None:
    """Iterations that each read and write a row of their own may run at the same time."""
    schedule = tir.Schedule(row_sums, debug_mask="all")
    (i,) = schedule.get_loops(schedule.get_block("outer"))
    schedule.parallel(i)
    Program(row_sums, [(6, 4, 5), (6, 4)], 1, lambda a: a.sum(axis=2)).check(schedule.mod["main"])


def test_annotations() -> None:
    """A value stands at a loop or a block, once for each key, until it is taken back."""
    schedule = tir.Schedule(elementwise(12, 10).function, debug_mask="all")
    loop = schedule.get_loops("B")[0]
    schedule.annotate(loop, "pragma_auto_unroll_max_step", 16)
    schedule.annotate("B", "note", "text")
    size = schedule.sample_categorical([8], [1.0])
    schedule.annotate("D", "size", size)
    assert schedule.get(loop).annotations["pragma_auto_unroll_max_step"] == 16
    assert [schedule.get(schedule.get_block(name)).annotations for name in "BD"] == [
        {"note": "text"},
        {"size": 8},
    ]
    refused(schedule, lambda: schedule.annotate(loop, "pragma_auto_unroll_max_step", 2), "already")
    refused(schedule, lambda: schedule.unannotate("B", "size"), "no annotation 'size'; it has: note")
    again = tir.Schedule(elementwise(12, 10).function)
    schedule.trace.apply_to_schedule(again, remove_postproc=False)
    stored = tir.Schedule(elementwise(12, 10).function)
    tir.schedule.Trace.apply_json_to_schedule(json.loads(json.dumps(schedule.trace.as_json())), stored)
    for replayed in (again, stored):
        tvm.ir.assert_structural_equal(replayed.mod, schedule.mod)
    schedule.unannotate("B", "note")
    assert not schedule.get(schedule.get_block("B")).annotations


def test_blocks_by_their_names() -> None:
    """A name stands for the block in the function that is worked on; the step that looks it up is in the trace."""
    function = elementwise(12, 10).function
    schedule = tir.Schedule(tvm.IRModule({"other": function}))
    refused(schedule, lambda: schedule.get_loops("B"), "there is no function main")
    schedule.work_on("other")
    assert schedule.func_working_on == "other"
    schedule.compute_inline("B")
    first, second = schedule.trace.as_python()
    assert (first, second) == (
        'b0 = sch.get_block(name="B", func_name="other")',
        "sch.compute_inline(block=b0)",
    )
    refused(schedule, lambda: schedule.get_loops("B"), "Cannot find a block with the name: B")
