"""Writing tensors as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.frontend.common.sizes import broadcast_to, sizes_of
from tilewright.relay.frontend.torch.registry import find_converter
from tilewright.relay.frontend.torch.script.node import ScriptNode
from tilewright.relay.frontend.torch.script.registry import operator
from tilewright.relay.frontend.torch.script.values import Tensor


@operator("aten::copy_", "aten::fill_")
def copy_in_place(node: ScriptNode, target: Tensor, source: Any, *options: Any) -> Tensor:
    """Every element becomes that of another tensor, or a number."""
    old = node.store.read(target)
    new = node.expr(source, node.dtype(old))
    if node.shape(new) != node.shape(old) or None in node.shape(old):
        new = broadcast_to(node, new, sizes_of(node, old))
    node.store.write(target, new)
    return target


@operator("aten::zero_")
def zero_in_place(node: ScriptNode, target: Tensor) -> Tensor:
    """Every element becomes zero."""
    node.store.write(target, relay.zeros_like(node.store.read(target)))
    return target


@operator(
    "aten::squeeze_",
    "aten::swapaxes_",
    "aten::swapdims_",
    "aten::t_",
    "aten::transpose_",
    "aten::unsqueeze_",
)
def reshape_in_place(node: ScriptNode, target: Tensor, *options: Any) -> Tensor:
    """The tensor shows its memory in another shape from now on, under all of its names."""
    assert node.schema is not None
    convert = find_converter(node.op_type, node.schema.overload)
    if convert is None:
        raise node.fail("the operator is not supported")
    if node.store.level:
        plain = node.op_type.removesuffix("_").removeprefix("aten::")
        raise node.fail(f"a change of a tensor's shape inside a branch or loop is not supported: use {plain}")
    first, *others = node.schema.arguments
    arguments = dict(zip(others, options, strict=False))
    defaults = node.schema.defaults

    def view(base: RelayExpr) -> RelayExpr:
        with node.conversion():
            return convert(node, {first: base, **arguments}, defaults)  # type: ignore[no-any-return]

    target.parent = replace(target)
    target.view = view
    target.computed = None
    return target


@operator("aten::set_", "aten::resize_", "aten::resize_as_", "aten::as_strided_")
def resize_in_place(node: ScriptNode, target: Tensor, *options: Any) -> Tensor:
    """A tensor gets other memory."""
    raise node.fail(
        "a tensor that gets other memory, or another size, in place is not supported: make a new tensor"
    )
