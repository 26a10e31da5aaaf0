"""What reads look like from an axis: strides, contiguity, blocks of layouts."""

from __future__ import annotations

import pytest

from tilewright import te
from tilewright.schedule.cpu.access import Read, assumed, reads_of, steady_length


def read_of(shape: tuple[int, ...], axes: tuple[int, ...], index: object) -> tuple[Read, te.Tensor]:
    x = te.placeholder(shape, name="x")
    out = te.compute(axes, lambda *i: x(*index(*i)), name="out")  # type: ignore[operator]
    (found,) = reads_of(out.op)
    return found, out


def test_strides_of_a_transposition() -> None:
    """The innermost axis of the result moves by a row of the input."""
    read, out = read_of((6, 10), (10, 6), lambda i, j: (j, i))
    i, j = out.op.axis
    assert (read.stride(i), read.stride(j)) == (1, 10)
    assert read.is_contiguous(i, 10) and not read.is_contiguous(j, 6)


def test_blocks_of_a_layout_are_contiguous_within() -> None:
    """``n // 8, k, n % 8`` reads neighbours over eight, not over sixteen."""
    read, out = read_of((4, 5, 8), (5, 32), lambda k, n: (n // 8, k, n % 8))
    n = out.op.axis[1]
    assert read.steps(n, 8) == 1 and read.steps(n, 16) is None and read.stride(out.op.axis[0]) == 8


def test_strided_and_fixed_reads() -> None:
    """A stride of two is not contiguous; an axis that is not in the index does not move."""
    read, out = read_of((40, 3), (20, 7), lambda i, j: (i * 2, 1))
    i, j = out.op.axis
    assert read.stride(i) == 6 and read.steps(j, 7) == 0 and not read.moves_with(j)


def test_an_index_that_depends_on_data_is_unknown() -> None:
    """A gather has no stride."""
    x, where = te.placeholder((40,), name="x"), te.placeholder((9,), "int32", name="where")
    out = te.compute((9,), lambda i: x[where[i]], name="out")
    gathered = next(read for read in reads_of(out.op) if read.tensor is x)
    assert gathered.stride(out.op.axis[0]) is None and not gathered.is_contiguous(out.op.axis[0], 4)


@pytest.mark.parametrize(
    ("size", "expected"), [(7, 7), (te.size_var("n"), 32), (te.size_var("n") * 2 + 1, 65)]
)
def test_sizes_that_are_not_constant_are_assumed(size: object, expected: int) -> None:
    """Every unknown is taken for the same number, and expressions follow."""
    assert assumed(te.placeholder((size,), name="x").shape[0]) == expected


def window_read(stride: int, taps: int) -> tuple[Read, te.Tensor]:
    x = te.placeholder((8, 40), name="x")
    tap, one = te.reduce_axis((0, taps), name="tap"), te.reduce_axis((0, 1), name="one")
    out = te.compute(
        (8, 9), lambda c, h: te.sum(x[c // 1 + one, h * stride + tap], axis=[tap, one]), name="out"
    )
    (found,) = reads_of(out.op)
    return found, out


@pytest.mark.parametrize(
    ("stride", "taps", "expected"), [(1, 3, 2), (2, 3, 1), (2, 2, 0), (1, 1, 0), (1, 7, 6)]
)
def test_the_overlap_of_windows(stride: int, taps: int, expected: int) -> None:
    """A window of three rows shares two with its neighbours, with a stride of two one."""
    read, out = window_read(stride, taps)
    assert read.overlap(out.op.axis[1], out.op.reduce_axis) == expected
    assert read.overlap(out.op.axis[0], out.op.reduce_axis) == 0


def test_the_place_of_an_axis_in_the_indices() -> None:
    """Also where a division by one and an axis of one step stand beside it; not where a window moves."""
    read, out = window_read(1, 3)
    assert read.place_of(out.op.axis[0]) == 0 and read.place_of(out.op.axis[1]) is None


def test_conditions_are_steady_within_a_piece() -> None:
    """Of a block of 32 channels, 16 come from one operand and 16 from another; every third element is an own piece."""
    out = te.compute((4, 32), lambda i, j: i + j, name="out")
    i, j = out.op.axis
    assert steady_length([i.var * 2 + j.var // 16 < 1], out.op.axis, j) == 16
    assert steady_length([i.var < 2], out.op.axis, j) == 32
    assert steady_length([j.var % 3 < 1], out.op.axis, j) == 1
