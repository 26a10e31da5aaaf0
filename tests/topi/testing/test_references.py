"""The references give what the compiled operators give: each by a table of cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.topi.running import apply

import tilewright as tvm
from tilewright import te, topi
from tilewright.topi import testing

RNG = np.random.default_rng(7)


def values(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Numbers of a normal distribution."""
    return RNG.normal(size=shape).astype(dtype)


def same(operator: Any, inputs: list[np.ndarray], expected: Any, *options: Any, **named: Any) -> None:
    """The operator, compiled, gives the expected array."""
    found = apply(lambda *tensors: operator(*tensors, *options, **named), *inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("stride", "padding"), [(1, 0), (2, 1), ((2, 1), (1, 2)), (1, "SAME"), (1, (0, 1, 2, 3))]
)
def test_conv2d_nchw(stride: Any, padding: Any) -> None:
    """A convolution with channels first, for every way of saying its padding."""
    data, weight = values(2, 3, 7, 8), values(4, 3, 3, 3)
    same(
        topi.nn.conv2d_nchw,
        [data, weight],
        testing.conv2d_nchw_python(data, weight, stride, padding),
        stride,
        padding,
        1,
    )


def test_conv2d_in_groups_and_other_layouts() -> None:
    """Groups, channels last and the batch last agree with torch."""
    data, weight = values(2, 4, 6, 6), values(6, 2, 3, 3)
    expected = torch.conv2d(torch.tensor(data), torch.tensor(weight), stride=2, padding=1, groups=2).numpy()
    np.testing.assert_allclose(
        testing.conv2d_nchw_python(data, weight, 2, 1, groups=2), expected, rtol=1e-5, atol=1e-6
    )
    last = testing.conv2d_nhwc_python(
        data.transpose(0, 2, 3, 1), weight.transpose(2, 3, 1, 0), 2, 1, groups=2
    )
    np.testing.assert_allclose(last, expected.transpose(0, 2, 3, 1), rtol=1e-5, atol=1e-6)
    dense = values(6, 4, 3, 3)
    plain = testing.conv2d_nchw_python(data, dense, 1, 0)
    batch_last = testing.conv2d_hwcn_python(data.transpose(2, 3, 1, 0), dense.transpose(2, 3, 1, 0), 1, 0)
    np.testing.assert_allclose(batch_last.transpose(3, 2, 0, 1), plain, rtol=1e-6)


def test_conv1d_and_conv3d() -> None:
    """One and three spatial axes agree with torch; integers stay exact."""
    line, line_weight = values(1, 4, 9), values(6, 2, 3)
    expected = torch.conv1d(
        torch.tensor(line), torch.tensor(line_weight), stride=2, padding=1, dilation=2, groups=2
    ).numpy()
    found = testing.group_conv1d_ncw_python(line, line_weight, 2, 1, 2, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    cube = RNG.integers(-5, 5, (1, 2, 4, 5, 6)).astype("int32")
    weight = RNG.integers(-5, 5, (3, 2, 2, 3, 3)).astype("int32")
    expected = torch.conv3d(torch.tensor(cube), torch.tensor(weight), padding=1).numpy()
    found = testing.conv3d_ncdhw_python(cube, weight, 1, 1)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected)
    last = testing.conv3d_ndhwc_python(cube.transpose(0, 2, 3, 4, 1), weight.transpose(2, 3, 4, 1, 0), 1, 1)
    np.testing.assert_array_equal(last.transpose(0, 4, 1, 2, 3), expected)


