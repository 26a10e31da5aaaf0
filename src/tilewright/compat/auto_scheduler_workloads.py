"""The workloads that TVM's tests of AutoScheduler share, registered under their names there."""

from __future__ import annotations

from tilewright import te, topi
from tilewright.auto_scheduler.compute_dag import ComputeDAG
from tilewright.auto_scheduler.loop_state import State
from tilewright.auto_scheduler.workload_registry import register_workload
from tilewright.te.tensor import Tensor
from tilewright.topi.nn.winograd_util import winograd_transform_matrices

__all__ = [
    "conv2d_nchw_bn_relu_auto_scheduler_test",
    "conv2d_winograd_nhwc_auto_scheduler_test",
    "double_matmul_auto_scheduler_test",
    "get_tiled_matmul",
    "invalid_compute_definition",
    "matmul_auto_scheduler_test",
    "matmul_auto_scheduler_test_rename_0",
    "max_pool2d_auto_scheduler_test",
    "min_nm_auto_scheduler_test",
    "parallel_matmul_auto_scheduler_test",
    "softmax_abcd_auto_scheduler_test",
    "softmax_nm_auto_scheduler_test",
    "zero_rank_compute_auto_scheduler_test",
    "zero_rank_reduce_auto_scheduler_test",
]


def _product(left: Tensor, right: Tensor, name: str, free: bool = False) -> Tensor:
    k = te.reduce_axis((0, left.shape[1]), name="k")
    attributes = {"layout_free_placeholders": [right]} if free else None
    made: Tensor = te.compute(
        (left.shape[0], right.shape[1]),
        lambda i, j: te.sum(left[i, k] * right[k, j], axis=[k]),
        name=name,
        attrs=attributes,
    )
    return made


@register_workload
def matmul_auto_scheduler_test(N: int, M: int, K: int) -> list[Tensor]:
    """A product whose right operand may have any layout."""
    a, b = te.placeholder((N, K), name="A"), te.placeholder((K, M), name="B")
    return [a, b, _product(a, b, "C", free=True)]


@register_workload
def double_matmul_auto_scheduler_test(N: int) -> list[Tensor]:
    """A product of a product."""
    a, b, c = (te.placeholder((N, N), name=name, dtype="float32") for name in "ABC")
    d = _product(a, b, "D")
    return [a, b, c, _product(d, c, "E")]


@register_workload
def parallel_matmul_auto_scheduler_test(N: int) -> list[Tensor]:
    """Two products of one operand."""
    a, b, c = (te.placeholder((N, N), name=name, dtype="float32") for name in "ABC")
    return [a, b, c, _product(a, b, "D"), _product(a, c, "E")]


def matmul_auto_scheduler_test_rename_0(N: int, M: int, K: int) -> list[Tensor]:
    """A product, registered under another name than its function's."""
    a, b = te.placeholder((N, K), name="A"), te.placeholder((K, M), name="B")
    return [a, b, _product(a, b, "C")]


register_workload("matmul_auto_scheduler_test_rename_1", matmul_auto_scheduler_test_rename_0)


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
    """A convolution with a bias, a scale, an offset and a rectifier."""
    data = te.placeholder((N, CI, H, W), name="Data")
    kernel = te.placeholder((CO, CI, kernel_size, kernel_size), name="Kernel")
    bias = te.placeholder((CO, 1, 1), name="Bias")
    scale = te.placeholder((CO, 1, 1), name="Bn_scale")
    offset = te.placeholder((CO, 1, 1), name="Bn_offset")
    made = topi.nn.conv2d_nchw(data, kernel, strides, padding, dilation)
    shape = made.shape
    biased = te.compute(shape, lambda i, j, k, l: made[i, j, k, l] + bias[j, 0, 0], name="Bias_add")
    scaled = te.compute(shape, lambda i, j, k, l: biased[i, j, k, l] * scale[j, 0, 0], name="Bn_mul")
    moved = te.compute(shape, lambda i, j, k, l: scaled[i, j, k, l] + offset[j, 0, 0], name="Bn_add")
    return [data, kernel, bias, offset, scale, topi.nn.relu(moved)]


@register_workload
def max_pool2d_auto_scheduler_test(N: int, H: int, W: int, CI: int, padding: int) -> list[Tensor]:
    """The largest of two by two."""
    data = te.placeholder((N, CI, H, W), name="Data")
    made = topi.nn.pool2d(data, [2, 2], [1, 1], [1, 1], [padding] * 4, "max")
    return [data, made]


@register_workload
def min_nm_auto_scheduler_test(N: int, M: int) -> list[Tensor]:
    """The least of each row."""
    a = te.placeholder((N, M), name="A")
    return [a, topi.min(a, axis=-1)]


