"""Inlining by rule."""

from __future__ import annotations

from tilewright import te
from tilewright.te.schedule.stage import AttachType


def stages() -> tuple[te.Schedule, dict[str, te.Tensor]]:
    """An elementwise, a broadcasting and an injective stage, a reduction, and an output."""
    a = te.placeholder((4, 6), name="A")
    same = te.compute((4, 6), lambda i, j: a[i, j] * 2.0, name="same")
    spread = te.compute((4, 6), lambda i, j: same[i, 0] + 1.0, name="spread")
    turned = te.compute((4, 6), lambda i, j: spread[3 - i, j], name="turned")
    k = te.reduce_axis((0, 6), name="k")
    total = te.compute((4,), lambda i: te.sum(turned[i, k], axis=k), name="total")
    out = te.compute((4,), lambda i: total[i] + 1.0, name="out")
    tensors = {tensor.op.name: tensor for tensor in (same, spread, turned, total, out)}
    return te.create_schedule(out.op), tensors


def inlined(schedule: te.Schedule) -> set[str]:
    """The stages that were inlined."""
    return {stage.label for stage in schedule.stages if stage.attach_type == AttachType.INLINE}


def test_each_rule_takes_what_it_says() -> None:
    """Elementwise, then broadcast, then all without a reduction; never an output."""
    for rule, expected in (
        (te.schedule.AutoInlineElemWise, {"same"}),
        (te.schedule.AutoInlineBroadcast, {"same", "spread"}),
        (te.schedule.AutoInlineInjective, {"same", "spread", "turned"}),
    ):
        schedule, _ = stages()
        rule(schedule)
        assert inlined(schedule) == expected


def test_what_is_scheduled_already_stays() -> None:
    """A stage that was split or placed is left alone."""
    schedule, tensors = stages()
    schedule[tensors["same"]].split(tensors["same"].op.axis[0], factor=2)
    schedule[tensors["spread"]].compute_at(schedule[tensors["total"]], tensors["total"].op.axis[0])
    te.schedule.AutoInlineInjective(schedule)
    assert inlined(schedule) == {"turned"}


def test_classes_are_where_programs_look() -> None:
    """``te.tensor`` carries the classes of operations."""
    _, tensors = stages()
    assert isinstance(tensors["same"].op, te.tensor.ComputeOp)
    assert te.tensor.PlaceholderOp is te.PlaceholderOp
