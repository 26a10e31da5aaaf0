"""The code generator "onednn": a part of a model as the nodes that oneDNN's runtime makes primitives of."""

from __future__ import annotations

from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.op import Op
from tilewright.relay.backend.byoc.json_serializer import JSONSerializer, call_attributes, json_compiler
from tilewright.relay.expr import Call, Constant
from tilewright.relay.function import Function
from tilewright.relay.op.contrib.dnnl import BACKEND as DNNL
from tilewright.relay.op.contrib.onednn import BACKEND
from tilewright.runtime.external.onednn import OneDNNRuntime
from tilewright.runtime.registry import register_func
from tilewright.support.errors import CodegenError

_ELEMENTWISE = {"nn.relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "clip": "clip"}
_VIEWS = ("reshape", "nn.batch_flatten", "squeeze")
_ANCHORS = ("nn.conv2d", "nn.dense", "nn.batch_matmul")


def _element_step(call: Call) -> dict[str, Any]:
    """A function of one element, as a node or as a post-operation."""
    name = _name(call)
    step: dict[str, Any] = {"kind": _ELEMENTWISE[name]}
    if name == "clip":
        attributes = call_attributes(call)
        step |= {"alpha": float(attributes["a_min"]), "beta": float(attributes["a_max"])}
    return step


def _name(call: Call) -> str:
    return str(getattr(call.op, "name", ""))


def _anchor_attributes(call: Call) -> dict[str, Any]:
    """The attributes of a convolution or product."""
    given = call_attributes(call)
    if _name(call) == "nn.conv2d":
        padding = list(given["padding"])
        padding = {1: padding * 4, 2: padding * 2, 4: padding}[len(padding)]
        return {
            "primitive": "conv2d",
            "strides": _pair(given["strides"]),
            "dilation": _pair(given["dilation"]),
            "padding": padding,
            "groups": given["groups"],
        }
    if _name(call) == "nn.dense":
        return {"primitive": "product", "transpose_a": False, "transpose_b": True}
    return {
        "primitive": "product",
        "transpose_a": bool(given["transpose_a"]),
        "transpose_b": bool(given["transpose_b"]),
    }


def _pair(value: Any) -> list[int]:
    parts = [int(one) for one in value] if isinstance(value, (list, tuple)) else [int(value)]
    return parts * 2 if len(parts) == 1 else parts


def _pool_attributes(call: Call) -> dict[str, Any]:
    given = call_attributes(call)
    if _name(call) == "nn.global_avg_pool2d":
        _, _, height, width = call.args[0].checked_type.concrete_shape
        return {
            "primitive": "pool2d",
            "kind": "avg",
            "count_include_pad": True,
            "pool_size": [height, width],
            "strides": [1, 1],
            "padding": [0, 0, 0, 0],
        }
    padding = _pair(given["padding"]) if not isinstance(given["padding"], list) else list(given["padding"])
    padding = {1: padding * 4, 2: padding * 2, 4: padding}[len(padding)]
    return {
        "primitive": "pool2d",
        "kind": "max" if _name(call) == "nn.max_pool2d" else "avg",
        "count_include_pad": bool(given.get("count_include_pad", False)),
        "pool_size": _pair(given["pool_size"]),
        "strides": _pair(given["strides"]),
        "padding": padding,
    }


class OneDNNSerializer(JSONSerializer):
    """Nodes with the attribute ``primitive``, and for convolutions and products what follows them."""

    def node_attributes(self, call: Call) -> dict[str, Any]:
        """The attributes by which the runtime makes a primitive."""
        if isinstance(call.op, Function):
            return self._composite(call.op)
        name = _name(call)
        if name in _ANCHORS:
            return _anchor_attributes(call)
        if name in _ELEMENTWISE:
            return {"primitive": "elementwise", **_element_step(call)}
        if name in ("add", "multiply"):
            return {"primitive": "binary", "kind": name}
        if name.endswith("pool2d"):
            return _pool_attributes(call)
        if name == "nn.softmax":
            return {"primitive": "softmax", "axis": call_attributes(call)["axis"]}
        if name in _VIEWS:
            return {"primitive": "view"}
        raise CodegenError(f"onednn has no {name}", span=call.span)

    def _composite(self, function: Function) -> dict[str, Any]:
        """An anchor's attributes, with bias and post-operations by the inputs of the node."""
        constants = [part for part in post_order(function.body) if isinstance(part, Constant)]
        inputs: list[RelayExpr] = [*function.params, *constants]
        tail: list[Call] = []
        at: Any = function.body
        while _name(at) not in _ANCHORS:
            tail.append(at)
            at = next((one for one in at.args if isinstance(one, Call) and isinstance(one.op, Op)), None)
            if at is None:
                raise CodegenError("a composite function of onednn has neither a convolution nor a product")
        made = _anchor_attributes(at)
        # The node's first inputs are what the anchor reads, whatever the order of the function's parameters.
        made["operands"] = [inputs.index(one) for one in at.args]
        post: list[dict[str, Any]] = []
        for call in reversed(tail):
            if _name(call) in _ELEMENTWISE:
                post.append(_element_step(call))
                continue
            addend = next(one for one in call.args if one in inputs)
            position = inputs.index(addend)
            result, shape = function.body.checked_type, addend.checked_type
            is_row = shape.concrete_shape != result.concrete_shape
            if is_row and not post and "bias" not in made:
                made["bias"] = position
            else:
                post.append({"kind": "add", "input": position})
        return {**made, "post": post}


compile_function = json_compiler(OneDNNRuntime, OneDNNSerializer)
for _backend in (BACKEND, DNNL):
    register_func(f"relay.ext.{_backend.name}", compile_function)
