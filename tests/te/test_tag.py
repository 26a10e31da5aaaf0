"""Tags of computations."""

from __future__ import annotations

import json

import pytest

from tilewright import te
from tilewright.ir.serialize import load_json, save_json
from tilewright.support.errors import ExpressionError


def test_a_scope_gives_its_tag() -> None:
    """Every computation, scan and statement made inside it has the tag; those after it have none."""
    a = te.placeholder((4,), name="A")
    with te.tag_scope(tag="injective"):
        b = te.compute((4,), lambda i: a[i], name="B")
        assert te.TagScope.get_current().tag == "injective"
    c = te.compute((4,), lambda i: b[i], name="C", tag="own")
    assert (b.op.tag, c.op.tag) == ("injective", "own")
    assert te.TagScope.get_current() is None


def test_a_decorator() -> None:
    """The tag of a function's computations."""

    @te.tag_scope(tag="conv")
    def layer(data: te.Tensor, scale: float = 1.0) -> te.Tensor:
        return te.compute(data.shape, lambda i: data[i] * scale, name="layer")

    a = te.placeholder((4,), name="A")
    assert [layer(a).op.tag, layer(a, scale=2.0).op.tag] == ["conv", "conv"]
    assert layer.__name__ == "layer"


def test_two_tags_are_refused() -> None:
    """A scope in a scope, and a tag of its own inside a scope."""
    a = te.placeholder((4,), name="A")
    with te.tag_scope("outer"):
        with pytest.raises(ExpressionError, match="inside another"), te.tag_scope("inner"):
            pass
        with pytest.raises(ExpressionError, match="'own' inside a tag_scope"):
            te.compute((4,), lambda i: a[i], name="B", tag="own")
    assert te.compute((4,), lambda i: a[i], name="B", tag="own").op.tag == "own"


def test_a_scope_ends_with_an_error() -> None:
    """An exception leaves no tag behind."""
    with pytest.raises(ZeroDivisionError), te.tag_scope("t"):
        1 / 0
    assert te.TagScope.get_current() is None


def test_attributes_are_constants() -> None:
    """Attributes read as TVM's: numbers have a value, sequences of them too, and the text is JSON; also after reading
    the operation from JSON."""
    a = te.placeholder((4,), name="A")
    attrs = {"number": 1, "many": [10, 12], "text": "x", "nested": {"rate": 0.5}}
    b = te.compute((4,), lambda i: a[i], name="B", attrs=attrs)
    for operation in (b.op, load_json(save_json(b)).op):
        assert operation.attrs["number"].value == 1 and operation.attrs["many"][1].value == 12
        assert operation.attrs["text"] == "x" and operation.attrs["nested"]["rate"].value == 0.5
        assert json.loads(str(operation.attrs))["many"] == [10, 12]
