"""cuDNN in tensor expressions, for arrays on an NVIDIA GPU: convolutions, their gradients, softmax.

The formats of tensors are 0 (NCHW), 1 (NHWC) and 2 (NCHW with vectors of channels); the modes of convolutions are 0 (a
mathematical convolution) and 1 (cross-correlation, which is what models call one).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import te
from tilewright.runtime.external import cudnn, cudnn_convolution
from tilewright.support.errors import ExpressionError, RuntimeFailure
from tilewright.tir import call_packed

_ALGORITHMS = {
    "fwd": (
        "IMPLICIT_GEMM IMPLICIT_PRECOMP_GEMM GEMM DIRECT FFT FFT_TILING WINOGRAD WINOGRAD_NONFUSED COUNT",
        "CUDNN_CONVOLUTION_FWD_ALGO_",
    ),
    "bwd_filter": (
        "0 1 FFT 3 WINOGRAD WINOGRAD_NONFUSED FFT_TILING COUNT",
        "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_",
    ),
    "bwd_data": (
        "0 1 FFT FFT_TILING WINOGRAD WINOGRAD_NONFUSED COUNT",
        "CUDNN_CONVOLUTION_BWD_DATA_ALGO_",
    ),
}
_VECTORS = {"int8x4": 4, "uint8x4": 4, "int8x32": 32}


def exists() -> bool:
    """True if cuDNN can be loaded and finds a GPU."""
    try:
        return cudnn.version() > 0
    except (OSError, RuntimeFailure):
        return False


def algo_to_index(algo_type: str, algo_name: str) -> int:
    """The number of an algorithm of ``fwd``, ``bwd_filter`` or ``bwd_data``; -1 for a name that there is not."""
    names, prefix = _ALGORITHMS.get(algo_type, ("", ""))
    found = [f"{prefix}{name}" for name in names.split()]
    return found.index(algo_name) if algo_name in found else -1


def _per_axis(given: Any, dimensions: int, what: str) -> tuple[int, ...]:
    found = (int(given),) * dimensions if isinstance(given, int) else tuple(int(one) for one in given)
    if len(found) != dimensions:
        raise ExpressionError(f"{what} has {len(found)} values for {dimensions} axes")
    return found


def _numbers(shape: Sequence[Any]) -> list[int]:
    return [int(getattr(extent, "value", extent)) for extent in shape]


def _described(
    tensor_format: int,
    pad: Any,
    stride: Any,
    dilation: Any,
    dimensions: int,
    conv_dtype: str,
    groups: int,
    mode: int = 1,
) -> cudnn_convolution.Convolution:
    if tensor_format not in (0, 1, 2) or (tensor_format == 1 and dimensions != 2):
        raise ExpressionError(
            f"the format is 0 (NCHW), 1 (NHWC, of images) or 2 (NCHW_VECT_C), not {tensor_format} for {dimensions} axes"
        )
    windows = [
        _per_axis(given, dimensions, what)
        for given, what in ((pad, "pad"), (stride, "stride"), (dilation, "dilation"))
    ]
    return cudnn_convolution.Convolution(
        mode, tensor_format, windows[0], windows[1], windows[2], conv_dtype, groups
    )


def conv_output_shape(
    tensor_format: int,
    pad: Any,
    stride: Any,
    dilation: Any,
    x_shape: Sequence[Any],
    w_shape: Sequence[Any],
    data_dtype: str,
    conv_dtype: str,
    groups: int = 1,
) -> list[int]:
    """The shape of a convolution's result."""
    data, weights = _numbers(x_shape), _numbers(w_shape)
    given = _described(tensor_format, pad, stride, dilation, len(data) - 2, conv_dtype, groups)
    axes = slice(1, -1) if tensor_format == 1 else slice(2, None)
    channels, depth = (data[-1], weights[-1]) if tensor_format == 1 else (data[1], weights[1])
    vector = _VECTORS.get(data_dtype, 1) if tensor_format == 2 else 1
    if channels * vector != depth * groups and channels != depth * groups:
        raise ExpressionError(f"{channels} channels in {groups} groups do not fit weights of {depth}")
    sizes = []
    for size, window, padding, step, spread in zip(
        data[axes], weights[axes], given.padding, given.strides, given.dilation, strict=True
    ):
        sizes.append((size + 2 * padding - spread * (window - 1) - 1) // step + 1)
    if tensor_format == 1:
        return [data[0], *sizes, weights[0]]
    return [data[0], weights[0] // vector if vector > 1 else weights[0], *sizes]


def _conv_output_shape_from_cudnn(
    tensor_format: int,
    pad: Any,
    stride: Any,
    dilation: Any,
    x_shape: Sequence[Any],
    w_shape: Sequence[Any],
    data_dtype: str,
    conv_dtype: str,
    groups: int = 1,
) -> list[int]:
    """As ``conv_output_shape``, computed by cuDNN."""
    given = _described(tensor_format, pad, stride, dilation, len(x_shape) - 2, conv_dtype, groups)
    return cudnn_convolution.output_shape(given, _numbers(x_shape), _numbers(w_shape), data_dtype)


def conv_find_algo(
    tensor_format: int,
    pad: Any,
    stride: Any,
    dilation: Any,
    x_shape: Sequence[Any],
    w_shape: Sequence[Any],
    y_shape: Sequence[Any],
    data_dtype: str,
    conv_dtype: str,
    groups: int = 1,
) -> int:
    """The algorithm that cuDNN proposes for a convolution."""
    given = _described(tensor_format, pad, stride, dilation, len(x_shape) - 2, conv_dtype, groups)
    shapes = [_numbers(shape) for shape in (x_shape, w_shape, y_shape)]
    return cudnn_convolution.find_algorithm("Forward", given, shapes, [data_dtype] * 3)


def _extern(
    name: str, given: cudnn_convolution.Convolution, algo: int, shape: Any, operands: list[te.Tensor]
) -> te.Tensor:
    dimensions = len(given.padding)
    made: te.Tensor = te.extern(
        shape,
        operands,
        lambda ins, outs: call_packed(
            f"tvm.contrib.cudnn.conv{dimensions}d.{name}",
            *(given.mode, given.tensor_format, algo, *given.padding, *given.strides, *given.dilation),
            *(*ins, outs[0], given.compute, given.groups),
        ),
        dtype=str(operands[0].dtype),
        name="y",
    )
    return made


def conv_forward(
    x: te.Tensor,
    w: te.Tensor,
    pad: Any,
    stride: Any,
    dilation: Any,
    conv_mode: int,
    tensor_format: int,
    algo: int,
    conv_dtype: str | None,
    groups: int = 1,
) -> te.Tensor:
    """A convolution of images or volumes as an external operation. ``algo`` -1 is the library's choice; ``conv_dtype``
    is the type that sums are taken in, by default that of ``x``."""
    compute = str(x.dtype) if conv_dtype is None else conv_dtype
    given = _described(tensor_format, pad, stride, dilation, len(x.shape) - 2, compute, groups, conv_mode)
    shape = conv_output_shape(
        *(tensor_format, pad, stride, dilation, x.shape, w.shape, str(x.dtype), compute, groups)
    )
    return _extern("forward", given, algo, shape, [x, w])


def conv_dgrad_shape(
    tensor_format: int,
    pad: Any,
    stride: Any,
    dilation: Any,
    dy_shape: Sequence[Any],
    w_shape: Sequence[Any],
    output_padding: Any = (0, 0),
    groups: int = 1,
) -> list[int]:
    """The shape of the data of a convolution whose result has the shape ``dy_shape``."""
    result, weights = _numbers(dy_shape), _numbers(w_shape)
    given = _described(tensor_format, pad, stride, dilation, len(result) - 2, "float32", groups)
    axes = slice(1, -1) if tensor_format == 1 else slice(2, None)
    sizes = [
        (size - 1) * step - 2 * padding + spread * (window - 1) + more + 1
        for size, step, padding, spread, window, more in zip(
            *(result[axes], given.strides, given.padding, given.dilation, weights[axes]),
            _per_axis(output_padding, len(given.padding), "output_padding"),
            strict=True,
        )
    ]
    if tensor_format == 1:
        return [result[0], *sizes, weights[-1] * groups]
    return [result[0], weights[1] * groups, *sizes]


def conv_backward_data(
    dy: te.Tensor,
    w: te.Tensor,
    pad: Any,
    stride: Any,
    dilation: Any,
    conv_mode: int,
    tensor_format: int,
    conv_dtype: str | None,
    groups: int = 1,
    output_padding: Any = (0, 0),
) -> te.Tensor:
    """The gradient of a convolution's data, which is a transposed convolution, as an external operation."""
    compute = str(dy.dtype) if conv_dtype is None else conv_dtype
    given = _described(tensor_format, pad, stride, dilation, len(dy.shape) - 2, compute, groups, conv_mode)
    shape = conv_dgrad_shape(
        *(tensor_format, pad, stride, dilation, dy.shape, w.shape, output_padding, groups)
    )
    return _extern("backward_data", given, -1, shape, [w, dy])


def conv_backward_filter(
    dy: te.Tensor,
    x: te.Tensor,
    kernel_size: Sequence[int],
    pad: Any,
    stride: Any,
    dilation: Any,
    conv_mode: int,
    tensor_format: int,
    conv_dtype: str | None,
    groups: int = 1,
) -> te.Tensor:
    """The gradient of a convolution's weights as an external operation."""
    compute = str(x.dtype) if conv_dtype is None else conv_dtype
    given = _described(tensor_format, pad, stride, dilation, len(x.shape) - 2, compute, groups, conv_mode)
    channels_last = tensor_format == 1
    units, channels = (dy.shape[-1], x.shape[-1]) if channels_last else (dy.shape[1], x.shape[1])
    depth = _numbers([channels])[0] // groups
    shape = [units, *kernel_size, depth] if channels_last else [units, depth, *kernel_size]
    return _extern("backward_filter", given, -1, shape, [x, dy])


def softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """Softmax along an axis as an external operation."""
    return _along("softmax", x, axis)


def log_softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """The logarithm of softmax along an axis as an external operation."""
    return _along("log_softmax", x, axis)


def _along(name: str, x: te.Tensor, axis: int) -> te.Tensor:
    made: te.Tensor = te.extern(
        x.shape,
        [x],
        lambda ins, outs: call_packed(f"tvm.contrib.cudnn.{name}.forward", ins[0], outs[0], axis),
        name="y",
    )
    return made
