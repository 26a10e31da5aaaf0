"""Tensor expressions: tensors defined element by element, and schedules that say how to compute them."""

from functools import partial

from tilewright.ir.buffer import decl_buffer
from tilewright.ir.operators import const
from tilewright.te import elementwise, hybrid, schedule, tensor
from tilewright.te.autodiff import gradient
from tilewright.te.create_prim_func import create_prim_func, create_prim_func_from_outputs
from tilewright.te.extern import ExternOp, extern
from tilewright.te.hybrid.operation import HybridOp
from tilewright.te.operation import (
    BaseComputeOp,
    ComputeOp,
    PlaceholderOp,
    compute,
    placeholder,
    reduce_axis,
    size_var,
    thread_axis,
    var,
)
from tilewright.te.scan import ScanOp, scan
from tilewright.te.schedule import Schedule, SpecializedCondition, Stage, create_schedule
from tilewright.te.tag import TagScope, tag_scope
from tilewright.te.tensor import Operation, Tensor, TensorSlice
from tilewright.te.tensor_intrin import TensorComputeOp, TensorIntrin, TensorIntrinCall, decl_tensor_intrin
from tilewright.tir.op import (
    abs,
    acos,
    acosh,
    all,
    any,
    asin,
    asinh,
    atan,
    atanh,
    ceil,
    cos,
    cosh,
    div,
    erf,
    exp,
    floor,
    floordiv,
    floormod,
    fmod,
    if_then_else,
    indexdiv,
    indexmod,
    isfinite,
    isinf,
    isnan,
    log,
    log2,
    log10,
    max_value,
    min_value,
    nearbyint,
    popcount,
    power,
    round,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trace,
    trunc,
    truncdiv,
    truncmod,
)
from tilewright.tir.reducer import comm_reducer, max, min, sum

tensor.BINARY.fill(partial(elementwise.binary, in_place=True))
tensor.UNARY.fill(partial(elementwise.unary, in_place=True))
