"""Resizing, against PyTorch and against exact fractions in Python."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.topi.running import apply, evaluate, inputs

from tilewright import te, topi
from tilewright.support.errors import OpAttributeInvalid
from tilewright.topi.utils import InvalidShapeError

RANDOM = np.random.default_rng(97)
LINE = RANDOM.standard_normal((1, 1, 7)).astype("float32")
IMAGE = RANDOM.standard_normal((2, 2, 5, 6)).astype("float32")


def place(index: int, size: int, target: int, mode: str) -> Fraction:
    """Where a pixel lies in the input."""
    if mode == "align_corners":
        return Fraction(index * (size - 1), max(target - 1, 1))
    if mode == "asymmetric":
        return Fraction(index * size, target)
    if mode == "tf_half_pixel_for_nn":
        return (index + Fraction(1, 2)) * Fraction(size, target)
    if mode == "pytorch_half_pixel" and target == 1:
        return Fraction(0)
    return (index + Fraction(1, 2)) * Fraction(size, target) - Fraction(1, 2)


def cubic(distance: float, alpha: float) -> float:
    """Keys' kernel."""
    x = abs(distance)
    if x <= 1:
        return (alpha + 2) * x**3 - (alpha + 3) * x**2 + 1
    return alpha * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def weights(
    where: Fraction, size: int, method: str, rounding: str, alpha: float, exclude: bool
) -> dict[int, float]:
    """How much each pixel of the input counts."""
    found: dict[int, float] = {}
    if method == "nearest_neighbor":
        half = Fraction(1, 2)
        rounded = {
            "floor": math.floor(where),
            "ceil": math.ceil(where),
            "round": math.floor(where + half),
            "round_prefer_floor": math.ceil(where - half),
            "round_prefer_ceil": math.floor(where + half),
        }[rounding]
        return {min(max(rounded, 0), size - 1): 1.0}
    low = math.floor(where)
    taps = (0, 1) if method == "linear" else (-1, 0, 1, 2)
    for tap in taps:
        distance = float(where - (low + tap))
        weight = 1 - abs(distance) if method == "linear" else cubic(distance, alpha)
        inside = 0 <= low + tap < size
        if exclude and not inside:
            continue
        index = min(max(low + tap, 0), size - 1)
        found[index] = found.get(index, 0.0) + weight
    total = sum(found.values())
    return {index: weight / total for index, weight in found.items()}


def matrix(
    size: int, target: int, method: str, mode: str, rounding: str, alpha: float = -0.5, exclude: bool = False
) -> np.ndarray:
    """Resizing along an axis as a matrix."""
    made = np.zeros((target, size))
    for index in range(target):
        found = weights(place(index, size, target, mode), size, method, rounding, alpha, exclude)
        for source, weight in found.items():
            made[index, source] += weight
    return made


MODES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn"]


@pytest.mark.parametrize("mode", MODES)
def test_nearest_neighbour_is_exact(mode: str) -> None:
    """Every mode and rounding takes exactly the pixel that fractions say, when it grows and when it shrinks."""
    feeds = inputs(LINE)
    outputs, expected = [], []
    for rounding in ("", "round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil"):
        for target in (14, 3):
            outputs.append(topi.image.resize1d(*feeds, (target,), "NCW", "nearest_neighbor", mode, rounding))
            taken = rounding or ("round" if mode == "align_corners" else "floor")
            expected.append(LINE @ matrix(7, target, "nearest_neighbor", mode, taken).T)
    for made, wanted in zip(evaluate(outputs, feeds), expected, strict=True):
        np.testing.assert_array_equal(made, wanted.astype("float32"))


KERNELS: list[tuple[str, float, int]] = [
    ("linear", -0.5, 0),
    ("cubic", -0.5, 0),
    ("cubic", -0.75, 0),
    ("cubic", -0.75, 1),
]


