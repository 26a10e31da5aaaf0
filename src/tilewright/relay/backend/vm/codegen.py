"""From functions in A-normal form to instructions.

Functions within functions become functions of the program: the variables around them are their first parameters, and a
closure is the function with values for these. A function that is called by its name is called directly, also by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.ir.adt import Constructor
from tilewright.ir.base import RelayExpr
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.relay.adt import Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from tilewright.relay.analysis import free_vars
from tilewright.relay.analysis.symbolic_types import has_constant_shape
from tilewright.relay.backend.vm.assembler import Assembler, Label
from tilewright.relay.backend.vm.kernels import Kernel, Kernels
from tilewright.relay.backend.vm.overwriting import overwriting_calls
from tilewright.relay.dimension_names import all_dimension_names
from tilewright.relay.expr import (
    Call,
    Constant,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from tilewright.relay.function import Function
from tilewright.relay.output_names import flat_types, output_names, unnamed_output
from tilewright.runtime import ndarray
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.vm_program import Opcode, VMFunction, VMParameter, VMProgram, pack_dtype
from tilewright.support.errors import LoweringError

_CPU = 1


@dataclass(eq=False)
class _Task:
    """A function to compile: ``captured`` variables come before the parameters; ``own`` is the name by which it calls
    itself."""

    number: int
    name: str
    captured: list[Var]
    params: Sequence[Var]
    body: RelayExpr
    own: Var | None = None


class ProgramBuilder:
    """Compiles the functions of a module, whose operators are in primitive functions."""

    def __init__(
        self,
        module: IRModule,
        prefix: str,
        device_of: Callable[[RelayExpr], int],
        in_place: Mapping[str, str] | None = None,
    ) -> None:
        self.module = module
        self.device_of = device_of
        main = module["main"]
        assert isinstance(main, Function)
        self.overwriting = overwriting_calls(main, device_of, in_place or {})
        """The calls of kernels whose result takes the memory of an argument, with the argument's place."""
        self.kernels = Kernels(prefix)
        self.constants: list[NDArray] = []
        self.texts: list[str] = []
        self._constant_numbers: dict[int, int] = {}
        self._numbers: dict[str, int] = {}
        self._constructors: dict[Constructor, int] = {}
        self._tasks: list[_Task] = []
        self._functions: dict[int, VMFunction] = {}

    def build(self) -> VMProgram:
        """The program: all functions that ``main`` reaches, ``main`` first."""
        self.function(self.module.get_global_var("main"))
        done = 0
        while done < len(self._tasks):
            task = self._tasks[done]
            self._functions[task.number] = _FunctionBuilder(self, task).build()
            done += 1
        functions = [self._functions[number] for number in range(len(self._functions))]
        main = self.module["main"]
        assert isinstance(main, Function)
        names = all_dimension_names(main)
        return VMProgram(functions, self.kernels.table, self.constants, self.texts, self.outputs(), names)

    def outputs(self) -> list[VMParameter]:
        """The results of ``main``, if all of them are tensors."""
        main = self.module["main"]
        assert isinstance(main, Function)
        kinds = [] if main.ret_type is None else flat_types(main.ret_type)
        tensors = [one for one in kinds if isinstance(one, TensorType)]
        if len(tensors) != len(kinds):
            return []
        names = output_names(main, len(tensors)) or [unnamed_output(place) for place in range(len(tensors))]
        return [VMParameter(name, one.dtype, _extents(one)) for name, one in zip(names, tensors, strict=True)]

    def function(self, variable: GlobalVar) -> int:
        """The number of a function of the module."""
        found = self._numbers.get(variable.name_hint)
        if found is not None:
            return found
        function = self.module[variable.name_hint]
        if not isinstance(function, Function):
            raise LoweringError(f"@{variable.name_hint} is not a graph-level function", span=variable.span)
        if function.attrs.get("Compiler"):
            raise LoweringError(
                f"@{variable.name_hint} is for the code generator {function.attrs['Compiler']!r}, which the virtual "
                "machine has no way to call",
                span=function.span,
            )
        return self.add(variable.name_hint, [], function)

    def add(self, name: str, captured: list[Var], function: Function, own: Var | None = None) -> int:
        """One more function to compile; returns its number."""
        number = len(self._tasks)
        unique = name
        while unique in self._numbers or (captured and unique in self.module):
            unique = f"{name}_{number}"
            name = unique
        self._numbers[unique] = number
        self._tasks.append(_Task(number, unique, captured, function.params, function.body, own))
        return number

    def constructor(self, constructor: Constructor) -> int:
        """The number of a function that calls a constructor."""
        if constructor not in self._constructors:
            # Without types: a constructor takes values wherever they are.
            params = [Var(f"x{place}") for place in range(len(constructor.inputs))]
            made = Function(params, Call(constructor, params))
            self._constructors[constructor] = self.add(constructor.name_hint, [], made)
        return self._constructors[constructor]

    def constant(self, value: NDArray) -> int:
        """The number of a constant."""
        known = self._constant_numbers.get(id(value))
        if known is None:
            known = self._constant_numbers[id(value)] = len(self.constants)
            self.constants.append(value)
        return known

    def text(self, value: str) -> int:
        """The number of a text."""
        if value not in self.texts:
            self.texts.append(value)
        return self.texts.index(value)


