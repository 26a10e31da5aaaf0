"""The tensor maps of a kernel: further parameters behind its own, which the runtime makes from the arguments.

A map of the pointer ``A`` is made from the address that is passed for ``A``; the kernel may use both.
"""

from __future__ import annotations

from tilewright.ir.expr import Call, IntImm, Mul, PrimExpr, StringImm, Var
from tilewright.runtime.device_module import Extent, TensorMap
from tilewright.support.dtype import DataType
from tilewright.support.errors import CodegenError
from tilewright.tir.function import PrimFunc
from tilewright.tir.transform.split_host_device import TENSOR_MAPS


def describe_tensor_maps(function: PrimFunc) -> tuple[TensorMap, ...]:
    """The maps of a kernel, in the order of its parameters."""
    given = function.attrs.get(TENSOR_MAPS, {})
    count = len(function.params)
    made: list[TensorMap] = []
    for base, parameter in enumerate(function.params):
        if parameter in given:
            made.append(_described(function, given[parameter], count + len(made), base))
    return tuple(made)


def _described(function: PrimFunc, call: PrimExpr, position: int, base: int) -> TensorMap:
    if not isinstance(call, Call) or not isinstance(call.args[0], StringImm):
        raise CodegenError(f"{call} is not a tensor map; tir.ptx.tensor_map makes one")
    dtype = call.args[0].value
    swizzle, rank = (part.value for part in call.args[1:3] if isinstance(part, IntImm))
    shape, strides, box = (
        list(reversed(call.args[start : start + rank])) for start in (3, 3 + rank, 3 + 2 * rank)
    )
    size = DataType(dtype).itemsize
    sides = tuple([part.value for part in box if isinstance(part, IntImm)])
    return TensorMap(
        position,
        base,
        dtype,
        tuple([_extent(function, part, 1) for part in shape]),
        tuple([_extent(function, part, size) for part in strides[1:]]),
        sides,
        swizzle=swizzle,
    )


def _extent(function: PrimFunc, expr: PrimExpr, scale: int) -> Extent:
    """An extent as the runtime computes it at a launch: a product of a constant and arguments."""
    factor, places = scale, []
    stack = [expr]
    while stack:
        part = stack.pop()
        if isinstance(part, IntImm):
            factor *= part.value
        elif isinstance(part, Mul):
            stack += [part.a, part.b]
        elif isinstance(part, Var) and part in function.params:
            places.append(function.params.index(part))
        else:
            raise CodegenError(
                f"the extent {expr} of a tensor map is neither a number nor a product of arguments of the kernel"
            )
    return (factor, *sorted(places)) if places else factor
