"""The polynomials that stand for erf and tanh, before they are rounded to float32."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tilewright.codegen.llvm.math.pieces import Pieces


@pytest.mark.parametrize(
    "pieces",
    [
        Pieces(math.erf, 16, 17 / 64, 5, 3.9375),
        Pieces(math.erf, 8, 17 / 32, 7, 3.9375),
        Pieces(math.tanh, 16, 39 / 64, 7, 9.25),
    ],
    ids=["erf of 16", "erf of 8", "tanh of 16"],
)
def test_polynomials_fit(pieces):
    """Each interval's polynomial is within a few parts in 10**8 of the function, relative to it, from zero on."""
    coefficients = np.array(pieces.tables())
    assert coefficients.shape == (pieces.degree + 1, pieces.count)
    x = np.concatenate([np.geomspace(1e-30, 0.1, 500), np.linspace(0.1, pieces.limit, 20000)])
    place = np.rint(x / pieces.step).astype(int)
    assert place.max() == pieces.count - 1
    value = np.zeros_like(x)
    for row in coefficients:
        value = value * (x - place * pieces.step) + row[place]
    exact = np.array([pieces.function(number) for number in x])
    np.testing.assert_allclose(value, exact, rtol=6e-8)


def test_the_first_piece_is_odd():
    """Around zero there are no even powers: the sign of zero and relative accuracy depend on it."""
    tables = Pieces(math.tanh, 4, 0.5, 5, 1.5).tables()
    assert [row[0] for row in tables][1::2] == [0.0, 0.0, 0.0]
    assert tables[4][0] == pytest.approx(1.0, abs=1e-6)
