"""Cases of the operators that read and write at indices that are data."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from tests.relay.op.cases import Case, Input

from tilewright import relay


def _index(values: Any, dtype: str = "int32") -> Input:
    return Input(values=values, dtype=dtype)


def _torch(function: Any) -> Any:
    return lambda *arrays: function(*[torch.from_numpy(one) for one in arrays]).numpy()


def _added(data: Any, place: Any, values: Any) -> Any:
    made = data.copy()
    np.add.at(made, place, values)
    return made


def _put(data: Any, place: Any, values: Any) -> Any:
    made = data.copy()
    made[place] = values
    return made


TAKING = [
    Case(
        "check_indices",
        lambda i, x: relay.check_indices(i, x, "here", axes=(1,), from_back=True),
        [_index([[0, 3], [-4, 1]], "int64"), Input((2, 4, 3))],
        lambda i, x: i,
    ),
    Case(
        "check_indices_of_vectors",
        lambda i, x: relay.check_indices(i, x, "here", axes=(0, 1), vectors=True, from_back=True),
        [_index([[0, -2], [3, -4]], "int16"), Input((2, 4, 3))],
        lambda i, x: i,
    ),
    Case(
        "check_indices_flat",
        lambda i, x: relay.check_indices(i, x, "here"),
        [_index([0, 23], "uint8"), Input((2, 4, 3))],
        lambda i, x: i,
    ),
    *(
        Case(
            f"gather_{dtype}",
            lambda x, i: relay.gather(x, 1, i),
            [Input((2, 300)), _index([[0, 127, 5], [3, 1, 100]], dtype)],
            lambda x, i: np.take_along_axis(x, i.astype("int64"), 1),
        )
        for dtype in ("int8", "int16", "uint8", "uint16", "uint32", "uint64")
    ),
    Case(
        "gather_int8_from_back",
        lambda x, i: relay.gather(x, 1, i),
        [Input((2, 300)), _index([[-1, -128, 5], [3, 1, -100]], "int8")],
        lambda x, i: np.take_along_axis(x, i.astype("int64"), 1),
    ),
    Case(
        "gather_nd_int8_from_back",
        relay.gather_nd,
        [Input((300,)), _index([[-1, -128, 5]], "int8")],
        lambda x, i: x[i[0]],
    ),
    Case(
        "scatter_int8_from_back",
        lambda x, i, u: relay.scatter(x, i, u, 0),
        [Input((300,)), _index([-1, -128, 5], "int8"), Input((3,))],
        lambda x, i, u: _put(x, i, u),
    ),
    Case(
        "take",
        lambda x, i: relay.take(x, i, axis=1),
        [Input((2, 4, 3)), _index([[0, 3], [1, 1]])],
        lambda x, i: np.take(x, i, 1),
        gradient=True,
    ),
    Case(
        "take_flat",
        relay.take,
        [Input((3, 4)), _index([11, 0, 5, 5], "int64")],
        lambda x, i: x.reshape(-1)[i],
        gradient=True,
    ),
    Case(
        "take_scalar",
        lambda x, i: relay.take(x, i, axis=-1),
        [Input((3, 4), "int8", -9, 9), _index(2)],
        lambda x, i: x[:, 2],
    ),
    Case(
        "take_clip",
        lambda x, i: relay.take(x, i, axis=0),
        [Input((4, 2)), _index([-2, 1, 9])],
        lambda x, i: x[[0, 1, 3]],
        gradient=True,
    ),
    Case(
        "take_wrap",
        lambda x, i: relay.take(x, i, axis=0, mode="wrap"),
        [Input((4, 2)), _index([-1, 5, 2])],
        lambda x, i: x[[3, 1, 2]],
        gradient=True,
    ),
    Case(
        "take_fast",
        lambda x, i: relay.take(x, i, axis=1, mode="fast"),
        [Input((2, 5)), _index([4, 0])],
        lambda x, i: x[:, [4, 0]],
        gradient=True,
    ),
    Case(
        "take_batch",
        lambda x, i: relay.take(x, i, axis=1, batch_dims=1),
        [Input((2, 4, 3)), _index([[0, 3, 1], [2, 2, 0]])],
        lambda x, i: np.stack([x[0, i[0]], x[1, i[1]]]),
    ),
    Case(
        "gather",
        lambda x, i: relay.gather(x, 1, i),
        [Input((3, 4)), _index([[0, 3], [1, 1], [2, 0]], "int64")],
        _torch(lambda x, i: torch.gather(x, 1, i)),
        gradient=True,
    ),
    Case(
        "gather_short",
        lambda x, i: relay.gather(x, -2, i),
        [Input((3, 4)), _index([[2, 0, 1]], "int64")],
        _torch(lambda x, i: torch.gather(x, 0, i)),
        gradient=True,
    ),
    Case(
        "gather_negative",
        lambda x, i: relay.gather(x, 0, i),
        [Input((3,), "int32", -9, 9), _index([-1, 0])],
        lambda x, i: x[[2, 0]],
    ),
    Case(
        "gather_nd",
        relay.gather_nd,
        [Input((3, 4, 2)), _index([[0, 2, 2], [3, 1, 1]])],
        lambda x, i: x[tuple(i)],
        gradient=True,
        dynamic=False,
    ),
    Case(
        "gather_nd_whole",
        relay.gather_nd,
        [Input((2, 3)), _index([[1, 0], [2, 1]], "int64")],
        lambda x, i: x[tuple(i)],
        gradient=True,
        dynamic=False,
    ),
    Case(
        "gather_nd_batch",
        lambda x, i: relay.gather_nd(x, i, batch_dims=1, index_rank=1),
        [Input((2, 3, 2)), _index([[[0, 2], [1, 1]]])],
        lambda x, i: np.stack([x[0, i[0, 0]], x[1, i[0, 1]]]),
    ),
    Case(
        "adv_index",
        lambda x, i, j: relay.adv_index([x, i, j]),
        [Input((3, 4, 2)), _index([[0], [2]]), _index([1, 3, -1])],
        lambda x, i, j: x[i, j],
    ),
    Case(
        "unravel_index",
        relay.unravel_index,
        [_index([22, 41, 37], "int64"), _index([7, 6], "int64")],
        lambda i, shape: np.array([[3, 6, 6], [4, 5, 1]], "int64"),
        dynamic=False,
    ),
    Case(
        "unravel_index_matrix",
        lambda i: relay.unravel_index(i, (3, 4, 5)),
        [_index([[59, 0], [33, 21]])],
        lambda i: np.stack(np.unravel_index(i, (3, 4, 5))).astype("int32"),
    ),
]

SCATTERING = [
    Case(
        "scatter",
        lambda x, i, v: relay.scatter(x, i, v, 1),
        [Input((3, 4)), _index([[0, 3], [2, 1], [1, 2]], "int64"), Input((3, 2))],
        _torch(lambda x, i, v: x.scatter(1, i, v)),
    ),
    Case(
        "scatter_last_wins",
        lambda x, i, v: relay.scatter(x, i, v, 0),
        [Input((4,)), _index([1, 1, -1, 9]), Input(values=[1, 2, 3, 4])],
        lambda x, i, v: np.array([x[0], 2, x[2], 3], "float32"),
    ),
    Case(
        "scatter_add",
        lambda x, i, v: relay.scatter_add(x, i, v, 0),
        [Input((3, 4)), _index([[0, 1, 2, 0], [0, 1, 1, 2]], "int64"), Input((2, 4))],
        _torch(lambda x, i, v: x.scatter_add(0, i, v)),
    ),
    Case(
        "scatter_add_int",
        lambda x, i, v: relay.scatter_add(x, i, v, -1),
        [Input((2, 3), "int32", -9, 9), _index([[0, 0, 0], [2, 2, 1]], "int64"), Input((2, 3), "int32")],
        _torch(lambda x, i, v: x.scatter_add(1, i, v)),
    ),
    Case(
        "scatter_nd",
        relay.scatter_nd,
        [Input((3, 4)), _index([[0, 2], [3, 1]]), Input((2,))],
        lambda x, i, v: _put(x, tuple(i), v),
        dynamic=False,
    ),
    Case(
        "scatter_nd_add",
        lambda x, i, v: relay.scatter_nd(x, i, v, "add"),
        [Input((3, 4)), _index([[0, 2, 0]]), Input((3, 4))],
        lambda x, i, v: _added(x, tuple(i), v),
        dynamic=False,
    ),
    Case(
        "segment_sum",
        relay.op.transform.segment_sum,
        [Input((4, 3)), _index([0, 0, 2, 1])],
        lambda x, i: np.stack([x[0] + x[1], x[3], x[2]]),
        dynamic=False,
    ),
    Case(
        "segment_sum_more",
        lambda x, i: relay.op.transform.segment_sum(x, i, 4),
        [Input((3,)), _index([2, 0, 2])],
        lambda x, i: np.array([x[1], 0, x[0] + x[2], 0], "float32"),
        dynamic=False,
    ),
]

SCANNING = [
    Case("cumsum", lambda x: relay.cumsum(x, 1), [Input((2, 4, 3))], lambda x: x.cumsum(1), gradient=True),
    Case("cumsum_flat", relay.cumsum, [Input((2, 3))], lambda x: x.cumsum(), gradient=True),
    Case(
        "cumsum_exclusive",
        lambda x: relay.cumsum(x, -1, exclusive=True),
        [Input((2, 5))],
        lambda x: np.cumsum(np.pad(x, ((0, 0), (1, 0)))[:, :-1], -1),
        gradient=True,
    ),
    Case(
        "cumsum_int64",
        lambda x: relay.cumsum(x, 0, "int64"),
        [Input((6,), "int8", 90, 127)],
        lambda x: x.cumsum(dtype="int64"),
    ),
    Case(
        "cumsum_int8",
        lambda x: relay.cumsum(x, 0),
        [Input((6,), "int8", 90, 127)],
        lambda x: x.cumsum(dtype="int8"),
    ),
    Case(
        "cumsum_bool", lambda x: relay.cumsum(x, 0), [Input((6,), "bool")], lambda x: x.cumsum(dtype="int32")
    ),
    Case("cumprod", lambda x: relay.cumprod(x, 0), [Input((4, 3))], lambda x: x.cumprod(0)),
    Case(
        "cumprod_exclusive",
        lambda x: relay.cumprod(x, 0, exclusive=True),
        [Input((5,), "int32", 1, 4)],
        lambda x: np.concatenate([[1], x.cumprod(dtype="int32")[:-1]]).astype("int32"),
    ),
    Case(
        "unique",
        lambda x: relay.unique(x).astuple(),
        [_index([4, 5, 1, 2, 3, 3, 4, 5])],
        lambda x: (
            np.array([1, 2, 3, 4, 5], "int32"),
            np.array([2, 3, 4, 0, 1], "int32"),
            np.array([3, 4, 0, 1, 2, 2, 3, 4], "int32"),
            np.array([5], "int64"),
        ),
    ),
    Case(
        "unique_by_appearance",
        lambda x: relay.unique(x, False, True).astuple(),
        [_index([4, 5, 1, 2, 3, 3, 4, 5], "int64")],
        lambda x: (
            np.array([4, 5, 1, 2, 3], "int64"),
            np.array([0, 1, 2, 3, 4], "int32"),
            np.array([0, 1, 2, 3, 4, 4, 0, 1], "int32"),
            np.array([5], "int64"),
            np.array([2, 2, 1, 1, 2], "int32"),
        ),
    ),
]

POSITIONS = [
    Case(
        "argwhere",
        relay.argwhere,
        [Input((3, 4), "bool")],
        lambda c: np.argwhere(c).astype("int32"),
    ),
    Case(
        "argwhere_float",
        relay.argwhere,
        [Input(values=[0.0, -1.5, 0.0, np.nan, 2.0])],
        lambda c: np.array([[1], [3], [4]], "int32"),
    ),
    Case("argwhere_none", relay.argwhere, [_index([[0, 0], [0, 0]])], lambda c: np.zeros((0, 2), "int32")),
    Case(
        "sequence_mask",
        lambda x, n: relay.sequence_mask(x, n, 7.5, 0),
        [Input((4, 3, 2)), _index([1, 4, 0])],
        lambda x, n: np.where((np.arange(4)[:, None] < n)[..., None], x, np.float32(7.5)),
    ),
    Case(
        "sequence_mask_batch_first",
        lambda x, n: relay.sequence_mask(x, n, axis=1),
        [Input((3, 4), "int32", -9, 9), Input(values=[2.0, 4.0, 0.0])],
        lambda x, n: np.where(np.arange(4) < n[:, None], x, 0),
    ),
    Case(
        "matrix_set_diag",
        relay.matrix_set_diag,
        [Input((2, 3, 4)), Input((2, 3))],
        lambda x, d: _put(x, np.s_[:, [0, 1, 2], [0, 1, 2]], d),
    ),
    Case(
        "matrix_set_diag_above",
        lambda x, d: relay.matrix_set_diag(x, d, 1),
        [Input((3, 4), "int32", -9, 9), Input((3,), "int32", -9, 9)],
        lambda x, d: _put(x, np.s_[[0, 1, 2], [1, 2, 3]], d),
    ),
    Case(
        "matrix_set_diag_several",
        lambda x, d: relay.matrix_set_diag(x, d, (-1, 1)),
        [_index(np.full((4, 4), 7)), _index([[0, 9, 1, 2], [3, 4, 5, 6], [8, 1, 2, 0]])],
        lambda x, d: np.array([[3, 9, 7, 7], [8, 4, 1, 7], [7, 1, 5, 2], [7, 7, 2, 6]], "int32"),
    ),
    Case(
        "matrix_set_diag_left_right",
        lambda x, d: relay.matrix_set_diag(x, d, (-1, 1), "LEFT_RIGHT"),
        [_index(np.full((4, 4), 7)), _index([[9, 1, 2, 0], [3, 4, 5, 6], [0, 8, 1, 2]])],
        lambda x, d: np.array([[3, 9, 7, 7], [8, 4, 1, 7], [7, 1, 5, 2], [7, 7, 2, 6]], "int32"),
    ),
    Case(
        "invert_permutation",
        relay.op.transform.invert_permutation,
        [_index([3, 4, 0, 2, 1])],
        lambda x: np.array([2, 4, 3, 0, 1], "int32"),
    ),
]

SPARSE = [
    Case(
        "sparse_to_dense",
        lambda i, v: relay.sparse_to_dense(i, (3, 4), v, relay.const(0.5)),
        [_index([[0, 1], [2, 3]]), Input((2,))],
        lambda i, v: _put(np.full((3, 4), 0.5, "float32"), tuple(i.T), v),
    ),
    Case(
        "sparse_to_dense_vector",
        lambda i, v: relay.sparse_to_dense(i, (6,), v),
        [_index([1, 4, 5], "int64"), _index(3)],
        lambda i, v: np.array([0, 3, 0, 0, 3, 3], "int32"),
    ),
    Case(
        "sparse_to_dense_scalar",
        lambda i, v: relay.sparse_to_dense(i, [5], v),
        [_index(3), Input(values=2.5)],
        lambda i, v: np.array([0, 0, 0, 2.5, 0], "float32"),
    ),
    Case(
        "sparse_fill_empty_rows",
        lambda i, v, shape, default: relay.sparse_fill_empty_rows(i, v, shape, default),
        [
            _index([[0, 1], [0, 3], [2, 0], [3, 1]], "int64"),
            Input(values=[1, 2, 3, 4]),
            _index([5, 6], "int64"),
            Input(values=[10]),
        ],
        lambda i, v, shape, default: (
            np.array([[0, 1], [0, 3], [1, 0], [2, 0], [3, 1], [4, 0]], "int64"),
            np.array([1, 2, 10, 3, 4, 10], "float32"),
            np.array([False, True, False, False, True]),
        ),
        dynamic=False,
    ),
    Case(
        "sparse_fill_empty_rows_unordered",
        lambda i, v, shape, default: relay.sparse_fill_empty_rows(i, v, shape, default),
        [
            _index([[2, 1], [0, 0]]),
            _index([5, 6]),
            _index([3, 2]),
            _index([0]),
        ],
        lambda i, v, shape, default: (
            np.array([[0, 0], [1, 0], [2, 1]], "int32"),
            np.array([6, 0, 5], "int32"),
            np.array([False, True, False]),
        ),
        dynamic=False,
    ),
    Case(
        "sparse_reshape",
        lambda i, before, after: relay.sparse_reshape(i, before, after).astuple(),
        [
            _index([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 2, 3]], "int64"),
            _index([2, 3, 6], "int64"),
            _index([9, -1], "int64"),
        ],
        lambda i, before, after: (
            np.array([[0, 0], [0, 1], [1, 2], [4, 2], [8, 1]], "int64"),
            np.array([9, 4], "int64"),
        ),
        dynamic=False,
    ),
]

CASES = TAKING + SCATTERING + SCANNING + POSITIONS + SPARSE
