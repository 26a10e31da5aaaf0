"""Nodes as JSON: sharing is preserved, and depth does not matter.

The text is an object with ``format``, ``version``, ``root``, ``types`` (pairs of a graph-level expression and what was
inferred to be its type; may be missing) and ``nodes``, a list in which every entry refers to earlier ones by number
only. An entry is ``{"kind": "ir.Add", "fields": {"a": 3, "b": 4, ...}}`` for a node, ``{"value": 1}`` for a plain
value, ``{"list": [...]}``, ``{"map": [[key, value], ...]}``, ``{"float": "nan"}``, ``{"op": "tir.exp"}``, ``{"target":
"..."}`` with what ``Target`` exports, ``{"attributes": "relay.attrs.TakeAttrs", "values": 7}`` for attributes of an
operator, ``{"tensor": "<base64>", "dtype": "float32", "shape": [2, 3]}`` for a constant, ``{"form": "te.Schedule",
"content": 7}`` for an object of a class that derives from ``Saved``, and ``{"span": ["file", 1, 1, 0, 0]}`` for a span
that is written by itself; nodes are written without theirs.

Only nodes, from fields that their class has, and objects of ``Saved`` classes are made: reading a text never executes
code.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from operator import attrgetter
from typing import Any, Final, Self

import numpy as np

from tilewright.ir.attrs import ATTRIBUTE_CLASSES, Attrs, DictAttrs
from tilewright.ir.base import RelayExpr
from tilewright.ir.container import Array, Map
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tvm_json import is_tvm_json, read_tvm_json
from tilewright.ir.type import Type
from tilewright.runtime import ndarray
from tilewright.runtime.ndarray import NDArray, numpy_dtype
from tilewright.support.dtype import DataType
from tilewright.support.errors import TilewrightError
from tilewright.support.node import Node, all_slots
from tilewright.support.slot import ALL_LEVELS
from tilewright.support.span import SourceName, Span
from tilewright.target import Target

FORMAT: Final = "tilewright-nodes"
VERSION: Final = 1

_PLAIN = (str, bool, int, type(None))


class SerializationError(TilewrightError, ValueError):
    """A value cannot be written as JSON, or a text is not what ``save_json`` writes."""


def node_classes() -> dict[str, type[Node]]:
    """Every node class that is loaded, by its kind."""
    found: dict[str, type[Node]] = {}
    pending: list[type[Node]] = [Node]
    while pending:
        for child in pending.pop().__subclasses__():
            # The decorator makes a slotted class out of the written one, which stays behind without slots.
            if "__slots__" in child.__dict__ and child.field_names:
                found[kind_name(child)] = child
            pending.append(child)
    return found


def kind_name(node_class: type[Any]) -> str:
    """The name of a class with its level, which tells the variables of loops and of graphs apart: ``ir.Var``."""
    return f"{node_class.__module__.removeprefix('tilewright.').split('.')[0]}.{node_class.__name__}"


def _enums() -> dict[str, type[IntEnum]]:
    """The enumerations that fields of nodes hold."""
    return {
        child.__name__: child
        for child in IntEnum.__subclasses__()
        if child.__module__.startswith("tilewright.")
    }


def _is_saved(slot: str) -> bool:
    """True if a slot is part of a node's value; spans, and the slots in which inference stores its results, are not."""
    return slot != "span" and not slot.startswith("_")


@dataclass(frozen=True)
class _Form:
    """How nodes of a class are written: the slots that make one up, in order, a function that gives all of them at
    once, and the text of an entry with a place for the number of each."""

    names: tuple[str, ...]
    values: Callable[[Any], Sequence[Any]]
    text: str


_FORMS: Final[dict[type, _Form]] = {}
_WRITTEN: Final[dict[type, _Form]] = {}
"""The forms of the classes of which a node was written: its entries need no further look."""


