"""What the arguments of a function are: enough to allocate some and run it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from tilewright.ir.expr import IntImm
from tilewright.support.dtype import DataType
from tilewright.support.errors import TilewrightError
from tilewright.support.node import Object
from tilewright.tir.function import PrimFunc


class ArgInfo(Object, ABC):
    """One argument of a function."""

    @abstractmethod
    def as_json(self) -> Any:
        """The argument as JSON: a list that starts with its kind."""

    @staticmethod
    def from_json(json_obj: Any) -> ArgInfo:
        """What ``as_json`` wrote."""
        if not isinstance(json_obj, (list, tuple)) or not json_obj or str(json_obj[0]) != TensorInfo.KIND:
            raise TilewrightError(
                f'an argument is written as ["TENSOR", dtype, shape], and this is {json_obj!r}'
            )
        return TensorInfo.from_json(json_obj)

    @staticmethod
    def from_prim_func(func: PrimFunc) -> list[ArgInfo]:
        """The arguments of a function; each has to be a buffer of known size."""
        found: list[ArgInfo] = []
        for param in func.params:
            buffer = func.buffer_map.get(param)
            if buffer is None:
                raise TilewrightError(f"parameter {param.name} is not a buffer: only buffers are described")
            shape = [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]
            if len(shape) != len(buffer.shape):
                raise TilewrightError(f"buffer {buffer.name} has sizes that are not known: {buffer.shape}")
            found.append(TensorInfo(buffer.dtype, shape))
        return found


class TensorInfo(ArgInfo):
    """A tensor: its element type and its shape."""

    KIND = "TENSOR"

    def __init__(self, dtype: str | DataType, shape: Sequence[int]) -> None:
        self.dtype = str(DataType(dtype))
        self.shape = [int(extent) for extent in shape]

    def as_json(self) -> list[Any]:
        return [self.KIND, self.dtype, list(self.shape)]

    @staticmethod
    def from_json(json_obj: Any) -> TensorInfo:
        """What ``as_json`` wrote."""
        try:
            _, dtype, shape = json_obj
            return TensorInfo(str(dtype), [int(extent) for extent in shape])
        except (TypeError, ValueError) as problem:
            raise TilewrightError(
                f'a tensor is written as ["TENSOR", dtype, shape], and this is {json_obj!r}'
            ) from problem

    def __repr__(self) -> str:
        return f'TensorInfo("{self.dtype}", {self.shape})'
