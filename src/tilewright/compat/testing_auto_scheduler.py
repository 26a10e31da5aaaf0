"""The computations of TVM's tests of AutoScheduler, registered as workloads under their names."""

from __future__ import annotations

from typing import Any

from tilewright import te, topi
from tilewright.auto_scheduler.compute_dag import ComputeDAG
from tilewright.auto_scheduler.loop_state import State
from tilewright.auto_scheduler.measure_types import MeasureInput, MeasureResult
from tilewright.auto_scheduler.search_policy import SketchPolicy
from tilewright.auto_scheduler.search_task import SearchTask
from tilewright.auto_scheduler.workload_registry import register_workload
from tilewright.te.tensor import Tensor
from tilewright.topi.nn import winograd_transform_matrices

__all__ = [
    "conv2d_nchw_bn_relu_auto_scheduler_test",
    "conv2d_winograd_nhwc_auto_scheduler_test",
    "double_matmul_auto_scheduler_test",
    "get_sample_records",
    "get_tiled_matmul",
    "invalid_compute_definition",
    "matmul_auto_scheduler_test",
    "max_pool2d_auto_scheduler_test",
    "min_nm_auto_scheduler_test",
    "parallel_matmul_auto_scheduler_test",
    "softmax_abcd_auto_scheduler_test",
    "softmax_nm_auto_scheduler_test",
    "zero_rank_compute_auto_scheduler_test",
    "zero_rank_reduce_auto_scheduler_test",
]


def _product(left: Tensor, right: Tensor, name: str, **options: Any) -> Tensor:
    depth = left.shape[1]
    k = te.reduce_axis((0, depth), name="k")
    made: Tensor = te.compute(
        (left.shape[0], right.shape[1]),
        lambda i, j: te.sum(left[i][k] * right[k][j], axis=[k]),
        name=name,
        **options,
    )
    return made


@register_workload
def matmul_auto_scheduler_test(N: int, M: int, K: int) -> list[Tensor]:
    """A product; its second operand may have any layout."""
    a, b = te.placeholder((N, K), name="A"), te.placeholder((K, M), name="B")
    return [a, b, _product(a, b, "C", attrs={"layout_free_placeholders": [b]})]


@register_workload
def double_matmul_auto_scheduler_test(N: int) -> list[Tensor]:
    """A product of a product."""
    a, b, c = (te.placeholder((N, N), name=name) for name in "ABC")
    return [a, b, c, _product(_product(a, b, "D"), c, "E")]


@register_workload
def parallel_matmul_auto_scheduler_test(N: int) -> list[Tensor]:
    """Two products that share an operand."""
    a, b, c = (te.placeholder((N, N), name=name) for name in "ABC")
    return [a, b, c, _product(a, b, "D"), _product(a, c, "E")]


@register_workload
def conv2d_nchw_bn_relu_auto_scheduler_test(
    N: int,
    H: int,
    W: int,
    CI: int,
    CO: int,
    kernel_size: int,
    strides: int,
    padding: int,
    dilation: int = 1,
) -> list[Tensor]:
    """A convolution with a bias, a batch normalisation and a rectifier."""
    data = te.placeholder((N, CI, H, W), name="Data")
    kernel = te.placeholder((CO, CI, kernel_size, kernel_size), name="Kernel")
    bias, scale, offset = (
        te.placeholder((CO, 1, 1), name=name) for name in ("Bias", "Bn_scale", "Bn_offset")
    )
    conv = topi.nn.conv2d_nchw(data, kernel, strides, padding, dilation)
    biased = te.compute(conv.shape, lambda i, j, k, l: conv[i, j, k, l] + bias[j, 0, 0], name="Bias_add")
    scaled = te.compute(conv.shape, lambda i, j, k, l: biased[i, j, k, l] * scale[j, 0, 0], name="Bn_mul")
    shifted = te.compute(conv.shape, lambda i, j, k, l: scaled[i, j, k, l] + offset[j, 0, 0], name="Bn_add")
    return [data, kernel, bias, offset, scale, topi.nn.relu(shifted)]


@register_workload
def max_pool2d_auto_scheduler_test(N: int, H: int, W: int, CI: int, padding: int) -> list[Tensor]:
    """Pooling with windows of two by two."""
    data = te.placeholder((N, CI, H, W), name="Data")
    return [data, topi.nn.pool2d(data, [2, 2], [1, 1], [1, 1], [padding] * 4, "max")]


@register_workload
def min_nm_auto_scheduler_test(N: int, M: int) -> list[Tensor]:
    """The least element of each row."""
    a = te.placeholder((N, M), name="A")
    return [a, topi.min(a, axis=-1)]


@register_workload
def softmax_nm_auto_scheduler_test(N: int, M: int) -> list[Tensor]:
    """A softmax over rows."""
    a = te.placeholder((N, M), name="A")
    return [a, topi.nn.softmax(a, axis=1)]


@register_workload
def softmax_abcd_auto_scheduler_test(a: int, b: int, c: int, d: int) -> list[Tensor]:
    """A softmax over the last of four axes."""
    data = te.placeholder((a, b, c, d), name="A")
    return [data, topi.nn.softmax(data, axis=-1)]


