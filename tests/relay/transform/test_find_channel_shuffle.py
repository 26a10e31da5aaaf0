"""FindChannelShuffle: the operator, what is none, and the layouts that it lets through."""

from __future__ import annotations

import numpy as np
import pytest
from tests.relay.transform.checks import after, operators, typed

import tilewright as tvm
from tilewright import relay
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay.transform import AlterOpLayout, FindChannelShuffle

X = relay.var("x", shape=(2, 12, 5, 4))


def dealt(
    data: relay.Expr, parts: tuple[int, ...], axes: tuple[int, ...], shape: tuple[int, ...]
) -> relay.Expr:
    """Split, permuted and joined again."""
    return relay.reshape(relay.transpose(relay.reshape(data, parts), axes), shape)


def test_three_operators_become_one() -> None:
    """Split into groups, swapped, joined."""
    made = after(FindChannelShuffle(), dealt(X, (2, 3, 4, 5, 4), (0, 2, 1, 3, 4), (2, 12, 5, 4)))
    assert_structural_equal(made, typed(relay.nn.contrib_channel_shuffle(X, 3)))


@pytest.mark.parametrize(
    ("parts", "axes", "shape"),
    [
        ((2, 3, 4, 5, 4), (0, 2, 1, 4, 3), (2, 12, 4, 5)),
        ((2, 3, 4, 5, 4), (0, 2, 1, 3, 4), (2, 4, 3, 20)),
        ((2, 3, 4, 4, 5), (0, 2, 1, 3, 4), (2, 12, 5, 4)),
        ((6, 2, 2, 5, 4), (0, 2, 1, 3, 4), (2, 12, 5, 4)),
    ],
    ids=["rows and columns too", "another shape", "rows cut otherwise", "the batch is dealt out"],
)
def test_what_is_no_shuffle_stays(
    parts: tuple[int, ...], axes: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    """Nothing changes."""
    given = dealt(X, parts, axes, shape)
    assert_structural_equal(after(FindChannelShuffle(), given), typed(given))


def unit() -> relay.Function:
    """Two branches of 32 channels, joined and shuffled, and halves that go on."""
    generator = np.random.default_rng(0)

    def convolved(data: relay.Expr) -> relay.Expr:
        weight = relay.const(generator.normal(size=(32, 32, 1, 1)).astype("float32"))
        return relay.nn.conv2d(data, weight, kernel_size=(1, 1), channels=32)

    x = relay.var("x", shape=(1, 32, 6, 6))
    joined = relay.concatenate([convolved(x), relay.nn.relu(convolved(x))], axis=1)
    mixed = dealt(joined, (1, 2, 32, 6, 6), (0, 2, 1, 3, 4), (1, 64, 6, 6))
    halves = relay.split(mixed, 2, axis=1)
    return relay.Function([x], relay.add(convolved(halves[0]), halves[1]))


def test_blocks_pass() -> None:
    """With the operator, layouts change at the ends alone; as a reshape it asks for NCHW in the middle."""
    with tvm.target.Target("llvm -mcpu=skylake-avx512"):
        found = operators(after([FindChannelShuffle(), AlterOpLayout()], unit()))
        plain = operators(after(AlterOpLayout(), unit()))
    of_weights = 3
    assert found.count("layout_transform") == 2 + of_weights
    assert plain.count("layout_transform") > 3 + of_weights


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=haswell"])
def test_the_numbers_stay(target: str) -> None:
    """Compiled with the pass and without it."""
    data = np.random.default_rng(1).normal(size=(1, 32, 6, 6)).astype("float32")
    results = []
    for disabled in ([], ["FindChannelShuffle"]):
        with tvm.transform.PassContext(opt_level=3, disabled_pass=disabled):
            executor = relay.create_executor("graph", tvm.IRModule.from_expr(unit()), target=target)
            results.append(executor.evaluate()(data).numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5, atol=1e-5)
