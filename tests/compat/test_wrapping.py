"""Whether unsigned integers wrap around."""

import tilewright as tvm
from tilewright import topi


def test_unsigned_integers_wrap_around() -> None:
    """They do on CPUs."""
    assert topi.random.threefry_test_wrapping(tvm.target.Target("llvm"), tvm.cpu(0))
