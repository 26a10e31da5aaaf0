"""UnsignedData: quantised tensors as unsigned integers, where dot products take an unsigned and a signed factor.

An int8 tensor is a uint8 tensor of 128 more with its highest bits flipped. Here the flip moves from where a tensor is
quantised to where it is used, and vanishes there in the zero point: ``int8`` with zero point ``z`` stands for the same
numbers as ``uint8`` with ``z + 128``. Second factors become signed the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, Constant, Tuple, const
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.qnn.integers.moving import MOVING
from tilewright.relay.qnn.op.parameters import value_of, wide
from tilewright.relay.target.cpu.low_precision import OFFSET, moved_signedness
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import OperatorRewriter, is_call, rewritten, tensor_of
from tilewright.schedule.cpu.low_precision import wanted_data_type
from tilewright.schedule.cpu.machine import current_cpu


def signed(data: RelayExpr) -> RelayExpr:
    """uint8 data less 128, as int8."""
    return moved_signedness(data, "int8")


def unsigned_of(expr: RelayExpr) -> RelayExpr | None:
    """The uint8 data that ``signed`` was called on; None for anything else."""
    if not isinstance(expr, Call) or not is_call(expr, "cast") or str(tensor_of(expr).dtype) != "int8":
        return None
    flipped = expr.args[0]
    if not isinstance(flipped, Call) or not is_call(flipped, "bitwise_xor"):
        return None
    bits = value_of(flipped.args[1])
    is_flip = (
        bits is not None and bits.dtype == np.uint8 and bits.size == 1 and int(bits.reshape(())) == OFFSET
    )
    return flipped.args[0] if is_flip else None


def _shifted(zero: RelayExpr, by: int) -> RelayExpr:
    """A zero point of integers that are more by a number."""
    value = value_of(zero)
    if value is not None:
        return const(np.asarray(value.astype(np.int32) + np.int32(by)))
    return call("add", wide(zero), const(by, "int32"))


def _quantize(old: Call, new: Call) -> RelayExpr | None:
    """``qnn.quantize`` and ``qnn.requantize``, whose last argument is the zero point of the result."""
    attrs: Any = new.attrs
    new = _from_unsigned(new) if is_call(new, "qnn.requantize") else new
    if attrs.out_dtype != "int8":
        return new
    arguments = (*new.args[:-1], _shifted(new.args[-1], OFFSET))
    return signed(new.replace(args=arguments, attrs=attrs.replace(out_dtype="uint8")))


def _from_unsigned(expr: Call) -> Call:
    """``qnn.dequantize`` and ``qnn.requantize``, whose third argument is the zero point of the data."""
    data = unsigned_of(expr.args[0])
    if data is None:
        return expr
    return expr.replace(args=(data, expr.args[1], _shifted(expr.args[2], OFFSET), *expr.args[3:]))


def _dequantize(old: Call, new: Call) -> RelayExpr | None:
    return _from_unsigned(new)


def _product(old: Call, new: Call) -> RelayExpr | None:
    data, weight, of_data, of_weight, *scales = new.args
    unsigned = unsigned_of(data)
    if unsigned is not None:
        data, of_data = unsigned, _shifted(of_data, OFFSET)
    if str(tensor_of(old.args[1]).dtype) == "uint8":
        weight, of_weight = _signed_weight(weight), _shifted(of_weight, -OFFSET)
    return new.replace(args=(data, weight, of_data, of_weight, *scales))


def _signed_weight(weight: RelayExpr) -> RelayExpr:
    if isinstance(weight, Constant):
        return const((weight.data.numpy() ^ np.uint8(OFFSET)).view(np.int8))
    return signed(weight)


def _moved(old: Call, new: Call) -> RelayExpr | None:
    data = unsigned_of(new.args[0])
    return None if data is None else signed(new.replace(args=(data, *new.args[1:])))


def _with_number(old: Call, new: Call) -> RelayExpr | None:
    """A border, or a bound, which is a constant of the data's type."""
    data, number = unsigned_of(new.args[0]), value_of(new.args[1])
    if data is None or number is None or number.dtype != np.int8:
        return None
    return signed(new.replace(args=(data, const(number.view(np.uint8) ^ np.uint8(OFFSET)))))


def _concatenate(old: Call, new: Call) -> RelayExpr | None:
    fields = new.args[0]
    if not isinstance(fields, Tuple):
        return None
    parts = [unsigned_of(part) for part in fields.fields]
    known = [part for part in parts if part is not None]
    if not known or len(known) != len(parts):
        return None
    return signed(new.replace(args=(Tuple(known),)))


_RULES: Final[dict[str, Callable[[Call, Call], RelayExpr | None]]] = {
    **dict.fromkeys(MOVING, _moved),
    "take": _moved,
    "qnn.quantize": _quantize,
    "qnn.requantize": _quantize,
    "qnn.dequantize": _dequantize,
    "qnn.conv2d": _product,
    "qnn.dense": _product,
    "qnn.batch_matmul": _product,
    "nn.pad": _with_number,
    "maximum": _with_number,
    "concatenate": _concatenate,
    "image.resize2d": _moved,
}


@dataclass
class UnsignedData(FunctionPass):
    """Make data of quantised products unsigned, and their weights signed."""

    name = "UnsignedData"
    opt_level = 1

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        if wanted_data_type(current_cpu(), "int8", "int8") != "uint8":
            return func
        return rewritten(OperatorRewriter(_RULES), func)
