"""An ONNX graph as it is written: nodes, constants and the types of names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.ir.expr import IntImm
from tilewright.ir.tensor_type import TensorType
from tilewright.support.errors import ModelError

OPSETS = range(11, 22)
"""The versions of the standard that can be written."""


def onnx_package() -> Any:
    """The ``onnx`` package."""
    try:
        import onnx
    except ImportError as missing:
        raise ModelError("writing ONNX models needs the onnx package: pip install onnx") from missing
    return onnx


class GraphWriter:
    """Collects the nodes of a graph; every method that makes a value returns its name."""

    def __init__(self, opset: int) -> None:
        if opset not in OPSETS:
            raise ModelError(f"the opset {opset} cannot be written: {OPSETS[0]} to {OPSETS[-1]} can")
        self.onnx = onnx_package()
        self.opset = opset
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.biases: dict[str, tuple[str, str]] = {}
        """Sums by name: of what, and the vector that is added to its channels."""
        self._taken: set[str] = set()
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def name(self, wanted: str) -> str:
        """A name that nothing else has."""
        chosen, number = wanted, 0
        while chosen in self._taken:
            number += 1
            chosen = f"{wanted}_{number}"
        self._taken.add(chosen)
        return chosen

    def element_type(self, dtype: str) -> int:
        """The number of an element type in ONNX."""
        special = {"float32": "FLOAT", "float64": "DOUBLE"}
        try:
            return int(self.onnx.TensorProto.DataType.Value(special.get(dtype, dtype.upper())))
        except ValueError:
            raise ModelError(f"ONNX has no element type {dtype}") from None

    def node(self, operator: str, inputs: Sequence[str], **attributes: Any) -> str:
        """The result of an operator."""
        return self.nodes_of(operator, inputs, 1, **attributes)[0]

    def nodes_of(self, operator: str, inputs: Sequence[str], outputs: int, **attributes: Any) -> list[str]:
        """The results of an operator that has several."""
        made = [self.name(operator.lower()) for _ in range(outputs)]
        given = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(
            self.onnx.helper.make_node(
                operator, list(inputs), made, name=self.name(f"{operator}_node"), **given
            )
        )
        return made

    def constant(self, value: Any, dtype: str | None = None, name: str = "constant") -> str:
        """A constant; equal small ones are stored once."""
        array = np.asarray(value) if dtype is None else np.asarray(value).astype(dtype)
        key = (str(array.dtype), array.shape, array.tobytes() if array.nbytes <= 256 else b"")
        if array.nbytes <= 256 and key in self._constants:
            return self._constants[key]
        chosen = self.name(name)
        self.initializers.append(
            self.onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), chosen)
        )
        if array.nbytes <= 256:
            self._constants[key] = chosen
        return chosen

    def integers(self, values: Sequence[int]) -> str:
        """A vector of int64."""
        return self.constant(np.asarray(list(values), dtype="int64"))

    # Operators whose form depends on the opset

    def squeeze(self, data: str, axes: Sequence[int]) -> str:
        """Without dimensions of size one."""
        return self._by_axes("Squeeze", data, axes, 13)

    def unsqueeze(self, data: str, axes: Sequence[int]) -> str:
        """With new dimensions of size one."""
        return self._by_axes("Unsqueeze", data, axes, 13)

    def reduce(self, operator: str, data: str, axes: Sequence[int], keepdims: bool) -> str:
        """A reduction over axes."""
        since = 13 if operator == "ReduceSum" else 18
        return self._by_axes(operator, data, axes, since, keepdims=int(keepdims))

    def _by_axes(self, operator: str, data: str, axes: Sequence[int], since: int, **attributes: Any) -> str:
        if self.opset >= since:
            return self.node(operator, [data, self.integers(axes)], **attributes)
        return self.node(operator, [data], axes=list(axes), **attributes)

    def reshape(self, data: str, shape: Sequence[int]) -> str:
        """The elements in another shape."""
        return self.node("Reshape", [data, self.integers(shape)])

    def transpose(self, data: str, axes: Sequence[int]) -> str:
        """The axes in another order."""
        return data if list(axes) == sorted(axes) else self.node("Transpose", [data], perm=list(axes))

    def larger(self, left: str, right: str, dtype: str) -> str:
        """The larger of two; of integers, which Max has from opset 12 on, by comparison before that."""
        if self.opset >= 12 or dtype.startswith("float"):
            return self.node("Max", [left, right])
        return self.node("Where", [self.node("Less", [left, right]), right, left])

    def smaller(self, left: str, right: str, dtype: str) -> str:
        """The smaller of two."""
        if self.opset >= 12 or dtype.startswith("float"):
            return self.node("Min", [left, right])
        return self.node("Where", [self.node("Less", [left, right]), left, right])

    def type_info(self, name: str, kind: TensorType) -> Any:
        """The type of an input or output; dimensions that are not known have names."""
        shape = [
            extent.value if isinstance(extent, IntImm) else f"{name}_{axis}"
            for axis, extent in enumerate(kind.shape)
        ]
        return self.onnx.helper.make_tensor_value_info(name, self.element_type(str(kind.dtype)), shape)


Writer = Callable[..., Any]
WRITERS: dict[str, Writer] = {}


def writes(*names: str) -> Callable[[Writer], Writer]:
    """Register how operators are written: ``function(graph, call, *inputs)`` returns a name, or a list of names."""

    def register(function: Writer) -> Writer:
        for name in names:
            WRITERS[name] = function
        return function

    return register


def static_shape(kind: Any, what: str) -> tuple[int, ...]:
    """The shape of a type; an error where a dimension is not known."""
    if not isinstance(kind, TensorType) or any(not isinstance(extent, IntImm) for extent in kind.shape):
        raise ModelError(f"{what} is {kind}: to be written as ONNX its shape has to be known")
    return tuple(int(extent) for extent in kind.concrete_shape)


def shape_of(expr: Any) -> tuple[int, ...]:
    """The shape of an expression."""
    return static_shape(expr.checked_type, "a tensor")


def dtype_of(expr: Any) -> str:
    """The element type of an expression."""
    return str(expr.checked_type.dtype)
