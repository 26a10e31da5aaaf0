"""Binding the parameters of a function to the arguments of a call.

``ArgBinder`` collects the statements between the entry of a function and its body: each variable of a parameter gets
its value from the first argument that provides one, and everything else that the parameters declare about the arguments
(types, ranks, sizes, strides, alignment, devices) becomes a check. A failed check names the argument, what was expected
and what was given.

The order keeps reads safe: a field is read only after the check that it exists. Relations between sizes are checked
after all variables have values, because the first parameter may use what only the last one provides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from tilewright.ir import operators
from tilewright.ir.buffer import DEFAULT_ALIGNMENT, Buffer
from tilewright.ir.expr import Any, Cast, ExprLike, IntImm, Load, PrimExpr, Select, StringImm, Var
from tilewright.ir.functor import free_vars
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.dtype import BOOL, INT64, DataType
from tilewright.support.errors import LoweringError
from tilewright.tir.packed_abi import (
    READ_ONLY,
    TENSOR_OBJECT_HEADER,
    StructField,
    TypeIndex,
    address_of,
    is_null,
    message,
    struct_get,
)
from tilewright.tir.stmt import NO_OP, AssertStmt, AttrStmt, Evaluate, IfThenElse, LetStmt, Stmt, stmt_seq

Step = Callable[[Stmt], Stmt]
"""One layer around a body."""

CPU = 1
"""DLPack's number for the host's memory."""

DEVICE_ALIGNMENT = 64
"""Bytes: what the memory of devices is aligned to."""

# A bool is one bit to us, eight bits of code 6 to DLPack, and a byte to older senders: (code, bits).
_BOOL_FORMS = ((1, 1), (6, 8), (1, 8), (0, 8))
_BFLOAT16_FORMS = ((4, 16), (1, 16))
_BOOL_IN_TABLE = (6, 8)
_TYPES_IN_TABLE = frozenset((0, 1, 2, 4, 6))
"""DLPack's codes of integers, floats and truth values: the runtime names them as we do."""


def _pointer(name: str, element: str) -> Var:
    return Var(name, PointerType(PrimType(element)))


