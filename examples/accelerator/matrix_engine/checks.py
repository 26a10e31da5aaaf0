"""What the engine accepts of what matches, and what is worth it: the first reason why not, or True."""

from __future__ import annotations

from typing import Any

from matrix_engine.commands import MOST_COMMANDS
from matrix_engine.layers import Layer, read_layer, steps, value
from matrix_engine.schedule import command_stream


def supported(root: Any, host_products: float) -> bool | str:
    """True if the engine can run the chain, and in fewer cycles than the processor, which computes ``host_products``
    products in each; else the reason why not."""
    found = steps(root)
    product = found.get("qnn.dense") or found["qnn.conv2d"]
    reason = _types(product, root) or _parameters(found, product) or _layout(found, product)
    return reason or _cost(read_layer(root), host_products) or True


def _types(product: Any, root: Any) -> str | None:
    data, weights = (argument.checked_type for argument in product.args[:2])
    if str(data.dtype) != "int8" or str(weights.dtype) != "int8":
        return f"the engine multiplies int8 by int8, not {data.dtype} by {weights.dtype}"
    if str(root.checked_type.dtype) != "int8":
        return f"the engine writes int8, not {root.checked_type.dtype}"
    if not all(hasattr(extent, "value") for extent in data.shape):
        return "the shape is not known when the command stream is made"
    return None


def _parameters(found: dict[str, Any], product: Any) -> str | None:
    requantize, rank = found["qnn.requantize"], len(product.checked_type.shape)
    if value(product.args[2]).size != 1 or value(product.args[3]).size != 1:
        return "the engine has one zero point for the data and one for the weights"
    if value(requantize.args[2]).any():
        return "the accumulators have no zero point"
    scales = value(requantize.args[1])
    if scales.size > 1 and requantize.attrs.axis not in (-1, rank - 1):
        return "scales go along the last axis, the columns of the accumulators"
    factors = scales / value(requantize.args[3])
    if (factors >= 2.0**30).any() or (factors < 2.0**-30).any():
        return "a factor of the requantisation is beyond a shift by 30 bits"
    for name in {"nn.bias_add", "add"} & found.keys():
        if value(found[name].args[1]).size != int(product.checked_type.shape[-1]):
            return "a bias has one number for each output channel"
        if name == "nn.bias_add" and found[name].attrs.axis not in (-1, rank - 1):
            return "a bias goes along the last axis, the columns of the accumulators"
    return None


def _layout(found: dict[str, Any], product: Any) -> str | None:
    if "qnn.dense" in found:
        return None
    attrs = product.attrs
    if (attrs.data_layout, attrs.kernel_layout) != ("NHWC", "HWIO"):
        return f"DMA reads NHWC data and HWIO weights, not {attrs.data_layout} and {attrs.kernel_layout}"
    if attrs.groups != 1:
        return f"{attrs.groups} groups: the engine multiplies every input channel with every output channel"
    return None


def _cost(layer: Layer, host_products: float) -> str | None:
    program = command_stream(layer)
    if len(program) > MOST_COMMANDS:
        return f"{len(program)} commands do not fit the command memory, which takes {MOST_COMMANDS}"
    on_host = layer.products / host_products
    if program.cycles > on_host:
        return f"{program.cycles} cycles on the engine, and about {on_host:.0f} on the processor"
    return None
