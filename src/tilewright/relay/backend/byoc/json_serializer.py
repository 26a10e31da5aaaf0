"""``JSONSerializer``: an external function as a ``JSONGraph`` and its constants.

A code generator derives from it where it wants other attributes: ``node_attributes`` gets each call. A composite
function becomes one node under its name, with the operators inside it in order (``operators``: name and attributes) and
their attributes merged; constants inside it are further inputs, after its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import FloatImm, IntImm, StringImm
from tilewright.ir.functor import post_order
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.relay.backend.external.symbols import external_symbol
from tilewright.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tilewright.relay.expr_functor import ValueFunctor
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_expr
from tilewright.runtime.external import JSONGraph, JSONNode
from tilewright.runtime.ndarray import NDArray
from tilewright.support.errors import CodegenError
from tilewright.support.recursion import recursion_room

Entries = list[tuple[int, int]]


def plain(value: Any) -> Any:
    """An attribute as JSON has it."""
    if isinstance(value, (IntImm, FloatImm, StringImm)):
        return value.value
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, Sequence):
        return [plain(part) for part in value]
    return str(value)


def call_attributes(call: Call) -> dict[str, Any]:
    """The attributes of an operator's call, by name."""
    if call.attrs is None:
        return {}
    return {str(name): plain(call.attrs[name]) for name in call.attrs.keys()}  # noqa: SIM118


def inner_calls(function: Function) -> list[Call]:
    """The calls of operators inside a composite function, in order."""
    return [part for part in post_order(function.body) if isinstance(part, Call) and isinstance(part.op, Op)]


class JSONSerializer(ValueFunctor):
    """Turns one external function into a graph; ``constants`` has its constants by name."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        typed = infer_expr(function)
        assert isinstance(typed, Function)
        self.function = typed
        self.symbol = external_symbol(function)
        self.graph = JSONGraph(self.symbol)
        self.constants: dict[str, NDArray] = {}

    def node_attributes(self, call: Call) -> dict[str, Any]:
        """The attributes of a call's node."""
        if isinstance(call.op, Function):
            inside = inner_calls(call.op)
            merged: dict[str, Any] = {}
            for one in inside:
                merged = {**call_attributes(one), **merged}
            listed = [{"name": _operator(one), "attrs": call_attributes(one)} for one in inside]
            return {**merged, "operators": listed}
        return call_attributes(call)

    def serialize(self) -> JSONGraph:
        """The graph of the function."""
        with recursion_room():
            for parameter in self.function.params:
                self.memo_map[parameter] = [
                    self._add("input", parameter.name_hint, [kind])[0]
                    for kind in self._tensors(parameter.checked_type)
                ]
            self.graph.outputs = self.visit(self.function.body)
        self.graph.check()
        return self.graph

    def _add(self, op: str, name: str, kinds: Sequence[TensorType], **more: Any) -> Entries:
        shapes = [list(kind.concrete_shape) for kind in kinds]
        self.graph.nodes.append(JSONNode(op, name, shapes, [str(kind.dtype) for kind in kinds], **more))
        return [(len(self.graph.nodes) - 1, output) for output in range(len(kinds))]

    def _tensors(self, kind: Type) -> list[TensorType]:
        if isinstance(kind, TensorType):
            return [kind]
        if isinstance(kind, TupleType):
            return [tensor for part in kind.fields for tensor in self._tensors(part)]
        raise CodegenError(f"{self.symbol} has a value of type {kind}, which has no JSON form")

    def visit_default(self, expr: RelayExpr) -> Entries:
        raise CodegenError(
            f"{self.symbol} has a {type(expr).__name__}, which has no JSON form", span=expr.span
        )

    def visit_var(self, var: Var) -> Entries:
        raise CodegenError(f"{self.symbol} uses {var.name_hint}, which is not one of its parameters")

    def visit_constant(self, const: Constant) -> Entries:
        """A node of kind ``const``."""
        name = f"{self.symbol}_const_{len(self.constants)}"
        self.constants[name] = const.data
        return self._add("const", name, [const.tensor_type])

    def visit_tuple(self, tup: Tuple) -> Entries:
        return [entry for part in tup.fields for entry in self.visit(part)]

    def visit_tuple_getitem(self, t: TupleGetItem) -> Entries:
        entries: Entries = self.visit(t.tuple_value)
        fields = t.tuple_value.checked_type.fields
        start = sum(len(self._tensors(field)) for field in fields[: t.index])
        return entries[start : start + len(self._tensors(fields[t.index]))]

    def visit_call(self, call: Call) -> Entries:
        """A node of kind ``kernel``."""
        if isinstance(call.op, Function):
            name = call.op.attrs.get("Composite")
            if name is None:
                raise CodegenError(f"{self.symbol} calls a function that is not composite", span=call.span)
        elif isinstance(call.op, Op):
            name = call.op.name
        else:
            raise CodegenError(f"{self.symbol} calls a {type(call.op).__name__}", span=call.span)
        inputs: Entries = [entry for argument in call.args for entry in self.visit(argument)]
        if isinstance(call.op, Function):
            for part in post_order(call.op.body):
                if isinstance(part, Constant):
                    inputs += self.visit(part)
        return self._add(
            "kernel",
            str(name),
            self._tensors(call.checked_type),
            inputs=inputs,
            attrs=self.node_attributes(call),
        )


def _operator(call: Call) -> str:
    assert isinstance(call.op, Op)
    return call.op.name


def json_compiler(
    runtime: Callable[..., Any], serializer: type[JSONSerializer] = JSONSerializer
) -> Callable[[Function], Any]:
    """A code generator for ``relay.ext.<name>``: the function's JSON form in a runtime of this class."""

    def compile_function(function: Function) -> Any:
        made = serializer(function)
        return runtime(made.serialize(), made.constants)

    return compile_function
