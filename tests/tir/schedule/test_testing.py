"""Traces taken again from their text and from their JSON."""

from __future__ import annotations

import pytest

import tilewright as tvm
from tilewright import te, tir
from tilewright.tir.schedule.testing import verify_trace_roundtrip


def test_traces_are_taken_again() -> None:
    """The new schedule has the same loops; steps print as Python, on their own without names."""
    a = te.placeholder((16, 16), name="A")
    program = te.create_prim_func([a, te.compute((16, 16), lambda i, j: a[i, j] * 2.0, name="B")])
    schedule = tir.Schedule(program)
    row, _ = schedule.get_loops(schedule.get_block("B"))
    schedule.parallel(schedule.split(row, [4, 4])[0])
    again = verify_trace_roundtrip(schedule, program)
    tvm.ir.assert_structural_equal(again.mod, schedule.mod)
    assert str(schedule.trace.insts[1]) == "_, _ = sch.get_loops(block=_)"
    assert schedule.trace.insts[1].same_as(schedule.trace.insts[1])
    with pytest.raises(ValueError, match="should name some of json, python"):
        verify_trace_roundtrip(schedule, program, text_format="xml")


def test_containers() -> None:
    """Under TVM's path; pairs of a map are a list, fields of a data value have slices, types have no span."""
    assert tvm.container.Map({"a": 1}).items()[0] == ("a", 1)
    value = tvm.container.ADT(0, [tvm.nd.array([1.0]), tvm.nd.array([2.0])])
    assert [float(one.numpy()[0]) for one in value[0:2]] == [1.0, 2.0]
    assert tvm.relay.TensorType((1,)).span is None
    assert tvm.relay.qnn.op.qnn.dense is tvm.relay.qnn.op.dense
