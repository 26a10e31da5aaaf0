"""The GPU rows of the strategy table: kernels that are written for blocks of threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tilewright.ir import operators
from tilewright.ir.expr import IntImm
from tilewright.strategy.row import Row
from tilewright.target.target import Target
from tilewright.te.tensor import Tensor
from tilewright.topi import threads
from tilewright.topi.threads.scatter import has_atomic_add

Inputs = Sequence[Tensor]


def _fits_shared_memory(attrs: Any, inputs: Inputs, out_type: Any, target: Target) -> str | None:
    data = inputs[0]
    extent = data.shape[attrs.axis] if data.shape else None
    if not isinstance(extent, IntImm):
        return "the length of a row is not known"
    if not all(isinstance(one, IntImm) and one.value > 0 for one in data.shape):
        return "the number of rows is not known, or there is none"
    most = threads.longest_row(data.dtype)
    return (
        None
        if extent.value <= most
        else f"a row of {extent.value} is longer than shared memory holds ({most})"
    )


def _has_elements(attrs: Any, inputs: Inputs, out_type: Any, target: Target) -> str | None:
    empty = any(isinstance(one, IntImm) and one.value == 0 for one in inputs[0].shape)
    return "there is nothing to add" if empty else None


def _adds_in_one_step(attrs: Any, inputs: Inputs, out_type: Any, target: Target) -> str | None:
    if "cuda" not in target.keys:
        return "only NVIDIA's devices have atomic additions of every type"
    if not has_atomic_add(inputs[0].dtype):
        return f"there is no atomic addition of {inputs[0].dtype}"
    if getattr(attrs, "mode", "add") != "add":
        return f"where indices meet, {attrs.mode} depends on their order"
    sizes = [one for tensor in inputs for one in tensor.shape]
    if any(isinstance(one, IntImm) and one.value == 0 for one in sizes):
        return "there is nothing to add"
    return None


def _topk(attrs: Any, inputs: Inputs, out_type: Any) -> list[Tensor]:
    return threads.topk(inputs[0], attrs.k, attrs.axis, attrs.ret_type, attrs.is_ascend, attrs.dtype)


def _scan(name: str, combine: Any, identity: int) -> Any:
    def compute(attrs: Any, inputs: Inputs, out_type: Any) -> list[Tensor]:
        return [
            threads.scan_rows(inputs[0], combine, identity, name, attrs.axis, attrs.dtype, attrs.exclusive)
        ]

    return compute


_IN_SHARED_MEMORY: Final = "a block sorts a row in shared memory"
_BY_BLOCKS: Final = "a block computes a row"
_ATOMIC: Final = "every update has a thread"

ROWS: Final = [
    Row(
        "sort",
        "gpu",
        "sort.threads",
        lambda attrs, inputs, out_type: [threads.sort(inputs[0], attrs.axis, attrs.is_ascend)],
        "topi.threads.sort",
        _fits_shared_memory,
        _IN_SHARED_MEMORY,
    ),
    Row(
        "argsort",
        "gpu",
        "argsort.threads",
        lambda attrs, inputs, out_type: [
            threads.argsort(inputs[0], attrs.axis, attrs.is_ascend, attrs.dtype)
        ],
        "topi.threads.argsort",
        _fits_shared_memory,
        _IN_SHARED_MEMORY,
    ),
    Row("topk", "gpu", "topk.threads", _topk, "topi.threads.topk", _fits_shared_memory, _IN_SHARED_MEMORY),
    Row(
        "cumsum",
        "gpu",
        "cumsum.threads",
        _scan("cumsum", operators.add, 0),
        "topi.threads.scan_rows",
        _has_elements,
        _BY_BLOCKS,
    ),
    Row(
        "cumprod",
        "gpu",
        "cumprod.threads",
        _scan("cumprod", operators.multiply, 1),
        "topi.threads.scan_rows",
        _has_elements,
        _BY_BLOCKS,
    ),
    Row(
        "scatter_add",
        "gpu",
        "scatter_add.threads",
        lambda attrs, inputs, out_type: [
            threads.scatter_add_elements(inputs[0], inputs[1], inputs[2], attrs.axis)
        ],
        "topi.threads.scatter_add_elements",
        _adds_in_one_step,
        _ATOMIC,
    ),
    Row(
        "scatter_nd",
        "gpu",
        "scatter_nd.threads",
        lambda attrs, inputs, out_type: [threads.scatter_nd_add(inputs[0], inputs[1], inputs[2])],
        "topi.threads.scatter_nd_add",
        _adds_in_one_step,
        _ATOMIC,
    ),
]
"""The rows for devices with blocks of threads."""
