"""``create_group``: parts of a graph that are placed as one."""

from __future__ import annotations

from tests.te.schedule.checks import check, parts, random, refused

import tilewright as tvm
from tilewright import te, tir


def program() -> tuple[te.Tensor, ...]:
    """Four elementwise computations in a row."""
    a = te.placeholder((6, 8), name="A")
    b = te.compute((6, 8), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((6, 8), lambda i, j: b[i, j] * 2.0, name="C")
    d = te.compute((6, 8), lambda i, j: c[i, j] - 3.0, name="D")
    e = te.compute((6, 8), lambda i, j: d[i, j] * d[i, j], name="E")
    return a, b, c, d, e


def test_a_group_is_computed_inside_of_a_loop() -> None:
    """All stages between the inputs and the outputs go to the place of the group."""
    a, b, c, d, e = program()
    s = te.create_schedule(e.op)
    group = s.create_group(outputs=d, inputs=a, include_inputs=False)
    assert group.num_child_stages == 3
    group.compute_at(s[e], e.op.axis[0])
    loops = parts(tvm.driver.schedule_to_module(s, [a, e])["main"], tir.For)
    assert len([loop for loop in loops if loop.extent.value == 6]) == 1
    values = random(6, 8)
    check(s, [a, e], [values], ((values + 1) * 2 - 3) ** 2, compiled=True)
    assert all(s[one].attach_spec() is group for one in (b, c, d))


def test_inputs_may_be_part_of_it() -> None:
    """With ``include_inputs`` the named inputs belong to the group."""
    _, b, c, d, e = program()
    s = te.create_schedule(e.op)
    assert s.create_group(outputs=d, inputs=b, include_inputs=False).num_child_stages == 2
    s = te.create_schedule(e.op)
    assert s.create_group(outputs=[d], inputs=[b], include_inputs=True).num_child_stages == 3
    assert s[c].group is s[b].group


def test_groups_in_groups() -> None:
    """A group inside a group follows the outer one; each may have a place."""
    a, b, c, d, e = program()
    s = te.create_schedule(e.op)
    inner = s.create_group(outputs=c, inputs=a)
    outer = s.create_group(outputs=d, inputs=a)
    assert inner.group is outer and s[b].group is inner and s[d].group is outer
    assert (inner.num_child_stages, outer.num_child_stages) == (2, 2)
    inner.compute_at(s[d], d.op.axis[1])
    outer.compute_at(s[e], e.op.axis[0])
    values = random(6, 8)
    check(s, [a, e], [values], ((values + 1) * 2 - 3) ** 2)
    assert s[b].attach_spec() is inner
    refused(s, lambda: s.create_group(outputs=d, inputs=b), "create_group of D", "group has stage B too")


def test_a_group_made_later_inside_of_another() -> None:
    """The new group stands in the old one, in the place of its stages."""
    a, b, c, d, e = program()
    s = te.create_schedule(e.op)
    outer = s.create_group(outputs=d, inputs=a, include_inputs=True)
    assert outer.num_child_stages == 4 and s[a].group is outer
    inner = s.create_group(outputs=c, inputs=a)
    assert inner.group is outer and s[c].group is inner and s[d].group is outer
    assert (inner.num_child_stages, outer.num_child_stages) == (2, 3)


def test_only_what_lies_between_is_part() -> None:
    """What the outputs read but does not come from the inputs stays outside."""
    a, other = te.placeholder((4,), name="A"), te.placeholder((4,), name="O")
    side = te.compute((4,), lambda i: other[i] + 1.0, name="side")
    c = te.compute((4,), lambda i: a[i] + side[i], name="C")
    d = te.compute((4,), lambda i: c[i] * 2.0, name="D")
    s = te.create_schedule(d.op)
    group = s.create_group(c, a)
    assert s[side].group is None and s[c].group is group


def test_a_member_stays_in_its_group() -> None:
    """A stage of a group cannot be computed outside it, before or after the group is made."""
    a, b, c, d, e = program()
    s = te.create_schedule(e.op)
    s.create_group(outputs=c, inputs=a)
    refused(
        s,
        lambda: s[b].compute_at(s[d], d.op.axis[0]),
        "compute_at on stage B, axis i",
        "D is outside group",
    )
    s = te.create_schedule(e.op)
    s[c].compute_at(s[d], d.op.axis[0])
    refused(s, lambda: s.create_group(outputs=c, inputs=a), "create_group of C", "C is computed at stage D")


def test_a_stage_of_a_group_may_have_its_own_place() -> None:
    """Its own place comes before that of the group."""
    a, b, c, d, e = program()
    s = te.create_schedule(e.op)
    group = s.create_group(outputs=d, inputs=a)
    group.compute_at(s[e], e.op.axis[0])
    s[b].compute_at(s[c], c.op.axis[1])
    s[d].split(d.op.axis[1], factor=3)
    values = random(6, 8)
    check(s, [a, e], [values], ((values + 1) * 2 - 3) ** 2)


def test_create_group_refuses() -> None:
    """Foreign tensors, and nothing between."""
    a, b, _, d, e = program()
    s = te.create_schedule(e.op)
    other = te.placeholder((1,), name="other")
    refused(s, lambda: s.create_group(other, a), "create_group", "other", "not a tensor of this schedule")
    refused(s, lambda: s.create_group(b, b), "create_group of B", "no operation between")
    group = s.create_group(d, a)
    refused(s, lambda: group.compute_at(s[b], b.op.axis[0]), "compute_at on stage group", "inside")
