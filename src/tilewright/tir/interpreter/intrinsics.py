"""The intrinsics: one builder for each, from a call to a closure.

A builder is registered under the operator's name without ``tir.``. Barriers and other calls that synchronise threads
are in ``threads.py``; here is their meaning for a single thread.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.ir.expr import BufferLoad, Call, Load, StringImm
from tilewright.support.dtype import DataType
from tilewright.support.errors import TilewrightError
from tilewright.tir.interpreter import arithmetic
from tilewright.tir.interpreter.expressions import CallBuilder, ExpressionCompiler, Frame, Run, memory_cells
from tilewright.tir.interpreter.memory import Pointer
from tilewright.tir.interpreter.packed_lanes import WORD_CALLS
from tilewright.tir.interpreter.values import (
    bfloat16_bits,
    bfloat16_from_bits,
    constant,
    into_type,
    lane_type,
    storage_type,
)


class Returned(Exception):
    """Unwinds the program when it returns a value."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


def _register(*names: str) -> Callable[[CallBuilder], CallBuilder]:
    def register(builder: CallBuilder) -> CallBuilder:
        for name in names:
            ExpressionCompiler.calls[name] = builder
        return builder

    return register


def _name(call: Call) -> str:
    return str(call.op.name).removeprefix("tir.")


def _elementwise(compiler: ExpressionCompiler, call: Call, compute: Callable[..., Any]) -> Run:
    """A function of scalars, applied to each lane."""
    args = [compiler.visit(argument) for argument in call.args]
    if call.dtype.lanes == 1:
        return lambda frame: compute(*[argument(frame) for argument in args])
    kind = lane_type(call.dtype)
    integral = [argument.dtype.is_integral for argument in call.args]

    def lanes(frame: Frame) -> Any:
        vectors = [argument(frame) for argument in args]
        columns = [
            vector.tolist() if whole else vector for vector, whole in zip(vectors, integral, strict=True)
        ]
        return np.array([compute(*point) for point in zip(*columns, strict=True)], dtype=kind)

    return lanes


def _rounded(dtype: DataType, compute: Callable[..., Any]) -> Callable[..., Any]:
    """A function of doubles whose result is rounded once, to the type. What has no result is NaN."""
    element = dtype.element

    def rounded(*values: Any) -> Any:
        try:
            return constant(element, compute(*[float(value) for value in values]))
        except (ValueError, OverflowError):
            return constant(element, math.nan)

    return rounded


@_register(*arithmetic.UNARY, *arithmetic.BINARY)
def _floating_point(compiler: ExpressionCompiler, call: Call) -> Run:
    functions: dict[str, Callable[..., Any]] = {**arithmetic.UNARY, **arithmetic.BINARY}
    compute = functions[_name(call)]
    if call.dtype.is_integral:
        return _elementwise(compiler, call, _integer_version(call))
    return _elementwise(compiler, call, _rounded(call.dtype, compute))


def _integer_version(call: Call) -> Callable[..., Any]:
    """Those functions that integers have too."""
    name, wrap = _name(call), into_type(call.dtype.element)
    assert wrap is not None
    if name == "pow":
        return lambda base, exponent: wrap(base**exponent if exponent >= 0 else int(base == 1))
    if name == "fabs":
        return lambda value: wrap(abs(value))
    if name in ("floor", "ceil", "trunc", "round", "nearbyint"):
        return lambda value: value
    raise TilewrightError(f"{name} is not defined for {call.dtype}: {call}")


@_register("nextafter")
def _next_after(compiler: ExpressionCompiler, call: Call) -> Run:
    # The neighbour of a float is one of its own type, so this must not go through double precision.
    make = lane_type(call.dtype).type
    return _elementwise(compiler, call, lambda x, towards: np.nextafter(make(x), make(towards)))


