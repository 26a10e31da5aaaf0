"""Convolution of numbers of a few bits, by AND and popcount."""

from __future__ import annotations

from typing import Any

from tilewright import te
from tilewright.target import generic_func
from tilewright.te import Tensor
from tilewright.topi.nn.bitserial_util import bit_product, bitpack, packed_or_pack
from tilewright.topi.nn.convolution import require_equal, slide
from tilewright.topi.utils import get_const_tuple


def _convolve(
    activations: Tensor,
    weights: Tensor,
    stride: Any,
    padding: Any,
    out_dtype: str,
    unipolar: bool,
    data_layout: str,
    weight_layout: str,
    name: str,
) -> Tensor:
    """The convolution of packed tensors; the letter ``b`` in a layout is the axis of bits."""
    weight_extents = dict(zip(weight_layout, weights.shape, strict=True))
    data_extents = dict(zip(data_layout, activations.shape, strict=True))
    require_equal(data_extents["C"], weight_extents["I"], f"packed channels of {name}")
    windows = slide(
        activations,
        data_layout,
        get_const_tuple([weight_extents["H"], weight_extents["W"]]),
        stride,
        padding,
        1,
    )
    rc = te.reduce_axis((0, weight_extents["I"]), name="rc")
    ry = te.reduce_axis((0, weight_extents["H"]), name="ry")
    rx = te.reduce_axis((0, weight_extents["W"]), name="rx")
    b1 = te.reduce_axis((0, data_extents["b"]), name="b1")
    b2 = te.reduce_axis((0, weight_extents["b"]), name="b2")
    layout = data_layout.replace("b", "")

    def element(*indices: Any) -> Any:
        at = dict(zip(layout, indices, strict=True))
        read = {
            "N": at["N"],
            "C": rc,
            "b": b1,
            "H": windows.read_at("H", at["H"], ry.var),
            "W": windows.read_at("W", at["W"], rx.var),
        }
        weight = {"O": at["C"], "I": rc, "H": ry, "W": rx, "b": b2}
        product = bit_product(
            windows.data(*[read[letter] for letter in data_layout]),
            weights(*[weight[letter] for letter in weight_layout]),
            b1.var + b2.var,
            unipolar,
            out_dtype,
        )
        return te.sum(product, axis=[rc, ry, rx, b2, b1])

    shape = dict(zip("HW", windows.extents, strict=True))
    shape.update(N=data_extents["N"], C=weight_extents["O"])
    made: Tensor = te.compute([shape[letter] for letter in layout], element, name="Conv2dOutput", tag=name)
    return made


def bitserial_conv2d_nchw(
    data: Tensor,
    kernel: Tensor,
    stride: Any,
    padding: Any,
    activation_bits: int,
    weight_bits: int,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> Tensor:
    """The convolution of NCHW with OIHW (or that packed, with the bits last), of a few bits each."""
    activations = bitpack(data, activation_bits, 1, 2, pack_dtype)
    weights = packed_or_pack(kernel, 4, weight_bits, 1, 4, pack_dtype)
    return _convolve(
        activations,
        weights,
        stride,
        padding,
        out_dtype,
        unipolar,
        "NCbHW",
        "OIHWb",
        "bitserial_conv2d_nchw",
    )


def bitserial_conv2d_nhwc(
    data: Tensor,
    kernel: Tensor,
    stride: Any,
    padding: Any,
    activation_bits: int,
    weight_bits: int,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> Tensor:
    """The convolution of NHWC with HWIO (or that packed, with the bits last), of a few bits each."""
    activations = bitpack(data, activation_bits, 3, 4, pack_dtype)
    weights = packed_or_pack(kernel, 4, weight_bits, 2, 4, pack_dtype)
    return _convolve(
        activations,
        weights,
        stride,
        padding,
        out_dtype,
        unipolar,
        "NHWCb",
        "HWIOb",
        "bitserial_conv2d_nhwc",
    )


@generic_func
def bitserial_conv2d_legalize(attrs: Any, inputs: Any, types: Any) -> Any:
    """A replacement that the target supports for a call that it does not, or None to keep the call."""
    return None
