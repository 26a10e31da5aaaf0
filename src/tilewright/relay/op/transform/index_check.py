"""check_indices: indices that stop the program where one of them is out of range.

The pass CheckIndices puts it before the operators that read or write at indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.operators import as_expr, cast, const, logical_and
from tilewright.ir.type import Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, define
from tilewright.relay.op.shapes import tensors
from tilewright.relay.op.transform.indexing import check_indices as require_integers
from tilewright.relay.op.transform.support import Array
from tilewright.support.errors import TilewrightError
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.tir.packed_abi import message
from tilewright.tir.stmt import AssertStmt
from tilewright.topi.arguments import product
from tilewright.topi.kernel import loop_kernel


@attributes
class IndexCheckAttrs(OpAttrs):
    """Who indexes which axes of the data.

    ``what`` is the operator, and the model's node where there is one. ``axes`` has one axis for each component of the
    index vectors, which are along the first axis of the indices if ``vectors``; no axis stands for the flattened data.
    ``from_back`` says that negative indices count from the back.
    """

    what: str = ""
    axes: tuple[int, ...] = ()
    vectors: bool = False
    from_back: bool = False


def _relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the indices", "the data")
    if found is None:
        return None
    require_integers(found[0], "the indices of check_indices")
    return found[0]


def _parts(attrs: Any) -> list[int | None]:
    """The axis of each component of an index."""
    return list(attrs.axes) or [None]


def _complaint(attrs: Any, axis: int | None, index: Any, low: Any, last: Any) -> str:
    where = "the flattened data" if axis is None else f"axis {axis}"
    return f"{attrs.what}: index {index} is out of range for {where}, whose indices are {low} to {last}"


def _compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    indices, data = inputs
    parts = _parts(attrs)
    size = product(indices.shape[1:] if attrs.vectors else indices.shape)

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        for component, axis in enumerate(parts):
            extent = cast("int64", product(data.shape) if axis is None else as_expr(data.shape[axis]))
            low = const(0, "int64")
            if attrs.from_back and indices.dtype.is_int:
                low = low - extent
            with builder.for_range(0, size, name="place") as place:
                at = place + component * size
                index = builder.let("index", cast("int64", ins[0][at]))
                text = _complaint(attrs, axis, "{0}", "{1}", "{2}")
                holds = logical_and(index >= low, index < extent)
                problem = message("IndexError", text, [index, low, extent - 1])
                builder.emit(lambda rest, holds=holds, problem=problem: AssertStmt(holds, problem, rest))
                outs[0][at] = ins[0][at]

    return loop_kernel("check_indices", [indices, data], [(indices.shape, indices.dtype)], body)


def _reference(attrs: Any, indices: Array, data: Array) -> Array:
    for component, axis in enumerate(_parts(attrs)):
        extent = data.size if axis is None else data.shape[axis]
        low = -extent if attrs.from_back and indices.dtype.kind == "i" else 0
        given = (indices[component] if attrs.vectors else indices).astype(np.int64)
        outside = given[(given < low) | (given >= extent)]
        if outside.size:
            raise TilewrightError(_complaint(attrs, axis, outside.reshape(-1)[0], low, extent - 1))
    return indices


CHECK_INDICES = define(
    "check_indices",
    arguments=("indices", "data"),
    attrs=IndexCheckAttrs,
    relation=_relation,
    compute=_compute,
    reference=_reference,
    gradient=lambda primal, grad: [grad, call("zeros_like", primal.args[1])],
    kind=OpPattern.OPAQUE,
    level=10,
    description="The indices; an error where one of them is not of the axis.",
)


def check_indices(
    indices: RelayExpr,
    data: RelayExpr,
    what: str,
    axes: Sequence[int] = (),
    vectors: bool = False,
    from_back: bool = False,
) -> Call:
    """The indices, which must be in range for axes of the data; see ``IndexCheckAttrs``."""
    return Call(CHECK_INDICES, (indices, data), IndexCheckAttrs(what, tuple(axes), vectors, from_back))
