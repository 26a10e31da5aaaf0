"""Numbers of a few bits and of one, against integer products in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.topi.running import apply, evaluate, inputs

from tilewright import te, topi
from tilewright.topi.utils import InvalidShapeError

RANDOM = np.random.default_rng(71)


def signed(weights: np.ndarray, bits: int, unipolar: bool) -> np.ndarray:
    """What bits of weights stand for: 0 and 1, or -1 and 1."""
    return weights * 2 - (2**bits - 1) if unipolar else weights


def test_packing() -> None:
    """Each plane of bits in words; the first number has the highest bit."""
    data = RANDOM.integers(0, 8, (2, 16)).astype("uint8")
    made = apply(topi.nn.bitpack, data, bits=3, pack_axis=1, bit_axis=1, pack_type="uint8")
    assert made.shape == (2, 3, 2)
    for plane in range(3):
        np.testing.assert_array_equal(made[:, plane], np.packbits((data >> plane) & 1, axis=1))


@pytest.mark.parametrize("unipolar", [False, True])
@pytest.mark.parametrize(("data_bits", "weight_bits"), [(1, 1), (2, 1), (2, 3)])
def test_dense(data_bits: int, weight_bits: int, unipolar: bool) -> None:
    """The product of matrices, of packed weights too."""
    data = RANDOM.integers(0, 2**data_bits, (3, 64)).astype("uint32")
    weight = RANDOM.integers(0, 2**weight_bits, (5, 64)).astype("uint32")
    expected = data.astype(int) @ signed(weight.astype(int), weight_bits, unipolar).T
    options = {
        "data_bits": data_bits,
        "weight_bits": weight_bits,
        "out_dtype": "int32",
        "unipolar": unipolar,
    }
    np.testing.assert_array_equal(apply(topi.nn.bitserial_dense, data, weight, **options), expected)
    packed = apply(topi.nn.bitpack, weight, bits=weight_bits, pack_axis=1, bit_axis=1, pack_type="uint32")
    np.testing.assert_array_equal(apply(topi.nn.bitserial_dense, data, packed, **options), expected)


@pytest.mark.parametrize("unipolar", [False, True])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_convolution(layout: str, unipolar: bool) -> None:
    """Two bits of activations with one of weights, with stride; padding counts as zero."""
    data = RANDOM.integers(0, 4, (1, 32, 5, 5)).astype("uint8")
    kernel = RANDOM.integers(0, 2, (3, 32, 3, 3)).astype("uint8")
    weights = signed(kernel.astype(int), 1, unipolar)
    expected = F.conv2d(
        torch.tensor(data.astype("float64")), torch.tensor(weights.astype("float64")), stride=2, padding=1
    ).numpy()
    operator = topi.nn.bitserial_conv2d_nchw
    if layout == "NHWC":
        operator = topi.nn.bitserial_conv2d_nhwc
        data, kernel = data.transpose(0, 2, 3, 1).copy(), kernel.transpose(2, 3, 1, 0).copy()
        expected = expected.transpose(0, 2, 3, 1)
    made = apply(
        operator,
        data,
        kernel,
        stride=2,
        padding=1,
        activation_bits=2,
        weight_bits=1,
        pack_dtype="uint8",
        unipolar=unipolar,
    )
    assert made.dtype == np.int16
    np.testing.assert_array_equal(made, expected.astype("int16"))


def test_signs() -> None:
    """Networks of signs: packed along any axis, multiplied by XOR."""
    data, weight = RANDOM.standard_normal((3, 64)), RANDOM.standard_normal((2, 64))
    feeds = inputs(data.astype("float32"), weight.astype("float32"))
    packed = [topi.nn.binarize_pack(tensor) for tensor in feeds]
    made = evaluate(topi.nn.binary_dense(*packed), feeds)
    signs = [np.where(array >= 0, 1, -1) for array in (data, weight)]
    np.testing.assert_array_equal(made, signs[0] @ signs[1].T)
    columns = apply(topi.nn.binarize_pack, data.T.astype("float32").copy(), axis=0)
    rows = apply(topi.nn.binarize_pack, data.astype("float32"))
    np.testing.assert_array_equal(columns, rows.T)


def test_mistakes_are_refused() -> None:
    """Numbers that do not fill whole words."""
    data = te.placeholder((2, 20), "uint8")
    with pytest.raises(InvalidShapeError, match="whole words"):
        topi.nn.bitpack(data, 1, 1, 1, "uint8")
    with pytest.raises(InvalidShapeError, match="32 bits"):
        topi.nn.binarize_pack(data)
    with pytest.raises(InvalidShapeError, match="3 dimensions"):
        topi.nn.bitserial_dense(te.placeholder((2, 32), "uint8"), te.placeholder((2, 2, 1), "uint32"), 1, 1)
