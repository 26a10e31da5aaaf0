"""One node of a model, as the code that converts it sees it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import IntImm
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Constant, const
from tilewright.relay.frontend.common.needs import ShapeNeeded, value_needed
from tilewright.relay.infer import TypeInferenceError, type_of
from tilewright.support.errors import ModelError, TilewrightError
from tilewright.support.span import SourceName, Span, span_scope
from tilewright.support.wording import argument

_MISSING = object()

_FAILURES = (
    TypeInferenceError,
    TilewrightError,
    TypeError,
    ValueError,
    LookupError,
    ArithmeticError,
    AttributeError,
    AssertionError,
    MemoryError,
)
"""The errors that an invalid node may cause."""


class ModelNode:
    """A node: its operator, its name, its attributes, and what is known of its inputs."""

    def __init__(self, op_type: str, name: str, attributes: dict[str, Any], module: IRModule) -> None:
        self.op_type = op_type
        self.name = name
        self.attributes = attributes
        self.module = module

    # Messages

    @property
    def where(self) -> str:
        """The node in a message."""
        return f"node {self.name!r} ({self.op_type})"

    def fail(self, reason: str) -> ModelError:
        """An error about this node."""
        made = ModelError(f"{self.where}: {reason}")
        made.node = self.name
        return made

    def reason(self, error: BaseException) -> str:
        """What an error during the conversion says about the node."""
        return str(getattr(error, "message", error))

    @contextmanager
    def conversion(self) -> Iterator[None]:
        """Within it, new calls have spans that name this node, and whatever goes wrong is an error about it."""
        with span_scope(Span(SourceName(f"{self.op_type} {self.name}"), 0, 0, 0, 0)):
            try:
                yield
            except ModelError as error:
                error.node = error.node or self.name
                raise
            except _FAILURES as error:
                raise self.fail(self.reason(error)) from error

    # Attributes

    def attr(self, name: str, default: Any = _MISSING) -> Any:
        """An attribute: int, float, str, list, array, or a graph."""
        found = self.attributes.get(name, default)
        if found is _MISSING:
            raise self.fail(f"the attribute {name!r} is missing")
        return found

    def axis(self, default: int, rank: int, name: str = "axis") -> int:
        """An axis attribute counted from the front."""
        return self.from_front(int(self.attr(name, default)), max(rank, 1), name)

    def from_front(self, axis: int, rank: int, what: str = "axis") -> int:
        """An axis counted from the front. Where a scalar may be addressed as if it had one axis, its rank is one."""
        if not -rank <= axis < rank:
            raise self.fail(f"{what} {axis} is out of range for {rank} dimensions")
        return axis % rank

    # Types

    def type_of(self, expr: RelayExpr) -> TensorType:
        """The type of a tensor."""
        found = type_of(expr, self.module)
        if not isinstance(found, TensorType):
            raise self.fail(f"an input is {found}, not a tensor")
        return found

    def dtype(self, expr: RelayExpr) -> str:
        """The element type of a tensor."""
        return str(self.type_of(expr).dtype)

    def shape(self, expr: RelayExpr) -> tuple[int | None, ...]:
        """The shape of a tensor, None for dimensions that are not known."""
        return tuple(
            extent.value if isinstance(extent, IntImm) else None for extent in self.type_of(expr).shape
        )

    def static_shape(self, expr: RelayExpr, what: str = "the input") -> tuple[int, ...]:
        """The shape of a tensor; an error where a dimension is not known."""
        found = self.shape(expr)
        if any(extent is None for extent in found):
            raise ShapeNeeded(
                f"{self.where}: {what} has the shape {found}, and all of it must be known: fix it with "
                f"{argument('shape')}"
            )
        return tuple(extent for extent in found if extent is not None)

    def rank(self, expr: RelayExpr) -> int:
        """The number of dimensions."""
        return len(self.type_of(expr).shape)

    # Values

    def value(self, expr: RelayExpr | None) -> np.ndarray[Any, Any] | None:
        """The value of an input that is known now. None where it is not known. Frontends that follow more than
        constants override this."""
        return expr.data.numpy() if isinstance(expr, Constant) else None

    def required_value(self, expr: RelayExpr | None, what: str) -> np.ndarray[Any, Any]:
        """The value of an input that has to be known now."""
        found = self.value(expr)
        if found is None:
            raise self.needs_value(expr, what)
        return found

    def needs_value(self, expr: RelayExpr | None, what: str) -> ModelError:
        """The error about an input that has to be known now and is not."""
        if expr is None:
            return self.fail(f"{what} is missing")
        return value_needed(f"{self.where}: {what} has to be a constant", expr)

    def ints(self, expr: RelayExpr | None, what: str) -> list[int]:
        """An input that is a known list of integers."""
        return [int(item) for item in self.required_value(expr, what).reshape(-1)]

    def constant(self, value: Any, like: RelayExpr | str) -> Constant:
        """A constant of an element type, given by its name or by a tensor that has it."""
        return const(value, like if isinstance(like, str) else self.dtype(like))

    def constants(self, values: Sequence[int]) -> Constant:
        """A vector of int64."""
        return const(np.asarray(values, dtype="int64"))