@pytest.mark.parametrize("mode", MODES[:4])
@pytest.mark.parametrize("size", [(9, 4), (1, 1)])
def test_interpolation(mode: str, size: tuple[int, int]) -> None:
    """Linear and cubic, over both axes, with pixels outside repeated or left out."""
    feeds = inputs(IMAGE)
    outputs, expected = [], []
    for method, alpha, exclude in KERNELS:
        outputs.append(topi.image.resize2d(*feeds, size, "NCHW", method, mode, "", alpha, exclude))
        rows, columns = (
            matrix(extent, target, method, mode, "", alpha, bool(exclude))
            for extent, target in zip((5, 6), size, strict=True)
        )
        expected.append(np.einsum("yh,nchw,xw->ncyx", rows, IMAGE, columns))
    for made, wanted in zip(evaluate(outputs, feeds), expected, strict=True):
        np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("align", "mode"), [(True, "align_corners"), (False, "half_pixel")])
def test_as_pytorch(align: bool, mode: str) -> None:
    """Bilinear, bicubic and trilinear are those of PyTorch."""
    wide = torch.tensor(IMAGE.astype("float64"))
    for method, name in (("linear", "bilinear"), ("cubic", "bicubic")):
        expected = F.interpolate(wide, (8, 9), mode=name, align_corners=align).numpy()
        made = apply(
            topi.image.resize2d,
            IMAGE,
            size=(8, 9),
            method=method,
            coordinate_transformation_mode=mode,
            bicubic_alpha=-0.75,
        )
        np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)
    volume = IMAGE.reshape(1, 2, 2, 5, 6)
    expected = F.interpolate(
        torch.tensor(volume.astype("float64")), (3, 4, 8), mode="trilinear", align_corners=align
    ).numpy()
    made = apply(topi.image.resize3d, volume, size=(3, 4, 8), coordinate_transformation_mode=mode)
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW2c"])
def test_layouts(layout: str) -> None:
    """Channels last, and channels in blocks."""
    expected = apply(topi.image.resize2d, IMAGE, size=(3, 9))
    if layout == "NHWC":
        made = apply(topi.image.resize2d, IMAGE.transpose(0, 2, 3, 1).copy(), size=(3, 9), layout=layout)
        made = made.transpose(0, 3, 1, 2)
    else:
        blocked = IMAGE.reshape(2, 1, 2, 5, 6).transpose(0, 1, 3, 4, 2).copy()
        made = apply(topi.image.resize2d, blocked, size=(3, 9), layout=layout)
        made = made.transpose(0, 1, 4, 2, 3).reshape(expected.shape)
    np.testing.assert_allclose(made, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_symbolic_sizes(mode: str) -> None:
    """The size of the input, and that of the output, may be known only when the program runs."""
    size, target = te.size_var("size"), te.size_var("target")
    data, shape_giver = te.placeholder((1, 1, size)), te.placeholder((target,))
    made = topi.image.resize1d(
        data,
        (target,),
        method="nearest_neighbor",
        coordinate_transformation_mode=mode,
        rounding_method="floor",
    )
    values = evaluate(made, {data: LINE, shape_giver: np.zeros(11, "float32")})
    expected = LINE @ matrix(7, 11, "nearest_neighbor", mode, "floor").T
    np.testing.assert_array_equal(values, expected.astype("float32"))


def test_a_region() -> None:
    """tf_crop_and_resize reads a part of the input, and beyond it another value."""
    data = np.arange(5, dtype="float32").reshape(1, 1, 5)
    options: dict[str, Any] = {"coordinate_transformation_mode": "tf_crop_and_resize"}
    made = apply(topi.image.resize1d, data, size=(3,), roi=(0.25, 0.75), **options)
    np.testing.assert_allclose(made.ravel(), [1, 2, 3])
    made = apply(
        topi.image.resize1d, data, size=(3,), roi=(0, 0, 0.5, 1, 1, 1.5), extrapolation_value=-7.0, **options
    )
    np.testing.assert_allclose(made.ravel(), [2, 4, -7])
    made = apply(
        lambda d, region: topi.image.resize1d(d, (1,), roi=region, **options),
        data,
        np.array([0, 0.5], "float32"),
    )
    np.testing.assert_allclose(made.ravel(), [1])


def test_types() -> None:
    """Integers are interpolated in float32; the output's type can be chosen; float64 keeps its precision."""
    data = np.array([[[0, 100, 200]]], "uint8")
    assert apply(
        topi.image.resize1d, data, size=(5,), coordinate_transformation_mode="align_corners"
    ).tolist() == [[[0, 50, 100, 150, 200]]]
    made = apply(
        topi.image.resize1d,
        data,
        size=(9,),
        coordinate_transformation_mode="align_corners",
        out_dtype="float32",
    )
    np.testing.assert_allclose(made.ravel(), np.arange(0, 201, 25))
    exact = apply(topi.image.resize1d, LINE.astype("float64"), size=(12,))
    expected = LINE.astype("float64") @ matrix(7, 12, "linear", "half_pixel", "").T
    np.testing.assert_allclose(exact, expected, rtol=1e-12)


@pytest.mark.parametrize("method", ["bilinear", "nearest_neighbor"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_crops(method: str, layout: str) -> None:
    """Boxes of images, resized; outside of the image another value."""
    boxes = np.array(
        [[0, 0, 1, 1], [0.2, 0.13, 0.7, 0.87], [0.51, 0.53, 1.4, 1.2], [0.9, 0.8, 0.11, 0.03]], "float32"
    )
    owners = np.array([0, 1, 1, 0], "int32")
    expected = np.zeros((4, 2, 3, 4), "float32")
    for b, (y1, x1, y2, x2) in enumerate(boxes.astype("float64")):
        for i in range(3):
            for j in range(4):
                y, x = y1 * 4 + i * (y2 - y1) * 4 / 2, x1 * 5 + j * (x2 - x1) * 5 / 3
                if y < 0 or y > 4 or x < 0 or x > 5:
                    expected[b, :, i, j] = -3
                    continue
                image = IMAGE[owners[b]]
                if method == "nearest_neighbor":
                    expected[b, :, i, j] = image[:, int(y + 0.5), int(x + 0.5)]
                    continue
                low_y, low_x = int(y), int(x)
                high_y, high_x = min(low_y + 1, 4), min(low_x + 1, 5)
                upper = image[:, low_y, low_x] * (1 - x + low_x) + image[:, low_y, high_x] * (x - low_x)
                lower = image[:, high_y, low_x] * (1 - x + low_x) + image[:, high_y, high_x] * (x - low_x)
                expected[b, :, i, j] = upper * (1 - y + low_y) + lower * (y - low_y)
    order = ["NCHW".index(letter) for letter in layout]
    made = apply(
        topi.image.crop_and_resize,
        IMAGE.transpose(order).copy(),
        boxes,
        owners,
        crop_size=np.array([3, 4], "int32"),
        layout=layout,
        method=method,
        extrapolation_value=-3,
    )
    np.testing.assert_allclose(made, expected.transpose(order), rtol=1e-4, atol=1e-5)


def test_mistakes_are_refused() -> None:
    """Unknown methods, modes and roundings; a region that is missing or has the wrong size."""
    data = te.placeholder((1, 1, 5))
    with pytest.raises(OpAttributeInvalid, match="interpolation is one of"):
        topi.image.resize1d(data, 3, method="spline")
    with pytest.raises(OpAttributeInvalid, match="coordinate transformation"):
        topi.image.resize1d(data, 3, coordinate_transformation_mode="centre")
    with pytest.raises(OpAttributeInvalid, match="rounding method"):
        topi.image.resize1d(data, 3, rounding_method="even")
    with pytest.raises(OpAttributeInvalid, match="needs a roi"):
        topi.image.resize1d(data, 3, coordinate_transformation_mode="tf_crop_and_resize")
    with pytest.raises(InvalidShapeError, match="2 or 6 values"):
        topi.image.resize1d(data, 3, coordinate_transformation_mode="tf_crop_and_resize", roi=(0, 1, 2))
    with pytest.raises(InvalidShapeError, match="NCHW has 4 axes"):
        topi.image.resize2d(data, 3)
