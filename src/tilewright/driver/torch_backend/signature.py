"""What goes into a graph and comes out of it, as its executors need to know it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Output:
    """A result of a graph: a tensor, a number that the graph computes, or a value that is known beforehand."""

    position: int | None
    """Its place among the results of the compiled module; None for a value that is known."""
    value: Any = None
    """The known value, or a fake tensor or symbolic number like the result."""

    @property
    def is_tensor(self) -> bool:
        """True if the result is a tensor."""
        return self.position is not None and isinstance(self.value, torch.Tensor)


@dataclass(frozen=True)
class Signature:
    """The inputs of a graph by name, in order, and its outputs."""

    inputs: tuple[str, ...]
    examples: tuple[Any, ...]
    outputs: tuple[Output, ...]

    @property
    def has_results(self) -> bool:
        """True if there is anything to compute."""
        return any(output.position is not None for output in self.outputs)

    @property
    def is_static(self) -> bool:
        """True if every size is a number."""
        values = [*self.examples, *(output.value for output in self.outputs)]
        return not any(
            isinstance(one, torch.SymInt | torch.SymFloat | torch.SymBool) for one in values
        ) and all(
            isinstance(size, int)
            for value in values
            if isinstance(value, torch.Tensor)
            for size in (*value.shape, *value.stride(), value.storage_offset())
        )


def signature_of(graph_module: torch.fx.GraphModule) -> Signature:
    """The signature of a graph whose nodes have their values in ``meta["val"]``."""
    placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    (returned,) = [node.args[0] for node in graph_module.graph.nodes if node.op == "output"]
    leaves: Sequence[Any] = returned if isinstance(returned, (list, tuple)) else [returned]
    outputs = []
    count = 0
    for leaf in leaves:
        if leaf is None:
            outputs.append(Output(None))
            continue
        is_node = isinstance(leaf, torch.fx.Node)
        value = leaf.meta.get("val") if is_node else leaf
        # Numbers that are written in the graph are results of the compiled module too; they are known all the same.
        if is_node and (value is None or isinstance(value, (bool, int, float, str))):
            is_node = False
        outputs.append(Output(count if is_node else None, value))
        count += value is not None
    return Signature(
        tuple(node.name for node in placeholders),
        tuple(node.meta.get("val") for node in placeholders),
        tuple(outputs),
    )
