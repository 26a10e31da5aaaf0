"""Tasks and contexts: arguments, workloads, and who answers for a configuration."""

from __future__ import annotations

import copy
import logging
from typing import Any

import pytest

import tilewright as tvm
from tilewright import autotvm, te
from tilewright.autotvm.task import (
    ApplyConfig,
    ApplyFixedConfig,
    args_to_workload,
    deserialize_args,
    serialize_args,
)
from tilewright.autotvm.task.code_hash import attach_code_hash
from tilewright.autotvm.task.context import DispatchContext, FallbackContext
from tilewright.autotvm.testing import get_sample_task
from tilewright.support.errors import TilewrightError


@autotvm.template("tests/increment")
def increment(n: int, names: Any = ()) -> Any:
    """Adds one, in pieces."""
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="b")
    s = te.create_schedule(b.op)
    cfg = autotvm.get_config()
    cfg.define_knob("pieces", [1, 4])
    s[b].split(s[b].op.axis[0], nparts=cfg["pieces"].val)

    @attach_code_hash(s)
    def nothing() -> None:
        """Only its source counts."""

    return s, [a, b]


def test_arguments_become_workloads() -> None:
    """Tensors are their shape and type, lists are tuples, numbers of expressions are numbers; anything else is
    refused."""
    tensor = te.placeholder((3, 4), dtype="int8")
    given = (tensor, [1, (2, tvm.tir.IntImm("int32", 3))], "NCHW", None, True, 0.5)
    workload = args_to_workload(given, "tests/increment")
    assert workload == ("tests/increment", ("TENSOR", (3, 4), "int8"), (1, (2, 3)), "NCHW", None, True, 0.5)
    back = deserialize_args(serialize_args(given))
    assert back[0].shape[1].value == 4 and str(back[0].dtype) == "int8" and back[1] == [1, [2, 3]]
    with pytest.raises(TypeError, match="dict"):
        args_to_workload(({},))


def test_a_task() -> None:
    """Its space, work and hash of the source; it can be copied, and finds its template again."""
    task = autotvm.task.create("tests/increment", args=(64,), target="llvm")
    assert len(task.config_space) == 2 and task.flop == 64 and len(task.config_space.code_hash) == 40
    again = copy.deepcopy(task)
    assert again.workload == task.workload == ("tests/increment", 64) and again.func is task.func
    with pytest.raises(TilewrightError, match="no keyword arguments"):
        increment(n=4)


def test_who_answers(caplog: pytest.LogCaptureFixture) -> None:
    """The innermost context; without any, a fallback, with a warning the first time only."""
    task = autotvm.task.create("tests/increment", args=(32,), target="llvm")
    config = task.config_space.get(1)
    with caplog.at_level(logging.WARNING, "autotvm"):
        schedule, tensors = increment(32)
        increment(32)
    assert caplog.text.count("no tuning records for the workload") == 1
    with ApplyConfig(config):
        assert autotvm.get_config() is config
        with FallbackContext():
            assert autotvm.get_config().is_fallback
    assert isinstance(DispatchContext.current, FallbackContext)
    with ApplyFixedConfig([task], "increment") as fixed:
        assert fixed.query(task.target, task.workload).index == 0


def test_silence(caplog: pytest.LogCaptureFixture) -> None:
    """``GLOBAL_SCOPE.silent`` keeps the fallback quiet."""
    autotvm.GLOBAL_SCOPE.silent = True
    try:
        with caplog.at_level(logging.WARNING, "autotvm"):
            increment(24)
    finally:
        autotvm.GLOBAL_SCOPE.silent = False
    assert not caplog.text


def test_the_sample_task() -> None:
    """The task that ``tvm.testing.autotvm`` has."""
    task, target = get_sample_task(16)
    assert len(task.config_space) == 125 and task.flop == 2 * 16**3 and target.kind.name == "llvm"
