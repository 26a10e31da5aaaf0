"""Programs of the virtual machine with values on several devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.runtime.device.guarded import Code, counts, guarded, set_memory
from tests.threads import in_threads

from tilewright.runtime import Device, Module, PackedFunc, convert_to_tvm_func, cpu
from tilewright.runtime import ndarray as nd
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.vm import Executable, VirtualMachine
from tilewright.runtime.vm_program import (
    Instruction,
    Opcode,
    Operand,
    VMFunction,
    VMKernel,
    VMParameter,
    VMProgram,
    pack_dtype,
)
from tilewright.support.dtype import DataType

FLOAT = DataType("float32")
HOST, FIRST, SECOND = (1, 0), (12, 0), (12, 1)


class Kernels(Module):
    """``add_one`` launches on the device of its arguments; ``add_one_on_host`` reads host memory."""

    def __init__(self, code: Code) -> None:
        super().__init__("kernels", ("add_one", "add_one_on_host"))
        self._code = code

    def _add_one(self, x: NDArray, out: NDArray) -> None:
        assert x.device == out.device == self._code.device
        self._code.launch("add_one", x, out, x.size)

    def _add_one_on_host(self, x: NDArray, out: NDArray) -> None:
        np.from_dlpack(out)[:] = np.from_dlpack(x) + 1

    def _find(self, name: str) -> PackedFunc | None:
        found = {"add_one": self._add_one, "add_one_on_host": self._add_one_on_host}.get(name)
        return convert_to_tvm_func(found) if found is not None else None


def one(opcode: Opcode, *operands: Operand) -> list[int]:
    """The words of an instruction."""
    return Instruction(opcode, operands).words()


def function(
    name: str, parameters: list[VMParameter], registers: int, *instructions: list[int]
) -> VMFunction:
    """A function of these instructions."""
    words = tuple([word for instruction in instructions for word in instruction])
    return VMFunction(name, tuple(parameters), registers, words)


def machine(
    code: Code,
    functions: list[VMFunction],
    constants: list[NDArray],
    *devices: Device,
    memory: str = "pooled",
) -> VirtualMachine:
    """A machine that runs them."""
    kernels = [VMKernel("add_one", "add one"), VMKernel("add_one_on_host", "add one")]
    program = VMProgram.from_bytes(VMProgram(functions, kernels, constants).to_bytes())
    return VirtualMachine(Executable.from_program(program, Kernels(code)), devices, memory)


def new_tensor(register: int, scratch: int, device: tuple[int, int], count: int = 4) -> list[int]:
    """A vector of floats on a device."""
    dtype = pack_dtype(FLOAT)
    return [
        *one(Opcode.ALLOC_STORAGE_ON, scratch, -1, 4 * count, dtype, *device),
        *one(Opcode.ALLOC_TENSOR, register, scratch, 0, dtype, (count,)),
    ]


def main_function() -> VMFunction:
    """x + 1 on the device, + 1 on the host, + 1 on the device."""
    return function(
        "main",
        [VMParameter("x", FLOAT, (4,), FIRST)],
        8,
        new_tensor(1, 7, FIRST),
        one(Opcode.INVOKE_PACKED, 0, 1, (0, 1)),
        one(Opcode.DEVICE_COPY, 2, 1, *FIRST, *HOST),
        new_tensor(3, 7, HOST),
        one(Opcode.INVOKE_PACKED, 1, 1, (2, 3)),
        one(Opcode.DEVICE_COPY, 4, 3, *HOST, *FIRST),
        new_tensor(5, 7, FIRST),
        one(Opcode.KILL, (1, 2, 3, 7)),
        one(Opcode.INVOKE_PACKED, 0, 1, (4, 5)),
        one(Opcode.RET, 5),
    )


@pytest.mark.parametrize("memory", ["pooled", "naive"])
def test_between_devices(device: Device, code: Code, memory: str) -> None:
    """Arguments from anywhere are brought to the parameter's device; the result is where the program put it."""
    vm = machine(code, [main_function()], [], device, memory=memory)
    values = np.arange(4, dtype="float32")
    for turn in range(3):
        for given in (values, nd.array(values), nd.array(values, device), nd.array(values, guarded(1))):
            result = vm.run(given)
            assert result.device == device
            np.testing.assert_array_equal(result.numpy(), values + 3, str(turn))
    strided = np.arange(8, dtype="float32")[::2]
    np.testing.assert_array_equal(vm.run(strided).numpy(), strided + 3)


def test_memory_is_kept_for_the_next_run(device: Device, code: Code) -> None:
    """A machine that keeps memory asks the device for none in its second run, and gives all back when it ends."""
    vm = machine(code, [main_function()], [], device)
    argument = nd.array(np.zeros(4, "float32"), device)
    vm.run(argument)
    held = counts(device).in_use
    for _ in range(5):
        vm.run(argument)
        assert counts(device).in_use == held


def test_the_same_program_on_another_device(device: Device, image: bytes) -> None:
    """A program names the first device of a kind; which that is, the machine is told."""
    code = Code(image, guarded(1))
    result = machine(code, [main_function()], [], cpu(), guarded(1)).run(np.zeros(4, "float32"))
    assert result.device == guarded(1)
    np.testing.assert_array_equal(result.numpy(), [3, 3, 3, 3])
    del result
    code.close()


