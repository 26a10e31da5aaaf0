"""Graphs: their order, what is known of their reads, their operations, keys and texts."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from tests.auto_scheduler.agreement import check_agreement
from tests.auto_scheduler.computations import matmul, matmul_relu
from tests.auto_scheduler.numeric import run

from tilewright import te, tir, topi
from tilewright.auto_scheduler import ComputeDAG
from tilewright.auto_scheduler.workload_registry import WORKLOAD_FUNC_REGISTRY
from tilewright.support.errors import ScheduleError
from tilewright.te.tensor import Operation


def named(dag: ComputeDAG, name: str) -> Operation:
    return next(operation for operation in dag.ops if operation.name == name)


def test_operations_come_after_what_they_read_in_the_order_of_records() -> None:
    """A reader follows its last input as soon as it can, as TVM numbers stages."""
    x = te.placeholder((8, 8), name="x")
    first = te.compute((8, 8), lambda i, j: x[i, j] + 1.0, name="first")
    y = te.placeholder((8, 8), name="y")
    second = te.compute((8, 8), lambda i, j: first[i, j] * y[i, j], name="second")
    z = te.placeholder((8, 8), name="z")
    third = te.compute((8, 8), lambda i, j: second[i, j] - z[i, j], name="third")
    dag = ComputeDAG([x, y, z, third])
    assert [operation.name for operation in dag.ops] == ["x", "first", "y", "second", "z", "third"]
    assert [operation.name for operation in dag.outputs] == ["third"]


def test_a_graph_of_a_schedule_has_its_stages() -> None:
    a, b, c = matmul()
    schedule = te.create_schedule(c.op)
    local = schedule.cache_write(c, "local")
    schedule.cache_read(a, "shared", [local])
    dag = ComputeDAG(schedule)
    assert [operation.name for operation in dag.ops] == ["A", "A.shared", "B", "C.local", "C"]
    assert [tensor.name for tensor in dag.tensors] == ["A", "B", "C"]


def test_a_named_tensor_is_an_output_even_if_it_is_read() -> None:
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="b")
    c = te.compute((8,), lambda i: b[i] * 2.0, name="c")
    assert [operation.name for operation in ComputeDAG([a, c]).outputs] == ["c"]
    dag = ComputeDAG([a, b, c])
    assert [operation.name for operation in dag.outputs] == ["b", "c"]
    state = dag.get_init_state()
    state.compute_inline(b)
    with pytest.raises(ScheduleError, match=r"step 0 \(CI 1\): .*an output cannot be inlined"):
        dag.apply_steps_from_state(state)


def test_what_is_not_a_graph_is_refused() -> None:
    with pytest.raises(ScheduleError, match="list of tensors, the key of a workload, or a schedule"):
        ComputeDAG([1, 2])
    with pytest.raises(ScheduleError, match="not the key of a workload"):
        ComputeDAG("no key")
    a = te.placeholder((10, 10), name="A")
    axes = [te.reduce_axis((0, 2), name="r") for _ in range(2)]
    b = te.compute((10,), lambda i: te.sum(a[i, axes[0] + axes[1]], axis=axes), name="B")
    with pytest.raises(ScheduleError, match="operation B has 2 axes named r"):
        ComputeDAG([a, b])


def test_operations_that_states_cannot_describe_are_refused() -> None:
    state = te.placeholder((4, 8), name="S")
    init = te.compute((1, 8), lambda _, i: 0.0, name="init")
    update = te.compute((4, 8), lambda t, i: state[t - 1, i] + 1.0, name="update")
    scan = te.scan(init, update, state, name="scan")
    with pytest.raises(ScheduleError, match="operation scan is a ScanOp"):
        ComputeDAG([scan])


def test_flops() -> None:
    """Operations of the result's type are counted, not arithmetic on indices; an attribute overrides."""
    a, b, c = matmul(32, 32, 32)
    work = 2 * 32**3
    assert ComputeDAG([a, b, c]).flop_ct == work
    assert ComputeDAG([a, b, topi.nn.relu(c)]).flop_ct == work + 32 * 32
    padded = topi.nn.pad(c, [1, 1])
    assert ComputeDAG([a, b, padded]).flop_ct == work
    told = te.compute((32, 32), lambda i, j: padded[i, j], name="told", attrs={"FLOP": 1234})
    assert ComputeDAG([a, b, told]).flop_ct == work + 1234
    chosen = te.compute((32, 32), lambda i, j: te.if_then_else(a[i, j] > 0, a[i, j], 0.0))
    assert ComputeDAG([a, chosen]).flop_ct == 32 * 32
    size = te.var("n")
    x = te.placeholder((size,), name="x")
    assert ComputeDAG([x, te.compute((size,), lambda i: x[i] + 1.0)]).flop_ct == -1


