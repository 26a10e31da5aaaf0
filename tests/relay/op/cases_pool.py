"""Cases of pooling."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional
from tests.relay.op.cases import Case, Input
from tests.relay.op.torch_reference import by_torch

from tilewright import relay

IMAGE = Input((2, 3, 7, 8))


def _last(function: Any) -> Any:
    """A function of NCHW on an array NHWC."""
    return lambda x: function(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)


def _grad(function: Any) -> Any:
    """The gradient of a function by its argument."""

    def called(grad: Any, x: Any) -> Any:
        x = x.clone().requires_grad_(True)
        (made,) = torch.autograd.grad(function(x), x, grad)
        return made

    return by_torch(called)


WINDOWS = [
    Case(
        "max_pool1d",
        lambda x: relay.nn.max_pool1d(x, 3, strides=2, padding=1),
        [Input((2, 3, 9))],
        by_torch(lambda x: functional.max_pool1d(x, 3, 2, 1)),
    ),
    Case(
        "max_pool2d",
        lambda x: relay.nn.max_pool2d(x, (3, 2), strides=(2, 2), padding=(1, 1)),
        [IMAGE],
        by_torch(lambda x: functional.max_pool2d(x, (3, 2), 2, 1)),
        gradient=True,
    ),
    Case(
        "max_pool2d_dilated",
        lambda x: relay.nn.max_pool2d(x, 2, dilation=(2, 3)),
        [IMAGE],
        by_torch(lambda x: functional.max_pool2d(x, 2, 1, 0, (2, 3))),
    ),
    Case(
        "max_pool2d_ceil",
        lambda x: relay.nn.max_pool2d(x, 3, strides=2, ceil_mode=True),
        [Input((1, 2, 8, 6))],
        by_torch(lambda x: functional.max_pool2d(x, 3, 2, ceil_mode=True)),
        gradient=True,
    ),
    Case(
        "max_pool2d_nhwc",
        lambda x: relay.nn.max_pool2d(x, 2, strides=2, layout="NHWC"),
        [Input((2, 6, 8, 3))],
        _last(by_torch(lambda x: functional.max_pool2d(x, 2))),
    ),
    Case(
        "max_pool2d_blocked",
        lambda x: relay.nn.max_pool2d(x, 2, strides=2, layout="NCHW4c"),
        [Input((1, 2, 6, 4, 4))],
        dynamic=False,
    ),
    Case(
        "max_pool2d_integers",
        lambda x: relay.nn.max_pool2d(x, 2, padding=1),
        [Input((1, 2, 4, 4), "int8", -128, 128)],
        by_torch(lambda x: functional.max_pool2d(x.double(), 2, 1, 1)),
    ),
    Case(
        "max_pool3d",
        lambda x: relay.nn.max_pool3d(x, 2, strides=(1, 2, 2), padding=1),
        [Input((1, 2, 3, 4, 5))],
        by_torch(lambda x: functional.max_pool3d(x, 2, (1, 2, 2), 1)),
    ),
    Case(
        "avg_pool1d",
        lambda x: relay.nn.avg_pool1d(x, 3, strides=2, padding=1, count_include_pad=True),
        [Input((2, 3, 9))],
        by_torch(lambda x: functional.avg_pool1d(x, 3, 2, 1)),
    ),
    Case(
        "avg_pool2d",
        lambda x: relay.nn.avg_pool2d(x, (3, 2), strides=(2, 1), padding=(1, 1)),
        [IMAGE],
        by_torch(lambda x: functional.avg_pool2d(x, (3, 2), (2, 1), 1, count_include_pad=False)),
        gradient=True,
    ),
    Case(
        "avg_pool2d_with_padding",
        lambda x: relay.nn.avg_pool2d(x, 3, strides=2, padding=1, count_include_pad=True),
        [IMAGE],
        by_torch(lambda x: functional.avg_pool2d(x, 3, 2, 1)),
        gradient=True,
    ),
    Case(
        "avg_pool2d_ceil",
        lambda x: relay.nn.avg_pool2d(x, 3, strides=2, padding=1, ceil_mode=True, count_include_pad=True),
        [Input((1, 2, 8, 6))],
        by_torch(lambda x: functional.avg_pool2d(x, 3, 2, 1, ceil_mode=True)),
        gradient=True,
    ),
    Case(
        "avg_pool2d_nhwc",
        lambda x: relay.nn.avg_pool2d(x, 2, strides=2, layout="NHWC"),
        [Input((2, 6, 8, 3))],
        _last(by_torch(lambda x: functional.avg_pool2d(x, 2))),
    ),
    Case(
        "avg_pool2d_out_layout",
        lambda x: relay.nn.avg_pool2d(x, 2, layout="NCHW", out_layout="NHWC"),
        [IMAGE],
        lambda x: by_torch(lambda y: functional.avg_pool2d(y, 2, 1))(x).transpose(0, 2, 3, 1),
    ),
    Case(
        "avg_pool2d_integers",
        lambda x: relay.nn.avg_pool2d(x, 2, strides=2),
        [Input((1, 2, 4, 4), "int32", -100, 100)],
        lambda x: np.trunc(by_torch(lambda y: functional.avg_pool2d(y, 2))(x.astype("float64"))).astype(
            "int32"
        ),
    ),
    Case(
        "avg_pool3d",
        lambda x: relay.nn.avg_pool3d(x, 2, strides=2, padding=1),
        [Input((1, 2, 3, 4, 5))],
        by_torch(lambda x: functional.avg_pool3d(x, 2, 2, 1, count_include_pad=False)),
    ),
    Case(
        "max_pool2d_grad",
        lambda g, x: relay.nn.max_pool2d_grad(g, x, 3, strides=2, padding=1),
        [Input((2, 3, 4, 4)), IMAGE],
        lambda g, x: _grad(lambda y: functional.max_pool2d(y, 3, 2, 1))(g, x),
    ),
    Case(
        "avg_pool2d_grad",
        lambda g, x: relay.nn.avg_pool2d_grad(g, x, 3, strides=2, padding=1),
        [Input((2, 3, 4, 4)), IMAGE],
        lambda g, x: _grad(lambda y: functional.avg_pool2d(y, 3, 2, 1, count_include_pad=False))(g, x),
    ),
]

WHOLE = [
    Case(
        "global_max_pool2d",
        relay.nn.global_max_pool2d,
        [IMAGE],
        lambda x: x.max(axis=(2, 3), keepdims=True),
    ),
    Case(
        "global_avg_pool2d",
        relay.nn.global_avg_pool2d,
        [IMAGE],
        lambda x: x.mean(axis=(2, 3), keepdims=True),
        gradient=True,
    ),
    Case(
        "global_avg_pool2d_nhwc",
        lambda x: relay.nn.global_avg_pool2d(x, layout="NHWC"),
        [IMAGE],
        lambda x: x.mean(axis=(1, 2), keepdims=True),
        gradient=True,
    ),
    Case(
        "global_max_pool1d",
        relay.nn.global_max_pool1d,
        [Input((2, 3, 5))],
        lambda x: x.max(axis=2, keepdims=True),
    ),
    Case(
        "global_avg_pool1d",
        relay.nn.global_avg_pool1d,
        [Input((2, 3, 5))],
        lambda x: x.mean(axis=2, keepdims=True),
    ),
    Case(
        "global_max_pool3d",
        relay.nn.global_max_pool3d,
        [Input((2, 3, 2, 3, 4))],
        lambda x: x.max(axis=(2, 3, 4), keepdims=True),
    ),
    Case(
        "global_avg_pool3d",
        relay.nn.global_avg_pool3d,
        [Input((2, 3, 2, 3, 4))],
        lambda x: x.mean(axis=(2, 3, 4), keepdims=True),
    ),
]

ADAPTIVE = [
    Case(
        f"adaptive_{kind}_pool{rank}d",
        lambda x, kind=kind, rank=rank, size=size: getattr(relay.nn, f"adaptive_{kind}_pool{rank}d")(x, size),
        [Input((2, 3, *shape))],
        by_torch(
            lambda x, kind=kind, rank=rank, size=size: getattr(functional, f"adaptive_{kind}_pool{rank}d")(
                x, size
            )
        ),
    )
    for kind in ("max", "avg")
    for rank, shape, size in ((1, (7,), (3,)), (2, (7, 5), (3, 2)), (3, (4, 5, 3), (2, 3, 3)))
] + [
    Case("adaptive_avg_pool2d_as_it_is", relay.nn.adaptive_avg_pool2d, [IMAGE], lambda x: x),
    Case(
        "adaptive_max_pool2d_nhwc",
        lambda x: relay.nn.adaptive_max_pool2d(x, (2, 2), layout="NHWC"),
        [Input((1, 5, 6, 3))],
        _last(by_torch(lambda x: functional.adaptive_max_pool2d(x, (2, 2)))),
    ),
]

CASES = [*WINDOWS, *WHOLE, *ADAPTIVE]