def test_transposed_convolutions() -> None:
    """One, two and three spatial axes, groups and padding of the output agree with torch."""
    line, line_weight = values(1, 3, 5), values(3, 2, 4)
    expected = torch.conv_transpose1d(
        torch.tensor(line), torch.tensor(line_weight), stride=3, padding=1, output_padding=2
    )
    found = testing.conv1d_transpose_ncw_python(line, line_weight, 3, 1, (2,))
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-6)
    image, weight = values(2, 4, 4, 5), values(4, 3, 3, 3)
    expected = torch.conv_transpose2d(
        torch.tensor(image), torch.tensor(weight), stride=2, padding=1, output_padding=1, groups=2
    )
    found = testing.conv2d_transpose_nchw_python(image, weight, (2, 2), (1, 1), (1, 1), groups=2)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-6)
    plain = testing.conv2d_transpose_nchw_python(image, weight, (2, 2), (1, 1), (0, 0))
    for layout in ("HWIO", "HWOI", "OIHW", "IOHW"):
        moved = weight.transpose(["IOHW".index(letter) for letter in layout])
        found = testing.conv2d_transpose_nhwc_python(image.transpose(0, 2, 3, 1), moved, layout, 2, 1)
        np.testing.assert_allclose(found.transpose(0, 3, 1, 2), plain, rtol=1e-6)
    cube, cube_weight = values(1, 2, 3, 3, 3), values(2, 2, 3, 3, 3)
    expected = torch.conv_transpose3d(torch.tensor(cube), torch.tensor(cube_weight), stride=2, padding=3)
    found = testing.conv3d_transpose_ncdhw_python(cube, cube_weight, 2, 3, (0, 0, 0))
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_depthwise(padding: str) -> None:
    """Each channel alone, with channels first, last and in blocks."""
    data, weight = values(1, 4, 6, 6), values(4, 2, 3, 3)
    first = testing.depthwise_conv2d_python_nchw(data, weight, (2, 2), padding)
    amount = [1, 0, 1, 0] if padding == "SAME" else [0, 0, 0, 0]
    padded = torch.nn.functional.pad(torch.tensor(data), amount)
    expected = torch.conv2d(padded, torch.tensor(weight.reshape(8, 1, 3, 3)), stride=2, groups=4).numpy()
    np.testing.assert_allclose(first, expected, rtol=1e-5, atol=1e-6)
    last = testing.depthwise_conv2d_python_nhwc(
        data.transpose(0, 2, 3, 1), weight.transpose(2, 3, 0, 1), 2, padding
    )
    np.testing.assert_allclose(last.transpose(0, 3, 1, 2), expected, rtol=1e-5, atol=1e-6)
    same(topi.nn.depthwise_conv2d_nchw, [data, weight], expected, (2, 2), padding, (1, 1))
    single = weight[:, :1]
    blocked = testing.depthwise_conv2d_python_nchwc(
        data.reshape(1, 2, 2, 6, 6).transpose(0, 1, 3, 4, 2),
        single.reshape(2, 2, 1, 1, 3, 3).transpose(0, 2, 4, 5, 3, 1),
        2,
        padding,
    )
    plain = testing.depthwise_conv2d_python_nchw(data, single, 2, padding)
    np.testing.assert_allclose(
        blocked.transpose(0, 1, 4, 2, 3).reshape(plain.shape), plain, rtol=1e-5, atol=1e-6
    )


def test_deformable_and_correlation() -> None:
    """Moved taps and compared patches agree with the compiled operators."""
    data, weight = values(1, 4, 5, 5), values(2, 2, 3, 3)
    offset = values(1, 2 * 2 * 9, 5, 5)
    expected = testing.deformable_conv2d_nchw_python(data, offset, weight, 1, 1, 1, 2, 2)
    same(topi.nn.deformable_conv2d_nchw, [data, offset, weight], expected, 1, 1, 1, 2, 2, "float32")
    nhwc = testing.deformable_conv2d_nhwc_python(
        data.transpose(0, 2, 3, 1),
        offset.transpose(0, 2, 3, 1),
        weight.transpose(2, 3, 1, 0),
        1,
        1,
        1,
        2,
        2,
    )
    np.testing.assert_allclose(nhwc.transpose(0, 3, 1, 2), expected, rtol=1e-6)
    one, other = values(1, 2, 8, 8), values(1, 2, 8, 8)
    for multiply in (True, False):
        expected = testing.correlation_nchw_python(one, other, 3, 2, 2, 1, 1, multiply)
        same(topi.nn.correlation_nchw, [one, other], expected, 3, 2, 2, 1, 1, multiply)


