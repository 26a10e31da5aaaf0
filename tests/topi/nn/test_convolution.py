"""Convolutions of every rank and layout, plain, in groups and transposed, against PyTorch in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.topi.running import apply, evaluate, inputs

from tilewright import te, topi
from tilewright.support.errors import OpAttributeInvalid
from tilewright.topi.utils import InvalidShapeError

RANDOM = np.random.default_rng(7)


def draw(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


def wide(array: np.ndarray) -> torch.Tensor:
    return torch.tensor(np.asarray(array, "float64"))


def convolved(data: np.ndarray, kernel: np.ndarray, padding: Any = 0, **options: Any) -> np.ndarray:
    """The convolution by PyTorch; padding may be (before..., after...)."""
    rank = data.ndim - 2
    amounts = [padding] * (2 * rank) if isinstance(padding, int) else list(padding)
    if len(amounts) == rank:
        amounts *= 2
    pairs = [(amounts[axis], amounts[rank + axis]) for axis in range(rank)]
    padded = np.pad(data, [(0, 0), (0, 0), *pairs])
    function = [F.conv1d, F.conv2d, F.conv3d][rank - 1]
    return function(wide(padded), wide(kernel), **options).numpy()


CASES_2D = [
    ((1, 3, 6, 7), (4, 3, 3, 3), 1, 0, 1),
    ((2, 3, 6, 7), (4, 3, 3, 2), (2, 1), 1, 1),
    ((1, 2, 8, 8), (3, 2, 3, 3), 2, (0, 1, 2, 1), 2),
    ((1, 2, 5, 5), (3, 2, 1, 1), 2, 0, 1),
    ((1, 1, 9, 4), (1, 1, 2, 4), (3, 1), (1, 0), (3, 1)),
]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "HWCN"])
@pytest.mark.parametrize(("data_shape", "kernel_shape", "stride", "padding", "dilation"), CASES_2D)
def test_two_dimensions(
    layout: str, data_shape: Any, kernel_shape: Any, stride: Any, padding: Any, dilation: Any
) -> None:
    """All layouts compute the same convolution, with any stride, padding and dilation."""
    data, kernel = draw(*data_shape), draw(*kernel_shape)
    expected = convolved(data, kernel, padding, stride=stride, dilation=dilation)
    order = ["NCHW".index(letter) for letter in layout]
    kernel_order = (0, 1, 2, 3) if layout == "NCHW" else (2, 3, 1, 0)
    result = apply(
        topi.nn.conv2d,
        np.ascontiguousarray(data.transpose(order)),
        np.ascontiguousarray(kernel.transpose(kernel_order)),
        strides=stride,
        padding=padding,
        dilation=dilation,
        layout=layout,
    )
    np.testing.assert_allclose(result, expected.transpose(order), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", ["NCW", "NWC"])
@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "amounts"),
    [(1, "VALID", 1, (0, 0)), (2, "SAME", 1, (1, 1)), (1, (2, 1), 2, (2, 1)), (3, "SAME", 2, (2, 2))],
)
def test_one_dimension(layout: str, stride: int, padding: Any, dilation: int, amounts: Any) -> None:
    """Padding is a word or numbers; "SAME" adds the window's extent less one."""
    data, kernel = draw(2, 3, 11), draw(4, 3, 3)
    expected = convolved(data, kernel, amounts, stride=stride, dilation=dilation)
    if layout == "NWC":
        data, kernel = data.transpose(0, 2, 1).copy(), kernel.transpose(2, 1, 0).copy()
        expected = expected.transpose(0, 2, 1)
    result = apply(
        topi.nn.conv1d, data, kernel, strides=stride, padding=padding, dilation=dilation, layout=layout
    )
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", ["NCDHW", "NDHWC"])
@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"), [(1, 0, 1, 1), ((2, 1, 2), (1, 0, 1, 0, 1, 2), (1, 2, 1), 2)]
)
def test_three_dimensions(layout: str, stride: Any, padding: Any, dilation: Any, groups: int) -> None:
    """Volumes, with a stride, padding and dilation for each axis."""
    data, kernel = draw(1, 4, 5, 6, 7), draw(2, 4 // groups, 2, 3, 2)
    expected = convolved(data, kernel, padding, stride=stride, dilation=dilation, groups=groups)
    compute = topi.nn.conv3d_ncdhw
    if layout == "NDHWC":
        data, kernel = data.transpose(0, 2, 3, 4, 1).copy(), kernel.transpose(2, 3, 4, 1, 0).copy()
        expected = expected.transpose(0, 2, 3, 4, 1)
        compute = topi.nn.conv3d_ndhwc
    result = apply(compute, data, kernel, stride=stride, padding=padding, dilation=dilation, groups=groups)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("groups", [2, 3, 6])
def test_groups(groups: int) -> None:
    """Channels in groups see only their own part of the input, in each layout and rank."""
    data, kernel = draw(2, 6, 5, 5), draw(12, 6 // groups, 3, 3)
    expected = convolved(data, kernel, 1, groups=groups)
    nchw = apply(topi.nn.group_conv2d_nchw, data, kernel, stride=1, padding=1, dilation=1, groups=groups)
    np.testing.assert_allclose(nchw, expected, rtol=1e-5, atol=1e-5)
    nhwc = apply(
        topi.nn.group_conv2d_nhwc,
        data.transpose(0, 2, 3, 1).copy(),
        kernel.transpose(2, 3, 1, 0).copy(),
        stride=1,
        padding=1,
        dilation=1,
        groups=groups,
    )
    np.testing.assert_allclose(nhwc, expected.transpose(0, 2, 3, 1), rtol=1e-5, atol=1e-5)
    line, line_kernel = draw(1, 6, 9), draw(6, 6 // groups, 3)
    expected = convolved(line, line_kernel, 1, groups=groups)
    ncw = apply(topi.nn.group_conv1d_ncw, line, line_kernel, padding=1, groups=groups)
    np.testing.assert_allclose(ncw, expected, rtol=1e-5, atol=1e-5)
    nwc = apply(
        topi.nn.group_conv1d_nwc,
        line.transpose(0, 2, 1).copy(),
        line_kernel.transpose(2, 1, 0).copy(),
        padding=1,
        groups=groups,
    )
    np.testing.assert_allclose(nwc, expected.transpose(0, 2, 1), rtol=1e-5, atol=1e-5)


def test_symbolic_sizes() -> None:
    """Batch, height and width may be known only when the program runs."""
    batch, height, width = te.size_var("n"), te.size_var("h"), te.size_var("w")
    data = te.placeholder((batch, 3, height, width), name="data")
    kernel = te.placeholder((4, 3, 3, 3), name="kernel")
    result = topi.nn.conv2d_nchw(data, kernel, 2, 1, 1)
    values, weights = draw(2, 3, 7, 9), draw(4, 3, 3, 3)
    made = evaluate(result, {data: values, kernel: weights})
    np.testing.assert_allclose(made, convolved(values, weights, 1, stride=2), rtol=1e-5, atol=1e-5)


def test_integers_add_in_the_type_asked_for() -> None:
    """Eight-bit products do not wrap in an int32 sum."""
    data = np.full((1, 4, 3, 3), 100, "int8")
    kernel = np.full((1, 4, 3, 3), -100, "int8")
    made = apply(topi.nn.conv2d_nchw, data, kernel, stride=1, padding=0, dilation=1, out_dtype="int32")
    assert made.dtype == np.int32 and made.ravel().tolist() == [-360000]


def test_half_floats_add_in_float32() -> None:
    """A thousand small terms are not lost in a float16 sum, whether the result's type is asked for or not."""
    data, kernel = np.full((1, 4096, 1, 1), 1.0, "float16"), np.full((1, 4096, 1, 1), 0.5, "float16")
    feeds = inputs(data, kernel)
    for out_dtype in (None, "float16"):
        made = topi.nn.conv2d_nchw(*feeds, 1, 0, 1, out_dtype)
        assert made.dtype == "float16" and evaluate(made, feeds).item() == 2048.0


def test_the_padded_input_is_a_stage() -> None:
    """A schedule finds it by name and tag; without padding there is none."""
    data, kernel = te.placeholder((1, 2, 5, 5)), te.placeholder((3, 2, 3, 3))
    padded = topi.nn.conv2d_nchw(data, kernel, 1, 1, 1)
    assert padded.op.tag == "conv2d_nchw"
    assert [tensor.op.name for tensor in padded.op.input_tensors][0] == "pad_temp"
    assert padded.op.input_tensors[0].op.tag == "injective,pad"
    plain = topi.nn.conv2d_nchw(data, kernel, 1, 0, 1)
    assert plain.op.input_tensors == (data, kernel)


TRANSPOSED = [
    (1, 0, 0, 1, 1),
    (2, 1, 1, 1, 1),
    (3, (0, 1, 2, 1), (1, 2), 2, 1),
    (2, 2, 0, 1, 2),
    (1, 3, 0, 1, 1),
]


@pytest.mark.parametrize(("stride", "padding", "output_padding", "groups", "dilation"), TRANSPOSED)
def test_transposed_in_two_dimensions(
    stride: int, padding: Any, output_padding: Any, groups: int, dilation: int
) -> None:
    """The transposed convolution, cropped by its padding, with extra rows and columns at the end."""
    data, kernel = draw(1, 4, 5, 4), draw(4, 3, 3, 3)
    whole = F.conv_transpose2d(
        wide(data), wide(kernel), stride=stride, groups=groups, dilation=dilation, padding=0
    ).numpy()
    top, left, down, right = [padding] * 4 if isinstance(padding, int) else padding
    more_h, more_w = (output_padding, output_padding) if isinstance(output_padding, int) else output_padding
    whole = np.pad(whole, [(0, 0), (0, 0), (0, more_h), (0, more_w)])
    expected = whole[:, :, top : whole.shape[2] - down, left : whole.shape[3] - right]
    feeds = inputs(data, kernel)
    made = topi.nn.conv_transpose(
        *feeds, stride, padding, output_padding, None, groups, dilation, tag="conv2d_transpose_nchw"
    )
    np.testing.assert_allclose(evaluate(made, feeds), expected, rtol=1e-5, atol=1e-5)


def test_transposed_public_names() -> None:
    """Each rank has its name; groups too."""
    line, line_kernel = draw(1, 4, 6), draw(4, 2, 3)
    expected = F.conv_transpose1d(
        wide(line), wide(line_kernel), stride=2, padding=1, output_padding=1
    ).numpy()
    made = apply(
        topi.nn.conv1d_transpose_ncw,
        line,
        line_kernel,
        stride=2,
        padding=1,
        out_dtype="float32",
        output_padding=1,
    )
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-5)
    image, image_kernel = draw(1, 4, 3, 4), draw(4, 2, 3, 2)
    for groups in (1, 2):
        expected = F.conv_transpose2d(wide(image), wide(image_kernel), stride=2, groups=groups).numpy()
        made = apply(
            topi.nn.group_conv2d_transpose_nchw,
            image,
            image_kernel,
            stride=2,
            padding=0,
            out_dtype="float32",
            output_padding=0,
            groups=groups,
        )
        np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-5)
    volume, volume_kernel = draw(1, 2, 3, 2, 3), draw(2, 2, 2, 3, 2)
    expected = F.conv_transpose3d(wide(volume), wide(volume_kernel), stride=(1, 2, 2), padding=1).numpy()
    made = apply(
        topi.nn.conv3d_transpose_ncdhw,
        volume,
        volume_kernel,
        strides=(1, 2, 2),
        padding=1,
        out_dtype="float32",
        output_padding=0,
    )
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-5)


