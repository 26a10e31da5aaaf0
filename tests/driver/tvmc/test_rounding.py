"""What rounding explains, and what only a wrong kernel does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright import relay
from tilewright.driver import tvmc
from tilewright.driver.tvmc import validation
from tilewright.driver.tvmc.compiler import make_settings
from tilewright.driver.tvmc.first_difference import runnable_of
from tilewright.driver.tvmc.rounding import allowed_error
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op

RANDOM = np.random.default_rng(0)


def weights(*shape: int) -> relay.Constant:
    """A constant of random numbers."""
    return relay.const((RANDOM.standard_normal(shape) / np.sqrt(shape[-1])).astype("float32"))


def large_sum(x: Any) -> Any:
    """Many positive terms."""
    return relay.sum(relay.tile(relay.exp(x), (128, 8)))


def cancellation(x: Any) -> Any:
    """What is left when nearly equal numbers are subtracted."""
    large = x * relay.const(np.float32(1e4)) + relay.const(np.float32(1e5))
    return large / relay.const(np.float32(3)) * relay.const(np.float32(3)) - large


def variance_of_nearly_equal(x: Any) -> Any:
    """The mean square less the squared mean, and its root."""
    shifted = x * relay.const(np.float32(1e-3)) + relay.const(np.float32(10))
    spread = relay.mean(shifted * shifted, axis=1) - relay.power(
        relay.mean(shifted, axis=1), relay.const(np.float32(2))
    )
    return relay.sqrt(relay.maximum(spread, relay.const(np.float32(1e-12))))


def tiny(x: Any) -> Any:
    """Probabilities of almost zero, beside nothing larger."""
    return relay.sigmoid(relay.nn.dense(x, weights(8, 16)) - relay.const(np.float32(30)))


def deep(x: Any) -> Any:
    """Many layers."""
    for _ in range(12):
        x = relay.tanh(relay.nn.dense(x, weights(16, 16)))
    return x


def convolution(x: Any) -> Any:
    """With tiles of Winograd's where the processor prefers them."""
    image = relay.reshape(relay.tile(x, (1, 64)), (1, 16, 16, 16))
    return relay.nn.conv2d(image, weights(32, 16, 3, 3), padding=1)


def whole(x: Any) -> Any:
    """Numbers that have no errors: positions, and what they select."""
    return relay.cast(
        relay.floor(relay.cast(relay.argsort(x, axis=1), "float32") * relay.const(np.float32(2))), "int64"
    )


HARD = [large_sum, cancellation, variance_of_nearly_equal, tiny, deep, convolution, whole]


def validated(build: Callable[[Any], Any]) -> validation.Validation:
    """The verdict on a network of one input."""
    x = relay.var("x", shape=(4, 16))
    model = tvmc.TVMCModel(IRModule.from_expr(relay.Function([x], build(x))), {})
    settings = make_settings("llvm")
    return validation.validate(model, runnable_of(settings.compile(model.mod, {})), settings)


@pytest.mark.parametrize("build", HARD)
def test_networks_that_are_hard_and_right(build: Callable[[Any], Any]) -> None:
    """Their errors are large, or relative to little, and rounding explains them."""
    found = validated(build)
    assert found.agrees, found.as_json()


@pytest.mark.parametrize(
    ("build", "name", "change"),
    [
        (tiny, "sigmoid", lambda made: made * 1.001),
        (deep, "tanh", lambda made: made * 0.999),
        (large_sum, "exp", lambda made: made * 1.005),
    ],
)
def test_networks_with_a_wrong_kernel(
    build: Callable[[Any], Any], name: str, change: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of a thousandth in one operator is found, and the operator is named."""
    operator = Op.get(name)
    right = operator.get_attr("FTVMCompute")
    assert right is not None
    monkeypatch.setitem(operator._attributes, "FTVMCompute", (lambda *given: [change(right(*given)[0])], 10))
    found = validated(build)
    assert not found.agrees
    assert found.first is not None and found.first.operator == name


def test_whole_numbers_may_not_differ() -> None:
    """Unless rounding decides between them."""
    exact = np.array([1, 2, 3])
    assert allowed_error(exact, [exact.copy()], "int64") == 0
    assert allowed_error(exact, [np.array([1, 3, 3])], "int64") == 1
