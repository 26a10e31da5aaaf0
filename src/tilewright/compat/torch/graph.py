"""Parameters in a TorchScript graph: chains of attribute reads, and the weights at their ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Var
from tilewright.runtime import ndarray

_GET = "prim::GetAttr"


def get_use_chains(root_node: Any, terminate: Callable[[Any], bool] = lambda _: False) -> Iterator[list[Any]]:
    """The paths from a node to those that use its results, on and on, until nothing does or ``terminate`` says so of
    the node's users."""
    users = [use.user for output in root_node.outputs() for use in output.uses()]
    if not users or terminate(users):
        yield [root_node]
        return
    for user in users:
        for rest in get_use_chains(user, terminate):
            yield [root_node, *rest]


def get_attr_chains(root_getattr_node: Any) -> Iterator[list[Any]]:
    """The paths of attribute reads from one on: ``conv``, ``weight``."""
    return get_use_chains(root_getattr_node, lambda users: all(user.kind() != _GET for user in users))


def convert_params(
    graph: Any, state_dict: Mapping[str, Any], use_parser_friendly_name: bool = False
) -> tuple[dict[str, Var], dict[str, Any], dict[str, Any]]:
    """The parameters that a graph reads: variables by the names of the graph's values, arrays by those of parameters,
    and packed parameters, of which there are none here."""
    variables: dict[str, Var] = {}
    arrays: dict[str, Any] = {}
    by_name: dict[str, Var] = {}
    for node in graph.nodes():
        if node.kind() != _GET or next(node.inputs()).node().kind() == _GET:
            continue
        for chain in get_attr_chains(node):
            full = ".".join(one.s("name") for one in chain)
            if full not in state_dict:
                continue
            name = full.replace(".", "_") if use_parser_friendly_name else full
            if name not in by_name:
                value = ndarray.array(state_dict[full].detach().cpu().numpy())
                arrays[name] = value
                by_name[name] = Var(name, TensorType(value.shape, value.dtype))
            variables[chain[-1].output().debugName()] = by_name[name]
    return variables, arrays, {}
