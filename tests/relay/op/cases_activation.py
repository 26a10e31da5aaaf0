"""Cases of activations, softmax, bias, dropout, padding, flattening, and moves between space, channels and batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch.nn.functional as functional
from tests.relay.op.cases import Case, Input
from tests.relay.op.torch_reference import by_torch

from tilewright import relay

MATRIX = Input((3, 5))
IMAGE = Input((2, 4, 3, 5))
WIDE = Input((3, 9), low=-90.0, high=90.0)

ACTIVATIONS = [
    Case("relu", relay.nn.relu, [MATRIX], lambda x: np.maximum(x, 0), gradient=True),
    Case("relu_integers", relay.nn.relu, [Input((7,), "int8", -100, 100)], lambda x: np.maximum(x, 0)),
    Case(
        "leaky_relu",
        lambda x: relay.nn.leaky_relu(x, 0.2),
        [MATRIX],
        lambda x: np.where(x > 0, x, np.float32(0.2) * x),
        gradient=True,
    ),
    Case(
        "prelu",
        relay.nn.prelu,
        [IMAGE, Input((4,))],
        by_torch(functional.prelu),
    ),
    Case(
        "prelu_last_axis",
        lambda x, a: relay.nn.prelu(x, a, axis=-1),
        [MATRIX, Input((5,))],
        lambda x, a: np.where(x > 0, x, a * x),
    ),
    Case(
        "bias_add",
        relay.nn.bias_add,
        [IMAGE, Input((4,))],
        lambda x, b: x + b[:, None, None],
        gradient=True,
    ),
    Case(
        "bias_add_last_axis",
        lambda x, b: relay.nn.bias_add(x, b, axis=-1),
        [MATRIX, Input((5,))],
        lambda x, b: x + b,
        gradient=True,
    ),
    Case("softmax", relay.nn.softmax, [MATRIX], by_torch(lambda x: functional.softmax(x, -1)), gradient=True),
    Case(
        "softmax_axis",
        lambda x: relay.nn.softmax(x, axis=1),
        [IMAGE],
        by_torch(lambda x: functional.softmax(x, 1)),
        gradient=True,
    ),
    Case("softmax_of_large", relay.nn.softmax, [WIDE], by_torch(lambda x: functional.softmax(x, -1))),
    Case(
        "fast_softmax",
        relay.nn.fast_softmax,
        [MATRIX],
        by_torch(lambda x: functional.softmax(x, -1)),
        rtol=1e-4,
        atol=1e-5,
    ),
    Case(
        "log_softmax",
        relay.nn.log_softmax,
        [MATRIX],
        by_torch(lambda x: functional.log_softmax(x, -1)),
        gradient=True,
    ),
    Case(
        "log_softmax_of_large",
        lambda x: relay.nn.log_softmax(x, axis=0),
        [WIDE],
        by_torch(lambda x: functional.log_softmax(x, 0)),
    ),
    Case("dropout", relay.nn.dropout, [MATRIX], lambda x: x),
    Case(
        "dropout_raw",
        lambda x: relay.nn.dropout_raw(x, 0.3).astuple(),
        [MATRIX],
        lambda x: (x, np.ones_like(x)),
    ),
]

PADDING = [
    Case(
        "pad",
        lambda x: relay.nn.pad(x, ((1, 2), (0, 3)), 1.5),
        [MATRIX],
        lambda x: np.pad(x, ((1, 2), (0, 3)), constant_values=1.5),
    ),
    Case(
        "pad_by_less_than_nothing",
        lambda x: relay.nn.pad(x, ((-1, 1), (0, -2))),
        [MATRIX],
        lambda x: np.pad(x[1:, :-2], ((0, 1), (0, 0))),
    ),
    Case(
        "pad_with_an_argument",
        lambda x, v: relay.nn.pad(x, ((1, 1), (2, 0)), v),
        [Input((2, 3), "int32", -9, 9), Input((), "int32", 3, 9)],
        lambda x, v: np.pad(x, ((1, 1), (2, 0)), constant_values=v),
    ),
    Case(
        "pad_edge",
        lambda x: relay.nn.pad(x, ((1, 2), (3, 0)), pad_mode="edge"),
        [MATRIX],
        lambda x: np.pad(x, ((1, 2), (3, 0)), mode="edge"),
    ),
    Case(
        "pad_reflect",
        lambda x: relay.nn.pad(x, ((1, 2), (3, 0)), pad_mode="reflect"),
        [MATRIX],
        lambda x: np.pad(x, ((1, 2), (3, 0)), mode="reflect"),
    ),
    Case(
        "mirror_pad",
        lambda x: relay.nn.mirror_pad(x, ((1, 2), (3, 5))),
        [MATRIX],
        lambda x: np.pad(x, ((1, 2), (3, 5)), mode="symmetric"),
    ),
    Case(
        "mirror_pad_reflect",
        lambda x: relay.nn.mirror_pad(x, ((1, 2), (3, 4)), "REFLECT"),
        [MATRIX],
        lambda x: np.pad(x, ((1, 2), (3, 4)), mode="reflect"),
    ),
    Case("dilate", lambda x: relay.nn.dilate(x, (2, 3), 7.0), [MATRIX]),
]


def _blocks(x: np.ndarray) -> np.ndarray:
    """(1, 4, 6, 1) cut into blocks of 2 by 3."""
    return np.concatenate([x[:, i::2, j::3] for i in range(2) for j in range(3)])


def _shuffled_in_blocks(x: Any, groups: int) -> Any:
    n, outer, h, w, block = x.shape
    channels = [x[:, c // block, :, :, c % block] for c in range(outer * block)]
    size = len(channels) // groups
    dealt = [channels[group * size + place] for place in range(size) for group in range(groups)]
    return np.stack(dealt, 1).reshape(n, outer, block, h, w).transpose(0, 1, 3, 4, 2)


SPACE = [
    Case(
        "batch_flatten",
        relay.nn.batch_flatten,
        [IMAGE],
        lambda x: x.reshape(2, 60),
        gradient=True,
    ),
    Case(
        "channel_shuffle",
        lambda x: relay.nn.contrib_channel_shuffle(x, 3),
        [Input((2, 12, 2, 3))],
        by_torch(lambda x: functional.channel_shuffle(x, 3)),
        gradient=True,
        dynamic=False,
    ),
    Case(
        "channel_shuffle_of_whole_blocks",
        lambda x: relay.nn.contrib_channel_shuffle(x, 2, "NCHW4c"),
        [Input((1, 4, 2, 3, 4))],
        lambda x: _shuffled_in_blocks(x, 2),
        gradient=True,
        dynamic=False,
    ),
    Case(
        "channel_shuffle_across_blocks",
        lambda x: relay.nn.contrib_channel_shuffle(x, 3, "NCHW4c"),
        [Input((1, 3, 2, 3, 4))],
        lambda x: _shuffled_in_blocks(x, 3),
        dynamic=False,
    ),
    Case(
        "frames_to_rows",
        lambda x: relay.nn.contrib_frames_to_rows(x, 3, 2),
        [Input((6, 5, 4, 2))],
        lambda x: x.reshape(2, 3, 5, 2, 4).transpose(0, 3, 2, 1, 4).reshape(4, 5, 3, 4),
        gradient=True,
        dynamic=False,
    ),
    Case(
        "frames_to_rows_in_blocks",
        lambda x: relay.nn.contrib_frames_to_rows(x, 3, layout="NCHW4c"),
        [Input((3, 5, 4, 2, 4))],
        lambda x: x.transpose(1, 0, 2, 3, 4).reshape(1, 5, 3, 8, 4),
        gradient=True,
        dynamic=False,
    ),
    Case(
        "rows_to_frames",
        lambda x: relay.nn.contrib_rows_to_frames(x, 4, 2),
        [Input((4, 5, 3, 4))],
        lambda x: x.reshape(2, 2, 5, 3, 4).transpose(0, 3, 2, 1, 4).reshape(6, 5, 4, 2),
        gradient=True,
        dynamic=False,
    ),
    Case(
        "rows_to_frames_in_blocks",
        lambda x: relay.nn.contrib_rows_to_frames(x, 4, layout="NCHW4c"),
        [Input((1, 5, 3, 8, 4))],
        lambda x: x.reshape(5, 3, 4, 2, 4).transpose(1, 0, 2, 3, 4),
        gradient=True,
        dynamic=False,
    ),
    Case(
        "depth_to_space_crd",
        lambda x: relay.nn.depth_to_space(x, 2, mode="CRD"),
        [Input((1, 8, 2, 3))],
        by_torch(lambda x: functional.pixel_shuffle(x, 2)),
    ),
    Case(
        "depth_to_space_dcr",
        lambda x: relay.nn.depth_to_space(x, 2),
        [Input((1, 8, 2, 3))],
        lambda x: x.reshape(1, 2, 2, 2, 2, 3).transpose(0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 6),
    ),
    Case("depth_to_space_nhwc", lambda x: relay.nn.depth_to_space(x, 2, "NHWC"), [Input((1, 2, 3, 8))]),
    Case(
        "space_to_depth",
        lambda x: relay.nn.space_to_depth(x, 2),
        [Input((1, 2, 4, 6))],
        lambda x: np.concatenate([x[:, :, i::2, j::2] for i in range(2) for j in range(2)], axis=1),
    ),
    Case("space_to_depth_nhwc", lambda x: relay.nn.space_to_depth(x, 2, "NHWC"), [Input((1, 4, 6, 2))]),
    Case(
        "space_to_batch_nd",
        lambda x: relay.nn.space_to_batch_nd(x, [2, 3], [[0, 0], [0, 0]]),
        [Input((1, 4, 6, 1))],
        _blocks,
    ),
    Case(
        "space_to_batch_nd_padded",
        lambda x: relay.nn.space_to_batch_nd(x, [2, 3], [[1, 0], [1, 2]], 9.0),
        [Input((1, 3, 3, 1))],
        lambda x: _blocks(np.pad(x, ((0, 0), (1, 0), (1, 2), (0, 0)), constant_values=9)),
    ),
    Case(
        "batch_to_space_nd",
        lambda x: relay.nn.batch_to_space_nd(
            relay.nn.space_to_batch_nd(x, [2, 3], [[1, 0], [1, 2]]), [2, 3], [[1, 0], [1, 2]]
        ),
        [Input((2, 3, 3, 2))],
        lambda x: x,
    ),
    Case(
        "fifo_buffer",
        lambda x, b: relay.nn.fifo_buffer(x, b, axis=1),
        [Input((2, 2, 3)), Input((2, 5, 3))],
        lambda x, b: np.concatenate([b[:, 2:], x], axis=1),
    ),
    Case(
        "upsampling",
        lambda x: relay.nn.upsampling(x, 2, 3),
        [Input((1, 2, 3, 2))],
        lambda x: x.repeat(2, axis=2).repeat(3, axis=3),
    ),
    Case(
        "upsampling_bilinear",
        lambda x: relay.nn.upsampling(x, 2.5, 2, method="bilinear"),
        [Input((1, 2, 4, 3))],
    ),
    Case(
        "upsampling_bilinear_corners",
        lambda x: relay.nn.upsampling(x, 2, 2, method="bilinear", align_corners=True),
        [Input((1, 2, 4, 3))],
        by_torch(lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)),
    ),
    Case(
        "upsampling_nhwc",
        lambda x: relay.nn.upsampling(x, 2, 2, layout="NHWC"),
        [Input((1, 3, 2, 2))],
        lambda x: x.repeat(2, axis=1).repeat(2, axis=2),
    ),
    Case(
        "upsampling3d",
        lambda x: relay.nn.upsampling3d(x, 2, 2, 2, method="trilinear"),
        [Input((1, 2, 2, 3, 2))],
        by_torch(lambda x: functional.interpolate(x, scale_factor=2, mode="trilinear")),
    ),
]

CASES = [*ACTIVATIONS, *PADDING, *SPACE]