@_register("ldexp")
def _load_exponent(compiler: ExpressionCompiler, call: Call) -> Run:
    def scale(x: Any, exponent: Any) -> Any:
        try:
            return constant(call.dtype.element, math.ldexp(float(x), int(exponent)))
        except OverflowError:
            return constant(call.dtype.element, math.copysign(math.inf, x))

    return _elementwise(compiler, call, scale)


@_register("fma")
def _fma(compiler: ExpressionCompiler, call: Call) -> Run:
    return _elementwise(compiler, call, _rounded(call.dtype, arithmetic.fused_multiply_add))


@_register(*arithmetic.TESTS)
def _test(compiler: ExpressionCompiler, call: Call) -> Run:
    test = arithmetic.TESTS[_name(call)]
    return _elementwise(compiler, call, lambda value: bool(test(value)))


@_register(*arithmetic.BITWISE)
def _bitwise(compiler: ExpressionCompiler, call: Call) -> Run:
    compute, wrap = arithmetic.BITWISE[_name(call)], into_type(call.dtype.element)
    assert wrap is not None
    return _elementwise(compiler, call, lambda a, b: wrap(compute(a, b)))


@_register(*arithmetic.SHIFTS)
def _shift(compiler: ExpressionCompiler, call: Call) -> Run:
    compute, wrap = arithmetic.SHIFTS[_name(call)], into_type(call.dtype.element)
    assert wrap is not None
    bits = call.dtype.bits
    return _elementwise(compiler, call, lambda a, b: wrap(compute(bits, a, b)))


@_register("bitwise_not")
def _bitwise_not(compiler: ExpressionCompiler, call: Call) -> Run:
    wrap = into_type(call.dtype.element)
    assert wrap is not None
    return _elementwise(compiler, call, lambda value: wrap(~int(value)))


@_register("popcount")
def _popcount(compiler: ExpressionCompiler, call: Call) -> Run:
    dtype = call.args[0].dtype
    return _elementwise(compiler, call, lambda value: arithmetic.population_count(dtype, value))


@_register("clz")
def _clz(compiler: ExpressionCompiler, call: Call) -> Run:
    dtype = call.args[0].dtype
    return _elementwise(compiler, call, lambda value: arithmetic.count_leading_zeros(dtype, value))


@_register("q_multiply_shift")
def _multiply_shift(compiler: ExpressionCompiler, call: Call) -> Run:
    element = call.dtype.element
    x, y, fraction_bits, shift = (compiler.visit(argument) for argument in call.args)
    if call.dtype.lanes == 1:
        return lambda frame: arithmetic.multiply_shift(
            element, x(frame), y(frame), fraction_bits(frame), shift(frame)
        )
    kind, lanes = lane_type(call.dtype), call.dtype.lanes

    def spread(frame: Frame) -> Any:
        columns = [np.broadcast_to(part(frame), lanes).tolist() for part in (x, y, fraction_bits, shift)]
        rows = zip(*columns, strict=True)
        return np.array([arithmetic.multiply_shift(element, *row) for row in rows], dtype=kind)

    return spread


@_register("large_uint_imm")
def _large_constant(compiler: ExpressionCompiler, call: Call) -> Run:
    low, high = (compiler.visit(argument) for argument in call.args)
    return lambda frame: constant(call.dtype, low(frame) | (high(frame) << 32))


@_register("likely")
def _likely(compiler: ExpressionCompiler, call: Call) -> Run:
    return compiler.visit(call.args[0])  # type: ignore[no-any-return]


@_register("if_then_else")
def _if_then_else(compiler: ExpressionCompiler, call: Call) -> Run:
    condition, yes, no = (compiler.visit(argument) for argument in call.args)
    if call.args[0].dtype.lanes > 1:
        return lambda frame: np.where(condition(frame), yes(frame), no(frame))
    return lambda frame: yes(frame) if condition(frame) else no(frame)


