"""The interface of a node for converters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import IntImm
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Constant, const
from tilewright.relay.frontend.onnx.low_precision import LowPrecisionType
from tilewright.relay.frontend.onnx.needs import ShapeNeeded, value_needed
from tilewright.relay.infer import type_of
from tilewright.support.errors import ModelError

if TYPE_CHECKING:
    from tilewright.relay.frontend.onnx.importer import GraphImporter

_MISSING = object()


class Node:
    """One node of a model: its attributes, its opset, and what is known of its inputs.

    ``graph`` converts the subgraphs that attributes hold.
    """

    def __init__(self, proto: Any, attributes: dict[str, Any], opset: int, graph: GraphImporter) -> None:
        self.proto = proto
        self.attributes = attributes
        self.opset = opset
        self.graph = graph

    @property
    def op_type(self) -> str:
        """The operator's name."""
        return str(self.proto.op_type)

    @property
    def name(self) -> str:
        """The node's name, or the name of its first output where it has none."""
        return str(self.proto.name or next(iter(self.proto.output), "") or self.proto.op_type)

    @property
    def num_outputs(self) -> int:
        """The number of outputs, including unnamed ones."""
        return len(self.proto.output)

    def wants(self, output: int) -> bool:
        """True if an output is named, so that it may be used."""
        return output < len(self.proto.output) and bool(self.proto.output[output])

    @property
    def where(self) -> str:
        """The node in a message."""
        return f"node {self.name!r} ({self.op_type})"

    def fail(self, reason: str) -> ModelError:
        """An error about this node."""
        return ModelError(f"{self.where}: {reason}")

    # Attributes

    def attr(self, name: str, default: Any = _MISSING) -> Any:
        """An attribute: int, float, str, list, array, or a graph."""
        found = self.attributes.get(name, default)
        if found is _MISSING:
            raise self.fail(f"the attribute {name!r} is missing")
        return found

    # Types

    def type_of(self, expr: RelayExpr) -> TensorType:
        """The type of a tensor."""
        found = type_of(expr, self.graph.module)
        if not isinstance(found, TensorType):
            raise self.fail(f"an input is {found}, not a tensor")
        return found

    def dtype(self, expr: RelayExpr) -> str:
        """The element type of a tensor."""
        return str(self.type_of(expr).dtype)

    def low_precision(self, expr: RelayExpr) -> LowPrecisionType | None:
        """The low-precision type that a tensor carries, if it does."""
        return self.graph.low_precision.get(expr)

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
                f"{self.where}: {what} has the shape {found}, and all of it must be known: fix it with shape="
            )
        return tuple(extent for extent in found if extent is not None)

    def rank(self, expr: RelayExpr) -> int:
        """The number of dimensions."""
        return len(self.type_of(expr).shape)

    # Values

    def value(self, expr: RelayExpr | None) -> np.ndarray[Any, Any] | None:
        """The value of an input that is known now: a constant or an initializer. None where it is not known."""
        return None if expr is None else self.graph.known_value(expr)

    def partial(self, expr: RelayExpr) -> list[int | None] | None:
        """The known elements of a vector of integers; None if not even its length is known."""
        return self.graph.partial_value(expr)

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

    def axis(self, default: int, rank: int, name: str = "axis") -> int:
        """An axis attribute counted from the front."""
        found = int(self.attr(name, default))
        if not -rank <= found < max(rank, 1):
            raise self.fail(f"{name} {found} is out of range for {rank} dimensions")
        return found % rank if rank else 0

    def constant(self, value: Any, like: RelayExpr | str) -> Constant:
        """A constant of an element type, given by its name or by a tensor that has it."""
        return const(value, like if isinstance(like, str) else self.dtype(like))

    def constants(self, values: Sequence[int]) -> Constant:
        """A vector of int64."""
        return const(np.asarray(values, dtype="int64"))
