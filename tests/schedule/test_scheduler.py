"""Which scheduler a target has, and how a user adds one."""

from __future__ import annotations

import pytest

import tilewright as tvm
from tilewright import te
from tilewright.schedule import (
    _SCHEDULERS,
    Scheduler,
    register_scheduler,
    schedule,
    scheduler_for,
    tags_of,
)
from tilewright.support.errors import ScheduleError, TargetError
from tilewright.te import Schedule, Tensor


def construct(outputs: list[Tensor]) -> Schedule:
    """Plain loops."""
    return te.create_schedule([tensor.op for tensor in outputs])


@pytest.mark.parametrize(
    ("target", "key"),
    [("llvm", "cpu"), ("c", "cpu"), ("cuda", "gpu"), ("opencl", "gpu"), ("vulkan", "gpu"), ("metal", "gpu")],
)
def test_by_the_keys_of_the_target(target: str, key: str) -> None:
    """Processors and devices with threads have one each; without a target it is this machine's."""
    assert scheduler_for(tvm.target.Target(target)).key == key
    assert scheduler_for().key == "cpu"


@pytest.mark.parametrize("kind", ["hexagon", "aocl", "ext_dev"])
def test_a_target_without_one(kind: str) -> None:
    """The error names the kind and what there is."""
    with pytest.raises(TargetError, match=f"no scheduler for target kind '{kind}': .* keys cpu, gpu"):
        schedule(te.placeholder((3,)), tvm.target.Target(kind))


def test_a_scheduler_of_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a key, or the name of a kind; a second one for the same key has to say that it replaces the first."""
    monkeypatch.delitem(_SCHEDULERS, "hexagon", raising=False)
    mine = Scheduler("hexagon", construct)
    register_scheduler("hexagon", mine)
    target = tvm.target.Target("hexagon")
    assert scheduler_for(target) is mine
    a = te.placeholder((3,))
    made = schedule(te.compute((3,), lambda i: a[i] + 1), target)
    assert len(made.stages) == 2
    with pytest.raises(TargetError, match="already"):
        register_scheduler("hexagon", mine)
    register_scheduler("hexagon", Scheduler("hexagon", construct), override=True)
    assert scheduler_for(target) is not mine
    del _SCHEDULERS["hexagon"]


def test_a_special_schedule_by_tag() -> None:
    """A graph with a computation of the tag, however deep, has the special schedule."""
    seen: list[str] = []

    def special(outputs: list[Tensor]) -> Schedule:
        seen.append(outputs[0].op.name)
        return construct(outputs)

    scheduler = Scheduler("mine", construct)
    scheduler.register_special("my_tag", special)
    a = te.placeholder((3,))
    tagged = te.compute((3,), lambda i: a[i] + 1, name="tagged", tag="my_tag")
    after = te.compute((3,), lambda i: tagged[i] * 2, name="after")
    target = tvm.target.Target("llvm")
    assert scheduler.name_for(after) == "mine, my_tag"
    assert scheduler.name_for(a) == "mine"
    scheduler.schedule(after, target)
    scheduler.schedule(te.compute((3,), lambda i: a[i] * 2, name="plain"), target)
    assert seen == ["after"]
    assert "my_tag" in tags_of([after])
    with pytest.raises(ScheduleError, match="already"):
        scheduler.register_special("my_tag", special)
