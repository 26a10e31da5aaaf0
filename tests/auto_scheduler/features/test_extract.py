"""The numbers of each feature, on loops whose counts can be done by hand."""

import math
from typing import Any

import numpy as np
import pytest
from tests.auto_scheduler.computations import matmul

import tilewright as tvm
from tilewright import auto_scheduler, te
from tilewright.auto_scheduler.features import extract_features, feature_names, feature_vector
from tilewright.auto_scheduler.features.index_span import index_of
from tilewright.auto_scheduler.features.of_state import features_of_states, pack_rows, unpack_rows
from tilewright.te.schedule import infer_bound, schedule_ops


def rows_of(schedule: te.Schedule) -> list[dict[str, float]]:
    """The named numbers of each store of a schedule."""
    normalized = schedule.normalize()
    found = extract_features(schedule_ops(normalized, infer_bound(normalized)))
    return [dict(zip(feature_names(), feature_vector(one), strict=True)) for one in found]


def log(value: float) -> float:
    return pytest.approx(math.log2(value + 1), abs=1e-5)


def of_buffer(row: dict[str, float], kind: str, stride: int | None = None) -> dict[str, float]:
    """The part of a row for the tensor that is accessed in one way."""
    for number in range(5):
        part = {name.removeprefix(f"B{number}."): row[name] for name in row if name.startswith(f"B{number}.")}
        if part[f"acc_type.{kind}"] == 1 and (stride is None or part["stride"] == math.log2(stride + 1)):
            return part
    raise AssertionError(f"no tensor is accessed as {kind}")


def test_a_tiled_product() -> None:
    """Loops io(4) jo(8) k(16) ji(4, vectorized) ii(8) over C[32, 32], with the two outermost in parallel."""
    a, b, c = matmul(32, 32, 16)
    schedule = te.create_schedule(c.op)
    (i, j), (k,) = c.op.axis, c.op.reduce_axis
    io, ii = schedule[c].split(i, 8)
    jo, ji = schedule[c].split(j, 4)
    schedule[c].reorder(io, jo, k, ji, ii)
    schedule[c].vectorize(ji)
    schedule[c].parallel(io)
    schedule[c].parallel(jo)
    (row,) = rows_of(schedule)
    times = 32 * 32 * 16
    assert (row["float_mul"], row["float_addsub"], row["float_mad"]) == (log(times), log(times), 0.0)
    assert (row["parallel_num"], row["parallel_prod"], row["vec_len"]) == (log(2), log(32), log(4))
    assert row["vec_type.kPosMixed"] == 1 and row["unroll_type.kPosNone"] == 1
    written = of_buffer(row, "kReadWrite")
    assert written["bytes"] == log(times * 4) and written["unique_bytes"] == log(32 * 32 * 4)
    # Between two uses of an element of C lie the loops inside k, and what they touch of all three tensors.
    assert written["reuse_dis_iter"] == log(8 * 4)
    assert written["reuse_dis_bytes"] == log((8 * 4 + 8 + 4) * 4)
    assert written["reuse_ct"] == log(16)
    assert of_buffer(row, "kRead", 0)["unique_bytes"] == log(16 * 32 * 4)  # B does not depend on ii
    assert (row["outer_prod"], row["num_loops"]) == (log(times), log(5))
    assert row["alloc_size"] == log(32 * 32 * 4)


def test_a_stage_in_the_loops_of_its_reader_is_used_at_once() -> None:
    """B[i, j] is written and read in the same iteration: the distance is one element of each tensor."""
    a = te.placeholder((8, 4), name="A")
    b = te.compute((8, 4), lambda i, j: a[i, j] * 2.0, name="B")
    c = te.compute((8, 4), lambda i, j: b[i, j] + 1.0, name="C")
    schedule = te.create_schedule(c.op)
    schedule[b].compute_at(schedule[c], c.op.axis[1])
    reader = rows_of(schedule)[1]
    part = next(
        {name[3:]: reader[name] for name in reader if name.startswith(f"B{number}.")}
        for number in range(5)
        if reader[f"B{number}.reuse_type.kSerialMultipleReadWrite"] == 1
    )
    assert part["reuse_dis_iter"] == log(1)
    assert part["reuse_dis_bytes"] == log(4 * 4)


