"""Every public name of ``topi.transform`` is there, and is what the package exports."""

import pytest

from tilewright import topi
from tilewright.topi import transform


@pytest.mark.parametrize("name", transform.__all__)
def test_exported(name):
    """The package offers the same function under the same name."""
    assert getattr(topi, name) is getattr(transform, name)
