"""Rows for libraries that a target names: ``llvm -libs=cblas`` has OpenBLAS compute products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tilewright.contrib import cblas
from tilewright.strategy.row import Row
from tilewright.target.target import Target
from tilewright.te import Tensor

Inputs = Sequence[Any]


def _refused(attrs: Any, inputs: Inputs, out_type: Any, target: Target) -> str | None:
    dtypes = {str(one.dtype) for one in (*inputs[:2], out_type)}
    if dtypes not in ({"float32"}, {"float64"}):
        return f"OpenBLAS has no product of {', '.join(sorted(dtypes))}"
    return None


def _dense(attrs: Any, inputs: Inputs, out_type: Any) -> list[Tensor]:
    return [cblas.matmul(inputs[0], inputs[1], transb=True)]


def _dense_refused(attrs: Any, inputs: Inputs, out_type: Any, target: Target) -> str | None:
    if len(inputs[0].shape) != 2:
        return "the data is not a matrix"
    return _refused(attrs, inputs, out_type, target)


def _batch_matmul(attrs: Any, inputs: Inputs, out_type: Any) -> list[Tensor]:
    return [cblas.batch_matmul(inputs[0], inputs[1], bool(attrs.transpose_a), bool(attrs.transpose_b))]


ROWS: Final = (
    Row(
        "nn.dense",
        "cblas",
        "dense.cblas",
        _dense,
        "contrib.cblas.matmul",
        _dense_refused,
        "the target's -libs names it",
        plevel=20,
    ),
    Row(
        "nn.batch_matmul",
        "cblas",
        "batch_matmul.cblas",
        _batch_matmul,
        "contrib.cblas.batch_matmul",
        _refused,
        "the target's -libs names it",
        plevel=20,
    ),
)
