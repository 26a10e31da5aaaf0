"""Data types and devices, under the name of the module that TVM has them in."""

from tilewright.runtime.device import Device
from tilewright.support.dtype import DataType

__all__ = ["DataType", "Device"]