@pytest.mark.parametrize("pool_type", ["max", "avg"])
@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("count_include_pad", [False, True])
def test_pooling(pool_type: str, ceil_mode: bool, count_include_pad: bool) -> None:
    """Windows with padding, dilation, and a last one that is cut."""
    data = values(1, 2, 8, 9)
    expected = testing.poolnd_python(
        data, (3, 2), (2, 2), (2, 1), (1, 0), (1, 1), pool_type, count_include_pad, ceil_mode
    )
    same(
        topi.nn.pool2d,
        [data],
        expected,
        (3, 2),
        (2, 2),
        (2, 1),
        (1, 0, 1, 1),
        pool_type,
        ceil_mode,
        "NCHW",
        count_include_pad,
    )
    last = testing.poolnd_python(
        data.transpose(0, 2, 3, 1),
        (3, 2),
        (2, 2),
        (2, 1),
        (1, 0),
        (1, 1),
        pool_type,
        count_include_pad,
        ceil_mode,
        layout="NHWC",
    )
    np.testing.assert_array_equal(last.transpose(0, 3, 1, 2), expected)


@pytest.mark.parametrize("pool_type", ["max", "avg"])
def test_gradient_of_pooling_and_adaptive_pooling(pool_type: str) -> None:
    """The gradient goes where the compiled operator sends it; adaptive windows cover every element."""
    data = values(1, 2, 7, 7)
    upstream = values(1, 2, 4, 4)
    expected = testing.pool_grad_nchw(data, upstream, (3, 3), (2, 2), (1, 1, 1, 1), pool_type, False)
    same(
        lambda out, inner: topi.nn.pool_grad(out, inner, (3, 3), (2, 2), (1, 1, 1, 1), pool_type),
        [upstream, data],
        expected,
    )
    for layout, axes in (("NCHW", (0, 1, 2, 3)), ("NHWC", (0, 2, 3, 1))):
        moved = data.transpose(axes)
        expected = testing.adaptive_pool(moved, (3, 2), pool_type, layout)
        same(topi.nn.adaptive_pool, [moved], expected, (3, 2), pool_type, layout)


@pytest.mark.parametrize("method", ["nearest_neighbor", "linear", "cubic"])
@pytest.mark.parametrize("mode", ["align_corners", "half_pixel", "asymmetric"])
def test_resize(method: str, mode: str) -> None:
    """Images made larger and smaller, for every method and every meaning of a place."""
    data = values(1, 2, 4, 6)
    for scale, size in (((2, 1.5), (8, 9)), ((0.5, 0.5), (2, 3))):
        expected = testing.resize2d_python(data, scale, "NCHW", method, mode)
        same(
            lambda tensor, size=size: topi.image.resize2d(
                tensor,
                size,
                method=method,
                coordinate_transformation_mode=mode,
            ),
            [data],
            expected,
        )
    line = testing.resize1d_python(data[:, :, 0], (1.5,), "NCW", method, mode)
    np.testing.assert_allclose(
        line, testing.resize2d_python(data[:, :, :1], (1, 1.5), "NCHW", method, mode)[:, :, 0]
    )
    cube = testing.resize3d_python(data[:, :, None], (1, 2, 1.5), "NCDHW", method, mode)
    np.testing.assert_allclose(cube[:, :, 0], testing.resize2d_python(data, (2, 1.5), "NCHW", method, mode))


