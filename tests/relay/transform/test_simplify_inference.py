"""Operators of training become arithmetic."""

from __future__ import annotations

from typing import Any

import pytest
from tests.relay.transform.checks import after, assert_same_value, check, operators, spans_kept, typed

from tilewright import relay
from tilewright.relay import transform

DATA = (2, 4, 3, 5)


def vectors(extent: int, *names: str) -> list[relay.Var]:
    """One vector for each name."""
    return [relay.var(name, shape=(extent,)) for name in names]


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, -3])
@pytest.mark.parametrize(("center", "scale"), [(True, True), (False, True), (True, False), (False, False)])
def test_batch_norm_along_every_axis(axis: int, center: bool, scale: bool) -> None:
    """A product and a sum with what does not depend on the data."""
    x = relay.var("x", shape=DATA)
    parameters = vectors(DATA[axis], "gamma", "beta", "mean", "variance")
    made = check(
        transform.SimplifyInference(),
        relay.nn.batch_norm(x, *parameters, axis=axis, epsilon=1e-3, center=center, scale=scale)[0],
    )
    assert "nn.batch_norm" not in operators(made)


def test_batch_norm_is_written_as_scale_and_shift() -> None:
    """The program that the other passes expect."""
    x = relay.var("x", shape=DATA)
    gamma, beta, mean, variance = vectors(4, "gamma", "beta", "mean", "variance")
    scale = (relay.const(1.0) / relay.sqrt(variance + relay.const(1e-5))) * gamma
    shift = relay.negative(mean) * scale + beta
    expected = relay.Function(
        [x, gamma, beta, mean, variance],
        x * relay.expand_dims(scale, 1, 2) + relay.expand_dims(shift, 1, 2),
    )
    before = relay.nn.batch_norm(x, gamma, beta, mean, variance)[0]
    check(transform.SimplifyInference(), relay.Function([x, gamma, beta, mean, variance], before), expected)


def test_the_mean_and_the_variance_pass_through() -> None:
    """All three results of batch_norm are there."""
    x = relay.var("x", shape=DATA)
    call = relay.nn.batch_norm(x, *vectors(4, "gamma", "beta", "mean", "variance"))
    made = check(transform.SimplifyInference(), call.astuple())
    assert "nn.batch_norm" not in operators(made)


def test_data_of_half_precision_keep_their_type() -> None:
    """Statistics in float32 are converted, not the data."""
    x = relay.var("x", shape=DATA, dtype="float16")
    before = typed(relay.nn.batch_norm(x, *vectors(4, "gamma", "beta", "mean", "variance"))[0])
    made = after(transform.SimplifyInference(), before)
    assert made.ret_type == before.ret_type
    assert_same_value(before, made, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("axis", [1, 2, 3, -1])
def test_layer_norm(axis: int) -> None:
    """Mean and variance over one axis."""
    x = relay.var("x", shape=DATA)
    made = check(
        transform.SimplifyInference(), relay.nn.layer_norm(x, *vectors(DATA[axis], "gamma", "beta"), axis)
    )
    assert "variance" in operators(made)
    assert "nn.layer_norm" not in operators(made)


@pytest.mark.parametrize("axis", [1, 2, -1])
def test_instance_norm(axis: int) -> None:
    """Mean and variance over all axes but the batch and the channels."""
    x = relay.var("x", shape=DATA)
    made = check(
        transform.SimplifyInference(), relay.nn.instance_norm(x, *vectors(DATA[axis], "gamma", "beta"), axis)
    )
    assert "nn.instance_norm" not in operators(made)


@pytest.mark.parametrize(("shape", "axis"), [((2, 4, 3, 5), 1), ((2, 3, 5, 4), 3), ((2, 3, 4), -1)])
def test_group_norm(shape: tuple[int, ...], axis: int) -> None:
    """Mean and variance within groups of channels, wherever the channels are."""
    x = relay.var("x", shape=shape)
    made = check(
        transform.SimplifyInference(),
        relay.nn.group_norm(x, *vectors(4, "gamma", "beta"), num_groups=2, axis=axis),
    )
    assert "nn.group_norm" not in operators(made)


@pytest.mark.parametrize("axis", [[1], [1, 2], [0, 3]])
def test_l2_normalize(axis: list[int]) -> None:
    """Division by the length."""
    x = relay.var("x", shape=DATA)
    made = check(transform.SimplifyInference(), relay.nn.l2_normalize(x, 1e-3, axis))
    assert operators(made) == ["multiply", "sum", "maximum", "sqrt", "divide"]


def test_dropout_drops_nothing() -> None:
    """The data as they are."""
    x = relay.var("x", shape=DATA)
    expected = relay.Function([x], relay.nn.relu(x))
    check(
        transform.SimplifyInference(), relay.Function([x], relay.nn.relu(relay.nn.dropout(x, 0.5))), expected
    )


def test_an_unknown_batch_size() -> None:
    """The rewriting does not need the extents."""
    x = relay.var("x", shape=(relay.Any(), 4, 3, 3))
    before = typed(relay.nn.group_norm(x, *vectors(4, "gamma", "beta"), num_groups=2))
    made = after(transform.SimplifyInference(), before)
    assert "nn.group_norm" not in operators(made)
    assert made.ret_type == before.ret_type


def test_what_replaces_a_call_comes_from_its_place() -> None:
    """The calls that are made have the span of the call that was there."""
    x = relay.var("x", shape=DATA)
    made = after(transform.SimplifyInference(), relay.nn.l2_normalize(x, 1e-3, [1]))
    assert spans_kept(made)


def test_a_long_chain() -> None:
    """10,000 operators in a row."""
    x = relay.var("x", shape=(2, 4))
    gamma, beta = vectors(4, "gamma", "beta")
    made: Any = x
    for position in range(10_000):
        made = relay.nn.dropout(made) if position % 2 else relay.nn.relu(made)
    function = after(transform.SimplifyInference(), relay.nn.layer_norm(made, gamma, beta))
    assert operators(function).count("nn.relu") == 5_000
