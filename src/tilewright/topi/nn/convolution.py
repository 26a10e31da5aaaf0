"""Convolutions over any number of spatial axes, in any order of axes; the public names per rank and layout use these.

A layout names each axis by a letter: ``N`` batch, ``C`` channels, ``O`` and ``I`` output and input channels of a
kernel, ``D``, ``H``, ``W`` space. The padded input is a stage of its own, ``pad_temp``. See ``sum_types`` for the types
of sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright import te
from tilewright.ir.expr import IterVar
from tilewright.te import Tensor
from tilewright.topi.nn.dilate import dilate
from tilewright.topi.nn.pad import pad_spatial
from tilewright.topi.nn.utils import as_type, pad_amounts, per_axis, sum_types
from tilewright.topi.utils import InvalidShapeError, equal_const_int, get_const_tuple, simplify

_TAP_NAMES = {"D": "rz", "H": "ry", "W": "rx", "I": "rc"}


def require_rank(tensor: Tensor, layout: str, what: str) -> None:
    """A tensor must have as many dimensions as its layout."""
    if len(tensor.shape) != len(layout):
        raise InvalidShapeError(
            f"{what} of layout {layout} has {len(layout)} dimensions, the tensor given has {len(tensor.shape)}"
        )


def require_equal(one: Any, other: Any, what: str) -> None:
    """Two extents must not be known to differ."""
    difference = simplify(one - other)
    if not isinstance(difference, int):
        difference = get_const_tuple([difference])[0]
    if isinstance(difference, int) and difference != 0:
        raise InvalidShapeError(f"{what}: {one} and {other} must be equal")


@dataclass(frozen=True)
class Windows:
    """Where the taps of a kernel read as it slides over the padded spatial axes of ``data``."""

    data: Tensor
    letters: str
    strides: tuple[Any, ...]
    dilation: tuple[Any, ...]
    extents: tuple[Any, ...]
    """The extents of the output, one a spatial axis."""

    def read_at(self, letter: str, index: Any, tap: Any) -> Any:
        """The index along a spatial axis that the tap reads for an index of the output."""
        axis = self.letters.index(letter)
        return index * self.strides[axis] + tap * self.dilation[axis]


def slide(
    data: Tensor,
    layout: str,
    kernel: Sequence[Any],
    strides: Any,
    padding: Any,
    dilation: Any,
    pad_value: Any = 0.0,
) -> Windows:
    """Pad ``data`` for a kernel of the given spatial extents, and say where its taps read."""
    letters = "".join(letter for letter in layout if letter in "DHW")
    every_stride = per_axis(strides, len(letters), "strides")
    every_dilation = per_axis(dilation, len(letters), "dilation")
    spans = [(extent - 1) * step + 1 for extent, step in zip(kernel, every_dilation, strict=True)]
    before, after = pad_amounts(padding, spans)
    axes = [layout.index(letter) for letter in letters]
    extents = tuple(
        simplify((data.shape[axis] - span + first + last) // stride + 1)
        for axis, span, first, last, stride in zip(axes, spans, before, after, every_stride, strict=True)
    )
    for letter, extent in zip(letters, get_const_tuple(extents), strict=True):
        if isinstance(extent, int) and extent <= 0:
            raise InvalidShapeError(
                f"the kernel is larger than the padded input along {letter}: the output would have size {extent}"
            )
    padded = pad_spatial(data, axes, before, after, pad_value)
    return Windows(padded, letters, every_stride, every_dilation, extents)


def spatial_extents(tensor: Tensor, layout: str) -> list[Any]:
    """The extents of the spatial axes, constants as integers."""
    return list(
        get_const_tuple(tensor.shape[position] for position, letter in enumerate(layout) if letter in "DHW")
    )


def conv(
    data: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_dtype: str | None = None,
    name: str = "conv",
    tag: str = "",
) -> Tensor:
    """The convolution (cross-correlation, the kernel is not flipped) of ``data`` with ``kernel``, its output in the
    layout of ``data``.

    With ``groups``, the channels of input and output are divided into as many parts, each with its own kernels.
    """
    require_rank(data, data_layout, "the input")
    require_rank(kernel, kernel_layout, "the kernel")
    windows = slide(data, data_layout, spatial_extents(kernel, kernel_layout), strides, padding, dilation)
    in_channels, out_channels = (
        kernel.shape[kernel_layout.index("I")],
        kernel.shape[kernel_layout.index("O")],
    )
    require_equal(
        data.shape[data_layout.index("C")], in_channels * groups, f"channels of the input of {name}"
    )
    per_group = _per_group(out_channels, groups, name)
    shape = _shape(data, data_layout, windows, out_channels)
    inner, result = sum_types(data.dtype, out_dtype)
    taps = _taps(kernel, kernel_layout.replace("O", ""), kernel_layout)
    summed = _sum_over_taps(windows, data_layout, kernel, kernel_layout, taps, inner)

    def element(*indices: Any) -> Any:
        at = dict(zip(data_layout, indices, strict=True))
        first = 0 if groups == 1 else (at["C"] // per_group) * in_channels
        read = {"N": at["N"], "C": first + taps["I"].var}
        weight = {"O": at["C"], "I": taps["I"].var}
        return summed(at, read, weight)

    made: Tensor = te.compute(
        shape, element, name=name, tag=tag, attrs={"layout_free_placeholders": [kernel]}
    )
    return as_type(made, result)


def depthwise(
    data: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    data_layout: str,
    kernel_layout: str,
    out_dtype: str | None,
    name: str,
    tag: str,
) -> Tensor:
    """Each channel convolved with its own kernels, as many as the multiplier.

    In the kernel's layout ``I`` is the channel and ``O`` which of its kernels.
    """
    require_rank(data, data_layout, "the input")
    require_rank(kernel, kernel_layout, "the kernel")
    windows = slide(data, data_layout, spatial_extents(kernel, kernel_layout), strides, padding, dilation)
    channels = kernel.shape[kernel_layout.index("I")]
    (multiplier,) = get_const_tuple([kernel.shape[kernel_layout.index("O")]])
    require_equal(data.shape[data_layout.index("C")], channels, f"channels of the input of {name}")
    shape = _shape(data, data_layout, windows, simplify(channels * multiplier))
    inner, result = sum_types(data.dtype, out_dtype)
    taps = _taps(kernel, windows.letters, kernel_layout)
    summed = _sum_over_taps(windows, data_layout, kernel, kernel_layout, taps, inner)

    def element(*indices: Any) -> Any:
        at = dict(zip(data_layout, indices, strict=True))
        single = isinstance(multiplier, int) and multiplier == 1
        channel = at["C"] if single else at["C"] // multiplier
        read = {"N": at["N"], "C": channel}
        weight = {"I": channel, "O": 0 if single else at["C"] % multiplier}
        return summed(at, read, weight)

    made: Tensor = te.compute(
        shape, element, name=name, tag=tag, attrs={"layout_free_placeholders": [kernel]}
    )
    return as_type(made, result)


def _per_group(out_channels: Any, groups: int, name: str) -> Any:
    """The output channels of a group."""
    (extent,) = get_const_tuple([out_channels])
    if groups < 1 or (isinstance(extent, int) and extent % groups):
        raise InvalidShapeError(f"{name}: {extent} output channels cannot be divided into {groups} groups")
    return simplify(out_channels // groups)


def _shape(data: Tensor, layout: str, windows: Windows, channels: Any) -> list[Any]:
    """The shape of the output, in the order of the input's axes."""
    extents = dict(zip(windows.letters, windows.extents, strict=True))
    extents.update(N=data.shape[layout.index("N")], C=channels)
    return [extents[letter] for letter in layout]


