"""The model as graphs to draw: operators before fusion, kernels after it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.driver.profile.kernels import NOTHING_TO_RUN, GraphTensors, short_name
from tilewright.driver.profile.layout import Layout, layered_layout
from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.op import Op
from tilewright.relay.analysis.work import span_name
from tilewright.relay.expr import Call, Tuple, TupleGetItem
from tilewright.relay.function import Function


@dataclass(frozen=True)
class DrawnNode:
    """A node: what it is called, what is said below, the model's name for it, the kernel that computes it, and what it
    is: ``operator``, ``kernel``, ``input`` or ``view``."""

    label: str
    detail: str
    model_nodes: tuple[str, ...]
    kernel: str | None
    kind: str
    step: int | None = None


@dataclass(frozen=True)
class DrawnGraph:
    """Nodes, edges between their numbers, and positions."""

    nodes: tuple[DrawnNode, ...]
    edges: tuple[tuple[int, int], ...]
    layout: Layout


def _drawn(nodes: list[DrawnNode], edges: dict[tuple[int, int], None]) -> DrawnGraph:
    return DrawnGraph(tuple(nodes), tuple(edges), layered_layout(len(nodes), list(edges)))


def operator_graph(main: Function, kernels: Mapping[str, list[Function]]) -> DrawnGraph:
    """The operators of a function, before they are fused; ``kernels`` has the fused functions, which say by name and
    place where an operator went. Parameters with a value are left out."""
    went_to = {
        (expr.op.name, span_name(expr)): kernel
        for kernel, functions in kernels.items()
        for function in functions
        for expr in post_order(function.body)
        if isinstance(expr, Call) and isinstance(expr.op, Op)
    }
    nodes: list[DrawnNode] = []
    edges: dict[tuple[int, int], None] = {}
    sources: dict[RelayExpr, list[int]] = {}
    for parameter in main.params:
        sources[parameter] = [len(nodes)]
        nodes.append(DrawnNode(parameter.name_hint, str(parameter.checked_type), (), None, "input"))
    for expr in post_order(main.body):
        if isinstance(expr, Tuple):
            sources[expr] = [node for field in expr.fields for node in sources.get(field, [])]
        elif isinstance(expr, TupleGetItem):
            sources[expr] = sources.get(expr.tuple_value, [])
        elif isinstance(expr, Call):
            name = expr.op.name if isinstance(expr.op, Op) else "function"
            place = span_name(expr)
            number = len(nodes)
            nodes.append(
                DrawnNode(
                    name,
                    str(expr.checked_type),
                    (place,) if place else (),
                    went_to.get((name, place)),
                    "operator",
                )
            )
            for argument in expr.args:
                for source in sources.get(argument, []):
                    edges[source, number] = None
            sources[expr] = [number]
    return _drawn(nodes, edges)


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
