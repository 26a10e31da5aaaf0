"""What cuBLAS, cuBLASLt and cuDNN are called with: a library of these functions that computes in the host's memory."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.contrib import cublaslt, cudnn
from tilewright.runtime.external import cublas as cublas_binding
from tilewright.runtime.external import cublaslt as cublaslt_binding
from tilewright.runtime.external import cudnn as cudnn_binding
from tilewright.runtime.external.cublas import load_nvidia_library
from tilewright.support.cbuild import zig_command
from tilewright.topi import testing

GENERATOR = np.random.default_rng(3)
SOURCE = Path(__file__).with_name("nvidia_stand_in.c")


class Device:
    """An NVIDIA GPU by its number."""

    device_type = 2


class Array:
    """An array that says that it is on a GPU, and has the host's memory."""

    device = Device()

    def __init__(self, values: Any) -> None:
        self.values = np.ascontiguousarray(values)
        self.shape, self.dtype = self.values.shape, str(self.values.dtype)

    def memory_range(self) -> range:
        """Where it is."""
        return range(self.values.ctypes.data, self.values.ctypes.data + self.values.nbytes)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The library."""
    compiler = [shutil.which("cc")] if shutil.which("cc") else zig_command()
    if not compiler:
        pytest.skip("there is no C compiler here")
    made = tmp_path_factory.mktemp("nvidia") / "stand_in.so"
    command = [*compiler, "-std=c99", "-O1", "-Wall", "-shared", "-fPIC", "-o", str(made), str(SOURCE), "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(made))


@pytest.fixture
def library(compiled: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Iterator[ctypes.CDLL]:
    """The library in the place of all three; in the end, every descriptor was destroyed."""
    loaders = (cublas_binding._library, cublaslt_binding._library, cudnn_binding.loaded)
    for binding, loader in zip((cublas_binding, cublaslt_binding, cudnn_binding), loaders, strict=True):
        monkeypatch.setattr(binding, "_NAMES", (compiled._name,))
        loader.cache_clear()
    yield compiled
    for loader in loaders:
        loader.cache_clear()
    assert compiled.stand_in_live() == 0


def called(name: str, *arguments: Any) -> None:
    """Call what is registered, in this process: arrays here are the library's own."""
    registered = {
        "cublas": cublas_binding.matmul,
        "cublas batch": cublas_binding.batch_matmul,
        "cublaslt": cublaslt_binding.matmul,
        "softmax": cudnn_binding.softmax,
        "log_softmax": cudnn_binding.log_softmax,
    }
    registered[name](*arguments)


