"""Structural hash: equal programs, in the sense of ``structural_equal``, have equal hashes.

A bound variable counts by the number of variables bound around its definition. The hash of a program without free
variables is the same in every process, so that it can name an entry of a cache on disk. A free variable counts by its
identity, unless ``map_free_vars`` numbers it where it is first met. At the graph level, computations count by the order
in which a function comes to them, so that one used twice differs from two of the same form.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tilewright.ir import operators
from tilewright.ir.base import GraphVariable, RelayExpr
from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.expr import Var
from tilewright.ir.op import Op
from tilewright.ir.structural import COMPUTED, VARIABLES, Role, as_plain, field_value, fields_in_order
from tilewright.ir.type import PointerType
from tilewright.support.dtype import DataType
from tilewright.support.node import Node
from tilewright.support.recursion import recursion_room

_MASK: Final = (1 << 64) - 1
_FACTOR: Final = 0x9E3779B97F4A7C15
_PLAIN: Final = frozenset({bool, int, float, str, DataType, type(None)})
_TEXTS: dict[str, int] = {}


def _bytes_hash(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def _text_hash(text: str) -> int:
    """A hash of a string that does not change from process to process."""
    found = _TEXTS.get(text)
    if found is None:
        found = _bytes_hash(text.encode())
        if len(_TEXTS) < 10_000:
            _TEXTS[text] = found
    return found


def _combine(first: int, second: int) -> int:
    mixed = ((first ^ (second >> 29)) * _FACTOR + second) & _MASK
    return mixed ^ (mixed >> 32)


class _Hasher:
    """Hashes by recursion; ``levels`` holds the variables that are bound at the place being hashed."""

    def __init__(self, map_free_vars: bool) -> None:
        self.map_free_vars = map_free_vars
        self.levels: dict[Any, int] = {}
        self.last_level: dict[Any, int] = {}
        self.introduced: dict[Any, int] = {}
        self.memo: dict[Role, dict[tuple[int, int], int]] = {role: {} for role in Role}
        self.made: list[Node] = []
        # The computations of the function that is being hashed, numbered: two of the same form are not one used twice.
        self.computed: dict[int, int] = {}

    def hash(self, value: Any, role: Role) -> int:
        value = as_plain(value)
        if isinstance(value, (bool, int, float)):
            # Beside a node, a number is equal to the constant that it stands for.
            # It must live on, because nodes are remembered by identity.
            value = operators.const(value)
            self.made.append(value)
        if isinstance(value, Node):
            return self.hash_node(value, role)
        if isinstance(value, (tuple, list)):
            total = _combine(_text_hash("sequence"), len(value))
            for item in value:
                total = _combine(total, self.hash(item, role))
            return total
        if isinstance(value, Mapping):
            total = _combine(_text_hash("mapping"), len(value))
            for key in sorted(value, key=str):
                name = _text_hash(key) if isinstance(key, str) else 0
                total = _combine(total, _combine(name, self.hash(value[key], Role.USE)))
            return total
        return _scalar_hash(value)

    def hash_node(self, node: Any, role: Role) -> int:
        """The hash of a node; shared nodes are hashed once at each level."""
        if isinstance(node, VARIABLES):
            return self.hash_variable(node, role)
        # The level of a definition is that of its place: a node is remembered for each number of variables around it.
        key = (id(node), len(self.levels))
        found = self.memo[role].get(key)
        if found is not None:
            return found
        if isinstance(node, Op):
            return _text_hash(node.name)
        if isinstance(node, UnknownDimension):
            return _text_hash("any")
        if not node.field_names:
            return id(node) & _MASK
        total = _text_hash(node.node_kind)
        around = self.computed
        if node.node_kind == "function":
            self.computed = {}
        fields = fields_in_order(type(node))
        bound: list[tuple[Any, int | None]] = []
        for name, field_role in fields:
            if field_role is Role.BIND:
                total = _combine(total, self.bind(field_value(node, name), bound))
        for name, field_role in fields:
            if field_role is not Role.BIND:
                value = field_value(node, name)
                inner = field_role if field_role is Role.INTRODUCE else role
                if type(value) in _PLAIN:
                    total = _combine(total, _scalar_hash(value))
                elif isinstance(value, Node):
                    total = _combine(total, self.hash_node(value, inner))
                else:
                    total = _combine(total, self.hash(value, inner))
        for variable, previous in reversed(bound):
            if previous is None:
                del self.levels[variable]
            else:
                self.set_level(variable, previous)
        self.computed = around
        if node.node_kind in COMPUTED and isinstance(node, RelayExpr):
            total = _combine(total, self.computed.setdefault(id(node), len(self.computed)))
        self.memo[role][key] = total
        return total

    def bind(self, value: Any, bound: list[tuple[Any, int | None]]) -> int:
        """Bind definitions, each at the number of variables bound around it; the hash counts them."""
        if isinstance(value, (tuple, list)):
            total = _combine(_text_hash("definitions"), len(value))
            for item in value:
                total = _combine(total, self.bind(item, bound))
            return total
        if not isinstance(value, VARIABLES):
            return self.hash(value, Role.INTRODUCE)
        bound.append((value, self.levels.get(value)))
        self.set_level(value, len(self.levels))
        return self.hash_variable(value, Role.USE)

    def set_level(self, variable: Any, level: int) -> None:
        """Bind one variable. At another level than last time, what was hashed with it no longer holds."""
        if self.last_level.get(variable, level) != level:
            for remembered in self.memo.values():
                remembered.clear()
        self.levels[variable] = self.last_level[variable] = level

    def hash_variable(self, variable: Any, role: Role) -> int:
        """A use: by the level of the definition, by the order of introduction, or by identity."""
        if isinstance(variable, GraphVariable):
            kind = self.hash(variable.type_annotation, Role.USE)
        else:
            kind = _text_hash(_kind_text(variable))
        level = self.levels.get(variable)
        if level is not None:
            return _combine(_combine(_text_hash("bound"), level), kind)
        if variable not in self.introduced:
            if not (self.map_free_vars or role is Role.INTRODUCE):
                return id(variable) & _MASK
            self.introduced[variable] = len(self.introduced)
        return _combine(_combine(_text_hash("introduced"), self.introduced[variable]), kind)


def _scalar_hash(value: Any) -> int:
    """The hash of a value that is neither a node nor a container."""
    if isinstance(value, bool):
        return 2 + value
    if isinstance(value, int):
        return _combine(_text_hash("integer"), value & _MASK)
    if isinstance(value, float):
        canonical = float("nan") if value != value else value
        return _combine(_text_hash("float"), _bytes_hash(struct.pack("<d", canonical)))
    if isinstance(value, str):
        return _text_hash(value)
    if value is None:
        return 1
    if isinstance(value, np.ndarray):
        return _combine(
            _text_hash(f"{value.dtype}{value.shape}"), _bytes_hash(np.ascontiguousarray(value).tobytes())
        )
    return _text_hash(repr(value))


def _kind_text(variable: Any) -> str:
    """What makes two variables different beside their definitions; memory without a scope is global."""
    if not isinstance(variable, Var):
        return str(variable.kind)
    annotation = variable.type_annotation
    if isinstance(annotation, PointerType) and annotation.storage_scope == "global":
        annotation = PointerType(annotation.element_type)
    return str(annotation)


def structural_hash(node: Any, map_free_vars: bool = False) -> int:
    """A hash of 64 bits; see the module's text."""
    with recursion_room():
        return _Hasher(map_free_vars).hash(node, Role.USE)
