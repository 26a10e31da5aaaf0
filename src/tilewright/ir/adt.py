"""Algebraic data types: a definition has a name and the constructors of its values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.type import GlobalTypeVar, Type, TypeVar
from tilewright.support.node import node
from tilewright.support.slot import GRAPH_CALL


@node
class Constructor(RelayExpr):
    """Makes a value of the type ``belong_to`` from values of the types ``inputs``; ``tag`` tells constructors apart."""

    name_hint: str
    inputs: tuple[Type, ...]
    belong_to: GlobalTypeVar
    tag: int

    def __init__(
        self, name_hint: str, inputs: Sequence[Type], belong_to: GlobalTypeVar, tag: int = -1
    ) -> None:
        self.name_hint = name_hint
        self.inputs = tuple(inputs)
        self.belong_to = belong_to
        self.tag = tag

    def __call__(self, *args: Any) -> Any:
        """The value that the constructor makes of these graph-level expressions."""
        return GRAPH_CALL.value(self, args)


@node
class TypeData(Type):
    """The definition of the type ``header``, generic in ``type_vars``; constructors without a tag are numbered."""

    header: GlobalTypeVar
    type_vars: tuple[TypeVar, ...]
    constructors: tuple[Constructor, ...]

    def __init__(
        self, header: GlobalTypeVar, type_vars: Sequence[TypeVar], constructors: Sequence[Constructor]
    ) -> None:
        self.header = header
        self.type_vars = tuple(type_vars)
        self.constructors = tuple(constructors)
        for position, constructor in enumerate(self.constructors):
            if constructor.tag < 0:
                # In place: the constructor that the caller holds is the one of the definition.
                object.__setattr__(constructor, "tag", _tag(header.name_hint, position))


def _tag(type_name: str, position: int) -> int:
    """A number of 32 bits that differs between types and between the constructors of one type."""
    prefix = 0
    for letter in type_name.encode():
        prefix = (prefix * 31 + letter) & 0xFFFFFF
    return (prefix << 8) | position
