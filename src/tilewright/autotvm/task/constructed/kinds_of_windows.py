"""The tasks of convolutions: arguments from calls, and calls from arguments."""

from __future__ import annotations

from typing import Any

from tilewright.autotvm.task.constructed.description import Description
from tilewright.relay.expr import var
from tilewright.relay.op.calls import call as operator_call
from tilewright.relay.op.nn.convolution_rules import is_multiplied
from tilewright.relay.op.nn.windows import pad_sides, per_axis
from tilewright.topi.utils import get_const_tuple

Arguments = tuple[Any, ...] | None


def variables(*tensors: Any) -> list[Any]:
    """Parameters for the tensors of a task."""
    return [
        var(f"p{number}", shape=tuple(tensor.shape), dtype=str(tensor.dtype))
        for number, tensor in enumerate(tensors)
    ]


def _out_dtype(call: Description) -> str:
    given = str(call.attrs.out_dtype or "")
    return call.tensors[0][2] if given in ("", "same") else given


def _window(call: Description, rank: int) -> tuple[Any, ...]:
    """Strides, padding on all sides, dilation."""
    first, last = pad_sides(get_const_tuple(call.attrs.padding), rank)
    strides = per_axis(get_const_tuple(call.attrs.strides), rank, "strides")
    dilation = per_axis(get_const_tuple(call.attrs.dilation), rank, "dilation")
    return tuple(strides), (*first, *last), tuple(dilation)


def _layouts(call: Description) -> tuple[str, str, str]:
    attrs = call.attrs
    return attrs.data_layout, attrs.kernel_layout, attrs.out_layout or attrs.data_layout


def _form(call: Description, channels: int, outputs: int) -> str:
    groups = call.attrs.groups
    if groups == 1:
        return "plain"
    return "depthwise" if is_multiplied(groups, channels, outputs) or groups == channels else "grouped"


def _nchw_form(call: Description) -> str | None:
    if _layouts(call) != ("NCHW", "OIHW", "NCHW"):
        return None
    return _form(call, call.tensors[0][1][1], call.tensors[1][1][0])


def conv2d_blocked_arguments(call: Description, form: str) -> Arguments:
    """(data, weight, strides, padding, dilation, layout, layout of the result, out dtype)."""
    if _nchw_form(call) != form:
        return None
    return (*call.tensors, *_window(call, 2), "NCHW", "NCHW", _out_dtype(call))


def conv2d_plain_arguments(call: Description, form: str) -> Arguments:
    """(data, weight, strides, padding, dilation, out dtype)."""
    if _nchw_form(call) != form:
        return None
    return (*call.tensors, *_window(call, 2), _out_dtype(call))


def conv2d_grouped_arguments(call: Description) -> Arguments:
    """(data, weight, strides, padding, dilation, groups, out dtype)."""
    if _nchw_form(call) != "grouped":
        return None
    return (*call.tensors, *_window(call, 2), int(call.attrs.groups), _out_dtype(call))


def conv2d_nhwc_arguments(call: Description, form: str) -> Arguments:
    """(data, weight, strides, padding, dilation, out dtype)."""
    kernel = "HWIO" if form == "plain" else "HWOI"
    if _layouts(call) != ("NHWC", kernel, "NHWC"):
        return None
    if _form(call, call.tensors[0][1][3], call.tensors[1][1][kernel.index("O")]) != form:
        return None
    return (*call.tensors, *_window(call, 2), _out_dtype(call))


def _conv2d(
    data: Any,
    weight: Any,
    window: tuple[Any, Any, Any],
    groups: int,
    layouts: tuple[str, str],
    out_dtype: str,
) -> tuple[Any, list[Any]]:
    parameters = variables(data, weight)
    made = operator_call(
        "nn.conv2d",
        *parameters,
        strides=tuple(window[0]),
        padding=tuple(window[1]),
        dilation=tuple(window[2]),
        groups=groups,
        data_layout=layouts[0],
        kernel_layout=layouts[1],
        out_dtype=out_dtype,
    )
    return made, parameters


