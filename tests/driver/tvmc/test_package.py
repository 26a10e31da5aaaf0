"""``driver.tvmc`` itself."""

import subprocess
import sys

import pytest

import tilewright as tvm
from tilewright.driver import tvmc


def test_names_resolve():
    """Everything that is listed is there, and what is not raises AttributeError."""
    for name in tvmc.__all__:
        assert getattr(tvmc, name).__doc__
        assert name in dir(tvmc)
    assert tvm.driver.tvmc is tvmc
    with pytest.raises(AttributeError, match="nothing"):
        tvmc.nothing


def test_naming_it_loads_no_compiler():
    """The command line starts without the graph level: other commands do not pay for it."""
    program = "import sys, tilewright.driver.cli; print('tilewright.relay' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
