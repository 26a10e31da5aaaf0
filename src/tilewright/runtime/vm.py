"""The virtual machine of the C runtime: programs with control flow, recursion, data types and unknown shapes.

An ``Executable`` is a compiled program: bytecode and constants, and the library of its kernels, which imports it so
that both travel in one exported file. A ``VirtualMachine`` runs it.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_void_p
from typing import Any

import numpy as np

from tilewright.runtime import interrupt as _interrupt
from tilewright.runtime.benchmark import BenchmarkResult, in_groups, time_evaluator
from tilewright.runtime.call_log import CallLog
from tilewright.runtime.container import ADT, Reference, tuple_object
from tilewright.runtime.device import Device
from tilewright.runtime.failure import check, failure, keep_exception
from tilewright.runtime.foreign import ForeignMachine, ForeignModule
from tilewright.runtime.library import LIBRARY, QUICK, DLDevice
from tilewright.runtime.loading import register_module_loader
from tilewright.runtime.module import Module
from tilewright.runtime.ndarray import NDArray, array
from tilewright.runtime.packed_func import PackedFunc, convert_to_tvm_func
from tilewright.runtime.program_executor import ProgramExecutor
from tilewright.runtime.reference import HoldsReference
from tilewright.runtime.session import Executor, Session
from tilewright.runtime.vm_program import Opcode, VMProgram, instruction_text
from tilewright.support import html

__all__ = ["ADT", "Executable", "Reference", "VirtualMachine", "convert"]

TYPE_KEY = "VMExecutable"
_FIND_TYPE = ctypes.CFUNCTYPE(c_void_p, c_void_p, ctypes.c_char_p)
_PLAIN_DTYPES: dict[type, str] = {bool: "bool", int: "int32", float: "float32"}

assert _interrupt  # imported so that runs can be interrupted


def convert(args: Sequence[Any]) -> list[Any]:
    """Arguments as the machine takes them: arrays and numbers as tensors, lists and tuples as tuples."""
    return [_converted(argument) for argument in args]


def _converted(value: Any) -> Any:
    if isinstance(value, NDArray) and value.read_only:
        return value.copyto(value.device)  # a program may hand its argument back, to be written
    if isinstance(value, (NDArray, ADT, Reference, PackedFunc)) or callable(value):
        return value
    if isinstance(value, (tuple, list)):
        return tuple_object(convert(value))
    plain = _PLAIN_DTYPES.get(type(value))
    if plain is not None:
        return array(np.asarray(value, plain))
    if isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__dlpack__"):
        return array(value)
    raise failure("TypeError", f"a value of type {type(value).__name__} cannot be given to a program")


class VMModule(Module):
    """A program as a module, which the library of its kernels imports."""

    def __init__(self, program: VMProgram) -> None:
        super().__init__(TYPE_KEY, [function.name for function in program.functions])
        self.program = program
        self._importer: weakref.ref[Module] | None = None

    def imported_by(self, module: Module) -> None:
        """The kernels are in the module that imports this one; see ``GraphExecutorFactory.imported_by``."""
        self._importer = weakref.ref(module)

    def _executor_maker(self, name: str | None) -> Callable[[Device], Executor] | None:
        library = None if self._importer is None else self._importer()
        if name not in (None, "default") or library is None:
            return None
        executable = Executable(library, self.program)
        machines: dict[Device, VirtualMachine] = {}

        def make(device: Device) -> Executor:
            # One machine serves all threads.
            machine = machines.get(device) or machines.setdefault(device, VirtualMachine(executable, device))
            return ProgramExecutor(self.program, machine.call)

        return make

    def _find(self, name: str) -> PackedFunc | None:
        return None

    def _why_not_runnable(self) -> str | None:
        return "a program is run by a virtual machine: make one with runtime.vm.VirtualMachine"

    def save_to_bytes(self) -> bytes:
        """The program with its constants."""
        return self.program.to_bytes()

    @staticmethod
    def load_from_bytes(type_key: str, content: bytes) -> VMModule:
        """The reverse."""
        return VMModule(VMProgram.from_bytes(content))


register_module_loader(TYPE_KEY, VMModule.load_from_bytes)


def _program_of(module: Module) -> VMProgram:
    for one in (module, *module.imported_modules):
        if isinstance(one, VMModule):
            return one.program
    raise failure("ValueError", f"the {module.type_key} module has no program of the virtual machine in it")


class Executable:
    """A compiled program."""

    def __init__(self, mod: Module, program: VMProgram | None = None) -> None:
        """``mod`` is the library of kernels, which imports the program: what was compiled, or was loaded from a file.
        ``program`` takes the place of the one that it imports."""
        self.mod = mod
        self._program = _program_of(mod) if program is None else program

    @classmethod
    def from_program(cls, program: VMProgram, lib: Module) -> Executable:
        """A program whose kernels are in a library."""
        lib.import_module(VMModule(program))
        return cls(lib)

    @property
    def program(self) -> VMProgram:
        """The functions, the names of the kernels, and the constants."""
        return self._program

    @property
    def module(self) -> Module:
        """The library of kernels, with the program."""
        return self.mod

    @property
    def lib(self) -> Module:
        """The library of kernels."""
        return self.mod

    def session(self, device: Device | None = None, output_names: Sequence[str] | None = None) -> Session:
        """The program, to be called with named inputs from any number of threads; see ``Module.session``."""
        return self.mod.session(device, output_names=output_names)

    def save(self) -> tuple[bytearray, Module]:
        """The program as bytes, and the library of its kernels, to be exported beside them."""
        return bytearray(self._program.to_bytes()), self.mod

    @staticmethod
    def load_exec(bytecode: bytes | bytearray, lib: Module | None) -> Executable:
        """A program from its bytes and the library of its kernels."""
        if not isinstance(bytecode, (bytes, bytearray)):
            raise TypeError(f"a program is loaded from bytes, not from {type(bytecode).__name__}")
        if lib is not None and not isinstance(lib, Module):
            raise TypeError(f"the kernels of a program are in a module, not in {type(lib).__name__}")
        program = VMProgram.from_bytes(bytes(bytecode))
        if lib is None:
            lib = VMModule(program)
        elif not any(isinstance(one, VMModule) for one in lib.imported_modules):
            lib.import_module(VMModule(program))
        return Executable(lib, program)

    def export_library(self, file_name: str, *args: Any, **kwargs: Any) -> None:
        """Write kernels and program into one file; see ``Module.export_library``."""
        self.mod.export_library(file_name, *args, **kwargs)

    # ---- looking at it ----

    @property
    def globals(self) -> list[str]:
        """The names of the functions."""
        return [function.name for function in self._program.functions]

    @property
    def primitive_ops(self) -> list[str]:
        """The names of the kernels, without the prefix of the model."""
        return [kernel.name.removeprefix("tvmgen_default_") for kernel in self._program.kernels]

    @property
    def constants(self) -> str:
        """A list of the constants."""
        return "".join(
            f"VM Const[{number}]: {constant.dtype}{list(constant.shape)}\n"
            for number, constant in enumerate(self._program.constants)
        )

    @property
    def bytecode(self) -> str:
        """A listing of the functions."""
        lines: list[str] = []
        for function in self._program.functions:
            names = ", ".join(parameter.name for parameter in function.parameters)
            lines.append(f"@{function.name}({names}): {function.num_registers} registers")
            lines += [instruction_text(self._program, at, one) for at, one in function.instructions()]
        return "\n".join(lines) + "\n"

    @property
    def stats(self) -> str:
        """What the program consists of, in a few lines."""
        program = self._program
        counts = Counter(one.opcode for function in program.functions for _, one in function.instructions())
        kinds = ", ".join(f"{opcode.name.lower()} {counts[opcode]}" for opcode in Opcode if counts[opcode])
        shapes = [list(constant.shape) for constant in program.constants]
        return (
            "Virtual machine executable\n"
            f"  Constants (#{len(shapes)}): {shapes}\n"
            f"  Globals (#{len(program.functions)}): {self.globals}\n"
            f"  Primitive ops (#{len(program.kernels)}): {self.primitive_ops}\n"
            f"  Instructions (#{sum(counts.values())}): {kinds}\n"
        )

    def _repr_html_(self) -> str:
        """What the program consists of for a notebook."""
        program = self._program
        constants = sum(int(one.numpy().nbytes) for one in program.constants)
        rows = [
            (f"@{function.name}", ", ".join(parameter.name for parameter in function.parameters))
            for function in program.functions
        ]
        kernels = html.table(["kernel"], [[kernel.name] for kernel in program.kernels])
        return html.fragment(
            "Executable",
            html.facts([*rows, ("constants", f"{len(program.constants)}, {constants:,} bytes")]),
            html.folded(f"{len(program.kernels)} kernels", kernels),
            html.folded("bytecode", html.program(self.bytecode)),
            subtitle="a program of the virtual machine",
        )

    def get_function_params(self, func_name: str) -> list[str]:
        """The names of a function's parameters."""
        return [parameter.name for parameter in self._program.function(func_name).parameters]

    def get_function_arity(self, func_name: str) -> int:
        """The number of a function's parameters."""
        return len(self._program.function(func_name).parameters)


