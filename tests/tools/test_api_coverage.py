"""The measure of how much of TVM's interface is there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from api_coverage import ABSENT, Entry, find, read_listing, same_parameters

LISTING = """\
tvm.te.operation
  placeholder(shape, dtype=None, name='placeholder')
  compute(shape, function, name='compute')

tvm.te.tensor
  class Tensor(DataProducer, _expr.ExprOp)
    ndim()
    __call__(*indices)

tvm.autotvm.env
  class Nothing(object)
"""


def test_reading_a_listing() -> None:
    """Sections, classes, members."""
    entries = list(read_listing(LISTING))
    assert [entry.path for entry in entries] == [
        "tvm.te.operation.placeholder",
        "tvm.te.operation.compute",
        "tvm.te.tensor.Tensor",
        "tvm.te.tensor.Tensor.ndim",
        "tvm.te.tensor.Tensor.__call__",
        "tvm.autotvm.env.Nothing",
    ]
    assert entries[2].parameters is None and entries[3].owner == "Tensor"


def test_what_counts() -> None:
    """A name resolves where it is; a parameter of another name is a difference; placeholders do not count."""
    found = {entry.path: (entry, find(entry)) for entry in read_listing(LISTING)}
    assert found["tvm.autotvm.env.Nothing"][1] is ABSENT
    assert same_parameters(*found["tvm.te.operation.placeholder"])
    assert not same_parameters(*found["tvm.te.operation.compute"])
    assert same_parameters(*found["tvm.te.tensor.Tensor"])
    assert same_parameters(*found["tvm.te.tensor.Tensor.ndim"])
    assert same_parameters(*found["tvm.te.tensor.Tensor.__call__"])


@pytest.mark.parametrize(
    ("parameters", "same"),
    [
        ("a, b=1", True),
        ("a", True),
        ("a, b=2", False),
        ("b, a", False),
        ("a, b=1, c=2", False),
        ("a=0", False),
    ],
)
def test_parameters(parameters: str, same: bool) -> None:
    """Names, order and defaults; more with defaults may follow."""

    def function(a: Any, b: int = 1) -> None: ...

    assert same_parameters(Entry("tvm", "", "function", parameters), function) is same


def test_the_program(tmp_path: Path) -> None:
    """The table as JSON, with the names that a trace has."""
    listing, trace = tmp_path / "listing.txt", tmp_path / "trace.txt"
    listing.write_text(LISTING)
    trace.write_text("tvm.te.operation.placeholder\n")
    program = Path(__file__).resolve().parents[2] / "tools" / "api_coverage.py"
    command = [sys.executable, str(program), "--json", "--listing", str(listing), "--trace", str(trace)]
    made = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert made["total"] == {"names": 6, "resolve": 5, "same": 4, "called": 1}
    assert made["missing"] == ["tvm.autotvm.env.Nothing"]
