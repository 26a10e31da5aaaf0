"""From a TorchScript graph to graph-level expressions.

Nodes are converted in order, as an interpreter would run them, with expressions for tensors: conditions that are known
choose their branch, loops of known length are written out, and lists, tuples and dictionaries are values of the
importer. What is written in place is in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import Constant, TupleWrapper, const
from tilewright.relay.frontend.common import Unsupported, collect_unsupported
from tilewright.relay.frontend.common.folding import Folder
from tilewright.relay.frontend.common.sizes import broadcast_to, sizes_of
from tilewright.relay.frontend.torch.complex_pair import ComplexPair
from tilewright.relay.frontend.torch.node import Scope
from tilewright.relay.frontend.torch.package import torch_package
from tilewright.relay.frontend.torch.registry import Converter, find_converter
from tilewright.relay.frontend.torch.script.attributes import Attributes
from tilewright.relay.frontend.torch.script.definitions import by_definition
from tilewright.relay.frontend.torch.script.node import ScriptNode, node_name, source_of
from tilewright.relay.frontend.torch.script.quantized.elementwise import converted, has_quantized
from tilewright.relay.frontend.torch.script.registry import find_operator
from tilewright.relay.frontend.torch.script.schema import Schema
from tilewright.relay.frontend.torch.script.store import Store
from tilewright.relay.frontend.torch.script.values import ListValue, Tensor, Unsettled
from tilewright.support.errors import ModelError

CustomConverter = Callable[[list[Any], list[str]], Any]
"""A converter of a user's map: from the inputs and their types."""

_NUMBERS: Final = {"IntType": "int", "FloatType": "float", "BoolType": "bool", "NumberType": "number"}
_RETURN_THEIR_INPUT: Final = frozenset(
    {"aten::dropout", "aten::feature_dropout", "aten::alpha_dropout", "aten::feature_alpha_dropout"}
)
"""Operators whose schemas do not say that in inference their result is their input."""
_SAME_ORDER: Final = frozenset(
    {
        "aten::alias",
        "aten::detach",
        "aten::flatten",
        "aten::reshape",
        "aten::squeeze",
        "aten::unflatten",
        "aten::unsqueeze",
        "aten::view",
        "aten::view_as",
        "aten::contiguous",
        "aten::to",
    }
)

"""Views of contiguous tensors that are contiguous."""


