"""Programs of the virtual machine as data: functions of instructions, the kernels that they call, constants.

``VMProgram.to_bytes`` writes the form that the C runtime reads (``csrc/vm_read.c`` describes it); ``from_bytes`` is the
reverse. The C runtime checks a program in full before it runs; what is read here is only looked at.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from tilewright.runtime.failure import failure
from tilewright.runtime.ndarray import NDArray, data_type_of, empty, numpy_dtype
from tilewright.support.dtype import DataType

_MAGIC = b"TWVM0001"

# The kinds of parameters.
_ANY_VALUE, _HOST_TENSOR, _DEVICE_TENSOR = range(3)


class Opcode(IntEnum):
    """What an instruction does."""

    MOVE = 0
    RET = 1
    INVOKE = 2
    INVOKE_CLOSURE = 3
    INVOKE_PACKED = 4
    ALLOC_TENSOR = 5
    ALLOC_TENSOR_REG = 6
    ALLOC_DATA = 7
    ALLOC_CLOSURE = 8
    GET_FIELD = 9
    IF = 10
    LOAD_CONST = 11
    GOTO = 12
    GET_TAG = 13
    LOAD_CONSTI = 14
    FATAL = 15
    ALLOC_STORAGE = 16
    SHAPE_OF = 17
    RESHAPE_TENSOR = 18
    DEVICE_COPY = 19
    ALLOC_REF = 20
    REF_READ = 21
    REF_WRITE = 22
    KILL = 23
    ALLOC_STORAGE_ON = 24
    LOAD_CONST_ON = 25


LAYOUTS: dict[Opcode, str] = {
    Opcode.MOVE: "dr",
    Opcode.RET: "r",
    Opcode.INVOKE: "dfR",
    Opcode.INVOKE_CLOSURE: "drR",
    Opcode.INVOKE_PACKED: "knR",
    Opcode.ALLOC_TENSOR: "drntN",
    Opcode.ALLOC_TENSOR_REG: "drntr",
    Opcode.ALLOC_DATA: "diR",
    Opcode.ALLOC_CLOSURE: "dfR",
    Opcode.GET_FIELD: "drn",
    Opcode.IF: "rrjj",
    Opcode.LOAD_CONST: "dc",
    Opcode.GOTO: "j",
    Opcode.GET_TAG: "dr",
    Opcode.LOAD_CONSTI: "di",
    Opcode.FATAL: "s",
    Opcode.ALLOC_STORAGE: "dont",
    Opcode.SHAPE_OF: "dr",
    Opcode.RESHAPE_TENSOR: "drr",
    Opcode.DEVICE_COPY: "drnnnn",
    Opcode.ALLOC_REF: "dr",
    Opcode.REF_READ: "dr",
    Opcode.REF_WRITE: "rr",
    Opcode.KILL: "R",
    Opcode.ALLOC_STORAGE_ON: "dontnn",
    Opcode.LOAD_CONST_ON: "dcnn",
}
"""The operands of each instruction: d a register that is written, r one that is read, o one or -1, R several; f a
function, k a kernel, c a constant, s a text, t a data type, i a number, n one that is not negative, N several; j words
to another instruction. A device is two numbers: its kind, and its position among the machine's devices of that kind.
Storage and constants without a device are on the host."""

Operand = int | tuple[int, ...]


def pack_dtype(dtype: DataType) -> int:
    """A data type as one number."""
    return int(dtype.type_code | dtype.bits << 8 | dtype.lanes << 16)


def unpack_dtype(number: int) -> DataType:
    """The reverse."""
    return data_type_of(number & 0xFF, number >> 8 & 0xFF, number >> 16 & 0xFFFF)


@dataclass(frozen=True)
class Instruction:
    """An instruction and its operands, in the order of its layout."""

    opcode: Opcode
    operands: tuple[Operand, ...]

    def words(self) -> list[int]:
        """As the machine encodes it."""
        made = [int(self.opcode)]
        for operand in self.operands:
            made += (operand,) if isinstance(operand, int) else (len(operand), *operand)
        return made


@dataclass(frozen=True)
class VMParameter:
    """A parameter of a function; where ``dtype`` is given, a tensor of this type and shape (None: any extent).

    A tensor is to be on a device, given as its kind and its position among the machine's devices of that kind; without
    one, on the host. Arguments that are elsewhere are copied there.
    """

    name: str
    dtype: DataType | None = None
    shape: tuple[int | None, ...] = ()
    device: tuple[int, int] | None = None


@dataclass(frozen=True)
class VMFunction:
    """A function: its parameters are its first registers."""

    name: str
    parameters: tuple[VMParameter, ...]
    num_registers: int
    code: tuple[int, ...]

    def instructions(self) -> Iterator[tuple[int, Instruction]]:
        """The instructions, each with the word at which it begins."""
        at = 0
        while at < len(self.code):
            found, size = _instruction_at(self, at)
            yield at, found
            at += size


@dataclass(frozen=True)
class VMKernel:
    """A compiled function that the program calls, and what it computes, for messages."""

    name: str
    label: str


@dataclass
class VMProgram:
    """All of a program but the machine code of its kernels."""

    functions: list[VMFunction]
    kernels: list[VMKernel] = field(default_factory=list)
    constants: list[NDArray] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    outputs: list[VMParameter] = field(default_factory=list)
    """The tensors that ``main`` returns, tuples flattened; empty if it returns anything else."""
    dimension_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The model's names of the dimensions of inputs and outputs, by the tensor's name."""

    def function(self, name: str) -> VMFunction:
        """A function by name."""
        for found in self.functions:
            if found.name == name:
                return found
        names = ", ".join(one.name for one in self.functions)
        raise failure("ValueError", f"the program has no function {name!r}; it has {names}")

    def to_bytes(self, with_constants: bool = True) -> bytes:
        """The program in the form that the C runtime reads; constants may be left for the host to give."""
        writer = _Writer()
        writer.numbers(len(self.texts))
        for text in self.texts:
            writer.text(text)
        writer.numbers(len(self.kernels))
        for kernel in self.kernels:
            writer.text(kernel.name)
            writer.text(kernel.label)
        writer.numbers(len(self.constants))
        for constant in self.constants:
            writer.constant(constant if with_constants else None)
        writer.numbers(len(self.functions))
        for function in self.functions:
            writer.function(function)
        writer.parameters(self.outputs)
        if self.dimension_names:
            writer.names(self.dimension_names)
        return b"".join(writer.parts)

    @staticmethod
    def from_bytes(content: bytes) -> VMProgram:
        """The program that ``to_bytes`` wrote."""
        if content[: len(_MAGIC)] != _MAGIC:
            raise failure("ValueError", "not a program of the virtual machine")
        reader = _Reader(content, len(_MAGIC))
        try:
            texts = [reader.text() for _ in range(reader.count())]
            kernels = [VMKernel(reader.text(), reader.text()) for _ in range(reader.count())]
            constants = [reader.constant() for _ in range(reader.count())]
            functions = [reader.function() for _ in range(reader.count())]
            # Programs that were written before there was a list of outputs end here.
            outputs = [] if reader.at == len(content) else reader.parameters()
            names = {} if reader.at == len(content) else reader.names()
        except (struct.error, UnicodeDecodeError, ValueError, OverflowError, MemoryError) as error:
            raise failure("ValueError", f"the program of the virtual machine is damaged: {error}") from error
        if reader.at != len(content):
            raise failure(
                "ValueError", "the program of the virtual machine is damaged: there are bytes after its end"
            )
        return VMProgram(functions, kernels, constants, texts, outputs, names)


