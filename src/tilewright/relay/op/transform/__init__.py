"""Operators that move data: shapes, order, parts, indices, repetition, creation."""

from tilewright.relay.op.transform.broadcast import (
    broadcast_to,
    broadcast_to_like,
    collapse_sum_like,
    collapse_sum_to,
    repeat,
    tile,
    where,
)
from tilewright.relay.op.transform.casting import cast, cast_like, reinterpret
from tilewright.relay.op.transform.creation import arange, full, full_like, one_hot
from tilewright.relay.op.transform.index_check import check_indices
from tilewright.relay.op.transform.indexing import adv_index, gather, gather_nd, take, unravel_index
from tilewright.relay.op.transform.joining import meshgrid, split
from tilewright.relay.op.transform.masking import (
    argwhere,
    invert_permutation,
    matrix_set_diag,
    sequence_mask,
)
from tilewright.relay.op.transform.permuting import (
    auto_scheduler_layout_transform,
    layout_transform,
    reverse,
    reverse_sequence,
    transpose,
)
from tilewright.relay.op.transform.reshaping import (
    expand_dims,
    reshape,
    reshape_like,
    reverse_reshape,
    squeeze,
)
from tilewright.relay.op.transform.scanning import cumprod, cumsum, unique
from tilewright.relay.op.transform.scattering import scatter, scatter_add, scatter_nd, segment_sum
from tilewright.relay.op.transform.slicing import slice_like, strided_set, strided_slice
from tilewright.relay.op.transform.sparse import sparse_fill_empty_rows, sparse_reshape, sparse_to_dense

__all__ = [
    "adv_index",
    "arange",
    "argwhere",
    "auto_scheduler_layout_transform",
    "broadcast_to",
    "broadcast_to_like",
    "cast",
    "cast_like",
    "check_indices",
    "collapse_sum_like",
    "collapse_sum_to",
    "cumprod",
    "cumsum",
    "expand_dims",
    "full",
    "full_like",
    "gather",
    "gather_nd",
    "invert_permutation",
    "layout_transform",
    "matrix_set_diag",
    "meshgrid",
    "one_hot",
    "reinterpret",
    "repeat",
    "reshape",
    "reshape_like",
    "reverse",
    "reverse_reshape",
    "reverse_sequence",
    "scatter",
    "scatter_add",
    "scatter_nd",
    "segment_sum",
    "sequence_mask",
    "slice_like",
    "sparse_fill_empty_rows",
    "sparse_reshape",
    "sparse_to_dense",
    "split",
    "squeeze",
    "strided_set",
    "strided_slice",
    "take",
    "tile",
    "transpose",
    "unique",
    "unravel_index",
    "where",
]
