"""Convolutions by cuDNN, and their gradients, of arrays on an NVIDIA GPU as packed functions.

``tvm.contrib.cudnn.conv2d.forward`` and ``conv3d.forward`` take what TVM's of these names do: the mode, the format, the
algorithm (-1 for the library's choice), padding, strides and dilation, the arrays, the type of the sums, and groups;
``backward_data`` and ``backward_filter`` likewise. The three have one form in cuDNN, and one function here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from ctypes import c_double, c_float, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any

from tilewright.runtime.external.cudnn import check, loaded
from tilewright.runtime.failure import failure
from tilewright.runtime.ndarray import NDArray, empty
from tilewright.runtime.registry import register_func

TYPES = {
    "float32": 0,
    "float64": 1,
    "float16": 2,
    "int8": 3,
    "int32": 4,
    "int8x4": 5,
    "uint8": 6,
    "uint8x4": 7,
    "int8x32": 8,
    "bfloat16": 9,
}
NCHW, NHWC, NCHW_VECT_C = 0, 1, 2
_TENSOR_OPERATIONS, _FUSED_MULTIPLY_ADD = 1, 3
_ALGORITHMS = 16
"""More than cuDNN has for any of the three."""


class _Performance(ctypes.Structure):
    """cudnnConvolutionFwdAlgoPerf_t, and those of the gradients, which have the same form."""

    _fields_ = (
        ("algorithm", c_int),
        ("status", c_int),
        ("time", c_float),
        ("memory", c_size_t),
        ("determinism", c_int),
        ("math", c_int),
        ("reserved", c_int * 3),
    )


@dataclass(frozen=True)
class Convolution:
    """What is said of a convolution beside its arrays."""

    mode: int
    tensor_format: int
    padding: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    compute: str
    groups: int


def _integers(values: Sequence[int]) -> Any:
    return (c_int * len(values))(*values)


def _type_of(dtype: str) -> int:
    if dtype not in TYPES:
        raise failure("TypeError", f"cuDNN has no convolution of {dtype}; it has {', '.join(TYPES)}")
    return TYPES[dtype]


def _channels_first(shape: Sequence[int], tensor_format: int) -> list[int]:
    """Sizes in the order of NCHW, in which cuDNN wants them whatever the format."""
    found = [int(extent) for extent in shape]
    return [found[0], found[-1], *found[1:-1]] if tensor_format == NHWC else found


def _strides(sizes: Sequence[int], tensor_format: int) -> list[int]:
    """The strides of sizes in the order of NCHW."""
    order = [0, *range(2, len(sizes)), 1] if tensor_format == NHWC else list(range(len(sizes)))
    found, step = [0] * len(sizes), 1
    for axis in reversed(order):
        found[axis], step = step, step * sizes[axis]
    return found


@contextmanager
def _described(kind: str, fill: Callable[[ctypes.CDLL, c_void_p], int]) -> Iterator[c_void_p]:
    """A descriptor of a kind, filled and in the end destroyed."""
    library, _ = loaded()
    made = c_void_p()
    check(getattr(library, f"cudnnCreate{kind}Descriptor")(ctypes.byref(made)), f"describing a {kind}")
    try:
        check(fill(library, made), f"describing a {kind}")
        yield made
    finally:
        getattr(library, f"cudnnDestroy{kind}Descriptor")(made)


def _tensor(shape: Sequence[int], dtype: str, tensor_format: int) -> Any:
    sizes = _channels_first(shape, tensor_format)
    kind = c_int(_type_of(dtype))
    if tensor_format == NCHW_VECT_C:
        return _described(
            "Tensor",
            lambda library, made: library.cudnnSetTensorNdDescriptorEx(
                made, c_int(tensor_format), kind, c_int(len(sizes)), _integers(sizes)
            ),
        )
    return _described(
        "Tensor",
        lambda library, made: library.cudnnSetTensorNdDescriptor(
            made, kind, c_int(len(sizes)), _integers(sizes), _integers(_strides(sizes, tensor_format))
        ),
    )


def _filter(shape: Sequence[int], dtype: str, tensor_format: int) -> Any:
    sizes = _channels_first(shape, tensor_format)
    kind = c_int(_type_of(dtype))
    return _described(
        "Filter",
        lambda library, made: library.cudnnSetFilterNdDescriptor(
            made, kind, c_int(tensor_format), c_int(len(sizes)), _integers(sizes)
        ),
    )


def _convolution(given: Convolution) -> Any:
    def fill(library: ctypes.CDLL, made: c_void_p) -> int:
        status = library.cudnnSetConvolutionNdDescriptor(
            *(made, c_int(len(given.padding)), _integers(given.padding), _integers(given.strides)),
            *(_integers(given.dilation), c_int(given.mode), c_int(_type_of(given.compute))),
        )
        status = status or library.cudnnSetConvolutionGroupCount(made, c_int(given.groups))
        # float32 stays float32: by default, recent GPUs round the factors to 10 bits.
        math = _FUSED_MULTIPLY_ADD if given.compute in ("float32", "float64") else _TENSOR_OPERATIONS
        return int(status or library.cudnnSetConvolutionMathType(made, c_int(math)))

    return _described("Convolution", fill)


_DESCRIBED_AS = {"Forward": "tft", "BackwardData": "ftt", "BackwardFilter": "ttf"}
"""Which of the two operands and the result is a tensor, and which a filter."""


def convolve(direction: str, given: Convolution, algorithm: int, arrays: Sequence[NDArray]) -> None:
    """Forward: data, weights, result. BackwardData: weights, the gradient of the result, that of the data.
    BackwardFilter: data, the gradient of the result, that of the weights."""
    for one in arrays:
        if one.device.device_type != 2:
            raise failure("ValueError", f"cuDNN convolves arrays on an NVIDIA GPU, not on {one.device}")
    with ExitStack() as stack:
        layouts = [
            stack.enter_context(
                (_tensor if letter == "t" else _filter)(one.shape, str(one.dtype), given.tensor_format)
            )
            for letter, one in zip(_DESCRIBED_AS[direction], arrays, strict=True)
        ]
        about = stack.enter_context(_convolution(given))
        if algorithm < 0:
            algorithm = _best_algorithm(direction, layouts, about)
        library, handle = loaded()
        size = c_size_t()
        check(
            getattr(library, f"cudnnGetConvolution{direction}WorkspaceSize")(
                *(handle, layouts[0], layouts[1], about, layouts[2], c_int(algorithm), ctypes.byref(size))
            ),
            "asking for the size of the workspace",
        )
        workspace = empty((size.value,), "uint8", arrays[0].device) if size.value else None
        scalar = c_double if given.compute == "float64" else c_float
        unit, zero = scalar(1), scalar(0)
        addresses = [c_void_p(array.memory_range().start) for array in arrays]
        check(
            getattr(library, f"cudnnConvolution{direction}")(
                *(handle, ctypes.byref(unit), layouts[0], addresses[0], layouts[1], addresses[1]),
                *(about, c_int(algorithm)),
                c_void_p(workspace.memory_range().start if workspace is not None else None),
                *(size, ctypes.byref(zero), layouts[2], addresses[2]),
            ),
            f"convolving arrays of {' and '.join(str(array.shape) for array in arrays[:2])}",
        )


def _best_algorithm(direction: str, layouts: Sequence[c_void_p], about: c_void_p) -> int:
    """The first algorithm that cuDNN proposes and can run."""
    library, handle = loaded()
    found = (_Performance * _ALGORITHMS)()
    count = c_int()
    check(
        getattr(library, f"cudnnGetConvolution{direction}Algorithm_v7")(
            *(handle, layouts[0], layouts[1], about, layouts[2]),
            *(c_int(_ALGORITHMS), ctypes.byref(count), found),
        ),
        "choosing an algorithm",
    )
    for one in found[: count.value]:
        if one.status == 0:
            return int(one.algorithm)
    raise failure("RuntimeError", "cuDNN has no algorithm for this convolution")


def find_algorithm(
    direction: str, given: Convolution, shapes: Sequence[Sequence[int]], dtypes: Sequence[str]
) -> int:
    """The algorithm that cuDNN proposes for operands and a result of these shapes and types."""
    with ExitStack() as stack:
        layouts = [
            stack.enter_context((_tensor if letter == "t" else _filter)(shape, dtype, given.tensor_format))
            for letter, shape, dtype in zip(_DESCRIBED_AS[direction], shapes, dtypes, strict=True)
        ]
        return _best_algorithm(direction, layouts, stack.enter_context(_convolution(given)))


def output_shape(given: Convolution, data: Sequence[int], weights: Sequence[int], dtype: str) -> list[int]:
    """The shape of a convolution's result as cuDNN computes it."""
    library, _ = loaded()
    with (
        _tensor(data, dtype, given.tensor_format) as first,
        _filter(weights, dtype, given.tensor_format) as second,
        _convolution(given) as about,
    ):
        sizes = _integers([0] * len(data))
        check(
            library.cudnnGetConvolutionNdForwardOutputDim(about, first, second, c_int(len(data)), sizes),
            "computing the shape of a result",
        )
    found = list(sizes)
    return [found[0], *found[2:], found[1]] if given.tensor_format == NHWC else found


def _register(name: str, direction: str, dimensions: int) -> None:
    """A packed function of mode, format, algorithm, padding, strides, dilation, three arrays, type and groups."""

    def run(*arguments: Any) -> None:
        mode, tensor_format, algorithm = (int(one) for one in arguments[:3])
        windows = [int(one) for one in arguments[3 : 3 + 3 * dimensions]]
        arrays, compute, groups = arguments[-5:-2], str(arguments[-2]), int(arguments[-1])
        padding, strides, dilation = (
            tuple(windows[part * dimensions : (part + 1) * dimensions]) for part in range(3)
        )
        given = Convolution(mode, tensor_format, padding, strides, dilation, compute, groups)
        convolve(direction, given, algorithm, arrays)

    register_func(f"tvm.contrib.cudnn.conv{dimensions}d.{name}", run)


for _dimensions in (2, 3):
    _register("forward", "Forward", _dimensions)
    _register("backward_data", "BackwardData", _dimensions)
    _register("backward_filter", "BackwardFilter", _dimensions)