class GraphImporter:
    """Converts a graph and the blocks in it."""

    def __init__(
        self,
        scope: Scope,
        attributes: Attributes,
        custom: Mapping[str, CustomConverter] | None = None,
    ) -> None:
        self.scope = scope
        self.store = Store(scope)
        self.attributes = attributes
        attributes.store = self.store
        self.custom = dict(custom or {})
        self.folder = Folder(scope.module)
        self.names: dict[str, Any] = {}
        self.unrolled = 0
        self._missing: dict[str, tuple[str, str]] = {}
        self._disordered: set[Tensor] = set()
        """Tensors whose elements may not lie in memory in row-major order."""

    @property
    def missing(self) -> list[Unsupported]:
        """The operators that could not be converted."""
        return collect_unsupported(self._missing.values())

    # Blocks

    def convert_block(self, block: Any, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of a block, or of the whole graph, for these inputs."""
        for value, given in zip(block.inputs(), inputs, strict=True):
            self.names[value.debugName()] = given
        for node in block.nodes():
            self.convert_node(node)
        return [self.names[value.debugName()] for value in block.outputs()]

    def convert_graph(self, graph: Any, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of another graph, whose values may have the names of this one's."""
        outside, self.names = self.names, {}
        try:
            return self.convert_block(graph, inputs)
        finally:
            self.names = outside

    def convert_node(self, torch_node: Any) -> None:
        """Convert one node; its outputs get their values."""
        outputs = list(torch_node.outputs())
        values = [self.names[value.debugName()] for value in torch_node.inputs()]
        node = ScriptNode(torch_node, self)
        if any(isinstance(value, Unsettled) for value in values) and node.op_type not in (
            "prim::If",
            "prim::Loop",
        ):
            # An operator before this one is not supported: only what follows is checked.
            if not self._supports(node):
                self._note_missing(torch_node, node)
            results: list[Any] = [Unsettled() for _ in outputs]
        else:
            with node.conversion():
                results = self._results(node, values, outputs)
        for output, result in zip(outputs, results, strict=True):
            self.names[output.debugName()] = result

    def _supports(self, node: ScriptNode) -> bool:
        name = node.op_type
        overload = node.schema.overload if node.schema is not None else ""
        return bool(name in self.custom or find_operator(name, overload) or find_converter(name, overload))

    def _note_missing(self, torch_node: Any, node: ScriptNode) -> None:
        label = node.schema.qualified if node.schema is not None else node.op_type
        place = source_of(torch_node)
        self._missing[node.name] = (label, f"{node_name(torch_node)}{f' ({place})' if place else ''}")

    def _results(self, node: ScriptNode, values: list[Any], outputs: list[Any]) -> list[Any]:
        """The values of a node's outputs."""
        schema = node.schema
        overload = schema.overload if schema is not None else ""
        if node.op_type in self.custom:
            made = self._converted_by_user(node, values)
            return self._wrapped_all(node, made, outputs)
        special = find_operator(node.op_type, overload)
        if special is None and schema is not None and schema.has_numbers_only:
            special = find_operator(node.op_type, "int")
        if special is not None:
            return self._wrapped_all(node, special(node, *values), outputs)
        known = self._computed_by_torch(node, values)
        if known is not None:
            return self._wrapped_all(node, known[0], outputs)
        found = find_converter(node.op_type, overload)
        if found is not None and schema is not None:
            return self._by_schema(node, schema, found, values, outputs)
        if schema is not None and not has_quantized(node, values):
            arguments = dict(zip(schema.arguments, map(node.resolved, values), strict=False))
            defined = by_definition(node, arguments)
            if defined is not None:
                return self._wrapped_all(node, defined, outputs)
        self._note_missing(node.torch_node, node)
        return [Unsettled() for _ in outputs]

    # Operators of the shared registry

    def _by_schema(
        self, node: ScriptNode, schema: Schema, convert: Converter, values: list[Any], outputs: list[Any]
    ) -> list[Any]:
        given = dict(zip(schema.arguments, values, strict=False))
        target = given.get(schema.written) if schema.written is not None else None
        if has_quantized(node, values):
            return self._quantized(node, convert, given, target, outputs)
        arguments = {name: node.resolved(value) for name, value in given.items()}
        if schema.written == "out" or (schema.written is not None and schema.overload.endswith("out")):
            arguments.pop(schema.written)
        made = convert(node, arguments, schema.defaults)
        if isinstance(target, Tensor):
            return [self._written(node, target, made)] + [
                self.wrapped(made[place], output.type()) for place, output in enumerate(outputs) if place
            ]
        parent = given.get(schema.viewed) if schema.viewed is not None else None
        if isinstance(parent, Tensor) and not parent.number:
            return self._views(node, schema, convert, arguments, parent, made, outputs)
        if schema.name in _RETURN_THEIR_INPUT and made is arguments.get("input"):
            return [given["input"]]
        results = self._wrapped_all(node, made, outputs)
        self._note_order(values, results)
        return results

    def _quantized(
        self, node: ScriptNode, convert: Converter, given: dict[str, Any], target: Any, outputs: list[Any]
    ) -> list[Any]:
        """The results for a quantised tensor."""
        made, of = converted(node, convert, given)
        if isinstance(target, Tensor):
            self.store.write(target, made)
            return [target]
        results = self._wrapped_all(node, made, outputs)
        parent = given.get(node.schema.viewed) if node.schema is not None and node.schema.viewed else None
        for result in results:
            for tensor in node.items(result) if isinstance(result, ListValue) else [result]:
                if (
                    isinstance(tensor, Tensor)
                    and str(self.store.kind(self.store.read(tensor)).dtype) == of.dtype
                ):
                    tensor.quantization = of
                    if isinstance(parent, Tensor):
                        self.store.entangle(tensor.cell, parent.cell)
        return results

    def _written(self, node: ScriptNode, target: Tensor, made: Any) -> Tensor:
        """The tensor that was written in place: it keeps its shape and its element type."""
        value = made[0] if isinstance(made, (list, tuple, TupleWrapper)) else made
        old = self.store.read(target)
        value = node.cast(node.tensor(value), node.dtype(old))
        if node.shape(value) != node.shape(old) or None in node.shape(old):
            value = broadcast_to(node, value, sizes_of(node, old))
        self.store.write(target, self.folder.settled(value))
        return target

    def _views(
        self,
        node: ScriptNode,
        schema: Schema,
        convert: Converter,
        arguments: dict[str, Any],
        parent: Tensor,
        made: Any,
        outputs: list[Any],
    ) -> list[Any]:
        """Results that look at the memory of an argument."""
        viewed = schema.viewed
        assert viewed is not None
        numbers = {name: value for name, value in arguments.items() if name != viewed}

        def view(place: int | None) -> Callable[[RelayExpr], RelayExpr]:
            def computed(base: RelayExpr) -> RelayExpr:
                with node.conversion():
                    again = convert(node, {viewed: base, **numbers}, schema.defaults)
                    return self.folder.settled(again if place is None else again[place])

            return computed

        base = arguments[viewed]
        if isinstance(made, RelayExpr):
            if node.dtype(made) != node.dtype(base):
                return [self.store.tensor(self.folder.settled(made))]
            result = self.store.view(parent, view(None), self.folder.settled(made))
            if parent in self._disordered or schema.name not in _SAME_ORDER:
                self._disordered.add(result)
            if schema.may_copy and schema.name != "aten::to" and parent in self._disordered:
                # Whether this is a copy depends on how the elements lie in memory.
                copy = self.store.tensor(self.store.read(result))
                copy.quantization = parent.quantization
                self.store.entangle(copy.cell, parent.cell)
                return [copy]
            return [result]
        items: list[Any] = []
        for place, each in enumerate(made):
            item = self.store.view(parent, view(place), self.folder.settled(each))
            self._disordered.add(item)
            items.append(item)
        if len(outputs) == 1:
            return [self.store.list_of(items)]
        return items

    def _note_order(self, values: Sequence[Any], results: Sequence[Any]) -> None:
        """Operators keep the order in memory of their operands."""
        if any(isinstance(value, Tensor) and value in self._disordered for value in values):
            self._disordered.update(result for result in results if isinstance(result, Tensor))

    def _converted_by_user(self, node: ScriptNode, values: list[Any]) -> Any:
        inputs = [node.resolved(value) for value in values]
        kinds = [
            self._type_name(value, given)
            for value, given in zip(inputs, node.torch_node.inputs(), strict=True)
        ]
        return self.custom[node.op_type](inputs, kinds)

    def _type_name(self, value: Any, given: Any) -> str:
        if isinstance(value, RelayExpr):
            return str(self.store.kind(value).dtype)
        return _NUMBERS.get(given.type().kind(), str(given.type().kind()))

    @staticmethod
    def _computed_by_torch(node: ScriptNode, values: list[Any]) -> tuple[Any] | None:
        """What PyTorch computes for numbers, strings and lists of them that are known."""
        if node.schema is None or node.schema.written is not None:
            return None
        if any("Tensor" in str(output.type()) for output in node.torch_node.outputs()):
            return None
        given = []
        for value in values:
            if isinstance(value, ListValue):
                value = node.resolved(value)
            elif isinstance(value, Tensor):
                return None
            if isinstance(value, list) and any(isinstance(item, RelayExpr) for item in value):
                return None
            given.append(value)
        try:
            run, *_ = torch_package()._C._get_operation_overload(node.op_type, node.schema.overload)
            return (run(*given),)
        except (RuntimeError, TypeError):
            return None

    # Results

    def _wrapped_all(self, node: ScriptNode, made: Any, outputs: list[Any]) -> list[Any]:
        if not outputs:
            return []
        if len(outputs) == 1:
            return [self.wrapped(made, outputs[0].type())]
        if not isinstance(made, (list, tuple, TupleWrapper)) or len(made) < len(outputs):
            raise node.fail(f"{len(outputs)} results are expected")
        return [self.wrapped(each, output.type()) for each, output in zip(made, outputs, strict=False)]

    def wrapped(self, made: Any, kind: Any) -> Any:
        """A result as a value of the graph, for the type that the graph gives it."""
        name = kind.kind()
        if name == "OptionalType":
            return self.wrapped(made, kind.getElementType())
        if isinstance(made, ComplexPair):
            raise ModelError(
                "complex numbers are not supported in TorchScript: export the model (torch.export.export)"
            )
        if isinstance(made, RelayExpr):
            made = self.folder.settled(made)
            number = _NUMBERS.get(name, "")
            if not number:
                return self.store.tensor(made)
            if isinstance(made, Constant):
                return made.data.numpy().reshape(-1)[0].item()
            return self.store.tensor(made, self._number(number, made))
        if name == "ListType" and isinstance(made, (list, tuple, TupleWrapper)):
            return self.store.list_of([self.wrapped(item, kind.getElementType()) for item in made])
        if name == "TupleType" and isinstance(made, (list, tuple, TupleWrapper)):
            return tuple(self.wrapped(item, inner) for item, inner in zip(made, kind.elements(), strict=True))
        if name == "FloatType" and isinstance(made, int):
            return float(made)
        if name == "TensorType" and isinstance(made, (bool, int, float)):
            return self.store.tensor(const(made, self._dtype_of(made)))
        return made

    def _dtype_of(self, number: bool | int | float) -> str:
        if isinstance(number, bool):
            return "bool"
        return "int64" if isinstance(number, int) else self.scope.default_dtype

    def _number(self, number: str, expr: RelayExpr) -> str:
        if number != "number":
            return number
        dtype = str(self.store.kind(expr).dtype)
        return "bool" if dtype == "bool" else "float" if "float" in dtype else "int"


def scalar(node: ScriptNode, expr: RelayExpr) -> RelayExpr:
    """A tensor of one element without dimensions."""
    return expr if node.rank(expr) == 0 else relay.reshape(expr, ())