def _sum_over_taps(
    windows: Windows,
    data_layout: str,
    kernel: Tensor,
    kernel_layout: str,
    taps: Mapping[str, IterVar],
    inner: str,
) -> Callable[[Mapping[str, Any], dict[str, Any], dict[str, Any]], Any]:
    """A function from the index of an output element, and the batch and channel indices of the data and of the kernel
    that it reads, to the sum of their products over all taps."""

    def summed(at: Mapping[str, Any], read: dict[str, Any], weight: dict[str, Any]) -> Any:
        for letter in windows.letters:
            read[letter] = windows.read_at(letter, at[letter], taps[letter].var)
            weight[letter] = taps[letter].var
        product = windows.data(*[read[letter] for letter in data_layout]).astype(inner) * kernel(
            *[weight[letter] for letter in kernel_layout]
        ).astype(inner)
        return te.sum(product, axis=list(taps.values()))

    return summed


def _taps(kernel: Tensor, letters: str, layout: str) -> Mapping[str, IterVar]:
    """A reduction axis for each of the kernel's axes."""
    return {
        letter: te.reduce_axis((0, kernel.shape[layout.index(letter)]), name=_TAP_NAMES[letter])
        for letter in letters
    }


# Transposed convolution


def transposed_inputs(
    data: Tensor, kernel: Tensor, strides: Any, padding: Any, output_padding: Any, dilation: Any = 1
) -> tuple[Tensor, Tensor]:
    """The input dilated by the strides and padded, and the flipped kernel with output channels first.

    A plain convolution of stride one of these two is the transposed convolution. ``data`` is (batch, channels,
    space...), ``kernel`` (input channels, output channels, space...).
    """
    count = len(data.shape) - 2
    if count < 1 or len(kernel.shape) != count + 2:
        raise InvalidShapeError(
            f"a transposed convolution of {len(data.shape)} dimensions needs a kernel of as many, "
            f"not {len(kernel.shape)}"
        )
    every_stride = per_axis(strides, count, "strides")
    every_dilation = per_axis(dilation, count, "dilation")
    extra = per_axis(output_padding, count, "output_padding")
    for stride, step, more in zip(every_stride, every_dilation, extra, strict=True):
        if isinstance(more, int) and isinstance(stride, int) and isinstance(step, int):
            if not 0 <= more < max(stride, step):
                raise InvalidShapeError(
                    f"output_padding {more} must be less than the stride {stride} or the dilation {step}"
                )
    extents = get_const_tuple(kernel.shape[2:])
    spans = [(extent - 1) * step + 1 for extent, step in zip(extents, every_dilation, strict=True)]
    before, after = pad_amounts(padding, spans)
    spread = data
    if not all(equal_const_int(stride, 1) for stride in every_stride):
        spread = dilate(data, [1, 1, *every_stride], name="data_dilate")
    padded = pad_spatial(
        spread,
        list(range(2, count + 2)),
        get_const_tuple(simplify(span - 1 - first) for span, first in zip(spans, before, strict=True)),
        get_const_tuple(
            simplify(span - 1 - last + more) for span, last, more in zip(spans, after, extra, strict=True)
        ),
        name="data_pad",
    )

    def flipped(o: Any, i: Any, *taps: Any) -> Any:
        return kernel(i, o, *[extent - 1 - tap for extent, tap in zip(extents, taps, strict=True)])

    shape = (kernel.shape[1], kernel.shape[0], *kernel.shape[2:])
    return padded, te.compute(shape, flipped, name="kernel_transform", tag="injective")


