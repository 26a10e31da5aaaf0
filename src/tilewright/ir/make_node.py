"""``make_node``: creates a node or attributes from the name of a class and the values of its fields."""

from __future__ import annotations

from typing import Any

from tilewright.ir.attrs import ATTRIBUTE_CLASSES, DictAttrs
from tilewright.ir.convert import convert
from tilewright.ir.serialize import node_classes
from tilewright.support.errors import TilewrightError
from tilewright.support.slot import ALL_LEVELS


class NoSuchNode(TilewrightError, AttributeError, ValueError):
    """There is no class of nodes with this name."""


def make_node(type_key: str, **kwargs: Any) -> Any:
    """A node of a class: ``make_node("IntImm", dtype="int32", value=1)``, ``make_node("tir.Add", a=x, b=y)``,
    ``make_node("DictAttrs", axis=1)``, or attributes of an operator by their name."""
    if type_key == "DictAttrs":
        return DictAttrs({name: convert(value) for name, value in kwargs.items()})
    ALL_LEVELS.value()
    if type_key in ATTRIBUTE_CLASSES:
        return ATTRIBUTE_CLASSES[type_key](**kwargs)
    level, _, name = type_key.rpartition(".")
    found = {kind: made for kind, made in node_classes().items() if kind.rpartition(".")[2] == name}
    if not found:
        raise NoSuchNode(f"there is no node class {type_key!r}")
    # Variables and calls are there for loops and for graphs: the level decides, and loops are the default.
    levels = (level, "relay") if level == "relay" else (level, "ir", "tir", "te", "arith")
    made = next((found[f"{one}.{name}"] for one in levels if f"{one}.{name}" in found), None)
    return (made or next(iter(found.values())))(**kwargs)
