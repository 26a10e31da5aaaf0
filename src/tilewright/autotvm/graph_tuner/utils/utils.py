"""Properties of the nodes of a graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tilewright.autotvm.graph_tuner._base import OPT_OUT_OP
from tilewright.ir.module import IRModule
from tilewright.relay.analysis import free_vars
from tilewright.relay.expr import Constant, Tuple, TupleGetItem, Var, var
from tilewright.relay.expr_functor import bind
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module

Node = dict[str, Any]


def has_multiple_inputs(
    node_list: Sequence[Node], node_idx: int, input_names: Collection[str], opt_out_op: Sequence[Any]
) -> bool:
    """True if a node reads several results of others, also as fields of a tuple; parameters and constants do not
    count."""
    count = 0
    pending = [place for place, *_ in node_list[node_idx]["inputs"]]
    while pending:
        node = node_list[pending.pop()]
        if is_skipped_node(node):
            pending += [place for place, *_ in node["inputs"]]
        elif node["op"] is not None or node.get("name") in input_names:
            count += 1
    return count > 1


def is_boundary_node(node_entry: Node, input_names: Collection[str]) -> bool:
    """True for inputs of the graph, and for operators that need the original layout."""
    return node_entry["op"] in OPT_OUT_OP or node_entry.get("name") in input_names


def is_skipped_node(node_entry: Node) -> bool:
    """True for nodes that compute nothing: tuples, and elements of them."""
    return isinstance(node_entry["node"], (Tuple, TupleGetItem))


def bind_inputs(
    expr: Any,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    input_dtypes: str | Mapping[str, str] = "float32",
) -> Any:
    """The function with the shapes and types of its inputs known."""
    if input_shapes is None:
        return expr
    function = expr if isinstance(expr, Function) else Function(free_vars(expr), expr)
    given = {}
    for parameter in function.params:
        name = parameter.name_hint
        if name in input_shapes:
            dtype = input_dtypes if isinstance(input_dtypes, str) else input_dtypes.get(name, "float32")
            given[parameter] = var(name, shape=tuple(input_shapes[name]), dtype=dtype)
    body = bind(function.body, given)
    made = Function([given.get(parameter, parameter) for parameter in function.params], body)
    return infer_module(IRModule.from_expr(made))["main"]


def is_data(node: Any) -> bool:
    """True for nodes without operators: variables and constants."""
    return isinstance(node, (Var, Constant))