def _form_of(kind: type[Node]) -> _Form:
    """The form of a class whose nodes have all their slots set."""
    found = _FORMS.get(kind)
    if found is None:
        names = tuple(name for name in all_slots(kind) if _is_saved(name))
        values: Callable[[Any], Sequence[Any]] = lambda node: [node.saved_slot(name) for name in names]
        if kind.saved_slot is Node.saved_slot and len(names) > 1:
            values = attrgetter(*names)
        found = _FORMS[kind] = _Form(names, values, _node_text(kind, names))
    return found


def _node_text(kind: type[Node], names: Sequence[str]) -> str:
    fields = ",".join(f'"{name}":%d' for name in names)
    return f'{{"kind":"{kind_name(kind)}","fields":{{{fields}}}}}'


def _set_slots(node: Node) -> list[str]:
    """The slots that make up a node and are set, in order."""
    return [name for name in _form_of(type(node)).names if hasattr(node, name)]


class Saved:
    """A class that is not a node, whose objects are written as other values and made again from those."""

    __slots__ = ()

    def saved_content(self) -> Any:
        """The values to write."""
        raise NotImplementedError

    @classmethod
    def from_saved(cls, content: Any) -> Self:
        """The object that these values describe."""
        raise NotImplementedError


def _saved_classes() -> dict[str, type[Saved]]:
    """Every loaded class whose objects are written by ``saved_content``, by its kind."""
    return {kind_name(child): child for child in Saved.__subclasses__()}


def _parts(value: Any) -> Sequence[Any]:
    """The parts that must be written before a value."""
    written = _WRITTEN.get(type(value))
    if written is None and isinstance(value, IRModule):
        return [dict(value.functions), dict(value.type_definitions), dict(value.attrs.items())]
    if written is None and isinstance(value, Op):
        return []
    if written is not None or isinstance(value, Node):
        try:
            return _form_of(type(value)).values(value)
        except AttributeError:  # a slot that is not set
            return [value.saved_slot(name) for name in _set_slots(value)]
    if isinstance(value, Attrs):
        return [dict(value.items())]
    if isinstance(value, (tuple, list)):
        return list(value)
    if isinstance(value, Mapping):
        return [part for pair in value.items() for part in pair]
    return [value.saved_content()] if isinstance(value, Saved) else []


_BY_IDENTITY: Final[set[type]] = set()
"""The classes whose values were found to be shared by identity."""


def _key(value: Any) -> Any:
    """Plain values are shared by value, everything else by identity."""
    kind = type(value)
    if kind in _BY_IDENTITY:
        return id(value)
    if isinstance(value, DataType):
        return ("dtype", str(value))
    if isinstance(value, _PLAIN) and not isinstance(value, (IntEnum, Node)):
        return (kind.__name__, value)
    _BY_IDENTITY.add(kind)
    return id(value)


