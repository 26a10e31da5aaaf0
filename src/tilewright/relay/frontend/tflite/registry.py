"""Converters of TFLite's own: of operators that include activations, or that treat quantised tensors themselves.

They are called with the node and the expressions of its inputs, None for one that is left out. Every other operator is
converted as TensorFlow's: on integers where it only moves elements, on the numbers they stand for elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from tilewright.relay.frontend.tensorflow import registry as shared

Converter = Callable[..., Any]
AnyConverter = TypeVar("AnyConverter", bound=Converter)

_OWN: Final[dict[str, Converter]] = {}

MOVING: Final = frozenset(
    {
        "RESHAPE", "TRANSPOSE", "SQUEEZE", "EXPAND_DIMS", "SLICE", "STRIDED_SLICE", "SPLIT", "SPLIT_V", "GATHER",
        "GATHER_ND", "PACK", "UNPACK", "TILE", "REVERSE_V2", "REVERSE_SEQUENCE", "SPACE_TO_DEPTH", "DEPTH_TO_SPACE",
        "BATCH_TO_SPACE_ND", "MIRROR_PAD", "RESIZE_NEAREST_NEIGHBOR", "BROADCAST_TO", "SELECT", "SELECT_V2",
        "MAX_POOL_2D", "MAXIMUM", "MINIMUM", "REDUCE_MAX", "REDUCE_MIN", "ARG_MAX", "ARG_MIN", "TOPK_V2", "SHAPE",
        "RANK", "EMBEDDING_LOOKUP", "DYNAMIC_UPDATE_SLICE", "MATRIX_DIAG", "MATRIX_SET_DIAG", "IF", "WHILE",
    }
)  # fmt: skip
"""Operators that only move or compare elements: integers serve as well as the numbers they stand for, as long as all of
them have one scale."""


def lite_converter(*names: str) -> Callable[[AnyConverter], AnyConverter]:
    """Register a converter that treats quantised tensors itself."""

    def register(function: AnyConverter) -> AnyConverter:
        for name in names:
            if name in _OWN:
                raise ValueError(f"there are two converters of {name}")
            _OWN[name] = function
        return function

    return register


def find_own(name: str) -> Converter | None:
    """The converter of an operator that treats quantised tensors itself."""
    return _OWN.get(name)


def find_shared(name: str) -> Converter | None:
    """The converter that TensorFlow's frontend has for an operator."""
    return shared.find_converter(name) if name.isupper() or name.endswith("_V2") else None


def converted_names() -> list[str]:
    """The operators that can be converted."""
    return sorted({*_OWN, *(name for name in shared.converted_names() if find_shared(name))})
