"""Memory that a script reads or returns without having written it holds zeros, and only then."""

# ruff: noqa: B007, F821

from __future__ import annotations

from typing import Any

import pytest
from tests.te.hybrid.checks import check_everywhere

import tilewright as tvm
from tilewright import te
from tilewright.te.hybrid import script
from tilewright.te.hybrid.definition import reads_unwritten, with_defined_memory, writes_all


@script
def everywhere(a):
    b = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] = a[i, j]
    return b


@script
def both_branches(a):
    b = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > 0.0:
                b[i, j] = a[i, j]
            else:
                b[i, j] = 0.5
    return b


@script
def offset_range(a):
    b = output_tensor(a.shape, a.dtype)
    for i in range(2, a.shape[0] + 2):
        for j in range(a.shape[1]):
            b[i - 2, j] = a[i - 2, j]
    return b


@script
def rows_first(a):
    b = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] = 0.0
        for k in range(a.shape[1]):
            b[i, k] += a[i, k] * 2.0
    return b


@script
def one_branch(a):
    b = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > 0.0:
                b[i, j] = a[i, j]
    return b


@script
def only_added(a):
    b = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] += a[i, j]
    return b


@script
def diagonal(a):
    b = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        b[i, i] = a[i, i]
    return b


@script
def row_left(a):
    b = output_tensor(a.shape, a.dtype)
    for i in range(1, a.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] = a[i, j]
    return b


@script
def reads_ahead(a):
    b = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] = 1.0 + b[a.shape[0] - 1 - i, j]
    return b


@pytest.mark.parametrize("function", [everywhere, both_branches, offset_range, rows_first])
def test_written_everywhere(function: Any) -> None:
    """Nothing is added to a script that certainly writes each element first."""
    operation = function(te.placeholder((5, 5), name="a")).op
    assert writes_all(operation.output_placeholders[0], operation.body)
    assert with_defined_memory(operation.body, operation.output_placeholders) is operation.body
    check_everywhere(function, [te.placeholder((5, 5), name="a")])


@pytest.mark.parametrize("function", [one_branch, only_added, diagonal, row_left, reads_ahead])
def test_not_written_everywhere(function: Any) -> None:
    """The other elements are zero, compiled as emulated."""
    operation = function(te.placeholder((5, 5), name="a")).op
    assert not writes_all(operation.output_placeholders[0], operation.body)
    check_everywhere(function, [te.placeholder((5, 5), name="a")])


def test_symbolic_sizes() -> None:
    """A loop over a size covers the dimension of that size; a loop that may not run covers nothing else."""
    n, m = te.var("n"), te.var("m")

    @script
    def copies(m, a):
        b = output_tensor(a.shape, a.dtype)
        for k in range(m):
            for i in range(a.shape[0]):
                b[i] = a[i]
        return b

    operation = copies(m, te.placeholder((n,), name="a")).op
    assert not writes_all(operation.output_placeholders[0], operation.body)
    check_everywhere(copies, [m, te.placeholder((n,), name="a")], {n: 4, m: 0})


def test_index_from_memory() -> None:
    """An index that is read from memory may have changed when it is read again."""

    @script
    def moved(a):
        b = output_tensor((1,), a.dtype)
        place = allocate((1,), "int32")
        row = allocate((4,), a.dtype)
        place[0] = 1
        row[place[0]] = a[0]
        place[0] = 2
        b[0] = row[place[0]]
        return b

    operation = moved(te.placeholder((4,), name="a")).op
    row = operation.body.body.producer
    assert row.op.name == "row" and reads_unwritten(row, operation.body.body.body)


def test_local_memory() -> None:
    """Allocated memory is filled if some of it is read unwritten, at its place."""

    @script
    def sums(a):
        b = output_tensor((4,), a.dtype)
        for i in range(4):
            partial = allocate((2,), a.dtype)
            for j in range(8):
                partial[j % 2] += a[j] * i
            b[i] = partial[0] - partial[1]
        return b

    a = te.placeholder((8,), name="a")
    operation = sums(a).op
    realize = operation.body.body
    assert reads_unwritten(realize.producer, realize.body)
    made = with_defined_memory(operation.body, operation.output_placeholders)
    assert isinstance(made.body.body[0], tvm.tir.For) and made.body.body[0].loop_var.name == "partial.zero0"
    check_everywhere(sums, [a])
