"""Graphs of operators as lists of nodes, and which node's result reaches which."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tilewright.autotvm.graph_tuner._base import OPT_OUT_OP
from tilewright.autotvm.graph_tuner.utils.utils import (
    Node,
    has_multiple_inputs,
    is_boundary_node,
    is_skipped_node,
)
from tilewright.autotvm.task.constructed.description import described
from tilewright.autotvm.task.constructed.kinds import workloads_of
from tilewright.ir.functor import post_order
from tilewright.ir.type import TupleType
from tilewright.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tilewright.relay.function import Function
from tilewright.support.errors import TilewrightError
from tilewright.target.target import Target


def expr2graph(
    expr: Any,
    target_ops: Sequence[Any],
    node_dict: dict[Any, int],
    node_list: list[Node],
    tvm_target: Any,
) -> None:
    """Add a node for each variable, constant, tuple and call of a function to the list, arguments first. Calls of
    ``target_ops`` know the workloads that they are."""
    target = tvm_target if isinstance(tvm_target, Target) else Target(tvm_target)
    parameters: Sequence[Any] = expr.params if isinstance(expr, Function) else ()
    body = expr.body if isinstance(expr, Function) else expr
    for part in [*parameters, *post_order(body)]:
        if part in node_dict or not isinstance(part, (Var, Constant, Call, Tuple, TupleGetItem)):
            continue
        node_dict[part] = len(node_list)
        node_list.append(_entry(part, target_ops, node_dict, target))


def _entry(part: Any, target_ops: Sequence[Any], node_dict: Mapping[Any, int], target: Target) -> Node:
    number = node_dict[part]
    entry: Node = {"node": part, "inputs": [], "types": _types(part), "op": None, "name": None}
    if isinstance(part, Call):
        if not hasattr(part.op, "name"):
            raise TilewrightError("the graph tuner takes graphs of operators, before functions are fused")
        entry["op"] = part.op
        entry["name"] = f"{part.op.name}_{number}"
        entry["inputs"] = [_place(argument, node_dict) for argument in part.args]
        if part.op in target_ops:
            types = [argument.checked_type for argument in part.args]
            call = described(part.op.name, part.attrs, types)
            entry["workloads"] = [] if call is None else workloads_of(call, target)
            entry["description"] = call
    elif isinstance(part, Var):
        entry["name"] = part.name_hint
    elif isinstance(part, Constant):
        entry["name"] = f"Constant_{number}"
    elif isinstance(part, Tuple):
        entry["name"] = f"tuple_{number}"
        entry["inputs"] = [_place(each, node_dict) for each in part.fields]
    elif isinstance(part, TupleGetItem):
        entry["name"] = f"element_{number}"
        entry["inputs"] = [_place(part.tuple_value, node_dict)]
    return entry


def _types(part: Any) -> list[Any]:
    found = part.checked_type
    return list(found.fields) if isinstance(found, TupleType) else [found]


def _place(part: Any, node_dict: Mapping[Any, int]) -> list[int]:
    """A node's number, which of its results is read, and a version, which is always the first."""
    return [node_dict[part], part.index if isinstance(part, TupleGetItem) else 0, 0]


def get_direct_ancestor(
    node_list: Sequence[Node],
    visited_dict: dict[int, list[int]],
    target_ops: Sequence[Any],
    node_idx: int,
    input_names: Collection[str],
) -> list[int]:
    """The nearest nodes above one that have layouts of their own: target operators, nodes with several inputs, and
    boundaries. ``visited_dict`` has, and gets, the answers."""
    pending = [node_idx]
    while pending:
        place = pending[-1]
        node = node_list[place]
        if place in visited_dict or is_boundary_node(node, input_names):
            visited_dict.setdefault(place, [place])
            pending.pop()
            continue
        waiting = []
        found: list[int] = []
        for above, *_ in node["inputs"]:
            other = node_list[above]
            if (
                other["op"] in target_ops
                or has_multiple_inputs(node_list, above, input_names, OPT_OUT_OP)
                or is_boundary_node(other, input_names)
            ):
                found.append(above)
            elif above in visited_dict:
                found += visited_dict[above]
            else:
                waiting.append(above)
        if waiting:
            pending += waiting
        else:
            visited_dict[place] = list(dict.fromkeys(found))
            pending.pop()
    return visited_dict[node_idx]


def get_in_nodes(
    node_list: Sequence[Node], target_ops: Sequence[Any], input_names: Collection[str]
) -> dict[int, list[int]]:
    """For each target operator, and each node with several inputs, the nearest nodes above it. Nodes that no target
    operator is above or below are left out."""
    visited: dict[int, list[int]] = {}
    found: dict[int, list[int]] = {}
    for place, node in enumerate(node_list):
        if is_boundary_node(node, input_names) or is_skipped_node(node):
            continue
        above = get_direct_ancestor(node_list, visited, target_ops, place, input_names)
        several = has_multiple_inputs(node_list, place, input_names, OPT_OUT_OP)
        if node["op"] in target_ops or several:
            found[place] = above
    return _connected(node_list, found, target_ops)


def _connected(
    node_list: Sequence[Node], in_node_dict: dict[int, list[int]], target_ops: Sequence[Any]
) -> dict[int, list[int]]:
    """Only the nodes that a target operator's result reaches."""
    reached = {place for place in in_node_dict if node_list[place]["op"] in target_ops}
    changed = True
    while changed:
        more = {place for place, above in in_node_dict.items() if reached & set(above)} - reached
        reached |= more
        changed = bool(more)
    return {place: above for place, above in in_node_dict.items() if place in reached}


def get_out_nodes(in_node_dict: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    """The inverse: for each node those that its result reaches."""
    found: dict[int, list[int]] = {place: [] for place in in_node_dict}
    for place, above in in_node_dict.items():
        for one in above:
            found.setdefault(one, []).append(place)
    return {place: sorted(below) for place, below in sorted(found.items())}


def _replace_device_with_tracing(target: str) -> str:
    """The text of a target with another device, as TVM marks targets that are only traced."""
    if "-device" not in target:
        return f"{target} -device=tracing"
    return re.sub(r"-device=[^-]+", "-device=tracing ", target).strip()