@register_workload
def softmax_nm_auto_scheduler_test(N: int, M: int) -> list[Tensor]:
    """Softmax of rows."""
    a = te.placeholder((N, M), name="A")
    return [a, topi.nn.softmax(a, axis=1)]


@register_workload
def softmax_abcd_auto_scheduler_test(a: int, b: int, c: int, d: int) -> list[Tensor]:
    """Softmax over the last of four dimensions."""
    data = te.placeholder((a, b, c, d), name="A")
    return [data, topi.nn.softmax(data, axis=-1)]


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
    """A convolution by Winograd's method, with the transformed kernel given."""
    m, r = 4, kernel_size
    alpha = m + r - 1
    a_matrix, b_matrix, _ = winograd_transform_matrices(m, r, "float32")
    data = te.placeholder((N, H, W, CI), name="inputs")
    kernel = te.placeholder((alpha, alpha, CO, CI), name="weight")
    rows, columns = H + 2 * padding - r + 1, W + 2 * padding - r + 1
    tiles_down, tiles_across = -(-rows // m), -(-columns // m)
    tiles = N * tiles_down * tiles_across
    padded = topi.nn.pad(data, (0, padding, padding, 0), (0, padding, padding, 0), name="pad_temp")
    cut = te.compute(
        (alpha, alpha, tiles, CI),
        lambda eps, nu, p, ci: padded[
            p // (tiles_down * tiles_across),
            p // tiles_across % tiles_down * m + eps,
            p % tiles_across * m + nu,
            ci,
        ],
        name="input_tile",
    )
    ra, rb = te.reduce_axis((0, alpha), "r_a"), te.reduce_axis((0, alpha), "r_b")
    packed = te.compute(
        (alpha, alpha, tiles, CI),
        lambda eps, nu, p, ci: te.sum(
            cut[ra, rb, p, ci] * b_matrix[ra, eps] * b_matrix[rb, nu], axis=[ra, rb]
        ),
        name="data_pack",
        attrs={"auto_scheduler_simplify_const_tensor_indices": ["eps", "nu", "r_a", "r_b"]},
    )
    ci = te.reduce_axis((0, CI), name="ci")
    product = te.compute(
        (alpha, alpha, tiles, CO),
        lambda eps, nu, p, co: te.sum(packed[eps, nu, p, ci] * kernel[eps, nu, co, ci], axis=[ci]),
        name="bgemm",
    )
    rc, rd = te.reduce_axis((0, alpha), "r_a"), te.reduce_axis((0, alpha), "r_b")
    inverse = te.compute(
        (m, m, tiles, CO),
        lambda vh, vw, p, co: te.sum(
            product[rc, rd, p, co] * a_matrix[rc, vh] * a_matrix[rd, vw], axis=[rc, rd]
        ),
        name="inverse",
        attrs={"auto_scheduler_simplify_const_tensor_indices": ["vh", "vw", "r_a", "r_b"]},
    )
    output = te.compute(
        (N, rows, columns, CO),
        lambda n, h, w, co: inverse[
            h % m, w % m, n * tiles_down * tiles_across + h // m * tiles_across + w // m, co
        ],
        name="conv2d_winograd",
    )
    return [data, kernel, output]


@register_workload
def zero_rank_reduce_auto_scheduler_test(N: int) -> list[Tensor]:
    """A sum without dimensions."""
    a = te.placeholder((N,), name="A")
    k = te.reduce_axis((0, N), name="k")
    return [a, te.compute((), lambda: te.sum(a[k], axis=[k]), name="B")]


@register_workload
def zero_rank_compute_auto_scheduler_test(N: int) -> list[Tensor]:
    """A reduction, and a copy of its result."""
    a = te.placeholder((N,), name="A")
    b = te.compute((), lambda: a[0], name="B")
    return [a, te.compute((), lambda: b[()], name="C")]


def invalid_compute_definition() -> list[Tensor]:
    """An operation whose axes have one name."""
    a = te.placeholder((10, 10), name="A")
    # The two reductions have the same name as one another.
    r1 = te.reduce_axis((0, 10), name="r1")
    r2 = te.reduce_axis((0, 10), name="r1")
    return [a, te.compute((), lambda: te.sum(a[r1, r2], axis=[r1, r2]), name="B")]


def get_tiled_matmul() -> tuple[ComputeDAG, State]:
    """A product of 512, tiled by hand."""
    a, b, c = matmul_auto_scheduler_test(512, 512, 512)
    dag = ComputeDAG([a, b, c])
    state = dag.get_init_state()
    i, j, k = state[c].iters
    down = state.split(c, i, [4, 8, 8])
    across = state.split(c, j, [8, 4, 4])
    tiles = [part for pair in zip(down, across, strict=True) for part in pair]
    state.reorder(c, [*tiles, k])
    return dag, state
