"""Arrays and maps."""

import pytest

from tilewright.ir import operators
from tilewright.ir.container import Array, Map
from tilewright.ir.convert import convert
from tilewright.ir.expr import EQ, IntImm, IterVar, StringImm, Var
from tilewright.runtime.packed_func import PackedFunc
from tilewright.support.errors import ExpressionError


def test_array() -> None:
    """An array is an immutable sequence; its slices and sums are arrays."""
    array = Array([1, 2, 3])
    assert array[0] == 1 and array[-1] == 3 and len(array) == 3 and list(array) == [1, 2, 3]
    assert isinstance(array[1:], Array) and array[1:] == (2, 3)
    assert isinstance(array + [4], Array) and [0] + array == (0, 1, 2, 3)
    assert repr(array) == "[1, 2, 3]" and repr(Array(["a"])) == '["a"]'
    with pytest.raises(IndexError):
        array[3]
    with pytest.raises(TypeError):
        array[0] = 5  # type: ignore[index]


def test_map() -> None:
    """A map is immutable, and a string constant finds what the string finds."""
    x = Var("x")
    made = Map({"a": 1, x: 2})
    assert made["a"] == 1 and made[x] == 2 and made[StringImm("a")] == 1
    assert "a" in made and StringImm("a") in made and "b" not in made
    assert made.get("b", 7) == 7 and list(made.items()) == [("a", 1), (x, 2)]
    assert repr(made) == '{"a": 1, x: 2}'
    with pytest.raises(KeyError):
        made["b"]
    for change in (lambda: made.update(b=1), lambda: made.pop("a"), lambda: made.clear()):
        with pytest.raises(TypeError, match="cannot change"):
            change()
    with pytest.raises(TypeError, match="cannot change"):
        made["b"] = 2


def test_convert() -> None:
    """Numbers become constants, sequences arrays, dictionaries maps, comparisons expressions, functions packed
    ones; the rest stays."""
    x = Var("x")
    number = convert(5)
    assert isinstance(number, IntImm) and number.value == 5
    assert isinstance(convert(x == 1), EQ)
    nested = convert([1, (x, "text")])
    assert isinstance(nested, Array) and nested[1][0] is x and nested[1][1] == "text"
    assert convert({"a": [1]})["a"][0].value == 1
    assert convert(None) is None and convert(x) is x
    packed = convert(abs)
    assert isinstance(packed, PackedFunc) and packed(-3) == 3 and convert(packed) is packed
    axis = IterVar((0, 4), "i", 0)
    assert convert(axis) is axis
    assert convert(operators.const(1)).value == 1
    with pytest.raises(ExpressionError, match="cannot be part of a program"):
        convert(object())