class _Writer:
    """Numbers every value below a root, parts first."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self.numbers: dict[Any, int] = {}
        # Parts that are made on the fly must outlive the numbering by identity.
        self.alive: list[Any] = []

    def add(self, root: Any) -> int:
        """Write a value and what it is made of; gives its number."""
        numbers, entries = self.numbers, self.entries
        root_key = _key(root)
        # A value, its key, and the keys of its parts once those are being written.
        stack: list[tuple[Any, Any, list[Any] | None]] = [(root, root_key, None)]
        begun: set[Any] = set()
        while stack:
            value, key, keys = stack.pop()
            if key in numbers:
                continue
            if keys is None:
                if key in begun:
                    raise SerializationError(
                        f"a {type(value).__name__} contains itself: it cannot be written as JSON"
                    )
                parts = _parts(value)
                self.alive.append((value, parts))
                keys = [id(part) if type(part) in _BY_IDENTITY else _key(part) for part in parts]
                if parts:
                    begun.add(key)
                    stack.append((value, key, keys))
                    for part, part_key in zip(reversed(parts), reversed(keys), strict=True):
                        if part_key not in numbers:
                            stack.append((part, part_key, None))
                    continue
            entries.append(self.text(value, [numbers[part] for part in keys]))
            numbers[key] = len(entries) - 1
        return numbers[root_key]

    def inferred_types(self) -> list[list[int]]:
        """The number of each expression whose type is known, with that of the type."""
        typed = [
            (self.numbers[_key(value)], getattr(value, "_checked_type_", None))
            for value, _ in self.alive
            if isinstance(value, RelayExpr)
        ]
        return [[number, self.add(found)] for number, found in typed if found is not None]

    def text(self, value: Any, parts: list[int]) -> str:
        """The entry of a value."""
        written = _WRITTEN.get(type(value))
        if written is not None and len(written.names) == len(parts):
            return written.text % tuple(parts)
        if isinstance(value, Node) and not isinstance(value, (IRModule, Op)):
            kind = type(value)
            if not kind.field_names:
                raise SerializationError(f"a {kind.__name__} cannot be written as JSON")
            form = _WRITTEN[kind] = _form_of(kind)
            text = form.text if len(form.names) == len(parts) else _node_text(kind, _set_slots(value))
            return text % tuple(parts)
        return json.dumps(self.entry(value, parts), separators=(",", ":"))

    def entry(self, value: Any, parts: list[int]) -> dict[str, Any]:
        if isinstance(value, IRModule):
            return {"module": parts}
        if isinstance(value, Op):
            return {"op": value.name}
        if isinstance(value, DictAttrs):
            return {"attrs": parts[0]}
        if isinstance(value, Attrs):
            return {"attributes": _attributes_key(value), "values": parts[0]}
        if isinstance(value, NDArray):
            held = np.ascontiguousarray(value.numpy())
            return {
                "tensor": base64.b64encode(held.tobytes()).decode(),
                "dtype": str(value.dtype),
                "shape": list(value.shape),
            }
        if isinstance(value, Span):
            name = value.source_name.name if value.source_name else None
            return {"span": [name, value.line, value.end_line, value.column, value.end_column]}
        if isinstance(value, Target):
            return {"target": json.dumps(value.export())}
        if isinstance(value, IntEnum):
            return {"enum": type(value).__name__, "value": value.name}
        if isinstance(value, DataType):
            return {"dtype": str(value)}
        if isinstance(value, _PLAIN):
            return {"value": value}
        if isinstance(value, float):
            return {"value": value} if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, (tuple, list)):
            return {"list": parts}
        if isinstance(value, Mapping):
            return {"map": [[parts[at], parts[at + 1]] for at in range(0, len(parts), 2)]}
        if isinstance(value, np.ndarray):
            data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
            return {"array": data, "dtype": str(value.dtype), "shape": list(value.shape)}
        if isinstance(value, Saved):
            return {"form": kind_name(type(value)), "content": parts[0]}
        raise SerializationError(f"{value!r} of type {type(value).__name__} cannot be written as JSON")


def _attributes_key(value: Attrs) -> str:
    """The name under which a class of attributes is found again."""
    key = getattr(value, "type_key", "")
    if key not in ATTRIBUTE_CLASSES:
        raise SerializationError(f"attributes of type {type(value).__name__} cannot be written as JSON")
    return str(key)


def save_json(node: Any, *, with_types: bool = True) -> str:
    """The JSON text of a node, a container of nodes, or a module.

    What type inference found of graph-level expressions is part of it, unless ``with_types`` is false: then a program
    has one text, inferred or not.
    """
    writer = _Writer()
    root = writer.add(node)
    types = writer.inferred_types() if with_types else []
    head = f'{{"format":"{FORMAT}","version":{VERSION},"root":{root},'
    listed = f'"types":{json.dumps(types, separators=(",", ":"))},' if types else ""
    return f'{head}{listed}"nodes":[{",".join(writer.entries)}]}}'


def _is_loaded(entries: list[Any]) -> bool:
    """True if the layers that are loaded define everything that the entries name."""
    known: dict[str, Mapping[str, Any]] = {
        "kind": node_classes(),
        "op": Op.registry,
        "attributes": ATTRIBUTE_CLASSES,
        "form": _saved_classes(),
    }
    return all(
        entry[form] in known[form]
        for entry in entries
        if isinstance(entry, dict)
        for form in known
        if isinstance(entry.get(form), str)
    )


class _Reader:
    """Makes the values of a list of entries, in order."""

    def __init__(self, entries: list[Any]) -> None:
        if not _is_loaded(entries):
            ALL_LEVELS.value()
        self.entries = entries
        self.values: list[Any] = []
        self.classes = node_classes()
        self.saved = _saved_classes()
        self.enums = _enums()
        self.makers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "kind": self.node,
            "module": self.module,
            "array": self.array,
            "tensor": self.tensor,
            "attributes": self.attributes,
            "form": lambda entry: self.saved[self.text(entry["form"])].from_saved(self.get(entry["content"])),
            "span": self.span,
            "op": lambda entry: Op.get(self.text(entry["op"])),
            "attrs": lambda entry: DictAttrs(self.mapping(entry["attrs"])),
            "enum": lambda entry: self.enums[self.text(entry["enum"])][self.text(entry["value"])],
            "target": lambda entry: Target(json.loads(self.text(entry["target"]))),
            "dtype": lambda entry: DataType(self.text(entry["dtype"])),
            "value": lambda entry: self.plain(entry["value"]),
            "float": lambda entry: float(self.text(entry["float"])),
            "list": lambda entry: tuple([self.get(number) for number in entry["list"]]),
            "map": lambda entry: {self.get(key): self.get(value) for key, value in entry["map"]},
        }

    def read(self) -> list[Any]:
        for number, entry in enumerate(self.entries):
            try:
                form = next(form for form in self.makers if form in entry) if isinstance(entry, dict) else ""
                self.values.append(self.makers[form](entry))
            except (
                StopIteration,
                LookupError,
                TypeError,
                ValueError,
                AttributeError,
                TilewrightError,
            ) as error:
                raise SerializationError(
                    f"entry {number} of the JSON text is wrong: {_reason(error)}"
                ) from error
        return self.values

    def get(self, number: Any) -> Any:
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(self.values):
            raise ValueError(f"it refers to {number!r}, which is not an earlier entry")
        return self.values[number]

    def text(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError(f"{value!r} is not a string")
        return value

    def plain(self, value: Any) -> Any:
        if not isinstance(value, (*_PLAIN, float)):
            raise ValueError(f"{value!r} is not a plain value")
        return value

    def mapping(self, number: Any) -> dict[Any, Any]:
        found = self.get(number)
        if not isinstance(found, dict):
            raise ValueError(f"entry {number} is not a map")
        return found

    def node(self, entry: dict[str, Any]) -> Node:
        """A node with exactly the fields that its class has."""
        name = self.text(entry["kind"])
        node_class = self.classes.get(name)
        if node_class is None:
            raise ValueError(f"there is no node class {name!r}")
        slots = [slot for slot in all_slots(node_class) if _is_saved(slot)]
        fields: dict[str, Any] = entry["fields"]
        if sorted(fields) != sorted(slots):
            raise ValueError(f"{name} has the fields {', '.join(slots)}, not {', '.join(fields) or 'none'}")
        made = object.__new__(node_class)
        for slot in slots:
            object.__setattr__(made, slot, self.get(fields[slot]))
        if "span" in all_slots(node_class):
            object.__setattr__(made, "span", None)
        _check_children(made)
        return made.loaded()

    def span(self, entry: dict[str, Any]) -> Span:
        name, *places = entry["span"]
        if len(places) != 4 or not all(isinstance(place, int) for place in places):
            raise ValueError(f"{places!r} are not two lines and two columns")
        source: Any = None if name is None else SourceName(self.text(name))
        return Span(source, *places)

    def module(self, entry: dict[str, Any]) -> IRModule:
        functions, types, attributes = entry["module"]
        return IRModule(self.mapping(functions), self.mapping(types), self.mapping(attributes))

    def array(self, entry: dict[str, Any]) -> Any:
        data = base64.b64decode(self.text(entry["array"]), validate=True)
        kind = np.dtype(self.text(entry["dtype"]))
        if kind.hasobject:
            raise ValueError("an array of objects cannot be read")
        return np.frombuffer(data, dtype=kind).reshape([int(extent) for extent in entry["shape"]]).copy()

    def tensor(self, entry: dict[str, Any]) -> NDArray:
        dtype = DataType(self.text(entry["dtype"]))
        shape = [int(extent) for extent in entry["shape"]]
        data = base64.b64decode(self.text(entry["tensor"]), validate=True)
        lanes = [dtype.lanes] if dtype.lanes > 1 else []
        values = np.frombuffer(data, dtype=numpy_dtype(dtype)).reshape(shape + lanes)
        return ndarray.empty(tuple(shape), dtype).copyfrom(values)

    def attributes(self, entry: dict[str, Any]) -> Attrs:
        values = self.mapping(entry["values"])
        made: Attrs = ATTRIBUTE_CLASSES[self.text(entry["attributes"])](**values)
        return made


def _check_children(node: Node) -> None:
    """Children must be nodes and types data types, or what uses them would fail far from here."""
    if hasattr(node, "dtype") and not isinstance(node.dtype, DataType):
        raise ValueError(f"the type of a {type(node).__name__} is not a data type: {node.dtype!r}")
    for name, role in type(node).child_fields:
        value = getattr(node, name)
        children = value if role == "many" else (value,)
        if not isinstance(children, tuple):
            raise ValueError(f"{name} is not a list")
        for child in children:
            if not isinstance(child, Node) and not (role == "optional" and child is None):
                raise ValueError(f"{name} holds {child!r} where a node is expected")


def _reason(error: Exception) -> str:
    if isinstance(error, StopIteration):
        return "its form is not known"
    if isinstance(error, KeyError):
        return f"missing or unknown field: {error.args[0]!r}"
    return error.message if isinstance(error, TilewrightError) else str(error)


def load_json(json_str: str) -> Any:
    """Reads the text that ``save_json`` wrote, or one of TVM's."""
    try:
        document = json.loads(json_str)
    except (json.JSONDecodeError, TypeError, RecursionError) as error:
        raise SerializationError(f"the text is not JSON: {error}") from error
    if is_tvm_json(document):
        ALL_LEVELS.value()
        return read_tvm_json(document, node_classes())
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise SerializationError(f"the text is not one that save_json wrote: it has no format {FORMAT!r}")
    if document.get("version") != VERSION:
        raise SerializationError(
            f"the text has version {document.get('version')!r}, this program reads version {VERSION}"
        )
    entries, root = document.get("nodes"), document.get("root")
    if not isinstance(entries, list):
        raise SerializationError("the text has no list of nodes")
    values = _Reader(entries).read()
    if not isinstance(root, int) or isinstance(root, bool) or not 0 <= root < len(values):
        raise SerializationError(f"the root {root!r} is not an entry")
    _set_types(values, document.get("types", []))
    return _public(values[root])


def _set_types(values: list[Any], types: Any) -> None:
    """Give expressions the types that were inferred for them; inference looks at them again all the same."""
    for pair in types if isinstance(types, list) else [types]:
        try:
            expr, found = (values[number] for number in pair)
        except (LookupError, TypeError, ValueError):
            raise SerializationError(f"{pair!r} is not an expression and its type") from None
        if not isinstance(expr, RelayExpr) or not isinstance(found, Type):
            raise SerializationError(f"{pair!r} is not an expression and its type")
        object.__setattr__(expr, "_checked_type_", found)


def _public(value: Any) -> Any:
    """Sequences and mappings as public functions give them; nodes hold plain ones."""
    if isinstance(value, tuple):
        return Array([_public(item) for item in value])
    if isinstance(value, dict):
        return Map([(key, _public(item)) for key, item in value.items()])
    return value
