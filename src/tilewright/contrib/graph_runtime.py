"""The name of ``graph_executor`` before TVM 0.8."""

from tilewright.contrib.graph_executor import GraphModule, create, get_device

__all__ = ["GraphModule", "create", "get_device"]
