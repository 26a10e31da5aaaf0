"""A fused function as the graph executor runs it: inputs, constants, and calls of kernels in order."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.ir.structural import structural_equal
from tilewright.ir.structural_hash import structural_hash
from tilewright.ir.tensor_type import TensorType, is_dynamic
from tilewright.ir.type import TupleType, Type
from tilewright.relay.analysis.contiguity import joined_parameters, view_offsets
from tilewright.relay.backend.external.symbols import external_symbol
from tilewright.relay.backend.te_compiler import kernel_name
from tilewright.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tilewright.relay.expr_functor import ValueFunctor
from tilewright.relay.function import Function
from tilewright.relay.output_names import output_names
from tilewright.runtime.device import cpu
from tilewright.runtime.ndarray import NDArray
from tilewright.support.errors import LoweringError, TilewrightError


@dataclass(frozen=True)
class Entry:
    """One tensor: the number of the node that produces it, and which of its outputs it is."""

    node: int
    output: int = 0


NO_OPERATION = "__nop"
"""The kernel of a node that runs nothing: its results are views of its argument, or its arguments of the result."""

COPY = "__copy"
"""The kernel of a node that copies its argument to another device."""

CPU = cpu().device_type


@dataclass(eq=False)
class GraphNode:
    """An input, a constant, or a call of a kernel. ``kernel`` is None for the first two."""

    name: str
    outputs: list[TensorType]
    inputs: list[Entry] = field(default_factory=list)
    kernel: str | None = None
    function: Function | None = None
    value: NDArray | None = None
    view_offsets: list[int] | None = None
    """Where in the first input the outputs begin, in bytes, if they can be read there."""
    joined: list[int] | None = None
    """Which inputs, one after the other, are the output, if they can be written there."""
    device: int = CPU
    """DLPack's number for the kind of device that the outputs are on."""
    backend: str = ""
    """The other code generator that the kernel is from; empty for our own."""
    is_flat: bool = False
    """The kernel takes the elements of each tensor as one row, whatever their shape."""

    @property
    def is_view(self) -> bool:
        """True if nothing runs."""
        return self.kernel == NO_OPERATION


@dataclass(eq=False)
class ExecutorGraph:
    """Nodes in the order in which they run; ``kernels`` has each distinct function once, by name, ``external``
    those that other code generators compile."""

    nodes: list[GraphNode]
    outputs: list[Entry]
    kernels: dict[str, Function]
    external: dict[str, Function] = field(default_factory=dict)
    kernel_devices: dict[str, int] = field(default_factory=dict)
    """The kind of device that each kernel runs on."""
    output_names: list[str] = field(default_factory=list)
    """The model's names of the outputs; empty if it has none."""

    @property
    def devices(self) -> list[int]:
        """The kinds of device that tensors are on, in the order of their first use."""
        return list(dict.fromkeys(node.device for node in self.nodes))

    @property
    def inputs(self) -> list[int]:
        """The nodes that the caller gives values for."""
        return [
            number for number, node in enumerate(self.nodes) if node.kernel is None and node.value is None
        ]

    def type_of(self, entry: Entry) -> TensorType:
        """The type of a tensor."""
        return self.nodes[entry.node].outputs[entry.output]


def byte_size(kind: TensorType) -> int:
    """The bytes of a tensor of constant shape."""
    return math.prod(kind.concrete_shape) * element_size(kind)


def element_size(kind: TensorType) -> int:
    """The bytes of an element: whole ones, one for a bool."""
    return (kind.dtype.bits * kind.dtype.lanes + 7) // 8


def tensor_types(given: Type) -> list[TensorType]:
    """The tensors of a value of this type, tuples flattened."""
    if isinstance(given, TensorType):
        if is_dynamic(given):
            raise LoweringError(
                f"the graph executor needs every size, and a tensor is {given}: give the inputs' shapes, "
                "build at opt_level 2 or more, or compile for the virtual machine (relay.vm)"
            )
        return [given]
    if isinstance(given, TupleType):
        return [tensor for part in given.fields for tensor in tensor_types(part)]
    raise LoweringError(
        f"the graph executor cannot hold a value of type {given}; compile for the virtual machine"
    )