class _Writer:
    def __init__(self) -> None:
        self.parts: list[bytes] = [_MAGIC]

    def numbers(self, *values: int) -> None:
        self.parts.append(struct.pack(f"<{len(values)}q", *values))

    def text(self, value: str) -> None:
        content = value.encode()
        self.numbers(len(content))
        self.parts.append(content)

    def names(self, names: Mapping[str, Sequence[str]]) -> None:
        self.numbers(len(names))
        for tensor, dimensions in names.items():
            self.text(tensor)
            self.numbers(len(dimensions))
            for dimension in dimensions:
                self.text(dimension)

    def type(self, dtype: DataType, shape: Sequence[int | None]) -> None:
        extents = [-1 if extent is None else extent for extent in shape]
        self.numbers(pack_dtype(dtype), len(extents), *extents)

    def constant(self, value: NDArray | None) -> None:
        if value is None:
            self.numbers(0)
            return
        content = value.numpy().tobytes()
        self.numbers(1)
        self.type(value.dtype, value.shape)
        self.numbers(len(content))
        self.parts.append(content)

    def function(self, function: VMFunction) -> None:
        self.text(function.name)
        self.numbers(function.num_registers)
        self.parameters(function.parameters)
        self.numbers(len(function.code), *function.code)

    def parameters(self, parameters: Sequence[VMParameter]) -> None:
        self.numbers(len(parameters))
        for parameter in parameters:
            self.text(parameter.name)
            if parameter.dtype is None:
                self.numbers(_ANY_VALUE)
                continue
            self.numbers(_HOST_TENSOR if parameter.device is None else _DEVICE_TENSOR)
            self.type(parameter.dtype, parameter.shape)
            if parameter.device is not None:
                self.numbers(*parameter.device)


