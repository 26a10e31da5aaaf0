"""The model as graphs to draw: operators before fusion, kernels after it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.driver.profile.kernels import NOTHING_TO_RUN, GraphTensors, short_name
from tilewright.driver.profile.layout import Layout, layered_layout
from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.relay.analysis.work import span_name
from tilewright.relay.expr import Call, Tuple, TupleGetItem
from tilewright.relay.function import Function


@dataclass(frozen=True)
class DrawnNode:
    """A node: what it is called, what is said below, the model's name for it, the kernel that computes it, and what it
    is: ``operator``, ``kernel``, ``input`` or ``view``. ``backend`` is the other code generator that computes it."""

    label: str
    detail: str
    model_nodes: tuple[str, ...]
    kernel: str | None
    kind: str
    step: int | None = None
    backend: str = ""


@dataclass(frozen=True)
class DrawnGraph:
    """Nodes, edges between their numbers, and positions."""

    nodes: tuple[DrawnNode, ...]
    edges: tuple[tuple[int, int], ...]
    layout: Layout


def _drawn(nodes: list[DrawnNode], edges: dict[tuple[int, int], None]) -> DrawnGraph:
    return DrawnGraph(tuple(nodes), tuple(edges), layered_layout(len(nodes), list(edges)))


def operator_graph(
    main: Function, kernels: Mapping[str, list[Function]], module: IRModule | None = None
) -> DrawnGraph:
    """The operators of a function, before they are fused; ``kernels`` has the fused functions, which say by name and
    place where an operator went. Parameters with a value are left out. The operators of the functions of ``module``
    that other code generators take are drawn too, with the name of the generator."""
    went_to = {
        (expr.op.name, span_name(expr)): kernel
        for kernel, functions in kernels.items()
        for function in functions
        for expr in post_order(function.body)
        if isinstance(expr, Call) and isinstance(expr.op, Op)
    }
    drawing = _Operators(went_to, module)
    sources: dict[RelayExpr, list[int]] = {}
    for parameter in main.params:
        sources[parameter] = [len(drawing.nodes)]
        drawing.nodes.append(DrawnNode(parameter.name_hint, str(parameter.checked_type), (), None, "input"))
    drawing.draw(main.body, sources, "")
    return _drawn(drawing.nodes, drawing.edges)


class _Operators:
    """Operators as nodes; ``sources`` has the nodes that an expression's value comes from."""

    def __init__(self, went_to: Mapping[tuple[str, str], str], module: IRModule | None) -> None:
        self.went_to = went_to
        self.module = module
        self.nodes: list[DrawnNode] = []
        self.edges: dict[tuple[int, int], None] = {}

    def draw(self, body: RelayExpr, sources: dict[RelayExpr, list[int]], backend: str) -> list[int]:
        """Draw an expression, and give the nodes of its value."""
        for expr in post_order(body):
            if isinstance(expr, Tuple):
                sources[expr] = [node for field in expr.fields for node in sources.get(field, [])]
            elif isinstance(expr, TupleGetItem):
                sources[expr] = sources.get(expr.tuple_value, [])
            elif isinstance(expr, Call):
                sources[expr] = self._call(expr, sources, backend)
        return sources.get(body, [])

    def _call(self, call: Call, sources: dict[RelayExpr, list[int]], backend: str) -> list[int]:
        arguments = [sources.get(argument, []) for argument in call.args]
        callee = self._apart(call.op)
        if callee is not None:
            inside: dict[RelayExpr, list[int]] = dict(zip(callee.params, arguments, strict=True))
            return self.draw(callee.body, inside, str(callee.attrs.get("Compiler", backend)))
        name = call.op.name if isinstance(call.op, Op) else "function"
        place = span_name(call)
        number = len(self.nodes)
        kernel = None if backend else self.went_to.get((name, place))
        self.nodes.append(
            DrawnNode(
                name,
                str(call.checked_type),
                (place,) if place else (),
                kernel,
                "operator",
                backend=backend,
            )
        )
        for source in (node for nodes in arguments for node in nodes):
            self.edges[source, number] = None
        return [number]

    def _apart(self, callee: RelayExpr) -> Function | None:
        """A function that another code generator takes, or one of its composite functions."""
        if isinstance(callee, GlobalVar) and self.module is not None and callee.name_hint in self.module:
            callee = self.module[callee.name_hint]
        is_apart = isinstance(callee, Function) and (
            callee.attrs.get("Compiler") or callee.attrs.get("Composite")
        )
        return callee if is_apart else None  # type: ignore[return-value]


def kernel_graph(graph: str, parameters: frozenset[str]) -> DrawnGraph:
    """The nodes of a graph in the executor's JSON, without the parameters that have a value."""
    parsed = json.loads(graph)
    tensors = GraphTensors(parsed)
    nodes: list[DrawnNode] = []
    edges: dict[tuple[int, int], None] = {}
    numbers: dict[int, int] = {}
    for index, node in enumerate(parsed["nodes"]):
        attributes = node.get("attrs", {})
        if node["op"] == "null":
            if node["name"] in parameters:
                continue
            made = DrawnNode(node["name"], tensors.text(index), (), None, "input")
        else:
            kernel = attributes["func_name"]
            is_view = kernel == NOTHING_TO_RUN
            places = tuple(name for name in attributes.get("model_nodes", "").split("\n") if name)
            outputs = range(int(attributes.get("num_outputs", "1")))
            detail = ", ".join(tensors.text(index, output) for output in outputs)
            made = DrawnNode(
                node["name"].rpartition("_")[0] or "view" if is_view else plain_name(kernel),
                detail,
                places,
                None if is_view else kernel,
                "view" if is_view else "kernel",
                index,
                str(attributes.get("Compiler", "")),
            )
        numbers[index] = len(nodes)
        nodes.append(made)
        for source, *_ in node["inputs"]:
            if source in numbers:
                edges[numbers[source], numbers[index]] = None
    return _drawn(nodes, edges)


def plain_name(kernel: str) -> str:
    """The operators of a kernel: ``conv2d_add_relu``, without namespaces and without the digest at the end."""
    operators = short_name(kernel).rpartition("_")[0] or kernel
    return operators.replace("contrib_", "").replace("nn_", "")
