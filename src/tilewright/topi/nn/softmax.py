"""Softmax and its logarithm along any axis.

The largest element is subtracted first, so that nothing overflows; sixteen-bit floats are raised and added in float32.
"""

from __future__ import annotations

from typing import Any, Final

from tilewright import te, tir
from tilewright.ir.operators import const
from tilewright.ir.transform import PassContext
from tilewright.te import Tensor
from tilewright.topi.math import fast_exp
from tilewright.topi.nn.utils import largest_number, sum_types
from tilewright.topi.utils import InvalidShapeError

LOG2_E: Final = 1.4426950408889634


class _Rows:
    """A tensor seen as rows along one axis, with the stages that both operators start from."""

    def __init__(self, x: Tensor, axis: int, prefix: str) -> None:
        rank = len(x.shape)
        if not -rank <= axis < rank:
            raise InvalidShapeError(f"softmax: axis {axis} of a tensor of {rank} dimensions")
        self.x = x
        self.axis = axis % rank
        self.prefix = prefix
        self.inner, self.result = sum_types(x.dtype, None)
        self.shape = [extent for position, extent in enumerate(x.shape) if position != self.axis]
        along = te.reduce_axis((0, x.shape[self.axis]), name="k")
        self.largest = te.compute(
            self.shape,
            lambda *rest: largest_number(x(*self.insert(rest, along)).astype(self.inner), axis=along),
            name=f"{prefix}_maxelem",
        )

    def insert(self, rest: tuple[Any, ...], index: Any) -> list[Any]:
        """The indices of an element: those of its row and the one along the axis."""
        return [*rest[: self.axis], index, *rest[self.axis :]]

    def rest(self, indices: tuple[Any, ...]) -> list[Any]:
        """The indices of the row that an element lies in."""
        return [index for position, index in enumerate(indices) if position != self.axis]

    def shifted(self, *indices: Any) -> Any:
        """The element less the largest of its row, never above zero."""
        return self.x(*indices).astype(self.inner) - self.largest(*self.rest(indices))

    def raised(self, *indices: Any) -> Any:
        """The exponential of an element less the largest of its row.

        Of 16-bit floats it is a power of two, which is one instruction on many devices: where the result is not zero,
        scaling the exponent changes it by less than 1e-5 of itself. Of float16, which has no numbers above 65504, both
        are scaled before one is subtracted from the other, which makes one instruction of the two: what the scaled
        maximum is rounded by changes all elements of the row by the same factor.
        """
        if self.x.dtype.bits != 16:
            return te.exp(self.shifted(*indices))
        scale = const(LOG2_E, self.inner)
        if self.x.dtype.is_bfloat16:
            return tir.exp2(self.shifted(*indices) * scale)
        largest = self.largest(*self.rest(indices))
        return tir.exp2(self.x(*indices).astype(self.inner) * scale - largest * scale)

    def sum_rows(self, element: Any) -> Tensor:
        """The sum of ``element(*indices)`` along each row."""
        along = te.reduce_axis((0, self.x.shape[self.axis]), name="k")
        made: Tensor = te.compute(
            self.shape,
            lambda *rest: te.sum(element(*self.insert(rest, along)), axis=along),
            name=f"{self.prefix}_expsum",
        )
        return made


def softmax_common(x: Tensor, axis: int, use_fast_exp: bool) -> Tensor:
    """``exp(x) / sum(exp(x))`` along an axis, with the exact or the fast exponential."""
    rows = _Rows(x, axis, "T_softmax")
    if use_fast_exp:
        delta = te.compute(x.shape, lambda *indices: rows.shifted(*indices), name="T_softmax_delta")
        raised = fast_exp(delta)
    else:
        raised = te.compute(x.shape, rows.raised, name="T_softmax_exp")
    total = rows.sum_rows(raised)

    def normalised(*indices: Any) -> Any:
        over = total(*rows.rest(indices))
        if "MultiplyByReciprocal" in PassContext.current().disabled_pass:
            return (raised(*indices) / over).astype(rows.result)
        # One division a row and a product an element: the sum is at least one, so its reciprocal loses no digits.
        return (raised(*indices) * (const(1, rows.inner) / over)).astype(rows.result)

    made: Tensor = te.compute(
        x.shape,
        normalised,
        name="T_softmax_norm",
        tag="softmax_output",
        attrs={"axis": rows.axis},
    )
    return made


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """``exp(x) / sum(exp(x))`` along an axis."""
    return softmax_common(x, axis, use_fast_exp=False)


def fast_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """Softmax with an approximate exponential."""
    return softmax_common(x, axis, use_fast_exp=True)


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """``x - log(sum(exp(x)))`` along an axis."""
    rows = _Rows(x, axis, "T_log_softmax")
    total = rows.sum_rows(rows.raised)
    made: Tensor = te.compute(
        x.shape,
        lambda *indices: (rows.shifted(*indices) - te.log(total(*rows.rest(indices)))).astype(rows.result),
        name="T_log_softmax",
        tag="log_softmax_output",
        attrs={"axis": rows.axis},
    )
    return made
