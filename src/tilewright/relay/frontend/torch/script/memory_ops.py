"""Writing tensors as a whole."""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.relay.frontend.torch.script.node import ScriptNode
from tilewright.relay.frontend.torch.script.registry import operator
from tilewright.relay.frontend.torch.script.values import Tensor
from tilewright.relay.frontend.torch.sizes import broadcast_to, sizes_of


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


@operator("aten::set_", "aten::resize_", "aten::resize_as_", "aten::swapaxes_", "aten::transpose_", "aten::t_",
          "aten::squeeze_", "aten::unsqueeze_", "aten::swapdims_", "aten::as_strided_")  # fmt: skip
def reshape_in_place(node: ScriptNode, target: Tensor, *options: Any) -> Tensor:
    """These change the shape of a tensor under all of its names."""
    plain = node.op_type.removesuffix("_").removeprefix("aten::")
    raise node.fail(f"a change of a tensor's shape in place is not supported: use {plain} without the underscore")
