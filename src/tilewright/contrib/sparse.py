"""Matrices in compressed rows (CSR): arrays of values, and placeholders for computations over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.runtime.device import Device, cpu
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.ndarray import array as dense_array
from tilewright.support.errors import ExpressionError
from tilewright.te.operation import placeholder as dense_placeholder
from tilewright.te.tensor import Tensor


class CSRNDArray:
    """A matrix in compressed rows: ``data`` has the values, ``indices`` the column of each, and row ``r`` is from
    ``indptr[r]`` to ``indptr[r + 1]``."""

    stype = "csr"

    def __init__(self, arg1: Any, device: Device | None = None, shape: Sequence[int] | None = None) -> None:
        where = cpu(0) if device is None else device
        if isinstance(arg1, tuple):
            if len(arg1) != 3 or shape is None:
                raise ExpressionError(
                    "a sparse array is made from a matrix, or from (data, indices, indptr) and a shape"
                )
            self.data, self.indices, self.indptr = (_on(part, where) for part in arg1)
            self.shape = tuple(int(extent) for extent in shape)
        else:
            dense = arg1.numpy() if isinstance(arg1, NDArray) else np.asarray(arg1)
            if dense.ndim != 2:
                raise ExpressionError(f"a sparse array has two dimensions, not {dense.ndim}")
            rows, columns = np.nonzero(dense)
            ends = np.concatenate([[0], np.cumsum(np.count_nonzero(dense, axis=1))])
            self.data = dense_array(dense[rows, columns], where)
            self.indices = dense_array(columns.astype("int32"), where)
            self.indptr = dense_array(ends.astype("int32"), where)
            self.shape = dense.shape
        self.dtype = self.data.dtype
        self.device = where

    def numpy(self) -> np.ndarray[Any, Any]:
        """The matrix with its zeros."""
        full = np.zeros(self.shape, dtype=self.dtype)
        counts = np.diff(self.indptr.numpy())
        full[np.repeat(np.arange(self.shape[0]), counts), self.indices.numpy()] = self.data.numpy()
        return full

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """The old name of ``numpy``."""
        return self.numpy()


def _on(part: Any, device: Device) -> NDArray:
    return part if isinstance(part, NDArray) else dense_array(np.asarray(part), device)


def array(
    source_array: Any,
    device: Device | None = None,
    shape: Sequence[int] | None = None,
    stype: str = "csr",
) -> CSRNDArray:
    """A sparse array from a matrix, or from ``(data, indices, indptr)`` and a shape."""
    _check_kind(stype)
    return CSRNDArray(source_array, device, shape)


class CSRPlaceholderOp:
    """A sparse input of a computation: placeholders for ``data``, ``indices`` and ``indptr``."""

    stype = "csr"

    def __init__(self, shape: Sequence[Any], nonzeros: Any, dtype: str, name: str) -> None:
        if len(shape) != 2:
            raise ExpressionError(f"a sparse placeholder has two dimensions, not {len(shape)}")
        self.shape = tuple(shape)
        self.dtype = dtype
        self.name = name
        self.data: Tensor = dense_placeholder((nonzeros,), dtype=dtype, name=f"{name}_data")
        self.indices: Tensor = dense_placeholder((nonzeros,), dtype="int32", name=f"{name}_indices")
        self.indptr: Tensor = dense_placeholder((shape[0] + 1,), dtype="int32", name=f"{name}_indptr")


def placeholder(
    shape: Sequence[Any],
    nonzeros: Any = None,
    dtype: str | None = None,
    name: str = "placeholder",
    stype: str | None = None,
) -> CSRPlaceholderOp:
    """A sparse input of a shape with so many values that are not zero; at least none, if that is not given."""
    _check_kind("csr" if stype is None else stype)
    return CSRPlaceholderOp(shape, 0 if nonzeros is None else nonzeros, dtype or "float32", name)


def _check_kind(stype: str) -> None:
    if stype != "csr":
        raise ExpressionError(f"sparse arrays are in compressed rows (csr), not {stype!r}")
