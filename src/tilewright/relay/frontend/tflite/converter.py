"""Converters of one's own, as TVM's programs write them: a subclass of ``OperatorConverter`` changes ``convert_map``.

class Mine(OperatorConverter):
    def __init__(self, model, subgraph, exp_tab):
        super().__init__(model, subgraph, exp_tab)
        self.convert_map["SUB"] = self.convert_sub

    def convert_sub(self, op):
        left, right = (self.get_expr(one.tensor_idx) for one in self.get_input_tensors(op))
        return relay.add(left, relay.negative(right))

relay.frontend.from_tflite(model, op_converter=Mine)

A method of the name of an operator's (``convert_conv2d``) takes its place as well, and may call the inherited one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import const
from tilewright.relay.frontend.common import require_supported
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.tflite.importer import GraphImporter, list_unsupported, new_scope
from tilewright.relay.frontend.tflite.methods import OPERATORS, OperatorMethods, convert_as_usual
from tilewright.relay.frontend.tflite.model import Model, Subgraph, Tensor
from tilewright.relay.frontend.tflite.node import LiteNode
from tilewright.relay.frontend.tflite.quantization import (
    activated,
    activation_limits,
    is_quantized,
    parameters,
    quantization_of,
    quantized,
    scaled,
)
from tilewright.relay.frontend.tflite.registry import converted_names
from tilewright.relay.frontend.tflite.schema import ACTIVATIONS, TENSOR_TYPES
from tilewright.runtime.ndarray import NDArray
from tilewright.support.errors import ModelError

Method = Callable[[LiteNode], Any]

_FAMILIES = {"conv2d": "convert_conv2d", "depthwise": "convert_depthwise_conv2d"}


class TensorView:
    """A tensor under the names of the ``tflite`` package."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def Name(self) -> bytes:
        """Its name."""
        return self._tensor.name.encode()

    def Type(self) -> int:
        """The number of its element type."""
        return TENSOR_TYPES.index(self._tensor.dtype)

    def ShapeAsNumpy(self) -> np.ndarray[Any, Any]:
        """Its shape."""
        return np.asarray(self._tensor.shape, "int32")


@dataclass(frozen=True)
class TensorWrapper:
    """A tensor that an operator reads or writes."""

    tensor_idx: int
    tensor: Any
    buffer: Any
    qnn_params: dict[str, Any] | None = None
    held: Tensor | None = None
    """The tensor itself; None in one that a program made of its own parts."""

    def known(self) -> Tensor:
        """The tensor of the model."""
        if self.held is None:
            raise ModelError(f"tensor {self.tensor_idx} is not of the model: use get_tensors")
        return self.held


class ConstantTable:
    """Expressions by the names of tensors; makes constants for converters."""

    def __init__(self) -> None:
        self.exprs: dict[str, Expr] = {}
        self.params: dict[str, NDArray] = {}
        """The weights of the model that expressions read, by the names of their variables."""

    def has_expr(self, name: str) -> bool:
        """True if a tensor has an expression."""
        return name in self.exprs

    def get_expr(self, name: str) -> Expr:
        """The expression of a tensor."""
        return self.exprs[name]

    def set_expr(self, name: str, expr: Expr) -> None:
        """Give a tensor its expression."""
        self.exprs[name] = expr

    def new_const(self, value: Any, shape: Any = None, dtype: str = "float32") -> Expr:
        """A constant."""
        return const(np.asarray(value, dtype))