def test_reads() -> None:
    x = te.placeholder((16, 16), name="x")
    w = te.placeholder((16, 16), name="w")
    shifted = te.compute((16, 16), lambda i, j: x[i, j] + 1.0, name="shifted")
    turned = te.compute((16, 16), lambda i, j: shifted[j, i], name="turned")
    grown = te.compute((16, 16), lambda i, j: te.exp(shifted[i, j]), name="grown")
    k = te.reduce_axis((0, 16), name="k")
    product = te.compute((16, 16), lambda i, j: te.sum(turned[i, k] * w[k, j], axis=k), name="product")
    flipped = te.compute((16, 16), lambda i, j: grown[15 - i, j] + product[i, j], name="flipped")
    dag = ComputeDAG([x, w, flipped])
    found = dag.access_analyzer
    facts = {
        operation.name: (
            found.is_injective(operation),
            found.is_strictly_inlineable(operation),
            found.needs_multi_level_tiling(operation),
        )
        for operation in dag.ops
        if operation.input_tensors
    }
    assert facts == {
        "shifted": (True, True, False),
        "turned": (True, False, False),
        "grown": (True, False, False),
        "product": (False, False, True),
        "flipped": (False, False, False),
    }
    assert [one.name for one in found.get_direct_producers(flipped.op)] == ["grown", "product"]
    state = dag.get_init_state()
    state.compute_inline(turned)
    assert [one.name for one in found.get_producers(state.state_object, product.op)] == ["w", "shifted"]
    readers = found.get_consumers(state.state_object, shifted.op)
    assert {one.name for one in readers} == {"product", "grown"}


def test_elementwise_chains_and_common_axes() -> None:
    a, b, e = matmul_relu(8, 16, 12)
    dag = ComputeDAG([a, b, e])
    found, c, d = dag.access_analyzer, named(dag, "C"), named(dag, "D")
    assert found.element_wise_match(c, e.op) and found.element_wise_match(d, e.op)
    assert not found.element_wise_match(named(dag, "A"), e.op)
    assert found.get_num_common_outer_iterator(c, e.op) == 2
    assert found.get_num_common_outer_iterator(a.op, c) == 1
    assert found.get_num_common_outer_iterator(b.op, c) == 0
    assert found.get_num_common_outer_iterator(e.op, c) == 0


def test_the_analysis_follows_added_stages() -> None:
    dag = ComputeDAG(matmul())
    state = dag.get_init_state()
    local = state.cache_write(dag.ops[2], "local")
    grown = state.state_object.current_compute_dag
    assert grown is not None and grown.ops == state.stage_ops
    assert grown.access_analyzer.needs_multi_level_tiling(local)
    assert not grown.access_analyzer.needs_multi_level_tiling(state.stage_ops[3])
    # The same steps find the same graph.
    other = dag.get_init_state()
    other.split(dag.ops[2], other.stages[2].iters[0], [4])
    again = dag.get_init_state()
    again.cache_write(dag.ops[2], "local")
    assert again.state_object.current_compute_dag is grown