def test_mistakes_are_refused() -> None:
    """Channels that do not fit, kernels larger than the input, layouts and paddings that do not exist."""
    data, kernel = te.placeholder((1, 2, 5, 5)), te.placeholder((3, 2, 3, 3))
    with pytest.raises(InvalidShapeError, match="must be equal"):
        topi.nn.conv2d_nchw(data, te.placeholder((3, 4, 3, 3)), 1, 0, 1)
    with pytest.raises(InvalidShapeError, match="larger than the padded input along H"):
        topi.nn.conv2d_nchw(data, te.placeholder((3, 2, 7, 3)), 1, 0, 1)
    with pytest.raises(InvalidShapeError, match="3 output channels cannot be divided into 2 groups"):
        topi.nn.group_conv2d_nchw(data, te.placeholder((3, 1, 3, 3)), 1, 0, 1, 2)
    with pytest.raises(InvalidShapeError, match="NCHW has 4 dimensions"):
        topi.nn.conv2d_nchw(te.placeholder((2, 5, 5)), kernel, 1, 0, 1)
    with pytest.raises(OpAttributeInvalid, match="NCHW, NHWC, HWCN"):
        topi.nn.conv2d(data, kernel, 1, 0, 1, "CHWN")
    with pytest.raises(OpAttributeInvalid, match="padding of 2 axes"):
        topi.nn.conv2d_nchw(data, kernel, 1, (1, 2, 3), 1)
    with pytest.raises(InvalidShapeError, match="output_padding 2"):
        topi.nn.conv2d_transpose_nchw(data, te.placeholder((2, 3, 3, 3)), 2, 0, None, 2)