class ArgBinder:
    """Binds parameters to the arguments of one function; ``wrap`` puts the result around the body."""

    def __init__(
        self, function_name: str, written: Collection[Var] = (), runtime_checks: bool = False
    ) -> None:
        """``written`` are the pointers that the function may write through: read-only tensors are refused there.

        With ``runtime_checks``, one call of the runtime checks every compact tensor, by a table: the checks of a tensor
        written out are larger than many a kernel.
        """
        self.function_name = function_name
        self.written = written
        self.runtime_checks = runtime_checks
        self._table: list[list[int]] = []
        self._table_names: list[str] = []
        self._count: tuple[PrimExpr, PrimExpr, int] | None = None
        self.values: dict[Var, PrimExpr] = {}
        self._steps: list[Step] = []
        self._relations: list[tuple[PrimExpr, PrimExpr, str]] = []
        self._late_steps: list[Step] = []

    def wrap(self, body: Stmt) -> Stmt:
        """The body behind all bindings and checks."""
        relations: list[Step] = []
        for expected, value, subject in self._relations:
            self._require_bound(expected, subject)
            relations.append(self._relation(expected, value, subject))
        for step in reversed([*self._first_steps(), *self._steps, *relations, *self._late_steps]):
            body = step(body)
        return body

    def _first_steps(self) -> list[Step]:
        """The checks that all others rely on: of the number of arguments, and of the tensors in the table."""
        if self._count is None:
            return []
        args, given, expected = self._count
        if self._table:
            table = [expected, len(self._table), *(number for row in self._table for number in row)]
            names = StringImm("\n".join([self.function_name, *self._table_names]))
            numbers = [operators.const(number, INT64) for number in table]
            checked = Evaluate(operators.call("check_tensors", "int32", [args, given, names, *numbers]))
            return [lambda body: stmt_seq(checked, body)]
        text = f"expected {expected} argument{'' if expected == 1 else 's'}, got {{0}}"
        return [_assertion(operators.equal(given, expected), message("TypeError", self._text(text), [given]))]

    def expect(self, args: PrimExpr, given: PrimExpr, expected: int) -> None:
        """Have the number of arguments at ``args`` checked before anything is read there."""
        self._count = args, given, expected

    def let(self, var: Var, value: PrimExpr) -> None:
        """Give a variable its value."""
        self.values[var] = value
        self._steps.append(lambda body: LetStmt(var, value, body))

    def check(self, condition: PrimExpr, kind: str, text: str, *values: ExprLike) -> None:
        """Fail here, with this kind of error, unless the condition holds."""
        if isinstance(condition, IntImm) and condition.value:
            return
        self._steps.append(_assertion(condition, message(kind, self._text(text), values)))

    def bind(self, expected: PrimExpr, value: PrimExpr, subject: str, least: int | None = None) -> None:
        """Give the variable ``expected`` this integer value; of any other expression, check that it has it.

        A variable takes only what its type can hold, and nothing below ``least``.
        """
        if isinstance(expected, Any):
            return
        if isinstance(expected, Var) and expected not in self.values:
            self._check_fits(value, expected.dtype, subject, least)
            self.let(expected, operators.cast(expected.dtype, value))
        elif isinstance(expected, IntImm):
            text = f"{subject} is {{0}}, expected {expected.value}"
            self.check(
                operators.equal(value, operators.cast(value.dtype, expected)), "ValueError", text, value
            )
        else:
            self._relations.append((operators.cast(value.dtype, expected), value, subject))

    def bind_scalar(self, param: Var, args: PrimExpr, index: int, device_type: int) -> None:
        """Bind a parameter that is a number or a plain pointer."""
        subject = f"argument {index} ({param.name})"
        kind = Var(f"{param.name}_type_index", "int32")
        self.let(kind, struct_get(args, index, StructField.ANY_TYPE_INDEX))
        if param.dtype.is_handle:
            self._bind_pointer(param, args, index, kind, subject, device_type)
            return
        accepted = [TypeIndex.INT, TypeIndex.BOOL, *([TypeIndex.FLOAT] if param.dtype.is_float else [])]
        noun = "a number" if param.dtype.is_float else "an integer"
        text = f"{subject} must be {noun} ({param.dtype}), not {{0:a}}"
        self.check(_is_one_of(kind, accepted), "TypeError", text, kind)
        integer = struct_get(args, index, StructField.ANY_VALUE, "int64")
        if param.dtype.is_float:
            floating = struct_get(args, index, StructField.ANY_VALUE, "float64")
            is_float = operators.equal(kind, int(TypeIndex.FLOAT))
            number = Select(is_float, floating, operators.cast("float64", integer))
            self.let(param, operators.cast(param.dtype, number))
        elif param.dtype.is_bool:
            self.let(param, operators.cast(param.dtype, integer))
        else:
            self.bind(param, integer, subject)

    def _bind_pointer(
        self, param: Var, args: PrimExpr, index: int, kind: Var, subject: str, device_type: int
    ) -> None:
        """Bind a plain pointer. One that says what it points to takes a tensor of such elements as its data."""
        element = param.element_type
        accepted = [TypeIndex.OPAQUE_POINTER, TypeIndex.DLTENSOR, TypeIndex.TENSOR]
        condition = _is_one_of(kind, accepted)
        if element is None:
            others = _is_one_of(kind, [TypeIndex.NONE, TypeIndex.RAW_STRING, TypeIndex.BYTE_ARRAY])
            is_object = operators.greater_equal(kind, int(TypeIndex.FIRST_OBJECT))
            condition = operators.logical_or(condition, operators.logical_or(others, is_object))
        noun = "a pointer" if element is None else f"a tensor of {element} or a pointer"
        self.check(condition, "TypeError", f"{subject} must be {noun}, not {{0:a}}", kind)
        address = self._tensor_address(param.name, args, index, kind)
        if element is None:
            self.let(param, address)
            return
        tensor = Var(f"{param.name}_tensor", "handle")
        self.let(tensor, address)
        is_tensor = _is_one_of(kind, [TypeIndex.DLTENSOR, TypeIndex.TENSOR])
        fits, packed = _type_test(element, tensor)
        text = f"{subject} points to elements of type {{0:t}}, expected {element}"
        self.check(_implies(is_tensor, fits), "TypeError", text, packed)
        if param in self.written:
            self._check_writeable(args, index, subject, is_tensor)
        device = struct_get(tensor, 0, StructField.DEVICE_TYPE)
        text = f"{subject} is on device {{0:k}}, expected {{1:k}}"
        right_device = _implies(is_tensor, operators.equal(device, device_type))
        self.check(right_device, "ValueError", text, device, device_type)
        base = _pointer(f"{param.name}_base", "uint8")
        data = struct_get(tensor, 0, StructField.DATA)
        self.let(base, operators.call("if_then_else", "handle", [is_tensor, data, tensor]))
        offset = operators.cast(INT64, struct_get(tensor, 0, StructField.BYTE_OFFSET))
        zero = operators.const(0, INT64)
        skipped = operators.call("if_then_else", "int64", [is_tensor, offset, zero])
        self.let(param, address_of(base, "uint8", skipped))

    def bind_buffer(
        self, param: Var, buffer: Buffer, args: PrimExpr, index: int, device_type: int, device_id: Var
    ) -> None:
        """Bind a parameter that stands for a buffer: its memory, sizes, strides and offset."""
        subject = f"argument {index} ({buffer.name})"
        kind = Var(f"{buffer.name}_type_index", "int32")
        self.let(kind, struct_get(args, index, StructField.ANY_TYPE_INDEX))
        if self.runtime_checks and self._count is not None and self._fits_table(buffer, device_id):
            self._bind_checked(param, buffer, args, index, kind, device_type, device_id)
            return
        is_tensor = _is_one_of(kind, [TypeIndex.DLTENSOR, TypeIndex.TENSOR])
        self.check(is_tensor, "TypeError", f"{subject} must be a tensor, not {{0:a}}", kind)
        if buffer.data in self.written:
            self._check_writeable(args, index, subject)
        self.let(param, self._tensor_address(buffer.name, args, index, kind))
        self._check_type(buffer, param, subject)
        ndim = struct_get(param, 0, StructField.NDIM)
        text = f"{subject} has {{0}} dimensions, expected {len(buffer.shape)}"
        self.check(operators.equal(ndim, len(buffer.shape)), "ValueError", text, ndim)
        device = struct_get(param, 0, StructField.DEVICE_TYPE)
        text = f"{subject} is on device {{0:k}}, expected {{1:k}}"
        self.check(operators.equal(device, device_type), "ValueError", text, device, device_type)
        self.bind(device_id, struct_get(param, 0, StructField.DEVICE_ID), f"the device number of {subject}")
        sizes = self._bind_shape(buffer, param, subject)
        self._bind_strides(buffer, param, sizes, subject)
        self._bind_data(buffer, param, sizes, subject, device_type)

    def _fits_table(self, buffer: Buffer, device_id: Var) -> bool:
        """True if the runtime can check all that a buffer asks of its tensor but the sizes that are not constants."""
        return (
            not buffer.strides
            and isinstance(buffer.elem_offset, IntImm)
            and buffer.data not in self.values
            and buffer.dtype.type_code in _TYPES_IN_TABLE
            # The runtime compares the devices of the tensors in the table.
            and bool(self._table or device_id not in self.values)
            and all(not isinstance(extent, IntImm) or extent.value >= 0 for extent in buffer.shape)
        )

    def _bind_checked(
        self,
        param: Var,
        buffer: Buffer,
        args: PrimExpr,
        index: int,
        kind: Var,
        device_type: int,
        device_id: Var,
    ) -> None:
        """Bind a buffer to a tensor that the runtime checks."""
        subject = f"argument {index} ({buffer.name})"
        alignment = required_alignment(buffer, device_type)
        dtype = buffer.dtype
        code, bits = _BOOL_IN_TABLE if dtype.is_bool else (dtype.type_code, dtype.bits)
        sizes = [extent.value if isinstance(extent, IntImm) else -1 for extent in buffer.shape]
        written = int(buffer.data in self.written)
        packed = code | bits << 8 | dtype.lanes << 16
        self._table.append([index, written, packed, device_type, alignment, len(sizes), *sizes])
        self._table_names.append(buffer.name)
        self.let(param, self._tensor_address(buffer.name, args, index, kind))
        if device_id not in self.values:
            device = struct_get(param, 0, StructField.DEVICE_ID)
            self.bind(device_id, device, f"the device number of {subject}")
        if -1 in sizes:
            pointer = _pointer(f"{buffer.name}_shape", "int64")
            self.let(pointer, struct_get(param, 0, StructField.SHAPE))
            for dimension, extent in enumerate(buffer.shape):
                if not isinstance(extent, IntImm):
                    size = Load(INT64, pointer, dimension)
                    self.bind(extent, size, f"dimension {dimension} of {subject}", least=0)
        base = _pointer(f"{buffer.name}_base", "uint8")
        self.let(base, struct_get(param, 0, StructField.DATA))
        byte_offset = operators.cast(INT64, struct_get(param, 0, StructField.BYTE_OFFSET))
        self.let(buffer.data, address_of(base, "uint8", byte_offset))
        if alignment > 1:
            self._late_steps.append(lambda body: AttrStmt(buffer.data, "storage_alignment", alignment, body))

    def _check_writeable(
        self, args: PrimExpr, index: int, subject: str, is_tensor: PrimExpr | None = None
    ) -> None:
        flags = operators.cast("int32", struct_get(args, index, StructField.ANY_FLAGS))
        writeable = operators.not_equal(flags, READ_ONLY)
        if is_tensor is not None:
            writeable = _implies(is_tensor, writeable)
        text = f"{subject} is written by the function, but its memory is read-only; pass a copy of it"
        self.check(writeable, "ValueError", text)

    def _tensor_address(self, name: str, args: PrimExpr, index: int, kind: Var) -> PrimExpr:
        """The pointer that an argument holds; of a tensor object, the address of the DLTensor in it."""
        pointer = _pointer(f"{name}_pointer", "uint8")
        self.let(pointer, struct_get(args, index, StructField.ANY_VALUE, "handle"))
        is_object = operators.equal(kind, int(TypeIndex.TENSOR))
        skipped = Select(is_object, operators.const(TENSOR_OBJECT_HEADER), operators.const(0))
        return address_of(pointer, "uint8", skipped)

    def _check_type(self, buffer: Buffer, handle: PrimExpr, subject: str) -> None:
        condition, packed = _type_test(buffer.dtype, handle)
        self.check(
            condition, "TypeError", f"{subject} has data type {{0:t}}, expected {buffer.dtype}", packed
        )

    def _bind_shape(self, buffer: Buffer, handle: PrimExpr, subject: str) -> list[PrimExpr]:
        """Bind the dimensions, and give the sizes: constants as they were checked to be, the others as they came."""
        pointer = _pointer(f"{buffer.name}_shape", "int64")
        if buffer.shape:
            self.let(pointer, struct_get(handle, 0, StructField.SHAPE))
        sizes: list[PrimExpr] = []
        for dimension, extent in enumerate(buffer.shape):
            size = Load(INT64, pointer, dimension)
            sizes.append(operators.cast(INT64, extent) if isinstance(extent, IntImm) else size)
            self.bind(extent, size, f"dimension {dimension} of {subject}", least=0)
        return sizes

    def _bind_strides(self, buffer: Buffer, handle: PrimExpr, sizes: list[PrimExpr], subject: str) -> None:
        if not buffer.shape:
            return
        pointer = _pointer(f"{buffer.name}_strides", "int64")
        self.let(pointer, struct_get(handle, 0, StructField.STRIDES))
        compact: list[PrimExpr] = []
        step: PrimExpr = operators.const(1, INT64)
        for size in reversed(sizes):
            compact.insert(0, step)
            step = operators.multiply(step, size)
        if not buffer.strides:
            self._steps.append(self._compactness(pointer, sizes, compact, subject))
            return
        for dimension, expected in enumerate(buffer.strides):
            given = Load(INT64, pointer, dimension)
            stride: PrimExpr = operators.call(
                "if_then_else", "int64", [is_null(pointer), compact[dimension], given]
            )
            if buffer.buffer_type == "auto_broadcast" and isinstance(expected, Var):
                is_one = operators.equal(sizes[dimension], operators.const(1, INT64))
                stride = Select(is_one, operators.const(0, INT64), stride)
            self.bind(expected, stride, f"stride {dimension} of {subject}")

    def _compactness(
        self, pointer: Var, sizes: list[PrimExpr], compact: list[PrimExpr], subject: str
    ) -> Step:
        """Strides, where there are any, must be those of a compact array.

        A dimension of one element may have any, and so may all of an array without elements.
        """
        one = operators.const(1, INT64)
        tests: list[Stmt] = []
        for dimension, (size, expected) in enumerate(zip(sizes, compact, strict=True)):
            stride = Load(INT64, pointer, dimension)
            fine = operators.logical_or(operators.less_equal(size, one), operators.equal(stride, expected))
            if isinstance(fine, IntImm) and fine.value:
                continue
            text = self._text(
                f"stride {dimension} of {subject} is {{0}}, expected {{1}}: the array must be compact and row-major"
            )
            tests.append(AssertStmt(fine, message("ValueError", text, [stride, expected]), NO_OP))
        matters = operators.logical_not(operators.logical_or(is_null(pointer), _is_empty(sizes)))
        if not tests or (isinstance(matters, IntImm) and not matters.value):
            return lambda body: body
        return lambda body: stmt_seq(IfThenElse(matters, stmt_seq(tests)), body)

    def _bind_data(
        self, buffer: Buffer, handle: PrimExpr, sizes: list[PrimExpr], subject: str, device_type: int
    ) -> None:
        base = _pointer(f"{buffer.name}_base", "uint8")
        self.let(base, struct_get(handle, 0, StructField.DATA))
        present = operators.logical_or(operators.logical_not(is_null(base)), _is_empty(sizes))
        self.check(present, "ValueError", f"{subject} has elements, but its data pointer is NULL")
        byte_offset = operators.cast(INT64, struct_get(handle, 0, StructField.BYTE_OFFSET))
        if isinstance(buffer.elem_offset, IntImm):
            # The buffer starts where the data starts: the offset moves the pointer.
            data: PrimExpr = address_of(base, "uint8", byte_offset)
        else:
            data = base
            self._bind_offset(buffer, byte_offset, subject)
        if buffer.data in self.values:
            self._relations.append((buffer.data, data, f"the memory of {subject}"))
            return
        self.let(buffer.data, data)
        alignment = required_alignment(buffer, device_type)
        if alignment > 1:
            address = operators.call("reinterpret", "uint64", [buffer.data])
            rest = operators.bitwise_and(address, operators.const(alignment - 1, "uint64"))
            text = f"the memory of {subject} must be aligned to {alignment} bytes, it is {{0}} bytes past alignment"
            aligned = operators.equal(rest, operators.const(0, "uint64"))
            self.check(aligned, "ValueError", text, rest)
            self._late_steps.append(lambda body: AttrStmt(buffer.data, "storage_alignment", alignment, body))

    def _bind_offset(self, buffer: Buffer, byte_offset: PrimExpr, subject: str) -> None:
        itemsize = buffer.dtype.itemsize * buffer.dtype.lanes
        unit = operators.const(itemsize * max(buffer.offset_factor, 1), INT64)
        text = f"the byte offset of {subject} is {{0}}, expected a multiple of {{1}}"
        multiple = operators.equal(operators.truncmod(byte_offset, unit), operators.const(0, INT64))
        self.check(multiple, "ValueError", text, byte_offset, unit)
        elements = operators.truncdiv(byte_offset, operators.const(itemsize, INT64))
        self.bind(buffer.elem_offset, elements, f"the element offset of {subject}")

    def _check_fits(self, value: PrimExpr, dtype: DataType, subject: str, least: int | None) -> None:
        """Programs compute sizes in their own type: what does not fit must not wrap around."""
        low, high = _limits(dtype)
        value_low, value_high = _limits(value.dtype)
        low = low if least is None else max(low, least)
        condition: PrimExpr = operators.const(True, BOOL)
        if low > value_low:
            condition = operators.greater_equal(value, operators.const(low, value.dtype))
        if high < value_high:
            below = operators.less_equal(value, operators.const(high, value.dtype))
            condition = operators.logical_and(condition, below)
        self.check(condition, "ValueError", f"{subject} is {{0}}, expected {low} to {high} ({dtype})", value)

    def _relation(self, expected: PrimExpr, value: PrimExpr, subject: str) -> Step:
        """The check that an expression of bound variables has this value."""
        condition = operators.equal(value, expected)
        if expected.dtype.is_handle:
            text = f"{subject} must be the same as that of an earlier argument with this memory"
            return _assertion(condition, message("ValueError", self._text(text)))
        variables = free_vars(expected)
        name = f" (the value of {variables[0].name})" if len(variables) == 1 and _is_plain(expected) else ""
        text = f"{subject} is {{0}}, expected {{1}}{name}"
        return _assertion(condition, message("ValueError", self._text(text), [value, expected]))

    def _require_bound(self, expected: PrimExpr, subject: str) -> None:
        for variable in free_vars(expected):
            if variable not in self.values:
                raise LoweringError(
                    f"{self.function_name}: {subject} is {expected}, but no argument gives the value of "
                    f"{variable.name}; pass {variable.name} as an argument, or make it a dimension of one by itself"
                )

    def _text(self, text: str) -> str:
        return f"{self.function_name}: {text}"


