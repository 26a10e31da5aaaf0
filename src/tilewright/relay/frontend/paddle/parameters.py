"""The values of a program's parameters: a ``.pdiparams`` file, a scope, or a dictionary."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from math import prod
from typing import Any, Final

import numpy as np

from tilewright.relay.frontend.paddle.program import DTYPES, SCHEMA, Program
from tilewright.support.errors import ModelError

Array = np.ndarray[Any, Any]
_WIDE: Final = {"bfloat16": "uint16"}
"""What numpy reads element types as that it does not have."""


def read_parameters(content: bytes, program: Program) -> dict[str, Array]:
    """The parameters in a file: tensors without names, one after the other in the order of their names."""
    reader = _Reader(content)
    values = {name: reader.tensor(name) for name in program.parameters}
    if reader.at != len(content):
        raise ModelError(
            f"the parameters do not fit the program: {len(content) - reader.at} bytes are left after "
            f"{len(values)} tensors"
        )
    for name, value in values.items():
        declared = program.tensors[name].shape
        if len(declared) == value.ndim and all(
            size in (None, have) for size, have in zip(declared, value.shape, strict=True)
        ):
            continue
        raise ModelError(
            f"the parameter {name!r} has the shape {value.shape}, and the program says {declared}: the files do not "
            "belong together"
        )
    return values


class _Reader:
    """Reads tensors as PaddlePaddle writes them."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def _take(self, count: int, name: str) -> bytes:
        if count < 0 or self.at + count > len(self.content):
            raise ModelError(f"the parameters are damaged: the file ends within {name!r}")
        self.at += count
        return self.content[self.at - count : self.at]

    def _number(self, form: str, name: str) -> int:
        return int(struct.unpack(form, self._take(struct.calcsize(form), name))[0])

    def tensor(self, name: str) -> Array:
        """The next tensor."""
        if self._number("<I", name) != 0:
            raise ModelError(f"the parameters are damaged: {name!r} has a version that is not known")
        for _ in range(self._number("<Q", name)):
            self._take(self._number("<Q", name), name)
        if self._number("<I", name) != 0:
            raise ModelError(f"the parameters are damaged: {name!r} has a version that is not known")
        described = SCHEMA.read("TensorDesc", self._take(self._number("<i", name), name))
        dtype = DTYPES.get(described.data_type)
        if dtype is None:
            raise ModelError(f"the parameter {name!r} has elements of the type {described.data_type}")
        if any(size < 0 for size in described.dims):
            raise ModelError(f"the parameters are damaged: {name!r} has the shape {described.dims}")
        kind = np.dtype(_WIDE.get(dtype, dtype))
        held = np.frombuffer(self._take(prod(described.dims) * kind.itemsize, name), kind)
        if dtype == "bfloat16":
            held = (held.astype("uint32") << 16).view("float32")
        return held.reshape(described.dims)


def scope_values(scope: Any, program: Program) -> dict[str, Array]:
    """The parameters of a program in a scope of PaddlePaddle, or in a dictionary of arrays."""
    if isinstance(scope, Mapping):
        return {name: _array(scope[name]) for name in program.parameters if name in scope}
    found = {name: scope.find_var(name) for name in program.parameters}
    return {name: _array(one.get_tensor()) for name, one in found.items() if one is not None}


def _array(value: Any) -> Array:
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)
