"""From an ONNX graph to graph-level expressions.

Nodes are converted in order, and folded where possible: a node whose inputs are all constants becomes a constant, and
for integer vectors (shapes on their way to a reshape) every known element is tracked, so that the shape arithmetic of
exporters folds away wherever sizes are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Call, Constant, Let, Tuple, TupleGetItem, TupleWrapper, Var, const
from tilewright.relay.frontend.common import ModelNode, ShapeNeeded, check_size, input_type, tensor_bytes
from tilewright.relay.frontend.onnx.alternatives import committed, declared_rank, propagated, pruned
from tilewright.relay.frontend.onnx.checks import wrong_attribute
from tilewright.relay.frontend.onnx.low_precision import (
    AWARE_OPERATORS,
    LOW_PRECISION_TYPES,
    MOVING_OPERATORS,
    LowPrecisionType,
)
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.reading import view_of
from tilewright.relay.frontend.onnx.registry import find_converter
from tilewright.relay.frontend.onnx.tensors import array_of, attribute_value, dtype_name
from tilewright.relay.frontend.onnx.values import ChoiceValue, OptionalValue, SequenceValue
from tilewright.relay.infer import type_of
from tilewright.relay.interpreter import Interpreter
from tilewright.runtime import ndarray
from tilewright.runtime.ndarray import NDArray
from tilewright.support.errors import ModelError
from tilewright.support.wording import argument

FOLD_LIMIT = 1 << 24
"""Bytes: larger results are left for the compiler, which folds what pays."""
UNROLLED_IN_ALL = 20_000
"""Nodes that all loops of a model together may be written out to: loops within loops multiply."""
LONGEST_PARTIAL = 1024
"""Elements: longer vectors are not shapes, and not followed element by element."""


class GraphImporter:
    """Converts one graph; a subgraph has a separate importer, which sees the names of the enclosing ones."""

    def __init__(
        self,
        module: IRModule,
        opsets: Mapping[str, int],
        functions: Mapping[tuple[str, str], Any],
        parent: GraphImporter | None = None,
    ) -> None:
        self.module = module
        self.opsets = dict(opsets)
        self.functions = functions
        self.parent = parent
        self.captures: dict[RelayExpr, Var] | None = None
        self.values: dict[str, Any] = {}
        self.config: dict[str, Any] = parent.config if parent is not None else {}
        self.params: dict[str, Any] = parent.params if parent is not None else {}
        self.param_values: dict[Var, np.ndarray[Any, Any]] = parent.param_values if parent is not None else {}
        self.partials: dict[RelayExpr, list[int | None]] = parent.partials if parent is not None else {}
        self.low_precision: dict[RelayExpr, LowPrecisionType] = (
            parent.low_precision if parent is not None else {}
        )
        self._unrolled: list[int] = parent._unrolled if parent is not None else [0]
        self._varying: set[RelayExpr] = parent._varying if parent is not None else set()
        self.assumed: dict[RelayExpr, bool] = parent.assumed if parent is not None else {}

    # Names

    def lookup(self, name: str) -> Any:
        """The value of a name here or in a graph around this one."""
        graph: GraphImporter | None = self
        while graph is not None:
            if name in graph.values:
                return self.resolved(graph.values[name])
            if graph.captures is not None and graph.parent is not None:
                graph.values[name] = graph.captured(graph.parent.lookup(name))
                return graph.values[name]
            graph = graph.parent
        raise ModelError(f"the model uses {name!r} before any node, input or initializer defines it")

    def captured(self, value: Any) -> Any:
        """A value from outside a loop as the loop's body sees it: a variable, so that it is computed once."""
        if isinstance(value, SequenceValue):
            return SequenceValue([self.captured(item) for item in value.items], value.dtype)
        if isinstance(value, OptionalValue):
            return OptionalValue(self.captured(value.item))
        if isinstance(value, ChoiceValue):
            return ChoiceValue(*map(self.captured, (value.condition, value.first, value.second)))
        if not isinstance(value, RelayExpr) or isinstance(value, (Var, Constant)):
            return value
        assert self.captures is not None
        if value not in self.captures:
            variable = Var("captured", type_of(value, self.module))
            self.captures[value] = variable
            if value in self.partials:
                self.partials[variable] = self.partials[value]
        return self.captures[value]

    def resolved(self, value: Any) -> Any:
        """What is left of a choice under the conditions that are assumed to hold or not."""
        while isinstance(value, ChoiceValue) and value.condition in self.assumed:
            value = value.first if self.assumed[value.condition] else value.second
        return value

    @contextmanager
    def assuming(self, condition: RelayExpr, holds: bool) -> Iterator[None]:
        """Within it, what is converted is what happens where a condition holds, or where it does not."""
        before = dict(self.assumed)
        self.assumed[condition] = holds
        try:
            yield
        finally:
            self.assumed.clear()
            self.assumed.update(before)

    def define(self, name: str, value: Any) -> None:
        """Give a name a value; an inner graph may hide an outer name."""
        if name:
            self.values[name] = value

    def add_initializer(self, tensor: Any, stored: NDArray, freeze: bool) -> None:
        """A constant of the model: part of the program, or a parameter of ``main`` with its value."""
        whole = stored.dtype.is_integral or stored.dtype.is_bool
        if freeze or self.parent is not None or whole or prod(stored.shape) <= 1:
            self.define(tensor.name, self.mark(Constant(stored), LOW_PRECISION_TYPES.get(tensor.data_type)))
            return
        variable = Var(tensor.name, TensorType(stored.shape, stored.dtype))
        self.params[tensor.name] = stored
        self.param_values[variable] = view_of(stored)
        self.define(tensor.name, variable)

    # What is known

    def known_value(self, expr: RelayExpr) -> np.ndarray[Any, Any] | None:
        """The value of an expression that does not depend on the model's inputs, if it is at hand."""
        if isinstance(expr, Constant):
            return view_of(expr.data)
        if isinstance(expr, Var):
            return self.param_values.get(expr)
        found = self.partials.get(expr)
        if found is not None and all(item is not None for item in found):
            kind = type_of(expr, self.module)
            if isinstance(kind, TensorType):
                value = np.asarray(found, dtype=str(kind.dtype))
                return value.reshape(()) if not kind.shape else value
        return None

    def partial_value(self, expr: RelayExpr) -> list[int | None] | None:
        """The known elements of a vector (or scalar) of integers."""
        value = self.known_value(expr)
        if value is not None:
            return (
                [int(item) for item in value.reshape(-1)]
                if value.size <= LONGEST_PARTIAL and value.dtype.kind in "iub"
                else None
            )
        found = self.partials.get(expr)
        if found is not None:
            return found
        kind = type_of(expr, self.module)
        if (
            isinstance(kind, TensorType)
            and len(kind.shape) <= 1
            and not any(isinstance(extent, UnknownDimension) for extent in kind.shape)
        ):
            count = int(kind.concrete_shape[0]) if kind.shape else 1
            return [None] * count if count <= LONGEST_PARTIAL else None
        return None

    def note_partial(self, expr: RelayExpr, items: Sequence[int | None]) -> RelayExpr:
        """Remember what is known of a vector of integers; a constant, of any shape, where all of it is."""
        if all(item is not None for item in items):
            kind = type_of(expr, self.module)
            assert isinstance(kind, TensorType)
            value = np.asarray(items, dtype=str(kind.dtype))
            # The length of a vector may be unknown to its type; other constants have the shape of their expression.
            return const(value if len(kind.shape) == 1 else value.reshape(kind.concrete_shape))
        if any(item is not None for item in items):
            self.partials[expr] = list(items)
        return expr

    def mark(self, expr: RelayExpr, low_precision: LowPrecisionType | None) -> RelayExpr:
        """Remember that an expression is the carrier of a low-precision type."""
        if low_precision is not None:
            self.low_precision[expr] = low_precision
        return expr

    def _moved_type(self, node: Node, inputs: Sequence[Any]) -> LowPrecisionType | None:
        """The low-precision type that an operator moves from its arguments to its results; an error where it would take
        carriers for numbers."""
        found = next(
            (self.low_precision[value] for value in inputs if _is_in(value, self.low_precision)), None
        )
        if found is None or node.op_type in AWARE_OPERATORS:
            return None
        if node.op_type in MOVING_OPERATORS:
            return found
        raise node.fail(f"elements of type {found.name} can only be moved, cast, quantised and dequantised")

    def _keep_type(self, results: Sequence[Any], low_precision: LowPrecisionType | None) -> None:
        for result in results:
            if low_precision is not None and isinstance(result, RelayExpr):
                kind = type_of(result, self.module)
                if isinstance(kind, TensorType) and kind.dtype == low_precision.carrier:
                    self.low_precision.setdefault(result, low_precision)

    def _mark_declared(self, node: Node, results: Sequence[Any]) -> None:
        """Results of the graphs inside a node are of the types that those graphs declare."""
        skipped = {"If": 0, "Scan": 0, "Loop": 1}.get(node.op_type)
        if skipped is None or node.proto.domain not in ("", "ai.onnx"):
            return
        inner = node.attributes.get("body") or node.attributes.get("then_branch")
        declared = [info.type.tensor_type.elem_type for info in inner.output][skipped:] if inner else []
        for result, element_type in zip(results, declared, strict=False):
            self._keep_type([result], LOW_PRECISION_TYPES.get(element_type))

    # Conversion

    def convert(self, graph: Any) -> None:
        """Convert the nodes of a graph; names get their values."""
        for proto in graph.node:
            self.convert_node(proto)

    def convert_node(self, proto: Any) -> None:
        """Convert one node."""
        inputs = [self.lookup(name) if name else None for name in proto.input]
        for name, result in zip(proto.output, self.converted(proto, inputs), strict=False):
            self.define(name, result)

    def converted(self, proto: Any, inputs: Sequence[Any]) -> list[Any]:
        """The results of a node: those for either value of an input that a condition chooses."""
        attributes = {attribute.name: attribute_value(attribute) for attribute in proto.attribute}
        node = Node(proto, attributes, self.opset(proto.domain), self)
        complaint = wrong_attribute(proto, node.opset)
        if complaint:
            raise node.fail(complaint)
        choice = next((value for value in inputs if isinstance(value, ChoiceValue)), None)
        if choice is not None:

            def under_assumption() -> list[Any]:
                return self.converted(proto, [self.resolved(value) for value in inputs])

            with node.conversion():
                return propagated(node, choice.condition, under_assumption)
        convert = find_converter(proto.domain, proto.op_type, node.opset)
        with node.conversion():
            moved = None
            if convert is not None:
                moved = self._moved_type(node, inputs)
                made = convert(node, *inputs)
            else:
                made = self.expand(node, inputs)
            results = self._results(node, made)[: len(proto.output)]
            results = [self._settled(result, inputs) for result in results]
            self._keep_type(results, moved)
            self._mark_declared(node, results)
        return results

    def opset(self, domain: str) -> int:
        """The version of a domain that the model uses."""
        return self.opsets.get("" if domain == "ai.onnx" else domain, 1)

    def expand(self, node: Node, inputs: Sequence[Any]) -> Any:
        """The outputs of a node whose operator is defined by a function: the model's own, or ONNX's."""
        from tilewright.relay.frontend.onnx.functions import expand_function

        return expand_function(self, node, inputs)

    @staticmethod
    def _results(node: Node, made: Any) -> list[Any]:
        if isinstance(made, TupleWrapper):
            return list(made)
        if isinstance(made, (list, tuple)):
            return list(made)
        return [made]

    def _settled(self, result: Any, inputs: Sequence[Any]) -> Any:
        """The result with its type found; computed now if all inputs are constants and it is small."""
        if not isinstance(result, RelayExpr) or isinstance(result, (Var, Constant)):
            return result
        kind = type_of(result, self.module)
        if not isinstance(kind, TensorType):
            return result
        check_size("a result", kind)
        if self._is_constant(result):
            value = Interpreter(self.module).run(result)
            settled = Constant(np.ascontiguousarray(value).reshape(np.shape(value)))
            return self.mark(settled, self.low_precision.get(result))
        return result

    def _is_constant(self, expr: RelayExpr) -> bool:
        """True if an expression consists only of constants and pure operators, and nothing in it is large. Quantised
        weights stay quantised, for products of integers."""
        found = self._consists_of_constants(expr)
        if not found:
            self._varying.add(expr)
        return found

    def _consists_of_constants(self, expr: RelayExpr) -> bool:
        pending, seen = [expr], set()
        while pending:
            current = pending.pop()
            if current in seen or isinstance(current, Constant):
                continue
            seen.add(current)
            if len(seen) > 200 or current in self._varying:
                return False
            if (
                isinstance(current, Call)
                and isinstance(current.op, Op)
                and not current.op.get_attr("TOpIsStateful")
                and not (current.op.name == "qnn.dequantize" and self._rank(current))
                and tensor_bytes(type_of(current, self.module)) <= FOLD_LIMIT
            ):
                pending += current.args
            elif isinstance(current, Tuple):
                pending += current.fields
            elif isinstance(current, TupleGetItem):
                pending.append(current.tuple_value)
            else:
                return False
        return True

    def _rank(self, expr: RelayExpr) -> int:
        kind = type_of(expr, self.module)
        return len(kind.shape) if isinstance(kind, TensorType) else 0

    # Subgraphs

    def spend(self, nodes: int) -> bool:
        """Count nodes of a loop that is written out; False where there are too many already."""
        self._unrolled[0] += nodes
        return self._unrolled[0] <= UNROLLED_IN_ALL

    def subgraph(self) -> GraphImporter:
        """An importer for a graph inside this one."""
        return GraphImporter(self.module, self.opsets, self.functions, self)

    def convert_body(self, proto: Any, inputs: Sequence[Any], captures: bool = False) -> Body:
        """Convert a graph that an attribute holds, for these values of its inputs.

        With ``captures``, values of the enclosing graphs are variables, which the caller binds.
        """
        inner = self.subgraph()
        if captures:
            inner.captures = {}
        for tensor in proto.initializer:
            inner.add_initializer(tensor, ndarray.array(array_of(tensor)), True)
        if len(inputs) > len(proto.input):
            raise ModelError(
                f"the graph {proto.name!r} has {len(proto.input)} inputs, it is given {len(inputs)}"
            )
        for info, value in zip(proto.input, inputs, strict=False):
            inner.define(info.name, value)
        inner.convert(proto)
        outputs = [inner.lookup(info.name) for info in proto.output]
        whole = ModelNode("graph", proto.name, {}, self.module)
        if captures:
            outputs = committed(whole, outputs, [declared_rank(info) for info in proto.output])
        else:
            outputs = pruned(whole, outputs, proto.output)
        return Body(outputs, inner.captures or {})

    # Inputs

    def add_input(self, info: Any, shapes: Mapping[str, Any], dtypes: Any) -> list[Var]:
        """Make the variables of an input of the model, and give its name that value: one for a tensor, one for each
        element of a sequence."""
        fixed = self.config.get("values", {})
        if info.name in fixed:
            self.define(info.name, Constant(np.asarray(fixed[info.name])))
            return []
        made: list[Var] = []
        self.define(info.name, self._input_value(info.name, info.type, shapes, dtypes, made))
        return made

    def _input_value(
        self, name: str, kind: Any, shapes: Mapping[str, Any], dtypes: Any, made: list[Var]
    ) -> Any:
        which = kind.WhichOneof("value")
        if which == "optional_type":
            if name in shapes and shapes[name] is None:
                return OptionalValue(None)
            return OptionalValue(self._input_value(name, kind.optional_type.elem_type, shapes, dtypes, made))
        if which == "sequence_type":
            given = shapes.get(name)
            if given is None:
                raise ShapeNeeded(
                    f"the input {name!r} is a sequence: give {argument('shape')} with a list of the shapes of its "
                    "elements"
                )
            inner = kind.sequence_type.elem_type
            names = [f"{name}.{position}" for position in range(len(given))]
            each = dict(zip(names, given, strict=True))
            items = [self._input_value(one, inner, each, dtypes, made) for one in names]
            return SequenceValue(items, self._input_dtype(name, inner.tensor_type, dtypes))
        if which not in ("tensor_type", None):
            raise ModelError(f"the input {name!r} is a {which}, which is not supported")
        made.append(self.input_variable(name, kind.tensor_type, shapes, dtypes))
        return made[-1]

    @staticmethod
    def _input_dtype(name: str, tensor: Any, dtypes: Any) -> str:
        element = dtypes.get(name) if isinstance(dtypes, Mapping) else None
        return element or (dtype_name(tensor.elem_type) if tensor.elem_type else str(dtypes or "float32"))

    def input_variable(self, name: str, tensor: Any, shapes: Mapping[str, Any], dtypes: Any) -> Var:
        """A variable for a tensor that is an input, with the type that the model or the user gives."""
        given = shapes.get(name)
        dtype = self._input_dtype(name, tensor, dtypes)
        if given is not None:
            extents: list[Any] = list(given)
        elif tensor.HasField("shape"):
            extents = [
                extent.dim_value if extent.HasField("dim_value") and extent.dim_value >= 0 else None
                for extent in tensor.shape.dim
            ]
        else:
            raise ShapeNeeded(
                f"the model does not say how many dimensions its input {name!r} has: give {argument('shape')}"
            )
        variable = Var(name, input_type(name, extents, dtype))
        self.mark(variable, LOW_PRECISION_TYPES.get(tensor.elem_type))
        return variable


@dataclass(frozen=True)
class Body:
    """A converted subgraph: its outputs, and the variables in it that represent captured expressions."""

    outputs: list[Any]
    captures: dict[RelayExpr, Var]

    def bound(self, expr: RelayExpr) -> RelayExpr:
        """An expression of the body with those variables bound."""
        for outer, variable in reversed(self.captures.items()):
            expr = Let(variable, outer, expr)
        return expr


def _is_in(value: Any, known: Mapping[RelayExpr, Any]) -> bool:
    return isinstance(value, RelayExpr) and value in known


__all__ = ["FOLD_LIMIT", "Body", "GraphImporter"]
