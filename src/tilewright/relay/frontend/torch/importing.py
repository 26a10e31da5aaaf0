"""What the importers share: variables for inputs and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir.tensor_type import TensorType, scalar_type
from tilewright.relay.expr import Constant, Expr, Var
from tilewright.relay.frontend.common import input_type
from tilewright.relay.frontend.torch.arrays import array_of
from tilewright.relay.frontend.torch.complex_pair import ComplexPair, constant_pair
from tilewright.relay.frontend.torch.dtypes import dtype_name
from tilewright.relay.frontend.torch.node import Scope
from tilewright.runtime.ndarray import NDArray
from tilewright.support.errors import ModelError


class Weights:
    """The tensors that a model holds: parameters of ``main`` with their values, or constants of the program."""

    def __init__(self, scope: Scope, freeze: bool) -> None:
        self.scope = scope
        self.freeze = freeze
        self.values: dict[str, NDArray] = {}

    def add(self, name: str, tensor: Any) -> Expr | ComplexPair:
        """A tensor of the model. One element, integers, which may be indices or sizes, and complex numbers are always
        constants."""
        if tensor.is_complex():
            return constant_pair(tensor)
        stored = array_of(tensor, f"the tensor {name!r}")
        whole = stored.dtype.is_integral or stored.dtype.is_bool
        if self.freeze or whole or tensor.numel() <= 1:
            return Constant(stored)
        return self.add_parameter(name, stored)

    def add_parameter(self, name: str, stored: NDArray) -> Var:
        """A parameter of ``main``."""
        variable = Var(name, TensorType(stored.shape, stored.dtype))
        self.values[name] = stored
        self.scope.param_values[variable] = stored
        return variable


def input_variable(name: str, example: Any, shape: Sequence[Any] | None = None) -> Var:
    """A variable for an input that is like an example, perhaps a fake one; open dimensions stay open unless ``shape``
    has them."""
    if not hasattr(example, "shape"):
        kind = type(example).__name__.removeprefix("Sym").lower()
        return Var(name, scalar_type({"int": "int64", "float": "float64", "bool": "bool"}[kind]))
    sizes: list[int | None] = [size if type(size) is int else None for size in example.shape]
    if shape is not None:
        if len(shape) != len(sizes) or any(
            have is not None and given is not None and have != given
            for have, given in zip(sizes, shape, strict=True)
        ):
            raise ModelError(
                f"the input {name!r} was exported with the shape {list(example.shape)}, it cannot have {list(shape)}: "
                "export the model with dynamic_shapes, or for this shape"
            )
        sizes = [have if given is None else int(given) for have, given in zip(sizes, shape, strict=True)]
    return Var(name, input_type(name, sizes, dtype_name(example.dtype)))
