"""The root of all nodes, under the name that TVM has for it."""

from tilewright.support.node import Node as Object

__all__ = ["Object"]
