"""Operators as tensor expressions, for every target.

Each function takes and returns tensors (``te.Tensor``) of constant or symbolic shapes. The tag of a computation
(``topi.tag``) tells the schedules of a target what kind it is.
"""

from tilewright.topi import image, nn, random, sparse, tag, utils, vision
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
    elemwise_sum,
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
from tilewright.topi.creation import arange, full, full_like
from tilewright.topi.einsum import einsum
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
    nearbyint,
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
from tilewright.topi.placing import invert_permutation, sparse_to_dense
from tilewright.topi.reduction import all, any, argmax, argmin, collapse_sum, max, min, prod, sum
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
from tilewright.topi.scan import cumbinop, cumprod, cumsum, scanop
from tilewright.topi.scatter import scatter, scatter_add, scatter_nd
from tilewright.topi.searchsorted import searchsorted
from tilewright.topi.slicing import dynamic_strided_slice, sliding_window, strided_set, strided_slice
from tilewright.topi.sort import argsort, sort, topk
from tilewright.topi.sparse_fill_empty_rows import sparse_fill_empty_rows
from tilewright.topi.sparse_reshape import sparse_reshape
from tilewright.topi.unique import unique
