"""Emulated words do what machine code does, in the corners too."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright.support.errors import TargetError
from tilewright.te.hybrid.language import EMULATED, EXPRESSIONS, max_num_threads


@pytest.mark.parametrize(
    ("value", "rounded"), [(0.5, 1.0), (-0.5, -1.0), (2.5, 3.0), (0.49999997, 0.0), (-1.2, -1.0)]
)
def test_round_goes_away_from_zero(value: float, rounded: float) -> None:
    """Halfway between two integers it is the one farther from zero."""
    made = EMULATED["round"](np.float32(value))
    assert made == rounded and made.dtype == "float32"


def test_casts_wrap_as_machine_numbers_do() -> None:
    """A cast gives a number of its type, without an error for what does not fit."""
    assert EMULATED["uint8"](-1) == 255
    assert EMULATED["int8"](np.int32(200)) == -56
    assert EMULATED["int32"](-3.7) == -3
    assert EMULATED["float32"](1).dtype == "float32"


def test_bits() -> None:
    """Bits are counted in the number's own width."""
    assert EMULATED["popcount"](np.int32(-1)) == 32
    assert EMULATED["popcount"](np.uint8(255)) == 8
    assert EMULATED["clz"](np.int32(1)) == 31


@pytest.mark.parametrize(("a", "b"), [(7, 2), (-7, 2), (7, -2), (-7, -2)])
def test_truncated_division(a: int, b: int) -> None:
    """The quotient rounds towards zero, and the remainder fits it."""
    assert EMULATED["truncdiv"](a, b) == int(a / b)
    assert EMULATED["truncmod"](a, b) == a - int(a / b) * b


def test_every_expression_is_emulated() -> None:
    """What can be compiled can be run in Python."""
    assert set(EXPRESSIONS) <= set(EMULATED)


def test_memory_starts_at_zero() -> None:
    """New memory has the type and shape that was asked for."""
    made = EMULATED["allocate"]((2, 3), "float16", "shared")
    assert made.shape == (2, 3) and made.dtype == "float16" and not made.any()
    assert EMULATED["output_tensor"](4, np.dtype("int64")).shape == (4,)


def test_threads_of_the_target() -> None:
    """The target of the ``with`` block says how many threads there are; without one it is an error."""
    with tvm.target.Target("cuda"):
        assert max_num_threads(True) == 1024
    with pytest.raises(TargetError, match="needs a target"):
        max_num_threads(True)
    with pytest.raises(TargetError, match="no target is set"):
        max_num_threads(False)
