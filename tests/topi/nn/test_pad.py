"""Padding, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.support.errors import OpAttributeInvalid
from tilewright.topi.utils import InvalidShapeError

DATA = np.arange(24, dtype="float32").reshape(2, 3, 4)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    ("before", "after", "value"),
    [((0, 1, 2), None, 0.0), ((1, 0, 3), (0, 2, 1), 7.5), ((0, 0, 0), (0, 0, 0), 1.0)],
)
def test_with_a_value(
    before: tuple[int, ...], after: tuple[int, ...] | None, value: float, symbolic: bool
) -> None:
    """Each dimension by its own amounts; those after are those before unless they are given."""
    amounts = list(zip(before, after or before, strict=True))
    made = apply(topi.nn.pad, DATA, pad_before=before, pad_after=after, pad_value=value, symbolic=symbolic)
    np.testing.assert_array_equal(made, np.pad(DATA, amounts, constant_values=value))


def test_negative_amounts_crop() -> None:
    """A crop on one side, padding on the other."""
    made = apply(topi.nn.pad, DATA, pad_before=(0, -1, 1), pad_after=(0, 0, -2))
    np.testing.assert_array_equal(made, np.pad(DATA[:, 1:, :2], [(0, 0), (0, 0), (1, 0)]))


def test_the_value_may_be_a_tensor() -> None:
    """A tensor of no dimensions."""
    data, value = te.placeholder((2,), name="data"), te.placeholder((), name="value")
    padded = topi.nn.pad(data, (1,), (1,), value)
    made = apply(lambda d, v: topi.nn.pad(d, (1,), (1,), v), DATA[0, 0, :2].copy(), np.float32(9))
    assert padded.op.tag == "injective,pad" and made.tolist() == [9, 0, 1, 9]


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(("mode", "name"), [("SYMMETRIC", "symmetric"), ("REFLECT", "reflect")])
def test_mirrors(mode: str, name: str, symbolic: bool) -> None:
    """The edge is repeated, or is the mirror."""
    made = apply(
        topi.nn.mirror_pad, DATA, pad_before=(1, 2, 3), pad_after=(0, 1, 2), mode=mode, symbolic=symbolic
    )
    np.testing.assert_array_equal(made, np.pad(DATA, [(1, 0), (2, 1), (3, 2)], mode=name))


def test_mistakes_are_refused() -> None:
    """Amounts for other dimensions, mirrors larger than what they show."""
    data = te.placeholder((2, 3))
    with pytest.raises(InvalidShapeError, match="pad_before needs one number for each of the 2"):
        topi.nn.pad(data, (1,))
    with pytest.raises(InvalidShapeError, match="cannot add 2 elements to a dimension of size 2"):
        topi.nn.mirror_pad(data, (2, 0), mode="REFLECT")
    with pytest.raises(OpAttributeInvalid, match="SYMMETRIC and REFLECT"):
        topi.nn.mirror_pad(data, (1, 0), mode="EDGE")