class OperatorConverter(OperatorMethods):
    """What a converter can ask about the model; ``convert_map`` maps operators to methods that take a node."""

    def __init__(self, model: Model, subgraph: Subgraph, exp_tab: ConstantTable) -> None:
        self.model = model
        self.subgraph = subgraph
        self.exp_tab = exp_tab
        self.allow_custom_ops = False
        self.prefetched_nodes: dict[int, Any] = {}
        methods = {operator: name for name, operators in OPERATORS.items() for operator in operators}
        self.convert_map: dict[str, Method] = {
            name: getattr(self, methods.get(name, "convert_as_usual")) for name in converted_names()
        }
        self._node: LiteNode | None = None

    def convert_as_usual(self, op: LiteNode) -> Any:
        """The conversion of this version."""
        return convert_as_usual(op)

    def overrides(self) -> dict[str, Method]:
        """The methods that are not this version's own."""
        usual = {OperatorConverter.convert_as_usual, *vars(OperatorMethods).values()}
        return {
            name: method
            for name, method in self.convert_map.items()
            if getattr(method, "__func__", None) not in usual
        }

    def calls(self) -> dict[str, Callable[[LiteNode], Any]]:
        """What importers call in place of this version's conversions."""
        return {name: partial(self.convert, method=method) for name, method in self.overrides().items()}

    def check_unsupported_ops(self) -> None:
        """One error for all operators of the model that cannot be converted."""
        require_supported(list_unsupported(self.model, self.overrides()))

    def convert_op_to_relay(self) -> None:
        """Convert the operators of the graph. The table has the expressions of its inputs, and then those of all
        tensors."""
        graph = GraphImporter(self.model, self.subgraph, new_scope(), self.calls())
        for tensor in (self.subgraph.tensors[place] for place in self.subgraph.inputs):
            graph.values[tensor.index] = self.exp_tab.get_expr(tensor.name)
        graph.convert()
        self.exp_tab.params.update(graph.scope.params)
        for place, expr in graph.values.items():
            self.exp_tab.set_expr(self.subgraph.tensors[place].name, expr)

    def convert(self, node: LiteNode, method: Method) -> Any:
        """Call a method for a node."""
        self._node = node
        return method(node)

    def _wrapped(self, tensor: Tensor) -> TensorWrapper:
        of = tensor.quantization if is_quantized(tensor) else None
        names = None if of is None else dict(zip(("scale", "zero_point"), parameters(of), strict=True))
        return TensorWrapper(tensor.index, TensorView(tensor), tensor.value, names, tensor)

    def get_input_tensors(self, op: LiteNode) -> list[TensorWrapper]:
        """The tensors that an operator reads."""
        return [self._wrapped(tensor) for tensor in op.inputs if tensor is not None]

    def get_output_tensors(self, op: LiteNode) -> list[TensorWrapper]:
        """The tensors that an operator writes."""
        return [self._wrapped(tensor) for tensor in op.outputs]

    def get_tensors(self, tensors_idx_list: Any) -> list[TensorWrapper]:
        """Tensors by their places; one that is left out (-1) is skipped."""
        return [self._wrapped(self.subgraph.tensors[place]) for place in tensors_idx_list if place >= 0]

    def get_op_code_str(self, op: LiteNode) -> str:
        """The name of an operator."""
        return op.op_type

    def _current(self) -> LiteNode:
        assert self._node is not None
        return self._node

    def has_expr(self, input_tensor_idx: int) -> bool:
        """True if a tensor is computed or an input, not held by the model."""
        graph = self._current().graph
        return input_tensor_idx in graph.values and graph.subgraph.tensors[input_tensor_idx].value is None

    def get_expr(self, input_tensor_idx: int) -> Expr:
        """The expression of a tensor."""
        return self._current().graph.tensor(input_tensor_idx)  # type: ignore[no-any-return]

    def get_tensor_expr(self, tensor: TensorWrapper, is_sparse: bool = False) -> Expr:
        """The expression of a tensor."""
        return self.get_expr(tensor.tensor_idx)

    def get_tensor_value(self, tensor_wrapper: TensorWrapper, is_sparse: bool = False) -> Any:
        """The value of a tensor that the model holds."""
        return tensor_wrapper.known().value

    def get_tensor_type_str(self, tensor_type: int) -> str:
        """The name of an element type."""
        return TENSOR_TYPES[tensor_type]

    def get_tensor_shape(self, tensor_wrapper: TensorWrapper) -> tuple[int, ...]:
        """The shape of a tensor."""
        return tensor_wrapper.known().shape

    def get_tensor_type_as_numpy(self, tensor_wrapper: TensorWrapper) -> Any:
        """The element type of a tensor, as NumPy's."""
        return np.dtype(tensor_wrapper.known().dtype).type

    def has_same_qnn_params(self, lhs_tensor: TensorWrapper, rhs_tensor: TensorWrapper) -> bool:
        """True if integers of two tensors stand for the same numbers."""
        left, right = lhs_tensor.known().quantization, rhs_tensor.known().quantization
        return left is not None and left.same(right)

    # Weights that are unpacked when the operator that unpacks them is reached

    def is_prefetched(self, input_tensor_idx: int) -> bool:
        """True if a tensor has been unpacked."""
        return input_tensor_idx in self.prefetched_nodes

    def set_prefetched_node(self, input_tensor_idx: int, value: Any) -> None:
        """Keep an unpacked tensor."""
        self.prefetched_nodes[input_tensor_idx] = value

    def get_prefetched_node(self, input_tensor_idx: int) -> Any:
        """An unpacked tensor."""
        return self.prefetched_nodes[input_tensor_idx]

    # Families and activations

    def convert_conv(self, op: LiteNode, conv_type: str) -> Any:
        """A convolution: "conv2d" or "depthwise"."""
        return convert_as_usual(op, OPERATORS[_FAMILIES[conv_type]])

    def convert_pool2d(self, op: LiteNode, pool_type: str) -> Any:
        """Pooling: "average", "max" or "l2"."""
        return convert_as_usual(op, OPERATORS[f"convert_{pool_type}_pool2d"])

    def convert_fused_activation_function(self, in_expr: Expr, fused_activation_fn: int) -> Expr:
        """Numbers under an activation that an operator includes, given by its number in the schema."""
        return activated(self._current(), in_expr, ACTIVATIONS[fused_activation_fn])

    def convert_qnn_fused_activation_function(
        self, expr: Expr, fused_activation_fn: int, scale: float, zero_point: int, dtype: str
    ) -> Expr:
        """Integers under an activation that an operator includes: those of its bounds."""
        name = ACTIVATIONS[fused_activation_fn]
        limits = activation_limits(name, float(scale), int(zero_point), dtype)
        if limits is None:
            raise self._current().fail(f"the activation {name} has no bounds")
        return relay.clip(expr, *limits)

    def is_quantized(self, op: LiteNode) -> bool:
        """True if the first tensor that an operator reads is quantised."""
        return is_quantized(op.input(0))

    def quantize(self, expr: Expr, tensor_to_quantize: TensorWrapper) -> Expr:
        """Numbers as the integers of a tensor."""
        return quantized(self._current(), expr, tensor_to_quantize.known())

    def dequantize(self, expr: Expr, tensor: TensorWrapper) -> Expr:
        """An expression of integers as the numbers that those of a tensor stand for."""
        return scaled(expr, quantization_of(self._current(), tensor.known()))
