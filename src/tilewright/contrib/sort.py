"""Sorting by the runtime rather than by compiled loops. ``topi.sort``, ``topi.argsort`` and ``topi.topk`` are compiled,
and are what models use; these serve code that calls the runtime's functions by name."""

from __future__ import annotations

from typing import Any

from tilewright.support.errors import ExpressionError
from tilewright.te.extern import extern
from tilewright.te.tensor import Tensor
from tilewright.tir.op import call_packed


def argsort(
    data: Tensor,
    valid_count: Tensor | None = None,
    axis: int = -1,
    is_ascend: bool = True,
    dtype: str = "int32",
) -> Tensor:
    """The positions of the values in order along an axis; equal values keep their order. With ``valid_count``, one
    number a row, only that many values at the beginning of each row are sorted."""
    name = "argsort" if valid_count is None else "argsort_nms"
    inputs = [data] if valid_count is None else [data, valid_count]
    made: Tensor = extern(
        [data.shape],
        inputs,
        lambda ins, outs: call_packed(f"tvm.contrib.sort.{name}", *ins, outs[0], axis, bool(is_ascend)),
        dtype=dtype,
        name="argsort",
    )
    return made


def sort(data: Tensor, axis: int = -1, is_ascend: bool = True) -> Tensor:
    """The values in order along an axis."""
    made: Tensor = extern(
        [data.shape],
        [data],
        lambda ins, outs: call_packed("tvm.contrib.sort.sort", ins[0], outs[0], axis, bool(is_ascend)),
        name="sort",
    )
    return made


def topk(
    data: Tensor,
    k: int = 1,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: str = "int64",
) -> Any:
    """The first ``k`` values in order along an axis, their positions, or both as a list. A ``k`` below 1 means all."""
    kinds: dict[str, list[str]] = {
        "both": [str(data.dtype), dtype],
        "values": [str(data.dtype)],
        "indices": [dtype],
    }
    types = kinds.get(ret_type)
    if types is None:
        raise ExpressionError(f"topk gives both, values or indices, not {ret_type!r}")
    shape: list[Any] = list(data.shape)
    if k >= 1:
        shape[axis] = k
    return extern(
        [tuple(shape)] * len(types),
        [data],
        lambda ins, outs: call_packed(
            "tvm.contrib.sort.topk", ins[0], *outs, k, axis, ret_type, bool(is_ascend)
        ),
        dtype=types,
        name="topk",
    )
