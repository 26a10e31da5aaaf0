"""Gradients of two-dimensional pooling by its input."""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.ir.operators import least
from tilewright.te import Tensor
from tilewright.topi.nn.adaptive_pooling import require_pool_type
from tilewright.topi.nn.pad import pad_spatial
from tilewright.topi.nn.pooling_windows import PoolWindows, pool_windows
from tilewright.topi.utils import simplify


def pool_grad(
    grads: Tensor,
    data: Tensor,
    kernel: Any,
    stride: Any,
    padding: Any,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = True,
) -> Tensor:
    """The gradient of ``pool2d`` by ``data``: ``grads`` handed to the first largest element, or spread evenly."""
    require_pool_type(pool_type)
    windows = pool_windows(data, kernel, stride, 1, padding, ceil_mode, layout, "HW")
    if pool_type == "max":
        return _max_grad(grads, data, windows)
    return _average_grad(grads, data, windows, count_include_pad)


def _covering(
    windows: PoolWindows, grads: Tensor, indices: tuple[Any, ...]
) -> tuple[list[Any], Any, list[Any]]:
    """The windows that an element lies in: their indices over reduction axes, when those exist, and the axes."""
    axes, valid, at = [], [], list(indices)
    for position, axis in enumerate(windows.axes):
        kernel, stride = windows.kernel[position], windows.strides[position]
        offset = te.reduce_axis((0, simplify((kernel + stride - 1) // stride)), name=f"rw{position}")
        padded = indices[axis] + windows.before[position]
        window = padded // stride - offset.var
        axes.append(offset)
        at[axis] = window
        valid += [window >= 0, window < grads.shape[axis], padded < window * stride + kernel]
    return at, tir.all(*valid), axes


def _average_grad(grads: Tensor, data: Tensor, windows: PoolWindows, count_include_pad: bool) -> Tensor:
    counts = _counts(grads, data, windows, count_include_pad)

    def element(*indices: Any) -> Any:
        at, valid, axes = _covering(windows, grads, indices)
        share = grads(*at) / counts(*[at[axis] for axis in windows.axes])
        return te.sum(tir.if_then_else(valid, share, tir.const(0, grads.dtype)), axis=axes)

    made: Tensor = te.compute(data.shape, element, name="pool_grad_avg", tag="pool_grad_avg")
    return made


def _counts(grads: Tensor, data: Tensor, windows: PoolWindows, count_include_pad: bool) -> Tensor:
    """How many elements each window averaged over."""

    def element(*space: Any) -> Any:
        at = [tir.const(0, "int32")] * len(data.shape)
        for axis, index in zip(windows.axes, space, strict=True):
            at[axis] = index
        return windows.count(data, at, count_include_pad).astype(grads.dtype)

    made: Tensor = te.compute(
        [grads.shape[axis] for axis in windows.axes], element, name="pool_grad_count", tag="injective"
    )
    return made


def _max_grad(grads: Tensor, data: Tensor, windows: PoolWindows) -> Tensor:
    padded = pad_spatial(
        data, windows.axes, windows.before, windows.padded_after, least(data.dtype), name="pad_temp"
    )
    taps = [te.reduce_axis((0, extent), name=f"rv{number}") for number, extent in enumerate(windows.kernel)]
    height, width = windows.axes
    row_length = padded.shape[width]
    first_largest = te.comm_reducer(
        lambda x, y: (
            tir.Select(tir.any(x[1] > y[1], tir.all(x[1].equal(y[1]), x[0] < y[0])), x[0], y[0]),
            tir.Select(x[1] > y[1], x[1], y[1]),
        ),
        lambda index, value: (tir.max_value(index), least(value)),
        name="first_largest",
    )

    def place(*indices: Any) -> Any:
        at = list(indices)
        for position, axis in enumerate(windows.axes):
            at[axis] = at[axis] * windows.strides[position] + taps[position].var
        return first_largest((at[height] * row_length + at[width], padded(*at)), axis=taps)

    places, _ = te.compute(grads.shape, place, name="maxpool_grad_argmax")

    def element(*indices: Any) -> Any:
        at, valid, axes = _covering(windows, grads, indices)
        own = (indices[height] + windows.before[0]) * row_length + indices[width] + windows.before[1]
        # Reads that would fall outside of the gradient are not made: if_then_else evaluates one branch.
        taken = tir.if_then_else(valid, places(*at).equal(own), tir.const(False, "bool"))
        return te.sum(tir.if_then_else(taken, grads(*at), tir.const(0, grads.dtype)), axis=axes)

    made: Tensor = te.compute(data.shape, element, name="pool_grad_max", tag="pool_grad_max")
    return made
