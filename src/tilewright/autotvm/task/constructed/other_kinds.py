"""The tasks of matrix products and of operators without arguments of their own: arguments from calls, and back."""

from __future__ import annotations

from typing import Any

from tilewright.autotvm.task.constructed.description import Description
from tilewright.autotvm.task.constructed.kinds_of_windows import variables
from tilewright.autotvm.task.workload import serialize_args
from tilewright.relay.op.calls import call as operator_call

Arguments = tuple[Any, ...] | None


def _out_dtype(call: Description) -> str:
    given = str(call.attrs.out_dtype or "")
    return call.tensors[0][2] if given in ("", "same") else given


def dense_arguments(call: Description) -> Arguments:
    """(data, weight, no bias, out dtype)."""
    if any(len(tensor[1]) != 2 for tensor in call.tensors[:2]):
        return None
    return (*call.tensors[:2], None, _out_dtype(call))


def dense_call(data: Any, weight: Any, bias: Any, out_dtype: str) -> tuple[Any, list[Any]]:
    """The call of ``dense_arguments``."""
    parameters = variables(data, weight)
    units = int(weight.shape[0])
    return operator_call("nn.dense", *parameters, units=units, out_dtype=out_dtype), parameters


def batch_matmul_arguments(call: Description) -> Arguments:
    """(a, b, the result's shape, out dtype, transpose a, transpose b)."""
    first, second = (tensor[1] for tensor in call.tensors[:2])
    if len(first) != 3 or len(second) != 3:
        return None
    flags = bool(call.attrs.transpose_a), bool(call.attrs.transpose_b)
    rows, columns = first[2 if flags[0] else 1], second[1 if flags[1] else 2]
    shape = (max(first[0], second[0]), rows, columns)
    return (*call.tensors[:2], shape, _out_dtype(call), *flags)


def batch_matmul_call(
    tensor_a: Any,
    tensor_b: Any,
    shape: Any,
    out_dtype: str,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> tuple[Any, list[Any]]:
    """The call of ``batch_matmul_arguments``."""
    parameters = variables(tensor_a, tensor_b)
    made = operator_call(
        "nn.batch_matmul",
        *parameters,
        out_dtype=out_dtype or "",
        transpose_a=bool(transpose_a),
        transpose_b=bool(transpose_b),
    )
    return made, parameters


def any_arguments(call: Description) -> Arguments:
    """(tensors, then each attribute as (name, value))."""
    try:
        pairs = serialize_args([] if call.attrs is None else list(call.attrs.items()))
    except TypeError:
        return None
    return (*call.tensors, *pairs)


def any_call(operator: str, *args: Any) -> tuple[Any, list[Any]]:
    """The call of ``any_arguments``."""
    tensors = [argument for argument in args if hasattr(argument, "shape")]
    pairs = [argument for argument in args if not hasattr(argument, "shape")]
    parameters = variables(*tensors)
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in pairs}
    return operator_call(operator, *parameters, **given), parameters
