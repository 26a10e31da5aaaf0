"""Axes of a scan along which a step depends only on the same index of the steps before."""

import pytest

from tilewright import te, tir

STEPS, ROWS, COLUMNS = 6, 4, 4


def fixed(update_of):
    """Which of the two spatial axes of a scan are fix points."""
    state = te.placeholder((STEPS, ROWS, COLUMNS))
    start = te.compute((1, ROWS, COLUMNS), lambda _, i, j: tir.const(0.0, "float32"))
    update = te.compute((STEPS, ROWS, COLUMNS), update_of(state))
    scan = te.scan(start, update, state).op
    found = te.schedule.ScanFixPointAnalysis(scan)
    return [found[axis].value for axis in scan.spatial_axis]


def row_and_column(state):
    """Through another operation with its axes in the other order; one column is read by all."""
    turned = te.compute((STEPS, COLUMNS, ROWS), lambda t, j, i: state[t - 1, i, j])
    return lambda t, i, j: turned[t, j, i] + state[t - 1, i, 2]


def diagonal(state):
    """The index of one axis is used for both."""
    return lambda t, i, j: state[t - 1, j, j] + state[t - 1, i, j]


@pytest.mark.parametrize(
    ("update_of", "expected"),
    [
        (lambda state: lambda t, i, j: state[t - 1, i, j] + 1.0, [1, 1]),
        (lambda state: lambda t, i, j: state[t - 1, j, i] + 1.0, [0, 0]),
        (lambda state: lambda t, i, j: state[t - 1, i, (j + 1) % COLUMNS], [1, 0]),
        (row_and_column, [1, 0]),
        (diagonal, [0, 0]),
    ],
)
def test_fix_points(update_of, expected):
    """1 for an axis whose index is passed on unchanged, 0 for one that is exchanged, moved or shared."""
    assert fixed(update_of) == expected
