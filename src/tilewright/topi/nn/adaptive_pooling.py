"""Pooling to a given size: the windows are as even as the sizes allow."""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.ir.operators import maximum, minimum, truncdiv
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.nn.utils import per_axis, spatial_axes, sum_types
from tilewright.topi.utils import InvalidShapeError, get_const_tuple, simplify


def require_pool_type(pool_type: str) -> None:
    """Pooling takes the largest element or the average."""
    if pool_type not in ("max", "avg"):
        raise OpAttributeInvalid(f'pooling is of type "max" or "avg", not {pool_type!r}')


class _EvenWindows:
    """Windows ``i * size // count`` to ``ceil((i + 1) * size / count)`` along one axis."""

    def __init__(self, size: Any, count: Any, number: int) -> None:
        self.size, self.count = get_const_tuple([size, count])
        if isinstance(self.count, int) and self.count < 1:
            raise InvalidShapeError(f"adaptive pooling to a size of {self.count}")
        known = isinstance(self.size, int) and isinstance(self.count, int)
        self.divides = (isinstance(self.count, int) and self.count == 1) or (
            known and self.size % self.count == 0
        )
        if self.divides:
            longest = self.size // self.count
        elif known:
            longest = max(
                -(-(i + 1) * self.size // self.count) - i * self.size // self.count for i in range(self.count)
            )
        else:
            longest = (self.size + self.count - 1) // self.count + 1
        self.longest = simplify(longest)
        self.axis = te.reduce_axis((0, self.longest), name=f"rv{number}")

    def start(self, i: Any) -> Any:
        """The first index of a window."""
        return i * (self.size // self.count) if self.divides else (i * self.size) // self.count

    def length(self, i: Any) -> Any:
        """How many indices a window has."""
        if self.divides:
            return self.longest
        return ((i + 1) * self.size + self.count - 1) // self.count - self.start(i)

    def read_at(self, i: Any) -> Any:
        """The index that the reduction's step reads; steps beyond a shorter window read its last index again."""
        step = self.axis.var if self.divides else minimum(self.axis.var, self.length(i) - 1)
        return self.start(i) + step

    def beyond(self, i: Any) -> Any:
        """True where the reduction's step lies beyond the window; None where that never is."""
        return None if self.divides else self.axis.var >= self.length(i)


def _adaptive(data: Tensor, output_size: Any, pool_type: str, layout: str, letters: str) -> Tensor:
    require_pool_type(pool_type)
    axes = spatial_axes(layout, len(data.shape), letters)
    sizes = per_axis(output_size, len(letters), "output_size")
    windows = [
        _EvenWindows(data.shape[axis], size, number)
        for number, (axis, size) in enumerate(zip(axes, sizes, strict=True))
    ]
    shape = list(data.shape)
    for axis, size in zip(axes, sizes, strict=True):
        shape[axis] = size
    taps = [window.axis for window in windows]

    def read(indices: tuple[Any, ...]) -> Any:
        at = list(indices)
        for axis, window in zip(axes, windows, strict=True):
            at[axis] = window.read_at(indices[axis])
        return data(*at)

    if pool_type == "max":
        # A step that reads an element again changes no maximum.
        made: Tensor = te.compute(
            shape,
            lambda *indices: te.max(read(indices), axis=taps),
            name="adaptive_pool_max",
            tag="adaptive_pool_max",
        )
        return made
    inner, result = sum_types(data.dtype, None)

    def term(indices: tuple[Any, ...]) -> Any:
        value = read(indices).astype(inner)
        for axis, window in zip(axes, windows, strict=True):
            beyond = window.beyond(indices[axis])
            if beyond is not None:
                value = tir.Select(beyond, tir.const(0, inner), value)
        return value

    total = te.compute(
        shape,
        lambda *indices: te.sum(term(indices), axis=taps),
        name="adaptive_pool_sum",
        tag="adaptive_pool_sum",
    )

    def average(*indices: Any) -> Any:
        count: Any = tir.const(1, "int32")
        for axis, window in zip(axes, windows, strict=True):
            count = count * window.length(indices[axis])
        value = total(*indices)
        if inner.is_integral:
            return truncdiv(value, maximum(count, 1).astype(inner))
        return (value / count.astype(inner)).astype(result)

    mean: Tensor = te.compute(shape, average, name="adaptive_pool_avg", tag=tag.ELEMWISE)
    return mean


def adaptive_pool(data: Tensor, output_size: Any, pool_type: str, layout: str = "NCHW") -> Tensor:
    """Pool H and W down (or up) to ``output_size``."""
    return _adaptive(data, output_size, pool_type, layout, "HW")


def adaptive_pool1d(data: Tensor, output_size: Any, pool_type: str, layout: str = "NCW") -> Tensor:
    """Pool W down (or up) to ``output_size``."""
    return _adaptive(data, output_size, pool_type, layout, "W")


def adaptive_pool3d(data: Tensor, output_size: Any, pool_type: str, layout: str = "NCDHW") -> Tensor:
    """Pool D, H and W down (or up) to ``output_size``."""
    return _adaptive(data, output_size, pool_type, layout, "DHW")


def global_pool(data: Tensor, pool_type: str, layout: str = "NCHW") -> Tensor:
    """Pool the whole of H and W into one element."""
    return _adaptive(data, (1, 1), pool_type, layout, "HW")
