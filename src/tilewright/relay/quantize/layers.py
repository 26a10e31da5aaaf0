"""The layers of a model that can be quantised: sums of products with constant weights, and the bias that follows.

``prepared`` brings a model to the form that the rest works on: parameters are constants, batch norms are folded, and
whatever is added per channel is ``nn.bias_add`` next to its layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.transform import PassContext, Sequential
from tilewright.relay import transform
from tilewright.relay.analysis.work import span_name
from tilewright.relay.backend.preparation import bind_params_by_name, with_main
from tilewright.relay.expr import Call, Constant, const
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.relay.op.calls import call
from tilewright.relay.quantize.rules import operator
from tilewright.support.span import span_scope

PRODUCTS: Final = ("nn.conv2d", "nn.conv2d_transpose", "nn.dense", "nn.matmul")
QUANTISED: Final = "qnn."


@dataclass(frozen=True)
class Layer:
    """One layer: its call, a name that no other layer has, and the axes of output channels in weights and results."""

    name: str
    product: Call
    weight: Constant
    weight_axis: int
    channel_axis: int
    bias: Call | None
    """The call of ``nn.bias_add`` that is the only use of the product."""

    @property
    def operator(self) -> str:
        """The operator, without its namespace."""
        return operator(self.product).removeprefix("nn.")

    @property
    def data(self) -> RelayExpr:
        """What the layer multiplies with its weights."""
        return self.product.args[0]

    @property
    def result(self) -> Call:
        """The layer's result, with its bias."""
        return self.product if self.bias is None else self.bias

    @property
    def multiplications(self) -> int:
        """How many products the layer adds up."""
        kind: Any = self.product.checked_type
        values = self.weight.data.shape
        channels = int(values[self.weight_axis])
        return int(np.prod([int(extent) for extent in kind.shape])) * int(np.prod(values)) // channels


def prepared(mod: IRModule, params: Mapping[str, Any] | None = None) -> IRModule:
    """The model as layers are looked for in it."""
    bound = with_main(mod, bind_params_by_name(mod["main"], params or {}))
    with PassContext(opt_level=3):
        made = Sequential(
            [
                transform.InferType(),
                transform.SimplifyInference(),
                transform.FoldConstant(),
                transform.EliminateCommonSubexpr(),
                transform.SimplifyExpr(),
                transform.FoldScaleAxis(),
                transform.FoldConstant(),
                transform.SinkReshape(),
            ]
        )(bound)
    made = infer_module(made)
    main = made["main"]
    body = _Biases(uses_of(main.body)).visit(main.body)
    return infer_module(with_main(made, main.replace(body=body)))


def is_quantised(mod: IRModule) -> bool:
    """True if the model has operators of the quantised dialect, or computes on 8-bit integers already."""
    return any(
        isinstance(one, Call) and (operator(one).startswith(QUANTISED) or _is_narrow_product(one))
        for one in post_order(mod["main"].body)
    )


def _is_narrow_product(expr: Any) -> bool:
    if operator(expr) not in (*PRODUCTS, "nn.batch_matmul"):
        return False
    kind = expr.args[0].checked_type
    return isinstance(kind, TensorType) and str(kind.dtype) in ("int8", "uint8")


def find_layers(main: Function) -> list[Layer]:
    """The layers of a prepared model, in the order in which they run."""
    uses = uses_of(main.body)
    found: list[Layer] = []
    names: dict[str, int] = {}
    for expr in post_order(main.body):
        if not isinstance(expr, Call) or operator(expr) not in PRODUCTS:
            continue
        axes = _axes(expr)
        weight = expr.args[1]
        if axes is None or not isinstance(weight, Constant) or str(weight.data.dtype) != "float32":
            continue
        if isinstance(expr.args[0], Constant):
            continue
        users = uses.get(expr, [])
        only = users[0] if len(users) == 1 else None
        bias = only if only is not None and _is_bias(only, expr) else None
        name = span_name(expr) or f"{operator(expr).removeprefix('nn.')}_{len(found)}"
        names[name] = names.get(name, 0) + 1
        if names[name] > 1:
            name = f"{name} ({names[name]})"
        found.append(Layer(name, expr, weight, *axes, bias))
    return found


def _is_bias(expr: Call, product: Call) -> bool:
    return operator(expr) == "nn.bias_add" and expr.args[0] is product and isinstance(expr.args[1], Constant)


def _axes(product: Call) -> tuple[int, int] | None:
    """The axes of the output channels of the weights and of the result; None for layouts in blocks."""
    attrs: Any = product.attrs
    name = operator(product)
    if name == "nn.dense":
        return 0, 1
    if name == "nn.matmul":
        return None if attrs.transpose_a else (0 if attrs.transpose_b else 1, 1)
    layout = attrs.out_layout or attrs.data_layout
    # Of a transposed convolution in groups, O counts within a group.
    plain = len(layout) == len(attrs.kernel_layout) == 4
    if not plain or (name == "nn.conv2d_transpose" and int(attrs.groups) != 1):
        return None
    if name == "nn.conv2d" and int(attrs.groups) > 1 and attrs.kernel_layout == "HWOI":
        return None
    return attrs.kernel_layout.find("O"), layout.find("C")


def uses_of(body: RelayExpr) -> dict[RelayExpr, list[Call]]:
    """The calls that read each expression; anything else that does counts as None."""
    found: dict[RelayExpr, list[Any]] = {body: [None]}
    for expr in post_order(body):
        for child in expr.children() if not isinstance(expr, Call) else expr.args:
            found.setdefault(child, []).append(expr if isinstance(expr, Call) else None)  # type: ignore[arg-type]
    return found


class _Biases(ExprMutator):
    """Turns sums of a layer and constants per channel into one ``nn.bias_add``."""

    def __init__(self, uses: Mapping[RelayExpr, list[Call]]) -> None:
        super().__init__()
        self.uses = uses

    def visit_call(self, expr: Call) -> Any:
        new: Any = expr.map_children(self.visit)
        if operator(expr) not in ("add", "nn.bias_add"):
            return new
        constants = [one for one in new.args if isinstance(one, Constant)]
        others = [(old, one) for old, one in zip(expr.args, new.args, strict=True) if one not in constants]
        if len(constants) != 1 or len(others) != 1 or len(self.uses.get(others[0][0], ())) != 1:
            return new
        product = others[0][1]
        known = None
        if operator(product) == "nn.bias_add":
            product, known = product.args
        axes = _axes(product) if operator(product) in PRODUCTS else None
        if axes is None or (known is not None and not isinstance(known, Constant)):
            return new
        kind: Any = expr.checked_type
        shape = [int(extent) for extent in kind.shape]
        value = constants[0].data.numpy()
        if operator(expr) == "nn.bias_add":
            vector: Any = value
        else:
            vector = _per_channel(value, shape, axes[1])
        if vector is None:
            return new
        if known is not None:
            vector = vector + known.data.numpy()
        with span_scope(product.span):
            return call("nn.bias_add", product, const(vector.astype(np.float32)), axis=axes[1])


def _per_channel(value: np.ndarray[Any, Any], shape: list[int], axis: int) -> np.ndarray[Any, Any] | None:
    """A constant that is added as one number for each channel; None for one that differs elsewhere."""
    if value.ndim > len(shape):
        return None
    spread = (1,) * (len(shape) - value.ndim) + value.shape
    if any(extent != 1 for place, extent in enumerate(spread) if place != axis):
        return None
    return np.broadcast_to(value.reshape(-1), (shape[axis],)).copy()
