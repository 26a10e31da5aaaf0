"""Small rewritings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.relay.transform.checks import after, check, operators, typed

from tilewright import relay
from tilewright.relay import transform
from tilewright.relay.transform.lib.simplify_arithmetic import is_lossless
from tilewright.support.dtype import DataType

SIMPLIFY = transform.SimplifyExpr()
X = relay.var("x", shape=(2, 6, 4, 3))
V = relay.var("v", shape=(6,))
N = relay.var("n", shape=(4,), dtype="int32")
H = relay.var("h", shape=(4,), dtype="float16")
C = relay.var("c", shape=(3, 6), dtype="bool")


def array(*shape: int, value: float | None = None) -> relay.Constant:
    """A constant, random or of one value."""
    values = np.random.default_rng(4).standard_normal(shape) if value is None else np.full(shape, value)
    return relay.const(values.astype("float32"))


Case = tuple[Callable[[], Any], Callable[[], Any]]

MOVEMENT: dict[str, Case] = {
    "two reshapes": (
        lambda: relay.reshape(relay.reshape(X, (12, 12)), (4, -1)),
        lambda: relay.reshape(X, (4, 36)),
    ),
    "a reshape of a flattened tensor": (
        lambda: relay.reshape(relay.nn.batch_flatten(X), (4, 36)),
        lambda: relay.reshape(X, (4, 36)),
    ),
    "a reshape and back": (lambda: relay.reshape(relay.reshape(X, (12, 12)), (2, 6, 4, 3)), lambda: X),
    "a reshape to the same": (lambda: relay.reshape(X, (0, 0, -2)), lambda: X),
    "expand_dims and squeeze": (lambda: relay.squeeze(relay.expand_dims(X, 1), [1]), lambda: X),
    "two transposes": (
        lambda: relay.transpose(relay.transpose(X, (0, 2, 3, 1)), (0, 3, 2, 1)),
        lambda: relay.transpose(X, (0, 1, 3, 2)),
    ),
    "a transpose and back": (
        lambda: relay.transpose(relay.transpose(X, (0, 2, 3, 1)), (0, 3, 1, 2)),
        lambda: X,
    ),
    "a transpose and back around a choice": (
        lambda: relay.transpose(
            relay.where(C, relay.transpose(X, (0, 2, 3, 1)), relay.const(0.0)), (0, 3, 1, 2)
        ),
        lambda: relay.where(
            relay.transpose(relay.reshape(C, (1, 1, 3, 6)), (0, 3, 1, 2)), X, relay.const(0.0)
        ),
    ),
    "a transpose in reverse, twice": (lambda: relay.transpose(relay.transpose(X)), lambda: X),
    "a layout and back": (
        lambda: relay.layout_transform(relay.layout_transform(X, "NCHW", "NCHW2c"), "NCHW2c", "NCHW"),
        lambda: X,
    ),
    "two layouts": (
        lambda: relay.layout_transform(relay.layout_transform(X, "NCHW", "NCHW2c"), "NCHW2c", "NHWC"),
        lambda: relay.layout_transform(X, "NCHW", "NHWC"),
    ),
    "a layout undone by a transpose": (
        lambda: relay.transpose(relay.layout_transform(X, "NCHW", "NHWC"), (0, 3, 1, 2)),
        lambda: X,
    ),
    "a slice of everything": (lambda: relay.strided_slice(X, [0, 0], [2, 100]), lambda: X),
    "no padding": (lambda: relay.nn.pad(X, ((0, 0),) * 4), lambda: X),
    "repeated once": (lambda: relay.tile(relay.repeat(X, 1, 0), (1, 1)), lambda: X),
    "broadcast to the same": (lambda: relay.broadcast_to(X, (2, 6, 4, 3)), lambda: X),
    "parts joined again": (lambda: relay.concatenate(relay.split(X, 3, 1).astuple(), 1), lambda: X),
    "named parts joined again": (lambda: relay.concatenate(list(relay.split(X, (1, 3), 1)), 1), lambda: X),
    "one tensor joined": (lambda: relay.concatenate([X], 0), lambda: X),
    "what was joined, in parts": (
        lambda: relay.split(relay.concatenate([X, X], 1), 2, 1)[1],
        lambda: X,
    ),
}

ARITHMETIC: dict[str, Case] = {
    "plus zero, which turns minus zero": (lambda: X + relay.const(0.0), lambda: X + relay.const(0.0)),
    "plus minus zero": (lambda: X + relay.const(-0.0), lambda: X),
    "minus minus zero": (lambda: X - relay.const(-0.0), lambda: X - relay.const(-0.0)),
    "zero plus a sum": (
        lambda: array(6, 1, 1, value=0) + relay.sum(X, axis=3, keepdims=True),
        lambda: relay.sum(X, axis=3, keepdims=True),
    ),
    "minus zero": (lambda: X - relay.zeros_like(X), lambda: X),
    "times one": (lambda: relay.ones((4, 3), "float32") * X, lambda: X),
    "divided by one": (lambda: X / array(1, value=1), lambda: X),
    "divided by a power of two": (lambda: X / relay.const(-8.0), lambda: X * relay.const(-0.125)),
    "divided by powers of two": (
        lambda: V / relay.const(np.array([2, 4, 0.5, 1, 64, 2**-20], "float32")),
        lambda: V * relay.const(np.array([0.5, 0.25, 2, 1, 1 / 64, 2**20], "float32")),
    ),
    "to the power of one": (lambda: relay.power(X, relay.const(1.0)), lambda: X),
    "a choice that is always the first": (
        lambda: relay.where(relay.const(np.ones((4, 1), bool)), X, relay.const(0.0)),
        lambda: X,
    ),
    "a choice that is always the second": (
        lambda: relay.where(relay.const(False), relay.const(0.0), X),
        lambda: X,
    ),
    "integers divided by one": (lambda: relay.floor_divide(N, relay.const(1)), lambda: N),
    "integers times zero": (lambda: N * relay.const(0), lambda: relay.zeros((4,), "int32")),
    "a tensor of one number": (
        lambda: X + relay.full(relay.const(2.0), (2, 6, 4, 3), "float32"),
        lambda: X + relay.const(2.0),
    ),
    "two constants added": (
        lambda: (X + array(6, 1, 1, value=1)) + relay.const(2.0),
        lambda: X + relay.const(3.0),
    ),
    "two constants multiplied": (
        lambda: relay.const(2.0) * (X * relay.const(3.0)),
        lambda: X * relay.const(6.0),
    ),
    "converted to the same": (lambda: relay.cast(X, "float32"), lambda: X),
    "converted like the same": (lambda: relay.cast_like(X, V), lambda: X),
    "widened and back": (lambda: relay.cast(relay.cast(H, "float32"), "float16"), lambda: H),
    "widened and narrowed": (
        lambda: relay.cast(relay.cast(N, "int64"), "int8"),
        lambda: relay.cast(N, "int8"),
    ),
    "turned twice": (lambda: relay.negative(relay.negative(X)), lambda: X),
    "relu of relu": (lambda: relay.nn.relu(relay.nn.relu(X)), lambda: relay.nn.relu(X)),
    "reshaped like": (
        lambda: relay.reshape_like(V, relay.var("y", shape=(2, 3))),
        lambda: relay.reshape(V, (2, 3)),
    ),
}


@pytest.mark.parametrize("name", [*MOVEMENT, *ARITHMETIC])
def test_it_becomes_simpler(name: str) -> None:
    """What is expected is left, and it computes the same."""
    before, expected = {**MOVEMENT, **ARITHMETIC}[name]
    start = typed(before())
    check(SIMPLIFY, start, relay.Function(start.params, expected()))


STAYS: dict[str, Callable[[], Any]] = {
    "a choice that repeats the data": lambda: relay.where(
        relay.const(np.ones((2, 6), bool)), V, relay.const(0.0)
    ),
    "a choice between tensors of another order": lambda: relay.transpose(
        relay.where(C, relay.transpose(X, (0, 2, 3, 1)), relay.transpose(X, (0, 2, 3, 1))), (0, 3, 1, 2)
    ),
    "floats times zero": lambda: X * relay.const(0.0),
    "a sum that repeats the data": lambda: V + relay.zeros((2, 6), "float32"),
    "zero minus": lambda: relay.const(0.0) - X,
    "divided by another number": lambda: X / relay.const(3.0),
    "divided by a power of two and others": lambda: (
        V / relay.const(np.array([2, 4, 0.5, 1, 6, 8], "float32"))
    ),
    "divided by a power with no reciprocal": lambda: X / relay.const(2.0**127),
    "one divided by": lambda: relay.const(1.0) / X,
    "floats divided down by one": lambda: relay.floor_divide(X, relay.const(1.0)),
    "narrowed and widened": lambda: relay.cast(relay.cast(X, "float16"), "float32"),
    "rounded to integers and back": lambda: relay.cast(relay.cast(X, "int32"), "float32"),
    "constants that would grow": lambda: (X + array(6, 1, 1)) + array(3),
    "factors that are zero together": lambda: (X * relay.const(1e-30)) * relay.const(1e-30),
    "factors that are infinite together": lambda: (X * relay.const(1e30)) * relay.const(1e30),
    "parts joined in another order": lambda: relay.concatenate(
        [relay.split(X, 2, 1)[1], relay.split(X, 2, 1)[0]], 1
    ),
    "parts joined along another axis": lambda: relay.concatenate(relay.split(X, 2, 1).astuple(), 0),
    "every second element": lambda: relay.strided_slice(X, [0], [2], [-1]),
    "other parts than were joined": lambda: relay.split(relay.concatenate([X, X, X], 1), 2, 1).astuple(),
}


@pytest.mark.parametrize("name", STAYS)
def test_it_stays(name: str) -> None:
    """Where it would compute something else, or be no simpler."""
    start = typed(STAYS[name]())
    made = check(SIMPLIFY, start)
    expected = [one for one in operators(start) if one != "zeros"]
    assert [one for one in operators(made) if one != "zeros"] == expected


def test_an_unknown_batch_size() -> None:
    """Reshapes join where the numbers do not depend on it."""
    x = relay.var("x", shape=(relay.Any(), 6))
    made = after(SIMPLIFY, relay.reshape(relay.reshape(x, (-1, 3)), (-1, 2)))
    assert operators(made) == ["reshape"]
    kept = after(SIMPLIFY, relay.reshape(relay.reshape(x, (-1, 3)), (0, 3, 1)))
    assert operators(kept) == ["reshape", "reshape"]


def test_a_scalar_operand_of_an_unknown_shape() -> None:
    """It leaves the shape as it is, whatever that is."""
    x = relay.var("x", shape=(relay.Any(),))
    assert operators(after(SIMPLIFY, x * relay.const(1.0))) == []
    assert operators(after(SIMPLIFY, x * relay.ones((3,), "float32"))) == ["ones", "multiply"]


def test_a_long_chain_collapses() -> None:
    """10,000 reshapes, transposes and sums are one of each at most."""
    made: Any = relay.var("x", shape=(2, 3))
    for _ in range(2_500):
        made = relay.reshape(relay.transpose(relay.transpose(made + relay.const(1.0))), (3, 2))
        made = relay.reshape(made, (2, 3))
    done = after(SIMPLIFY, made)
    assert operators(done) == ["add"]
    assert done.body.args[1].data.numpy() == 2_500


TYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "float32", "float64"]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(TYPES), st.sampled_from(TYPES), st.data())
def test_a_lossless_conversion_can_be_undone(source: str, result: str, data: st.DataObject) -> None:
    """Every value comes back."""
    if not is_lossless(DataType(source), DataType(result)):
        return
    if source.startswith("float"):
        values = st.floats(width=int(source[5:]), allow_nan=False)
    elif source == "bool":
        values = st.booleans()
    else:
        values = st.integers(int(np.iinfo(source).min), int(np.iinfo(source).max))
    number = np.asarray(data.draw(values), source)
    assert number.astype(result).astype(source) == number


def test_conversions_that_lose_something_are_known() -> None:
    """A few that look harmless."""
    for source, result in (
        ("int32", "float32"),
        ("int8", "uint8"),
        ("uint8", "int8"),
        ("bfloat16", "float16"),
    ):
        assert not is_lossless(DataType(source), DataType(result))
