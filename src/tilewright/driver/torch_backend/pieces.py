"""A graph with operators that cannot be compiled: those run in PyTorch, and the pieces between them are compiled."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

Runner = Callable[[list[Any]], list[Any]]
Build = Callable[[torch.fx.GraphModule, Mapping[str, torch.Tensor]], Runner]


class _All(OperatorSupportBase):  # type: ignore[misc]
    """Every call but those of some operators."""

    def __init__(self, refused: Collection[Any]) -> None:
        self.refused = refused

    def is_node_supported(self, submodules: Mapping[str, Any], node: torch.fx.Node) -> bool:
        """True if a node may be in a piece."""
        return node.op == "call_function" and node.target not in self.refused


class _Piece(torch.nn.Module):  # type: ignore[misc]
    """A compiled piece in the place of its graph."""

    def __init__(self, runner: Runner, is_single: bool) -> None:
        super().__init__()
        self.runner = runner
        self.is_single = is_single

    def forward(self, *arguments: Any) -> Any:
        """The results of the piece."""
        results = self.runner(list(arguments))
        return results[0] if self.is_single else results


def in_pieces(
    graph_module: torch.fx.GraphModule,
    refused: Collection[Any],
    weights: Mapping[str, torch.Tensor],
    build: Build,
) -> Runner:
    """A runner of a graph in which operators in ``refused`` are left to PyTorch; ``build`` compiles each piece."""
    partitioner = CapabilityBasedPartitioner(graph_module, _All(refused), allows_single_node_partition=True)
    fused = partitioner.fuse_partitions(partitioner.propose_partitions())
    for node in fused.graph.nodes:
        if node.op != "call_module":
            continue
        piece = fused.get_submodule(node.target)
        names = [one.name for one in piece.graph.nodes if one.op == "placeholder"]
        inside = {
            name: weights[given.name]
            for name, given in zip(names, node.args, strict=True)
            if given.name in weights
        }
        (returned,) = [one.args[0] for one in piece.graph.nodes if one.op == "output"]
        is_single = not isinstance(returned, (list, tuple))
        setattr(fused, node.target, _Piece(build(piece, inside), is_single))
    fused.recompile()
    forward = fused.forward
    return lambda arguments: list(forward(*arguments))
