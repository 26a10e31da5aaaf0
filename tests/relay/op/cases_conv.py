"""Cases of convolutions and transposed convolutions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch.nn.functional as functional
from tests.relay.op.cases import Case, Input
from tests.relay.op.torch_reference import by_torch

from tilewright import relay


def _nchw(function: Any, data: str = "NHWC", weight: str = "HWIO") -> Any:
    """A function of NCHW and OIHW on arrays of other layouts."""
    plain_data, plain_weight = sorted_axes(data), sorted_axes(weight)

    def called(x: Any, w: Any) -> Any:
        made = function(
            x.transpose([data.index(axis) for axis in plain_data]),
            w.transpose([weight.index(axis) for axis in plain_weight]),
        )
        return made.transpose([plain_data.index(axis) for axis in data])

    return called


def sorted_axes(layout: str) -> str:
    """The axes of a layout in the order that PyTorch has."""
    return "".join(axis for axis in "NCOIDHW" if axis in layout)


def _blocked(array: Any, block: int) -> Any:
    """NCHW with channels in blocks."""
    n, c, h, w = array.shape
    return array.reshape(n, c // block, block, h, w).transpose(0, 1, 3, 4, 2)


def _plain(array: Any) -> Any:
    """Channels in blocks as NCHW."""
    n, c, h, w, block = array.shape
    return array.transpose(0, 1, 4, 2, 3).reshape(n, c * block, h, w)


def _plain_weight(array: Any) -> Any:
    """A weight OIHWio as OIHW."""
    o, i, h, w, inner, outer = array.shape
    return array.transpose(0, 5, 1, 4, 2, 3).reshape(o * outer, i * inner, h, w)


def _conv2d(**attributes: Any) -> Any:
    return by_torch(lambda x, w: functional.conv2d(x, w, **attributes))


DATA = Input((2, 4, 7, 6))

ONE_AXIS = [
    Case(
        "conv1d",
        lambda x, w: relay.nn.conv1d(x, w, strides=2, padding=1, dilation=2, channels=5, kernel_size=3),
        [Input((2, 4, 11)), Input((5, 4, 3))],
        by_torch(lambda x, w: functional.conv1d(x, w, stride=2, padding=1, dilation=2)),
        gradient=True,
    ),
    Case(
        "conv1d_groups",
        lambda x, w: relay.nn.conv1d(x, w, groups=2),
        [Input((1, 4, 9)), Input((6, 2, 3))],
        by_torch(lambda x, w: functional.conv1d(x, w, groups=2)),
    ),
    Case(
        "conv1d_nwc",
        lambda x, w: relay.nn.conv1d(x, w, data_layout="NWC", kernel_layout="WIO"),
        [Input((2, 9, 4)), Input((3, 4, 5))],
        _nchw(by_torch(functional.conv1d), "NWC", "WIO"),
    ),
    Case(
        "conv1d_transpose",
        lambda x, w: relay.nn.conv1d_transpose(
            x, w, strides=(2,), padding=(1,), output_padding=(1,), channels=3, kernel_size=(4,)
        ),
        [Input((2, 4, 5)), Input((4, 3, 4))],
        by_torch(lambda x, w: functional.conv_transpose1d(x, w, stride=2, padding=1, output_padding=1)),
    ),
]

TWO_AXES = [
    Case("conv2d", relay.nn.conv2d, [DATA, Input((5, 4, 3, 3))], _conv2d(), gradient=True),
    Case(
        "conv2d_strided",
        lambda x, w: relay.nn.conv2d(x, w, strides=(2, 1), padding=(1, 2), channels=5, kernel_size=(3, 2)),
        [DATA, Input((5, 4, 3, 2))],
        _conv2d(stride=(2, 1), padding=(1, 2)),
        gradient=True,
    ),
    Case(
        "conv2d_dilated",
        lambda x, w: relay.nn.conv2d(x, w, dilation=2, padding=1),
        [DATA, Input((3, 4, 3, 3))],
        _conv2d(dilation=2, padding=1),
        gradient=True,
    ),
    Case(
        "conv2d_padded_on_two_sides",
        lambda x, w: relay.nn.conv2d(x, w, padding=(0, 1, 2, 3)),
        [DATA, Input((3, 4, 3, 3))],
        by_torch(lambda x, w: functional.conv2d(functional.pad(x, (1, 3, 0, 2)), w)),
        gradient=True,
    ),
    Case(
        "conv2d_groups",
        lambda x, w: relay.nn.conv2d(x, w, groups=2, strides=2, padding=1),
        [DATA, Input((6, 2, 3, 3))],
        _conv2d(groups=2, stride=2, padding=1),
        gradient=True,
    ),
    Case(
        "conv2d_depthwise",
        lambda x, w: relay.nn.conv2d(x, w, groups=4, padding=1, channels=4, kernel_size=3),
        [DATA, Input((4, 1, 3, 3))],
        _conv2d(groups=4, padding=1),
        gradient=True,
    ),
    Case(
        "conv2d_depthwise_multiplied",
        lambda x, w: relay.nn.conv2d(x, w, groups=4, channels=8, kernel_size=3),
        [DATA, Input((4, 2, 3, 3))],
        by_torch(lambda x, w: functional.conv2d(x, w.reshape(8, 1, 3, 3), groups=4)),
        gradient=True,
        dynamic=False,
    ),
    Case(
        "conv2d_nhwc",
        lambda x, w: relay.nn.conv2d(x, w, padding=1, data_layout="NHWC", kernel_layout="HWIO"),
        [Input((2, 7, 6, 4)), Input((3, 3, 4, 5))],
        _nchw(_conv2d(padding=1)),
        gradient=True,
    ),
    Case(
        "conv2d_nhwc_ohwi",
        lambda x, w: relay.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="OHWI"),
        [Input((1, 5, 6, 4)), Input((5, 3, 3, 4))],
        _nchw(_conv2d(), "NHWC", "OHWI"),
    ),
    Case(
        "conv2d_nhwc_depthwise",
        lambda x, w: relay.nn.conv2d(
            x, w, groups=4, channels=8, kernel_size=(3, 3), data_layout="NHWC", kernel_layout="HWOI"
        ),
        [Input((2, 6, 6, 4)), Input((3, 3, 4, 2))],
        lambda x, w: _nchw(_conv2d(groups=4), "NHWC", "HWIO")(x, w.reshape(3, 3, 1, 8)),
        dynamic=False,
    ),
    Case(
        "conv2d_hwcn",
        lambda x, w: relay.nn.conv2d(x, w, data_layout="HWCN", kernel_layout="HWIO"),
        [Input((6, 5, 4, 2)), Input((3, 3, 4, 3))],
        _nchw(_conv2d(), "HWCN", "HWIO"),
    ),
    Case(
        "conv2d_blocked_layout",
        lambda x, w: relay.nn.conv2d(
            x, w, padding=1, data_layout="NCHW4c", kernel_layout="OIHW4i2o", out_layout="NCHW2c"
        ),
        [Input((1, 2, 5, 5, 4)), Input((3, 2, 3, 3, 4, 2))],
        lambda x, w: _blocked(_conv2d(padding=1)(_plain(x), _plain_weight(w)), 2),
        dynamic=False,
    ),
    Case(
        "conv2d_out_layout",
        lambda x, w: relay.nn.conv2d(x, w, out_layout="NHWC"),
        [DATA, Input((5, 4, 3, 3))],
        lambda x, w: _conv2d()(x, w).transpose(0, 2, 3, 1),
    ),
    Case(
        "conv2d_integers",
        lambda x, w: relay.nn.conv2d(x, w, padding=1, out_dtype="int32"),
        [Input((1, 8, 5, 5), "int8", -128, 128), Input((4, 8, 3, 3), "int8", -128, 128)],
        lambda x, w: functional_int32(x, w),
    ),
    Case(
        "conv2d_half",
        lambda x, w: relay.nn.conv2d(x, w),
        [Input((1, 8, 5, 5), "float16"), Input((4, 8, 3, 3), "float16")],
        _conv2d(),
        rtol=2e-3,
        atol=2e-2,
    ),
    Case(
        "conv2d_transpose",
        lambda x, w: relay.nn.conv2d_transpose(
            x, w, strides=(2, 2), padding=(1, 1), output_padding=(1, 0), channels=3, kernel_size=(3, 3)
        ),
        [Input((2, 4, 5, 4)), Input((4, 3, 3, 3))],
        by_torch(lambda x, w: functional.conv_transpose2d(x, w, stride=2, padding=1, output_padding=(1, 0))),
    ),
    Case(
        "conv2d_transpose_groups",
        lambda x, w: relay.nn.conv2d_transpose(x, w, strides=2, groups=2, dilation=2),
        [Input((1, 4, 4, 3)), Input((4, 3, 2, 3))],
        by_torch(lambda x, w: functional.conv_transpose2d(x, w, stride=2, groups=2, dilation=2)),
    ),
    Case(
        "conv2d_transpose_nhwc",
        lambda x, w: relay.nn.conv2d_transpose(x, w, strides=2, data_layout="NHWC", kernel_layout="HWOI"),
        [Input((1, 4, 3, 4)), Input((3, 3, 2, 4))],
        lambda x, w: by_torch(lambda a, b: functional.conv_transpose2d(a, b, stride=2))(
            x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1)
        ).transpose(0, 2, 3, 1),
    ),
]

THREE_AXES = [
    Case(
        "conv3d",
        lambda x, w: relay.nn.conv3d(x, w, strides=(1, 2, 1), padding=1),
        [Input((1, 3, 4, 5, 4)), Input((4, 3, 3, 3, 2))],
        by_torch(lambda x, w: functional.conv3d(x, w, stride=(1, 2, 1), padding=1)),
    ),
    Case(
        "conv3d_ndhwc",
        lambda x, w: relay.nn.conv3d(x, w, data_layout="NDHWC", kernel_layout="DHWIO"),
        [Input((1, 4, 4, 5, 3)), Input((3, 2, 2, 3, 4))],
        _nchw(by_torch(functional.conv3d), "NDHWC", "DHWIO"),
    ),
    Case(
        "conv3d_transpose",
        lambda x, w: relay.nn.conv3d_transpose(x, w, strides=(2, 1, 2), padding=1),
        [Input((1, 3, 3, 3, 3)), Input((3, 2, 3, 3, 3))],
        by_torch(lambda x, w: functional.conv_transpose3d(x, w, stride=(2, 1, 2), padding=1)),
    ),
]


def functional_int32(x: Any, w: Any) -> Any:
    """The convolution of small integers, padded by one, exactly."""
    wide = by_torch(lambda a, b: functional.conv2d(a, b, padding=1))(x.astype("float64"), w.astype("float64"))
    return np.rint(wide).astype("int32")


def _transformed(tile: int) -> Any:
    """A convolution in two steps: the weight is transformed first."""

    def build(x: Any, w: Any) -> Any:
        weight = relay.nn.contrib_conv2d_winograd_weight_transform(w, tile)
        return relay.nn.contrib_conv2d_winograd_without_weight_transform(
            x, weight, tile, padding=1, channels=3, kernel_size=(3, 3)
        )

    return build


PREPARED = [
    Case(
        "contrib_conv2d_nchwc",
        lambda x, w: relay.nn.contrib_conv2d_nchwc(
            x,
            w,
            strides=2,
            padding=1,
            channels=8,
            kernel_size=(3, 3),
            data_layout="NCHW4c",
            kernel_layout="OIHW4i8o",
            out_layout="NCHW8c",
        ),
        [Input((1, 2, 6, 5, 4)), Input((1, 2, 3, 3, 4, 8))],
        lambda x, w: _blocked(_conv2d(stride=2, padding=1)(_plain(x), _plain_weight(w)), 8),
        dynamic=False,
    ),
    Case(
        "contrib_depthwise_conv2d_nchwc",
        lambda x, w: relay.nn.contrib_depthwise_conv2d_nchwc(
            x,
            w,
            padding=1,
            groups=8,
            channels=8,
            kernel_size=(3, 3),
            data_layout="NCHW4c",
            kernel_layout="OIHW1i4o",
            out_layout="NCHW4c",
        ),
        [Input((1, 2, 6, 5, 4)), Input((2, 1, 3, 3, 1, 4))],
        lambda x, w: _blocked(_conv2d(padding=1, groups=8)(_plain(x), _plain_weight(w)), 4),
        dynamic=False,
    ),
    Case(
        "conv2d_winograd",
        _transformed(4),
        [Input((1, 4, 7, 6)), Input((3, 4, 3, 3))],
        _conv2d(padding=1),
        rtol=1e-3,
        atol=1e-4,
        dynamic=False,
    ),
    Case(
        "conv3d_winograd",
        lambda x, w: relay.nn.contrib_conv3d_winograd_without_weight_transform(
            x,
            relay.nn.contrib_conv3d_winograd_weight_transform(w, 2),
            2,
            padding=1,
            channels=3,
            kernel_size=(3, 3, 3),
        ),
        [Input((1, 2, 4, 4, 4)), Input((3, 2, 3, 3, 3))],
        by_torch(lambda x, w: functional.conv3d(x, w, padding=1)),
        rtol=1e-3,
        atol=1e-4,
        dynamic=False,
    ),
    Case(
        "conv3d_winograd_flat",
        lambda x, w: relay.nn.contrib_conv3d_winograd_without_weight_transform(
            x,
            relay.nn.contrib_conv3d_winograd_weight_transform(w, 2),
            2,
            channels=3,
            kernel_size=(1, 3, 3),
        ),
        [Input((1, 2, 3, 5, 4)), Input((3, 2, 1, 3, 3))],
        by_torch(functional.conv3d),
        rtol=1e-3,
        atol=1e-4,
        dynamic=False,
    ),
    Case(
        "conv2d_gemm",
        lambda x, w: relay.nn.contrib_conv2d_gemm_without_weight_transform(
            x,
            relay.nn.contrib_conv2d_gemm_weight_transform(w, 4, 4),
            padding=1,
            channels=5,
            kernel_size=(3, 3),
            data_layout="NHWC",
        ),
        [Input((1, 5, 6, 4)), Input((3, 3, 4, 5))],
        _nchw(_conv2d(padding=1)),
        dynamic=False,
    ),
    Case(
        "deformable_conv2d_still",
        lambda x, o, w: relay.nn.deformable_conv2d(x, o, w, padding=1, strides=2),
        [
            Input((1, 4, 6, 5)),
            Input(values=np.zeros((1, 18, 3, 3)), dtype="float32"),
            Input((3, 4, 3, 3)),
        ],
        lambda x, o, w: _conv2d(padding=1, stride=2)(x, w),
        dynamic=False,
    ),
    Case(
        "deformable_conv2d",
        lambda x, o, w: relay.nn.deformable_conv2d(x, o, w, padding=1, deformable_groups=2, groups=2),
        [Input((2, 4, 5, 5)), Input((2, 36, 5, 5)), Input((4, 2, 3, 3))],
        rtol=1e-4,
        atol=1e-4,
        dynamic=False,
    ),
    Case(
        "deformable_conv2d_nhwc",
        lambda x, o, w: relay.nn.deformable_conv2d(x, o, w, data_layout="NHWC", kernel_layout="HWIO"),
        [Input((1, 5, 5, 3)), Input((1, 3, 3, 18)), Input((3, 3, 3, 2))],
        rtol=1e-4,
        atol=1e-4,
        dynamic=False,
    ),
    Case(
        "correlation",
        lambda x, y: relay.nn.correlation(x, y, 3, 2, 1, 1, 2, True, "NCHW"),
        [Input((1, 3, 6, 6)), Input((1, 3, 6, 6))],
    ),
    Case(
        "correlation_of_differences",
        lambda x, y: relay.nn.correlation(x, y, 1, 2, 2, 2, 3, False, "NCHW"),
        [Input((2, 3, 6, 5)), Input((2, 3, 6, 5))],
    ),
]

CASES = [
    # Sums of many products in another order.
    replace(case, rtol=max(case.rtol, 1e-4), atol=max(case.atol, 1e-5))
    for case in (*ONE_AXIS, *TWO_AXES, *THREE_AXES, *PREPARED)
]
