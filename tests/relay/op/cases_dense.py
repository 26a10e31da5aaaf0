"""Cases of products of matrices."""

from __future__ import annotations

import numpy as np
from tests.relay.op.cases import Case, Input

from tilewright import relay

CASES = [
    Case(
        "dense",
        lambda x, w: relay.nn.dense(x, w, units=5),
        [Input((3, 7)), Input((5, 7))],
        lambda x, w: x @ w.T,
        gradient=True,
    ),
    Case(
        "dense_of_one_row",
        relay.nn.dense,
        [Input((1, 9)), Input((4, 9))],
        lambda x, w: x @ w.T,
        gradient=True,
    ),
    Case(
        "dense_of_many_rows",
        relay.nn.dense,
        [Input((2, 3, 7)), Input((5, 7))],
        lambda x, w: x @ w.T,
        gradient=True,
    ),
    Case(
        "dense_integers",
        lambda x, w: relay.nn.dense(x, w, out_dtype="int32"),
        [Input((3, 16), "int8", -128, 128), Input((5, 16), "int8", -128, 128)],
        lambda x, w: x.astype("int32") @ w.astype("int32").T,
    ),
    Case(
        "dense_half",
        relay.nn.dense,
        [Input((3, 16), "float16"), Input((5, 16), "float16")],
        lambda x, w: (x.astype("float32") @ w.astype("float32").T).astype("float16"),
        rtol=2e-3,
        atol=1e-2,
    ),
    Case(
        "matmul",
        relay.nn.matmul,
        [Input((3, 4)), Input((4, 5))],
        lambda a, b: a @ b,
        gradient=True,
    ),
    Case(
        "matmul_transposed",
        lambda a, b: relay.nn.matmul(a, b, transpose_a=True),
        [Input((4, 3)), Input((4, 5))],
        lambda a, b: a.T @ b,
        gradient=True,
    ),
    Case(
        "matmul_transposed_both",
        lambda a, b: relay.nn.matmul(a, b, transpose_a=True, transpose_b=True),
        [Input((4, 3)), Input((5, 4))],
        lambda a, b: a.T @ b.T,
        gradient=True,
    ),
    Case(
        "contrib_dense_pack",
        lambda x, w: relay.nn.contrib_dense_pack(x, w, weight_layout="NC4n"),
        [Input((3, 7)), Input((2, 7, 4))],
        lambda x, w: x @ w.transpose(0, 2, 1).reshape(8, 7).T,
        dynamic=False,
    ),
    Case(
        "contrib_dense_weight_only",
        lambda x, s: relay.nn.contrib_dense_weight_only(
            x, relay.const(np.full((2, 1, 4), 0x76543210, "int32")), s, units=7, bits=4, zero=3
        ),
        [Input((3, 8)), Input((2, 1, 4))],
        lambda x, s: x @ (np.array([0, 2, 4, 6, 1, 3, 5, 7]) - 3.0)[:, None] * s.reshape(8)[:7],
        dynamic=False,
    ),
    *(
        Case(
            f"batch_matmul_{'T' if first else 'N'}{'T' if second else 'N'}",
            lambda a, b, first=first, second=second: relay.nn.batch_matmul(
                a, b, transpose_a=first, transpose_b=second
            ),
            [Input((2, 4, 3) if first else (2, 3, 4)), Input((2, 5, 4) if second else (2, 4, 5))],
            lambda a, b, first=first, second=second: np.matmul(
                a.swapaxes(1, 2) if first else a, b.swapaxes(1, 2) if second else b
            ),
            gradient=True,
        )
        for first in (False, True)
        for second in (False, True)
    ),
    Case(
        "batch_matmul_of_one",
        relay.nn.batch_matmul,
        [Input((1, 3, 4)), Input((2, 5, 4))],
        lambda a, b: np.matmul(a, b.swapaxes(1, 2)),
        gradient=True,
        dynamic=False,
    ),
    Case(
        "batch_matmul_integers",
        lambda a, b: relay.nn.batch_matmul(a, b, out_dtype="int32"),
        [Input((2, 3, 8), "int8", -128, 128), Input((2, 5, 8), "int8", -128, 128)],
        lambda a, b: np.matmul(a.astype("int32"), b.astype("int32").swapaxes(1, 2)),
    ),
]
