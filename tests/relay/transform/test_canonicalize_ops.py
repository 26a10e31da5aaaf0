"""bias_add becomes add."""

from __future__ import annotations

import pytest
from tests.relay.transform.checks import check, operators

from tilewright import relay
from tilewright.relay import transform


@pytest.mark.parametrize(("axis", "extent"), [(1, 4), (3, 5), (-1, 5), (0, 2), (-2, 3)])
def test_bias_along_every_axis(axis: int, extent: int) -> None:
    """The bias gets the axes behind it."""
    x, bias = relay.var("x", shape=(2, 4, 3, 5)), relay.var("bias", shape=(extent,))
    made = check(transform.CanonicalizeOps(), relay.nn.bias_add(x, bias, axis))
    behind = 3 - axis % 4
    assert operators(made) == (["expand_dims", "add"] if behind else ["add"])


def test_the_expanded_form() -> None:
    """For channels in the second place."""
    x, bias = relay.var("x", shape=(2, 4, 3, 5)), relay.var("bias", shape=(4,))
    check(
        transform.CanonicalizeOps(),
        relay.Function([x, bias], relay.nn.bias_add(x, bias)),
        relay.Function([x, bias], x + relay.expand_dims(bias, 1, 2)),
    )
