"""What a script cannot say gets an error with the file, the line and a caret under the place."""

# ruff: noqa: F821, RET504

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from tilewright import te
from tilewright.support.errors import ParseError
from tilewright.te.hybrid.script import HybridFunction
from tilewright.tir.script.source import source_of_text


def parse(body: str, **names: Any) -> Any:
    """The operation of a script ``f(a, b)`` with this body; ``a`` has shape (4, 6), ``b`` (4,) and type int32."""
    text = "def f(a, b):\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"
    source = source_of_text(text, "script.py")
    node = source.parse().body[0]
    namespace: dict[str, Any] = dict(names)
    exec(text, namespace)
    function = namespace["f"]
    assert isinstance(function, FunctionType)
    return HybridFunction(function, (source, node))(  # type: ignore[arg-type]
        te.placeholder((4, 6), name="a"), te.placeholder((4,), "int32", name="b")
    )


def test_error_shows_the_place() -> None:
    """Line, column and caret of the piece of syntax that is wrong."""
    with pytest.raises(ParseError) as raised:
        parse("c = output_tensor((4,))\nfor i in range(4):\n    c[i] = b[i] * missing\nreturn c")
    assert str(raised.value) == (
        "script.py:4:23: missing is not defined here; a name assigned in a loop ends with the loop's body\n"
        "            c[i] = b[i] * missing\n"
        "                          ^^^^^^^"
    )


def test_error_names_the_file_of_a_decorated_function() -> None:
    """The line is the one in the file, however deep the function stands in it."""

    @te.hybrid.script
    def wrong(a):
        while a[0] > 0:
            pass

    with pytest.raises(ParseError, match=r"test_statements.py:\d+:9: While cannot be used") as raised:
        wrong(te.placeholder((4,)))
    line = int(str(raised.value).split(":")[1])
    assert Path(__file__).read_text().splitlines()[line - 1].strip() == "while a[0] > 0:"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("b[0] = 1", "ends with the return of its output tensors"),
        ("return b", "tensor b is returned; output_tensor makes what can be"),
        ("c = output_tensor((4,))\nreturn c, c", "tensor c is returned twice"),
        ("c = output_tensor((4,))\nreturn c[0]", "tensor c is returned"),
        ("c = allocate((4,), 'float32', 'shared')\nreturn c", "output_tensor makes what can be"),
        ("for i in range(4):\n    return b", "return is the last statement"),
        ("for i in range(4):\n    c = output_tensor((4,))\nreturn c", "outside all loops"),
        ("for i in [b]:\n    b = 1\nreturn b", "b is a parameter or a loop variable"),
        ("for i in range(4):\n    i = 1\nreturn b", "i is a parameter or a loop variable"),
        ("for i in range(4):\n    for i in range(4):\n        pass\nreturn b", "another name"),
        ("for b[0] in range(4):\n    pass\nreturn b", "the variable of a loop is a name"),
        ("for i in range(2.5):\n    pass\nreturn b", "an integer is needed here, not 2.5"),
        ("for i in range(a[0, 0]):\n    pass\nreturn b", "an integer is needed here"),
        ("for i in range(0, 4, 0):\n    pass\nreturn b", "a constant other than zero"),
        ("for i in range():\n    pass\nreturn b", "range takes 1 to 3 arguments"),
        ("for i in const_range(b[0]):\n    pass\nreturn b", "known when the script is parsed"),
        ("for i in const_range(10 ** 9):\n    pass\nreturn b", "too many; use range"),
        ("for i in enumerate(b):\n    pass\nreturn b", "enumerate is neither a built-in function"),
        ("for i in b:\n    pass\nreturn b", "a loop runs over range, serial"),
        ("for i in grid(2, 3):\n    pass\nreturn b", "grid has 2 extents for 1 loop variables"),
        ("for i in bind(4, 4):\n    pass\nreturn b", "bind names a thread"),
        ("for i in range(4):\n    pass\nelse:\n    pass\nreturn b", "has no else"),
        ("for i in range(4):\n    t = b[i]\nb[0] = t\nreturn b", "t is not defined here"),
        ("if b[0] > 1:\n    t = b[0]\n    t += 1\nb[0] = t\nreturn b", "t may have no value here"),
        (
            "for i in range(4):\n    if i == 0:\n        t = 0\n    t += b[i]\nreturn b",
            "t may have no value here",
        ),
        ("t += 1\nreturn b", "t is not defined here"),
        ("outside = outside + 1\nreturn b", "outside is not defined here"),
        ("c = output_tensor((4,))\nc = 1\nreturn c", "c is tensor c and cannot be assigned again"),
        ("t = 1\nt = a\nreturn b", "t holds a number, not tensor a"),
        ("t = (b[0], 1)\nreturn b", "a tuple of values from memory cannot be stored"),
        ("x, y = 1, 2, 3\nreturn b", "2 names for 3 values"),
        ("a.shape = 1\nreturn b", "a name or an element of a tensor is assigned"),
        ("a[0] = 1\nreturn b", "only an element of a tensor can be stored"),
        ("b[0] = a\nreturn b", "a number is stored, not tensor a"),
        ("c = output_tensor((b[0],))\nreturn c", "an extent is an integer that is not negative"),
        ("c = output_tensor((-1,))\nreturn c", "an extent is an integer that is not negative, not -1"),
        ("c = output_tensor((4,), 4)\nreturn c", "dtype is a string, not 4"),
        ("c = output_tensor((4,), 'floaty')\nreturn c", "not a data type"),
        ("c = output_tensor((4,), 'int32', 'local')\nreturn c", "output_tensor takes shape, dtype"),
        ("c = output_tensor()\nreturn c", "output_tensor needs a shape"),
        ("assert len(b) == 5, 'four is not five'\nreturn b", "four is not five"),
        ("assert b[0] > 0, 4\nreturn b", "the message of an assertion is a string"),
        ("b[0]\nreturn b", "this expression has no effect"),
    ],
)
def test_statements_that_cannot_be(body: str, message: str) -> None:
    """Each says what is wrong."""
    with pytest.raises(ParseError) as raised:
        parse(body, outside=1)
    assert message in str(raised.value)
    assert str(raised.value).startswith("script.py:")


def test_computed_inputs_are_not_written() -> None:
    """What another operation computed cannot be written: others read it too."""

    @te.hybrid.script
    def clear(a):
        for i in range(4):
            a[i] = 0.0
        b = output_tensor((4,))
        return b

    a = te.placeholder((4,))
    with pytest.raises(ParseError, match="the result of another operation"):
        clear(te.compute((4,), lambda i: a[i] + 1.0))


def test_a_script_that_calls_itself() -> None:
    """Calls without an end are refused."""

    @te.hybrid.script
    def forever(a):
        b = forever(a)
        return b

    with pytest.raises(ParseError, match="calls itself without an end"):
        forever(te.placeholder((4,)))


def test_wrong_call_of_a_script() -> None:
    """A call with too few arguments is shown in the caller."""
    inner: Callable[..., Any] = te.hybrid.script(test_wrong_call_of_a_script)

    @te.hybrid.script
    def outer(a):
        b = inner(a, a)
        return b

    with pytest.raises(ParseError, match="too many positional arguments\n    .*inner\\(a, a\\)"):
        outer(te.placeholder((4,)))