def required_alignment(buffer: Buffer, device_type: int) -> int:
    """Bytes to which the memory of an argument must be aligned.

    A buffer's explicit requirement always counts. The default counts only on devices: arrays of other libraries on the
    host are only aligned to their elements, and CPUs can read them.
    """
    if buffer.data_alignment != DEFAULT_ALIGNMENT:
        return buffer.data_alignment
    return buffer.dtype.itemsize if device_type == CPU else DEVICE_ALIGNMENT


def _type_test(dtype: DataType, handle: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """Whether a tensor has elements of a type, and the type that it has, as a number for messages."""
    code = struct_get(handle, 0, StructField.TYPE_CODE)
    bits = struct_get(handle, 0, StructField.TYPE_BITS)
    lanes = struct_get(handle, 0, StructField.TYPE_LANES)
    own = (dtype.type_code, dtype.bits)
    # NumPy has no bfloat16: programs pass its bits as uint16.
    forms = _BOOL_FORMS if dtype.is_bool else _BFLOAT16_FORMS if own == _BFLOAT16_FORMS[0] else (own,)
    condition: PrimExpr = operators.const(False, BOOL)
    for form_code, form_bits in forms:
        same_code = operators.equal(code, operators.const(form_code, "uint8"))
        same_bits = operators.equal(bits, operators.const(form_bits, "uint8"))
        condition = operators.logical_or(condition, operators.logical_and(same_code, same_bits))
    same_lanes = operators.equal(lanes, operators.const(dtype.lanes, "uint16"))
    packed = operators.cast(INT64, code)
    for part, shift in ((bits, 8), (lanes, 16)):
        packed = operators.bitwise_or(packed, operators.left_shift(operators.cast(INT64, part), shift))
    return operators.logical_and(condition, same_lanes), packed


def _limits(dtype: DataType) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    if dtype.is_uint:
        return 0, (1 << dtype.bits) - 1
    return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1


def _is_plain(expr: PrimExpr) -> bool:
    """True for a variable, also where it is widened."""
    return isinstance(expr.value if isinstance(expr, Cast) else expr, Var)


def _assertion(condition: PrimExpr, text: PrimExpr) -> Step:
    return lambda body: AssertStmt(condition, text, body)


def _implies(condition: PrimExpr, then: PrimExpr) -> PrimExpr:
    """``then`` where the condition holds, and true elsewhere, without looking at ``then``."""
    return operators.call("if_then_else", "bool", [condition, then, operators.const(True, BOOL)])


def _is_empty(sizes: list[PrimExpr]) -> PrimExpr:
    """True if an array of these sizes has no elements."""
    empty: PrimExpr = operators.const(False, BOOL)
    for size in sizes:
        empty = operators.logical_or(empty, operators.equal(size, operators.const(0, INT64)))
    return empty


def _is_one_of(kind: Var, accepted: list[TypeIndex]) -> PrimExpr:
    condition: PrimExpr = operators.const(False, BOOL)
    for index in accepted:
        condition = operators.logical_or(condition, operators.equal(kind, int(index)))
    return condition
