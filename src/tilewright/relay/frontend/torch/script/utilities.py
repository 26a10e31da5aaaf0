"""Small functions that programs written for TVM use beside ``from_pytorch``."""

from __future__ import annotations

from typing import Any

from tilewright.relay.frontend.torch.package import torch_package


def is_version_greater_than(version: str) -> bool:
    """True if PyTorch is newer than a version."""
    return _numbers(str(torch_package().__version__)) > _numbers(version)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.partition("+")[0].split(".") if part.isdigit())


def get_all_op_names(graph: Any) -> set[str]:
    """The names of all operators of a graph, those in blocks included."""
    found: set[str] = set()
    pending = [graph]
    while pending:
        block = pending.pop()
        for node in block.nodes():
            found.add(str(node.kind()))
            pending += node.blocks()
    return found
