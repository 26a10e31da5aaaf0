"""Dense layers of one tensor become one."""

from __future__ import annotations

from typing import Any

from tests.relay.transform.checks import check, operators, spans_kept

from tilewright import relay
from tilewright.relay import transform

X = relay.var("x", shape=(2, 4))


def branch(name: str, units: int = 3) -> Any:
    """A layer with a bias, an activation and a factor."""
    layer = relay.nn.dense(X, relay.var(name, shape=(units, 4)))
    bias = relay.nn.bias_add(layer, relay.var(f"{name}_bias", shape=(units,)))
    return relay.nn.relu(bias) * relay.var(f"{name}_scale", shape=(units,))


def test_a_batch_of_products() -> None:
    """One batch_matmul, and biases that are added."""
    made = check(transform.CombineParallelDense(), relay.Tuple([branch(name) for name in "abc"]))
    found = operators(made)
    assert found.count("nn.batch_matmul") == found.count("add") == found.count("multiply") == 1
    assert "nn.dense" not in found
    assert spans_kept(made)


def test_a_batch_needs_weights_of_one_shape() -> None:
    """Others stay apart."""
    made = check(transform.CombineParallelDense(2), relay.Tuple([branch("a", 3), branch("b", 4)]))
    assert operators(made).count("nn.dense") == 2


def test_scalars_and_full_operands_in_a_batch() -> None:
    """Each is aligned with its own product."""
    layers = [relay.nn.dense(X, relay.var(name, shape=(3, 4))) for name in "ab"]
    made = check(
        transform.CombineParallelDense(2),
        relay.Tuple(
            [
                layer * relay.const(number) + relay.var(f"full{number}", shape=(2, 3))
                for number, layer in zip((2.0, 3.0), layers, strict=True)
            ]
        ),
    )
    assert operators(made).count("multiply") == operators(made).count("add") == 1


def test_more_units() -> None:
    """One layer where the numbers of units may differ."""
    made = check(
        transform.CombineParallelDense(2, to_batch=False), relay.Tuple([branch("a", 3), branch("b", 4)])
    )
    found = operators(made)
    assert found.count("nn.dense") == found.count("nn.bias_add") == found.count("nn.relu") == 1


def test_data_of_three_dimensions() -> None:
    """As more units, along the last."""
    x = relay.var("x", shape=(2, 5, 4))
    layers = [relay.nn.dense(x, relay.var(name, shape=(3, 4))) for name in "ab"]
    made = check(transform.CombineParallelDense(2, to_batch=False), relay.Tuple(layers))
    assert operators(made).count("nn.dense") == 1
    assert operators(check(transform.CombineParallelDense(2), relay.Tuple(layers))) == ["nn.dense"] * 2


def test_operands_that_are_broadcast_along_the_units() -> None:
    """Scalars, single elements and operands of a higher rank are repeated for each unit, and combined too."""
    for shapes in (((), ()), ((3,), (1,)), ((7, 2, 1), (7, 2, 4))):
        layers = [
            relay.nn.dense(X, relay.var(name, shape=(units, 4))) for name, units in (("a", 3), ("b", 4))
        ]
        sums = [
            layer + relay.var(f"operand{place}", shape=shape)
            for place, (layer, shape) in enumerate(zip(layers, shapes, strict=True))
        ]
        made = check(transform.CombineParallelDense(2, to_batch=False), relay.Tuple(sums))
        assert operators(made).count("nn.dense") == operators(made).count("add") == 1
