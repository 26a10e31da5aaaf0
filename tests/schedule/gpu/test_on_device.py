"""Every kind of schedule on a real GPU, against the CPU: ``pytest -m gpu tests/schedule/gpu``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.schedule.gpu.device import random_arrays

import tilewright as tvm
from tilewright import te, topi
from tilewright.schedule import schedule
from tilewright.te import Tensor

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not tvm.cuda(0).exist, reason="there is no NVIDIA GPU here"),
]

Graph = tuple[list[Tensor], list[Tensor]]


def of(shape: tuple[int, ...], dtype: str = "float32", name: str = "x") -> Tensor:
    """A placeholder."""
    return te.placeholder(shape, dtype, name=name)


def one(shape: tuple[int, ...], make: Callable[[Tensor], Any], dtype: str = "float32") -> Callable[[], Graph]:
    """A graph with one input."""

    def graph() -> Graph:
        x = of(shape, dtype)
        made = make(x)
        return [x], made if isinstance(made, list) else [made]

    return graph


def two(
    first: tuple[int, ...], second: tuple[int, ...], make: Callable[..., Tensor], dtype: str = "float32"
) -> Callable[[], Graph]:
    """A graph with two inputs."""

    def graph() -> Graph:
        x, y = of(first, dtype), of(second, dtype, "y")
        return [x, y], [make(x, y)]

    return graph


def layer_norm(x: Tensor) -> Tensor:
    """Mean and variance along the last axis, in float32."""
    wide, last = topi.cast(x, "float32"), len(x.shape) - 1
    count = float(int(x.shape[last]))
    centred = topi.subtract(wide, topi.divide(topi.sum(wide, last, keepdims=True), count))
    variance = topi.divide(topi.sum(topi.multiply(centred, centred), last, keepdims=True), count)
    return topi.cast(topi.multiply(centred, topi.rsqrt(topi.add(variance, 1e-5))), str(x.dtype))


GRAPHS: dict[str, Callable[[], Graph]] = {
    "copy": one((1000, 1000), topi.identity),
    "copy_large": one((1 << 13, 1 << 12), topi.identity, "float16"),
    "exp_odd": one((333, 77), topi.exp),
    "broadcast": two((64, 1, 33), (5, 1), topi.add),
    "cast": one((4096,), lambda x: topi.cast(x, "int32")),
    "softmax": one((300, 1000), topi.nn.softmax),
    "softmax_short": one((5000, 17), topi.nn.softmax),
    "softmax_half": one((512, 4096), topi.nn.softmax, "float16"),
    "softmax_long": one((3, 100_000), topi.nn.softmax),
    "softmax_strided": one((8, 21, 30, 40), lambda x: topi.nn.softmax(x, axis=1)),
    "log_softmax": one((100, 777), topi.nn.log_softmax),
    "layer_norm": one((257, 768), layer_norm),
    "layer_norm_half": one((257, 1024), layer_norm, "float16"),
    "sum_rows": one((777, 1025), lambda x: topi.sum(x, 1)),
    "sum_columns": one((1025, 777), lambda x: topi.sum(x, 0)),
    "sum_all": one((1000, 1001), topi.sum),
    "sum_few": one((3, 500_000), lambda x: topi.sum(x, 1)),
    "sum_channels": one((16, 32, 28, 28), lambda x: topi.sum(x, (0, 2, 3))),
    "max_rows": one((500, 333), lambda x: topi.max(x, 1), "float16"),
    "argmax_rows": one((500, 333), lambda x: topi.argmax(x, 1)),
    "argmin_all": one((100_000,), topi.argmin),
    "transpose": one((333, 1000), topi.transpose),
    "transpose_half": one((300, 1000), topi.transpose, "float16"),
    "to_channels_last": one((4, 33, 28, 28), lambda x: topi.transpose(x, (0, 2, 3, 1))),
    "concatenate": two((100, 30), (100, 50), lambda x, y: topi.concatenate((x, y), 1)),
    "strided_slice": one((100, 100), lambda x: topi.strided_slice(x, [3, 7], [90, 99], [2, 3])),
    "max_pool": one((4, 16, 56, 56), lambda x: topi.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1,) * 4, "max")),
    "avg_pool_last": one(
        (4, 56, 56, 16),
        lambda x: topi.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1,) * 4, "avg", layout="NHWC"),
    ),
    "global_pool": one((8, 64, 14, 14), lambda x: topi.nn.global_pool(x, "avg")),
    "depthwise": two(
        (4, 32, 28, 28), (32, 1, 3, 3), lambda x, y: topi.nn.depthwise_conv2d_nchw(x, y, 1, 1, 1)
    ),
    "depthwise_last": two(
        (4, 28, 28, 32), (3, 3, 32, 1), lambda x, y: topi.nn.depthwise_conv2d_nhwc(x, y, 1, 1, 1)
    ),
    "product": two((1000, 513), (513, 777), topi.nn.matmul),
    "product_transposed": two((512, 512), (512, 512), topi.nn.dense),
    "product_one_row": two((1, 2048), (1000, 2048), topi.nn.dense),
    "product_large": two((2048, 1024), (1024, 2048), topi.nn.matmul),
    "batched_product": two((12, 197, 64), (12, 197, 64), topi.nn.batch_matmul),
    "convolution": two(
        (2, 32, 28, 28), (48, 32, 3, 3), lambda x, y: topi.nn.relu(topi.nn.conv2d_nchw(x, y, 1, 1, 1))
    ),
    "convolution_strided": two(
        (2, 3, 57, 57), (64, 3, 7, 7), lambda x, y: topi.nn.conv2d_nchw(x, y, 2, 3, 1)
    ),
    "convolution_last": two((2, 28, 28, 32), (3, 3, 32, 48), lambda x, y: topi.nn.conv2d_nhwc(x, y, 1, 1, 1)),
    "cumsum": one((100, 5000), lambda x: topi.cumsum(x, 1)),
    "sort": one((100, 1000), topi.sort),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_numbers(name: str) -> None:
    """The numbers of a CPU, within the rounding of sums."""
    inputs, outputs = GRAPHS[name]()
    arrays = random_arrays(inputs)
    expected = run_on(tvm.target.Target("llvm"), tvm.cpu(0), inputs, outputs, arrays)
    found = run_on(tvm.target.Target("cuda"), tvm.cuda(0), inputs, outputs, arrays)
    for got, right in zip(found, expected, strict=True):
        half = "float16" in (str(got.dtype), str(arrays[0].dtype))
        size = max(float(np.abs(right.astype("float64")).max(initial=1)), 1)
        np.testing.assert_allclose(
            got.astype("float64"),
            right.astype("float64"),
            rtol=2e-2 if half else 2e-4,
            atol=(1e-2 if half else 1e-4) * size,
        )


def test_kernels_of_threads() -> None:
    """Sorting, running sums and updates, as topi.cuda has them."""
    x = of((64, 1000))
    places, updates = of((5000,), "int32", "places"), of((5000,), "float32", "updates")
    base = of((300,), "float32", "base")
    random = np.random.default_rng(3)
    given = random.standard_normal((64, 1000)).astype("float32")
    index = random.integers(0, 300, 5000).astype("int32")
    added = random.integers(0, 5, 5000).astype("float32")
    target, device = tvm.target.Target("cuda"), tvm.cuda(0)
    with target:
        sorts, sums = topi.cuda.sort(x), topi.cuda.cumsum(x, 1)
        scattered = topi.cuda.scatter_add(base, places, updates, 0)
    (result,) = run_on(target, device, [x], [sorts], [given])
    np.testing.assert_array_equal(result, np.sort(given, 1))
    (result,) = run_on(target, device, [x], [sums], [given])
    np.testing.assert_allclose(result, np.cumsum(given, 1, dtype="float64"), rtol=1e-3, atol=1e-3)
    zeros = np.zeros(300, "float32")
    (result,) = run_on(target, device, [base, places, updates], [scattered], [zeros, index, added])
    np.testing.assert_array_equal(result, np.bincount(index, added, 300).astype("float32"))


def run_on(
    target: Any, device: Any, inputs: list[Tensor], outputs: list[Tensor], arrays: list[Any]
) -> list[Any]:
    """The results of a schedule on a device."""
    library = tvm.build(schedule(outputs, target), [*inputs, *outputs], target, name="kernel")
    given = [tvm.nd.array(array, device) for array in arrays]
    results = [
        tvm.nd.empty([int(extent) for extent in made.shape], str(made.dtype), device) for made in outputs
    ]
    library["kernel"](*given, *results)
    return [result.numpy() for result in results]
