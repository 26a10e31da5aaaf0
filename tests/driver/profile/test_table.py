"""The table for the terminal."""

import pytest

from tilewright.driver.profile.table import COLUMNS, kernel_rows, nodes_text, summary_lines, time_text


def test_a_row_a_kernel_and_the_sum(small_profile):
    """Kernels with every column, then all of them together."""
    rows = kernel_rows(small_profile.kernels)
    assert len(rows) == len(small_profile.kernels.kernels()) + 1
    assert all(len(row) == len(COLUMNS) for row in rows)
    assert rows[-1][0] == "all kernels" and rows[-1][2] == "100.0%"
    assert any("Softmax normalise" in row[-1] for row in rows)
    run, limit = summary_lines(small_profile.kernels)
    assert "the median of 3" in run and "GFLOP/s" in limit and "from memory" in limit


@pytest.mark.parametrize(
    ("seconds", "text"), [(3.2e-8, "32 ns"), (4.5e-6, "4.5 µs"), (0.1234, "123 ms"), (2.5, "2.5 s")]
)
def test_times_have_the_unit_that_suits_them(seconds, text):
    """Three digits, and nanoseconds to seconds."""
    assert time_text(seconds) == text


def test_many_nodes_are_counted():
    """The first three are named."""
    assert nodes_text(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert nodes_text(["a"]) == "a"
