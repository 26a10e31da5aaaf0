"""Numbers of tensors, checks, and what is known about tensors."""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.torch.dtypes import is_floating
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.registry import converter


@converter("aten::_local_scalar_dense", "aten::item")
def item(node: TorchNode, input: Expr) -> Any:
    """The one element of a tensor as a number."""
    value = node.value(input)
    if value is not None and value.size == 1:
        return value.reshape(-1)[0].item()
    found = relay.reshape(input, ()) if node.rank(input) else input
    dtype = node.dtype(input)
    wide = "bool" if dtype == "bool" else "float64" if is_floating(dtype) else "int64"
    return node.scope.number(found if dtype == wide else relay.cast(found, wide))


@converter("aten::is_nonzero")
def is_nonzero(node: TorchNode, input: Expr) -> Any:
    """Whether the one element of a tensor is not zero."""
    found = relay.reshape(input, ()) if node.rank(input) else input
    return node.scope.number(node.cast(found, "bool"))


@converter(
    "aten::_assert_async", "aten::_assert_scalar", "aten::_assert_tensor_metadata", "aten::_assert",
    "aten::_functional_assert_async", "aten::_functional_assert_scalar",
    "aten::sym_constrain_range", "aten::sym_constrain_range_for_size",
    "aten::_functional_sym_constrain_range", "aten::_functional_sym_constrain_range_for_size",
    "aten::_print", "aten::_make_dep_token", "aten::_propagate_xla_data",
)  # fmt: skip
def nothing(node: TorchNode, **arguments: Any) -> None:
    """Checks of the exporter, which say nothing that the program would compute."""


@converter("aten::is_floating_point")
def is_floating_point(node: TorchNode, input: Expr) -> bool:
    """Whether the elements are floating-point numbers."""
    return is_floating(node.dtype(input))


@converter("aten::is_complex")
def is_complex(node: TorchNode, input: Expr) -> bool:
    """There are no complex tensors."""
    return False


@converter("aten::dim")
def dim(node: TorchNode, input: Expr) -> int:
    """The number of dimensions."""
    return node.rank(input)


@converter("aten::is_same_size")
def is_same_size(node: TorchNode, input: Expr, other: Expr) -> bool:
    """Whether two tensors have the same shape."""
    return node.static_shape(input) == node.static_shape(other)