def test_crops_grids_and_regions() -> None:
    """Boxes, affine grids, samples and regions of interest agree with the compiled operators."""
    image = values(2, 6, 7, 3)
    boxes = np.array([[0.13, 0.2, 0.87, 0.8], [-0.2, 0.0, 1.1, 0.6]], "float32")
    which = np.array([1, 0], "int32")
    for method in ("bilinear", "nearest_neighbor"):
        expected = testing.crop_and_resize_python(image, boxes, which, (4, 3), "NHWC", method, 0.5)
        same(
            topi.image.crop_and_resize,
            [image, boxes, which],
            expected,
            (4, 3),
            "NHWC",
            method,
            0.5,
        )
    theta = values(2, 2, 3)
    grid = testing.affine_grid_python(theta, (4, 5)).astype("float32")
    same(topi.image.affine_grid, [theta], grid, (4, 5))
    data = values(2, 3, 6, 7)
    same(topi.image.grid_sample, [data, grid], testing.grid_sample_nchw_python(data, grid), "bilinear")
    rois = np.array([[0, 1.2, 0.5, 5.5, 4.1], [1, 0, 0, 3, 3]], "float32")
    for mode in ("avg", "max"):
        expected = testing.roi_align_nchw_python(data, rois, 3, 0.7, 2, mode)
        same(topi.vision.rcnn.roi_align_nchw, [data, rois], expected, (3, 3), 0.7, mode, 2)
        last = testing.roi_align_nhwc_python(data.transpose(0, 2, 3, 1), rois, 3, 0.7, 2, mode)
        np.testing.assert_array_equal(last.transpose(0, 3, 1, 2), expected)
    expected = testing.roi_pool_nchw_python(data, rois, (2, 3), 0.9)
    same(topi.vision.rcnn.roi_pool_nchw, [data, rois], expected, (2, 3), 0.9)


def test_moved_elements() -> None:
    """Space, depth and batch; slices, masks and choices: each as its operator."""
    data = values(2, 8, 4, 6)
    for mode in ("DCR", "CDR"):
        same(topi.nn.depth_to_space, [data], testing.depth_to_space_python(data, 2, mode), 2, "NCHW", mode)
    same(topi.nn.space_to_depth, [data], testing.space_to_depth_python(data, 2), 2)
    same(topi.vision.reorg, [data], testing.reorg_python(data, 2), 2)
    picture = values(2, 4, 6, 3)
    split = testing.space_to_batch_nd_python(picture, [2, 3], [0, 1], [2, 2])
    same(topi.nn.space_to_batch_nd, [picture], split, [2, 3], [0, 1], [2, 2], 0.0)
    np.testing.assert_array_equal(testing.batch_to_space_nd_python(split, [2, 3], [0, 1], [2, 2]), picture)
    same(topi.nn.dilate, [picture], testing.dilate_python(picture, (1, 2, 3, 1), 0.5), (1, 2, 3, 1), 0.5)
    same(
        topi.strided_slice,
        [data],
        testing.strided_slice_python(data, [0, 7, 1], [2, 1, 3], [1, -2, 1]),
        [0, 7, 1],
        [2, 1, 3],
        [1, -2, 1],
    )
    np.testing.assert_array_equal(
        testing.strided_slice_python(data, [1, 2], [1, -1], None, "size"), data[1:2, 2:]
    )
    np.testing.assert_array_equal(testing.strided_slice_python(data, [1], [5], [2], axes=[1]), data[:, 1:5:2])
    changed = testing.strided_set_python(data, np.zeros((1, 8, 4, 6)), [1], [2], [1])
    assert not changed[1].any()
    np.testing.assert_array_equal(changed[0], data[0])
    np.testing.assert_array_equal(testing.slice_axis_python(data, 1, 2, 5), data[:, 2:5])
    indices = RNG.integers(0, 8, (2, 3, 4, 6))
    same(lambda a, b: topi.gather(a, 1, b), [data, indices], testing.gather_python(data, 1, indices))
    tuples = np.array([[0, 1], [3, 2]])
    same(topi.gather_nd, [data, tuples], testing.gather_nd_python(data, tuples))
    lengths = np.array([1, 3, 2, 0, 4, 4, 1, 2], "int32")
    moved = data.transpose(2, 1, 0, 3)
    same(
        topi.sequence_mask, [moved, lengths], testing.sequence_mask(moved, lengths, -1.0, 0), mask_value=-1.0
    )
    hot = testing.one_hot(np.array([[0, 2], [1, 3]]), 5, -1, 4, 1, "int32")
    assert hot.shape == (2, 4, 2)
    assert hot[0, :, 1].tolist() == [-1, -1, 5, -1]
    matrices, diagonals = values(2, 4, 5), values(2, 3, 4)
    for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"):
        expected = testing.matrix_set_diag(matrices, diagonals, (-1, 1), align)
        same(
            topi.matrix_set_diag,
            [matrices, diagonals],
            expected,
            (-1, 1),
            align,
        )
    rows, wanted = np.sort(values(2, 9)), values(2, 4)
    for right in (True, False):
        same(
            topi.searchsorted,
            [rows, wanted],
            testing.searchsorted_ref(rows, wanted, right, "int32"),
            right,
            "int32",
        )


