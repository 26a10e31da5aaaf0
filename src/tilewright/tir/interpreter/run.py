"""Calling a loop-level function on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import PrimExpr, Var
from tilewright.ir.module import IRModule
from tilewright.runtime.registry import get_global_func
from tilewright.support.dtype import DataType
from tilewright.support.errors import TilewrightError
from tilewright.support.recursion import recursion_room
from tilewright.tir.function import PrimFunc
from tilewright.tir.interpreter import intrinsics
from tilewright.tir.interpreter.expressions import Frame
from tilewright.tir.interpreter.memory import Memory, Pointer, View, compact_strides
from tilewright.tir.interpreter.threads import ThreadCompiler
from tilewright.tir.interpreter.values import constant, storage_type

Functions = Mapping[str, Callable[..., Any]]


def interpret(
    func: PrimFunc, *args: Any, functions: Functions | None = None, module: IRModule | None = None
) -> Any:
    """Run a function; arrays among the arguments are written in place, as compiled code would.

    Tensor arguments are NumPy arrays, or anything that NumPy can view without a copy; bfloat16 ones hold
    their bits as uint16. A function that the program calls by name is looked up in ``functions``, then in
    ``module``, then among the registered ones. The result is what the program returns with ``tir.ret``, or
    None.
    """
    if len(args) != len(func.params):
        names = ", ".join(variable.name for variable in func.params)
        raise TilewrightError(
            f"the function takes {len(func.params)} arguments ({names}), {len(args)} were given"
        )
    with recursion_room(), np.errstate(all="ignore"):
        return _Program(func, functions or {}, module)(args)


class _Program:
    """A function made ready to run."""

    def __init__(self, func: PrimFunc, functions: Functions, module: IRModule | None) -> None:
        self.func = func
        self.functions = functions
        self.module = module
        self.compiler = ThreadCompiler(self.lookup)

    def __call__(self, args: tuple[Any, ...]) -> Any:
        frame: Frame = [None] * 64
        for variable, argument in zip(self.func.params, args, strict=True):
            if variable not in self.func.buffer_map:
                self._put(frame, self.compiler.define(variable), _scalar(variable, argument))
        promises: list[tuple[PrimExpr, int, str]] = []
        for variable, argument in zip(self.func.params, args, strict=True):
            buffer = self.func.buffer_map.get(variable)
            if buffer is not None:
                promises.extend(self._bind_buffer(frame, variable, buffer, argument))
        self._keep(frame, promises)
        body = self.compiler.visit(self.func.body)
        frame.extend([None] * (self.compiler.frame_size - len(frame)))
        try:
            body(frame)
        except intrinsics.Returned as returned:
            return returned.value
        return None

    def _put(self, frame: Frame, slot: int, value: Any) -> None:
        if slot >= len(frame):
            frame.extend([None] * (slot + 64 - len(frame)))
        frame[slot] = value

    def _keep(self, frame: Frame, promises: list[tuple[PrimExpr, int, str]]) -> None:
        """Bind the variables of shapes, strides and offsets; then whatever else they say must be true."""
        bound: set[Var] = set()
        # A variable may be bound by a later argument than the one whose shape is computed from it.
        for expected, value, what in sorted(promises, key=lambda promise: not isinstance(promise[0], Var)):
            check = self.compiler.bind_or_check(expected, what, bound)
            frame.extend([None] * (self.compiler.frame_size - len(frame)))
            check(frame, value)

    def _bind_buffer(
        self, frame: Frame, variable: Var, buffer: Buffer, argument: Any
    ) -> list[tuple[PrimExpr, int, str]]:
        """Give the buffer the argument's memory; what its shape, strides and offset must then be."""
        array = _as_array(argument, buffer)
        lanes = buffer.dtype.lanes
        shape, strides = list(array.shape), [stride // array.itemsize for stride in array.strides]
        if lanes > 1:
            if not shape or shape[-1] != lanes or strides[-1] != 1:
                raise TilewrightError(
                    f"argument {buffer.name} must end in a dimension of {lanes} lanes, it has {array.shape}"
                )
            shape, strides = shape[:-1], [stride // lanes for stride in strides[:-1]]
        if len(shape) != len(buffer.shape):
            raise TilewrightError(
                f"argument {buffer.name} must have {len(buffer.shape)} dimensions, the array has {len(shape)}"
            )
        flat, start = _flat_memory(array)
        pointer = Pointer(Memory(buffer.name, flat))
        self._put(frame, self.compiler.define(variable), pointer)
        self._put(frame, self.compiler.define(buffer.data), pointer)
        whose = f"of argument {buffer.name}"
        promises = [
            (expected, actual, f"dimension {position} {whose}")
            for position, (expected, actual) in enumerate(zip(buffer.shape, shape, strict=True))
        ]
        if isinstance(buffer.elem_offset, Var):
            promises.append((buffer.elem_offset, start // lanes, f"the offset {whose}"))
        elif start:
            raise TilewrightError(
                f"argument {buffer.name} is a view with negative strides; the function takes none"
            )
        if buffer.buffer_type == "auto_broadcast":
            strides = [0 if extent == 1 else stride for extent, stride in zip(shape, strides, strict=True)]
        if buffer.strides:
            for position, (expected, actual) in enumerate(zip(buffer.strides, strides, strict=True)):
                promises.append((expected, actual, f"stride {position} {whose}"))
        else:
            for extent, stride, wanted in zip(shape, strides, compact_strides(shape), strict=True):
                if extent > 1 and stride != wanted and 0 not in shape:
                    raise TilewrightError(
                        f"argument {buffer.name} must be compact, the array has strides {strides}"
                    )
            strides = compact_strides(shape)
        checked = buffer.buffer_type != "auto_broadcast"
        offset = start // lanes
        view = View(
            buffer.name, pointer, buffer.dtype, offset, [0] * len(shape), shape, strides, checked=checked
        )
        self._put(frame, self.compiler.define_view(buffer), view)
        return promises

    def lookup(self, name: str) -> Callable[..., Any]:
        """The function that the program calls by this name."""
        if name in self.functions:
            return self.functions[name]
        if self.module is not None and name in self.module:
            callee = self.module[name]
            return lambda *args: interpret(callee, *args, functions=self.functions, module=self.module)
        registered = get_global_func(name, allow_missing=True)
        if registered is None:
            raise TilewrightError(f"the program calls {name}, which is not registered")
        return registered


def _scalar(variable: Var, argument: Any) -> Any:
    """A scalar argument in its parameter's type; a handle without a buffer takes an array's memory."""
    if not variable.dtype.is_handle:
        if not isinstance(argument, (bool, int, float, np.generic)):
            raise TilewrightError(
                f"argument {variable.name} must be a number of type {variable.dtype}, not {argument!r}"
            )
        if variable.dtype.is_integral and isinstance(argument, (float, np.floating)):
            raise TilewrightError(
                f"argument {variable.name} must be an integer of type {variable.dtype}, not {argument!r}"
            )
        return constant(variable.dtype, argument)
    if isinstance(argument, np.ndarray):
        flat, start = _flat_memory(argument)
        return Pointer(Memory(variable.name, flat), start * argument.itemsize)
    return argument


def _as_array(argument: Any, buffer: Buffer) -> np.ndarray[Any, Any]:
    """A tensor argument as a NumPy array over the same memory, of the type in which the buffer is stored."""
    if isinstance(argument, Pointer):
        return _array_of_pointer(argument, buffer)
    array = argument if isinstance(argument, np.ndarray) else _viewed(argument, buffer)
    wanted = storage_type(buffer.dtype)
    if array.dtype == wanted:
        return array
    if str(array.dtype) == str(buffer.dtype.element) or (buffer.dtype.is_bool and array.dtype.itemsize == 1):
        return array.view(wanted)
    raise TilewrightError(
        f"argument {buffer.name} must hold {buffer.dtype.element}, the array holds {array.dtype}"
    )


def _viewed(argument: Any, buffer: Buffer) -> np.ndarray[Any, Any]:
    try:
        return np.from_dlpack(argument)
    except (AttributeError, TypeError) as error:
        raise TilewrightError(
            f"argument {buffer.name} must be an array, not {type(argument).__name__}: {error}"
        ) from None


def _array_of_pointer(pointer: Pointer, buffer: Buffer) -> np.ndarray[Any, Any]:
    """The memory that another function passed, in the buffer's constant shape."""
    cells = pointer.cells[DataType(buffer.dtype.element)]
    shape = []
    for extent in buffer.shape:
        value = getattr(extent, "value", None)
        if not isinstance(value, int):
            raise TilewrightError(f"buffer {buffer.name} gets a pointer, so that its shape must be constant")
        shape.append(value)
    count = int(np.prod(shape, dtype=np.int64))
    return cells.array[cells.start : cells.start + count].reshape(shape)


def _flat_memory(array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], int]:
    """All bytes between the lowest and the highest element, and how many elements the first is above the lowest."""
    if array.size == 0:
        return np.empty(0, np.uint8), 0
    size = array.itemsize
    array = np.atleast_1d(array)
    steps = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True)]
    if any(step % size for step in steps):
        raise TilewrightError(
            f"an array with strides {array.strides} bytes cannot be seen as elements of {size} bytes"
        )
    below = -sum(step for step in steps if step < 0)
    above = sum(step for step in steps if step > 0)
    lowest = array[tuple(slice(-1, None) if stride < 0 else slice(0, 1) for stride in array.strides)].reshape(
        1
    )
    span = (below + above) // size + 1
    flat = np.lib.stride_tricks.as_strided(lowest, (span,), (size,))
    return flat.view(np.uint8), below // size
