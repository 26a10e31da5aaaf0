"""What operations read, and which axes their outputs' domains are."""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.arith import Analyzer, IntervalSet
from tilewright.te.schedule.reads import TensorDomains, note_reads, output_domain


def read(tensor: te.Tensor, source: te.Tensor, points: dict[Any, tuple[int, int]]) -> list[tuple[int, int]]:
    """The interval of each dimension of ``source`` that an operation reads with its axes in these intervals."""
    domains: TensorDomains = {source: [[] for _ in source.shape]}
    sets = {axis.var: IntervalSet(tir.const(low), tir.const(high)) for axis, (low, high) in points.items()}
    note_reads(tensor.op, Analyzer(), sets, domains)
    analyzer = Analyzer()
    return [
        (
            min(analyzer.simplify(one.min_value).value for one in found),
            max(analyzer.simplify(one.max_value).value for one in found),
        )
        for found in domains[source]
    ]


def test_a_computation() -> None:
    """Indices are evaluated on the sets of the axes, every read of a tensor counts, the shape bounds them."""
    a = te.placeholder((20, 10), name="A")
    b = te.compute((8, 8), lambda i, j: a[i * 2 + 1, j] + a[i, j + 4], name="B")
    i, j = b.op.axis
    assert read(b, a, {i: (1, 3), j: (0, 7)}) == [(1, 7), (0, 9)]


def test_a_reduction() -> None:
    """Reads of the source and of the condition count."""
    a = te.placeholder((20,), name="A")
    k = te.reduce_axis((0, 4), name="k")
    b = te.compute((8,), lambda i: te.sum(a[i + k], axis=k, where=a[i + 10] > 0.0), name="B")
    assert read(b, a, {b.op.axis[0]: (2, 2), k: (0, 3)}) == [(2, 12)]


def test_statements_read_whole_tensors() -> None:
    """An extern may touch anything."""
    a = te.placeholder((20, 10), name="A")
    b = te.extern((3,), [a], lambda ins, outs: tir.Evaluate(0), name="B")
    assert read(b, a, {}) == [(0, 19), (0, 9)]


def test_an_intrinsic_reads_its_boxes() -> None:
    """The region named in the call, for the values that the axes take."""
    row = te.placeholder((4,), name="row")
    copied = te.compute((4,), lambda i: row[i], name="copied")
    intrin = te.decl_tensor_intrin(copied.op, lambda ins, outs: tir.Evaluate(0))
    a = te.placeholder((20, 10), name="A")
    b = te.compute((8, 4), lambda i: intrin(a[i + 2, 3:7]), name="B")
    assert read(b, a, {b.op.axis[0]: (1, 5)}) == [(3, 7), (3, 6)]
    domains = {b: [[IntervalSet(tir.const(2), tir.const(4))], []]}
    covered = output_domain(b.op, domains)
    assert covered[b.op.axis[0]] == domains[b][0]
    assert covered[b.op.axis[1]] is None


def test_domains_of_outputs() -> None:
    """Each data axis covers what is needed of its dimension in any output, reduction axes their whole range."""
    a = te.placeholder((6, 5), name="A")
    k = te.reduce_axis((0, 5), name="k")
    pair = te.comm_reducer(
        lambda x, y: (x[0] + y[0], x[1] + y[1]), lambda s, t: (tir.const(0, s), tir.const(0, t))
    )
    one, two = te.compute((6,), lambda i: pair((a[i, k], a[i, k]), axis=k), name="R")
    first, second = IntervalSet(tir.const(0), tir.const(1)), IntervalSet(tir.const(4), tir.const(5))
    covered = output_domain(one.op, {one: [[first]], two: [[second]]})
    assert covered[one.op.axis[0]] == [first, second]
    assert covered[k] is None
