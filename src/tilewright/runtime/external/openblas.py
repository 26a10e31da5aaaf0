"""OpenBLAS, as the wheel ``scipy-openblas32`` brings it: matrix products, as packed functions and as a runtime.

``tvm.contrib.cblas.matmul(a, b, c, transpose_a, transpose_b)`` and ``batch_matmul`` are what ``te.extern`` calls.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Callable, Sequence
from ctypes import c_double, c_float, c_int, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.runtime.external.json_graph import JSONNode
from tilewright.runtime.external.json_runtime import JSONRuntime, register_json_runtime
from tilewright.runtime.external.shared_library import load_library
from tilewright.runtime.failure import failure
from tilewright.runtime.ndarray import NDArray, empty
from tilewright.runtime.registry import register_func
from tilewright.runtime.threads import num_threads

_ROW_MAJOR, _PLAIN, _TRANSPOSED = 101, 111, 112
_PACKAGE = "scipy_openblas32"
_SCALARS = {"float32": ("s", c_float), "float64": ("d", c_double)}
Multiply = Callable[[str, int, int, int, tuple[int, int, int], tuple[bool, bool]], None]
"""A product of two matrices: the type, three addresses, the sizes, and which operand is stored transposed."""


def is_available() -> bool:
    """True if the wheel is installed."""
    return importlib.util.find_spec(_PACKAGE) is not None


@cache
def library() -> ctypes.CDLL:
    """The library; an error that says what to install where there is none."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise failure("OSError", "OpenBLAS was not found: pip install 'tilewright[openblas]' installs it")
    found = sorted(Path(spec.origin).parent.glob("lib/*scipy_openblas*"))
    files = [path for path in found if path.is_file() and path.suffix in (".so", ".dylib", ".dll")]
    if not files:
        raise failure(
            "OSError", f"the package {_PACKAGE} has no library in {Path(spec.origin).parent / 'lib'}"
        )
    # Its threads would spin for 2^26 cycles after a product, and take the cores from the code in between.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "10")
    made = load_library(files[0])
    made.scipy_openblas_set_num_threads(c_int(num_threads()))
    return made


def gemm(
    dtype: str, left: int, right: int, result: int, sizes: tuple[int, int, int], flags: tuple[bool, bool]
) -> None:
    """result = left @ right in row-major order. ``sizes`` are rows, columns and the length of the sum; ``flags`` say
    which operand is stored transposed."""
    letter, scalar = _SCALARS[dtype]
    rows, columns, inner = sizes
    getattr(library(), f"scipy_cblas_{letter}gemm")(
        *(c_int(_ROW_MAJOR), *(c_int(_TRANSPOSED if flag else _PLAIN) for flag in flags)),
        *(c_int(rows), c_int(columns), c_int(inner), scalar(1)),
        *(c_void_p(left), c_int(rows if flags[0] else inner)),
        *(c_void_p(right), c_int(inner if flags[1] else columns)),
        *(scalar(0), c_void_p(result), c_int(columns)),
    )


def product(
    left: NDArray,
    right: NDArray,
    result: NDArray,
    flags: tuple[bool, bool],
    multiply: Multiply = gemm,
    name: str = "OpenBLAS",
) -> None:
    """The product of two matrices, or of each two of two rows of matrices, of which one may have a single one.
    ``multiply`` is the library's function, ``name`` the library's."""
    dtype = str(result.dtype)
    if dtype not in _SCALARS or any(str(one.dtype) != dtype for one in (left, right)):
        raise failure(
            "TypeError",
            f"{name} multiplies float32 and float64, not {left.dtype} by {right.dtype} to {dtype}",
        )
    rows, columns = result.shape[-2:]
    inner = left.shape[-2] if flags[0] else left.shape[-1]
    expected = (
        (inner, rows) if flags[0] else (rows, inner),
        (columns, inner) if flags[1] else (inner, columns),
    )
    if (left.shape[-2:], right.shape[-2:]) != expected:
        raise failure("ValueError", f"cannot multiply {left.shape} by {right.shape} to {result.shape}")
    count = int(np.prod(result.shape[:-2], dtype=np.int64))
    starts = []
    for one in (left, right, result):
        batch = int(np.prod(one.shape[:-2], dtype=np.int64))
        if batch not in (1, count):
            raise failure("ValueError", f"{batch} matrices cannot be multiplied to {count}")
        step = 0 if batch == 1 else one.shape[-1] * one.shape[-2] * (4 if dtype == "float32" else 8)
        starts.append((one.aligned().memory_range().start, step))
    for number in range(count):
        left_at, right_at, result_at = (start + number * step for start, step in starts)
        multiply(dtype, left_at, right_at, result_at, (rows, columns, inner), flags)


@register_func("tvm.contrib.cblas.matmul")
def matmul(
    left: NDArray, right: NDArray, result: NDArray, transa: bool = False, transb: bool = False
) -> None:
    """The product of two matrices."""
    product(left, right, result, (bool(transa), bool(transb)))


@register_func("tvm.contrib.cblas.batch_matmul")
def batch_matmul(
    left: NDArray, right: NDArray, result: NDArray, transa: bool = False, transb: bool = False
) -> None:
    """The products of two rows of matrices."""
    product(left, right, result, (bool(transa), bool(transb)))


register_func("tvm.contrib.cblas.batch_matmul_iterative", batch_matmul)


@register_json_runtime
class OpenBLASRuntime(JSONRuntime):
    """Parts that are one product: nn.dense, nn.batch_matmul, or a convolution with a window of one element."""

    backend = "openblas"

    def compute(self, inputs: Sequence[NDArray], outputs: Sequence[NDArray]) -> None:
        """Node by node; parts have several where products follow one another."""
        given = iter(inputs)
        values: list[Any] = []
        for number, node in enumerate(self.graph.nodes):
            if node.op == "input":
                values.append(next(given))
            elif node.op == "const":
                values.append(self.constants[node.name])
            else:
                values.append(
                    self._product(number, node, [values[entry[0]] for entry in node.inputs], outputs)
                )
        for output, (number, _) in zip(outputs, self.graph.outputs, strict=True):
            if values[number] is not output:
                output.copyfrom(values[number])

    def prepare(self) -> None:
        """Memory of products that are not results."""
        self._own: dict[int, NDArray] = {}

    def _product(
        self, number: int, node: JSONNode, operands: list[NDArray], outputs: Sequence[NDArray]
    ) -> NDArray:
        leaving = [one for one, entry in zip(outputs, self.graph.outputs, strict=True) if entry[0] == number]
        result = leaving[0] if leaving else self._memory(number, node)
        left, right = operands
        if node.name == "nn.conv2d":
            weights, images = right, left
            rows, inner = weights.shape[:2]
            columns = images.shape[2] * images.shape[3]
            size = 4 if str(result.dtype) == "float32" else 8
            for image in range(images.shape[0]):
                gemm(
                    str(result.dtype),
                    weights.memory_range().start,
                    images.memory_range().start + image * inner * columns * size,
                    result.memory_range().start + image * rows * columns * size,
                    (rows, columns, inner),
                    (False, False),
                )
        else:
            flags = (False, True)
            if node.name == "nn.batch_matmul":
                flags = (bool(node.attrs["transpose_a"]), bool(node.attrs["transpose_b"]))
            product(left, right, result, flags)
        return result

    def _memory(self, number: int, node: JSONNode) -> NDArray:
        if number not in self._own:
            self._own[number] = empty(node.shapes[0], node.dtypes[0])
        return self._own[number]
