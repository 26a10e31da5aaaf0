"""The names that a test run calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from api_trace import Trace
from tilewright import te, topi


def test_trace(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """What is called between start and stop is added to the file; functions of one factory are told apart."""
    if request.config.getoption("--api-trace"):
        pytest.skip("this run is traced itself, and a process has one trace")
    file = tmp_path / "trace.txt"
    file.write_text("tvm.before\n")
    trace = Trace()
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
