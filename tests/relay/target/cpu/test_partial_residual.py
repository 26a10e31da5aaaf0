"""AddPartialResiduals: an addition to the first channels without cutting the image."""

from __future__ import annotations

import pytest
from tests.relay.transform.checks import after, assert_same_value, operators, typed

import tilewright as tvm
from tilewright import relay
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay.target.cpu.partial_residual import AddPartialResiduals

X = relay.var("x", shape=(2, 38, 5, 6))
Y = relay.var("y", shape=(2, 27, 5, 6))
OTHER = relay.var("other", shape=(2, 38, 5, 6))


def some(data: relay.Expr, first: int, end: int) -> relay.Expr:
    """Channels of an image."""
    return relay.strided_slice(data, [first], [end], axes=[1])


def joined(*parts: relay.Expr, axis: int = 1) -> relay.Expr:
    """Images one after the other."""
    return relay.concatenate(list(parts), axis=axis)


@pytest.mark.parametrize(
    "body",
    [
        joined(some(X, 0, 27) + Y, some(X, 27, 38)),
        joined(Y + some(X, 0, 27), some(X, 27, 2**40), axis=-3),
        joined(
            relay.strided_slice(X, [0, 0, 0, 0], [2, -11, 5, 6]) + Y,
            relay.strided_slice(X, [0, -11], [2, 38]),
        ),
    ],
    ids=["in order", "the other way round", "all axes"],
)
def test_an_addition_to_the_first_channels(body: relay.Expr) -> None:
    """It becomes one of the padded residual."""
    start = typed(body)
    with tvm.target.Target("llvm"):
        made = after(AddPartialResiduals(), start)
    assert operators(made) == ["nn.pad", "add"]
    assert_same_value(start, made)


@pytest.mark.parametrize(
    "body",
    [
        joined(some(X, 0, 27) + Y, some(OTHER, 27, 38)),
        joined(some(X, 1, 28) + Y, some(X, 28, 38)),
        joined(some(X, 0, 27) + Y, some(X, 26, 38)),
        joined(some(X, 0, 27) * Y, some(X, 27, 38)),
        joined(some(X, 0, 27) + relay.const(1.0), some(X, 27, 38)),
        joined(some(X, 27, 38), some(X, 0, 27) + Y),
    ],
    ids=["another image", "not the first", "overlapping", "a product", "a number", "the last channels"],
)
def test_what_stays(body: relay.Expr) -> None:
    """Everything else."""
    with tvm.target.Target("llvm"):
        assert_structural_equal(after(AddPartialResiduals(), body), typed(body))
