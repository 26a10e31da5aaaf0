"""Relations between types, which inference solves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir.attrs import Attrs
from tilewright.ir.type import Type, TypeConstraint
from tilewright.support.node import node


@node
class TypeRelation(TypeConstraint):
    """``func`` holds between ``args``, of which the first ``num_inputs`` are inputs and the rest outputs."""

    func: Callable[..., Any]
    args: tuple[Type, ...]
    num_inputs: int
    attrs: Attrs | None

    def __init__(
        self, func: Callable[..., Any], args: Sequence[Type], num_inputs: int, attrs: Attrs | None = None
    ) -> None:
        self.func = func
        self.args = tuple(args)
        self.num_inputs = num_inputs
        self.attrs = attrs
