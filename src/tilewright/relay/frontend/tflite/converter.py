"""Converters of one's own, as TVM's programs write them: a subclass of ``OperatorConverter`` changes ``convert_map``.

class Mine(OperatorConverter):
    def __init__(self, model, subgraph, exp_tab):
        super().__init__(model, subgraph, exp_tab)
        self.convert_map["SUB"] = self.convert_sub

    def convert_sub(self, op):
        left, right = (self.get_expr(one.tensor_idx) for one in self.get_input_tensors(op))
        return relay.add(left, relay.negative(right))

relay.frontend.from_tflite(model, op_converter=Mine)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.relay.expr import const
from tilewright.relay.frontend.tensorflow.node import Expr
from tilewright.relay.frontend.tflite.model import Model, Subgraph, Tensor
from tilewright.relay.frontend.tflite.node import LiteNode
from tilewright.relay.frontend.tflite.quantization import dequantized, is_quantized, parameters, quantized
from tilewright.relay.frontend.tflite.registry import converted_names
from tilewright.relay.frontend.tflite.schema import TENSOR_TYPES

Method = Callable[[LiteNode], Any]


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
    tensor: TensorView
    buffer: Any
    qnn_params: dict[str, Any] | None
    held: Tensor


class ConstantTable:
    """Makes constants for converters."""

    def new_const(self, value: Any, shape: Any = None, dtype: str = "float32") -> Expr:
        """A constant."""
        return const(np.asarray(value, dtype))


class OperatorConverter:
    """What a converter can ask about the model; ``convert_map`` maps operators to methods that take a node."""

    def __init__(self, model: Model, subgraph: Subgraph, exp_tab: ConstantTable) -> None:
        self.model = model
        self.subgraph = subgraph
        self.exp_tab = exp_tab
        self.allow_custom_ops = False
        self.convert_map: dict[str, Method] = dict.fromkeys(converted_names(), self.convert_as_usual)
        self._node: LiteNode | None = None

    def convert_as_usual(self, op: LiteNode) -> Any:
        """The conversion of this version."""
        raise op.fail("the operator's usual conversion is reached by leaving it out of convert_map")

    def overrides(self) -> dict[str, Method]:
        """The methods that are not this version's own."""
        usual = OperatorConverter.convert_as_usual
        return {
            name: method
            for name, method in self.convert_map.items()
            if getattr(method, "__func__", None) is not usual
        }

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

    def _current(self) -> LiteNode:
        assert self._node is not None
        return self._node

    def has_expr(self, input_tensor_idx: int) -> bool:
        """True if a tensor is computed or an input, not held by the model."""
        return input_tensor_idx in self._current().graph.values

    def get_expr(self, input_tensor_idx: int) -> Expr:
        """The expression of a tensor."""
        return self._current().graph.tensor(input_tensor_idx)  # type: ignore[no-any-return]

    def get_tensor_expr(self, tensor: TensorWrapper, is_sparse: bool = False) -> Expr:
        """The expression of a tensor."""
        return self.get_expr(tensor.tensor_idx)

    def get_tensor_value(self, tensor_wrapper: TensorWrapper, is_sparse: bool = False) -> Any:
        """The value of a tensor that the model holds."""
        return tensor_wrapper.held.value

    def get_tensor_type_str(self, tensor_type: int) -> str:
        """The name of an element type."""
        return TENSOR_TYPES[tensor_type]

    def get_tensor_shape(self, tensor_wrapper: TensorWrapper) -> tuple[int, ...]:
        """The shape of a tensor."""
        return tensor_wrapper.held.shape

    def is_quantized(self, op: LiteNode) -> bool:
        """True if the first tensor that an operator reads is quantised."""
        return is_quantized(op.input(0))

    def quantize(self, expr: Expr, tensor_to_quantize: TensorWrapper) -> Expr:
        """Numbers as the integers of a tensor."""
        return quantized(self._current(), expr, tensor_to_quantize.held)

    def dequantize(self, expr: Expr, tensor: TensorWrapper) -> Expr:
        """The integers of a tensor as numbers."""
        return dequantized(self._current(), expr, tensor.held)
