"""Explicit allocation, for the programs of the virtual machine."""

from tilewright.relay.op.memory import memory
from tilewright.relay.op.memory.memory import (
    alloc_storage,
    alloc_tensor,
    flatten_tuple_type,
    from_tuple_type,
    to_tuple_type,
)
