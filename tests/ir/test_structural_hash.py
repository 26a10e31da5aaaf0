"""The structural hash across processes."""

import os
import subprocess
import sys
from pathlib import Path

import tilewright
from tilewright.ir.expr import Var
from tilewright.ir.structural_hash import structural_hash

_PROGRAM = """
from tilewright.ir.buffer import decl_buffer
from tilewright.ir.expr import Var
from tilewright.ir.structural_hash import structural_hash
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import BufferStore, For
A, i = decl_buffer((8,), name="A"), Var("i")
print(structural_hash(PrimFunc([A], For(i, 0, 8, 0, BufferStore(A, A[i] * 2.5, [i]))).with_attr("key", "value")))
"""


def test_same_in_every_process() -> None:
    """A program without free variables has one hash, whatever Python's own hashes are seeded with."""
    source = str(Path(tilewright.__file__).parent.parent)
    found = {
        subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": source},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert 0 <= int(found.pop()) < 2**64


def test_values_spread() -> None:
    """A thousand different expressions have a thousand hashes."""
    x = Var("x")
    assert len({structural_hash(x * i + j) for i in range(2, 34) for j in range(1, 33)}) == 32 * 32
