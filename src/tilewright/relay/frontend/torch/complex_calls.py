"""Calls of operators with complex tensors: by converters of their own, or part by part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tilewright.relay.frontend.torch.complex_pair import COMPLEX_TYPES, ComplexPair, has_complex, paired
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.registry import find_complex_converter, find_converter, names_of

_BY_PARTS: Final = frozenset(
    f"aten::{name}"
    for name in (
        "view", "reshape", "_unsafe_view", "_reshape_alias", "view_copy", "flatten", "ravel", "unflatten", "squeeze",
        "squeeze_copy", "unsqueeze", "unsqueeze_copy", "expand", "expand_copy", "broadcast_to", "permute",
        "permute_copy", "transpose", "swapaxes", "swapdims", "transpose_copy", "t", "t_copy", "numpy_T", "T", "mT",
        "movedim", "moveaxis", "contiguous", "clone", "detach", "alias", "lift_fresh_copy", "lift_fresh", "slice",
        "slice_copy", "select", "select_copy", "narrow", "split_with_sizes", "split", "chunk", "tensor_split",
        "unbind", "hsplit", "vsplit", "dsplit", "unsafe_split", "unsafe_split_with_sizes", "index", "_unsafe_index",
        "index_select", "gather", "take_along_dim", "take", "masked_select", "repeat", "repeat_interleave", "tile",
        "flip", "fliplr", "flipud", "roll", "rot90", "as_strided", "diagonal", "diag_embed", "tril", "triu", "neg",
        "sum", "mean", "cumsum", "zeros_like", "resolve_conj", "resolve_neg", "positive",
        "reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d",
    )
)  # fmt: skip
"""Operators that move elements or add them up: the parts of their results are their results for the parts."""

_OF_SHAPE: Final = frozenset(f"aten::{name}" for name in ("sym_size", "size", "sym_numel", "numel", "dim"))
"""Operators whose result depends only on the shape."""


def converts_complex(name: str, overload: str) -> bool:
    """True if calls of an operator with complex tensors can be converted."""
    return name in _OF_SHAPE or _is_by_parts(name) or find_complex_converter(name, overload) is not None


def complex_call(
    node: TorchNode, schema: Any, arguments: Mapping[str, Any], defaults: Mapping[str, Any]
) -> Any:
    """The result of a call with complex tensors, numbers or types among its arguments."""
    name, overload = schema.name, schema.overload_name
    found = find_complex_converter(name, overload)
    if found is not None:
        return found(node, arguments, defaults)
    by_part = find_converter(name, overload)
    if by_part is not None and name in _OF_SHAPE:
        return by_part(node, {own: _part(value, 0) for own, value in arguments.items()}, defaults)
    if by_part is None or not _is_by_parts(name) or not _keeps_type(arguments):
        raise node.fail("complex numbers are not supported here: use their parts (torch.view_as_real)")
    real, imag = (
        by_part(node, {own: _part(value, place) for own, value in arguments.items()}, defaults)
        for place in range(2)
    )
    return paired(real, imag)


def _is_by_parts(name: str) -> bool:
    return any(one in _BY_PARTS for one in names_of(name))


def _keeps_type(arguments: Mapping[str, Any]) -> bool:
    """False for real tensors that become complex on the way, and the other way round."""
    dtype = arguments.get("dtype")
    return (dtype is None or dtype in COMPLEX_TYPES) and any(
        has_complex(value) for own, value in arguments.items() if own != "dtype"
    )


def _part(value: Any, place: int) -> Any:
    if isinstance(value, ComplexPair):
        return value.parts[place]
    if isinstance(value, str):
        return COMPLEX_TYPES.get(value, value)
    return [_part(item, place) for item in value] if isinstance(value, (list, tuple)) else value
