"""Dynamic operators with known shapes become static ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.transform.checks import after, check, operators, typed

from tilewright import relay
from tilewright.relay import transform
from tilewright.relay.op.calls import call
from tilewright.relay.op.shapes import dims
from tilewright.relay.ty import is_dynamic

STATIC = transform.DynamicToStatic()


def integers(*values: Any) -> relay.Constant:
    """A constant of int64."""
    return relay.const(np.array(values, "int64"))


X = relay.var("x", shape=(2, 3, 4, 4))
FLAT = relay.var("flat", shape=(2, 6))
INDICES = relay.var("indices", shape=(5,), dtype="int32")
ONE, ZERO = relay.const(1.0), relay.const(0.0)

CASES = {
    "reshape": (lambda: call("dyn.reshape", X, integers(6, -1)), "reshape"),
    "squeeze": (lambda: call("dyn.squeeze", relay.expand_dims(FLAT, 1), integers(1)), "squeeze"),
    "expand_dims": (lambda: call("dyn.expand_dims", FLAT, relay.const(1, "int64")), "expand_dims"),
    "tile": (lambda: call("dyn.tile", FLAT, integers(2, 2)), "tile"),
    "broadcast_to": (lambda: call("dyn.broadcast_to", FLAT, integers(3, 2, 6)), "broadcast_to"),
    "full": (
        lambda: FLAT + call("dyn.full", relay.Var("v", relay.scalar_type("float32")), integers(2, 6)),
        "full",
    ),
    "one_hot": (lambda: call("dyn.one_hot", INDICES, ONE, ZERO, relay.const(4), dtype="float32"), "one_hot"),
    "topk": (lambda: call("dyn.topk", FLAT, relay.const(2, "int64"), ret_type="values"), "topk"),
    "resize": (
        lambda: call(
            "dyn.image.resize2d",
            X,
            integers(8, 8),
            method="nearest_neighbor",
            coordinate_transformation_mode="asymmetric",
        ),
        "image.resize2d",
    ),
    "upsampling": (
        lambda: call("dyn.nn.upsampling", X, relay.const(2.0), relay.const(3.0)),
        "nn.upsampling",
    ),
    "pad": (
        lambda: call("dyn.nn.pad", FLAT, relay.const(np.array([[1, 0], [0, 2]], "int64")), ZERO),
        "nn.pad",
    ),
    "strided_slice": (
        lambda: call("dyn.strided_slice", FLAT, integers(0, 1), integers(2, 5), integers(1, 2)),
        "strided_slice",
    ),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_known_shape_becomes_an_attribute(name: str) -> None:
    """The static operator, with a static type and the same result."""
    make, expected = CASES[name]
    before = typed(make())
    made = check(STATIC, before)
    assert expected in operators(made)
    assert not any(one.startswith("dyn.") for one in operators(made))
    assert not is_dynamic(made.ret_type)


@pytest.mark.parametrize("name", ["zeros", "ones"])
def test_small_tensors_are_made_at_once(name: str) -> None:
    """What the rewriting makes constant is computed."""
    made = check(STATIC, FLAT + call(f"dyn.{name}", integers(2, 6), dtype="float32"))
    assert operators(made) == ["add"]


def test_shapes_that_follow_from_static_ones() -> None:
    """A shape of a result that became static, used for the next: all in one walk."""
    made = call("dyn.reshape", X, integers(6, 16))
    for _ in range(4):
        made = call("dyn.reshape", made, relay.reverse(relay.shape_of(made, "int64"), 0))
    done = check(STATIC, made)
    assert operators(done) == ["reshape"] * 5
    assert dims(done.ret_type) == (6, 16)


def test_shapes_that_stay_unknown() -> None:
    """There is nothing to make them static from."""
    shape = relay.var("shape", shape=(2,), dtype="int64")
    assert operators(after(STATIC, call("dyn.reshape", FLAT, shape))) == ["dyn.reshape"]


def test_a_bound_variable_has_the_static_type() -> None:
    """The type of what it stands for now."""
    v = relay.Var("v")
    body = relay.Let(v, call("dyn.reshape", FLAT, integers(12)), relay.shape_of(v))
    made = check(STATIC, relay.Function([FLAT], body))
    assert "shape_of" not in operators(made)


def test_a_long_chain() -> None:
    """10,000 operators, each with a shape that depends on the one before."""
    made: Any = relay.var("x", shape=(4,))
    for _ in range(2_500):
        made = relay.nn.relu(call("dyn.reshape", made, relay.shape_of(made, "int64")))
    done = after(STATIC, made)
    assert operators(done).count("reshape") == 2_500
    assert dims(done.ret_type) == (4,)
