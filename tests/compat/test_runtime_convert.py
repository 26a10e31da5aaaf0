"""``runtime.convert``."""

import subprocess
import sys

import tilewright as tvm


def test_values_become_those_of_programs():
    """Numbers, sequences and dictionaries, as ``tvm.convert`` makes them."""
    assert tvm.runtime.convert(3).value == 3
    made = tvm.runtime.convert([1, 2.5, "text"])
    assert [getattr(item, "value", item) for item in made] == [1, 2.5, "text"]
    assert tvm.runtime.convert({"a": 1})["a"].value == 1


def test_it_loads_what_it_needs():
    """The function works where nothing else of the compiler is loaded yet."""
    code = "from tilewright.runtime import convert; assert convert(2).value == 2"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
