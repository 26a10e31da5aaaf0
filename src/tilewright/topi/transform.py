"""Changes of shape, order, layout and selection: the public names, which stand in files by family."""

from tilewright.topi.creation import arange
from tilewright.topi.indexing import (
    adv_index,
    gather,
    gather_nd,
    one_hot,
    take,
    take_legalize,
    unravel_index,
    where,
)
from tilewright.topi.joining import concatenate, meshgrid, split, stack
from tilewright.topi.layout import auto_scheduler_layout_transform, layout_transform
from tilewright.topi.linalg import matmul, tensordot
from tilewright.topi.masking import matrix_set_diag, sequence_mask, trilu
from tilewright.topi.placing import invert_permutation, sparse_to_dense
from tilewright.topi.reshaping import (
    dyn_tile,
    expand_dims,
    expand_like,
    flip,
    ndarray_size,
    repeat,
    reshape,
    reverse_sequence,
    shape,
    squeeze,
    tile,
    transpose,
)
from tilewright.topi.slicing import dynamic_strided_slice, sliding_window, strided_set, strided_slice

__all__ = [
    "adv_index",
    "arange",
    "auto_scheduler_layout_transform",
    "concatenate",
    "dyn_tile",
    "dynamic_strided_slice",
    "expand_dims",
    "expand_like",
    "flip",
    "gather",
    "gather_nd",
    "invert_permutation",
    "layout_transform",
    "matmul",
    "matrix_set_diag",
    "meshgrid",
    "ndarray_size",
    "one_hot",
    "repeat",
    "reshape",
    "reverse_sequence",
    "sequence_mask",
    "shape",
    "sliding_window",
    "sparse_to_dense",
    "split",
    "squeeze",
    "stack",
    "strided_set",
    "strided_slice",
    "take",
    "take_legalize",
    "tensordot",
    "tile",
    "transpose",
    "trilu",
    "unravel_index",
    "where",
]
