"""Computations and schedules of ``topi`` in the form that strategies take.

A strategy takes computations (attrs, inputs, out_type) and schedules (attrs, outs, target). The functions here make
them from functions of ``topi``, to which they pass an operator's inputs and attributes in the right order. For a custom
target:

    strategy.add_implementation(
        wrap_compute_dense(my_dense), wrap_topi_schedule(my_schedule_dense), name="dense.mine", plevel=12
    )
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.relay.op.nn.convolution_rules import out_layout
from tilewright.te.tensor import Tensor
from tilewright.topi.nn.batch_matmul import known_shape
from tilewright.topi.nn.dense import copy_if_identical
from tilewright.topi.utils import get_const_tuple

Compute = Callable[[Any, Sequence[Tensor], Any], list[Tensor]]
Arguments = Callable[[Any, Sequence[Tensor], Any], Sequence[Any]]


def wrap_topi_compute(topi_compute: Callable[..., Any]) -> Compute:
    """A computation of ``topi`` that takes the inputs and nothing else."""
    return _wrapped(topi_compute, lambda attrs, inputs, out_type: inputs)


def _as_list(made: Any) -> list[Tensor]:
    return [made] if isinstance(made, Tensor) else list(made)


def _wrapped(topi_compute: Callable[..., Any], arguments: Arguments) -> Compute:
    def compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
        return _as_list(topi_compute(*arguments(attrs, inputs, out_type)))

    return compute


def wrapper(arguments: Arguments, name: str, description: str) -> Callable[[Callable[..., Any]], Compute]:
    """A function that wraps computations which take these arguments."""

    def wrap(topi_compute: Callable[..., Any]) -> Compute:
        return _wrapped(topi_compute, arguments)

    wrap.__name__ = wrap.__qualname__ = name
    wrap.__doc__ = description
    return wrap


def _out_dtype(attrs: Any, inputs: Sequence[Tensor]) -> str:
    """The type of the result, which is that of the data unless the attributes say otherwise."""
    return str(inputs[0].dtype) if attrs.out_dtype in ("", "same", None) else str(attrs.out_dtype)


def _window(attrs: Any) -> tuple[Any, Any, Any]:
    return get_const_tuple(attrs.strides), attrs.padding, get_const_tuple(attrs.dilation)


def wrap_compute_conv2d(
    topi_compute: Callable[..., Any],
    need_data_layout: bool = False,
    need_out_layout: bool = False,
    has_groups: bool = False,
    need_auto_scheduler_layout: bool = False,
) -> Compute:
    """(data, weight, strides, padding, dilation[, groups][, data layout][, out layout], out dtype[, layout])."""

    def arguments(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> Sequence[Any]:
        given = [*inputs, *_window(attrs)]
        given += [attrs.groups] if has_groups else []
        given += [attrs.data_layout] if need_data_layout else []
        given += [out_layout(attrs)] if need_out_layout else []
        given.append(_out_dtype(attrs, inputs))
        given += [attrs.auto_scheduler_rewritten_layout] if need_auto_scheduler_layout else []
        return given

    return _wrapped(topi_compute, arguments)


def wrap_compute_conv3d(
    topi_compute: Callable[..., Any], need_layout: bool = False, need_auto_scheduler_layout: bool = False
) -> Compute:
    """(data, weight, strides, padding, dilation[, layout], out dtype[, layout of a tuner])."""

    def arguments(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> Sequence[Any]:
        given = [*inputs, *_window(attrs)]
        given += [attrs.data_layout] if need_layout else []
        given.append(_out_dtype(attrs, inputs))
        given += [attrs.auto_scheduler_rewritten_layout] if need_auto_scheduler_layout else []
        return given

    return _wrapped(topi_compute, arguments)


def wrap_compute_conv2d_transpose(topi_compute: Callable[..., Any], has_groups: bool = False) -> Compute:
    """(data, weight, strides, padding, out dtype, output padding[, groups])."""

    def arguments(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> Sequence[Any]:
        given = [*inputs, attrs.strides, attrs.padding, _out_dtype(attrs, inputs), attrs.output_padding]
        return [*given, attrs.groups] if has_groups else given

    return _wrapped(topi_compute, arguments)


def wrap_compute_matmul(
    topi_compute: Callable[..., Any], need_auto_scheduler_layout: bool = False
) -> Compute:
    """(a, b, no bias, out dtype, transpose a, transpose b[, layout])."""

    def arguments(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> Sequence[Any]:
        flags = (attrs.transpose_a, attrs.transpose_b)
        given = [inputs[0], copy_if_identical(inputs[0], inputs[1]), None, attrs.out_dtype or None, *flags]
        return [*given, attrs.auto_scheduler_rewritten_layout] if need_auto_scheduler_layout else given

    return _wrapped(topi_compute, arguments)


def wrap_compute_dense(topi_compute: Callable[..., Any], need_auto_scheduler_layout: bool = False) -> Compute:
    """(data, weight, no bias, out dtype[, layout])."""

    def arguments(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> Sequence[Any]:
        given = [inputs[0], copy_if_identical(inputs[0], inputs[1]), None, _out_dtype(attrs, inputs)]
        return [*given, attrs.auto_scheduler_rewritten_layout] if need_auto_scheduler_layout else given

    return _wrapped(topi_compute, arguments)


def wrap_compute_dense_pack(topi_compute: Callable[..., Any]) -> Compute:
    """(data, packed weight, no bias, out dtype, units)."""

    def arguments(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> Sequence[Any]:
        return [*inputs, None, attrs.out_dtype or None, out_type.shape[1]]

    return _wrapped(topi_compute, arguments)


def wrap_compute_batch_matmul(
    topi_compute: Callable[..., Any], need_auto_scheduler_layout: bool = False, need_out_dtype: bool = False
) -> Compute:
    """(a, b, the result's shape, out dtype or None, transpose a, transpose b[, layout])."""

    def arguments(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> Sequence[Any]:
        wanted = attrs.out_dtype or (str(out_type.dtype) if need_out_dtype else None)
        second = copy_if_identical(inputs[0], inputs[1])
        flags = attrs.transpose_a, attrs.transpose_b
        given = [inputs[0], second, known_shape(out_type), wanted, *flags]
        return [*given, attrs.auto_scheduler_rewritten_layout] if need_auto_scheduler_layout else given

    return _wrapped(topi_compute, arguments)


def wrap_compute_scanop(topi_compute: Callable[..., Any]) -> Compute:
    """(data, axis, dtype, exclusive)."""
    return _wrapped(
        topi_compute, lambda attrs, inputs, out_type: (inputs[0], attrs.axis, attrs.dtype, attrs.exclusive)
    )


def wrap_compute_dilation2d(topi_compute: Callable[..., Any], need_data_layout: bool = False) -> Compute:
    """(data, weight, strides, padding, dilations[, layout], out dtype)."""

    def arguments(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> Sequence[Any]:
        given = [*inputs, attrs.strides, attrs.padding, attrs.dilations]
        given += [attrs.data_layout] if need_data_layout else []
        return [*given, attrs.out_dtype or None]

    return _wrapped(topi_compute, arguments)


wrap_compute_softmax = wrapper(
    lambda attrs, inputs, out_type: (inputs[0], attrs.axis), "wrap_compute_softmax", "(data, axis)."
)
wrap_compute_conv1d = wrapper(
    lambda attrs, inputs, out_type: (*inputs, *_window(attrs), _out_dtype(attrs, inputs)),
    "wrap_compute_conv1d",
    "(data, weight, strides, padding, dilation, out dtype).",
)
wrap_compute_conv1d_transpose = wrapper(
    lambda attrs, inputs, out_type: (
        *inputs,
        attrs.strides,
        attrs.padding,
        _out_dtype(attrs, inputs),
        attrs.output_padding,
    ),
    "wrap_compute_conv1d_transpose",
    "(data, weight, strides, padding, out dtype, output padding).",
)
wrap_compute_conv3d_transpose = wrapper(
    lambda attrs, inputs, out_type: (
        *inputs,
        attrs.strides,
        attrs.padding,
        _out_dtype(attrs, inputs),
        attrs.output_padding,
    ),
    "wrap_compute_conv3d_transpose",
    "(data, weight, strides, padding, out dtype, output padding).",
)
wrap_compute_deformable_conv2d = wrapper(
    lambda attrs, inputs, out_type: (
        *inputs,
        *_window(attrs),
        attrs.deformable_groups,
        attrs.groups,
        attrs.out_dtype or None,
    ),
    "wrap_compute_deformable_conv2d",
    "(data, offset, weight, strides, padding, dilation, deformable groups, groups, out dtype).",
)
wrap_compute_sparse_dense = wrapper(
    lambda attrs, inputs, out_type: (*inputs, attrs.sparse_lhs),
    "wrap_compute_sparse_dense",
    "(dense, values, columns, row starts, whether the sparse matrix is the first).",
)
wrap_compute_sparse_add = wrapper(
    lambda attrs, inputs, out_type: inputs,
    "wrap_compute_sparse_add",
    "(dense, values, columns, row starts).",
)
wrap_compute_sparse_conv2d = wrapper(
    lambda attrs, inputs, out_type: (*inputs, attrs.layout, attrs.kernel_size),
    "wrap_compute_sparse_conv2d",
    "(data, values, columns, row starts, layout, kernel size).",
)
wrap_compute_bitserial_conv2d = wrapper(
    lambda attrs, inputs, out_type: (
        *inputs,
        attrs.strides,
        attrs.padding,
        attrs.activation_bits,
        attrs.weight_bits,
        attrs.pack_dtype,
        attrs.out_dtype,
        attrs.unipolar,
    ),
    "wrap_compute_bitserial_conv2d",
    "(data, weight, strides, padding, activation bits, weight bits, pack dtype, out dtype, unipolar).",
)
wrap_compute_bitserial_dense = wrapper(
    lambda attrs, inputs, out_type: (
        *inputs,
        attrs.data_bits,
        attrs.weight_bits,
        attrs.pack_dtype,
        attrs.out_dtype,
        attrs.unipolar,
    ),
    "wrap_compute_bitserial_dense",
    "(data, weight, data bits, weight bits, pack dtype, out dtype, unipolar).",
)
wrap_compute_correlation = wrapper(
    lambda attrs, inputs, out_type: (
        *inputs,
        attrs.kernel_size,
        attrs.max_displacement,
        attrs.stride1,
        attrs.stride2,
        attrs.padding,
        attrs.is_multiply,
    ),
    "wrap_compute_correlation",
    "(data1, data2, kernel size, max displacement, stride1, stride2, padding, is multiply).",
)
