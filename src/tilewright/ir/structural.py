"""Structural equality: programs that differ only in the names and identities of their bound variables are equal.

A variable is bound where a node defines it (a loop, a let, an allocation, a function's parameter, an axis, a reducer).
Comparing two definitions maps one variable to the other within the scope; a use is equal if the map says so. A buffer
maps to another where both are first met, with the variables of its shape and its data pointer. Free variables are equal
only to themselves, unless ``map_free_vars`` maps them where they are first met. Names and spans are ignored.

At the graph level, sharing matters: a function that uses one call twice computes it once, and is not equal to one that
uses two calls with the same arguments. Two closures, or two functions of a module, share nothing in this sense.

The comparison is iterative and visits a pair of shared nodes once. It also descends into a node that occurs on both
sides: the variables and buffers in it must then correspond to themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, Final

import numpy as np

from tilewright.ir import operators
from tilewright.ir.attrs import Attrs
from tilewright.ir.base import GraphVariable, Id, RelayExpr
from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.expr import Var
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.type import TypeVar
from tilewright.runtime.ndarray import NDArray
from tilewright.support.errors import TilewrightError
from tilewright.support.node import Node


class StructuralMismatch(TilewrightError, ValueError, AssertionError):
    """Two programs are not structurally equal; says where they differ and how."""


class Role(Enum):
    """How a field treats the variables in it."""

    USE = auto()
    """They are uses."""
    INTRODUCE = auto()
    """Those met for the first time are definitions, the rest uses."""
    BIND = auto()
    """They are definitions, in force within the node."""


_SPECIAL: Final[dict[str, tuple[tuple[str, Role], ...]]] = {
    # Axes come before what uses them; buffers define their symbolic shapes; names do not count.
    "reduce": (
        ("axis", Role.USE),
        ("combiner", Role.USE),
        ("source", Role.USE),
        ("init", Role.USE),
        ("condition", Role.USE),
        ("value_index", Role.USE),
    ),
    "iter_var": (
        ("dom", Role.USE),
        ("var", Role.INTRODUCE),
        ("iter_type", Role.USE),
        ("thread_tag", Role.USE),
    ),
    "buffer": (
        ("dtype", Role.USE),
        ("data", Role.INTRODUCE),
        ("shape", Role.INTRODUCE),
        ("strides", Role.INTRODUCE),
        ("elem_offset", Role.INTRODUCE),
        ("data_alignment", Role.USE),
        ("offset_factor", Role.USE),
        ("buffer_type", Role.USE),
    ),
    "prim_func": (
        ("params", Role.BIND),
        ("parameter_buffers", Role.USE),
        ("ret_type", Role.USE),
        ("attrs", Role.USE),
        ("body", Role.USE),
    ),
    "block": (
        ("iter_vars", Role.USE),
        ("alloc_buffers", Role.USE),
        ("match_buffers", Role.USE),
        ("reads", Role.USE),
        ("writes", Role.USE),
        ("init", Role.USE),
        ("body", Role.USE),
        ("annotations", Role.USE),
    ),
    "function": (
        ("type_params", Role.BIND),
        ("params", Role.BIND),
        ("ret_type", Role.USE),
        ("attrs", Role.USE),
        ("body", Role.USE),
    ),
    "clause": (("lhs", Role.INTRODUCE), ("rhs", Role.USE)),
    "pattern_var": (("var", Role.INTRODUCE),),
    "func_type": (
        ("type_params", Role.BIND),
        ("arg_types", Role.USE),
        ("ret_type", Role.USE),
        ("type_constraints", Role.USE),
    ),
    # The types of a constructor's arguments name the parameters of its type, so they only count in the definition.
    "type_data": (
        ("header", Role.USE),
        ("type_vars", Role.BIND),
        ("constructors", Role.USE),
        ("constructor_inputs", Role.USE),
    ),
    "constructor": (("name_hint", Role.USE), ("belong_to", Role.USE), ("tag", Role.USE)),
}

COMPUTED: Final = frozenset(
    {
        "call",
        "tuple",
        "tuple_getitem",
        "if",
        "let",
        "match",
        "ref_create",
        "ref_read",
        "ref_write",
    }
)
"""The graph-level nodes that stand for one computation however often they are used."""

_FIELDS: dict[type, tuple[tuple[str, Role], ...]] = {}


def fields_in_order(node_class: type[Node]) -> tuple[tuple[str, Role], ...]:
    """The fields that make up a node's value, definitions first."""
    found = _FIELDS.get(node_class)
    if found is None:
        found = _SPECIAL.get(node_class.node_kind)
        if found is None:
            bound = node_class.defining_fields
            rest = tuple((name, Role.USE) for name in node_class.field_names if name not in bound)
            found = (*((name, Role.BIND) for name in bound), *rest)
        _FIELDS[node_class] = found
    return found


