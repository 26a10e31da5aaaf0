"""Cases of sorting and searching."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from tests.relay.op.cases import Case, Input

from tilewright import relay

TIES = Input(values=[[2, 1, 2, 0, 1, 2], [5, 5, 5, 5, 5, 5]], dtype="int32")
NANS = Input(values=[1.0, math.nan, -math.inf, math.inf, -1.0, math.nan])


def _descending(x: Any, axis: int) -> Any:
    """Positions from the greatest on, the earlier of equal elements first, by an independent route."""
    return torch.sort(torch.from_numpy(x), dim=axis, descending=True, stable=True).indices.numpy()


def _topk(x: Any, k: int, axis: int = -1, dtype: str = "int32") -> tuple[Any, Any]:
    found = np.take(_descending(x, axis), range(k), axis)
    return np.take_along_axis(x, found, axis), found.astype(dtype)


CASES = [
    Case("sort", relay.sort, [Input((3, 5))], lambda x: np.sort(x, -1)),
    Case(
        "sort_axis", lambda x: relay.sort(x, axis=0), [Input((4, 3), "int32", -9, 9)], lambda x: np.sort(x, 0)
    ),
    Case(
        "sort_descending", lambda x: relay.sort(x, -2, False), [Input((2, 4, 3))], lambda x: -np.sort(-x, 1)
    ),
    Case("sort_nan", relay.sort, [NANS], np.sort),
    Case("sort_nan_descending", lambda x: relay.sort(x, is_ascend=0), [NANS], lambda x: np.sort(x)[::-1]),
    Case("sort_float16", relay.sort, [Input((7,), "float16")], np.sort),
    Case("sort_uint8", relay.sort, [Input((9,), "uint8", 0, 255)], np.sort),
    Case("sort_one", relay.sort, [Input((1,))], np.copy),
    Case("argsort", relay.argsort, [Input((3, 5))], lambda x: np.argsort(x, -1).astype("int32")),
    Case(
        "argsort_axis",
        lambda x: relay.argsort(x, axis=0, dtype="int64"),
        [Input((4, 3))],
        lambda x: np.argsort(x, 0),
    ),
    Case(
        "argsort_float_positions",
        lambda x: relay.argsort(x, dtype="float32"),
        [Input((6,), "int64", -99, 99)],
        lambda x: np.argsort(x, kind="stable").astype("float32"),
    ),
    Case("argsort_ties", relay.argsort, [TIES], lambda x: np.argsort(x, -1, "stable").astype("int32")),
    Case(
        "argsort_ties_descending",
        lambda x: relay.argsort(x, is_ascend=False),
        [TIES],
        lambda x: _descending(x, -1).astype("int32"),
    ),
    Case("topk", lambda x: relay.topk(x, 3).astuple(), [Input((2, 6))], lambda x: _topk(x, 3)),
    Case("topk_ties", lambda x: relay.topk(x, 4).astuple(), [TIES], lambda x: _topk(x, 4)),
    Case(
        "topk_axis",
        lambda x: relay.topk(x, 2, axis=0, dtype="int64").astuple(),
        [Input((5, 3), "int32", -9, 9)],
        lambda x: _topk(x, 2, 0, "int64"),
    ),
    Case(
        "topk_values", lambda x: relay.topk(x, 2, ret_type="values"), [Input((8,))], lambda x: _topk(x, 2)[0]
    ),
    Case(
        "topk_indices",
        lambda x: relay.topk(x, 2, ret_type="indices"),
        [Input((8,))],
        lambda x: _topk(x, 2)[1],
    ),
    Case(
        "topk_ascending",
        lambda x: relay.topk(x, 3, is_ascend=True).astuple(),
        [Input((2, 6))],
        lambda x: (np.sort(x)[:, :3], np.argsort(x)[:, :3].astype("int32")),
    ),
    Case(
        "topk_all", lambda x: relay.topk(x, 0, ret_type="values"), [Input((5,))], lambda x: np.sort(x)[::-1]
    ),
    Case(
        "topk_constant_k",
        lambda x: relay.topk(x, relay.const(2), ret_type="values"),
        [Input((5,))],
        lambda x: np.sort(x)[::-1][:2],
    ),
    Case(
        "searchsorted",
        relay.searchsorted,
        [Input(values=[1, 3, 3, 5], dtype="int32"), Input(values=[[0, 1, 3], [4, 5, 9]], dtype="int32")],
        lambda s, v: np.searchsorted(s, v).astype("int32"),
    ),
    Case(
        "searchsorted_right",
        lambda s, v: relay.searchsorted(s, v, right=True, dtype="int64"),
        [Input(values=[1.0, 3.0, 3.0, 5.0]), Input(values=[0.0, 1.0, 3.0, 5.0, math.inf])],
        lambda s, v: np.searchsorted(s, v, "right"),
    ),
    Case(
        "searchsorted_rows",
        relay.searchsorted,
        [Input(values=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), Input(values=[[2.5, 0.0], [4.5, 7.0]])],
        lambda s, v: np.asarray([[2, 0], [1, 3]], "int32"),
    ),
    Case(
        "searchsorted_scalar",
        relay.searchsorted,
        [Input(values=[1.0, 2.0]), Input(values=1.5)],
        lambda s, v: np.asarray(1, "int32"),
    ),
]