@pytest.mark.parametrize("flags", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("name", ["cublas", "cublas batch", "cublaslt"])
def test_products(library: ctypes.CDLL, name: str, flags: tuple[int, int]) -> None:
    """Either side transposed, sizes that differ, rows of matrices."""
    count = (2,) if name == "cublas batch" else ()
    left = GENERATOR.normal(size=(*count, 4, 3) if flags[0] else (*count, 3, 4)).astype("float32")
    right = GENERATOR.normal(size=(*count, 5, 4) if flags[1] else (*count, 4, 5)).astype("float32")
    made = Array(np.zeros((*count, 3, 5), "float32"))
    called(name, Array(left), Array(right), made, *flags)
    expected = (left.swapaxes(-1, -2) if flags[0] else left) @ (right.swapaxes(-1, -2) if flags[1] else right)
    np.testing.assert_allclose(made.values, expected, rtol=1e-5, atol=1e-6)


def columns_of_32(matrix: np.ndarray) -> np.ndarray:
    """COL32: a block of 32 columns after the other."""
    rows, columns = matrix.shape
    return np.ascontiguousarray(matrix.reshape(rows, columns // 32, 32).swapaxes(0, 1)).reshape(rows, columns)


def interleaved(matrix: np.ndarray) -> np.ndarray:
    """COL4_4R2_8C: in a block, of eight rows the even ones first, and pieces of four columns of four rows."""
    rows, columns = matrix.shape
    parts = matrix.reshape(
        rows // 8, 4, 2, columns // 32, 4, 2, 4
    )  # group, half, parity, block, eighth, piece
    return np.ascontiguousarray(parts.transpose(3, 0, 2, 4, 5, 1, 6)).reshape(rows, columns)


def test_products_of_integers(library: ctypes.CDLL) -> None:
    """int8 by int8 to int32 in the packed layouts of the matrix units."""
    left = GENERATOR.integers(-128, 128, (32, 64)).astype("int8")
    right = GENERATOR.integers(-128, 128, (6, 64)).astype("int8")
    made = Array(np.zeros((6, 32), "int32"))
    called("cublaslt", Array(interleaved(left)), Array(columns_of_32(right)), made, False, True)
    expected = right.astype("int32") @ left.astype("int32").T
    np.testing.assert_array_equal(made.values, columns_of_32(expected))
    with pytest.raises(ValueError, match="a depth divisible by 32"):
        called("cublaslt", Array(left[:, :40]), Array(right[:, :40]), made, False, True)
    with pytest.raises(ValueError, match="transb=True"):
        called("cublaslt", Array(left), Array(right.T), made, False, False)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(library: ctypes.CDLL, name: str, axis: int) -> None:
    """Along any axis."""
    values = GENERATOR.normal(size=(3, 4, 5)).astype("float32")
    made = Array(np.zeros_like(values))
    called(name, Array(values), made, axis)
    expected = values - np.log(np.exp(values).sum(axis, keepdims=True))
    expected = expected if name == "log_softmax" else np.exp(expected)
    np.testing.assert_allclose(made.values, expected, rtol=1e-5, atol=1e-6)


def convolved(name: str, dimensions: int, windows: Any, arrays: Any, groups: int, tensor_format: int) -> None:
    """Call the packed function as compiled code does."""
    function = tvm.get_global_func(f"tvm.contrib.cudnn.conv{dimensions}d.{name}")
    inside = getattr(function, "__wrapped__", function)
    flat = [one for window in windows for one in window]
    inside(1, tensor_format, -1, *flat, *arrays, "float32", groups)


@pytest.mark.parametrize("tensor_format", [0, 1])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_and_gradients(library: ctypes.CDLL, groups: int, tensor_format: int) -> None:
    """Forward, and the gradients by the data and by the weights: y depends linearly on both, so that the products of y
    with its gradient equal those of the data, or of the weights, with theirs."""
    x = GENERATOR.normal(size=(2, 4, 7, 6)).astype("float32")
    w = GENERATOR.normal(size=(6, 4 // groups, 3, 2)).astype("float32")
    windows = ((1, 2), (2, 1), (1, 2))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (2, 2)))
    spread = testing.dilate_python(w, (1, 1, 1, 2))
    whole = testing.conv2d_nchw_python(padded, spread, (2, 1), 0, groups=groups)

    def order(values: np.ndarray) -> Array:
        return Array(values.transpose(0, 2, 3, 1) if tensor_format else values)

    result = order(np.zeros_like(whole, "float32"))
    convolved("forward", 2, windows, (order(x), order(w), result), groups, tensor_format)
    np.testing.assert_allclose(result.values, order(whole).values, rtol=1e-4, atol=1e-4)
    gradient = GENERATOR.normal(size=whole.shape).astype("float32")
    for_data, for_weights = order(np.zeros_like(x)), order(np.zeros_like(w))
    convolved("backward_data", 2, windows, (order(w), order(gradient), for_data), groups, tensor_format)
    convolved("backward_filter", 2, windows, (order(x), order(gradient), for_weights), groups, tensor_format)
    total = float((whole * gradient).sum())
    assert float((for_data.values * order(x).values).sum()) == pytest.approx(total, rel=1e-3)
    assert float((for_weights.values * order(w).values).sum()) == pytest.approx(total, rel=1e-3)


def test_volumes(library: ctypes.CDLL) -> None:
    """Three dimensions."""
    x = GENERATOR.normal(size=(1, 2, 4, 5, 6)).astype("float32")
    w = GENERATOR.normal(size=(3, 2, 2, 3, 2)).astype("float32")
    expected = testing.conv3d_ncdhw_python(x, w, 1, 0)
    result = Array(np.zeros(expected.shape, "float32"))
    convolved("forward", 3, ((0, 0, 0), (1, 1, 1), (1, 1, 1)), (Array(x), Array(w), result), 1, 0)
    np.testing.assert_allclose(result.values, expected, rtol=1e-4, atol=1e-4)


def test_shapes(library: ctypes.CDLL) -> None:
    """The shape that is computed here is the one that cuDNN computes; an algorithm is found by shapes alone."""
    for tensor_format, x, w in [(0, [2, 4, 9, 8], [6, 2, 3, 2]), (1, [2, 9, 8, 4], [6, 3, 2, 2])]:
        given = (tensor_format, [1, 2], [2, 3], [2, 1], x, w, "float32", "float32", 2)
        assert cudnn._conv_output_shape_from_cudnn(*given) == cudnn.conv_output_shape(*given)
    assert (
        cudnn.conv_find_algo(0, 1, 1, 1, [1, 2, 4, 4], [3, 2, 3, 3], [1, 3, 4, 4], "float32", "float32") == 1
    )
    assert cudnn.exists()
    assert cudnn.algo_to_index("bwd_data", "CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT") == 2
    assert cudnn.algo_to_index("fwd", "none") == -1


def test_expressions() -> None:
    """Convolutions and packed products in tensor expressions have the shapes of their results."""
    x, w = te.placeholder((2, 4, 9, 8)), te.placeholder((6, 2, 3, 2))
    y = cudnn.conv_forward(x, w, [1, 2], [2, 3], [2, 1], 1, 0, -1, None, groups=2)
    assert [int(one) for one in y.shape] == [2, 6, 4, 4]
    back = cudnn.conv_backward_data(y, w, [1, 2], [2, 3], [2, 1], 1, 0, None, 2, output_padding=(0, 1))
    assert [int(one) for one in back.shape] == [2, 4, 9, 8]
    weights = cudnn.conv_backward_filter(y, x, [3, 2], [1, 2], [2, 3], [2, 1], 1, 0, None, 2)
    assert [int(one) for one in weights.shape] == [6, 2, 3, 2]
    with pytest.raises(ValueError, match="5 channels in 2 groups do not fit weights of 2"):
        cudnn.conv_forward(te.placeholder((2, 5, 9, 8)), w, 1, 1, 1, 1, 0, -1, None, groups=2)
    with pytest.raises(ValueError, match="stride has 3 values for 2 axes"):
        cudnn.conv_forward(x, w, 1, [1, 1, 1], 1, 1, 0, -1, None, groups=2)
    left, right = te.placeholder((32, 64), dtype="int8"), te.placeholder((6, 64), dtype="int8")
    made = cublaslt.matmul(left, right, transb=True, n=6, m=32, dtype="int32")
    assert [int(one) for one in made.shape] == [6, 32] and made.dtype == "int32"


def test_what_is_said_without_the_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library that is missing, and what to install."""
    with pytest.raises(OSError, match="cuBLASLt cannot be loaded: pip install nvidia-cublas installs it"):
        load_nvidia_library(("libcublasLt.so.0",), "cuBLASLt", "nvidia-cublas")
    values = tvm.nd.array(np.zeros((2, 2), "float32"))
    with pytest.raises(ValueError, match="cuBLASLt multiplies arrays on an NVIDIA GPU, not on cpu"):
        tvm.get_global_func("tvm.contrib.cublaslt.matmul")(values, values, values)
    image = tvm.nd.array(np.zeros((1, 1, 2, 2), "float32"))
    with pytest.raises(ValueError, match="cuDNN convolves arrays on an NVIDIA GPU, not on cpu"):
        tvm.get_global_func("tvm.contrib.cudnn.conv2d.forward")(
            *(1, 0, -1, 0, 0, 1, 1, 1, 1, image, image, image, "float32", 1)
        )
