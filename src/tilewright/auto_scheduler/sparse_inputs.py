"""The arguments of products with sparse weights that a program is measured on: random columns would be no matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.auto_scheduler.task_inputs import register_task_input_check_func
from tilewright.te.operation import ComputeOp
from tilewright.te.tensor import Tensor
from tilewright.topi.utils import get_const_int

_PRODUCT = "sparse_dense_sp_rhs_bsrmm"


@register_task_input_check_func
def try_get_sparse_input(args: Sequence[Tensor]) -> dict[Tensor, str]:
    """The values, columns and row starts of a matrix in BSR form that a program multiplies by, with the names that
    ``SearchTask`` is to be given them by: ``sparse_dense_bsr_<rows>_<columns>_<rows and columns of a block>_<blocks>_
    <row starts>_`` and ``W_data``, ``W_indices`` or ``W_indptr``. Empty where there is none."""
    product = next((tensor for tensor in _tensors(args) if getattr(tensor.op, "tag", "") == _PRODUCT), None)
    if product is None:
        return {}
    (blocks,) = product.op.input_tensors
    rows = product.shape[1]
    data = next(one for one in blocks.op.input_tensors if len(one.shape) == 3)
    dense = next(one for one in blocks.op.input_tensors if len(one.shape) == 2)
    # The number of blocks is that of the values; there is one row start more than there are rows of blocks.
    vectors = [one for one in blocks.op.input_tensors if len(one.shape) == 1]
    starts_count = get_const_int(rows) // get_const_int(data.shape[1]) + 1
    starts = next(one for one in reversed(vectors) if get_const_int(one.shape[0]) == starts_count)
    indices = next(one for one in vectors if one is not starts)
    sizes = (rows, dense.shape[1], *data.shape[1:], *indices.shape, *starts.shape)
    prefix = "_".join(["sparse_dense_bsr", *(str(get_const_int(size)) for size in sizes)])
    found = {data: "W_data", indices: "W_indices", starts: "W_indptr"}
    return {tensor: f"{prefix}_{name}" for tensor, name in found.items()}


def _tensors(args: Sequence[Tensor]) -> Iterator[Tensor]:
    """What is computed for the arguments, each tensor once."""
    waiting, seen = list(args), set()
    while waiting:
        tensor = waiting.pop()
        if id(tensor.op) in seen or not isinstance(tensor.op, ComputeOp):
            continue
        seen.add(id(tensor.op))
        yield tensor
        waiting.extend(tensor.op.input_tensors)
