"""The names of the package: each loads on first use, and ``import tilewright`` alone loads next to nothing."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import tilewright as tvm


@pytest.mark.parametrize("name", sorted(set(dir(tvm)) - {"annotations", "TYPE_CHECKING", "Any"}))
def test_every_listed_name_is_there(name: str) -> None:
    """What ``dir`` lists can be had, and is the same object each time."""
    assert getattr(tvm, name) is getattr(tvm, name)


@pytest.mark.parametrize(
    "name",
    [
        "te",
        "tir",
        "arith",
        "target",
        "runtime",
        "nd",
        "ir",
        "transform",
        "driver",
        "contrib",
        "testing",
        "error",
        "instrument",
        "script",
        "build",
        "lower",
        "cpu",
        "cuda",
        "gpu",
        "device",
        "IRModule",
        "TVMError",
        "DataType",
        "register_func",
        "get_global_func",
        "convert",
    ],
)
def test_the_names_that_programs_use(name: str) -> None:
    """They are listed."""
    assert name in dir(tvm)


def test_names_mean_what_they_say() -> None:
    """A few of them, by what they are."""
    assert tvm.TVMError is tvm.TilewrightError is tvm.error.TilewrightError
    assert tvm.nd is sys.modules["tilewright.runtime.ndarray"]
    assert tvm.build is tvm.driver.build and tvm.lower is tvm.driver.lower
    assert tvm.cpu(0).device_type == 1 and tvm.cuda(1).device_id == 1
    assert tvm.convert(3).value == 3


def test_names_that_are_not_there() -> None:
    """Parts of a later version say so; anything else is not an attribute."""
    with pytest.raises(AttributeError, match=r"contrib\.rocblas\.matmul is not in this version"):
        tvm.contrib.rocblas.matmul
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        tvm.nonsense


def test_importing_loads_next_to_nothing() -> None:
    """No numpy, no llvmlite, no layer of the compiler: only what answers for TVM's names."""
    program = (
        "import sys, json, tilewright; "
        "print(json.dumps([name for name in sys.modules if name.split('.')[0] in ('tilewright', 'numpy', 'llvmlite')]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = [name for name in json.loads(done.stdout) if not name.startswith("tilewright.support")]
    assert sorted(loaded) == [
        "tilewright",
        "tilewright.compat",
        "tilewright.compat.composite_targets",
        "tilewright.compat.finder",
        "tilewright.compat.ignored_options",
        "tilewright.compat.modules",
        "tilewright.compat.not_there",
        "tilewright.compat.providers",
        "tilewright.compat.test_attrs",
    ]
