"""From a graph module of ATen operators, as compiler backends of PyTorch receive it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.relay.expr import Var
from tilewright.relay.frontend.common import require_supported
from tilewright.relay.frontend.common.finishing import finished
from tilewright.relay.frontend.torch.control_flow import HIGHER_ORDER
from tilewright.relay.frontend.torch.dtypes import dtype_name
from tilewright.relay.frontend.torch.graph import GraphImporter, flat_outputs, list_unsupported
from tilewright.relay.frontend.torch.importing import Weights, input_variable
from tilewright.relay.frontend.torch.node import Scope
from tilewright.relay.frontend.torch.package import torch_package
from tilewright.runtime.ndarray import NDArray
from tilewright.support.errors import ModelError
from tilewright.support.recursion import recursion_room


def from_fx(
    graph_module: Any, params: Mapping[str, Any] | None = None, *, freeze_params: bool = False
) -> tuple[IRModule, dict[str, NDArray]]:
    """A module and its parameters from a ``torch.fx.GraphModule`` whose calls are of ATen operators, and whose
    placeholders have their (fake) values in ``meta["val"]``.

    ``params`` are the tensors that placeholders stand for, by the placeholders' names: those are weights. The others
    are inputs under their names; one that is a symbolic number is a scalar. The results are those of the graph without
    those that are None.
    """
    torch = torch_package()
    if not isinstance(graph_module, torch.fx.GraphModule):
        raise ModelError(f"from_fx takes a torch.fx.GraphModule, not a {type(graph_module).__name__}")
    require_supported(list_unsupported(graph_module, HIGHER_ORDER))
    module = IRModule()
    scope = Scope(module, dtype_name(torch.get_default_dtype()))
    weights = Weights(scope, freeze_params)
    known = params or {}
    values: list[Any] = []
    inputs: list[Var] = []
    for node in graph_module.graph.nodes:
        if node.op != "placeholder":
            continue
        if node.name in known:
            values.append(weights.add(node.name, known[node.name]))
            continue
        example = node.meta.get("val")
        if example is None or isinstance(example, (bool, int, float, str)):
            values.append(example)
            continue
        variable = input_variable(node.name, example)
        if not hasattr(example, "shape"):
            scope.numbers.add(variable)
        inputs.append(variable)
        values.append(variable)
    with recursion_room():
        results = flat_outputs(GraphImporter(graph_module, scope, HIGHER_ORDER).convert(values))
        outputs = [one for one in results if one is not None]
        if not outputs:
            raise ModelError("the graph has no result that is a tensor")
        return finished(
            module, inputs, outputs, [f"output_{place}" for place in range(len(outputs))], weights.values
        )
