"""From a graph of PyTorch's FX, whose calls are of ATen operators, to graph-level expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Constant, ExprWithOp, Tuple, TupleWrapper
from tilewright.relay.frontend.common import ModelNode, Unsupported, collect_unsupported
from tilewright.relay.frontend.common.sizes import with_known
from tilewright.relay.frontend.torch import ops  # noqa: F401 - registers the converters
from tilewright.relay.frontend.torch.aliasing import schema_of, written_arguments
from tilewright.relay.frontend.torch.arrays import array_of
from tilewright.relay.frontend.torch.complex_calls import complex_call, converts_complex
from tilewright.relay.frontend.torch.complex_pair import (
    ComplexPair,
    constant_pair,
    has_complex,
    is_complex_type,
)
from tilewright.relay.frontend.torch.dtypes import dtype_name
from tilewright.relay.frontend.torch.node import Scope, TorchNode
from tilewright.relay.frontend.torch.numbers import find_number_function
from tilewright.relay.frontend.torch.package import torch_package
from tilewright.relay.frontend.torch.registry import find_converter
from tilewright.relay.infer import type_of
from tilewright.support.errors import ModelError

HigherOrder = Callable[["GraphImporter", TorchNode, Sequence[Any], Mapping[str, Any]], Any]
"""Converts a call of a higher-order operator: its arguments may be graph modules."""


class GraphImporter:
    """Converts the calls of a graph module in order; a graph inside it has an importer of its own."""

    def __init__(self, module: Any, scope: Scope, higher_order: Mapping[str, HigherOrder]) -> None:
        self.graph_module = module
        self.scope = scope
        self.higher_order = higher_order
        self.values: dict[Any, Any] = {}

    def convert(self, inputs: Sequence[Any]) -> Any:
        """The results, nested as the graph has them, for values of its placeholders."""
        given = iter(inputs)
        for node in self.graph_module.graph.nodes:
            if node.op == "placeholder":
                self.values[node] = next(given)
            elif node.op == "get_attr":
                self.values[node] = self._attribute(str(node.target))
            elif node.op == "call_function":
                self.values[node] = self._converted(node)
            elif node.op == "output":
                return self._argument(node.args[0])
            else:
                raise ModelError(
                    f"node {node.name!r}: the graph calls the module or method {node.target!r}: export it first, so "
                    "that it consists of ATen operators"
                )
        raise ModelError("the graph has no output")

    def inside(self, module: Any, inputs: Sequence[Any]) -> Any:
        """The results of a graph that is an argument of a higher-order operator."""
        return GraphImporter(module, self.scope, self.higher_order).convert(inputs)

    # Values

    def _attribute(self, target: str) -> Any:
        torch = torch_package()
        found = self.graph_module
        for part in target.split("."):
            found = getattr(found, part)
        if not isinstance(found, torch.Tensor):
            return found
        if found.is_complex():
            return constant_pair(found)
        return Constant(array_of(found, f"the tensor {target!r}"))

    def _argument(self, given: Any) -> Any:
        """An argument of a call: nodes stand for their values."""
        torch = torch_package()
        if isinstance(given, torch.fx.Node):
            return self.values[given]
        if isinstance(given, (list, tuple)):
            return [self._argument(item) for item in given]
        if isinstance(given, dict):
            return {name: self._argument(item) for name, item in given.items()}
        if isinstance(given, torch.dtype):
            return str(given).removeprefix("torch.") if given.is_complex else dtype_name(given)
        if isinstance(given, slice):
            return slice(*(self._argument(part) for part in (given.start, given.stop, given.step)))
        if isinstance(given, (torch.device, torch.layout, torch.memory_format)):
            return str(given)
        if isinstance(given, complex):
            return ComplexPair(given.real, given.imag)
        return given

    # Calls

    def _converted(self, fx_node: Any) -> Any:
        target = fx_node.target
        schema = schema_of(target)
        node = TorchNode(operator_name(target), fx_node.name, self.scope)
        with node.conversion():
            if schema is None:
                return self._without_schema(node, fx_node)
            if schema.name == "aten::as_strided":
                # Its result depends on where the elements of its argument are in memory.
                example = fx_node.args[0].meta.get("val")
                node.attributes["contiguous"] = example is None or example.is_contiguous()
            args, kwargs = self._argument(fx_node.args), self._argument(fx_node.kwargs)
            result = self._settled(node, self.called(node, target, args, kwargs), fx_node.meta.get("val"))
        for written in written_arguments(schema, fx_node):
            self.values[written] = result
        return result

    def called(self, node: TorchNode, target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The result of an operator for values of its arguments."""
        schema = schema_of(target)
        arguments, defaults = bound_arguments(schema, args, kwargs)
        if has_complex(arguments):
            return complex_call(node, schema, arguments, defaults)
        found = find_converter(schema.name, schema.overload_name)
        if found is None:
            raise node.fail("the operator is not supported")
        return found(node, arguments, defaults)

    def _without_schema(self, node: TorchNode, fx_node: Any) -> Any:
        target = fx_node.target
        args = self._argument(fx_node.args)
        kwargs = self._argument(fx_node.kwargs)
        higher = self.higher_order.get(str(getattr(target, "__name__", "")))
        if higher is not None and _is_higher_order(target):
            return self._settled(node, higher(self, node, args, kwargs), fx_node.meta.get("val"))
        function = find_number_function(target)
        if function is None:
            raise node.fail("the operator is not supported")
        return function(node, *args, **kwargs)

    def _settled(self, node: TorchNode, result: Any, meta: Any) -> Any:
        """A result with what the graph's metadata know of its shape."""
        if isinstance(result, TupleWrapper):
            result = [result[place] for place in range(result.size)]
        if isinstance(result, (list, tuple)):
            metas = (
                meta if isinstance(meta, (list, tuple)) and len(meta) == len(result) else [None] * len(result)
            )
            return [self._settled(node, one, other) for one, other in zip(result, metas, strict=True)]
        if isinstance(result, ComplexPair):
            return result.each(lambda part: self._settled(node, part, meta))
        if not isinstance(result, ExprWithOp):
            return result
        if type(meta).__name__ in ("SymInt", "SymFloat", "SymBool", "int", "float", "bool"):
            self.scope.numbers.add(result)
            return result
        kind = type_of(result, node.module)
        if not isinstance(kind, TensorType) or not hasattr(meta, "shape"):
            return result
        have = node.shape(result)
        if None not in have:
            return result
        if len(have) != len(meta.shape):
            raise node.fail(f"the conversion has {len(have)} dimensions, the model {len(meta.shape)}")
        return with_known(node, result, [size if type(size) is int else None for size in meta.shape])


