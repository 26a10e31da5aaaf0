"""Cases of the operators whose shapes the program computes.

The numbers of elements of the arguments that hold shapes are part of the type, so these run with known input shapes;
their results have unknown dimensions all the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.relay.op.cases import Case, Input

from tilewright import relay


def _numbers(*values: Any, dtype: str = "int64") -> Input:
    return Input(values=list(values), dtype=dtype)


def _number(value: Any, dtype: str = "int64") -> Input:
    return Input(values=value, dtype=dtype)


SLICES: list[tuple[str, list[int], list[int], list[int] | None, str, Any]] = [
    ("plain", [0, 1], [2, 3], None, "end", np.s_[0:2, 1:3]),
    ("strides", [0, 2, 3], [2, -9, 0], [1, -1, -2], "end", np.s_[0:2, ::-1, 3:0:-2]),
    ("negative", [-1, -3, 1], [99, -1, 99], [1, 1, 2], "end", np.s_[-1:99, -3:-1, 1:99:2]),
    ("empty", [1], [1], None, "end", np.s_[1:1]),
    ("size", [0, 1, 2], [1, -1, 9], [1, 1, 1], "size", np.s_[0:1, 1:, 2:]),
]


def _slice(mode: str, strides: list[int] | None) -> Any:
    if strides is None:
        return lambda x, begin, end: relay.strided_slice(x, begin, end, slice_mode=mode)
    return lambda x, begin, end, steps: relay.strided_slice(x, begin, end, steps, slice_mode=mode)


CASES = [
    Case(
        f"dyn_reshape_{number}",
        relay.reshape,
        [Input((2, 3, 4)), _numbers(*codes)],
        lambda x, codes, made=made: x.reshape(made),
        gradient=number == 0,
        dynamic=False,
    )
    for number, (codes, made) in enumerate(
        [
            ((8, 3), (8, 3)),
            ((4, 0, 2), (4, 3, 2)),
            ((0, -1), (2, 12)),
            ((-1, 0), (8, 3)),
            ((-1,), (24,)),
            ((-3, 4), (6, 4)),
            ((0, -3), (2, 12)),
            ((1, 24, -1), (1, 24, 1)),
        ]
    )
]
CASES += [
    Case(
        f"dyn_strided_slice_{name}",
        _slice(mode, strides),
        [
            Input((2, 3, 4)),
            _numbers(*begin),
            _numbers(*end),
            *([] if strides is None else [_numbers(*strides)]),
        ],
        lambda x, *bounds, chosen=chosen: x[chosen],
        dynamic=False,
    )
    for name, begin, end, strides, mode, chosen in SLICES
]
CASES += [
    Case(
        "dyn_expand_dims",
        lambda x, axis: relay.expand_dims(x, axis, 2),
        [Input((2, 3)), _number(1)],
        lambda x, axis: x[:, None, None],
        dynamic=False,
    ),
    Case(
        "dyn_expand_dims_back",
        relay.expand_dims,
        [Input((2, 3)), _number(-1, "int32")],
        lambda x, axis: x[..., None],
        dynamic=False,
    ),
    Case(
        "dyn_squeeze",
        relay.squeeze,
        [Input((1, 3, 1, 2)), _numbers(0, -2)],
        lambda x, axes: x.reshape(3, 2),
        dynamic=False,
    ),
    Case(
        "dyn_broadcast_to",
        relay.broadcast_to,
        [Input((3, 1)), _numbers(2, 3, 4)],
        lambda x, shape: np.broadcast_to(x, (2, 3, 4)),
        gradient=True,
        dynamic=False,
    ),
    Case(
        "dyn_tile",
        relay.tile,
        [Input((2, 3)), _numbers(2, 1, 2, dtype="int32")],
        lambda x, reps: np.tile(x, (2, 1, 2)),
        dynamic=False,
    ),
    Case(
        "dyn_tile_short",
        relay.tile,
        [Input((2, 3)), _numbers(3)],
        lambda x, reps: np.tile(x, 3),
        dynamic=False,
    ),
    Case(
        "dyn_full",
        lambda x, shape: relay.full(x, shape, "float64"),
        [Input(()), _numbers(2, 3)],
        lambda x, shape: np.full((2, 3), x, "float64"),
        dynamic=False,
    ),
    Case(
        "dyn_zeros",
        lambda shape: relay.zeros(shape, "float32"),
        [_numbers(2, 3)],
        lambda shape: np.zeros((2, 3), "float32"),
        dynamic=False,
    ),
    Case(
        "dyn_ones",
        lambda shape: relay.ones(shape, "int32"),
        [_numbers(4, dtype="int32")],
        lambda shape: np.ones(4, "int32"),
        dynamic=False,
    ),
    Case(
        "dyn_one_hot",
        lambda i, depth: relay.one_hot(i, relay.const(1.0), relay.const(-1.0), depth, 0, "float32"),
        [Input((2, 3), "int32", 0, 4), _number(4)],
        lambda i, depth: np.where(np.arange(4)[:, None, None] == i, 1, -1).astype("float32"),
        dynamic=False,
    ),
    Case(
        "dyn_sparse_to_dense",
        lambda i, shape, v: relay.sparse_to_dense(i, shape, v, relay.const(1.0)),
        [_numbers([0, 1], [2, 3]), _numbers(3, 4), Input(values=[5.0, 6.0])],
        lambda i, shape, v: np.array([[1, 5, 1, 1], [1, 1, 1, 1], [1, 1, 1, 6]], "float32"),
        dynamic=False,
    ),
    Case(
        "dyn_topk",
        lambda x, k: relay.topk(x, k, 1, dtype="int64").astuple(),
        [Input(values=[[3, 1, 2], [7, 9, 8]]), _number(2)],
        lambda x, k: (
            np.array([[3, 2], [9, 8]], "float32"),
            np.array([[0, 2], [1, 2]], "int64"),
        ),
        dynamic=False,
    ),
    Case(
        "dyn_topk_all_values",
        lambda x, k: relay.topk(x, k, 0, "values", True),
        [Input(values=[3, 1, 2]), _numbers(0, dtype="int32")],
        lambda x, k: np.array([1, 2, 3], "float32"),
        dynamic=False,
    ),
    Case(
        "dyn_pad",
        lambda x, widths: relay.nn.pad(x, widths, relay.const(2.5)),
        [Input((2, 3)), _numbers([1, 0], [2, 1])],
        lambda x, widths: np.pad(x, ((1, 0), (2, 1)), constant_values=2.5),
        dynamic=False,
    ),
    Case(
        "dyn_pad_edge",
        lambda x, widths: relay.nn.pad(x, widths, relay.const(0.0), "edge"),
        [Input((2, 3)), _numbers([1, 2], [2, 4], dtype="int32")],
        lambda x, widths: np.pad(x, ((1, 2), (2, 4)), mode="edge"),
        dynamic=False,
    ),
    Case(
        "dyn_pad_reflect",
        lambda x, widths: relay.nn.pad(x, widths, relay.const(0.0), "reflect"),
        [Input((3, 4)), _numbers([1, 2], [3, 1])],
        lambda x, widths: np.pad(x, ((1, 2), (3, 1)), mode="reflect"),
        dynamic=False,
    ),
]
CASES += [
    Case(
        "dyn_pad_less",
        lambda x, widths: relay.nn.pad(x, widths, relay.const(1.0)),
        [Input((4, 5)), _numbers([-1, 0], [1, -2])],
        lambda x, widths: np.pad(x[1:, :3], ((0, 0), (1, 0)), constant_values=1),
        dynamic=False,
    ),
    Case(
        "dyn_upsampling",
        lambda x, h, w: relay.nn.upsampling(x, h, w),
        [Input((1, 2, 3, 4)), _number(2.0, "float32"), _number(1.5, "float32")],
        lambda x, h, w: x.repeat(2, 2)[..., [0, 0, 1, 2, 2, 3]],
        dynamic=False,
    ),
    Case(
        "dyn_upsampling_bilinear",
        lambda x, h: relay.nn.upsampling(x, h, 1, "NHWC", "bilinear", True),
        [Input((1, 3, 2, 2)), _number(5 / 3, "float64")],
        lambda x, h: np.stack(
            [x[:, 0], (x[:, 0] + x[:, 1]) / 2, x[:, 1], (x[:, 1] + x[:, 2]) / 2, x[:, 2]], axis=1
        ),
        dynamic=False,
    ),
    Case(
        "dyn_upsampling3d",
        lambda x, d, h, w: relay.nn.upsampling3d(x, d, h, w, coordinate_transformation_mode="asymmetric"),
        [Input((1, 1, 2, 3, 2)), *[_number(scale, "float32") for scale in (2.0, 1.0, 3.0)]],
        lambda x, d, h, w: x.repeat(2, 2).repeat(3, 4),
        dynamic=False,
    ),
    Case(
        "dyn_resize2d",
        lambda x, size: relay.image.resize2d(
            x, size, method="nearest_neighbor", coordinate_transformation_mode="asymmetric"
        ),
        [Input((1, 2, 3, 4)), _numbers(6, 2)],
        lambda x, size: x.repeat(2, 2)[..., ::2],
        dynamic=False,
    ),
    Case(
        "dyn_resize2d_linear",
        lambda x, size: relay.image.resize2d(x, size, "NHWC", coordinate_transformation_mode="align_corners"),
        [Input((1, 3, 2, 2)), _numbers(5, 2, dtype="int32")],
        lambda x, size: np.stack(
            [x[:, 0], (x[:, 0] + x[:, 1]) / 2, x[:, 1], (x[:, 1] + x[:, 2]) / 2, x[:, 2]], axis=1
        ),
        dynamic=False,
    ),
]
