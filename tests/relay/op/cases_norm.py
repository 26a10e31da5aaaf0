"""Cases of normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch.nn.functional as functional
from tests.relay.op.cases import Case, Input
from tests.relay.op.torch_reference import by_torch

from tilewright import relay

IMAGE = Input((2, 4, 3, 5))
FAR = Input((2, 4, 3, 5), low=1000.0, high=1001.0)
CHANNELS = Input((4,))
VARIANCES = Input((4,), low=0.5, high=2.0)


def _length(x: Any, axes: tuple[int, ...]) -> Any:
    wide = x.astype("float64")
    return (wide / np.sqrt(np.maximum((wide * wide).sum(axis=axes, keepdims=True), 1e-3))).astype(x.dtype)


CASES = [
    Case(
        "batch_norm",
        lambda *arguments: relay.nn.batch_norm(*arguments)[0],
        [IMAGE, CHANNELS, CHANNELS, CHANNELS, VARIANCES],
        by_torch(lambda x, g, b, m, v: functional.batch_norm(x, m, v, g, b)),
    ),
    Case(
        "batch_norm_tuple",
        lambda *arguments: relay.nn.batch_norm(*arguments, epsilon=1e-3, scale=False).astuple(),
        [IMAGE, CHANNELS, CHANNELS, CHANNELS, VARIANCES],
        by_torch(lambda x, g, b, m, v: (functional.batch_norm(x, m, v, None, b, eps=1e-3), m, v)),
    ),
    Case(
        "batch_norm_last_axis",
        lambda *arguments: relay.nn.batch_norm(*arguments, axis=3, center=False)[0],
        [Input((2, 3, 5, 4)), CHANNELS, CHANNELS, CHANNELS, VARIANCES],
        lambda x, g, b, m, v: (x - m) / np.sqrt(v + 1e-5) * g,
    ),
    Case(
        "layer_norm",
        relay.nn.layer_norm,
        [Input((2, 3, 7)), Input((7,)), Input((7,))],
        by_torch(lambda x, g, b: functional.layer_norm(x, (7,), g, b)),
    ),
    Case(
        "layer_norm_far_from_zero",
        relay.nn.layer_norm,
        [Input((3, 64), low=1000.0, high=1001.0), Input((64,)), Input((64,))],
        by_torch(lambda x, g, b: functional.layer_norm(x, (64,), g, b)),
        rtol=1e-3,
        atol=1e-3,
    ),
    Case(
        "layer_norm_first_axis",
        lambda x, g, b: relay.nn.layer_norm(x, g, b, axis=0, epsilon=1e-3, scale=False),
        [Input((4, 5)), CHANNELS, CHANNELS],
        by_torch(lambda x, g, b: (functional.layer_norm(x.T, (4,), None, b, 1e-3)).T),
    ),
    Case(
        "instance_norm",
        relay.nn.instance_norm,
        [IMAGE, CHANNELS, CHANNELS],
        by_torch(lambda x, g, b: functional.instance_norm(x, weight=g, bias=b)),
    ),
    Case(
        "instance_norm_last_axis",
        lambda x, g, b: relay.nn.instance_norm(x, g, b, axis=-1),
        [Input((2, 3, 5, 4)), CHANNELS, CHANNELS],
        by_torch(
            lambda x, g, b: functional.instance_norm(x.permute(0, 3, 1, 2), weight=g, bias=b).permute(
                0, 2, 3, 1
            )
        ),
    ),
    Case(
        "group_norm",
        lambda x, g, b: relay.nn.group_norm(x, g, b, 2),
        [IMAGE, CHANNELS, CHANNELS],
        by_torch(lambda x, g, b: functional.group_norm(x, 2, g, b)),
    ),
    Case(
        "group_norm_far_from_zero",
        lambda x, g, b: relay.nn.group_norm(x, g, b, 2),
        [FAR, CHANNELS, CHANNELS],
        by_torch(lambda x, g, b: functional.group_norm(x, 2, g, b)),
        rtol=1e-3,
        atol=1e-3,
    ),
    Case(
        "l2_normalize",
        lambda x: relay.nn.l2_normalize(x, 1e-3, [1]),
        [IMAGE],
        lambda x: _length(x, (1,)),
    ),
    Case(
        "l2_normalize_all",
        lambda x: relay.nn.l2_normalize(x, 1e-3),
        [Input((3, 4))],
        lambda x: _length(x, (0, 1)),
    ),
    Case(
        "lrn",
        lambda x: relay.nn.lrn(x, size=3, bias=1.5, alpha=0.3, beta=0.6),
        [IMAGE],
        by_torch(lambda x: functional.local_response_norm(x, 3, alpha=0.3, beta=0.6, k=1.5)),
    ),
    Case("lrn_last_axis", lambda x: relay.nn.lrn(x, size=5, axis=3), [IMAGE]),
]
