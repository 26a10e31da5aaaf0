"""TVM's ``relay.frontend.common``: what importers written for TVM share, beside this version's own helpers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.compat.frontend_attributes import (
    AttrCvt,
    ExprTable,
    Renamer,
    RequiredAttr,
    StrAttrsDict,
    get_relay_op,
)
from tilewright.compat.frontend_cells import gru_cell, lstm_cell, unbind
from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import IntImm
from tilewright.ir.module import IRModule
from tilewright.relay import op, transform
from tilewright.relay.analysis import free_vars
from tilewright.relay.build_module import bind_params_by_name, create_executor
from tilewright.relay.expr import Expr, TupleWrapper, Var, const, var
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_expr
from tilewright.runtime.ndarray import NDArray
from tilewright.support.errors import ModelError, TilewrightError

__all__ = [
    "AttrCvt",
    "ExprTable",
    "Renamer",
    "RequiredAttr",
    "StrAttrsDict",
    "autopad",
    "ensure_scalar_shape",
    "fold_constant",
    "get_name",
    "get_relay_op",
    "gru_cell",
    "infer_channels",
    "infer_shape",
    "infer_type",
    "infer_value",
    "infer_value_simulated",
    "lstm_cell",
    "new_var",
    "shape_of",
    "to_int_list",
    "try_infer_value",
    "try_resolve_var_to_const",
    "unbind",
]


def _expression(given: Any) -> RelayExpr:
    made: RelayExpr = given.astuple() if isinstance(given, TupleWrapper) else given
    return made


def _module(expr: RelayExpr, mod: IRModule | None) -> IRModule:
    """A module of the expression, with the functions and types of another."""
    around = mod if mod is not None else IRModule()
    return IRModule.from_expr(expr, around.functions, around.type_definitions)


def get_name(node: Any) -> str:
    """The name of a variable."""
    return str(getattr(node, "name_hint", ""))


def infer_type(node: Any, mod: IRModule | None = None) -> Any:
    """The expression with its types; ``mod`` has the functions that it calls."""
    return infer_expr(_expression(node), mod)


def fold_constant(node: Any, mod: IRModule | None = None) -> Any:
    """The expression with what is known computed."""
    module = _module(_expression(node), mod)
    made = transform.FoldConstant()(transform.InferType()(module))["main"]
    return made if isinstance(node, Function) else made.body


def infer_shape(inputs: Any, mod: IRModule | None = None) -> tuple[Any, ...]:
    """The shape of an expression as numbers; a dimension that is not known stays an expression."""
    found = infer_type(inputs, mod).checked_type
    return tuple(each.value if isinstance(each, IntImm) else each for each in getattr(found, "shape", ()))


def infer_channels(inputs: Any, transpose: bool = False) -> Any:
    """The number of output channels of a convolution, from its weights."""
    return infer_shape(inputs)[1 if transpose else 0]


def infer_value(input_val: Any, params: Mapping[str, Any], mod: IRModule | None = None) -> NDArray:
    """The value of an expression of parameters and constants; an error where an input is needed."""
    expr = _expression(input_val)
    missing = [each.name_hint for each in free_vars(expr) if each.name_hint not in params]
    if missing:
        raise ModelError(f"All inputs to infer must be available in params; {', '.join(missing)} are not")
    function = bind_params_by_name(Function(free_vars(expr), expr), dict(params))
    module = _module(function, mod)
    return create_executor("debug", module).evaluate()()  # type: ignore[no-any-return]


def infer_value_simulated(input_val: Any, params: Mapping[str, Any]) -> NDArray:
    """As ``infer_value``, with ones for the inputs that have no value."""
    expr = _expression(input_val)
    values = dict(params)
    for each in free_vars(expr):
        if each.name_hint not in values:
            kind = infer_type(each).checked_type
            values[each.name_hint] = np.ones(infer_shape(each), str(kind.dtype))
    return infer_value(expr, values)


def try_infer_value(
    val: Any,
    on_success: Callable[[Any], Any] | None = None,
    on_failure: Callable[[], Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> tuple[Any, bool]:
    """The value of an expression as an array and True; or the expression, or what ``on_failure`` gives, and False."""
    try:
        found = infer_value(val, parameters or {}).numpy()
    except (TilewrightError, TypeError, ValueError):
        return (on_failure(), False) if on_failure is not None else (val, False)
    return (on_success(found) if on_success is not None else found), True


def shape_of(x: Any, dtype: str = "int64") -> RelayExpr:
    """The shape as a tensor: a constant where it is known."""
    shape = infer_shape(x)
    if all(isinstance(each, int) for each in shape):
        return const(np.array(shape, dtype), dtype)
    return op.shape_of(x, dtype)


def new_var(name_hint: str, type_annotation: Any = None, shape: Any = None, dtype: str = "float32") -> Var:
    """A variable of a type, or of a shape and an element type."""
    return var(name_hint, type_annotation, shape, dtype)


def to_int_list(np_array: Any) -> list[int]:
    """The elements of an array as numbers of Python."""
    return [int(each) for each in np_array]


def ensure_scalar_shape(x: Any) -> Any:
    """A tensor of one element without dimensions."""
    shape = infer_shape(x)
    if not shape:
        return x
    if int(np.prod(shape)) != 1:
        raise ModelError(f"a tensor of one element is needed, not one of the shape {shape}")
    return op.reshape(x, ()) if len(shape) > 1 else op.squeeze(x, [0])


def try_resolve_var_to_const(x: Any, graph_params: Mapping[str, Any]) -> Any:
    """The parameter that a variable is, as a constant; anything else as it is."""
    if isinstance(x, Var) and x.name_hint in graph_params:
        value = graph_params[x.name_hint]
        return const(value.numpy() if hasattr(value, "numpy") else value)
    return x


def autopad(
    data: Any,
    strides: Sequence[int],
    kernel_shape: Sequence[int],
    dilations: Sequence[int] = (1, 1),
    pad_type: str = "constant",
    deconv: bool = False,
    mode: str = "SAME_UPPER",
    pad_value: float = 0.0,
) -> Any:
    """The data padded so that a window with these strides gives as many results as there are inputs, divided by the
    strides. The first two dimensions are not windowed. "SAME_UPPER" puts the odd one at the end, "SAME_LOWER" before.
    """
    mode = mode.upper()
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise ModelError(f"the modes of padding are SAME_UPPER and SAME_LOWER, not {mode}")
    windows = len(infer_type(data).checked_type.shape) - 2
    stride, kernel = np.array(list(strides)[:windows], "int64"), np.array(kernel_shape, "int64")
    reach = (kernel - 1) * np.array(list(dilations)[:windows], "int64") + 1
    known = infer_shape(data)
    if all(isinstance(each, int) for each in known):
        sizes = np.array(known[2:], "int64")
        if deconv:
            total = reach - 1 - stride + 1
        else:
            rest = sizes % stride
            total = np.maximum(np.where(rest == 0, reach - stride, reach - rest), 0)
        less = total // 2
        before, after = (less, total - less) if mode == "SAME_UPPER" else (total - less, less)
        widths = [(0, 0), (0, 0), *zip(before.tolist(), after.tolist(), strict=True)]
        return op.nn.pad(data, tuple(widths), pad_value, pad_type)
    return _autopad_at_run_time(data, stride, reach, deconv, mode, pad_value, pad_type)


def _autopad_at_run_time(
    data: Expr, stride: Any, reach: Any, deconv: bool, mode: str, pad_value: float, pad_type: str
) -> Any:
    """As ``autopad``, computed from a shape that only the run knows."""
    steps, window = const(stride), const(reach)
    sizes = op.strided_slice(op.shape_of(data, "int64"), [2], [len(stride) + 2])
    zero = const(np.zeros(len(stride), "int64"))
    total: RelayExpr = const(reach - stride)
    if not deconv:
        rest = op.mod(sizes, steps)
        total = op.maximum(op.where(op.equal(rest, zero), window - steps, window - rest), zero)
    less = op.floor_divide(total, const(np.full(len(stride), 2, "int64")))
    pair = (less, total - less) if mode == "SAME_UPPER" else (total - less, less)
    widths = op.concatenate([const(np.zeros((2, 2), "int64")), op.stack(pair, axis=1)], axis=0)
    return op.nn.pad(data, widths, const(pad_value), pad_type)