def conv_transpose(
    data: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    output_padding: Any,
    out_dtype: str | None = None,
    groups: int = 1,
    dilation: Any = 1,
    name: str = "conv_transpose",
    tag: str = "",
) -> Tensor:
    """The gradient of a convolution by its input: ``data`` (batch, channels, space...) scattered through ``kernel``.

    ``kernel`` is (input channels, output channels of a group, space...).
    """
    count = len(data.shape) - 2
    require_equal(data.shape[1], kernel.shape[0], f"channels of the input of {name}")
    (in_channels,) = get_const_tuple([data.shape[1]])
    if groups < 1 or (isinstance(in_channels, int) and in_channels % groups):
        raise InvalidShapeError(
            f"{name}: {in_channels} input channels cannot be divided into {groups} groups"
        )
    padded, flipped = transposed_inputs(data, kernel, strides, padding, output_padding, dilation)
    every_dilation = per_axis(dilation, count, "dilation")
    out_per_group, in_per_group = kernel.shape[1], simplify(data.shape[1] // groups)
    inner, result = sum_types(data.dtype, out_dtype)
    channel = te.reduce_axis((0, in_per_group), name="dc")
    taps = [
        te.reduce_axis((0, extent), name=f"d{letter}")
        for extent, letter in zip(kernel.shape[2:], "dhw"[3 - count :], strict=True)
    ]
    extents = [
        simplify(extent - (window - 1) * step)
        for extent, window, step in zip(padded.shape[2:], kernel.shape[2:], every_dilation, strict=True)
    ]

    def element(n: Any, c: Any, *space: Any) -> Any:
        group = 0 if groups == 1 else c // out_per_group
        source = channel.var if groups == 1 else group * in_per_group + channel.var
        target = c if groups == 1 else c % out_per_group
        read = [index + tap.var * step for index, tap, step in zip(space, taps, every_dilation, strict=True)]
        product = padded(n, source, *read).astype(inner) * flipped(target, source, *taps).astype(inner)
        return te.sum(product, axis=[channel, *taps])

    made: Tensor = te.compute(
        (data.shape[0], simplify(out_per_group * groups), *extents), element, name=name, tag=tag
    )
    return as_type(made, result)
