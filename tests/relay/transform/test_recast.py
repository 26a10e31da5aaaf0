"""recast: chosen operators in another element type."""

from __future__ import annotations

import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.testing import run_infer_type
from tilewright.relay.transform import recast
from tilewright.support.errors import TilewrightError


def convolution(data: relay.Expr, weight: relay.Expr, out_dtype: str = "") -> relay.Expr:
    """One that keeps the extents of its data."""
    return relay.nn.conv2d(data, weight, padding=(1, 1), out_dtype=out_dtype)


def variables() -> tuple[relay.Var, relay.Var]:
    """Data and a weight."""
    return relay.var("x", shape=(8, 8, 8, 8)), relay.var("w", shape=(8, 8, 3, 3))


def same(found: relay.Expr, expected: relay.Expr) -> None:
    """The two are one program."""
    tvm.ir.assert_structural_equal(run_infer_type(found), run_infer_type(expected))


def test_a_layer() -> None:
    """Its arguments are cast, its sums have the type asked for, and its result is what it was."""
    x, w = variables()
    made = recast(relay.Function([x, w], convolution(x, w)), "int8", "int32")
    inner = convolution(relay.cast(x, "int8"), relay.cast(w, "int8"), "int32")
    same(made, relay.Function([x, w], relay.cast(inner, "float32")))


@pytest.mark.parametrize("skipped", [[0], [-2]])
def test_layers_that_stay(skipped: list[int]) -> None:
    """Counted from the first, or backwards from the last."""
    x, w = variables()
    made = recast(
        relay.Function([x, w], convolution(convolution(x, w), w)), "int8", "int32", skip_layers=skipped
    )
    inner = convolution(relay.cast(convolution(x, w), "int8"), relay.cast(w, "int8"), "int32")
    same(made, relay.Function([x, w], relay.cast(inner, "float32")))


def test_tuples_are_cast_by_field() -> None:
    """A concatenation has no type of sums: its result is cast back from the type of its arguments."""
    x, y = relay.var("x", shape=(1, 3)), relay.var("y", shape=(1, 3))
    made = recast(relay.Function([x, y], relay.concatenate([x, y], 0)), "int8", "int32", ops=["concatenate"])
    joined = relay.concatenate([relay.cast(x, "int8"), relay.cast(y, "int8")], 0)
    same(made, relay.Function([x, y], relay.cast(joined, "float32")))
    with pytest.raises(TilewrightError, match="not one tensor"):
        recast(relay.Function([x], relay.split(x, 3, 1).astuple()), "int8", "int8", ops=["split"])
