"""SplitDilation: images of every d-th pixel, where Winograd makes up for the layout transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.transform.checks import after, operators, typed

import tilewright as tvm
from tilewright import relay
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay.transform import SplitDilation

TARGET = "llvm -mcpu=haswell"


def convolution(extents: tuple[int, int], steps: tuple[int, int], **attributes: Any) -> relay.Function:
    """Of 64 channels to 48, with a bias and an activation."""
    generator = np.random.default_rng(0)
    data = relay.var("data", shape=(1, 64, *extents))
    weight = relay.const(generator.standard_normal((48, 64, 3, 3)).astype("float32") / 24)
    made = relay.nn.conv2d(data, weight, **{"dilation": steps, "padding": steps, **attributes})
    bias = relay.const(generator.standard_normal((48, 1, 1)).astype("float32"))
    return relay.Function([data], relay.nn.relu(relay.add(made, bias)))


@pytest.mark.parametrize(
    ("extents", "steps"),
    [((28, 28), (2, 2)), ((29, 31), (2, 2)), ((32, 27), (4, 3)), ((24, 24), (1, 2))],
    ids=["whole pictures", "an odd extent", "other steps each way", "along one axis"],
)
def test_the_pictures_give_the_same(extents: tuple[int, int], steps: tuple[int, int]) -> None:
    """As plain convolutions, on the interpreter and compiled."""
    given = convolution(extents, steps)
    with tvm.target.Target(TARGET):
        made = after(SplitDilation(), given)
    calls: list[relay.Call] = []
    relay.analysis.post_order_visit(
        made, lambda one: calls.append(one) if isinstance(one, relay.Call) else None
    )
    (found,) = [one for one in calls if one.op.name == "nn.conv2d"]
    assert tuple(found.attrs.dilation) == (1, 1)
    assert int(found.checked_type.shape[0]) == steps[0] * steps[1]
    data = np.random.default_rng(1).standard_normal((1, 64, *extents)).astype("float32")
    expected = relay.create_executor("debug", tvm.IRModule.from_expr(given)).evaluate()(data).numpy()
    split = relay.create_executor("debug", tvm.IRModule.from_expr(made)).evaluate()(data).numpy()
    np.testing.assert_allclose(split, expected, rtol=0, atol=1e-4)
    with tvm.transform.PassContext(opt_level=3):
        compiled = relay.create_executor("graph", tvm.IRModule.from_expr(given)).evaluate()(data).numpy()
    np.testing.assert_allclose(compiled, expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    "given",
    [
        convolution((28, 28), (1, 1)),
        convolution((28, 28), (2, 2), strides=(2, 2)),
        convolution((28, 28), (2, 2), padding=(0, 0)),
        convolution((14, 14), (12, 12)),
    ],
    ids=["no dilation", "strides", "no padding", "pictures of four pixels"],
)
def test_what_stays(given: relay.Function) -> None:
    """Other convolutions, and those that would not be faster."""
    with tvm.target.Target(TARGET):
        assert_structural_equal(after(SplitDilation(), given), typed(given))


def test_other_targets_keep_theirs() -> None:
    """Graphics processors do as they like."""
    given = convolution((28, 28), (2, 2))
    with tvm.target.Target("cuda"):
        assert "transpose" not in operators(after(SplitDilation(), given))
