"""Normalisation: by layer, instance, group, batch and length.

The mean is subtracted before squares are added, so that a large mean costs no accuracy; sixteen-bit floats are added in
float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import te, tir
from tilewright.support.dtype import DataType
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.nn.utils import sum_types
from tilewright.topi.utils import InvalidShapeError, get_const_tuple, prod, simplify


def _positions(axis: Any, rank: int, what: str) -> list[int]:
    """Axes as sorted positions, each once."""
    axes = list(axis) if isinstance(axis, (tuple, list)) else [axis]
    for each in axes:
        if not -rank <= int(each) < rank:
            raise InvalidShapeError(f"{what}: axis {each} of a tensor of {rank} dimensions")
    return sorted({int(each) % rank for each in axes})


class _Moments:
    """The mean and the variance of ``read`` over some axes of a shape."""

    def __init__(self, shape: Sequence[Any], read: Any, axes: list[int], inner: DataType) -> None:
        self.axes = axes
        self.inner = inner
        self.read = read
        self.kept = [extent for position, extent in enumerate(shape) if position not in axes]
        self.extents = [shape[position] for position in axes]
        self.count = simplify(prod(self.extents))
        self.mean = self._average(lambda at, rest: self.value(at), "mean")

        def square(at: list[Any], rest: tuple[Any, ...]) -> Any:
            away = self.value(at) - self.mean(*rest)
            return away * away

        self.variance = self._average(square, "variance")

    def value(self, at: Sequence[Any]) -> Any:
        """An element in the type of the sums."""
        return self.read(*at).astype(self.inner)

    def rest(self, at: Sequence[Any]) -> list[Any]:
        """The indices of the mean that an element is normalised with."""
        return [index for position, index in enumerate(at) if position not in self.axes]

    def _average(self, element: Any, name: str) -> Tensor:
        taps = [te.reduce_axis((0, extent), name=f"k{number}") for number, extent in enumerate(self.extents)]

        def total_of(*rest: Any) -> Any:
            at, left = [], list(rest)
            steps = list(taps)
            for position in range(len(rest) + len(taps)):
                at.append(steps.pop(0).var if position in self.axes else left.pop(0))
            return te.sum(element(at, rest), axis=taps)

        total = te.compute(self.kept, total_of, name=f"{name}_sum", tag=tag.COMM_REDUCE)
        made: Tensor = te.compute(
            self.kept,
            lambda *rest: total(*rest) / self.count_value(),
            name=name,
            tag=tag.ELEMWISE,
        )
        return made

    def count_value(self) -> Any:
        """How many elements are averaged, in the type of the sums."""
        count = self.count
        return tir.const(count, self.inner) if isinstance(count, int) else count.astype(self.inner)

    def normalized(self, at: Sequence[Any], epsilon: float) -> Any:
        """``(x - mean) / sqrt(variance + epsilon)``."""
        rest = self.rest(at)
        scale = te.rsqrt(self.variance(*rest) + tir.const(epsilon, self.inner))
        return (self.value(at) - self.mean(*rest)) * scale


def _affine(value: Any, gamma: Tensor | None, beta: Tensor | None, at: Sequence[Any], inner: DataType) -> Any:
    """``value * gamma + beta``, where those are given."""
    if gamma is not None:
        value = value * gamma(*at).astype(inner)
    return value if beta is None else value + beta(*at).astype(inner)


def layer_norm(
    data: Tensor, gamma: Tensor | None, beta: Tensor | None, axis: Any = -1, epsilon: float = 1e-5
) -> Tensor:
    """``data`` with mean 0 and variance 1 over the axes together, times ``gamma`` plus ``beta`` of their shape."""
    axes = _positions(axis, len(data.shape), "layer_norm")
    inner, result = sum_types(data.dtype, None)
    moments = _Moments(data.shape, data, axes, inner)

    def element(*at: Any) -> Any:
        along = [at[position] for position in axes]
        return _affine(moments.normalized(at, epsilon), gamma, beta, along, inner).astype(result)

    made: Tensor = te.compute(data.shape, element, name="T_layer_norm", tag=tag.BROADCAST)
    return made


def instance_norm(
    data: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    channel_axis: int = 1,
    axis: Any = None,
    epsilon: float = 1e-5,
) -> Tensor:
    """Each channel of each item with mean 0 and variance 1 over ``axis``, by default all but batch and channel."""
    rank = len(data.shape)
    (channel,) = _positions(channel_axis, rank, "instance_norm")
    axes = (
        [position for position in range(1, rank) if position != channel]
        if axis is None
        else _positions(axis, rank, "instance_norm")
    )
    inner, result = sum_types(data.dtype, None)
    moments = _Moments(data.shape, data, axes, inner)

    def element(*at: Any) -> Any:
        return _affine(moments.normalized(at, epsilon), gamma, beta, [at[channel]], inner).astype(result)

    made: Tensor = te.compute(data.shape, element, name="T_instance_norm", tag=tag.BROADCAST)
    return made


def group_norm(
    data: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    num_groups: int,
    channel_axis: int = 1,
    axes: Any = None,
    epsilon: float = 1e-5,
) -> Tensor:
    """Groups of channels with mean 0 and variance 1 over the group and ``axes``, by default all but the batch."""
    rank = len(data.shape)
    (channel,) = _positions(channel_axis, rank, "group_norm")
    reduced = (
        [position for position in range(1, rank) if position != channel]
        if axes is None
        else _positions(axes, rank, "group_norm")
    )
    (channels,) = get_const_tuple([data.shape[channel]])
    if isinstance(channels, int) and channels % num_groups:
        raise InvalidShapeError(f"group_norm: {channels} channels cannot be divided into {num_groups} groups")
    size = simplify(data.shape[channel] // num_groups)
    inner, result = sum_types(data.dtype, None)

    # Seen with the channel axis as two, (group, channel of the group), groups are instances.
    def read(*at: Any) -> Any:
        merged = at[channel] * size + at[channel + 1]
        return data(*at[:channel], merged, *at[channel + 2 :])

    shape = [*data.shape[:channel], num_groups, size, *data.shape[channel + 1 :]]
    split = [position + int(position > channel) for position in reduced if position != channel]
    moments = _Moments(shape, read, sorted([channel + 1, *split]), inner)

    def element(*at: Any) -> Any:
        index = at[channel]
        wide = [*at[:channel], index // size, index % size, *at[channel + 1 :]]
        return _affine(moments.normalized(wide, epsilon), gamma, beta, [index], inner).astype(result)

    made: Tensor = te.compute(data.shape, element, name="T_group_norm", tag=tag.BROADCAST)
    return made


def batch_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    moving_mean: Tensor,
    moving_var: Tensor,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> list[Tensor]:
    """``data`` normalised with known means and variances along ``axis``, and those two as they were."""
    (channel,) = _positions(axis, len(data.shape), "batch_norm")
    inner, result = sum_types(data.dtype, None)

    def element(*at: Any) -> Any:
        c = at[channel]
        spread = te.sqrt(moving_var(c).astype(inner) + tir.const(epsilon, inner))
        value = (data(*at).astype(inner) - moving_mean(c).astype(inner)) / spread
        return _affine(value, gamma if scale else None, beta if center else None, [c], inner).astype(result)

    made: Tensor = te.compute(data.shape, element, name="T_batch_norm", tag=tag.BROADCAST)
    return [made, moving_mean, moving_var]


def l2_normalize(data: Tensor, eps: float, axis: Any = None) -> Tensor:
    """``data / sqrt(max(sum(data ** 2), eps))``, summed over the axes; over all where none is given."""
    rank = len(data.shape)
    axes = _positions(axis if axis else list(range(rank)), rank, "l2_normalize")
    inner, result = sum_types(data.dtype, None)
    kept = [extent for position, extent in enumerate(data.shape) if position not in axes]
    taps = {position: te.reduce_axis((0, data.shape[position]), name=f"k{position}") for position in axes}

    def total_of(*rest: Any) -> Any:
        left = list(rest)
        at = [taps[position].var if position in taps else left.pop(0) for position in range(rank)]
        value = data(*at).astype(inner)
        return te.sum(value * value, axis=list(taps.values()))

    total = te.compute(kept, total_of, name="l2_sum", tag=tag.COMM_REDUCE)

    def element(*at: Any) -> Any:
        rest = [index for position, index in enumerate(at) if position not in taps]
        length = te.sqrt(tir.Max(total(*rest), tir.const(eps, inner)))
        return (data(*at).astype(inner) / length).astype(result)

    made: Tensor = te.compute(data.shape, element, name="T_l2_normalize", tag=tag.BROADCAST)
    return made
