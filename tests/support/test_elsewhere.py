"""Names that another module defines."""

import pytest

from tilewright.ir import base
from tilewright.support.elsewhere import names_elsewhere


def test_names_come_from_their_places() -> None:
    """The very object of the other module; other names are not attributes."""
    find = names_elsewhere("here", {"sqrt": "math"})
    assert find("sqrt") is __import__("math").sqrt
    with pytest.raises(AttributeError, match="module 'here' has no attribute 'cos'"):
        find("cos")


def test_a_module_that_uses_it() -> None:
    """TVM has structural equality in ``ir.base``."""
    assert base.structural_equal(1, 1)
    assert not hasattr(base, "nonsense")
