"""Attributes."""

import pytest

from tilewright.ir import operators
from tilewright.ir.attrs import DictAttrs, make_node


def test_access() -> None:
    """Attributes are read as items, as fields and as a mapping."""
    attrs = DictAttrs({"size": 3, "name": "x"})
    assert attrs["size"] == 3 and attrs.size == 3 and attrs.get("other", 1) == 1
    assert list(attrs) == ["size", "name"] and list(attrs.keys()) == ["size", "name"] and len(attrs) == 2
    assert dict(attrs.items()) == {"size": 3, "name": "x"} and "size" in attrs
    with pytest.raises(KeyError):
        attrs["other"]
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        attrs.other


def test_typed_access() -> None:
    """Values of programs are read as Python's."""
    attrs = make_node(
        "DictAttrs", pads=(operators.const(1), 2), axis=operators.const(3), mode=operators.as_expr("same")
    )
    assert (
        attrs.get_int_tuple("pads") == (1, 2)
        and attrs.get_int("axis") == 3
        and attrs.get_str("mode") == "same"
    )
    assert [field.name for field in attrs.list_field_info()] == ["pads", "axis", "mode"]


def test_changes_to_the_source_do_not_show() -> None:
    """Attributes keep a copy of the dictionary they were made from."""
    source = {"a": 1}
    attrs = DictAttrs(source)
    source["a"] = 2
    assert attrs["a"] == 1