def conv2d_blocked_call(
    data: Any,
    weight: Any,
    strides: Any,
    padding: Any,
    dilation: Any,
    layout: str,
    out_layout: str,
    out_dtype: str,
    depthwise: bool = False,
) -> tuple[Any, list[Any]]:
    """The call of ``conv2d_blocked_arguments``."""
    groups = get_const_tuple(data.shape)[1] if depthwise else 1
    return _conv2d(data, weight, (strides, padding, dilation), groups, ("NCHW", "OIHW"), out_dtype)


def conv2d_plain_call(
    data: Any,
    weight: Any,
    strides: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str,
    depthwise: bool = False,
) -> tuple[Any, list[Any]]:
    """The call of ``conv2d_plain_arguments``."""
    return conv2d_blocked_call(
        data, weight, strides, padding, dilation, "NCHW", "NCHW", out_dtype, depthwise=depthwise
    )


def conv2d_grouped_call(
    data: Any, weight: Any, strides: Any, padding: Any, dilation: Any, groups: int, out_dtype: str
) -> tuple[Any, list[Any]]:
    """The call of ``conv2d_grouped_arguments``."""
    return _conv2d(data, weight, (strides, padding, dilation), groups, ("NCHW", "OIHW"), out_dtype)


def conv2d_nhwc_call(
    data: Any,
    weight: Any,
    strides: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str,
    depthwise: bool = False,
) -> tuple[Any, list[Any]]:
    """The call of ``conv2d_nhwc_arguments``."""
    groups = get_const_tuple(data.shape)[3] if depthwise else 1
    layouts = ("NHWC", "HWOI" if depthwise else "HWIO")
    return _conv2d(data, weight, (strides, padding, dilation), groups, layouts, out_dtype)


_KERNELS = {"NCW": "OIW", "NWC": "WIO", "NCDHW": "OIDHW", "NDHWC": "DHWIO"}


def _other_rank_arguments(call: Description, layout: str, rank: int) -> Arguments:
    if _layouts(call) != (layout, _KERNELS[layout], layout) or call.attrs.groups != 1:
        return None
    return (*call.tensors, *_window(call, rank), _out_dtype(call))


def conv1d_arguments(call: Description, layout: str) -> Arguments:
    """(data, weight, strides, padding, dilation, out dtype)."""
    return _other_rank_arguments(call, layout, 1)


def conv3d_arguments(call: Description, layout: str) -> Arguments:
    """(data, weight, strides, padding, dilation, out dtype)."""
    return _other_rank_arguments(call, layout, 3)


def _other_rank_call(layout: str, data: Any, weight: Any, *window: Any) -> tuple[Any, list[Any]]:
    parameters = variables(data, weight)
    strides, padding, dilation, out_dtype = window
    made = operator_call(
        f"nn.conv{len(layout) - 2}d",
        *parameters,
        strides=tuple(strides),
        padding=tuple(padding),
        dilation=tuple(dilation),
        data_layout=layout,
        kernel_layout=_KERNELS[layout],
        out_dtype=out_dtype,
    )
    return made, parameters


conv1d_call = conv3d_call = _other_rank_call


def transposed_arguments(call: Description) -> Arguments:
    """(data, weight, strides, padding, out dtype, output padding)."""
    plain = (call.attrs.data_layout, call.attrs.kernel_layout) == ("NCHW", "IOHW")
    if not plain or call.attrs.groups != 1 or len(call.tensors[0][1]) != 4:
        return None
    strides, padding, dilation = _window(call, 2)
    if set(dilation) != {1}:
        return None
    more = tuple(per_axis(get_const_tuple(call.attrs.output_padding), 2, "output_padding"))
    return (*call.tensors, strides, padding, _out_dtype(call), more)


def transposed_call(
    data: Any, weight: Any, strides: Any, padding: Any, out_dtype: str, output_padding: Any
) -> tuple[Any, list[Any]]:
    """The call of ``transposed_arguments``."""
    parameters = variables(data, weight)
    made = operator_call(
        "nn.conv2d_transpose",
        *parameters,
        strides=tuple(strides),
        padding=tuple(padding),
        output_padding=tuple(output_padding),
        out_dtype=out_dtype,
    )
    return made, parameters
