"""The symbol table of a script while it is parsed, and the memory that its scopes hold."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.ir.expr import PrimExpr, ProducerLoad, Range
from tilewright.ir.functor import post_order
from tilewright.support.dtype import DataType
from tilewright.te.operation import PlaceholderOp
from tilewright.te.tensor import Tensor
from tilewright.tir.stmt import ProducerRealize, Stmt


@dataclass(eq=False)
class Scalar:
    """A variable that is assigned more than once, or whose value comes from memory: one element of memory."""

    name: str
    tensor: Tensor
    declaration: ast.AST


@dataclass(frozen=True)
class Element:
    """A tensor with some or all of its indices."""

    tensor: Tensor
    indices: tuple[PrimExpr, ...]

    @property
    def shape(self) -> tuple[PrimExpr, ...]:
        """The dimensions that are left."""
        return self.tensor.shape[len(self.indices) :]


@dataclass(eq=False)
class Memory:
    """A tensor that the script makes, and the storage scope it lives in."""

    tensor: Tensor
    storage_scope: str


@dataclass(eq=False)
class Scope:
    """The names and the memory of a function, or of one loop's body."""

    names: dict[str, Any] = field(default_factory=dict)
    memory: list[Memory] = field(default_factory=list)
    fixed: set[str] = field(default_factory=set)
    """Names that cannot be assigned: parameters and loop variables."""


def make_tensor(name: str, shape: Sequence[PrimExpr], dtype: str, span: Any = None) -> Tensor:
    """Memory as a tensor."""
    return PlaceholderOp(name, tuple(shape), DataType(dtype), span).output(0)


def with_memory(memory: Sequence[Memory], body: Stmt) -> Stmt:
    """The statement inside the lifetime of this memory."""
    for one in reversed(memory):
        bounds = [Range(0, extent) for extent in one.tensor.shape]
        body = ProducerRealize(one.tensor, bounds, True, body, one.storage_scope)
    return body


def reads_memory(expr: PrimExpr) -> bool:
    """True if the value depends on what memory holds."""
    return any(isinstance(part, ProducerLoad) for part in post_order(expr))
