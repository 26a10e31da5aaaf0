"""``from_pytorch``: from a traced or scripted module to a Relay module and parameters."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.relay import analysis
from tilewright.relay.frontend.common import require_supported
from tilewright.relay.frontend.torch import ops
from tilewright.relay.frontend.torch.node import Scope
from tilewright.relay.frontend.torch.package import torch_package
from tilewright.relay.frontend.torch.script import (
    control_flow,
    list_ops,
    memory_ops,
    number_ops,
    prim_ops,
    quantized,
)
from tilewright.relay.frontend.torch.script.attributes import Attributes
from tilewright.relay.frontend.torch.script.control_flow import Raised
from tilewright.relay.frontend.torch.script.importer import CustomConverter, GraphImporter
from tilewright.relay.frontend.torch.script.inputs import Inputs, checked_infos
from tilewright.relay.frontend.torch.script.outputs import output_expr
from tilewright.relay.frontend.torch.script.values import InPlaceError, ModuleValue
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.runtime.ndarray import NDArray
from tilewright.support.errors import ModelError

FAMILIES = (control_flow, list_ops, memory_ops, number_ops, ops, prim_ops, quantized)
"""The modules that register conversions."""


def from_pytorch(
    script_module: Any,
    input_infos: Sequence[tuple[str, Any]],
    custom_convert_map: Mapping[str, CustomConverter] | None = None,
    default_dtype: str = "float32",
    use_parser_friendly_name: bool = False,
    keep_quantized_weight: bool = False,
) -> tuple[IRModule, dict[str, NDArray]]:
    """A Relay module and parameters from a module that ``torch.jit.trace`` or ``torch.jit.script`` made.

    ``input_infos`` has a pair for each input, in order: its name, which the program's parameter gets, and its shape, or
    its shape and element type. Inputs that are tuples or lists have tuples or lists of shapes. A dimension that is
    ``relay.Any()`` or None is open.

    ``custom_convert_map`` maps names of operators to functions of their inputs and the types of those, which replace
    the conversion of these operators. With ``use_parser_friendly_name``, parameters have ``_`` for each ``.`` in their
    names, so that the text of the module can be parsed. With ``keep_quantized_weight``, weights of quantised modules
    are parameters of type int8, otherwise of type float32, which the compiler quantises.

    Raises one error that lists all operators that cannot be converted.
    """
    graph, owner = inlined_graph(script_module)
    module = IRModule()
    scope = Scope(module, default_dtype)
    attributes = Attributes(scope, use_parser_friendly_name, keep_quantized_weight)
    importer = GraphImporter(scope, attributes, custom_convert_map)
    graph_inputs = list(graph.inputs())
    values: list[Any] = []
    if owner is not None:
        values.append(ModuleValue(owner, ()))
        graph_inputs = graph_inputs[1:]
    infos = checked_infos(input_infos, graph_inputs)
    inputs = Inputs(module, importer.store, default_dtype)
    values += [
        inputs.add(name, info, value.type()) for (name, info), value in zip(infos, graph_inputs, strict=False)
    ]
    values += [None] * (len(graph_inputs) - len(infos))
    body = _converted(importer, graph, values, default_dtype)
    used = set(analysis.free_vars(body))
    weights = [variable for variable in attributes.variables if variable in used]
    module["main"] = Function([*inputs.variables, *weights], body)
    if importer.store.written_attributes:
        warnings.warn(
            f"the model writes to its own {', '.join(importer.store.written_attributes)}: that is not kept from one "
            "call to the next",
            stacklevel=2,
        )
    names = {variable.name_hint for variable in weights}
    # A check only: the function has no declared result, as one that is written by hand.
    infer_module(module)
    return module, {name: value for name, value in attributes.params.items() if name in names}


def _converted(importer: GraphImporter, graph: Any, values: list[Any], default_dtype: str) -> RelayExpr:
    try:
        outputs = importer.convert_block(graph, values)
        require_supported(importer.missing)
        exprs = [output_expr(importer.store, value, default_dtype) for value in outputs]
    except InPlaceError as error:
        raise ModelError(f"the outputs of the model: {error}") from error
    except Raised as error:
        raise ModelError(f"the model raises an exception for every input: {error}") from error
    if len(exprs) != 1:
        raise ModelError(f"the graph has {len(exprs)} outputs, one is expected")
    return exprs[0]


def inlined_graph(script_module: Any) -> tuple[Any, Any]:
    """The graph of a module or function with all calls inlined, and the module, None for functions."""
    torch = torch_package()
    if isinstance(script_module, torch.jit.ScriptFunction):
        graph = script_module.graph.copy()
        owner = None
    elif isinstance(script_module, (torch.jit.ScriptModule, torch._C.ScriptModule)):
        graph = script_module.graph.copy()
        owner = script_module
    else:
        raise ModelError(
            f"from_pytorch takes a traced or scripted module, not a {type(script_module).__name__}: use "
            "torch.jit.trace(model, example) or torch.jit.script(model), or relay.frontend.from_exported_program"
        )
    torch._C._jit_pass_inline(graph)
    return graph, owner
