"""TVM's ``GraphProto``: the conversion of a graph of ONNX, as an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tilewright.ir.module import IRModule
from tilewright.relay.build_module import bind_params_by_name
from tilewright.relay.frontend.onnx.model import from_onnx
from tilewright.relay.frontend.onnx.tensors import onnx_package
from tilewright.relay.function import Function


class GraphProto:
    """Converts graphs with the shapes and types of inputs; ``current`` is the one whose ``with`` block runs."""

    current: ClassVar[GraphProto | None] = None

    def __init__(self, shape: Mapping[str, Any] | None, dtype: Any, freeze_params: bool = False) -> None:
        self._shape = dict(shape or {})
        self._dtype = dtype
        self._freeze_params = freeze_params
        self._outer: list[GraphProto | None] = []
        self.opset: int | None = None

    def __enter__(self) -> GraphProto:
        self._outer.append(GraphProto.current)
        GraphProto.current = self
        return self

    def __exit__(self, *exception: object) -> None:
        GraphProto.current = self._outer.pop()

    def freeze(self, func: Function, params: Mapping[str, Any]) -> tuple[Function, dict[str, Any]]:
        """The function with its parameters as constants, and no parameters."""
        return bind_params_by_name(func, params), {}

    def from_onnx(self, graph: Any, opset: int, get_output_expr: bool = False) -> Any:
        """The module and the parameters of a graph; with ``get_output_expr``, the expression of its outputs."""
        onnx = onnx_package()
        self.opset = opset
        domains = {node.domain for node in graph.node} - {"", "ai.onnx"}
        imports = [
            onnx.helper.make_opsetid("", opset),
            *(onnx.helper.make_opsetid(one, 1) for one in domains),
        ]
        model = onnx.helper.make_model(graph, opset_imports=imports)
        module, params = from_onnx(model, self._shape, self._dtype, freeze_params=self._freeze_params)
        made: tuple[IRModule, dict[str, Any]] = module, params
        return module["main"].body if get_output_expr else made
