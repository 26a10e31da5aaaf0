"""Intrinsic calls: a table from the operator's name to the function that emits it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.codegen.llvm import division, memory
from tilewright.codegen.llvm.byte_table import lookup_byte
from tilewright.codegen.llvm.convert import convert
from tilewright.codegen.llvm.emitter import Emitter
from tilewright.codegen.llvm.externs import EXTERN_CALLS
from tilewright.codegen.llvm.indices import is_cheap
from tilewright.codegen.llvm.math.library import FUNCTIONS
from tilewright.codegen.llvm.matrix_unit import MATRIX_CALLS
from tilewright.codegen.llvm.packed_lanes import WORD_CALLS
from tilewright.codegen.llvm.runtime_calls import RUNTIME_CALLS
from tilewright.codegen.llvm.types import gep_element, vector
from tilewright.ir.expr import Broadcast, Call, IntImm, Load, PrimExpr, Var
from tilewright.support.dtype import BOOL, FLOAT32, DataType
from tilewright.support.errors import CodegenError

Handler = Callable[[Emitter, Call], str]


def call_function(emitter: Emitter, name: str, dtype: DataType, args: Sequence[PrimExpr]) -> str:
    """The math function ``name`` of floating-point arguments; float16 and bfloat16 are computed in float32."""
    operands = [emitter.visit(argument) for argument in args]
    kinds = [argument.dtype for argument in args]
    if dtype.bits != 16 or not dtype.is_float:
        return emitter.call_math(name, kinds[0], operands)
    wide = FLOAT32.with_lanes(dtype.lanes)
    raised = [
        emitter.as_float32(operand, kind) if kind is dtype else operand
        for operand, kind in zip(operands, kinds, strict=True)
    ]
    return emitter.from_float32(emitter.call_math(emitter.half_math(name), wide, raised), dtype)


def _math(name: str) -> Handler:
    def emit(emitter: Emitter, node: Call) -> str:
        kind = node.args[0].dtype
        if not kind.is_float:
            if name in ("floor", "ceil", "round", "trunc", "nearbyint", "rint"):
                return emitter.visit(node.args[0])
            raise CodegenError(f"tir.{name} is for floating-point numbers, not {kind}", span=node.span)
        return call_function(emitter, name, kind, node.args)

    return emit


def _ldexp(emitter: Emitter, node: Call) -> str:
    """The exponent may be of any integer type; beyond 16 bits it makes no difference."""
    value, exponent = node.args
    wanted = DataType("int32").with_lanes(exponent.dtype.lanes)
    operand = emitter.visit(exponent)
    if exponent.dtype.bits > 32:
        kind = emitter.types.register(exponent.dtype)
        for name, bound in (("smin", 10000), ("smax", -10000)):
            operand = emitter.call_llvm(
                f"llvm.{name}", kind, [(kind, operand), (kind, emitter.constant(exponent.dtype, bound))]
            )
    operand = convert(emitter, operand, exponent.dtype, wanted)
    base, dtype = emitter.visit(value), value.dtype
    if dtype.bits == 16:
        wide = FLOAT32.with_lanes(dtype.lanes)
        return emitter.from_float32(
            emitter.call_math("ldexp", wide, [emitter.as_float32(base, dtype), operand]), dtype
        )
    return emitter.call_math("ldexp", dtype, [base, operand])


def _test(name: str) -> Handler:
    """isnan, isinf, isfinite: false, or true, of integers."""

    def emit(emitter: Emitter, node: Call) -> str:
        kind, operand = node.args[0].dtype, emitter.visit(node.args[0])
        if not kind.is_float:
            return emitter.constant(node.dtype, int(name == "isfinite"))
        if kind.bits == 16:
            operand, kind = emitter.as_float32(operand, kind), FLOAT32.with_lanes(kind.lanes)
        return emitter.call_math(name, kind, [operand])

    return emit


def _binary(instruction: str) -> Handler:
    def emit(emitter: Emitter, node: Call) -> str:
        left, right = emitter.visit(node.args[0]), emitter.visit(node.args[1])
        return emitter.function.value(f"{instruction} {emitter.types.register(node.dtype)} {left}, {right}")

    return emit


def _shift(emitter: Emitter, node: Call) -> str:
    """A shift; LLVM leaves counts out of range undefined, here they move all bits out."""
    value, count = node.args
    dtype = node.dtype
    kind, left, right = emitter.types.register(dtype), emitter.visit(value), emitter.visit(count)
    signed = node.op.name == "tir.shift_right" and dtype.is_int
    instruction = "shl" if node.op.name == "tir.shift_left" else "ashr" if signed else "lshr"
    constant = division.constant_of(count)
    if constant is not None and 0 <= constant < dtype.bits:
        return emitter.function.value(f"{instruction} {kind} {left}, {right}")
    if signed:
        most = emitter.constant(dtype, dtype.bits - 1)
        right = emitter.call_llvm("llvm.umin", kind, [(kind, right), (kind, most)])
        return emitter.function.value(f"ashr {kind} {left}, {right}")
    moved = emitter.function.value(f"{instruction} {kind} {left}, {right}")
    limit, zero = emitter.constant(dtype, dtype.bits), emitter.constant(dtype, 0)
    within = emitter.function.value(f"icmp ult {kind} {right}, {limit}")
    bools = emitter.types.register(BOOL.with_lanes(dtype.lanes))
    return emitter.function.value(f"select {bools} {within}, {kind} {moved}, {kind} {zero}")


def _bitwise_not(emitter: Emitter, node: Call) -> str:
    kind, ones = (
        emitter.types.register(node.dtype),
        emitter.constant(node.dtype, -1 if not node.dtype.is_bool else 1),
    )
    return emitter.function.value(f"xor {kind} {emitter.visit(node.args[0])}, {ones}")


def _first_argument(emitter: Emitter, node: Call) -> str:
    return emitter.visit(node.args[0])


def _reinterpret(emitter: Emitter, node: Call) -> str:
    source, operand = node.args[0].dtype, emitter.visit(node.args[0])
    if source.is_handle or node.dtype.is_handle:
        return convert(emitter, operand, source, node.dtype)
    if source.bits * source.lanes != node.dtype.bits * node.dtype.lanes:
        raise CodegenError(
            f"{source} has another size than {node.dtype}: its bits cannot be reread", span=node.span
        )
    kind, wanted = emitter.types.register(source), emitter.types.register(node.dtype)
    return operand if kind == wanted else emitter.function.value(f"bitcast {kind} {operand} to {wanted}")


def _large_uint(emitter: Emitter, node: Call) -> str:
    low, high = node.args
    if not isinstance(low, IntImm) or not isinstance(high, IntImm):
        raise CodegenError("tir.large_uint_imm takes two constants", span=node.span)
    value = (high.value & 0xFFFFFFFF) << 32 | low.value & 0xFFFFFFFF
    return emitter.constant(node.dtype, value)


def _unary_integer(name: str, extra: str = "") -> Handler:
    def emit(emitter: Emitter, node: Call) -> str:
        source = node.args[0].dtype
        kind = emitter.types.register(source)
        arguments = [(kind, emitter.visit(node.args[0]))] + ([("i1", extra)] if extra else [])
        operand = emitter.call_llvm(f"llvm.{name}", kind, arguments)
        return convert(emitter, operand, source.with_bits(source.bits), node.dtype)

    return emit


def _absolute(emitter: Emitter, node: Call) -> str:
    dtype, operand = node.dtype, emitter.visit(node.args[0])
    if dtype.is_uint:
        return operand
    kind = emitter.types.register(dtype)
    if dtype.is_int:
        return emitter.call_llvm("llvm.abs", kind, [(kind, operand), ("i1", "false")])
    if emitter.types.is_soft(dtype):
        return emitter.function.value(
            f"and {kind} {operand}, {emitter.constant(DataType('int16').with_lanes(dtype.lanes), 0x7FFF)}"
        )
    return emitter.call_llvm("llvm.fabs", kind, [(kind, operand)])


def _fused_multiply_add(emitter: Emitter, node: Call) -> str:
    dtype = node.dtype
    if not dtype.is_float:
        kind = emitter.types.register(dtype)
        a, b, c = (emitter.visit(argument) for argument in node.args)
        return emitter.function.value(f"add {kind} {emitter.function.value(f'mul {kind} {a}, {b}')}, {c}")
    return call_function(emitter, "fma", dtype, node.args)


def _if_then_else(emitter: Emitter, node: Call) -> str:
    """Only the branch that is taken is evaluated; under a vector condition, only active lanes access memory."""
    condition, yes, no = node.args
    if isinstance(condition, Broadcast):
        condition = condition.value
    if condition.dtype.lanes > 1:
        return _masked_choice(emitter, condition, yes, no)
    test = emitter.visit(condition)
    kind = emitter.types.register(node.dtype)
    if is_cheap(yes) and is_cheap(no):
        return emitter.function.value(
            f"select i1 {test}, {kind} {emitter.visit(yes)}, {kind} {emitter.visit(no)}"
        )
    function = emitter.function
    labels = [function.new_label(hint) for hint in ("then", "else", "chosen")]
    function.branch_if(test, labels[0], labels[1])
    arms, before = [], function.known
    for label, value in zip(labels, (yes, no), strict=False):
        function.begin(label, before)
        with emitter.fresh_memo(keep=True):
            arms.append((emitter.visit(value), function.block))
        function.branch(labels[2])
    function.begin(labels[2], before)
    return function.value(f"phi {kind} " + ", ".join(f"[ {operand}, %{block} ]" for operand, block in arms))


def _masked_choice(emitter: Emitter, condition: PrimExpr, yes: PrimExpr, no: PrimExpr) -> str:
    lanes = condition.dtype.lanes
    test, function, bools = emitter.visit(condition), emitter.function, vector("i1", condition.dtype.lanes)
    outer, outer_lanes = emitter.mask, emitter.mask_lanes
    inverse = function.value(f"xor {bools} {test}, splat (i1 true)")
    arms = []
    for mask, value in ((test, yes), (inverse, no)):
        if outer is not None and outer_lanes == lanes:
            mask = function.value(f"and {bools} {mask}, {outer}")
        emitter.mask, emitter.mask_lanes = mask, lanes
        # What is loaded under one mask must not serve under another.
        with emitter.fresh_memo(keep=False):
            arms.append(emitter.visit(value))
    emitter.mask, emitter.mask_lanes = outer, outer_lanes
    kind = emitter.types.register(yes.dtype)
    return function.value(f"select {bools} {test}, {kind} {arms[0]}, {kind} {arms[1]}")


def address_of(emitter: Emitter, node: Call) -> str:
    load = node.args[0]
    if not isinstance(load, Load):
        raise CodegenError("tir.address_of takes a load", span=node.span)
    return memory.address(emitter, load.buffer_var, load.dtype, load.index)


def access_pointer(emitter: Emitter, node: Call) -> str:
    """``tvm_access_ptr(type, data, offset, extent, mask)``: the address of an element."""
    kind, (space, data), (index, offset) = (
        node.args[0].dtype,
        emitter.pointer(node.args[1]),
        emitter.offset(node.args[2]),
    )
    step = gep_element(kind) if kind.lanes == 1 else f"[{kind.lanes} x {gep_element(kind)}]"
    return emitter.function.value(f"getelementptr inbounds {step}, {space} {data}, {index} {offset}")


def _is_null(emitter: Emitter, node: Call) -> str:
    return emitter.function.value(f"icmp eq ptr {emitter.visit(node.args[0])}, null")


def _same_address(emitter: Emitter, node: Call) -> str:
    (space, first), (_, second) = (emitter.pointer(argument) for argument in node.args)
    return emitter.function.value(f"icmp eq {space} {first}, {second}")


def _prefetch(emitter: Emitter, node: Call) -> str:
    """``prefetch(address, rw, locality, cache_type)``."""
    operands = [emitter.pointer(node.args[0])]
    operands += [("i32", emitter.visit(argument)) for argument in node.args[1:4]]
    return emitter.call_llvm("llvm.prefetch", "void", operands) or "0"


def _atomic_add(emitter: Emitter, node: Call) -> str:
    """Adds to the element at an address and gives the value it had before."""
    (space, pointer), value = emitter.pointer(node.args[0]), emitter.visit(node.args[1])
    dtype = node.args[1].dtype
    if dtype.lanes > 1 or emitter.types.is_soft(dtype) or dtype.is_bool:
        raise CodegenError(f"there is no atomic addition of {dtype}", span=node.span)
    name = "fadd" if dtype.is_float else "add"
    kind = emitter.types.register(dtype)
    return emitter.function.value(f"atomicrmw {name} {space} {pointer}, {kind} {value} monotonic")


def _multiply_shift(emitter: Emitter, node: Call) -> str:
    """``q_multiply_shift(x, y, q, s)``: x * y * 2**(s - q), rounded to nearest with halves upwards."""
    x, y, q, s = node.args
    if not isinstance(q, IntImm) or x.dtype.bits != 32:
        raise CodegenError("tir.q_multiply_shift works on int32 with a constant q", span=node.span)
    function, lanes = emitter.function, x.dtype.lanes
    wide = DataType("int64").with_lanes(lanes)
    kind = emitter.types.register(wide)
    left = convert(emitter, emitter.visit(x), x.dtype, wide)
    right = convert(emitter, emitter.visit(y), y.dtype, wide)
    shift = convert(emitter, emitter.visit(s), s.dtype, wide.with_lanes(s.dtype.lanes))
    if s.dtype.lanes != lanes:
        shift = emitter.broadcast(shift, wide.element, lanes)
    zero = emitter.constant(wide, 0)
    up = emitter.call_llvm("llvm.smax", kind, [(kind, shift), (kind, zero)])
    down = function.value(
        f"sub {kind} {emitter.constant(wide, q.value)}, {function.value(f'sub {kind} {shift}, {up}')}"
    )
    product = function.value(f"mul {kind} {function.value(f'shl {kind} {left}, {up}')}, {right}")
    half = function.value(
        f"shl {kind} {emitter.constant(wide, 1)}, {function.value(f'sub {kind} {down}, {emitter.constant(wide, 1)}')}"
    )
    rounded = function.value(f"ashr {kind} {function.value(f'add {kind} {product}, {half}')}, {down}")
    return convert(emitter, rounded, wide, node.dtype)


def _vector_half(upper: bool) -> Handler:
    def emit(emitter: Emitter, node: Call) -> str:
        source = node.args[0].dtype
        count = source.lanes // 2
        kind, start = emitter.types.register(source), count if upper else 0
        picks = ", ".join(f"i32 {start + lane}" for lane in range(count))
        operand = emitter.visit(node.args[0])
        if count == 1:
            return emitter.lane(operand, source, start)
        return emitter.function.value(
            f"shufflevector {kind} {operand}, {kind} poison, <{count} x i32> <{picks}>"
        )

    return emit


def _vector_combine(emitter: Emitter, node: Call) -> str:
    lanes = [
        (emitter.visit(argument), argument.dtype, lane)
        for argument in node.args
        for lane in range(argument.dtype.lanes)
    ]
    return emitter.assemble([emitter.lane(*lane) for lane in lanes], node.dtype)


def _static_handle(emitter: Emitter, node: Call) -> str:
    name = emitter.module.text.unique("handle")
    emitter.module.text.add_global(f"@{name} = internal global ptr null, align 8")
    return f"@{name}"


def _power(emitter: Emitter, node: Call) -> str:
    base, exponent = node.args
    if not base.dtype.is_float:
        raise CodegenError(f"tir.pow is for floating-point numbers, not {base.dtype}", span=node.span)
    if isinstance(exponent, Var) and not exponent.dtype.is_float:
        raise CodegenError("tir.pow needs an exponent of the type of its base", span=node.span)
    return call_function(emitter, "pow", base.dtype, node.args)


CALLS: dict[str, Handler] = {
    "tir.likely": _first_argument,
    "tir.assume": lambda emitter, node: "0",
    "tir.bitwise_and": _binary("and"),
    "tir.bitwise_or": _binary("or"),
    "tir.bitwise_xor": _binary("xor"),
    "tir.bitwise_not": _bitwise_not,
    "tir.shift_left": _shift,
    "tir.shift_right": _shift,
    "tir.reinterpret": _reinterpret,
    "tir.large_uint_imm": _large_uint,
    "tir.popcount": _unary_integer("ctpop"),
    "tir.clz": _unary_integer("ctlz", "false"),
    "tir.ctz": _unary_integer("cttz", "false"),
    "tir.abs": _absolute,
    "tir.fabs": _absolute,
    "tir.fma": _fused_multiply_add,
    "tir.if_then_else": _if_then_else,
    "tir.lookup_byte": lookup_byte,
    "tir.address_of": address_of,
    "tir.tvm_access_ptr": access_pointer,
    "tir.isnullptr": _is_null,
    "tir.same_address": _same_address,
    "tir.prefetch": _prefetch,
    "tir.atomic_add": _atomic_add,
    "tir.q_multiply_shift": _multiply_shift,
    "tir.vectorlow": _vector_half(upper=False),
    "tir.vectorhigh": _vector_half(upper=True),
    "tir.vectorcombine": _vector_combine,
    "tir.tvm_static_handle": _static_handle,
    **{f"tir.{name}": _test(name) for name in ("isnan", "isinf", "isfinite")},
    **{
        f"tir.{name}": _math(name)
        for name in FUNCTIONS
        if name not in ("isnan", "isinf", "isfinite", "fma", "pow")
    },
    "tir.pow": _power,
    **WORD_CALLS,
    **MATRIX_CALLS,
    "tir.ldexp": _ldexp,
    **EXTERN_CALLS,
    **RUNTIME_CALLS,
}