@_register("reinterpret")
def _reinterpret(compiler: ExpressionCompiler, call: Call) -> Run:
    value, source, target = compiler.visit(call.args[0]), call.args[0].dtype, call.dtype
    if source.is_handle or target.is_handle:
        # Addresses have no numbers here; only the null pointer converts.
        return lambda frame: _null_conversion(value(frame), target)

    def convert(frame: Frame) -> Any:
        lanes = np.atleast_1d(value(frame))
        raw = bfloat16_bits(lanes) if source.is_bfloat16 else lanes.astype(storage_type(source))
        seen = raw.view(storage_type(target))
        seen = bfloat16_from_bits(seen) if target.is_bfloat16 else seen
        if target.lanes > 1:
            return seen
        return seen[0].item() if target.is_integral else seen[0]

    return convert


def _null_conversion(value: Any, target: DataType) -> Any:
    if value is None or value == 0:
        return None if target.is_handle else 0
    if target.is_handle and isinstance(value, Pointer):
        return value
    raise TilewrightError(f"the interpreter cannot reinterpret {value!r} as {target}")


@_register("isnullptr")
def _is_null(compiler: ExpressionCompiler, call: Call) -> Run:
    value = compiler.visit(call.args[0])
    return lambda frame: value(frame) is None


@_register("same_address")
def _same_address(compiler: ExpressionCompiler, call: Call) -> Run:
    first, second = (compiler.visit(argument) for argument in call.args)

    def same(frame: Frame) -> bool:
        one, other = first(frame), second(frame)
        if not (isinstance(one, Pointer) and isinstance(other, Pointer)):
            return one is other
        return _address(one) == _address(other)

    return same


def _address(pointer: Pointer) -> int:
    return int(pointer.memory.data.ctypes.data) + pointer.byte_offset


@_register("vectorlow", "vectorhigh")
def _half(compiler: ExpressionCompiler, call: Call) -> Run:
    value, lanes = compiler.visit(call.args[0]), call.dtype.lanes
    if _name(call) == "vectorlow":
        return lambda frame: value(frame)[:lanes]
    return lambda frame: value(frame)[-lanes:]


@_register("vectorcombine")
def _combine(compiler: ExpressionCompiler, call: Call) -> Run:
    first, second = (compiler.visit(argument) for argument in call.args)
    return lambda frame: np.concatenate([first(frame), second(frame)])


@_register("tvm_tuple", "tvm_stack_make_shape")
def _tuple(compiler: ExpressionCompiler, call: Call) -> Run:
    args = [compiler.visit(argument) for argument in call.args]
    return lambda frame: tuple([argument(frame) for argument in args])


@_register("type_annotation")
def _type_annotation(compiler: ExpressionCompiler, call: Call) -> Run:
    dtype = call.dtype
    return lambda frame: dtype


@_register("tvm_access_ptr")
def _access_pointer(compiler: ExpressionCompiler, call: Call) -> Run:
    annotation, data, offset = (compiler.visit(argument) for argument in call.args[:3])

    def pointer(frame: Frame) -> Pointer:
        target, dtype = data(frame), annotation(frame)
        if not isinstance(target, Pointer):
            raise TilewrightError(f"{call.args[1]} does not point to memory: it is {target!r}")
        return target.moved(offset(frame) * dtype.itemsize * dtype.lanes)

    return pointer


@_register("address_of")
def _address_of(compiler: ExpressionCompiler, call: Call) -> Run:
    target = call.args[0]
    size = target.dtype.itemsize
    if isinstance(target, Load):
        base, index = compiler.visit(target.buffer_var), compiler.visit(target.index)
        width = target.dtype.lanes // target.index.dtype.lanes
        return lambda frame: base(frame).moved(int(np.min(index(frame))) * size * width)
    if isinstance(target, BufferLoad):
        view_of = compiler.view(target.buffer)
        locate = compiler.locate(target.indices)
        width = target.buffer.dtype.lanes

        def address(frame: Frame) -> Pointer:
            view = view_of(frame)
            return view.pointer.moved(locate(frame, view) * size * width)

        return address
    raise TilewrightError(f"address_of takes the address of a load, not of {target}", span=call.span)


