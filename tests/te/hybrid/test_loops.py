"""Which loops of a script may run their iterations at the same time."""

from __future__ import annotations

from typing import Any

import pytest
from tests.te.hybrid.test_statements import parse

from tilewright.ir.expr import IterVar

KINDS = {
    IterVar.DataPar: "free",
    IterVar.Ordered: "ordered",
    IterVar.Parallelized: "parallel",
    IterVar.Vectorized: "vectorized",
    IterVar.Unrolled: "unrolled",
}


def kinds(loops: str) -> dict[str, str]:
    """The kind of each loop of a script, by its variable; the output ``c`` has shape (4, 6)."""
    operation: Any = parse(f"c = output_tensor((4, 6))\n{loops}\nreturn c").op
    return {axis.var.name: KINDS[axis.iter_type] for axis in operation.axis}


@pytest.mark.parametrize(
    ("loops", "expected"),
    [
        ("for i in range(4):\n    for j in range(6):\n        c[i, j] = a[i, j]", {"i": "free", "j": "free"}),
        ("for i in range(4):\n    for k in range(6):\n        c[i, 0] += a[i, k]", {"i": "free", "k": "ordered"}),
        ("for i in range(4):\n    s = 0.0\n    for k in range(6):\n        s += a[i, k]\n    c[i, 0] = s",
         {"i": "free", "k": "ordered"}),
        ("s = 0.0\nfor i in range(4):\n    s += a[i, 0]\nc[0, 0] = s", {"i": "ordered"}),
        ("for i in range(3):\n    for j in range(6):\n        c[i + 1, j] = c[i, j] + a[i, j]",
         {"i": "ordered", "j": "free"}),
        ("for i in range(2):\n    for j in range(6):\n        c[i + 2, j] = c[i, j]", {"i": "free", "j": "free"}),
        ("for i in range(4):\n    for j in range(5):\n        c[i, j] = c[i, j + 1]", {"i": "free", "j": "ordered"}),
        ("for i in range(3):\n    for j in range(5):\n        c[i + 1, j] = c[i, j + 1]",
         {"i": "ordered", "j": "free"}),
        ("for i in range(4):\n    if i == 2:\n        c[0, 0] = a[i, 0]", {"i": "free"}),
        ("for i in range(4):\n    c[b[i], 0] = a[i, 0]", {"i": "free"}),
        ("for i in range(4):\n    for j in range(i):\n        c[j, 0] = a[i, j]", {"i": "free", "j": "free"}),
        ("for i in range(4):\n    t = allocate((2,))\n    t[0] = a[i, 0]\n    c[i, 0] = t[0]", {"i": "free"}),
        ("for i in parallel(4):\n    for j in vectorize(6):\n        c[i, j] = a[i, j]",
         {"i": "parallel", "j": "vectorized"}),
        ("for i in unroll(4):\n    c[0, 0] += a[i, 0]", {"i": "unrolled"}),
    ],
)  # fmt: skip
def test_kinds(loops: str, expected: dict[str, str]) -> None:
    """A loop is ordered where its iterations certainly depend on one another."""
    assert kinds(loops) == expected


def test_shared_expressions_are_looked_at_once() -> None:
    """A name stands for its expression; names of names do not make the work grow with their number's power."""
    names = "\n".join(f"    k{step} = k{step - 1} * k{step - 1} % 7" for step in range(1, 60))
    assert kinds(f"for i in range(4):\n    k0 = i\n{names}\n    c[i, k59 % 6] = a[i, 0]") == {"i": "free"}
