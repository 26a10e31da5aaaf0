"""Element types: PyTorch's names and numbers of them, and how types combine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from tilewright.support.errors import ModelError

SCALAR_TYPES: Final = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "float16",
    6: "float32",
    7: "float64",
    11: "bool",
    12: "int8",
    13: "uint8",
    14: "int32",
    15: "bfloat16",
    27: "uint16",
    28: "uint32",
    29: "uint64",
}
"""``c10::ScalarType``, by which TorchScript writes element types; quantised ones by what they are stored as."""

_NAMES: Final = frozenset(SCALAR_TYPES.values())
_QUANTIZED: Final = {"qint8": "int8", "quint8": "uint8", "qint32": "int32"}
_FLOATS: Final = ("float16", "bfloat16", "float32", "float64")


def dtype_name(given: Any) -> str:
    """The name of an element type that is a ``torch.dtype``, a number of ``c10::ScalarType`` or a name already."""
    if isinstance(given, int):
        found = SCALAR_TYPES.get(given)
        if found is None:
            raise ModelError(
                f"the element type with the number {given} is not supported{_advice(given in (8, 9, 10))}"
            )
        return found
    name = str(given).removeprefix("torch.")
    name = _QUANTIZED.get(name, name)
    if name not in _NAMES:
        raise ModelError(
            f"tensors of element type {name} are not supported{_advice(name.startswith('complex'))}"
        )
    return name


def _advice(is_complex: bool) -> str:
    if not is_complex:
        return ""
    return ": write the model on real and imaginary parts (torch.view_as_real), each of which is a tensor of floats"


def is_floating(dtype: str) -> bool:
    """True for types of floating-point numbers."""
    return dtype in _FLOATS


def category(dtype: str) -> int:
    """0 for bool, 1 for integers, 2 for floating-point numbers."""
    return 2 if dtype in _FLOATS else 0 if dtype == "bool" else 1


def common_dtype(one: str, other: str) -> str:
    """The smallest type that both types convert to, as ``torch.promote_types`` has it."""
    if one == other:
        return one
    if category(one) != category(other):
        return max((one, other), key=category)
    if category(one) == 2:
        # Neither half-precision type contains the other.
        wider = max((one, other), key=_width)
        return "float32" if _width(one) == _width(other) else wider
    return str(np.promote_types(one, other))


def _width(dtype: str) -> int:
    return int("".join(filter(str.isdigit, dtype)))


def _common(dtypes: Iterable[str]) -> str | None:
    found: str | None = None
    for dtype in dtypes:
        found = dtype if found is None else common_dtype(found, dtype)
    return found


def _over(higher: str | None, lower: str | None) -> str | None:
    """The type where operands of two ranks of importance meet: the lesser decides only if its category is greater."""
    if higher is None or lower is None:
        return higher if lower is None else lower
    return higher if category(higher) >= category(lower) else common_dtype(higher, lower)


def result_dtype(tensors: Iterable[str], scalars: Iterable[str], numbers: Iterable[str]) -> str:
    """What ``torch.result_type`` says for tensors with dimensions, tensors without, and Python's numbers."""
    found = _over(_common(tensors), _over(_common(scalars), _common(numbers)))
    if found is None:
        raise ModelError("an operator without operands has no element type")
    return found
