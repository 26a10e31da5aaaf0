"""The names that a test run calls."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import tilewright as tvm
from api_trace import Trace
from tilewright import te, tir, topi
from tilewright._ffi.runtime_ctypes import ArgTypeCode, TVMByteArray


@pytest.fixture
def trace(request: pytest.FixtureRequest) -> Trace:
    """A trace that has not started."""
    if request.config.getoption("--api-trace"):
        pytest.skip("this run is traced itself, and a process has one trace")
    return Trace()


def test_trace(trace: Trace, tmp_path: Path) -> None:
    """What is called between start and stop is added to the file; functions of one factory are told apart."""
    file = tmp_path / "trace.txt"
    file.write_text("tvm.before\n")
    trace.start()
    try:
        a = te.placeholder((4,))
        topi.exp(a)
    finally:
        trace.stop(file)
    names = file.read_text().split()
    assert {"tvm.before", "tvm.te.operation.placeholder", "tvm.te.tensor.Tensor", "tvm.topi.math.exp"} <= set(
        names
    )
    assert "tvm.topi.math.log" not in names and "tvm.te.schedule.create_schedule" not in names


def test_traced_functions_are_themselves(trace: Trace, tmp_path: Path) -> None:
    """Before their first call traced functions have their parameters and their source; afterwards their code."""
    code, signature, source = (
        te.placeholder.__code__,
        inspect.signature(te.placeholder),
        inspect.getsource(topi.exp),
    )
    trace.start()
    try:
        assert te.placeholder.__code__ is not code
        assert inspect.signature(te.placeholder) == signature
        assert inspect.getsource(topi.exp) == source
        assert te.placeholder((4,), name="a").name == "a"
        assert te.placeholder.__code__ is code
        with pytest.raises(TypeError, match="placeholder"):
            te.placeholder()  # type: ignore[call-arg]
    finally:
        trace.stop(tmp_path / "trace.txt")
    assert "__signature__" not in vars(te.placeholder)
    assert inspect.signature(te.placeholder) == signature


def test_classes_without_code_of_their_own(trace: Trace, tmp_path: Path) -> None:
    """Are noted when an object of them, or of a class below them, is made, or a constant of theirs is read; they are as
    before then, and those that were not used after the trace."""
    file = tmp_path / "trace.txt"
    classes = [tir.Add, tir.Sub, tvm.error.OpError, tvm.error.RPCError, ArgTypeCode, TVMByteArray]
    before = [dict(vars(one)) for one in classes]
    signature = inspect.signature(tir.Sub)
    trace.start()
    try:
        assert inspect.signature(tir.Sub) == signature
        added = tir.Add(1, 2)
        error = tvm.error.OpNotImplemented("tan")
        assert ArgTypeCode.STR == 11 and ArgTypeCode.BYTES == 12
        assert TVMByteArray(size=3).size == 3
        assert dict(vars(tir.Add)) == before[0], "the class is left as it was once it is noted"
    finally:
        trace.stop(file)
    assert added.b.value == 2 and error.message == "tan"
    assert [dict(vars(one)) for one in classes] == before
    names = set(file.read_text().split())
    assert names >= {
        "tvm.tir.expr.Add",
        "tvm.tir.expr.ConstExpr",
        "tvm.error.OpNotImplemented",
        "tvm.error.OpError",
        "tvm._ffi.runtime_ctypes.ArgTypeCode",
        "tvm._ffi.runtime_ctypes.TVMByteArray",
    }
    assert not names & {"tvm.tir.expr.Sub", "tvm.tir.expr.LogicalExpr", "tvm.error.RPCError"}
