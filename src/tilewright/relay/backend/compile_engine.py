"""The name that ``te_compiler`` had before TVM 0.8."""

from tilewright.relay.backend.te_compiler import (
    CachedFunc,
    CCacheKey,
    CCacheValue,
    LoweredOutput,
    get,
    get_shape,
    get_valid_implementations,
    lower_call,
    select_implementation,
)
from tilewright.relay.backend.te_compiler import TECompiler as CompileEngine

__all__ = [
    "CCacheKey",
    "CCacheValue",
    "CachedFunc",
    "CompileEngine",
    "LoweredOutput",
    "get",
    "get_shape",
    "get_valid_implementations",
    "lower_call",
    "select_implementation",
]
