"""What is put into its readers and what is kept."""

from __future__ import annotations

from tilewright import te, topi
from tilewright.schedule.cpu.inlining import inline_stages
from tilewright.te import Schedule, Tensor
from tilewright.te.schedule.stage import AttachType


def inlined(*outputs: Tensor) -> set[str]:
    """Labels of the stages that are put into their readers."""
    schedule: Schedule = te.create_schedule([output.op for output in outputs])
    inline_stages(schedule)
    return {stage.label for stage in schedule.stages if stage.attach_type == AttachType.INLINE}


def test_what_is_read_once_is_inlined_whatever_it_costs() -> None:
    """``exp`` before an elementwise reader, and before a sum that reads each element once."""
    x = te.placeholder((8, 16), name="x")
    raised = te.compute((8, 16), lambda i, j: te.exp(x[i, j]), name="raised")
    k = te.reduce_axis((0, 16), name="k")
    assert inlined(te.compute((8, 16), lambda i, j: raised[i, j] + 1.0, name="out")) == {"raised"}
    assert inlined(te.compute((8,), lambda i: te.sum(raised[i, k], axis=k), name="out")) == {"raised"}


def test_two_expensive_reads_keep_the_stage() -> None:
    """Softmax raises each element once, though a sum and the result read it."""
    x = te.placeholder((8, 16), name="x")
    assert "T_softmax_exp" not in inlined(topi.nn.softmax(x))


def test_padding_before_a_window_is_kept() -> None:
    """A choice inside of the hot loop costs more than a copy."""
    x = te.placeholder((1, 4, 8, 8), name="x")
    pooled = topi.nn.pool2d(x, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), "max")
    assert "pad_temp" not in inlined(pooled)


def test_a_change_of_shape_before_a_product_is_inlined_and_a_transposition_kept() -> None:
    """What keeps the order of elements costs nothing; what does not would scatter the reads."""
    x, w = te.placeholder((4, 2, 16), name="x"), te.placeholder((32, 24), name="w")
    flat = te.compute((4, 32), lambda i, j: x[i, j // 16, j % 16], name="flat")
    assert inlined(topi.nn.matmul(flat, w)) == {"flat"}
    square = te.placeholder((32, 40), name="square")
    transposed = te.compute((40, 32), lambda i, j: square[j, i], name="transposed")
    assert inlined(topi.nn.matmul(transposed, w)) == set()


def test_what_an_extern_reads_stays_in_memory() -> None:
    """A statement reads buffers, not expressions."""
    x = te.placeholder((6,), name="x")
    doubled = te.compute((6,), lambda i: x[i] * 2.0, name="doubled")
    assert "doubled" not in inlined(topi.cumsum(doubled))
