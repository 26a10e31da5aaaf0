"""A log of the calls of kernels: when each began, how long it took, and the types and shapes of its tensors.

The C runtime keeps it, so that logging costs a fraction of a microsecond a call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from ctypes import c_size_t, c_void_p
from dataclasses import dataclass

from tilewright.runtime.failure import check
from tilewright.runtime.library import LIBRARY, QUICK
from tilewright.runtime.packed_func import PackedFunc
from tilewright.runtime.reference import HoldsReference
from tilewright.runtime.vm_program import Opcode
from tilewright.support.dtype import DataType

_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}
"""DLPack's numbers of the kinds of element types."""


INSTRUCTIONS = {
    Opcode.ALLOC_TENSOR: "VM::AllocTensor",
    Opcode.ALLOC_TENSOR_REG: "VM::AllocTensorReg",
    Opcode.ALLOC_STORAGE: "VM::AllocStorage",
    Opcode.ALLOC_STORAGE_ON: "VM::AllocStorage",
    Opcode.SHAPE_OF: "VM::ShapeOf",
    Opcode.RESHAPE_TENSOR: "VM::ReshapeTensor",
    Opcode.DEVICE_COPY: "VM::DeviceCopy",
    Opcode.LOAD_CONST_ON: "VM::LoadConst",
}
"""What the instructions of the virtual machine that a log may have are called."""


@dataclass(frozen=True)
class LoggedTensor:
    """The type and shape of a tensor that a function was given."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """The bytes of its elements."""
        kind = DataType(self.dtype)
        total = (kind.bits * kind.lanes + 7) // 8
        for extent in self.shape:
            total *= extent
        return total

    def text(self) -> str:
        """As a person would write it: ``float32[1, 3, 224, 224]``."""
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class LoggedCall:
    """One call: the function's name, when it began after the log was cleared, how long it took, and its tensors."""

    name: str
    begin_seconds: float
    seconds: float
    tensors: tuple[LoggedTensor, ...]


class CallLog(HoldsReference):
    """Logs the calls of the functions that it watches. One thread at a time may call them."""

    def __init__(self) -> None:
        self._address = 0
        handle = c_void_p()
        check(LIBRARY.tilewright_call_log_create(ctypes.byref(handle)))
        self._address = handle.value or 0
        self._names: list[str] = []

    def watch(self, function: PackedFunc, name: str) -> int:
        """A reference to a function of the C runtime that calls this one and logs it; its owner releases it."""
        handle = c_void_p()
        check(
            LIBRARY.tilewright_call_log_watch(
                self._address, function.handle, len(self._names), ctypes.byref(handle)
            )
        )
        self._names.append(name)
        return handle.value or 0

    def watch_instructions(self, machine: int) -> None:
        """Log, from now on, the instructions that make and move tensors, of a virtual machine of the C runtime."""
        LIBRARY.tilewright_vm_set_call_log(machine, self._address)

    def clear(self) -> None:
        """Forget all calls, and start the clock."""
        QUICK.tilewright_call_log_clear(self._address)

    def calls(self) -> list[LoggedCall]:
        """Every call since the log was cleared, in the order in which they began."""
        count = c_size_t()
        words = QUICK.tilewright_call_log_words(self._address, ctypes.byref(count))
        return list(self._parsed(words[: count.value] if count.value else []))

    def _parsed(self, words: list[int]) -> Iterator[LoggedCall]:
        at = 0
        while at < len(words):
            number, begin, nanoseconds, tensors = words[at : at + 4]
            at += 4
            found = []
            for _ in range(tensors):
                code, bits, lanes, ndim = words[at : at + 4]
                at += 4
                found.append(LoggedTensor(_dtype_text(code, bits, lanes), tuple(words[at : at + ndim])))
                at += ndim
            name = self._names[number] if number >= 0 else INSTRUCTIONS[Opcode(-1 - number)]
            yield LoggedCall(name, begin / 1e9, nanoseconds / 1e9, tuple(found))

    def __del__(self) -> None:
        if self._address and QUICK is not None:
            QUICK.tilewright_call_log_release(self._address)


def _dtype_text(code: int, bits: int, lanes: int) -> str:
    if code == 6 or (code == 1 and bits == 1):
        return "bool"
    return f"{_CODES.get(code, 'handle')}{bits}{f'x{lanes}' if lanes > 1 else ''}"
