"""The parameters of quantised layers, which PyTorch packs into objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import Constant
from tilewright.relay.frontend.torch.node import Expr
from tilewright.relay.frontend.torch.package import torch_package
from tilewright.relay.frontend.torch.script.attributes import stored_tensor
from tilewright.relay.frontend.torch.script.node import ScriptNode
from tilewright.relay.frontend.torch.script.quantized.arithmetic import quantized
from tilewright.relay.frontend.torch.script.values import ObjectValue, Quantization
from tilewright.runtime import ndarray


@dataclass(frozen=True)
class Packed:
    """A layer's weight, as integers, and bias, as numbers."""

    weight: Expr
    quantization: Quantization
    bias: np.ndarray[Any, Any] | None
    path: str


def unpacked(node: ScriptNode, value: Any, unpack: str) -> Packed:
    """The weight and bias of a packed object; ``unpack`` is the operator that takes it apart.

    The weight is a parameter of the program: its integers if the user keeps quantised weights, else the numbers that
    they stand for, which the compiler quantises.
    """
    if not isinstance(value, ObjectValue):
        raise node.fail("the packed parameters of a quantised layer are expected")
    path = ".".join(value.path)
    weight, bias = getattr(torch_package().ops.quantized, unpack)(value.item)
    attributes = node.graph.attributes
    cache = attributes.packed
    if path not in cache:
        integers, of = stored_tensor(weight, f"{path}_weight")
        if of is None:
            raise node.fail("the weight is not quantised")
        if attributes.keep_quantized:
            expr: Expr = attributes.parameter(f"{path}_weight", integers)
        else:
            numbers = ndarray.array(weight.dequantize().contiguous().numpy())
            expr = quantized(node, attributes.parameter(f"{path}_weight", numbers), of)
        array = None if bias is None else bias.detach().float().numpy()
        cache[path] = Packed(expr, of, array, path)
    found: Packed = cache[path]
    return found


def bias_of(node: ScriptNode, packed: Packed, data_scale: Any, product: Expr, axis: int) -> tuple[Any, Any]:
    """A layer's integer product with the bias added where that is quantised, and the bias to add to numbers where it
    is not."""
    if packed.bias is None:
        return product, None
    attributes = node.graph.attributes
    if not attributes.keep_quantized:
        return product, attributes.parameter(f"{packed.path}_bias", ndarray.array(packed.bias))
    if not isinstance(data_scale, (int, float)):
        raise node.fail(
            "a quantised bias needs a scale of the data that is known: keep_quantized_weight=False"
        )
    scale = packed.quantization.scale
    weight_scale = scale.data.numpy() if isinstance(scale, Constant) else np.float64(scale)
    steps = np.rint(packed.bias / (np.float64(data_scale) * weight_scale)).astype("int32")
    bias = attributes.parameter(f"{packed.path}_bias", ndarray.array(steps))
    return relay.nn.bias_add(product, bias, axis=axis), None
