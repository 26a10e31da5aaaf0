"""MLIR's types, attributes, literals and locations as Python values."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from tilewright.support.errors import ModelError

_DTYPES: Final = {
    "i1": "bool",
    "bf16": "bfloat16",
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}
_DYNAMIC: Final = -(1 << 63)


def dtype_of(kind: Any) -> str:
    """The element type of a tensor type."""
    name = str(kind.element_type)
    found = _DTYPES.get(name)
    if found is None:
        if name.startswith("complex"):
            raise ModelError("the program computes with complex numbers, which are not supported")
        raise ModelError(f"the program has tensors of the element type {name}, which is not supported")
    return found


def shape_of(kind: Any) -> tuple[int, ...]:
    """The shape of a tensor type, which has to be known."""
    shape = tuple(int(extent) for extent in kind.shape)
    if any(extent == _DYNAMIC for extent in shape):
        raise ModelError("the program has dimensions that are not known: fix them with shape=")
    return shape


def plain(attribute: Any) -> Any:
    """An attribute as a number, text, list or array; those that only StableHLO knows stay as they are."""
    kind = type(attribute).__name__
    if kind in ("IntegerAttr", "BoolAttr", "FloatAttr", "StringAttr", "FlatSymbolRefAttr"):
        return attribute.value
    if kind in ("DenseI64ArrayAttr", "DenseBoolArrayAttr"):
        return list(attribute)
    if kind == "DictAttr":
        return {one.name: plain(one.attr) for one in attribute}
    if kind.startswith("Dense") and kind.endswith("ElementsAttr"):
        return literal(attribute)
    return attribute


def named_attributes(operation: Any) -> dict[str, Any]:
    """The attributes of an operation by name."""
    table = operation.attributes
    return {name: plain(table[name]) for name in (getattr(one, "name", one) for one in table)}


def literal(attribute: Any) -> np.ndarray[Any, Any]:
    """The value of a dense literal."""
    if str(attribute.type.element_type) != "bf16":
        return np.array(attribute)
    import ml_dtypes  # JAX depends on it

    # The bindings have no view of bfloat16; what they print is exact.
    text = str(attribute)
    shape = shape_of(attribute.type)
    inside = text[text.index("<") + 1 : text.rindex("> :")]
    if inside.startswith('"0x'):
        flat = np.frombuffer(bytes.fromhex(inside[3:-1]), "<u2").view(ml_dtypes.bfloat16)
    else:
        flat = np.asarray([_bfloat16(word) for word in re.findall(r"[-+\w.]+", inside)], ml_dtypes.bfloat16)
    return np.broadcast_to(flat.reshape(()), shape) if flat.size == 1 else flat.reshape(shape)


def _bfloat16(word: str) -> float:
    """A printed number; infinities and NaNs are printed as their bits."""
    if not word.startswith("0x"):
        return float(word)
    return float(np.asarray([int(word, 16) << 16], "<u4").view("<f4")[0])


def name_of(location: Any) -> str:
    """The name that a location has, empty if it has none: ``params['dense']['kernel']`` is params.dense.kernel."""
    text = str(getattr(location, "name_str", ""))
    return re.sub(r"\[(['\"]?)(.*?)\1\]", r".\2", text).strip(".")


def place_of(location: Any) -> str:
    """Where in the program an operation comes from, as JAX says it."""
    found = re.findall(r'"([^"]+)"', str(location))
    file = re.search(r'"([^"]+)":(\d+):', str(location))
    name = found[0] if found else ""
    return f"{name} at {file[1]}:{file[2]}" if file and name else name
