"""Cases of the operators that change shape, order and element type, that join, cut and repeat."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.relay.op.cases import Case, Input

from tilewright import relay

CUBE = Input((2, 3, 4))
INTEGERS = Input((2, 3, 4), "int32", -100, 100)


def _tuple(wrapper: Any) -> Any:
    return wrapper.astuple()


CASTING = [
    Case(
        "cast_to_float64",
        lambda x: relay.cast(x, "float64"),
        [CUBE],
        lambda x: x.astype("float64"),
        gradient=True,
    ),
    Case(
        "cast_to_int32",
        lambda x: relay.cast(x, "int32"),
        [Input((3, 5), low=-9.0, high=9.0)],
        lambda x: np.trunc(x).astype("int32"),
    ),
    Case("cast_to_bool", lambda x: relay.cast(x, "bool"), [Input((7,), "int32", -1, 2)], lambda x: x != 0),
    Case(
        "cast_from_bool", lambda x: x.astype("float32"), [Input((7,), "bool")], lambda x: x.astype("float32")
    ),
    Case(
        "cast_to_int8",
        lambda x: relay.cast(x, "int8"),
        [Input((9,), "int32", -300, 300)],
        lambda x: x.astype("int8"),
    ),
    Case("cast_to_float16", lambda x: relay.cast(x, "float16"), [Input((9,))], lambda x: x.astype("float16")),
    Case("cast_scalar", lambda x: relay.cast(x, "int64"), [Input(dtype="uint8", values=200)]),
    Case(
        "cast_like",
        relay.cast_like,
        [Input((2, 3)), Input((5,), "float64")],
        lambda x, like: x.astype("float64"),
        gradient=True,
    ),
    Case(
        "reinterpret",
        lambda x: relay.reinterpret(x, "int32"),
        [Input((2, 3))],
        lambda x: x.view("int32"),
    ),
    Case(
        "reinterpret_uint16",
        lambda x: relay.reinterpret(x, "float16"),
        [Input(values=[0x3C00, 0xC000, 0x7C00], dtype="uint16")],
        lambda x: np.array([1, -2, np.inf], "float16"),
    ),
]

RESHAPING = [
    Case(f"reshape_{number}", lambda x, codes=codes: relay.reshape(x, codes), [Input(shape)],
         lambda x, made=made: x.reshape(made), gradient=True)
    for number, (shape, codes, made) in enumerate(
        [
            ((2, 3, 4), (8, 3), (8, 3)),
            ((2, 3, 4), (4, 0, 2), (4, 3, 2)),
            ((2, 3, 4), (2, 0, 0), (2, 3, 4)),
            ((2, 3, 4), (0, -1), (2, 12)),
            ((2, 3, 4), (-1, 0), (8, 3)),
            ((2, 3, 4), -1, (24,)),
            ((2, 3, 4), (-2,), (2, 3, 4)),
            ((2, 3, 4), (2, -2), (2, 3, 4)),
            ((2, 3, 4), (-2, 1, 1), (2, 3, 4, 1, 1)),
            ((2, 3, 4), (-3, 4), (6, 4)),
            ((2, 3, 4, 5), (-3, -3), (6, 20)),
            ((2, 3, 4), (0, -3), (2, 12)),
            ((2, 3, 4), (-4, 1, 2, -2), (1, 2, 3, 4)),
            ((2, 3, 4), (2, -4, -1, 3, -2), (2, 1, 3, 4)),
            ((1,), (), ()),
            ((), (1, -1), (1, 1)),
        ]
    )
]  # fmt: skip
RESHAPING += [
    Case(
        "reshape_empty",
        lambda x: relay.reshape(x, (0, 5), allowzero=True),
        [Input((3, 0))],
        lambda x: x.reshape(0, 5),
        dynamic=False,
    ),
    Case("reshape_int8", lambda x: relay.reshape(x, (3, -1)), [Input((6, 2), "int8", -9, 9)]),
    Case(
        "reverse_reshape",
        lambda x: relay.reverse_reshape(x, (-1, 0)),
        [Input((5, 3, 4))],
        lambda x: x.reshape(15, 4),
        gradient=True,
    ),
    Case(
        "reverse_reshape_joined",
        lambda x: relay.reverse_reshape(x, (0, -3)),
        [Input((2, 3, 4))],
        lambda x: x.reshape(2, 12),
    ),
    Case(
        "reshape_like",
        relay.reshape_like,
        [Input((3, 8)), Input((2, 3, 4), "int32")],
        lambda x, like: x.reshape(2, 3, 4),
        gradient=True,
    ),
    Case(
        "reshape_like_ranges",
        lambda x, like: relay.reshape_like(x, like, lhs_begin=1, lhs_end=3, rhs_begin=0, rhs_end=1),
        [Input((2, 3, 4)), Input((12, 5))],
        lambda x, like: x.reshape(2, 12),
    ),
    Case(
        "expand_dims",
        lambda x: relay.expand_dims(x, 1, 2),
        [Input((2, 3))],
        lambda x: x[:, None, None],
        gradient=True,
    ),
    Case("expand_dims_back", lambda x: relay.expand_dims(x, -1), [Input((2, 3))], lambda x: x[..., None]),
    Case("expand_dims_front", lambda x: relay.expand_dims(x, -3), [Input((2, 3))], lambda x: x[None]),
    Case("expand_dims_scalar", lambda x: relay.expand_dims(x, 0), [Input(())], lambda x: x.reshape(1)),
    Case(
        "squeeze",
        relay.squeeze,
        [Input((1, 3, 1, 2))],
        lambda x: x.reshape(3, 2),
        gradient=True,
        dynamic=False,
    ),
    Case(
        "squeeze_axes",
        lambda x: relay.squeeze(x, [0, -2]),
        [Input((1, 3, 1, 1))],
        lambda x: x.reshape(3, 1),
        gradient=True,
    ),
    Case("squeeze_to_scalar", lambda x: relay.squeeze(x, 0), [Input((1,))], lambda x: x.reshape(())),
]

PERMUTING = [
    Case("transpose", relay.transpose, [CUBE], np.transpose, gradient=True),
    Case(
        "transpose_axes",
        lambda x: relay.transpose(x, (1, -1, 0)),
        [CUBE],
        lambda x: x.transpose(1, 2, 0),
        gradient=True,
    ),
    Case("transpose_int", lambda x: relay.transpose(x, [0, 2, 1]), [INTEGERS]),
    Case("reverse", lambda x: relay.reverse(x, 1), [CUBE], lambda x: x[:, ::-1], gradient=True),
    Case("reverse_back", lambda x: relay.reverse(x, -1), [INTEGERS], lambda x: x[..., ::-1]),
    Case(
        "reverse_sequence",
        lambda x, n: relay.reverse_sequence(x, n, 0, 1),
        [Input(values=np.arange(16).reshape(4, 4)), Input(values=[1, 2, 3, 4], dtype="int32")],
        lambda x, n: np.array([[0, 5, 10, 15], [4, 1, 6, 11], [8, 9, 2, 7], [12, 13, 14, 3]], "float32"),
    ),
    Case(
        "reverse_sequence_batch",
        relay.reverse_sequence,
        [Input((2, 5, 3)), Input(values=[3, 5], dtype="int64")],
        lambda x, n: np.stack([np.concatenate([x[0, 2::-1], x[0, 3:]]), x[1, ::-1]]),
    ),
    Case(
        "layout_transform",
        lambda x: relay.layout_transform(x, "NCHW", "NCHW4c"),
        [Input((2, 8, 3, 2))],
        lambda x: x.reshape(2, 2, 4, 3, 2).transpose(0, 1, 3, 4, 2),
        gradient=True,
        dynamic=False,
    ),
    Case(
        "layout_transform_plain",
        lambda x: relay.layout_transform(x, "NCHW", "NHWC"),
        [Input((2, 3, 4, 5))],
        lambda x: x.transpose(0, 2, 3, 1),
        gradient=True,
    ),
    Case(
        "layout_transform_blocks",
        lambda x: relay.layout_transform(x, "NCHW2c", "NCHW4c"),
        [Input((1, 4, 2, 3, 2))],
        lambda x: (
            x.transpose(0, 1, 4, 2, 3).reshape(1, 8, 2, 3).reshape(1, 2, 4, 2, 3).transpose(0, 1, 3, 4, 2)
        ),
        dynamic=False,
    ),
    Case(
        "layout_transform_weights",
        lambda x: relay.layout_transform(x, "OIHW", "OIHW2i4o"),
        [Input((8, 4, 3, 3))],
        lambda x: x.reshape(2, 4, 2, 2, 3, 3).transpose(0, 2, 4, 5, 3, 1),
        dynamic=False,
    ),
    Case(
        "auto_scheduler_layout_transform",
        lambda x: relay.op.transform.auto_scheduler_layout_transform(x, "6n8c", "2n4c3n2c"),
        [Input((6, 8))],
        lambda x: x.reshape(2, 3, 4, 2).transpose(0, 2, 1, 3),
        dynamic=False,
    ),
]

JOINING = [
    Case(
        "concatenate",
        lambda x, y, z: relay.concatenate((x, y, z), 1),
        [Input((2, 3)), Input((2, 1)), Input((2, 4))],
        lambda *fields: np.concatenate(fields, 1),
        gradient=True,
    ),
    Case(
        "concatenate_back",
        lambda x, y: relay.concatenate([x, y], -2),
        [Input((1, 3), "int8", -9, 9), Input((4, 3), "int8", -9, 9)],
        lambda *fields: np.concatenate(fields, 0),
    ),
    Case("concatenate_one", lambda x: relay.concatenate([x], 0), [Input((2, 3))], np.copy, gradient=True),
    Case(
        "stack",
        lambda x, y, z: relay.stack((x, y, z), 1),
        [Input((2, 3))] * 3,
        lambda *fields: np.stack(fields, 1),
        gradient=True,
    ),
    Case(
        "stack_back",
        lambda x, y: relay.stack([x, y], -1),
        [Input((2, 3), "int64", -9, 9)] * 2,
        lambda *fields: np.stack(fields, -1),
    ),
    Case(
        "stack_scalars", lambda x, y: relay.stack([x, y], 0), [Input(()), Input(())], lambda *f: np.stack(f)
    ),
    Case(
        "split",
        lambda x: _tuple(relay.split(x, 3, 1)),
        [Input((2, 6))],
        lambda x: tuple(np.split(x, 3, 1)),
    ),
    Case(
        "split_places",
        lambda x: _tuple(relay.split(x, (1, 4), -1)),
        [Input((2, 6), "int32", -9, 9)],
        lambda x: tuple(np.split(x, [1, 4], -1)),
    ),
    Case(
        "split_one_part",
        lambda x: relay.split(x, (2, 3), 0)[1],
        [Input((5, 2))],
        lambda x: x[2:3],
    ),
    Case(
        "meshgrid",
        lambda x, y, z: _tuple(relay.meshgrid([x, y, z])),
        [Input((2,)), Input((3,)), Input((4,))],
        lambda *fields: tuple(np.meshgrid(*fields, indexing="ij")),
    ),
    Case(
        "meshgrid_xy",
        lambda x, y: _tuple(relay.meshgrid([x, y], "xy")),
        [Input((2,), "int32", -9, 9), Input((3,), "int32", -9, 9)],
        lambda *fields: tuple(np.meshgrid(*fields)),
    ),
]

SLICES: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    ("plain", ([0, 1, 1], [2, 3, 3]), {}, np.s_[0:2, 1:3, 1:3]),
    ("strides", ([0, 0, 3], [2, 3, 0], [1, 2, -2]), {}, np.s_[0:2, 0:3:2, 3:0:-2]),
    ("negative", ([-1, -3], [100, -1]), {}, np.s_[-1:100, -3:-1]),
    ("short", ([1], [2]), {}, np.s_[1:2]),
    ("backwards", ([1, 2, 3], [-9, -9, -9], [-1, -1, -1]), {}, np.s_[::-1, ::-1, ::-1]),
    ("missing", ([None, 1], [None, None], [-1, 1]), {}, np.s_[::-1, 1:]),
    ("axes", ([1, 0], [3, 2]), {"axes": [-1, 1]}, np.s_[:, 0:2, 1:3]),
    ("one_axis", ([-1], [-99], [-2]), {"axes": [2]}, np.s_[..., ::-2]),
    ("size", ([0, 1, 2], [1, -1, 2]), {"slice_mode": "size"}, np.s_[0:1, 1:, 2:4]),
    ("size_clipped", ([1, 1], [9, 1]), {"slice_mode": "size"}, np.s_[1:, 1:2]),
]

SLICING = [
    Case(
        f"strided_slice_{name}",
        lambda x, bounds=bounds, more=more: relay.strided_slice(x, *bounds, **more),
        [CUBE],
        lambda x, chosen=chosen: x[chosen],
        gradient=True,
    )
    for name, bounds, more, chosen in SLICES
]
SLICING += [
    Case(
        "strided_slice_empty",
        lambda x: relay.strided_slice(x, [2], [1]),
        [Input((4, 3))],
        lambda x: x[2:1],
    ),
    Case(
        "strided_slice_backwards_empty",
        lambda x: relay.strided_slice(x, [-99, 1], [None, 3], [-1, 1]),
        [Input((4, 3))],
        lambda x: x[-99::-1, 1:3],
    ),
    Case(
        "strided_set",
        lambda x, v: relay.strided_set(x, v, [0, 3], [4, 0], [2, -1]),
        [Input((4, 4)), Input((2, 3))],
        lambda x, v: _replaced(x, np.s_[0:4:2, 3:0:-1], v),
    ),
    Case(
        "strided_set_negative",
        lambda x, v: relay.strided_set(x, v, [-2], [99]),
        [Input((4, 3), "int32", -9, 9), Input((2, 3), "int32", -9, 9)],
        lambda x, v: _replaced(x, np.s_[-2:], v),
    ),
    Case(
        "slice_like",
        relay.slice_like,
        [Input((3, 4, 5)), Input((2, 3))],
        lambda x, like: x[:2, :3],
    ),
    Case(
        "slice_like_axes",
        lambda x, like: relay.slice_like(x, like, (-1, 0)),
        [Input((3, 4, 5)), Input((2, 9, 3))],
        lambda x, like: x[:2, :, :3],
    ),
]


def _replaced(data: Any, chosen: Any, values: Any) -> Any:
    made = data.copy()
    made[chosen] = values
    return made


BROADCASTING = [
    Case(
        "broadcast_to",
        lambda x: relay.broadcast_to(x, (2, 3, 4)),
        [Input((3, 1))],
        lambda x: np.broadcast_to(x, (2, 3, 4)),
        gradient=True,
    ),
    Case(
        "broadcast_to_scalar",
        lambda x: relay.broadcast_to(x, (2, 2)),
        [Input((), "int32", 1, 9)],
        lambda x: np.broadcast_to(x, (2, 2)),
    ),
    Case(
        "broadcast_to_like",
        relay.broadcast_to_like,
        [Input((4, 1)), Input((2, 4, 3))],
        lambda x, like: np.broadcast_to(x, (2, 4, 3)),
        gradient=True,
    ),
    Case(
        "collapse_sum_like",
        relay.collapse_sum_like,
        [Input((2, 3, 4)), Input((3, 1))],
        lambda x, like: x.sum(axis=(0, 2))[:, None],
        gradient=True,
    ),
    Case(
        "collapse_sum_like_same",
        relay.collapse_sum_like,
        [Input((2, 3), "int32", -9, 9), Input((2, 3))],
        lambda x, like: x,
    ),
    Case(
        "collapse_sum_to",
        lambda x: relay.collapse_sum_to(x, (1, 4)),
        [Input((2, 3, 4))],
        lambda x: x.sum(axis=(0, 1))[None],
        gradient=True,
        dynamic=False,
    ),
    Case(
        "collapse_sum_to_scalar",
        lambda x: relay.collapse_sum_to(x, ()),
        [Input((2, 3))],
        lambda x: x.sum(),
        dynamic=False,
    ),
    Case("repeat", lambda x: relay.repeat(x, 3, 1), [Input((2, 3))], lambda x: x.repeat(3, 1)),
    Case(
        "repeat_back",
        lambda x: relay.repeat(x, 2, -1),
        [Input((2, 3), "int8", -9, 9)],
        lambda x: x.repeat(2, -1),
    ),
    Case("tile", lambda x: relay.tile(x, (2, 1, 3)), [Input((2, 3))], lambda x: np.tile(x, (2, 1, 3))),
    Case("tile_short", lambda x: relay.tile(x, (2,)), [Input((2, 3))], lambda x: np.tile(x, 2)),
    Case(
        "where",
        relay.where,
        [Input((2, 3), "bool"), Input((2, 3)), Input((2, 3))],
        np.where,
        gradient=True,
    ),
    Case(
        "where_broadcast",
        relay.where,
        [Input((3, 1), "bool"), Input((2, 1, 4)), Input(())],
        np.where,
        gradient=True,
    ),
    Case(
        "where_number",
        relay.where,
        [Input((2, 3), "int32", 0, 2), Input((2, 3), "int64", -9, 9), Input((3,), "int64", -9, 9)],
        lambda c, x, y: np.where(c != 0, x, y),
    ),
]

CASES = CASTING + RESHAPING + PERMUTING + JOINING + SLICING + BROADCASTING
