"""The windows of a pooling operator: their sizes, and the shape of what they give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import tir
from tilewright.ir.operators import maximum, minimum
from tilewright.te import Tensor
from tilewright.topi.nn.utils import pad_amounts, per_axis, spatial_axes
from tilewright.topi.utils import InvalidShapeError, get_const_tuple, simplify


@dataclass(frozen=True)
class PoolWindows:
    """One entry for each pooled axis in every field."""

    axes: list[int]
    kernel: tuple[Any, ...]
    strides: tuple[Any, ...]
    dilation: tuple[Any, ...]
    before: tuple[Any, ...]
    after: tuple[Any, ...]
    extents: tuple[Any, ...]
    """The extents of the output."""
    ceil_mode: bool

    @property
    def padded_after(self) -> list[Any]:
        """What is added after each axis: the padding, and what the last window of ``ceil_mode`` may reach."""
        more = [stride - 1 if self.ceil_mode else 0 for stride in self.strides]
        return list(get_const_tuple(last + extra for last, extra in zip(self.after, more, strict=True)))

    def output_shape(self, data: Tensor) -> list[Any]:
        """The shape of the input with the pooled axes replaced."""
        shape = list(data.shape)
        for axis, extent in zip(self.axes, self.extents, strict=True):
            shape[axis] = extent
        return shape

    def count(self, data: Tensor, indices: Any, count_include_pad: bool) -> Any:
        """How many elements a window averages over: those of the image, or those of the padded image.

        What ``ceil_mode`` lets a window read beyond the padding is never counted. An empty window counts one.
        """
        count: Any = tir.const(1, "int32")
        for position, axis in enumerate(self.axes):
            start = indices[axis] * self.strides[position] - self.before[position]
            step, extent, kernel = self.dilation[position], data.shape[axis], self.kernel[position]
            if count_include_pad and not self.ceil_mode:
                count = count * kernel
                continue
            end = extent + self.after[position] if count_include_pad else extent
            last = minimum((end - start + step - 1) // step, kernel)
            first = 0 if count_include_pad else maximum((step - 1 - start) // step, 0)
            count = count * (last - first)
        if count_include_pad and not self.ceil_mode:
            return count
        return maximum(count, 1)


def pool_windows(
    data: Tensor,
    kernel: Any,
    stride: Any,
    dilation: Any,
    padding: Any,
    ceil_mode: bool,
    layout: str,
    letters: str,
) -> PoolWindows:
    """Check the attributes of a pooling operator and compute its windows."""
    count = len(letters)
    axes = spatial_axes(layout, len(data.shape), letters)
    kernels, strides = per_axis(kernel, count, "kernel"), per_axis(stride, count, "stride")
    steps = per_axis(dilation, count, "dilation")
    before, after = pad_amounts(padding, kernels)
    extents = []
    for position, axis in enumerate(axes):
        span = (kernels[position] - 1) * steps[position] + 1
        room = data.shape[axis] + before[position] + after[position] - span
        more = strides[position] - 1 if ceil_mode else 0
        extents.append(simplify((room + more) // strides[position] + 1))
    for letter, extent in zip(letters, get_const_tuple(extents), strict=True):
        if isinstance(extent, int) and extent <= 0:
            raise InvalidShapeError(
                f"the window is larger than the padded input along {letter}: the output would have size {extent}"
            )
    return PoolWindows(axes, kernels, strides, steps, tuple(before), tuple(after), tuple(extents), ceil_mode)
