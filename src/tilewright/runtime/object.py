"""The root of all objects, under the name that TVM has for it."""

from tilewright.support.node import Object

__all__ = ["Object"]
