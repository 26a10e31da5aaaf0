"""Cases of sparse matrices and of numbers of a few bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import torch.nn.functional as functional
from tests.relay.op.cases import Case, Input
from tests.relay.op.torch_reference import by_torch

from tilewright import relay

GENERATOR = np.random.default_rng(7)


def _random(rows: int, columns: int, block: tuple[int, int] = (1, 1)) -> Any:
    """A matrix of which about a third of the blocks is not zero."""
    count = (rows // block[0], columns // block[1])
    chosen = np.kron(GENERATOR.uniform(size=count) < 0.35, np.ones(block))
    return (GENERATOR.uniform(-1, 1, (rows, columns)) * chosen).astype("float32")


def _inputs(matrix: Any) -> list[Input]:
    return [
        Input(values=matrix.data, dtype="float32"),
        Input(values=matrix.indices, dtype="int32"),
        Input(values=matrix.indptr, dtype="int32"),
    ]


ROWS = _random(6, 8)
CSR = scipy.sparse.csr_matrix(ROWS)
BLOCKS = _random(6, 8, (3, 2))
BSR = scipy.sparse.bsr_matrix(BLOCKS, blocksize=(3, 2))
SQUARE = _random(5, 5)
SQUARE_CSR = scipy.sparse.csr_matrix(SQUARE)
KERNEL = _random(4, 27, (1, 3))


def _bits(*shape: int, count: int = 2) -> Input:
    return Input(values=GENERATOR.integers(0, 1 << count, shape), dtype="uint8")


def _integer_conv(x: Any, w: Any) -> Any:
    made = by_torch(lambda a, b: functional.conv2d(a, b, padding=1))(x.astype("float64"), w.astype("float64"))
    return np.rint(made).astype("int16")


SPARSE = [
    Case(
        "sparse_dense_csr",
        lambda x, *parts: relay.nn.sparse_dense(x, parts),
        [Input((3, 8)), *_inputs(CSR)],
        lambda x, *parts: x @ ROWS.T,
        atol=1e-5,
        dynamic=False,
    ),
    Case(
        "sparse_dense_bsr",
        lambda x, *parts: relay.nn.sparse_dense(x, parts),
        [Input((3, 8)), *_inputs(BSR)],
        lambda x, *parts: x @ BLOCKS.T,
        atol=1e-5,
        dynamic=False,
    ),
    Case(
        "sparse_dense_first",
        lambda x, *parts: relay.nn.sparse_dense(x, parts, sparse_lhs=True),
        [Input((3, 8)), *_inputs(BSR)],
        lambda x, *parts: BLOCKS @ x.T,
        atol=1e-5,
        dynamic=False,
    ),
    Case(
        "sparse_dense_of_scipy",
        lambda x: relay.nn.sparse_dense(x, CSR),
        [Input((3, 8))],
        lambda x: x @ ROWS.T,
        atol=1e-5,
        dynamic=False,
    ),
    Case(
        "sparse_transpose",
        lambda *parts: relay.nn.sparse_transpose(parts).astuple(),
        _inputs(SQUARE_CSR),
        lambda *parts: (
            (turned := scipy.sparse.csr_matrix(SQUARE.T)).data,
            turned.indices,
            turned.indptr,
        ),
        dynamic=False,
    ),
    Case(
        "sparse_add",
        lambda x, *parts: relay.nn.sparse_add(x, parts),
        [Input((6, 8)), *_inputs(CSR)],
        lambda x, *parts: x + ROWS,
        dynamic=False,
    ),
    Case(
        "sparse_conv2d",
        lambda x, *parts: relay.nn.sparse_conv2d(x, parts, kernel_size=3),
        [Input((1, 4, 5, 3)), *_inputs(scipy.sparse.csr_matrix(KERNEL))],
        lambda x, *parts: by_torch(lambda a, b: functional.conv2d(a, b, padding=1))(
            x.transpose(0, 3, 1, 2), KERNEL.reshape(4, 3, 3, 3).transpose(0, 3, 1, 2)
        ).transpose(0, 2, 3, 1),
        atol=1e-5,
        dynamic=False,
    ),
    Case(
        "sparse_conv2d_nchw",
        lambda x, *parts: relay.nn.sparse_conv2d(x, parts, layout="NCHW"),
        [Input((1, 8, 3, 3)), *_inputs(BSR)],
        lambda x, *parts: np.einsum("oi,nihw->nohw", BLOCKS, x),
        atol=1e-5,
        dynamic=False,
    ),
]

FEW_BITS = [
    Case(
        "bitpack",
        lambda x: relay.nn.bitpack(x, bits=2, pack_axis=1, bit_axis=1, pack_type="uint8"),
        [Input(values=[[3, 0, 1, 2, 0, 0, 1, 1]], dtype="uint8")],
        lambda x: np.array([[[0b10100011], [0b10010000]]], "uint8"),
        dynamic=False,
    ),
    Case(
        "bitserial_dense",
        lambda x, w: relay.nn.bitserial_dense(
            x, w, units=4, data_bits=2, weight_bits=2, pack_dtype="uint8", unipolar=False
        ),
        [_bits(3, 16), _bits(4, 16)],
        lambda x, w: x.astype("int16") @ w.astype("int16").T,
        dynamic=False,
    ),
    Case(
        "bitserial_dense_unipolar",
        lambda x, w: relay.nn.bitserial_dense(x, w, data_bits=2, pack_dtype="uint8"),
        [_bits(3, 16), _bits(4, 16, count=1)],
        lambda x, w: x.astype("int16") @ (2 * w.astype("int16") - 1).T,
        dynamic=False,
    ),
    Case(
        "bitserial_dense_packed",
        lambda x, w: relay.nn.bitserial_dense(
            x,
            relay.nn.bitpack(w, 2, 1, 1, "uint8"),
            data_bits=2,
            weight_bits=2,
            pack_dtype="uint8",
            unipolar=False,
        ),
        [_bits(3, 16), _bits(4, 16)],
        lambda x, w: x.astype("int16") @ w.astype("int16").T,
        dynamic=False,
    ),
    Case(
        "bitserial_conv2d",
        lambda x, w: relay.nn.bitserial_conv2d(
            x,
            w,
            padding=1,
            channels=3,
            kernel_size=3,
            activation_bits=2,
            weight_bits=2,
            pack_dtype="uint8",
            unipolar=False,
        ),
        [_bits(1, 8, 4, 5), _bits(3, 8, 3, 3)],
        _integer_conv,
        dynamic=False,
    ),
    Case(
        "bitserial_conv2d_nhwc",
        lambda x, w: relay.nn.bitserial_conv2d(
            x,
            w,
            padding=1,
            channels=3,
            kernel_size=3,
            activation_bits=2,
            weight_bits=1,
            data_layout="NHWC",
            kernel_layout="HWIO",
            pack_dtype="uint8",
        ),
        [_bits(1, 4, 5, 8), _bits(3, 3, 8, 3, count=1)],
        lambda x, w: _integer_conv(
            x.transpose(0, 3, 1, 2), 2 * w.transpose(3, 2, 0, 1).astype("int16") - 1
        ).transpose(0, 2, 3, 1),
        dynamic=False,
    ),
]

CASES = [*SPARSE, *FEW_BITS]
