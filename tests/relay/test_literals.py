"""Words of the text form: names, numbers, values, references to the meta data."""

import numpy as np
import pytest

from tilewright import relay, tir
from tilewright.ir import load_json
from tilewright.relay.literals import MetaTable, Names, name_text, scalar_text, value_text
from tilewright.runtime import ndarray


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x", "x"),
        ("_x1", "_x1"),
        ("a.b", "a.b"),
        ("a.0.b", "a.0.b"),
        ("a.0", '"a.0"'),
        ("a b", '"a b"'),
        ("0a", '"0a"'),
        ("", '""'),
        ('"', '"\\""'),
        ("é", '"\\u00e9"'),
    ],
)
def test_names(name: str, text: str) -> None:
    """A name is written as it is where it can be told from what follows, else in quotes."""
    assert name_text(name) == text


def test_fresh_names() -> None:
    """The first owner has the name itself, the next ones the first free number behind it."""
    names = Names(frozenset({"Tensor"}))
    assert [names.fresh(name) for name in ("x", "x", "x2", "x", "Tensor")] == [
        "x",
        "x1",
        "x2",
        "x3",
        "Tensor1",
    ]


@pytest.mark.parametrize("dtype", ["bfloat16", "float8"])
def test_numbers_without_words(dtype: str) -> None:
    """Types that the text form has no numbers of stand in the meta data, and so does what has dimensions."""
    assert scalar_text(ndarray.empty((), dtype)) is None
    assert scalar_text(ndarray.array(np.zeros(1, "float32"))) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (-3, "-3"),
        (10**20, "100000000000000000000"),
        (0.1, "0.1f"),
        (1e22, "1e+22f"),
        (float("-inf"), "-inff"),
        ("a\n", '"a\\n"'),
        ((1, (2.0, ())), "[1, [2f, []]]"),
        ({"k": [1]}, '{"k": [1]}'),
        (tir.IntImm("int32", 4), "4"),
        (tir.IntImm("bool", 1), "True"),
        (tir.StringImm("s"), '"s"'),
        (tir.Any(), "?"),
        (tir.IntImm("int64", 4), "meta[ir.IntImm][0]"),
        (np.int64(5), "5"),
        (np.float32(0.5), "0.5f"),
    ],
)
def test_values(value: object, text: str) -> None:
    """Attribute values are numbers, strings, lists, mappings, or references to the meta data."""
    assert value_text(value, MetaTable()) == text


def test_meta_table() -> None:
    """One object is one reference; a value that JSON cannot hold is null, and the others stay."""
    table, constant = MetaTable(), relay.const([1, 2])
    assert table.reference(constant) == table.reference(constant) == "meta[relay.Constant][0]"
    assert table.reference(relay.const([3])) == "meta[relay.Constant][1]"
    assert table.reference(print).endswith("][0]")
    found = load_json(table.section())
    assert [value.data.numpy().tolist() for value in found["relay.Constant"]] == [[1, 2], [3]]
    assert next(values for kind, values in found.items() if kind != "relay.Constant") == (None,)
