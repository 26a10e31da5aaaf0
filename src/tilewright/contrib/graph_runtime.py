"""The name that ``graph_executor`` had before TVM 0.8."""

from tilewright.contrib.graph_executor import GraphModule, create, get_device

__all__ = ["GraphModule", "create", "get_device"]
