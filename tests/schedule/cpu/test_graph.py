"""Roots, cones and common rows."""

from __future__ import annotations

from tilewright import te
from tilewright.schedule.cpu.graph import cones, materialized_stages, reads_in_place, row_axes


def softmax_stages() -> te.Tensor:
    x = te.placeholder((6, 5, 9), name="x")
    k, m = te.reduce_axis((0, 9), name="k"), te.reduce_axis((0, 9), name="m")
    largest = te.compute((6, 5), lambda i, j: te.max(x[i, j, k], axis=k), name="largest")
    raised = te.compute(x.shape, lambda i, j, n: te.exp(x[i, j, n] - largest[i, j]), name="raised")
    total = te.compute((6, 5), lambda i, j: te.sum(raised[i, j, m], axis=m), name="total")
    return te.compute(x.shape, lambda i, j, n: raised[i, j, n] / total[i, j], name="out")


def test_everything_that_leads_to_one_output_is_its_cone() -> None:
    """The stages of a softmax have their first two axes in common."""
    out = softmax_stages()
    stages = materialized_stages(te.create_schedule(out.op))
    ((root, cone),) = cones(stages, set()).items()
    assert root.stage.label == "out" and [materialized.stage.label for materialized in cone] == [
        "largest",
        "raised",
        "total",
    ]
    assert [axis.var.name for axis in row_axes(root, cone)] == ["i", "j"]


def test_what_two_outputs_read_is_a_root() -> None:
    """It has no single place to be computed at."""
    x = te.placeholder((4, 8), name="x")
    k = te.reduce_axis((0, 8), name="k")
    total = te.compute((4,), lambda i: te.sum(x[i, k], axis=k), name="total")
    one = te.compute((4,), lambda i: total[i] + 1.0, name="one")
    two = te.compute((4,), lambda i: total[i] * 2.0, name="two")
    found = cones(materialized_stages(te.create_schedule([one.op, two.op])), set())
    assert {root.stage.label for root in found} == {"total", "one", "two"}


def test_reads_in_place() -> None:
    """A transposed read is not in place."""
    x = te.placeholder((4, 4), name="x")
    first = te.compute((4, 4), lambda i, j: x[i, j] + 1.0, name="first")
    straight = te.compute((4, 4), lambda i, j: first[i, j] * 2.0, name="straight")
    transposed = te.compute((4, 4), lambda i, j: first[j, i] * 2.0, name="transposed")
    stages = {
        materialized.stage.label: materialized
        for materialized in materialized_stages(te.create_schedule([straight.op, transposed.op]))
    }
    assert reads_in_place(stages["straight"], stages["first"])
    assert not reads_in_place(stages["transposed"], stages["first"])
