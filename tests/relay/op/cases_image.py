"""Cases of operators on images."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as functional
from tests.relay.op.cases import Case, Input
from tests.relay.op.torch_reference import by_torch

from tilewright import relay

IMAGE = Input((1, 2, 4, 6))


def _torch_resize(size: Any, mode: str, **attributes: Any) -> Any:
    return by_torch(lambda x: functional.interpolate(x, size=size, mode=mode, **attributes))


def _sampled(mode: str, padding: str = "zeros", corners: bool = True) -> Any:
    return by_torch(
        lambda x, grid: functional.grid_sample(
            x,
            grid.permute(0, *range(2, grid.ndim), 1),
            mode=mode,
            padding_mode=padding,
            align_corners=corners,
        )
    )


RESIZING = [
    Case(
        "resize1d",
        lambda x: relay.image.resize1d(x, 9),
        [Input((2, 3, 5))],
        _torch_resize(9, "linear"),
    ),
    Case(
        "resize2d_linear",
        lambda x: relay.image.resize2d(x, (7, 5)),
        [IMAGE],
        _torch_resize((7, 5), "bilinear"),
    ),
    Case(
        "resize2d_corners",
        lambda x: relay.image.resize2d(x, (7, 5), coordinate_transformation_mode="align_corners"),
        [IMAGE],
        _torch_resize((7, 5), "bilinear", align_corners=True),
    ),
    Case(
        "resize2d_cubic",
        lambda x: relay.image.resize2d(x, (7, 9), method="cubic", cubic_alpha=-0.75),
        [IMAGE],
        _torch_resize((7, 9), "bicubic"),
        rtol=1e-4,
        atol=1e-5,
    ),
    Case(
        "resize2d_cubic_exclude",
        lambda x: relay.image.resize2d(x, (3, 9), method="cubic", cubic_exclude=1),
        [IMAGE],
        rtol=1e-4,
        atol=1e-5,
    ),
    Case(
        "resize2d_nearest",
        lambda x: relay.image.resize2d(
            x, (8, 9), method="nearest_neighbor", coordinate_transformation_mode="asymmetric"
        ),
        [IMAGE],
        _torch_resize((8, 9), "nearest"),
    ),
    *(
        Case(
            f"resize2d_nearest_{rounding}",
            lambda x, rounding=rounding: relay.image.resize2d(
                x, (7, 11), method="nearest_neighbor", rounding_method=rounding
            ),
            [IMAGE],
        )
        for rounding in ("round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    ),
    *(
        Case(
            f"resize2d_{mode}",
            lambda x, mode=mode: relay.image.resize2d(x, (5, 1), coordinate_transformation_mode=mode),
            [IMAGE],
        )
        for mode in ("asymmetric", "pytorch_half_pixel", "align_corners")
    ),
    Case(
        "resize2d_tf_half_pixel_for_nn",
        lambda x: relay.image.resize2d(
            x, (5, 9), method="nearest_neighbor", coordinate_transformation_mode="tf_half_pixel_for_nn"
        ),
        [IMAGE],
    ),
    Case(
        "resize2d_nhwc",
        lambda x: relay.image.resize2d(x, (7, 5), layout="NHWC"),
        [Input((1, 4, 6, 2))],
        lambda x: _torch_resize((7, 5), "bilinear")(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1),
    ),
    Case(
        "resize2d_bytes",
        lambda x: relay.image.resize2d(x, (8, 8), out_dtype="float32"),
        [Input((1, 2, 4, 4), "uint8", 0, 256)],
        lambda x: _torch_resize((8, 8), "bilinear")(x.astype("float32")),
        rtol=1e-4,
    ),
    Case(
        "resize3d",
        lambda x: relay.image.resize3d(x, (3, 5, 4)),
        [Input((1, 2, 4, 3, 4))],
        _torch_resize((3, 5, 4), "trilinear"),
    ),
    *(
        Case(
            f"crop_and_resize_{method}",
            lambda x, boxes, items, method=method: relay.image.crop_and_resize(
                x, boxes, items, (3, 4), "NCHW", method, 7.5
            ),
            [
                Input((2, 2, 5, 6)),
                Input((3, 4), values=[[0, 0, 1, 1], [0.2, 0.15, 0.75, 0.8], [0.5, -0.25, 1.3, 0.6]]),
                Input((3,), "int32", values=[0, 1, 1]),
            ],
            rtol=1e-4,
            atol=1e-5,
        )
        for method in ("bilinear", "nearest_neighbor")
    ),
    Case(
        "crop_and_resize_to_one",
        lambda x, boxes, items: relay.image.crop_and_resize(x, boxes, items, (1, 2), "NHWC"),
        [
            Input((1, 5, 6, 2)),
            Input((1, 4), values=[[0.1, 0.2, 0.9, 0.7]]),
            Input((1,), "int32", values=[0]),
        ],
        rtol=1e-4,
        atol=1e-5,
    ),
]

PLACES = Input((2, 2, 4, 3), low=-1.4, high=1.4)

SAMPLING = [
    Case(
        "affine_grid",
        lambda x: relay.image.affine_grid(x, (4, 5)),
        [Input((2, 2, 3))],
        by_torch(lambda x: functional.affine_grid(x, [2, 1, 4, 5], align_corners=True).permute(0, 3, 1, 2)),
    ),
    *(
        Case(
            f"grid_sample_{method}_{padding}_{'corners' if corners else 'edges'}",
            lambda x, grid, method=method, padding=padding, corners=corners: relay.image.grid_sample(
                x, grid, method, padding_mode=padding, align_corners=corners
            ),
            [Input((2, 3, 5, 4)), PLACES],
            _sampled(method, padding, corners),
            rtol=1e-4,
            atol=1e-4,
        )
        for method, padding, corners in (
            ("bilinear", "zeros", True),
            ("bilinear", "reflection", False),
            ("bicubic", "zeros", True),
            ("bicubic", "border", False),
            ("nearest", "border", True),
        )
    ),
    Case(
        "grid_sample_of_volumes",
        lambda x, grid: relay.image.grid_sample(x, grid, layout="NCDHW"),
        [Input((1, 2, 3, 4, 3)), Input((1, 3, 2, 3, 2), low=-1.2, high=1.2)],
        _sampled("bilinear"),
        rtol=1e-4,
        atol=1e-5,
    ),
    Case(
        "dilation2d",
        lambda x, w: relay.image.dilation2d(x, w, padding=(1, 1), strides=(2, 1)),
        [Input((1, 3, 5, 6)), Input((3, 3, 2))],
        by_torch(
            lambda x, w: torch.stack(
                [
                    functional.pad(x, (1, 1, 1, 1), value=-1e30)[:, :, i : i + 5 : 2, j : j + 7]
                    + w[:, i, j, None, None]
                    for i in range(3)
                    for j in range(2)
                ]
            ).amax(0)
        ),
    ),
    Case(
        "dilation2d_nhwc",
        lambda x, w: relay.image.dilation2d(x, w, dilations=(2, 2), data_layout="NHWC", kernel_layout="HWI"),
        [Input((1, 5, 6, 3)), Input((2, 3, 3))],
    ),
]

CASES = [*RESIZING, *SAMPLING]