def test_fused_loops() -> None:
    """Quotient and remainder of a fused loop touch what the loops did."""
    f = tvm.tir.Var("f", "int32")
    quotient, remainder = index_of(f // 8 * 16, {}), index_of(f % 8 + 3, {})
    assert quotient.interval({f: (0, 31)}) == (0, 48) and quotient.stride(f) == 16
    assert remainder.interval({f: (0, 31)}) == (3, 10)
    assert remainder.interval({}) == (3, 3)


def test_threads_and_pragmas() -> None:
    """Threads are loops too; the pragma counts where it stands."""
    a = te.placeholder((64,), name="A")
    b = te.compute((64,), lambda i: te.exp(a[i]), name="B")
    schedule = te.create_schedule(b.op)
    outer, inner = schedule[b].split(b.op.axis[0], 16)
    schedule[b].bind(outer, te.thread_axis("blockIdx.x"))
    schedule[b].bind(inner, te.thread_axis("threadIdx.x"))
    schedule[b].pragma(outer, "auto_unroll_max_step", 64)
    (row,) = rows_of(schedule)
    assert (row["is_gpu"], row["blockIdx_x_len"], row["threadIdx_x_len"]) == (1.0, log(4), log(16))
    assert row["float_math_func"] == log(64)


def test_names_and_order() -> None:
    """164 numbers, in TVM's order; with fewer tensors, fewer."""
    names = auto_scheduler.feature.get_per_store_feature_names()
    assert len(names) == 164 and names[0] == "float_mad" and names[-1] == "auto_unroll_max_step"
    assert names[57] == "B0.acc_type.kRead" and names[147] == "arith_intensity_curve_0"
    assert len(auto_scheduler.feature.get_per_store_feature_names(2)) == 164 - 3 * 18


def test_states_in_forks_have_the_same_features() -> None:
    """Many states are divided among processes; a state that makes no program has no rows."""
    task = auto_scheduler.SearchTask(compute_dag=auto_scheduler.ComputeDAG(matmul()), target="llvm")
    states: list[Any] = []
    for size in (2, 4, 8, 16):
        state = task.compute_dag.get_init_state()
        state.split(2, state.stages[2].iters[0], [size])
        states.append(state)
    few = features_of_states(task, states)
    many = features_of_states(task, states * 10)
    assert len(many) == 40
    assert all(np.array_equal(few[number % 4], found) for number, found in enumerate(many))
    packed = unpack_rows(pack_rows([few[0], few[0][:0], few[1]]), few[0].shape[1])
    assert [len(one) for one in packed] == [len(few[0]), 0, len(few[1])]
    np.testing.assert_array_equal(packed[2], few[1])


@pytest.mark.parametrize(("threads", "lanes", "fits"), [(64, 4, True), (2048, 4, False), (64, 8, False)])
def test_what_does_not_fit_a_block_has_no_features(threads: int, lanes: int, fits: bool) -> None:
    """More threads than a block has, or wider vectors than a thread loads."""
    a = te.placeholder((threads * lanes,), name="A")
    b = te.compute((threads * lanes,), lambda i: a[i] + 1.0, name="B")
    task = auto_scheduler.SearchTask(compute_dag=auto_scheduler.ComputeDAG([a, b]), target="cuda")
    state = task.compute_dag.get_init_state()
    outer, inner = state.split(1, state.stages[1].iters[0], [lanes])
    state.bind(1, outer, "threadIdx.x")
    state.vectorize(1, inner)
    (found,) = features_of_states(task, [state])
    assert len(found) == fits