class _Reader:
    def __init__(self, content: bytes, at: int) -> None:
        self.content = content
        self.at = at

    def number(self) -> int:
        (value,) = struct.unpack_from("<q", self.content, self.at)
        self.at += 8
        return int(value)

    def count(self) -> int:
        value = self.number()
        if not 0 <= value <= len(self.content) - self.at:
            raise ValueError("it is cut short")
        return value

    def take(self, size: int) -> bytes:
        made = self.content[self.at : self.at + size]
        if len(made) != size:
            raise ValueError("it is cut short")
        self.at += size
        return made

    def text(self) -> str:
        return self.take(self.count()).decode()

    def names(self) -> dict[str, tuple[str, ...]]:
        return {self.text(): tuple([self.text() for _ in range(self.count())]) for _ in range(self.count())}

    def type(self) -> tuple[DataType, tuple[int, ...]]:
        dtype = unpack_dtype(self.number())
        return dtype, tuple([self.number() for _ in range(self.count())])

    def constant(self) -> NDArray:
        if self.number() != 1:
            raise ValueError("a constant is missing")
        dtype, shape = self.type()
        content = self.take(self.count())
        values = np.frombuffer(content, numpy_dtype(dtype))
        lanes = (dtype.lanes,) if dtype.lanes > 1 else ()
        return empty(shape, str(dtype)).copyfrom(values.reshape(shape + lanes))

    def function(self) -> VMFunction:
        name = self.text()
        registers = self.number()
        parameters = tuple(self.parameters())
        words = self.count()
        code = struct.unpack(f"<{words}q", self.take(8 * words))
        return VMFunction(name, parameters, registers, code)

    def parameters(self) -> list[VMParameter]:
        return [self.parameter() for _ in range(self.count())]

    def parameter(self) -> VMParameter:
        name = self.text()
        kind = self.number()
        if kind == _ANY_VALUE:
            return VMParameter(name)
        dtype, shape = self.type()
        extents = tuple(None if extent < 0 else extent for extent in shape)
        device = (self.number(), self.number()) if kind == _DEVICE_TENSOR else None
        return VMParameter(name, dtype, extents, device)


def _instruction_at(function: VMFunction, at: int) -> tuple[Instruction, int]:
    """The instruction that begins at a word, and its number of words."""
    code = function.code
    try:
        opcode = Opcode(code[at])
        end = at + 1
        operands: list[Operand] = []
        for kind in LAYOUTS[opcode]:
            if kind in "RN":
                size = code[end]
                operands.append(code[end + 1 : end + 1 + size])
                end += 1 + max(size, 0)
            else:
                operands.append(code[end])
                end += 1
    except (ValueError, IndexError):
        raise failure(
            "ValueError", f"word {at} of {function.name} is not an instruction: the program is damaged"
        ) from None
    return Instruction(opcode, tuple(operands)), end - at


def instruction_text(program: VMProgram, at: int, instruction: Instruction) -> str:
    """One line of a listing."""

    def shown(kind: str, value: Any) -> str:
        if kind in "RN":
            return f"[{', '.join(shown(kind.lower(), one) for one in value)}]"
        if kind in "dr":
            return f"${value}"
        if kind == "o":
            return "-" if value < 0 else f"${value}"
        if kind == "f":
            return f"@{program.functions[value].name}"
        if kind == "k":
            return str(program.kernels[value].name)
        if kind == "s":
            return repr(program.texts[value])
        if kind == "t":
            return str(unpack_dtype(value))
        if kind == "j":
            return f"-> {at + value}"
        return f"constant {value}" if kind == "c" else str(value)

    kinds = LAYOUTS[instruction.opcode]
    operands = ", ".join(shown(kind, value) for kind, value in zip(kinds, instruction.operands, strict=True))
    return f"{at:6}: {instruction.opcode.name.lower()} {operands}"
