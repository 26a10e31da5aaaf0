"""Calls into the runtime: fields of tensors and tagged values, stack memory, packed functions, returning, failing.

The layouts are the published ones of DLPack and tvm-ffi. A failure sets the thread's error and returns -1.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.codegen.llvm.convert import convert
from tilewright.codegen.llvm.emitter import Emitter
from tilewright.ir.expr import Call, IntImm, PrimExpr, StringImm
from tilewright.support.dtype import INT64, DataType
from tilewright.support.errors import CodegenError
from tilewright.tir.packed_abi import FIELD_TYPES, StructField

_TENSOR_OFFSETS = {
    64: {
        "data": 0,
        "device_type": 8,
        "device_id": 12,
        "ndim": 16,
        "dtype": 20,
        "shape": 24,
        "strides": 32,
        "offset": 40,
    },
    32: {
        "data": 0,
        "device_type": 4,
        "device_id": 8,
        "ndim": 12,
        "dtype": 16,
        "shape": 20,
        "strides": 24,
        "offset": 32,
    },
}
_TENSOR_SIZES = {64: 48, 32: 40}
_ANY_SIZE, _ANY_VALUE = 16, 8
_ANY_FIELDS = {StructField.ANY_TYPE_INDEX: 0, StructField.ANY_FLAGS: 4, StructField.ANY_VALUE: _ANY_VALUE}
_FLOAT64 = DataType("float64")
_LARGEST_STACK_ARRAY = 1 << 16

KNOWN_ERRORS = frozenset(
    [
        "ValueError",
        "TypeError",
        "IndexError",
        "KeyError",
        "AssertionError",
        "RuntimeError",
        "MemoryError",
        "NotImplementedError",
        "AttributeError",
        "OverflowError",
        "ZeroDivisionError",
        "OSError",
    ]
)

_FIELDS = {
    StructField.DATA: ("data", 0),
    StructField.SHAPE: ("shape", 0),
    StructField.STRIDES: ("strides", 0),
    StructField.NDIM: ("ndim", 0),
    StructField.TYPE_CODE: ("dtype", 0),
    StructField.TYPE_BITS: ("dtype", 1),
    StructField.TYPE_LANES: ("dtype", 2),
    StructField.BYTE_OFFSET: ("offset", 0),
    StructField.DEVICE_ID: ("device_id", 0),
    StructField.DEVICE_TYPE: ("device_type", 0),
}


def _field(node: Call) -> StructField:
    kind = node.args[2]
    if not isinstance(kind, IntImm) or kind.value not in StructField._value2member_map_:
        raise CodegenError(
            f"{node.op.name}: {kind} is not a field of a tensor or a tagged value", span=node.span
        )
    return StructField(kind.value)


def _address(emitter: Emitter, base: PrimExpr, index: PrimExpr, field: StructField) -> str:
    """The address of a field of the ``index``-th structure."""
    bits, function = emitter.types.pointer_bits, emitter.function
    is_any = field in _ANY_FIELDS
    size = _ANY_SIZE if is_any else _TENSOR_SIZES[bits]
    if is_any:
        inside = _ANY_FIELDS[field]
    else:
        name, extra = _FIELDS.get(field, ("data", 0))
        inside = _TENSOR_OFFSETS[bits][name] + extra
    pointer = emitter.visit(base)
    if isinstance(index, IntImm):
        total = index.value * size + inside
        return (
            pointer
            if total == 0
            else function.value(f"getelementptr inbounds i8, ptr {pointer}, i64 {total}")
        )
    offset = emitter.visit_index(index)
    start = function.value(
        f"getelementptr inbounds [{size} x i8], ptr {pointer}, {emitter.types.index} {offset}"
    )
    return start if inside == 0 else function.value(f"getelementptr inbounds i8, ptr {start}, i64 {inside}")


def struct_get(emitter: Emitter, node: Call) -> str:
    """A field's value."""
    field = _field(node)
    pointer = _address(emitter, node.args[0], node.args[1], field)
    if field == StructField.ADDRESS:
        return pointer
    if field == StructField.ANY_VALUE:
        return load_any(emitter, pointer, node.dtype)
    stored = FIELD_TYPES[field]
    operand = emitter.function.value(
        f"load {emitter.types.memory(stored)}, ptr {pointer}, align {_align(emitter, stored)}"
    )
    return convert(emitter, operand, stored, node.dtype)


def load_any(emitter: Emitter, pointer: str, dtype: DataType) -> str:
    """The payload of a tagged value, read as the type asked for: 64-bit integers, doubles or pointers are stored."""
    if dtype.is_handle:
        return emitter.function.value(f"load ptr, ptr {pointer}, align 8")
    stored = _FLOAT64 if dtype.is_float else INT64
    operand = emitter.function.value(f"load {emitter.types.register(stored)}, ptr {pointer}, align 8")
    return convert(emitter, operand, stored, dtype)