def test_constants_on_devices(device: Device, code: Code) -> None:
    """A constant is copied to each device that wants it once, when the machine is made."""
    load = [
        one(Opcode.LOAD_CONST_ON, 0, 0, *FIRST),
        one(Opcode.LOAD_CONST_ON, 1, 0, *SECOND),
        one(Opcode.LOAD_CONST_ON, 2, 1, *HOST),
        one(Opcode.ALLOC_DATA, 3, 0, (0, 1, 2, 0)),
        one(Opcode.RET, 3),
    ]
    constants = [nd.array(np.arange(4, dtype="float32")), nd.array(np.array([7], "int64"))]
    vm = machine(code, [function("main", [], 4, *load)], constants, device, guarded(1))
    copies = counts(device).copies, counts(guarded(1)).copies
    for _ in range(3):
        first, second, host, again = vm.run()
        assert first.memory_range() == again.memory_range()
    assert (counts(device).copies, counts(guarded(1)).copies) == copies
    assert [one.device for one in (first, second, host)] == [device, guarded(1), cpu()]
    np.testing.assert_array_equal(first.numpy(), np.arange(4))
    np.testing.assert_array_equal(second.numpy(), np.arange(4))
    assert host.numpy() == [7]


def test_conditions_and_shapes_on_a_device(device: Device, code: Code) -> None:
    """What the machine itself has to read is brought to the host: conditions, and shapes of new tensors."""
    dtype = pack_dtype(FLOAT)
    choose = function(
        "main",
        [
            VMParameter("flag", DataType("bool"), (), FIRST),
            VMParameter("shape", DataType("int64"), (2,), FIRST),
        ],
        6,
        one(Opcode.LOAD_CONSTI, 2, 1),
        one(Opcode.IF, 0, 2, 5, 7),
        one(Opcode.RET, 0),
        one(Opcode.ALLOC_STORAGE_ON, 3, 1, 0, dtype, *FIRST),
        one(Opcode.ALLOC_TENSOR_REG, 4, 3, 0, dtype, 1),
        one(Opcode.RESHAPE_TENSOR, 5, 4, 1),
        one(Opcode.RET, 5),
    )
    vm = machine(code, [choose], [], device)
    made = vm.run(np.array(False), np.array([2, 5], "int64"))
    assert made.shape == (2, 5) and made.device == device
    assert vm.run(np.array(True), np.array([2, 5], "int64")).shape == ()
    with pytest.raises(ValueError, match="would be negative: -1"):
        vm.run(np.array(False), np.array([2, -1], "int64"))


def test_refused(device: Device, code: Code) -> None:
    """A device that the machine was not given, or that has no driver, is an error when the machine is made."""
    with pytest.raises(
        ValueError, match="uses device 0 of the kind guarded, and the machine was not given it"
    ):
        machine(code, [main_function()], [], cpu())
    only_copy = function(
        "main", [VMParameter("x")], 2, one(Opcode.DEVICE_COPY, 1, 0, *HOST, *SECOND), one(Opcode.RET, 1)
    )
    with pytest.raises(ValueError, match="uses device 1 of the kind guarded"):
        machine(code, [only_copy], [], device)
    with pytest.raises(RuntimeError, match=r"metal\(0\) cannot be used: this runtime has no driver"):
        machine(code, [main_function()], [], device, Device(8))
    constant = function("main", [], 1, one(Opcode.LOAD_CONST_ON, 0, 0, *SECOND), one(Opcode.RET, 0))
    with pytest.raises(ValueError, match="uses device 1"):
        machine(code, [constant], [nd.array(np.zeros(1, "float32"))], device)


def test_out_of_memory(device: Device, code: Code) -> None:
    """A program that asks for too much fails; memory that waits in the pool is given up before it does."""

    def allocates(count: int, name: str) -> VMFunction:
        return function(name, [], 2, new_tensor(0, 1, FIRST, count), one(Opcode.RET, 0))

    vm = machine(
        code, [allocates(1000, "small"), allocates(5000, "large"), allocates(9000, "huge")], [], device
    )
    set_memory(device, counts(device).num_bytes + 24_576)
    try:
        for _ in range(3):
            vm.invoke("small")
            with pytest.raises(MemoryError, match=r"guarded\(0\) has no memory for"):
                vm.invoke("huge")
            assert vm.invoke("large").shape == (5000,)
    finally:
        set_memory(device, 0)


def test_several_threads(device: Device, code: Code) -> None:
    """One machine may run in several threads at once."""
    vm = machine(code, [main_function()], [], device)
    main = vm._function("main")
    wrong: list[Any] = []

    def work(number: int) -> None:
        for turn in range(20):
            values = np.full(4, number * 100 + turn, "float32")
            if not np.array_equal(main(nd.array(values)).numpy(), values + 3):
                wrong.append((number, turn))

    in_threads(work, range(6))
    assert wrong == []


def test_listing_and_bytes(device: Device, code: Code) -> None:
    """Devices are part of what is written and shown."""
    program = VMProgram([main_function()], [VMKernel("add_one", ""), VMKernel("add_one_on_host", "")])
    again = VMProgram.from_bytes(program.to_bytes())
    assert again.functions == program.functions and again.functions[0].parameters[0].device == FIRST
    text = Executable.from_program(again, Kernels(code)).bytecode
    assert "alloc_storage_on $7, -, 16, float32, 12, 0" in text