def field_value(node: Any, name: str) -> Any:
    """The value of a field; the buffers of a function's parameters come in the order of the parameters, the types of
    constructors' arguments in the order of the constructors; memory without a scope is global."""
    if name == "parameter_buffers":
        return tuple([node.buffer_map.get(parameter) for parameter in node.params])
    if name == "constructor_inputs":
        return tuple([constructor.inputs for constructor in node.constructors])
    if name == "storage_scope":
        return node.storage_scope or "global"
    return getattr(node, name)


def as_plain(value: Any) -> Any:
    """A value as equality and hash see it: attributes and modules as dictionaries, numbers as constants."""
    if isinstance(value, Attrs):
        return dict(value.items())
    if isinstance(value, IRModule):
        functions = {variable.name_hint: function for variable, function in value.functions.items()}
        types = {variable.name_hint: definition for variable, definition in value.type_definitions.items()}
        return {"functions": functions, "type_definitions": types, "attrs": dict(value.attrs.items())}
    if isinstance(value, NDArray):
        return value.numpy()
    return value


Path = tuple[Any, str] | None
VARIABLES: Final = (Var, TypeVar, GraphVariable)


class _Difference(Exception):
    """The first difference found."""

    def __init__(self, path: Path, lhs: Any, rhs: Any, reason: str) -> None:
        self.path, self.lhs, self.rhs, self.reason = path, lhs, rhs, reason


