"""``from_onnx``: reads a model and converts it to a module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.relay.dimension_names import with_dimension_names
from tilewright.relay.expr import Tuple, Var
from tilewright.relay.expr_functor import ExprVisitor
from tilewright.relay.frontend.common import ModelNode, check_input_names, require_supported
from tilewright.relay.frontend.onnx import ops as _converters
from tilewright.relay.frontend.onnx.alternatives import committed, declared_rank
from tilewright.relay.frontend.onnx.functions import check_functions
from tilewright.relay.frontend.onnx.importer import GraphImporter
from tilewright.relay.frontend.onnx.inputs import declared_names
from tilewright.relay.frontend.onnx.reading import Model, read_model
from tilewright.relay.frontend.onnx.tensors import dense_array
from tilewright.relay.frontend.onnx.unsupported import list_unsupported
from tilewright.relay.frontend.onnx.values import OptionalValue, SequenceValue
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.relay.output_names import with_output_names
from tilewright.runtime import ndarray
from tilewright.support.collection import with_rare_collection
from tilewright.support.errors import ModelError
from tilewright.support.recursion import recursion_room

assert _converters  # importing it registers the converters


@with_rare_collection
def from_onnx(
    model: Any,
    shape: Mapping[str, Any] | None = None,
    dtype: str | Mapping[str, str] = "float32",
    opset: int | None = None,
    freeze_params: bool = False,
    convert_config: Mapping[str, Any] | None = None,
) -> tuple[IRModule, dict[str, Any]]:
    """A module and its parameters from an ONNX model: a ModelProto, the bytes of one, or a path.

    ``shape`` gives the shapes of inputs by name (a dimension that stays unknown is None); it wins over what the model
    says. Of a sequence it is a list of the shapes of its elements, which become parameters of their own; of an optional
    that is empty it is None. ``dtype`` is used for inputs whose element type the model does not say. ``opset`` reads
    the model as of another version. With ``freeze_params`` initializers become constants of the program, else those
    that are weights become parameters of ``main``. ``convert_config["values"]`` fixes inputs: they become constants.
    A model that cannot be converted raises one error that names all that is missing.
    """
    with read_model(model) as read:
        proto = read.proto
        if not proto.graph.node and not proto.graph.output:
            raise ModelError("the model's graph is empty")
        check_functions(proto)
        require_supported(list_unsupported(proto))
        opsets = {("" if one.domain == "ai.onnx" else one.domain): one.version for one in proto.opset_import}
        if opset is not None:
            opsets[""] = opset
        module = IRModule()
        graph = GraphImporter(module, opsets, {(one.domain, one.name): one for one in proto.functions})
        graph.config = dict(convert_config or {})
        with recursion_room():
            function = _convert(graph, read, dict(shape or {}), dtype, freeze_params)
        module["main"] = function
        used = {parameter.name_hint for parameter in function.params}
        return infer_module(module), {name: value for name, value in graph.params.items() if name in used}


def _convert(
    graph: GraphImporter, read: Model, shapes: dict[str, Any], dtypes: Any, freeze: bool
) -> Function:
    proto = read.proto.graph
    constants = {tensor.name for tensor in proto.initializer}
    constants |= {tensor.values.name for tensor in proto.sparse_initializer}
    known = {info.name for info in proto.input}
    check_input_names(shapes, known, known - constants)
    for number, tensor in enumerate(proto.initializer):
        graph.add_initializer(tensor, read.initializer(number), freeze)
    for sparse in proto.sparse_initializer:
        graph.add_initializer(sparse.values, ndarray.array(dense_array(sparse)), freeze)
    inputs: list[Var] = []
    for info in proto.input:
        # Old models list initializers among their inputs: those have values, and are not inputs.
        if info.name not in constants:
            inputs += graph.add_input(info, shapes, dtypes)
    graph.convert(proto)
    found = [graph.lookup(info.name) for info in proto.output]
    ranks = [declared_rank(info) for info in proto.output]
    whole = ModelNode("graph", proto.name, {}, graph.module)
    outputs = [_as_expression(value) for value in committed(whole, found, ranks)]
    names = [
        name for info, value in zip(proto.output, outputs, strict=True) for name in _names(info.name, value)
    ]
    body = outputs[0] if len(outputs) == 1 else Tuple(outputs)
    variables = _Variables()
    variables.visit(body)
    weights = [variable for variable in variables.order if variable in graph.param_values]
    function = with_output_names(Function([*inputs, *weights], body), names)
    return with_dimension_names(function, declared_names([*proto.input, *proto.output]))


def _names(name: str, value: Any) -> list[str]:
    """The names of the tensors of an output: those of a sequence are numbered."""
    if not isinstance(value, Tuple):
        return [name]
    return [
        inner for position, part in enumerate(value.fields) for inner in _names(f"{name}_{position}", part)
    ]


class _Variables(ExprVisitor):
    """The variables of an expression, in the order in which they are met."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[Var] = []

    def visit_var(self, var: Var) -> None:
        self.order.append(var)


def _as_expression(value: Any) -> Any:
    """A result of the model as an expression: a sequence is a tuple."""
    if isinstance(value, SequenceValue):
        return Tuple([_as_expression(item) for item in value.items])
    if isinstance(value, OptionalValue):
        if value.item is None:
            raise ModelError("an output of the model is an empty optional, which has no type")
        return _as_expression(value.item)
    if value is None:
        raise ModelError("an output of the model is left empty")
    return value