def _align(emitter: Emitter, dtype: DataType) -> int:
    return emitter.types.pointer_bits // 8 if dtype.is_handle else dtype.itemsize


def struct_set(emitter: Emitter, node: Call) -> str:
    """Writes a field."""
    field, value = _field(node), node.args[3]
    if field == StructField.ADDRESS:
        raise CodegenError("the address of a tensor cannot be written", span=node.span)
    pointer = _address(emitter, node.args[0], node.args[1], field)
    operand, dtype, function = emitter.visit(value), value.dtype, emitter.function
    if field == StructField.ANY_TYPE_INDEX:
        # The four bytes after the type index must be zero.
        wide = convert(emitter, operand, dtype, DataType("uint32"))
        function.effect(f"store i64 {function.value(f'zext i32 {wide} to i64')}, ptr {pointer}, align 8")
    elif field == StructField.ANY_VALUE:
        if dtype.is_handle:
            operand, dtype = function.value(f"ptrtoint ptr {operand} to i64"), INT64
        stored = _FLOAT64 if dtype.is_float else INT64
        operand = convert(emitter, operand, dtype, stored)
        function.effect(f"store {emitter.types.register(stored)} {operand}, ptr {pointer}, align 8")
    else:
        stored = FIELD_TYPES[field]
        if stored.is_handle and isinstance(value, IntImm) and value.value == 0:
            operand = "null"
        else:
            operand = convert(emitter, operand, dtype, stored)
        function.effect(
            f"store {emitter.types.memory(stored)} {operand}, ptr {pointer}, align {_align(emitter, stored)}"
        )
    return "0"


def stack_alloca(emitter: Emitter, node: Call) -> str:
    """Stack memory for shapes, tensors or tagged values."""
    kind, count = node.args
    if not isinstance(kind, StringImm) or not isinstance(count, IntImm):
        raise CodegenError("tir.tvm_stack_alloca takes a kind and a constant count", span=node.span)
    sizes = {"shape": 8, "array": _TENSOR_SIZES[emitter.types.pointer_bits], "arg_value": _ANY_SIZE}
    sizes |= {"arg_tcode": 4}
    if kind.value not in sizes:
        raise CodegenError(
            f"tir.tvm_stack_alloca: there is no kind {kind.value!r}; known are {', '.join(sizes)}",
            span=node.span,
        )
    total = sizes[kind.value] * count.value
    if not 0 < total <= _LARGEST_STACK_ARRAY:
        raise CodegenError(
            f"tir.tvm_stack_alloca: {count.value} values of kind {kind.value!r} do not fit the stack",
            span=node.span,
        )
    return emitter.function.alloca(f"[{total} x i8]", 16)


def call_packed(emitter: Emitter, node: Call) -> str:
    """``tvm_call_packed_lowered(name, stack, begin, end)``: arguments in [begin, end), the result at ``end``."""
    name, stack, begin, end = node.args[:4]
    if not (isinstance(name, StringImm) and isinstance(begin, IntImm) and isinstance(end, IntImm)):
        raise CodegenError(
            "a packed call takes a name, the stack, and two constant positions", span=node.span
        )
    function, text = emitter.function, emitter.module.text
    base = emitter.visit(stack)
    arguments = function.value(f"getelementptr inbounds i8, ptr {base}, i64 {begin.value * _ANY_SIZE}")
    result = function.value(f"getelementptr inbounds i8, ptr {base}, i64 {end.value * _ANY_SIZE}")
    function.effect(f"store i64 0, ptr {result}, align 8")
    payload = function.value(f"getelementptr inbounds i8, ptr {result}, i64 {_ANY_VALUE}")
    function.effect(f"store i64 0, ptr {payload}, align 8")
    count = end.value - begin.value
    if node.op.name == "tir.tvm_call_cpacked_lowered":
        symbol = emitter.module.symbols.get(name.value, f"__tvm_ffi_{name.value}")
        status = emitter.call_c(
            symbol, "i32", [("ptr", "null"), ("ptr", arguments), ("i32", str(count)), ("ptr", result)]
        )
    else:
        slot = emitter.module.packed_slot(name.value)
        status = emitter.call_c(
            "tilewright_call_packed",
            "i32",
            [
                ("ptr", text.string(name.value)),
                ("ptr", slot),
                ("ptr", arguments),
                ("i32", str(count)),
                ("ptr", result),
            ],
        )
    fail_unless_zero(emitter, status)
    if node.dtype.lanes > 1:
        raise CodegenError(f"a packed call cannot give {node.dtype}", span=node.span)
    return load_any(emitter, payload, node.dtype)