def _extents(kind: TensorType) -> tuple[int | None, ...]:
    return tuple([getattr(extent, "value", None) for extent in kind.shape])


@dataclass(frozen=True)
class _Known:
    """A function whose code is known where it is called, and the registers of the variables that it captured."""

    number: int
    captured: tuple[int, ...]


@dataclass(eq=False)
class _FunctionBuilder:
    """One function. Registers of variables are in ``places``; ``parts`` are the fields of tuples made here."""

    program: ProgramBuilder
    task: _Task
    code: Assembler = field(init=False)
    places: dict[Var, int] = field(default_factory=dict)
    parts: dict[int, tuple[int, ...]] = field(default_factory=dict)
    known: dict[Var, _Known] = field(default_factory=dict)
    constants: dict[int, int] = field(default_factory=dict)
    """The registers of constants, each with its kind of device."""

    def build(self) -> VMFunction:
        """The words of the function."""
        task = self.task
        variables = [*task.captured, *task.params]
        self.code = Assembler(len(variables))
        self.places = {variable: place for place, variable in enumerate(variables)}
        if task.own is not None:
            self.known[task.own] = _Known(task.number, tuple(range(len(task.captured))))
        self.tail(task.body)
        words, registers = self.code.finish()
        return VMFunction(task.name, tuple([self.parameter(one) for one in variables]), registers, words)

    def parameter(self, variable: Var) -> VMParameter:
        """How an argument is passed: a tensor is copied to the device on which the program needs it."""
        kind = getattr(variable, "_checked_type_", None) or variable.type_annotation
        if not isinstance(kind, TensorType):
            return VMParameter(variable.name_hint)
        device = self.program.device_of(variable)
        return VMParameter(
            variable.name_hint, kind.dtype, _extents(kind), None if device == _CPU else (device, 0)
        )

    # Blocks

    def tail(self, expr: RelayExpr) -> None:
        """Code that returns the value of an expression."""
        last = self.bindings(expr)
        if isinstance(last, If):
            self.conditional(last, None)
        elif isinstance(last, Match):
            self.match(last, None)
        else:
            value = self.value(last)
            self.code.emit(Opcode.RET, self.owned(value) if self.task.name == "main" else value)

    def block(self, expr: RelayExpr) -> int:
        """The register of an expression's value."""
        return self.value(self.bindings(expr))

    def bindings(self, expr: RelayExpr) -> RelayExpr:
        """Compute the values of a chain of lets; returns what stands at its end, or what the name at its end stands
        for: a call there is a tail call."""
        while isinstance(expr, Let):
            if isinstance(expr.value, Function) and not expr.value.is_primitive:
                self.places[expr.var] = self.closure(expr.value, expr.var)
            elif expr.body is expr.var:
                expr = expr.value
                continue
            else:
                self.places[expr.var] = self.block(expr.value)
            expr = expr.body
        return expr

    def owned(self, register: int) -> int:
        """A value that the caller may write to: constants of the program are copied."""
        if register in self.constants:
            return self.copy(register, self.constants[register], self.constants[register])
        fields = self.parts.get(register)
        if fields is None:
            return register
        copies = tuple([self.owned(one) for one in fields])
        return register if copies == fields else self.code.value(Opcode.ALLOC_DATA, 0, copies)

    # Expressions

    def value(self, expr: Any) -> int:
        """The register of the value of an expression other than a let."""
        handler = _HANDLERS.get(type(expr))
        if handler is None:
            raise LoweringError(
                f"the virtual machine cannot compute {type(expr).__name__}", span=getattr(expr, "span", None)
            )
        register: int = handler(self, expr)
        return register

    def variable(self, var: Var) -> int:
        found = self.places.get(var)
        if found is not None:
            return found
        known = self.known.get(var)
        if known is None:
            raise LoweringError(f"variable {var.name_hint} has no value here", span=var.span)
        return self.code.value(Opcode.ALLOC_CLOSURE, known.number, known.captured)

    def constant(self, const: Constant) -> int:
        number, device = self.program.constant(const.data), self.program.device_of(const)
        if device == _CPU:
            made = self.code.value(Opcode.LOAD_CONST, number)
        else:
            made = self.code.value(Opcode.LOAD_CONST_ON, number, device, 0)
        self.constants[made] = device
        return made

    def copy(self, register: int, source: int, target: int) -> int:
        """A copy of a tensor, on the same or another device."""
        return self.code.value(Opcode.DEVICE_COPY, register, source, 0, target, 0)

    def global_function(self, variable: GlobalVar) -> int:
        return self.code.value(Opcode.ALLOC_CLOSURE, self.program.function(variable), ())

    def constructor(self, constructor: Constructor) -> int:
        return self.code.value(Opcode.ALLOC_CLOSURE, self.program.constructor(constructor), ())

    def function(self, function: Function) -> int:
        return self.closure(function, None)

    def closure(self, function: Function, own: Var | None) -> int:
        """A closure; calls by the name ``own`` need none."""
        captured = [variable for variable in free_vars(function) if variable is not own]
        registers = tuple([self.variable(variable) for variable in captured])
        name = f"{self.task.name}_{'closure' if own is None else own.name_hint}"
        number = self.program.add(name, captured, function, own)
        if own is not None:
            self.known[own] = _Known(number, registers)
        return self.code.value(Opcode.ALLOC_CLOSURE, number, registers)

    def tuple(self, tup: Tuple) -> int:
        return self.data(0, [self.value(one) for one in tup.fields])

    def data(self, tag: int, fields: Sequence[int]) -> int:
        made = self.code.value(Opcode.ALLOC_DATA, tag, tuple(fields))
        self.parts[made] = tuple(fields)
        return made

    def field(self, register: int, index: int) -> int:
        """A field of a tuple or of data."""
        if register in self.parts:
            return self.parts[register][index]
        return self.code.value(Opcode.GET_FIELD, register, index)

    def tuple_field(self, t: TupleGetItem) -> int:
        return self.field(self.value(t.tuple_value), t.index)

    def create_reference(self, r: RefCreate) -> int:
        return self.code.value(Opcode.ALLOC_REF, self.value(r.value))

    def read_reference(self, r: RefRead) -> int:
        return self.code.value(Opcode.REF_READ, self.value(r.ref))

    def write_reference(self, r: RefWrite) -> int:
        reference, value = self.value(r.ref), self.value(r.value)
        self.code.emit(Opcode.REF_WRITE, reference, value)
        return self.data(0, ())

    # Control

    def branch(self, expr: RelayExpr, result: int | None, end: Label) -> None:
        """One of several branches to a result: it returns if there is no register for the result."""
        if result is None:
            self.tail(expr)
            return
        self.code.emit(Opcode.MOVE, result, self.block(expr))
        self.code.emit(Opcode.GOTO, end)

    def if_expression(self, i: If) -> int:
        result = self.code.register()
        self.conditional(i, result)
        return result

    def conditional(self, i: If, result: int | None) -> None:
        yes, no, end = Label(), Label(), Label()
        test = self.value(i.cond)
        self.code.emit(Opcode.IF, test, self.code.value(Opcode.LOAD_CONSTI, 1), yes, no)
        self.code.place(yes)
        self.branch(i.true_branch, result, end)
        self.code.place(no)
        self.branch(i.false_branch, result, end)
        if result is not None:
            self.code.place(end)

    def match_expression(self, m: Match) -> int:
        result = self.code.register()
        self.match(m, result)
        return result

    def match(self, m: Match, result: int | None) -> None:
        """The clauses in order; where none fits, the program stops."""
        data, end = self.value(m.data), Label()
        for clause in m.clauses:
            otherwise = Label()
            can_fail = self.test(clause.lhs, data, otherwise)
            self.branch(clause.rhs, result, end)
            if not can_fail:
                break
            self.code.place(otherwise)
        else:
            place = f" ({m.span})" if m.span is not None else ""
            self.code.emit(Opcode.FATAL, self.program.text(f"no clause of a match fits the value{place}"))
        if result is not None:
            self.code.place(end)

    def test(self, pattern: Pattern, value: int, otherwise: Label) -> bool:
        """Jump where the value does not match; returns whether that can happen. Binds the pattern's variables."""
        can_fail = False
        if isinstance(pattern, PatternVar):
            self.places[pattern.var] = value
        elif isinstance(pattern, (PatternConstructor, PatternTuple)):
            if isinstance(pattern, PatternConstructor):
                can_fail, fits = True, Label()
                tag = self.code.value(Opcode.GET_TAG, value)
                wanted = self.code.value(Opcode.LOAD_CONSTI, pattern.constructor.tag)
                self.code.emit(Opcode.IF, tag, wanted, fits, otherwise)
                self.code.place(fits)
            for index, inner in enumerate(pattern.patterns):
                if not isinstance(inner, (PatternVar, PatternConstructor, PatternTuple)):
                    continue
                part = self.code.value(Opcode.GET_FIELD, value, index)
                can_fail = self.test(inner, part, otherwise) or can_fail
        return can_fail

    # Calls

    def call(self, call: Call) -> int:
        callee: Any = call.op
        if isinstance(callee, Op):
            raise LoweringError(f"operator {callee.name} is outside a primitive function", span=call.span)
        arguments = [self.value(argument) for argument in call.args]
        if isinstance(callee, Function) and callee.is_primitive:
            return self.run_kernel(call, callee, arguments)
        if isinstance(callee, Constructor):
            return self.code.value(Opcode.ALLOC_DATA, callee.tag, tuple(arguments))
        if isinstance(callee, GlobalVar):
            return self.code.value(Opcode.INVOKE, self.program.function(callee), tuple(arguments))
        if isinstance(callee, Var) and callee in self.known:
            known = self.known[callee]
            return self.code.value(Opcode.INVOKE, known.number, (*known.captured, *arguments))
        return self.code.value(Opcode.INVOKE_CLOSURE, self.value(callee), tuple(arguments))

    def run_kernel(self, call: Call, function: Function, arguments: Sequence[int]) -> int:
        device = self.program.device_of(call)
        kernel = self.program.kernels.of(function, device)
        inputs = [
            register
            for parameter, argument in zip(function.params, arguments, strict=True)
            for register in self.tensors(argument, parameter.checked_type)
        ]
        if kernel.is_copy:
            return self.copy(inputs[0], self.program.device_of(call.args[0]), device)
        overwritten = self.program.overwriting.get(call)
        if overwritten is not None:
            result = arguments[overwritten]
            self.code.emit(Opcode.INVOKE_PACKED, kernel.number, 1, (*inputs, result))
            return result
        shapes = self.result_shapes(kernel, inputs, device)
        if kernel.is_view:
            shape = shapes[0]
            if shape is None:
                extents = np.asarray(kernel.results[0].concrete_shape, "int64")
                shape = self.code.value(Opcode.LOAD_CONST, self.program.constant(ndarray.array(extents)))
            return self.code.value(Opcode.RESHAPE_TENSOR, inputs[0], shape)
        outputs = [
            self.new_tensor(kind, shape, device) for kind, shape in zip(kernel.results, shapes, strict=True)
        ]
        self.code.emit(Opcode.INVOKE_PACKED, kernel.number, len(outputs), (*inputs, *outputs))
        return self.packed(function.body.checked_type, iter(outputs))

    def tensors(self, register: int, kind: Type) -> list[int]:
        """The registers of the tensors of a value, tuples flattened."""
        if not isinstance(kind, TupleType):
            return [register]
        return [
            tensor
            for index, part in enumerate(kind.fields)
            for tensor in self.tensors(self.field(register, index), part)
        ]

    def packed(self, kind: Type, registers: Any) -> int:
        """Flattened tensors as a value of a type."""
        if isinstance(kind, TupleType):
            return self.data(0, [self.packed(part, registers) for part in kind.fields])
        register: int = next(registers)
        return register

    def result_shapes(self, kernel: Kernel, inputs: Sequence[int], device: int) -> list[int | None]:
        """For each result, the register of its shape; None where the shape is constant. Shapes are on the host."""
        vectors: dict[int, int] = {}

        def shape_of(position: int) -> int:
            if position not in vectors:
                vectors[position] = self.code.value(Opcode.SHAPE_OF, inputs[position])
            return vectors[position]

        if kernel.shape is None:
            return [None if place is None else shape_of(place) for place in kernel.copied]
        given = []
        for one in kernel.shape.inputs:
            if not one.is_data:
                given.append(shape_of(one.position))
            elif device == _CPU:
                given.append(inputs[one.position])
            else:
                given.append(self.copy(inputs[one.position], device, _CPU))
        shapes = [
            None
            if has_constant_shape(kind)
            else self.new_tensor(TensorType((len(kind.shape),), "int64"), None, _CPU)
            for kind in kernel.results
        ]
        written = [one for one in shapes if one is not None]
        self.code.emit(Opcode.INVOKE_PACKED, kernel.shape.number, len(written), (*given, *written))
        return shapes

    def new_tensor(self, kind: TensorType, shape: int | None, device: int) -> int:
        """A tensor with memory of its own."""
        dtype = pack_dtype(kind.dtype)
        if shape is not None:
            storage = self.new_storage(shape, 0, dtype, device)
            return self.code.value(Opcode.ALLOC_TENSOR_REG, storage, 0, dtype, shape)
        extents = kind.concrete_shape
        size = (kind.dtype.bits * kind.dtype.lanes + 7) // 8
        for extent in extents:
            size *= extent
        storage = self.new_storage(-1, size, dtype, device)
        return self.code.value(Opcode.ALLOC_TENSOR, storage, 0, dtype, extents)

    def new_storage(self, shape: int, size: int, dtype: int, device: int) -> int:
        """Memory for a tensor whose shape is in a register, or otherwise of this many bytes."""
        if device == _CPU:
            return self.code.value(Opcode.ALLOC_STORAGE, shape, size, dtype)
        return self.code.value(Opcode.ALLOC_STORAGE_ON, shape, size, dtype, device, 0)


_HANDLERS: dict[type, Any] = {
    Var: _FunctionBuilder.variable,
    Constant: _FunctionBuilder.constant,
    GlobalVar: _FunctionBuilder.global_function,
    Constructor: _FunctionBuilder.constructor,
    Function: _FunctionBuilder.function,
    Let: _FunctionBuilder.block,
    Tuple: _FunctionBuilder.tuple,
    TupleGetItem: _FunctionBuilder.tuple_field,
    RefCreate: _FunctionBuilder.create_reference,
    RefRead: _FunctionBuilder.read_reference,
    RefWrite: _FunctionBuilder.write_reference,
    If: _FunctionBuilder.if_expression,
    Match: _FunctionBuilder.match_expression,
    Call: _FunctionBuilder.call,
}