class _Comparison:
    """One comparison: the work that is left, and which variables and buffers correspond."""

    def __init__(self, map_free_vars: bool) -> None:
        self.map_free_vars = map_free_vars
        self.forward: dict[Any, Any] = {}
        self.backward: dict[Any, Any] = {}
        self.seen: set[tuple[int, int]] = set()
        # Which computation on one side is which on the other, within the function that is being compared.
        self.computed: dict[int, int] = {}
        self.computed_back: dict[int, int] = {}
        self.made: list[Any] = []
        self.work: list[tuple[Any, ...]] = []

    def run(self, lhs: Any, rhs: Any) -> None:
        """Raise ``_Difference`` at the first difference."""
        self.work.append((lhs, rhs, Role.USE, None))
        while self.work:
            item = self.work.pop()
            if len(item) == 1:
                item[0]()
            else:
                self._compare(*item)

    def _compare(self, lhs: Any, rhs: Any, role: Role, path: Path) -> None:
        if type(lhs) in _FIELDS and type(rhs) is type(lhs):
            self._compare_nodes(lhs, rhs, role, path)
            return
        lhs, rhs = as_plain(lhs), as_plain(rhs)
        if isinstance(lhs, Node) != isinstance(rhs, Node):
            lhs, rhs = _as_constants(lhs, rhs)
            # Pairs are known by identity, so what is made on the way must live as long as the comparison.
            self.made += (lhs, rhs)
        if isinstance(lhs, Node):
            self._compare_nodes(lhs, rhs, role, path)
        elif isinstance(lhs, (tuple, list)) and isinstance(rhs, (tuple, list)):
            self._same_length(lhs, rhs, path)
            for position in range(len(lhs) - 1, -1, -1):
                self.work.append((lhs[position], rhs[position], role, (path, f"[{position}]")))
        elif isinstance(lhs, Mapping) and isinstance(rhs, Mapping):
            self._compare_mappings(lhs, rhs, path)
        elif not _same_value(lhs, rhs):
            raise _Difference(path, lhs, rhs, "the values differ")

    def _same_length(self, lhs: Any, rhs: Any, path: Path) -> None:
        if len(lhs) != len(rhs):
            raise _Difference(path, lhs, rhs, f"one has {len(lhs)} elements, the other {len(rhs)}")

    def _compare_mappings(self, lhs: Mapping[Any, Any], rhs: Mapping[Any, Any], path: Path) -> None:
        """Equal keys have equal values; keys that are variables correspond as the map says."""
        self._same_length(lhs, rhs, path)
        for key, value in lhs.items():
            if isinstance(key, Id):
                other: Any = Id(self.forward.get(key.variable, key.variable))
            else:
                other = self.forward.get(key, key) if isinstance(key, VARIABLES) else key
            if other not in rhs:
                raise _Difference(path, lhs, rhs, f"the key {key!r} exists on only one side")
            self.work.append((value, rhs[other], Role.USE, (path, f"[{key!r}]")))

    def _compare_nodes(self, lhs: Node, rhs: Any, role: Role, path: Path) -> None:
        if type(lhs) is not type(rhs):
            raise _Difference(path, lhs, rhs, f"one is {type(lhs).__name__}, the other {type(rhs).__name__}")
        if isinstance(lhs, VARIABLES):
            self._compare_variables(lhs, rhs, role, path)
            return
        if (id(lhs), id(rhs)) in self.seen:
            return
        if isinstance(lhs, UnknownDimension):
            return
        if isinstance(lhs, Op) or not lhs.field_names:
            if lhs is not rhs:
                raise _Difference(path, lhs, rhs, "they are different objects")
            return
        if lhs.node_kind == "buffer" and not self._correspond(lhs, rhs, path):
            return
        if lhs.node_kind in COMPUTED and isinstance(lhs, RelayExpr):
            self._same_computation(lhs, rhs, path)
        self.seen.add((id(lhs), id(rhs)))
        self._push_fields(lhs, rhs, role, path)

    def _push_fields(self, lhs: Node, rhs: Node, role: Role, path: Path) -> None:
        """Bind what the nodes define, and leave the comparison of the rest as work."""
        fields = fields_in_order(type(lhs))
        if lhs.node_kind == "function":
            outer = self.computed, self.computed_back
            self.computed, self.computed_back = {}, {}
            self.work.append((lambda: self._leave_function(outer),))
        undo: list[tuple[Any, Any, Any, Any]] = []
        for name, field_role in fields:
            if field_role is Role.BIND:
                self._bind(field_value(lhs, name), field_value(rhs, name), (path, f".{name}"), undo)
        if undo:
            self.work.append((lambda: self._restore(undo),))
            for bound, other, _, _ in undo:
                if isinstance(bound, GraphVariable):
                    # The annotation may name type parameters that the same node binds, so it is compared now.
                    self.work.append((bound.type_annotation, other.type_annotation, Role.USE, path))
        for name, field_role in reversed(fields):
            if field_role is not Role.BIND:
                inner = field_role if field_role is Role.INTRODUCE else role
                self.work.append((field_value(lhs, name), field_value(rhs, name), inner, (path, f".{name}")))

    def _bind(self, lhs: Any, rhs: Any, path: Path, undo: list[tuple[Any, Any, Any, Any]]) -> None:
        """Map definitions to one another until ``undo`` is applied."""
        if isinstance(lhs, (tuple, list)):
            self._same_length(lhs, rhs, path)
            for left, right in zip(lhs, rhs, strict=True):
                self._bind(left, right, path, undo)
            return
        if not isinstance(lhs, VARIABLES):
            # A definition that is not a variable (a matched buffer) introduces itself where it is compared.
            self.work.append((lhs, rhs, Role.INTRODUCE, path))
            return
        self._same_kind(lhs, rhs, path)
        previous, previous_back = self.forward.get(lhs), self.backward.get(rhs)
        undo.append((lhs, rhs, previous, previous_back))
        if previous is not None or previous_back is not None:
            # What was proven equal under the old correspondence need not be under the new one.
            self.seen.clear()
        self._map(lhs, rhs)

    def _map(self, lhs: Any, rhs: Any) -> None:
        self.forward[lhs] = rhs
        self.backward[rhs] = lhs

    def _restore(self, undo: list[tuple[Any, Any, Any, Any]]) -> None:
        """Leave a scope: its correspondences end, those they hid come back."""
        for lhs, rhs, previous, previous_back in reversed(undo):
            if previous is None:
                self.forward.pop(lhs, None)
            else:
                self.forward[lhs] = previous
            if previous_back is None:
                self.backward.pop(rhs, None)
            else:
                self.backward[rhs] = previous_back
            if previous is not None or previous_back is not None:
                self.seen.clear()

    def _same_kind(self, lhs: Any, rhs: Any, path: Path) -> None:
        """Variables correspond only if they have one class and one type."""
        if type(lhs) is not type(rhs):
            raise _Difference(path, lhs, rhs, f"one is {type(lhs).__name__}, the other {type(rhs).__name__}")
        if isinstance(lhs, Var):
            if lhs.dtype is not rhs.dtype:
                raise _Difference(path, lhs, rhs, f"one variable has type {lhs.dtype}, the other {rhs.dtype}")
            if lhs.type_annotation != rhs.type_annotation:
                raise _Difference(
                    path, lhs, rhs, f"one variable is {lhs.type_annotation}, the other {rhs.type_annotation}"
                )
        elif isinstance(lhs, TypeVar) and lhs.kind != rhs.kind:
            raise _Difference(path, lhs, rhs, "the type variables have different kinds")

    def _compare_variables(self, lhs: Any, rhs: Any, role: Role, path: Path) -> None:
        """A use: the variables correspond, or are one and the same, or come to correspond here."""
        if lhs in self.forward or rhs in self.backward:
            if self.forward.get(lhs) is not rhs or self.backward.get(rhs) is not lhs:
                raise _Difference(path, lhs, rhs, "the variables stand for different definitions")
        elif self.map_free_vars or role is Role.INTRODUCE:
            self._same_kind(lhs, rhs, path)
            self._map(lhs, rhs)
        elif lhs is not rhs:
            raise _Difference(path, lhs, rhs, "they are different free variables")

    def _same_computation(self, lhs: Node, rhs: Node, path: Path) -> None:
        """Checks that sharing is the same on both sides."""
        known = self.computed.setdefault(id(lhs), id(rhs))
        known_back = self.computed_back.setdefault(id(rhs), id(lhs))
        if known != id(rhs) or known_back != id(lhs):
            raise _Difference(
                path, lhs, rhs, "one side computes it once and reuses it, the other recomputes it"
            )

    def _leave_function(self, outer: tuple[dict[int, int], dict[int, int]]) -> None:
        self.computed, self.computed_back = outer

    def _correspond(self, lhs: Any, rhs: Any, path: Path) -> bool:
        """True if two buffers meet here for the first time, so that their fields must be compared."""
        if lhs in self.forward or rhs in self.backward:
            if self.forward.get(lhs) is not rhs or self.backward.get(rhs) is not lhs:
                raise _Difference(path, lhs, rhs, "the buffers stand for different definitions")
            return False
        self._map(lhs, rhs)
        return True