@register_workload
def zero_rank_reduce_auto_scheduler_test(N: int) -> list[Tensor]:
    """A sum to a tensor without dimensions."""
    a = te.placeholder((N,), name="A")
    return [a, topi.sum(a)]


@register_workload
def zero_rank_compute_auto_scheduler_test(N: int) -> list[Tensor]:
    """An element as a tensor without dimensions, and a reader of it."""
    a = te.placeholder((N,), name="A")
    first = te.compute((), lambda: a[0], name="B")
    return [a, te.compute((N,), lambda i: a[i] * first(), name="C")]


@register_workload
def conv2d_winograd_nhwc_auto_scheduler_test(
    N: int,
    H: int,
    W: int,
    CI: int,
    CO: int,
    kernel_size: int = 3,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
) -> list[Tensor]:
    """Winograd's convolution with a kernel that is transformed already."""
    tile = 4
    alpha = tile + kernel_size - 1
    inputs = te.placeholder((N, H, W, CI), name="inputs")
    weight = te.placeholder((alpha, alpha, CI, CO), name="weight")
    padded = topi.nn.pad(inputs, (0, padding, padding, 0), (0, padding, padding, 0), name="padded_input")
    height, width = H + 2 * padding - kernel_size + 1, W + 2 * padding - kernel_size + 1
    rows, columns = -(-height // tile), -(-width // tile)
    tiles = N * rows * columns
    a, b, _ = winograd_transform_matrices(tile, kernel_size, "float32")
    unrolled = {"auto_scheduler_simplify_const_tensor_indices": ["eps", "nu", "r_a", "r_b"]}

    def gather(eps: Any, nu: Any, p: Any, ci: Any) -> Any:
        image, row, column = p // (rows * columns), (p // columns) % rows * tile, p % columns * tile
        return padded[image, row + eps, column + nu, ci]

    gathered = te.compute((alpha, alpha, tiles, CI), gather, name="input_tile")
    r_a = te.reduce_axis((0, alpha), name="r_a")
    r_b = te.reduce_axis((0, alpha), name="r_b")
    packed = te.compute(
        (alpha, alpha, tiles, CI),
        lambda eps, nu, p, ci: te.sum(gathered[r_a, r_b, p, ci] * b[r_a, eps] * b[r_b, nu], axis=[r_a, r_b]),
        name="data_pack",
        attrs=unrolled,
    )
    ci = te.reduce_axis((0, CI), name="ci")
    products = te.compute(
        (alpha, alpha, tiles, CO),
        lambda eps, nu, p, co: te.sum(packed[eps, nu, p, ci] * weight[eps, nu, ci, co], axis=[ci]),
        name="bgemm",
        attrs={"layout_free_placeholders": [weight]},
    )
    r_c = te.reduce_axis((0, alpha), name="r_a")
    r_d = te.reduce_axis((0, alpha), name="r_b")
    inverse = te.compute(
        (tile, tile, tiles, CO),
        lambda vh, vw, p, co: te.sum(products[r_c, r_d, p, co] * a[r_c, vh] * a[r_d, vw], axis=[r_c, r_d]),
        name="inverse",
        attrs={"auto_scheduler_simplify_const_tensor_indices": ["vh", "vw", "r_a", "r_b"]},
    )
    output = te.compute(
        (N, height, width, CO),
        lambda n, h, w, co: inverse[
            h % tile, w % tile, n * rows * columns + h // tile * columns + w // tile, co
        ],
        name="conv2d_winograd",
    )
    return [inputs, weight, output]


def get_tiled_matmul() -> tuple[ComputeDAG, State]:
    """A product with its loops tiled."""
    a, b, c = matmul_auto_scheduler_test(512, 512, 512)
    dag = ComputeDAG([a, b, c])
    state = dag.get_init_state()
    rows = state.split(c, state[c].iters[0], [4, 8, 8])
    columns = state.split(c, state[c].iters[4], [8, 4, 4])
    order = [part for pair in zip(rows, columns, strict=True) for part in pair]
    state.reorder(c, [*order, state[c].iters[8]])
    return dag, state


def invalid_compute_definition() -> list[Tensor]:
    """A computation with two axes of one name, which a graph refuses."""
    a = te.placeholder((10, 10), name="A")
    first = te.reduce_axis((0, 2), name="r1")
    second = te.reduce_axis((0, 2), name="r1")
    b = te.compute((10,), lambda i: te.sum(a[i][first + second], axis=[first, second]), name="B")
    return [a, b]


def get_sample_records(number: int) -> tuple[SearchTask, list[MeasureInput], list[MeasureResult]]:
    """Sampled programs of a product, with made-up times."""
    task = SearchTask(func=matmul_auto_scheduler_test, args=(128, 128, 128), target="llvm")
    states = SketchPolicy(task, verbose=0).sample_initial_population()[:number]
    inputs = [MeasureInput(task, state) for state in states]
    results = [MeasureResult([0.1 + 0.1 * count], 0, "", 0.2, 1) for count in range(len(inputs))]
    return task, inputs, results
