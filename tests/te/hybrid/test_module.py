"""``te.hybrid.build`` writes a schedule as a script that runs, saves and loads, and that can do nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.te.hybrid.checks import close

import tilewright as tvm
from tilewright import te
from tilewright.support.errors import LoweringError, ParseError
from tilewright.te.hybrid import HybridModule, build


def scheduled() -> tuple[te.Schedule, list[te.Tensor], te.Tensor]:
    """A matrix product with a producer inside its loops."""
    n = te.var("n")
    a, b = te.placeholder((n, 8), name="A"), te.placeholder((8, 6), name="B")
    doubled = te.compute((n, 8), lambda i, j: a[i, j] * 2.0, name="doubled")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((n, 6), lambda i, j: te.sum(doubled[i, k] * b[k, j], axis=k), name="C")
    made = te.create_schedule(c.op)
    outer, _ = made[c].split(c.op.axis[0], 4)
    made[doubled].compute_at(made[c], outer)
    return made, [a, b], c


def operands() -> tuple[np.ndarray, np.ndarray]:
    """Two matrices for it."""
    random = np.random.default_rng(0)
    return random.random((10, 8), "float32"), random.random((8, 6), "float32")


PRODUCT = """\
def product(A, B):
    n = A.shape[0]
    C = output_tensor((n, 6), "float32")
    for i_outer in range((n + 3) // 4):
        doubled = allocate((4, 8), "float32", "global")
        for i in range(4):
            for j in range(8):
                if likely(i + i_outer * 4 < n):
                    doubled[i, j] = A[i + i_outer * 4, j] * 2.0
        for i_inner in range(4):
            for j_1 in range(6):
                if likely(i_outer * 4 + i_inner < n):
                    C[i_outer * 4 + i_inner, j_1] = 0.0
                for k in range(8):
                    if likely(i_outer * 4 + i_inner < n):
                        C[i_outer * 4 + i_inner, j_1] = C[i_outer * 4 + i_inner, j_1] + doubled[i_inner, k] * B[k, j_1]
    return C
"""


def test_source() -> None:
    """The text is Python in the words of the language; sizes come from the shapes, boxes of memory start at zero."""
    made, inputs, c = scheduled()
    module = build(made, inputs, [c], "product")
    assert module.get_source() == PRODUCT
    x, y = operands()
    close(module(x, y), x * 2 @ y)


def test_called_with_tensors() -> None:
    """The printed script is a script: called with tensors it is an operation again."""
    made, inputs, c = scheduled()
    module = build(made, inputs, c)
    a, b = te.placeholder((10, 8), name="A"), te.placeholder((8, 6), name="B")
    again = module(a, b)
    x, y = operands()
    found = np.zeros((10, 6), "float32")
    tvm.build(te.create_schedule(again.op), [a, b, again], "llvm")(x, y, found)
    close(found, x * 2 @ y)


def test_save_and_load(tmp_path: Path) -> None:
    """A saved module is a file of Python text that loads as the same module."""
    made, inputs, c = scheduled()
    module = build(made, inputs, [c], "product")
    module.save(str(tmp_path / "product"))
    assert [path.name for path in tmp_path.iterdir()] == ["product.py"]
    loaded = HybridModule()
    with pytest.raises(ParseError, match="is empty"):
        loaded(np.ones(2))
    loaded.load(str(tmp_path / "product.py"))
    assert loaded.name == "product" and loaded.get_source() == module.get_source()
    x, y = np.ones((3, 8), "float32"), np.ones((8, 6), "float32")
    close(loaded(x, y), x * 2 @ y)


def test_text_that_is_nested_too_deeply() -> None:
    """It is refused when it is read, unless this Python can run it: newer ones can."""
    for count in (1500, 100_000):
        text = f"def f(a):\n    return {'+'.join(['a'] * count)}\n"
        try:
            module = HybridModule(text)
        except ParseError as refused:
            message = str(refused)
        else:
            np.testing.assert_array_equal(module(np.ones(2, "int32")), [count, count])
            continue
        assert "nested too deeply" in message


@pytest.mark.parametrize(
    "text",
    [
        "import os\ndef f(a):\n    return a",
        "def f(a):\n    import os\n    return a",
        "def f(a):\n    return open('file')",
        "def f(a):\n    return a.tofile('file')",
        "def f(a):\n    return a.__class__",
        "def f(a):\n    return (lambda: 1)()",
        "def f(a):\n    return f'{a}'",
        "def f(a):\n    while True:\n        pass",
        "@print\ndef f(a):\n    return a",
        "def f(a=print(1)):\n    return a",
        "f = 1",
        "def f(a:\n    return a",
    ],
)
def test_text_that_is_no_script(text: str) -> None:
    """A text that could do more than compute is not run."""
    with pytest.raises(ParseError):
        HybridModule(text)


def test_builtins_are_out_of_reach() -> None:
    """A name that is not a word of the language does not exist in a module."""
    module = HybridModule("def f(a):\n    b = print\n    return b")
    with pytest.raises(NameError):
        module(np.ones(2))


def test_wrong_name() -> None:
    """A text must define the function that it is named for."""
    with pytest.raises(ParseError, match="the text defines f, not g"):
        HybridModule("def f(a):\n    return a", "g")


def test_what_cannot_be_written() -> None:
    """Statements on buffers have no words in the language."""
    a = te.placeholder((4,), name="a")
    b = te.extern((4,), [a], lambda ins, outs: tvm.tir.call_packed("f", ins[0], outs[0]), name="b")
    with pytest.raises(LoweringError, match="cannot be written in hybrid script"):
        build(te.create_schedule(b.op), [a], [b])
    with pytest.raises(LoweringError, match="a hybrid function takes tensors and variables, not 3"):
        build(te.create_schedule(b.op), [3], [b])
