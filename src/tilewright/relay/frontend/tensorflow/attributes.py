"""Attributes and constants of TensorFlow's nodes as Python and NumPy have them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tilewright.relay.frontend.tensorflow.package import tensorflow_package
from tilewright.support.errors import ModelError

_DTYPES: Final = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 9: "int64", 10: "bool", 14: "bfloat16",
    17: "uint16", 19: "float16", 22: "uint32", 23: "uint64",
}  # fmt: skip
_OTHERS: Final = {7: "string", 8: "complex64", 18: "complex128", 20: "resource", 21: "variant"}
_FIRST_REFERENCE: Final = 100
"""From here on types are those of references to tensors of the type below."""


def dtype_name(number: int) -> str:
    """The name of an element type."""
    plain = number - _FIRST_REFERENCE if number > _FIRST_REFERENCE else number
    return _DTYPES.get(plain) or _OTHERS.get(plain) or f"type {plain}"


def attribute_value(attribute: Any) -> Any:
    """A number, a text, a type's name, a shape, a function's name, or a list of these."""
    kind = attribute.WhichOneof("value")
    if kind is None:
        return None
    if kind == "list":
        return _list(attribute.list)
    return _single(kind, getattr(attribute, kind))


def _single(kind: str, value: Any) -> Any:
    if kind == "s":
        return value.decode("utf-8", "replace")
    if kind == "type":
        return dtype_name(value)
    if kind == "shape":
        return shape_of(value)
    if kind == "func":
        return str(value.name)
    return value


def _list(found: Any) -> list[Any]:
    for kind in ("s", "i", "f", "b", "type", "shape", "tensor", "func"):
        values = getattr(found, kind)
        if len(values):
            return [_single(kind, value) for value in values]
    return []


def shape_of(proto: Any) -> tuple[int | None, ...] | None:
    """A shape: None where it is not known at all, or for a dimension that is not."""
    if proto.unknown_rank:
        return None
    return tuple(None if extent.size < 0 else int(extent.size) for extent in proto.dim)


def array_of(proto: Any, name: str) -> np.ndarray[Any, Any]:
    """The value of a tensor."""
    dtype = dtype_name(proto.dtype)
    if dtype in _OTHERS.values():
        raise ModelError(
            f"the constant {name!r} is of the type {dtype}, which is not supported: strings and vocabularies have to "
            "be looked up, and images decoded, before the model runs (give the shape of the image for a file of one)"
        )
    made: np.ndarray[Any, Any] = tensorflow_package().make_ndarray(proto)
    return made