def check_tensors(emitter: Emitter, node: Call) -> str:
    """``check_tensors(args, num_args, names, table...)``: the runtime checks tensors, and may refuse them."""
    args, count, names, *numbers = node.args
    if not isinstance(names, StringImm) or not all(isinstance(number, IntImm) for number in numbers):
        raise CodegenError("tir.check_tensors takes names and a table of constants", span=node.span)
    text = emitter.module.text
    values = ", ".join(f"i64 {number.value}" for number in numbers if isinstance(number, IntImm))
    table = text.unique("@.arguments")
    text.add_global(f"{table} = private unnamed_addr constant [{len(numbers)} x i64] [{values}], align 8")
    operands = [("ptr", emitter.visit(args)), ("i32", emitter.visit(count)), ("ptr", table)]
    operands.append(("ptr", text.string(names.value)))
    fail_unless_zero(emitter, emitter.call_c("tilewright_check_tensors", "i32", operands, "nounwind"))
    return "0"


def fail_unless_zero(emitter: Emitter, status: str) -> None:
    """Leave the function with -1 if a call reported an error, which it has set."""
    function = emitter.function
    good, bad = function.new_label("good"), function.new_label("bad")
    fine = function.value(f"icmp eq i32 {status}, 0")
    function.branch_if(fine, good, bad, likely_metadata(emitter))
    before = function.known
    function.begin(bad, before)
    leave_with_error(emitter)
    function.begin(good, before)


def likely_metadata(emitter: Emitter) -> str:
    """The first target of a branch is taken almost always."""
    weights = emitter.module.text.metadata('!{!"branch_weights", i32 1048576, i32 1}')
    return f", !prof {weights}"


def leave_with_error(emitter: Emitter) -> None:
    """Return -1; a function that returns nothing can only stop."""
    kind = emitter.function.return_type
    if kind == "void":
        emitter.function.effect("ret void")
    elif kind.startswith("i"):
        emitter.function.effect(f"ret {kind} -1")
    else:
        emitter.function.effect(f"ret {kind} zeroinitializer")


def fail(emitter: Emitter, message: PrimExpr) -> None:
    """Set the error that a message describes, and leave the function."""
    function, text = emitter.function, emitter.module.text
    words, values = message, list[PrimExpr]()
    if isinstance(message, Call) and message.op.name == "tir.format_message":
        words, values = message.args[0], list(message.args[1:])
    if not isinstance(words, StringImm):
        raise CodegenError(f"the message of an assertion must be a string, not {words}")
    kind, separator, rest = words.value.partition(": ")
    if not separator or kind not in KNOWN_ERRORS:
        kind, rest = "AssertionError", words.value
    arguments = [("ptr", text.string(kind)), ("ptr", text.string(rest))]
    if values:
        array = function.message_values(len(values))
        for position, value in enumerate(values):
            operand = convert(emitter, emitter.visit(value), value.dtype, INT64)
            slot = array
            if position:
                slot = function.value(f"getelementptr inbounds i64, ptr {array}, i64 {position}")
            function.effect(f"store i64 {operand}, ptr {slot}, align 8")
        arguments += [("ptr", array), ("i32", str(len(values)))]
        emitter.call_c("tilewright_set_error_format", "void", arguments, "cold nounwind")
    else:
        emitter.call_c("tilewright_set_error", "void", arguments, "cold nounwind")
    leave_with_error(emitter)


def throw_last_error(emitter: Emitter, node: Call) -> str:
    """Leave the function with the error that a callee has set."""
    leave_with_error(emitter)
    emitter.function.begin(emitter.function.new_label("after"))
    return "0"


def return_value(emitter: Emitter, node: Call) -> str:
    """Leave the function with a value."""
    function, value = emitter.function, node.args[0]
    if emitter.in_parallel:
        raise CodegenError("a parallel loop's body cannot return from the function around it", span=node.span)
    operand = emitter.visit(value)
    if function.return_type == "void":
        function.effect("ret void")
    else:
        kind = emitter.types.register(value.dtype)
        if kind != function.return_type:
            raise CodegenError(
                f"{emitter.context.name} returns {function.return_type}, not {value.dtype}", span=node.span
            )
        function.effect(f"ret {kind} {operand}")
    function.begin(function.new_label("after"))
    return "0"


RUNTIME_CALLS: dict[str, Callable[[Emitter, Call], str]] = {
    "tir.tvm_struct_get": struct_get,
    "tir.tvm_struct_set": struct_set,
    "tir.tvm_stack_alloca": stack_alloca,
    "tir.tvm_call_packed_lowered": call_packed,
    "tir.tvm_call_cpacked_lowered": call_packed,
    "tir.tvm_call_trace_packed_lowered": call_packed,
    "tir.tvm_throw_last_error": throw_last_error,
    "tir.check_tensors": check_tensors,
    "tir.ret": return_value,
}