class _Machine(HoldsReference):
    """Owns one reference to a machine of the C runtime."""

    def __init__(
        self,
        program: VMProgram,
        library: Module,
        keeps_memory: bool,
        devices: Sequence[Device],
        log: CallLog | None,
    ) -> None:
        def find(context: int, name: bytes) -> int | None:
            try:
                text = name.decode()
                if not library.implements_function(text, query_imports=True):
                    return None
                function = library.get_function(text, query_imports=True)
                if log is not None:
                    return log.watch(function, text)
            except BaseException as error:  # noqa: BLE001 - it continues after the C code
                keep_exception(error)
                return None
            QUICK.tilewright_object_retain(function.handle)
            return function.handle

        self.address = 0
        content = program.to_bytes(with_constants=False)
        constants = (c_void_p * max(1, len(program.constants)))(*[one._handle for one in program.constants])
        places = (DLDevice * max(1, len(devices)))(*[device.described for device in devices])
        handle = c_void_p()
        check(
            LIBRARY.tilewright_vm_create_on(
                content,
                len(content),
                constants,
                len(program.constants),
                _FIND_TYPE(find),
                None,
                int(keeps_memory),
                places,
                len(devices),
                ctypes.byref(handle),
            )
        )
        self.address = handle.value or 0

    def __del__(self) -> None:
        if self.address and QUICK is not None:
            QUICK.tilewright_vm_release(self.address)