class GraphBuilder(ValueFunctor):
    """Turns a function into a graph; the entries of an expression are its tensors, tuples flattened."""

    def __init__(self, prefix: str, device_of: Callable[[RelayExpr], int]) -> None:
        super().__init__()
        self.prefix = prefix
        self.device_of = device_of
        self.nodes: list[GraphNode] = []
        self.kernels: dict[str, Function] = {}
        self.external: dict[str, Function] = {}
        self.kernel_devices: dict[str, int] = {}
        self._known: dict[tuple[int, int], list[tuple[Function, str]]] = {}
        self._names: set[str] = set()
        self._constants = 0

    def build(self, function: Function) -> ExecutorGraph:
        """The graph of a function whose body was fused."""
        for parameter in function.params:
            kinds = tensor_types(parameter.checked_type)
            device = self.device_of(parameter)
            entries = []
            for position, kind in enumerate(kinds):
                name = parameter.name_hint if len(kinds) == 1 else f"{parameter.name_hint}_{position}"
                entries.append(self._add(GraphNode(self._fresh(name), [kind], device=device))[0])
            self.memo_map[parameter] = entries
        outputs = self.visit(function.body)
        names = output_names(function, len(outputs))
        return ExecutorGraph(self.nodes, outputs, self.kernels, self.external, self.kernel_devices, names)

    def _fresh(self, name: str) -> str:
        made, number = name, 0
        while made in self._names:
            number += 1
            made = f"{name}_{number}"
        return made

    def _add(self, node: GraphNode) -> list[Entry]:
        self.nodes.append(node)
        self._names.add(node.name)
        return [Entry(len(self.nodes) - 1, output) for output in range(len(node.outputs))]

    def kernel(self, function: Function, device: int) -> str:
        """The name of a kernel; functions with the same structure on one kind of device share one."""
        digest = (device, structural_hash(function))
        for known, name in self._known.get(digest, ()):
            if structural_equal(known, function):
                return name
        name = kernel_name(function, self.prefix)
        if name in self.kernels:
            name = f"{name}_{len(self.kernels)}"
        self._known.setdefault(digest, []).append((function, name))
        self.kernels[name] = function
        self.kernel_devices[name] = device
        return name

    def visit_default(self, expr: RelayExpr) -> list[Entry]:
        raise LoweringError(
            f"the graph executor cannot run {type(expr).__name__}; compile for the virtual machine (relay.vm)",
            span=expr.span,
        )

    def visit_var(self, var: Var) -> list[Entry]:
        raise TilewrightError(
            f"variable {var.name_hint} is free: it is not a parameter of the function", span=var.span
        )

    def visit_constant(self, const: Constant) -> list[Entry]:
        """A parameter of the graph."""
        name = f"p{self._constants}"
        self._constants += 1
        # An input may have this name, and inputs are set by name.
        while name in self._names:
            name = f"{name}_"
        device = self.device_of(const)
        return self._add(GraphNode(name, [const.tensor_type], value=const.data, device=device))

    def visit_tuple(self, tup: Tuple) -> list[Entry]:
        return [entry for part in tup.fields for entry in self.visit(part)]

    def visit_tuple_getitem(self, t: TupleGetItem) -> list[Entry]:
        entries = self.visit(t.tuple_value)
        fields = t.tuple_value.checked_type.fields
        start = sum(len(tensor_types(field)) for field in fields[: t.index])
        return entries[start : start + len(tensor_types(fields[t.index]))]  # type: ignore[no-any-return]

    def visit_call(self, call: Call) -> list[Entry]:
        """A kernel on the entries of its arguments."""
        if isinstance(call.op, Op) and call.op.get_attr("TOpIsStateful"):
            raise LoweringError(f"the graph executor cannot run {call.op.name}", span=call.span)
        if isinstance(call.op, Op):
            raise LoweringError(
                f"{call.op.name} is not inside a kernel: the pass FuseOps makes kernels from operators, and cannot be "
                "disabled (PassContext(opt_level=0) fuses nothing)",
                span=call.span,
            )
        if not isinstance(call.op, Function) or not call.op.is_primitive:
            raise LoweringError(
                "the graph executor can only call kernels; inline the function, or use the virtual machine",
                span=call.span,
            )
        inputs = [entry for argument in call.args for entry in self.visit(argument)]
        kinds = tensor_types(call.checked_type)
        device = self.device_of(call)
        if call.op.attrs.get("Compiler"):
            symbol = external_symbol(call.op)
            self.external[symbol] = call.op
            backend = str(call.op.attrs["Compiler"])
            name = f"{symbol}_{len(self.nodes)}"
            return self._add(GraphNode(name, kinds, inputs, symbol, device=device, backend=backend))
        if is_device_copy(call.op):
            return self._add(GraphNode(f"device_copy_{len(self.nodes)}", kinds, inputs, COPY, device=device))
        name = self.kernel(call.op, device)
        node = GraphNode(f"{name}_{len(self.nodes)}", kinds, inputs, name, call.op, device=device)
        offsets = view_offsets(call.op)
        if offsets is not None:
            node.view_offsets = [offset * element_size(kinds[0]) for offset in offsets]
        node.joined = joined_parameters(call.op)
        return self._add(node)


def is_device_copy(function: Function) -> bool:
    """True for a primitive function that copies its argument to another device, and does nothing else."""
    body = function.body
    return (
        isinstance(body, Call)
        and isinstance(body.op, Op)
        and body.op.name == "device_copy"
        and body.args == function.params
    )
