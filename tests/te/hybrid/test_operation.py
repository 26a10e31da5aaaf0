"""The operation of a script: what it reads, and reading something else instead."""

# ruff: noqa: F821

from __future__ import annotations

import tilewright as tvm
from tilewright import te
from tilewright.te.hybrid import HybridOp, script
from tilewright.te.hybrid.operation import tensors_used

weights = te.placeholder((4,), name="weights")


@script
def scale(a, unused):
    b = output_tensor((4,), a.dtype)
    for i in range(4):
        t = a[i]
        t += weights[i]
        b[i] = t
    return b


def test_inputs() -> None:
    """Arguments come first, then tensors from around the script; its own memory is not an input."""
    a, unused = te.placeholder((4,), name="a"), te.placeholder((4,), name="unused")
    operation = scale(a, unused).op
    assert operation.input_tensors == (a, unused, weights)
    assert tensors_used(operation.body) == (a, weights, operation.output_placeholders[0])


def test_replaced_inputs() -> None:
    """The body reads the other tensor; the axes, on which a schedule stands, are the same."""
    a, unused, other = (te.placeholder((4,), name=name) for name in ("a", "unused", "other"))
    operation = scale(a, unused).op
    made = operation.replace_inputs({a: other})
    assert isinstance(made, HybridOp)
    assert made.inputs == (other, unused, weights) and made.axes == operation.axes
    assert other in tensors_used(made.body) and a not in tensors_used(made.body)
    assert operation.replace_inputs({other: a}) is operation


def test_tag() -> None:
    """A tag scope around the call gives its tag."""
    a = te.placeholder((4,), name="a")
    assert scale(a, a).op.tag == "HybridOp"
    with tvm.te.tag_scope("scaled"):
        assert scale(a, a).op.tag == "scaled"