def test_normalisation_products_and_losses() -> None:
    """Softmax, local and Euclidean normalisation, products and the loss, each as its operator or as torch."""
    data = values(2, 5, 3, 4)
    same(topi.nn.softmax, [data], testing.softmax_python(data, 2), 2)
    same(topi.nn.log_softmax, [data[..., 0, 0]], testing.log_softmax_python(data[..., 0, 0]))
    same(topi.nn.lrn, [data], testing.lrn_python(data, 3, 1, 1.0, 0.5, 0.75), 3, 1, 0.5, 0.75, 1.0)
    expected = testing.l2_normalize_python(data, 1e-3, [1, 2])
    np.testing.assert_allclose(np.square(expected).sum((1, 2)), 1, rtol=1e-5)
    left, right = values(2, 3, 4), values(2, 5, 4)
    same(topi.nn.batch_matmul, [left, right], testing.batch_matmul(left, right))
    np.testing.assert_allclose(
        testing.batch_matmul(left, left, trans_x=True, trans_y=False), left.swapaxes(1, 2) @ left, rtol=1e-6
    )
    bias = values(5)
    expected = np.maximum(left[0] @ right[0].T + bias, 0)
    np.testing.assert_allclose(testing.dense(left[0], right[0], bias, True, True), expected, rtol=1e-6)
    targets, weights = np.array([0, 3, -100, 2]), np.abs(values(4))
    predictions = values(4, 4)
    for reduction in ("mean", "sum", "none"):
        expected = torch.nn.functional.nll_loss(
            torch.tensor(predictions), torch.tensor(targets), torch.tensor(weights), reduction=reduction
        )
        found = testing.nll_loss(predictions, targets, weights, reduction)
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5)


def test_schedules_are_chosen_by_the_targets_keys() -> None:
    """What a target has is taken, else the generic entry; the schedules compile and run."""
    table = {"generic": "plain", "cpu": "for processors", "gpu": "for graphics"}
    assert testing.dispatch("llvm", table) == "for processors"
    assert testing.dispatch(tvm.target.Target("cuda"), table) == "for graphics"
    assert testing.dispatch("hexagon", {"generic": "plain"}) == "plain"
    data = values(3, 4)
    cpu = tvm.cpu()
    for choose, operator, expected in (
        (testing.get_elemwise_schedule, topi.exp, np.exp(data)),
        (testing.get_broadcast_schedule, lambda x: topi.add(x, x), data + data),
        (testing.get_injective_schedule, topi.transpose, data.T),
        (testing.get_reduce_schedule, lambda x: topi.sum(x, axis=1), data.sum(1)),
    ):
        testing.compare_numpy_tvm([data], expected, "llvm", cpu, operator, choose("llvm"))
    with pytest.raises(AssertionError):
        testing.compare_numpy_tvm([data], data, "llvm", cpu, topi.exp, testing.get_elemwise_schedule("llvm"))
    compute, schedule = testing.get_conv2d_nchw_implement("llvm")
    image, weight = values(1, 3, 5, 5), values(4, 3, 3, 3)
    a, w = te.placeholder(image.shape, name="a"), te.placeholder(weight.shape, name="w")
    with tvm.target.Target("llvm"):
        b = compute(a, w, (1, 1), (1, 1), (1, 1), "float32")
        function = tvm.build(schedule([b]), [a, w, b], "llvm")
    result = tvm.nd.empty((1, 4, 5, 5))
    function(tvm.nd.array(image), tvm.nd.array(weight), result)
    np.testing.assert_allclose(
        result.numpy(), testing.conv2d_nchw_python(image, weight, 1, 1), rtol=1e-4, atol=1e-5
    )