def _as_constants(lhs: Any, rhs: Any) -> tuple[Any, Any]:
    """A number compared with a node is a constant."""
    if isinstance(lhs, (bool, int, float)) and isinstance(rhs, Node):
        return operators.const(lhs), rhs
    if isinstance(rhs, (bool, int, float)) and isinstance(lhs, Node):
        return lhs, operators.const(rhs)
    return lhs, rhs


_ROUNDING: Final = 1e-9
"""Numbers further apart than this are different, however large they are."""


def _same_value(lhs: Any, rhs: Any) -> bool:
    """Equality of what is not a node: arrays by type, shape and contents, floats as numbers that are the same float32.

    An attribute may have gone through an array of float32 on one side (1e-5 is 9.99999974e-6 there): such numbers are
    the same, NaNs are too, zeros of different sign are not.
    """
    if isinstance(lhs, float) and isinstance(rhs, float):
        if math.isnan(lhs) or math.isnan(rhs):
            return math.isnan(lhs) and math.isnan(rhs)
        if lhs == rhs:
            return math.copysign(1.0, lhs) == math.copysign(1.0, rhs)
        return abs(lhs - rhs) < _ROUNDING and np.float32(lhs) == np.float32(rhs)
    if isinstance(lhs, np.ndarray) or isinstance(rhs, np.ndarray):
        return (
            isinstance(lhs, np.ndarray)
            and isinstance(rhs, np.ndarray)
            and lhs.dtype == rhs.dtype
            and np.array_equal(lhs, rhs, equal_nan=lhs.dtype.kind == "f")
        )
    numbers = (bool, float)
    if isinstance(lhs, Node) or isinstance(rhs, Node) or isinstance(lhs, numbers) != isinstance(rhs, numbers):
        return lhs is rhs
    return lhs is rhs or bool(lhs == rhs)


def find_difference(
    lhs: Any, rhs: Any, map_free_vars: bool, report: Callable[[str, Any, Any, str], Any]
) -> Any:
    """None if equal, else ``report(path, left part, right part, reason)``."""
    try:
        _Comparison(map_free_vars).run(lhs, rhs)
    except _Difference as difference:
        steps: list[str] = []
        path = difference.path
        while path is not None:
            steps.append(path[1])
            path = path[0]
        return report("".join(reversed(steps)), difference.lhs, difference.rhs, difference.reason)
    return None


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """True if both are the same program up to the names of bound variables; see the module's text."""
    return find_difference(lhs, rhs, map_free_vars, lambda *_: True) is None


def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """Raise ``StructuralMismatch`` that says where and how the programs differ, if they do."""

    def report(path: str, left: Any, right: Any, reason: str) -> str:
        place = f"at {path}" if path else "at the root"
        return f"not structurally equal {place}: {reason}\n  left:  {_shown(left)}\n  right: {_shown(right)}"

    message = find_difference(lhs, rhs, map_free_vars, report)
    if message is not None:
        raise StructuralMismatch(message)


def _shown(value: Any, limit: int = 400) -> str:
    """A value on one line, cut where it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= limit else f"{text[:limit]}…"
