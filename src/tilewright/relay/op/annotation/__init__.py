"""Annotations: operators that return their argument, with a hint to the compiler."""

from tilewright.relay.op.annotation import annotation
from tilewright.relay.op.annotation.annotation import (
    bitpack_end,
    bitpack_start,
    cast_hint,
    checkpoint,
    compiler_begin,
    compiler_end,
    function_on_device,
    on_device,
    stop_fusion,
)