def operator_name(target: Any) -> str:
    """An operator in messages: "aten::add.Tensor", or the name of a function."""
    schema = schema_of(target)
    if schema is not None:
        return f"{schema.name}.{schema.overload_name}" if schema.overload_name else str(schema.name)
    if _is_higher_order(target):
        return f"higher_order::{target.__name__}"
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', target)}"


def _is_higher_order(target: Any) -> bool:
    return isinstance(target, torch_package()._ops.HigherOrderOperator)


def bound_arguments(
    schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of a call by the names of the schema with defaults filled in, and the defaults."""
    arguments: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for position, argument in enumerate(schema.arguments):
        if argument.has_default_value():
            defaults[argument.name] = argument.default_value
        if position < len(args) and not argument.kwarg_only:
            arguments[argument.name] = args[position]
        elif argument.name in kwargs:
            arguments[argument.name] = kwargs[argument.name]
        else:
            arguments[argument.name] = defaults.get(argument.name)
    return arguments, defaults


def list_unsupported(graph_module: Any, higher_order: Mapping[str, Any]) -> list[Unsupported]:
    """The operators of a graph and of the graphs inside it that cannot be converted."""
    return collect_unsupported(_missing(graph_module, higher_order))


def _missing(graph_module: Any, higher_order: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    torch = torch_package()
    for module in graph_module.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        for node in module.graph.nodes:
            if node.op in ("call_module", "call_method"):
                yield f"{node.op} {node.target}", node.name
            elif node.op == "call_function" and not _is_supported(node, higher_order):
                kind = " of complex numbers" if _takes_complex(node) else ""
                yield operator_name(node.target) + kind, node.name


def _is_supported(node: Any, higher_order: Mapping[str, Any]) -> bool:
    target = node.target
    schema = schema_of(target)
    if schema is not None:
        find = converts_complex if _takes_complex(node) else find_converter
        return bool(find(schema.name, schema.overload_name))
    if _is_higher_order(target):
        return target.__name__ in higher_order
    return find_number_function(target) is not None


def _takes_complex(node: Any) -> bool:
    """True if an argument of a node is a complex tensor, number or element type."""
    torch = torch_package()
    metas = (getattr(one.meta.get("val"), "dtype", None) for one in node.all_input_nodes)
    leaves = torch.utils._pytree.tree_leaves([node.args, node.kwargs])
    return any(map(is_complex_type, metas)) or any(
        isinstance(leaf, complex) or is_complex_type(leaf) for leaf in leaves
    )


def flat_outputs(result: Any) -> list[RelayExpr | None]:
    """The results of a graph in order; numbers become scalars, and None stays."""
    if isinstance(result, (list, tuple)):
        return [one for item in result for one in flat_outputs(item)]
    if isinstance(result, dict):
        return [one for item in result.values() for one in flat_outputs(item)]
    if isinstance(result, Tuple):
        return [one for item in result.fields for one in flat_outputs(item)]
    if isinstance(result, (bool, int, float)):
        return [ModelNode("output", "", {}, None).constant(result, _number_dtype(result))]  # type: ignore[arg-type]
    if result is None or isinstance(result, RelayExpr):
        return [result]
    if isinstance(result, ComplexPair):
        raise ModelError("an output of the model is complex: return its parts instead (torch.view_as_real)")
    raise ModelError(f"an output of the model is a {type(result).__name__}, not a tensor")


def _number_dtype(number: float) -> str:
    return "bool" if isinstance(number, bool) else "int64" if isinstance(number, int) else "float32"
