"""Operators as tensor expressions, for every target.

Each function takes and gives tensors (``te.Tensor``) of constant or symbolic shapes. The tag of a computation
(``topi.tag``) tells the schedules of a target what kind it is.
"""

from tilewright.not_yet import attribute_not_there
from tilewright.topi import generic, image, nn, random, tag, utils, vision, x86
from tilewright.topi.argwhere import (
    argwhere,
    hybrid_argwhere_1d,
    hybrid_argwhere_2d,
    hybrid_argwhere_3d,
    hybrid_argwhere_4d,
    hybrid_argwhere_5d,
)
from tilewright.topi.broadcast import (
    add,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    broadcast_to,
    divide,
    equal,
    floor_divide,
    floor_mod,
    greater,
    greater_equal,
    left_shift,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    mod,
    multiply,
    not_equal,
    power,
    right_shift,
    subtract,
)
from tilewright.topi.einsum import einsum
from tilewright.topi.math import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    cast,
    ceil,
    ceil_log2,
    clip,
    cos,
    cosh,
    erf,
    exp,
    fast_erf,
    fast_exp,
    fast_tanh,
    fixed_point_multiply,
    floor,
    identity,
    isfinite,
    isinf,
    isnan,
    log,
    log2,
    log10,
    negative,
    reinterpret,
    round,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
)
from tilewright.topi.reduction import all, any, argmax, argmin, collapse_sum, max, min, prod, sum
from tilewright.topi.scan import cumbinop, cumprod, cumsum, scanop
from tilewright.topi.scatter import scatter, scatter_nd
from tilewright.topi.scatter_add import scatter_add
from tilewright.topi.searchsorted import searchsorted
from tilewright.topi.sort import argsort, sort, topk
from tilewright.topi.sparse_fill_empty_rows import sparse_fill_empty_rows
from tilewright.topi.sparse_reshape import sparse_reshape
from tilewright.topi.tensor import elemwise_sum, full, full_like
from tilewright.topi.transform import (
    adv_index,
    arange,
    auto_scheduler_layout_transform,
    concatenate,
    dyn_tile,
    dynamic_strided_slice,
    expand_dims,
    expand_like,
    flip,
    gather,
    gather_nd,
    invert_permutation,
    layout_transform,
    matmul,
    matrix_set_diag,
    meshgrid,
    ndarray_size,
    one_hot,
    repeat,
    reshape,
    reverse_sequence,
    sequence_mask,
    shape,
    sliding_window,
    sparse_to_dense,
    split,
    squeeze,
    stack,
    strided_set,
    strided_slice,
    take,
    take_legalize,
    tensordot,
    tile,
    transpose,
    trilu,
    unravel_index,
    where,
)
from tilewright.topi.unique import unique


def __getattr__(name: str) -> object:
    return attribute_not_there(__name__, name)