def test_a_factored_reduction_depends_on_the_split_before_it() -> None:
    dag = ComputeDAG(matmul())
    graphs = []
    for length in (2, 3, 2):
        state = dag.get_init_state()
        state.rfactor(2, state.split(2, state.stages[2].iters[2], [length])[1], 0)
        graphs.append(state.state_object.current_compute_dag)
        assert [one.extent for one in state.stages[2].iters] == [length, 8, 16, 12 // length]
    assert graphs[0] is graphs[2] and graphs[0] is not graphs[1]


def test_keys_name_the_computation_and_its_sizes() -> None:
    one, same, larger = (ComputeDAG(matmul(*sizes)) for sizes in ((8, 16, 12), (8, 16, 12), (16, 16, 12)))
    assert one.workload_key() == same.workload_key() != larger.workload_key()
    assert one.hash_key() == larger.hash_key() != ComputeDAG(matmul_relu()).hash_key()
    assert json.loads(one.workload_key())[1:] == [[8, 12], [12, 16], [8, 16]]
    assert str(one) == "A = PLACEHOLDER [8, 12]\nB = PLACEHOLDER [12, 16]\nC(i, j) += A[i, k] * B[k, j]\n"


@pytest.mark.parametrize("make", [matmul, matmul_relu])
def test_graphs_travel_as_json(make: object) -> None:
    """The text has no code; the graph that it gives takes the same steps."""
    dag = ComputeDAG(make())  # type: ignore[operator]
    for again in (ComputeDAG.from_json(dag.to_json()), pickle.loads(pickle.dumps(dag))):
        assert again.workload_key() == dag.workload_key() and str(again) == str(dag)
        state = again.get_init_state()
        state.cache_write(again.outputs[0], "local")
        check_agreement(again, state)
        free = named(again, "C").attrs["layout_free_placeholders"]
        assert list(free) == [named(again, "B").output(0)]
    assert dag.workload_key() in WORKLOAD_FUNC_REGISTRY


def test_a_graph_of_two_outputs_and_a_select_travels_too() -> None:
    a = te.placeholder((4, 6), name="a")
    k = te.reduce_axis((0, 6), name="k")
    largest = te.comm_reducer(
        lambda x, y: (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.if_then_else(x[1] >= y[1], x[1], y[1])),
        lambda t0, t1: (tir.const(0, t0), te.min_value(t1)),
        name="argmax",
    )
    index = te.compute((6,), lambda j: j, name="index")
    both = te.compute((4,), lambda i: largest((index[k], a[i, k]), axis=k), name="both")
    dag = ComputeDAG([a, *both])
    again = ComputeDAG.from_json(dag.to_json())
    assert str(again) == str(dag) and again.tensors[1].value_index == 0 and again.tensors[2].value_index == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": "tilewright-operations", "operations": [{"compute": "C"}], "tensors": []}',
        '{"format": "tilewright-operations", "operations": [], "tensors": [[3, 0]]}',
        '{"format": "other", "operations": [], "tensors": []}',
    ],
)
def test_a_text_that_is_no_graph_is_refused(text: str) -> None:
    with pytest.raises(ScheduleError, match="not that of a graph"):
        ComputeDAG.from_json(text)


def test_a_result_computed_in_the_loops_of_its_reader() -> None:
    """Where the reader needs all of it; where it needs a part, the rest would not be computed."""
    a = te.placeholder((8, 8), name="A")
    b = te.compute((8, 8), lambda i, j: a[i, j] * 2.0, name="B")
    c = te.compute((8, 8), lambda i, j: b[i, j] + 1.0, name="C")
    dag = ComputeDAG([a, b, c])
    state = dag.get_init_state()
    state.compute_at(1, 2, state.stages[2].iters[1])
    doubled, more = run(dag, state)
    np.testing.assert_array_equal(more, doubled + 1)
    half = te.compute((4, 8), lambda i, j: b[i, j] + 1.0, name="half")
    dag = ComputeDAG([a, b, half])
    state = dag.get_init_state()
    state.compute_at(1, 2, state.stages[2].iters[1])
    with pytest.raises(ScheduleError, match="an output is computed at the root"):
        dag.apply_steps_from_state(state)
