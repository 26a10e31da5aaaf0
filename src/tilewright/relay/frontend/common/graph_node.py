"""A node of a model's graph as the code that converts it sees it, and what the nodes of a model share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Constant, ExprWithOp, Var, const
from tilewright.relay.frontend.common.folding import Folder
from tilewright.relay.frontend.common.held import HeldValues, ScopedNode
from tilewright.relay.frontend.common.sizes import Size, all_known, as_scalar, vector
from tilewright.runtime import ndarray
from tilewright.runtime.ndarray import NDArray

Expr = ExprWithOp
LONGEST_VECTOR = 64
"""Elements: longer vectors of integers are not shapes, and not followed element by element."""


class Scope(HeldValues):
    """What the converters of a model share: its module, its parameters, and the vectors whose elements are followed.

    ``vectors`` maps tensors of integers with at most one dimension to their elements, each a number or a scalar, so
    that the arithmetic of shapes folds away where sizes are known.
    """

    def __init__(self, module: IRModule) -> None:
        super().__init__(module)
        self.folder = Folder(module)
        self.params: dict[str, NDArray] = {}
        self.vectors: dict[RelayExpr, list[Size]] = {}

    def stored(self, name: str, value: np.ndarray[Any, Any]) -> Expr:
        """A tensor that the model holds: floating-point weights are parameters of ``main``, all else constants."""
        if value.dtype.kind != "f" or value.size <= 1:
            return Constant(ndarray.array(np.ascontiguousarray(value).reshape(value.shape)))
        chosen, count = name, 0
        while chosen in self.params:
            count += 1
            chosen = f"{name}_{count}"
        array = ndarray.array(np.ascontiguousarray(value))
        variable = Var(chosen, TensorType(array.shape, array.dtype))
        self.params[chosen] = array
        self.param_values[variable] = array
        return variable


class GraphNode(ScopedNode):
    """A node: its operator, its name, its attributes, and what is known of its inputs."""

    scope: Scope

    def permuted(self, weight: Expr, axes: Sequence[int]) -> Expr:
        """A tensor with its axes in another order: a parameter of its own where the value is at hand."""
        known = self.value(weight)
        if known is None:
            return relay.transpose(weight, list(axes))
        return self._stored_like(weight, known.transpose(axes))

    def reshaped_weight(self, weight: Expr, shape: Sequence[int]) -> Expr:
        """A weight in another shape: a parameter of its own where the value is at hand."""
        known = self.value(weight)
        if known is None:
            return relay.reshape(weight, list(shape))
        return self._stored_like(weight, known.reshape(shape))

    def _stored_like(self, weight: Expr, value: np.ndarray[Any, Any]) -> Expr:
        name = weight.name_hint if isinstance(weight, Var) else self.name
        return self.scope.stored(name, np.ascontiguousarray(value))

    # Sizes

    def elements(self, expr: RelayExpr, what: str = "the shape") -> list[Size]:
        """The elements of a vector or scalar of integers, each a number or a scalar of int64."""
        known = self.value(expr)
        if known is not None:
            return [int(item) for item in known.reshape(-1)]
        found = self.scope.vectors.get(expr)
        if found is not None:
            return found
        shape = self.shape(expr)
        if not shape:
            return [relay.cast(expr, "int64")]
        if len(shape) > 1 or shape[0] is None or shape[0] > LONGEST_VECTOR:
            raise self.needs_value(expr, what)
        wide = relay.cast(expr, "int64")
        return [relay.take(wide, const(place, "int64"), axis=0) for place in range(shape[0])]

    def followed(self, expr: RelayExpr) -> list[Size] | None:
        """The elements of a vector or scalar whose elements are followed; None for any other tensor."""
        known = self.value(expr)
        if known is not None:
            small = known.dtype.kind in "iu" and known.ndim <= 1 and known.size <= LONGEST_VECTOR
            return [int(item) for item in known.reshape(-1)] if small else None
        return self.scope.vectors.get(expr)

    def of_elements(self, sizes: Sequence[Size], dtype: str, scalar: bool = False) -> Expr:
        """The vector (or scalar) of these elements, which are followed from here on."""
        if all_known(sizes):
            return const(np.asarray(sizes[0] if scalar else list(sizes), dtype))
        made = as_scalar(sizes[0], dtype) if scalar else vector(sizes)
        if not scalar and dtype != "int64":
            made = relay.cast(made, dtype)
        self.scope.vectors[made] = list(sizes)
        return made
