"""Mistakes in scripts: where they are, and who is told."""

import pytest

from tilewright.ir.diagnostics import override_renderer
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.support.errors import ParseError

HEAD = """
@T.prim_func
def f(a: T.handle) -> None:
    A = T.match_buffer(a, (16, 16))
"""

BLOCK = (
    HEAD
    + """
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
"""
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "    T.max(1, 2)\n", "no effect"),
        (HEAD + "    T.realize(A[0:16, 0:16], '')\n", "nothing follows"),
        (HEAD + "    T.Assert(0, '')\n    T.evaluate(0)\n", "bool"),
        (HEAD + "    A[0, 0] = A[0, 0.5]\n", "an index is an integer"),
        (HEAD + "    A[0, 0] = A[0:2, 0]\n", "along the last dimension"),
        (HEAD + "    A[0, 0] = A[0, 0:2]\n", "a vector of 2 is assigned to 1"),
        (HEAD + "    A[0, 0] = A[0, 3:4]\n", r"a slice is not one element: write A\[0, 3\]"),
        (BLOCK + "            vi = T.axis.S(16, j)\n", "has an axis vi already"),
        (BLOCK + "            vk = T.axis.S(16)\n", "value is missing"),
        (BLOCK + "            T.reads(A[0, 0])\n            T.reads(A[0, 1])\n", "what it reads already"),
        (BLOCK + "            T.writes(A[0, 0])\n            T.writes(A[0, 1])\n", "what it writes already"),
        (BLOCK + "            T.where(i < 2)\n            T.where(j < 2)\n", "a predicate already"),
        (BLOCK + "            T.block_attr({})\n            T.block_attr({})\n", "its attributes already"),
        (BLOCK + "            A = T.alloc_buffer((4,))\n            T.evaluate(0)\n", "a buffer A already"),
        (
            BLOCK + "            S = T.match_buffer(A[vi, 0:4], (5,))\n            S[0] = 1.0\n",
            "has the shape",
        ),
    ],
)
def test_mistakes(text, message):
    """Each is an error at its line, which the renderer of diagnostics is told."""
    told = []
    override_renderer(lambda context: told.extend(context.diagnostics))
    try:
        with pytest.raises(ParseError, match=message):
            from_source(text)
    finally:
        override_renderer(None)
    (one,) = told
    last = [number for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    assert one.span.line in last[-2:]


def test_arguments_that_nobody_knows():
    """TVM passes over an argument that there is none of; here a warning says so."""
    text = HEAD + "    B = T.alloc_buffer((4,), dtypes='float16')\n    B[0] = A[0, 0]\n"
    with pytest.warns(UserWarning, match="no argument dtypes"):
        function = from_source(text)
    assert function.body.block.alloc_buffers[0].dtype == "float32"


@T.prim_func
def loops() -> None:
    for i in T.parallel(0, 2):
        for j in T.thread_binding(0, 4, "threadIdx.x"):
            T.evaluate(i + j)


def test_places():
    """Loops, their variables and their bounds know where they were written."""
    outer = loops.body
    inner = outer.body
    assert inner.span.line == outer.span.line + 1 and inner.thread_binding.thread_tag == "threadIdx.x"
    assert (outer.loop_var.span.column, outer.min.span.column, outer.extent.span.column) == (9, 25, 28)
    assert inner.body.value.span.column == 24


def test_views_within_views():
    """Regions that a script leaves out are found through views."""
    made = from_source(
        HEAD
        + """
    for i in range(0, 16):
        with T.block():
            A0 = T.match_buffer(A[i, 0:16], (16))
            with T.block():
                for j in range(0, 16):
                    A0[j] = 1.0
"""
    )
    block = made.body.block.body.body.block
    (written,) = block.writes
    assert [str(one.extent) for one in written.region] == ["1", "16"]


def test_indices_from_memory():
    """What memory says may be any index."""
    made = from_source(HEAD + "    with T.block():\n        A[0, 0] = A[T.cast(A[0, 0], 'int32'), 1]\n")
    wide = made.body.block.body.block.reads[0].region if hasattr(made.body.block.body, "block") else None
    assert wide is None or [str(one.extent) for one in wide] == ["16", "16"]
