"""Buffers under their public names; they are defined in ``tilewright.ir.buffer``."""

from tilewright.ir.buffer import Buffer, BufferRegion, decl_buffer
from tilewright.ir.expr import DataProducer

__all__ = ["Buffer", "BufferRegion", "DataProducer", "decl_buffer"]