class VirtualMachine:
    """Runs the functions of a program. Several threads may use one machine."""

    NAIVE_ALLOCATOR = 1
    POOLED_ALLOCATOR = 2

    def __init__(
        self,
        exe: Executable | Module,
        device: Device | Sequence[Device],
        memory_cfg: str | Mapping[Any, str | int] | None = None,
        *,
        log: CallLog | None = None,
    ) -> None:
        """``device`` are all devices that the program uses; the host is always one of them. ``memory_cfg`` is "pooled",
        the default, which keeps freed memory for the next tensors, or "naive". ``log`` logs every call of a kernel."""
        if not isinstance(exe, (Executable, Module)):
            raise TypeError(f"a virtual machine runs an Executable, not {type(exe).__name__}")
        devices = [device] if isinstance(device, Device) else list(device)
        self._functions: dict[str, PackedFunc] = {}
        self._inputs: dict[str, list[Any]] = {}
        self._outputs: Any = None
        self._foreign: ForeignMachine | None = None
        if isinstance(exe, ForeignModule):
            self._foreign = exe.virtual_machine(devices, _keeps_memory(memory_cfg))
            return
        self._exec = exe if isinstance(exe, Executable) else Executable(exe)
        program = self._exec.program
        self._machine = _Machine(program, self._exec.mod, _keeps_memory(memory_cfg), devices, log)

    def _repr_html_(self) -> str:
        """Its program for a notebook."""
        return "" if self._foreign is not None else self._exec._repr_html_()

    def set_limits(self, most_frames: int = 1 << 20, most_instructions: int = 0, most_bytes: int = 0) -> None:
        """Limit the call depth, the instructions of one run, and the bytes of all tensors that
        programs make (0: any number)."""
        LIBRARY.tilewright_vm_set_limits(self._machine.address, most_frames, most_instructions, most_bytes)

    def _function(self, name: str) -> PackedFunc:
        if self._foreign is not None:
            return self._foreign.function(name)
        found = self._functions.get(name)
        if found is None:
            self._exec.program.function(name)
            index = LIBRARY.tilewright_vm_function_index(self._machine.address, name.encode())
            handle = c_void_p()
            check(LIBRARY.tilewright_vm_function(self._machine.address, index, ctypes.byref(handle)))
            found = self._functions[name] = PackedFunc.from_handle(handle.value or 0, name)
        return found

    def _arguments(self, func_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The arguments in the order of the parameters."""
        if not kwargs:
            return self._converted(args)
        names = self._parameters(func_name)
        given: dict[int, Any] = {}
        for name, value in kwargs.items():
            if name not in names:
                raise failure(
                    "ValueError", f"@{func_name} has no parameter {name!r}; it has {', '.join(names)}"
                )
            given[names.index(name)] = value
        rest = iter(args)
        values = []
        for place, name in enumerate(names):
            if place in given:
                values.append(given[place])
                continue
            try:
                values.append(next(rest))
            except StopIteration:
                raise failure("ValueError", f"@{func_name} gets no value for {name!r}") from None
        left = len(list(rest))
        if left:
            raise failure("ValueError", f"@{func_name} gets {left} arguments more than it has parameters")
        return self._converted(values)

    def _parameters(self, func_name: str) -> list[str]:
        if self._foreign is not None:
            return self._foreign.parameters(func_name)
        return self._exec.get_function_params(func_name)

    def _converted(self, args: Sequence[Any]) -> list[Any]:
        return convert(args) if self._foreign is None else self._foreign.convert(args)

    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Keep arguments for the next ``invoke`` of a function without arguments."""
        self._inputs[func_name] = self._arguments(func_name, args, kwargs)

    def invoke(self, func_name: str, *args: Any, **kwargs: Any) -> Any:
        """The result of a function."""
        if args or kwargs:
            self.set_input(func_name, *args, **kwargs)
        elif func_name not in self._inputs:
            self._inputs[func_name] = []
        return self._function(func_name)(*self._inputs[func_name])

    def call(self, func_name: str, *args: Any) -> Any:
        """The result of a function, which several threads may call at once: no arguments are kept."""
        return self._function(func_name)(*self._converted(args))

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """The result of ``main``."""
        return self.invoke("main", *args, **kwargs)

    def invoke_stateful(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Run a function; ``get_outputs`` gives its result."""
        self._outputs = self.invoke(func_name, *args, **kwargs)

    def get_outputs(self) -> list[NDArray]:
        """The tensors that the last ``invoke_stateful`` returned."""
        if self._outputs is None:
            raise failure(
                "RuntimeError", "invoke_stateful was not called yet; invoke and run return their results"
            )
        return [self._outputs] if isinstance(self._outputs, NDArray) else list(self._outputs)

    def get_num_outputs(self) -> int:
        """How many there are."""
        return len(self.get_outputs())

    def get_input_index(self, input_name: str, func_name: str = "main") -> int:
        """The position of a parameter; -1 for an unknown name."""
        names = self._parameters(func_name)
        return names.index(input_name) if input_name in names else -1

    def benchmark(
        self,
        device: Device,
        *args: Any,
        func_name: str = "main",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: int | None = None,
        end_to_end: bool = False,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        **kwargs: Any,
    ) -> BenchmarkResult:
        """Measure a function; ``end_to_end`` takes in the conversion of the arguments."""
        least = 0 if min_repeat_ms is None else min_repeat_ms
        return in_groups(
            self._measurement(device, args, kwargs, func_name, number, least, end_to_end),
            repeat,
            cooldown_interval_ms,
            repeats_to_cooldown,
            limit_zero_time_iterations,
        )

    def _measurement(
        self,
        device: Device,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        func_name: str,
        number: int,
        least: int,
        end_to_end: bool,
    ) -> Callable[[int], BenchmarkResult]:
        """What measures a function a number of times."""
        if end_to_end:

            def whole() -> None:
                self.invoke(func_name, *args, **kwargs)

            return lambda repeat: time_evaluator(convert_to_tvm_func(whole), number, repeat, least)()
        arguments = self._arguments(func_name, args, kwargs)
        foreign = self._foreign
        if foreign is not None:
            return lambda repeat: foreign.benchmark(func_name, arguments, device, number, repeat, least)
        function = self._function(func_name)
        return lambda repeat: time_evaluator(function, number, repeat, least, device=device)(*arguments)


def _keeps_memory(memory_cfg: str | Mapping[Any, str | int] | None) -> bool:
    names = {VirtualMachine.NAIVE_ALLOCATOR: "naive", VirtualMachine.POOLED_ALLOCATOR: "pooled"}
    given = [memory_cfg] if isinstance(memory_cfg, str) else list((memory_cfg or {}).values())
    chosen = [names.get(one, one) if isinstance(one, int) else one for one in given]
    for one in chosen:
        if one not in names.values():
            raise failure("ValueError", f"memory_cfg is 'naive' or 'pooled', not {one!r}")
    return "naive" not in chosen