@_register("atomic_add")
def _atomic_add(compiler: ExpressionCompiler, call: Call) -> Run:
    address, value = (compiler.visit(argument) for argument in call.args)
    dtype, finish = call.args[1].dtype, into_type(call.args[1].dtype)

    def update(frame: Frame) -> Any:
        cells = memory_cells(address(frame), dtype, "the address of atomic_add")
        old = cells.load(0)
        total = old + value(frame)
        cells.store(0, total if finish is None else finish(total))
        return old

    return update


@_register("ret")
def _return(compiler: ExpressionCompiler, call: Call) -> Run:
    value = compiler.visit(call.args[0])

    def leave(frame: Frame) -> Any:
        raise Returned(value(frame))

    return leave


@_register("prefetch", "tvm_storage_sync", "start_profile_intrinsic", "end_profile_intrinsic")
def _no_effect(compiler: ExpressionCompiler, call: Call) -> Run:
    return lambda frame: 0


@_register("format_message")
def _format_message(compiler: ExpressionCompiler, call: Call) -> Run:
    """The text of an assertion, with ``{0}``, ``{1}`` ... replaced by the values at the time it fails."""
    text, *values = (compiler.visit(argument) for argument in call.args)

    def fill(frame: Frame) -> str:
        made = str(text(frame))
        for position, value in enumerate(values):
            made = re.sub(rf"\{{{position}(:\w)?\}}", str(value(frame)), made)
        return made

    return fill


@_register("tvm_warp_activemask")
def _active_mask(compiler: ExpressionCompiler, call: Call) -> Run:
    everyone = constant(call.dtype, (1 << 32) - 1)
    return lambda frame: everyone


@_register("tvm_warp_shuffle", "tvm_warp_shuffle_up", "tvm_warp_shuffle_down")
def _shuffle_alone(compiler: ExpressionCompiler, call: Call) -> Run:
    return compiler.visit(call.args[1])  # type: ignore[no-any-return]


@_register("tvm_stack_make_array")
def _make_array(compiler: ExpressionCompiler, call: Call) -> Run:
    """An argument of a packed call: a tensor, seen as a NumPy array over the same memory."""
    data, shape, strides, _, _, offset = (compiler.visit(argument) for argument in call.args)
    dtype = call.args[4].dtype

    def make(frame: Frame) -> np.ndarray[Any, Any]:
        extents, steps = shape(frame), strides(frame)
        cells = memory_cells(data(frame), dtype, "a tensor argument")
        start = cells.start + offset(frame) * dtype.lanes
        flat = cells.array[start:]
        if dtype.lanes > 1:
            extents = (*extents, dtype.lanes)
            steps = (*[step * dtype.lanes for step in steps], 1) if steps else steps
        if not steps:
            return flat[: math.prod(extents)].reshape(extents)
        size = flat.itemsize
        return np.lib.stride_tricks.as_strided(flat, extents, [step * size for step in steps])

    return make


@_register("tvm_call_packed", "tvm_call_cpacked", "tvm_call_trace_packed", "call_extern", "call_pure_extern")
def _call_by_name(compiler: ExpressionCompiler, call: Call) -> Run:
    if not isinstance(call.args[0], StringImm):
        raise TilewrightError(f"the function to call must be named by a string: {call}", span=call.span)
    name, args = call.args[0].value, [compiler.visit(argument) for argument in call.args[1:]]
    lookup, dtype = compiler.lookup_function, call.dtype

    def invoke(frame: Frame) -> Any:
        result = lookup(name)(*[argument(frame) for argument in args])
        if dtype.is_handle or result is None:
            return result
        return constant(dtype, result) if dtype.lanes == 1 else np.asarray(result, lane_type(dtype))

    return invoke


ExpressionCompiler.calls.update(WORD_CALLS)
