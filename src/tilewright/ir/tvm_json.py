"""Reads the JSON of TVM: a list of nodes, each with the name of its class and its fields as text.

A field is a number, a text, or the number of another node; which of these, the constructor of the class says. Number 0
is None. Names from before TVM 0.7 (``Variable``, ``relay.TensorType``, ``StrMap``) are understood.
"""

from __future__ import annotations

import base64
import inspect
from collections.abc import Mapping
from typing import Any, Final

from tilewright.ir.attrs import ATTRIBUTE_CLASSES, DictAttrs
from tilewright.ir.container import Array, Map
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.runtime.params import load_array
from tilewright.support.errors import TilewrightError
from tilewright.support.node import Node

_OLD_NAMES: Final = {"Variable": "Var", "StrMap": "Map"}
_LITERALS: Final = ("str", "int", "float", "bool", "DataType", "TypeKind")
_UNUSED: Final = ("span", "_checked_type_", "checked_type_", "virtual_device_")


class TvmJsonError(TilewrightError, ValueError):
    """A text is not JSON of TVM, or has a node that is not known here."""


def is_tvm_json(document: Any) -> bool:
    """True if this is how TVM writes nodes."""
    return isinstance(document, dict) and "b64ndarrays" in document and "nodes" in document


def read_tvm_json(document: Mapping[str, Any], classes: Mapping[str, type[Node]]) -> Any:
    """The root of the nodes; ``classes`` are the node classes by level and name."""
    reader = _Reader(document, classes)
    return reader.node(int(document["root"]))


class _Reader:
    """Makes each node once, those that it is made of before it."""

    def __init__(self, document: Mapping[str, Any], classes: Mapping[str, type[Node]]) -> None:
        self.entries: list[Mapping[str, Any]] = list(document["nodes"])
        self.arrays: list[str] = list(document.get("b64ndarrays", ()))
        self.classes = classes
        self.made: dict[int, Any] = {0: None}

    def node(self, root: int) -> Any:
        """One node. The numbers of others may be larger or smaller, so that a stack holds those that wait."""
        waiting = [root]
        begun: set[int] = set()
        while waiting:
            number = waiting[-1]
            if number in self.made:
                waiting.pop()
                continue
            missing = [each for each in self.references(number) if each not in self.made]
            if not missing:
                self.made[number] = self.make(number)
            elif number in begun:
                raise TvmJsonError(f"node {number} contains itself")
            else:
                begun.add(number)
                waiting += missing
        return self.made[root]

    def entry(self, number: int) -> Mapping[str, Any]:
        """The description of a node."""
        if not 0 <= number < len(self.entries):
            raise TvmJsonError(f"there is no node {number}: the text has {len(self.entries)}")
        return self.entries[number]

    def fields(self, number: int) -> dict[str, tuple[str, bool]]:
        """By name: the text of each field, and whether it is the number of a node."""
        given: Mapping[str, str] = self.entry(number).get("attrs") or {}
        hints = self.hints(str(self.entry(number).get("type_key", "")))
        return {
            name: (text, hints is None or not _is_literal(hints.get(name), text))
            for name, text in given.items()
            if name not in _UNUSED and (hints is None or name in hints)
        }

    def hints(self, key: str) -> dict[str, str] | None:
        """The annotations of the constructor's parameters; None for what is made in another way."""
        if key in ("DictAttrs", "IRModule", "relay.Module"):
            return None
        if _last(key) in ("Id", "Op", "String", "Map", "Array"):
            return {"name_hint": "str"}
        chosen = self.chosen(key)
        hints = {
            name: str(parameter.annotation)
            for name, parameter in inspect.signature(chosen).parameters.items()
        }
        if _last(key) in ("TypeVar", "GlobalTypeVar"):
            hints["var"] = "PrimExpr"
        if key == "relay.Var":
            hints["vid"] = "Id"
        if key == "relay.Constant":
            hints["data"] = "int"
        return hints

    def references(self, number: int) -> list[int]:
        """The nodes that a node is made of."""
        entry = self.entry(number)
        found = [int(text) for text, refers in self.fields(number).values() if refers]
        found += [int(each) for each in entry.get("data") or ()]
        if _last(str(entry.get("type_key"))) == "Map":
            found += [int(each) for each in entry.get("keys") or () if not isinstance(each, str)]
        return found

    def chosen(self, key: str) -> Any:
        """The class of a name."""
        if key in ATTRIBUTE_CLASSES:
            return ATTRIBUTE_CLASSES[key]
        level, name = key.rpartition(".")[0], _last(key)
        levels = ("relay", "ir") if level == "relay" else (level, "ir", "tir", "te", "arith", "relay")
        for each in levels:
            if f"{each}.{name}" in self.classes:
                return self.classes[f"{each}.{name}"]
        raise TvmJsonError(f"there is no class of nodes {key!r}")

    def make(self, number: int) -> Any:
        """The node, now that its parts are there."""
        entry = self.entry(number)
        key = str(entry.get("type_key", ""))
        name = _last(key)
        values: dict[str, Any] = {
            field: self.made[int(text)] if refers else text
            for field, (text, refers) in self.fields(number).items()
        }
        if name == "Op":
            return Op.get(str(entry.get("global_key") or entry.get("repr_str")))
        if name == "String":
            return str(entry.get("repr_str", ""))
        if name == "Array":
            return Array([self.made[int(each)] for each in entry.get("data") or ()])
        if name == "Map":
            return self.mapping(entry)
        if name == "Id":
            return values["name_hint"]
        if name == "DictAttrs":
            return DictAttrs(dict(values.get("__dict__") or {}))
        if key in ("IRModule", "relay.Module"):
            return IRModule(dict(values.get("functions") or {}), dict(values.get("type_definitions") or {}))
        hints = self.hints(key) or {}
        values = {field: _literal(hints[field], value) for field, value in values.items()}
        if "var" in values and name in ("TypeVar", "GlobalTypeVar"):
            values["name_hint"] = values.pop("var").name
        if "vid" in values:
            values["name_hint"] = values.pop("vid")
        if key == "relay.Constant":
            values["data"] = load_array(base64.b64decode(self.arrays[values["data"]]))
        return self.chosen(key)(**values)

    def mapping(self, entry: Mapping[str, Any]) -> Map[Any, Any]:
        """Names with values beside them, or keys and values in turn."""
        parts = [self.made[int(each)] for each in entry.get("data") or ()]
        if entry.get("keys"):
            return Map(zip(entry["keys"], parts, strict=True))
        return Map(zip(parts[::2], parts[1::2], strict=True))


def _last(key: str) -> str:
    name = key.rpartition(".")[2]
    return _OLD_NAMES.get(name, name)


def _is_literal(hint: str | None, text: str) -> bool:
    """True if a field of this annotation is not a node."""
    first = (hint or "").split("|")[0].strip()
    return first in _LITERALS or not text.lstrip("-").isdigit()


def _literal(hint: str, value: Any) -> Any:
    """A text as its field's type."""
    if not isinstance(value, str):
        return value
    words = [word.strip() for word in hint.split("|")]
    if "int" in words or "TypeKind" in words:
        return int(value)
    if "bool" in words:
        return bool(int(value))
    return float(value) if "float" in words else value
