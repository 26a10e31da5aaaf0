"""Kernels for a machine without a runtime: plain C functions that allocate nothing and report errors by a number.

A kernel's parameters become pointers; one more is scratch memory, from which every buffer too large for the stack is
taken. Parallel loops run in order. Where an assertion fails the kernel returns -1, without a message.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tilewright.compile import lower
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import IntImm, Var
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.transform import Sequential
from tilewright.ir.type import PointerType, PrimType
from tilewright.relay.backend.graph import GraphNode
from tilewright.support.arena import ALIGNMENT, rounded
from tilewright.support.errors import LoweringError, ModelError
from tilewright.support.recursion import recursion_room
from tilewright.target import Target
from tilewright.tir.arg_binder import CPU, required_alignment
from tilewright.tir.function import PrimFunc
from tilewright.tir.packed_abi import address_of
from tilewright.tir.stmt import Allocate, AssertStmt, AttrStmt, Evaluate, IfThenElse, LetStmt, Stmt, stmt_seq
from tilewright.tir.transform.bind_target import BindTarget
from tilewright.tir.transform.convert_for_loops_to_serial import ConvertForLoopsToSerial
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator
from tilewright.tir.transform.lower_tvm_builtin import fits_stack
from tilewright.tir.transform.make_unpacked_api import MakeUnpackedAPI
from tilewright.tir.transform.verify_memory import VerifyMemory

FAILED = -1
"""What a kernel returns where one of its assertions fails."""

KernelSource = IRModule | PrimFunc | Iterable[IRModule | PrimFunc]


@dataclass(frozen=True)
class Kernel:
    """A kernel in plain form, and what its callers must know."""

    function: PrimFunc
    parameters: tuple[Buffer, ...]
    scratch: int
    """Bytes of scratch memory; without any, the function has no parameter for it."""

    def alignment(self, position: int) -> int:
        """Bytes to which an argument must be aligned."""
        return required_alignment(self.parameters[position], CPU)

    def check_call(self, node: GraphNode, tensors: list[TensorType]) -> None:
        """An error unless the kernel takes tensors of these shapes and types."""
        what = f"the graph's node {node.name!r} calls {node.kernel}"
        if len(tensors) != len(self.parameters):
            raise ModelError(f"{what} with {len(tensors)} tensors; the kernel takes {len(self.parameters)}")
        for position, (tensor, buffer) in enumerate(zip(tensors, self.parameters, strict=True)):
            if self.alignment(position) > ALIGNMENT:
                raise ModelError(
                    f"{what}, whose {buffer.name} must be aligned to {self.alignment(position)} bytes; "
                    f"memory that is planned ahead is aligned to {ALIGNMENT}"
                )
            shape = tuple(extent.value for extent in buffer.shape if isinstance(extent, IntImm))
            if len(shape) != len(buffer.shape):
                raise ModelError(
                    f"{what}, whose {buffer.name} has the shape {list(buffer.shape)}: not constant"
                )
            given = tensor.concrete_shape
            same = math.prod(given) == math.prod(shape) if node.is_flat else given == shape
            if not same or buffer.dtype != tensor.dtype:
                raise ModelError(
                    f"{what} with {tensor.dtype} of shape {list(given)} as argument {position}; "
                    f"the kernel takes {buffer.dtype} of shape {list(shape)}"
                )


def plain_kernels(source: KernelSource, target: Target) -> dict[str, Kernel]:
    """The kernels of a lowered module, of functions, or of several of both, by name."""
    functions = _collect(source)
    buffers = {name: _parameters(name, function) for name, function in functions.items()}
    module = IRModule(
        {name: function.with_attr("global_symbol", name) for name, function in functions.items()}
    )
    passes = [BindTarget(target), VerifyMemory(), ConvertForLoopsToSerial(), MakeUnpackedAPI()]
    made = Sequential(passes, name="plain_kernels")(module)
    kernels = {}
    for variable, function in made.functions.items():
        assert isinstance(function, PrimFunc)
        name = variable.name_hint
        with recursion_room():
            plain, scratch = take_scratch(function, name)
            plain = plain.with_body(_PlainErrors().visit(plain.body))
        kernels[name] = Kernel(plain, buffers[name], scratch)
    return kernels


def _collect(source: KernelSource) -> dict[str, PrimFunc]:
    parts = [source] if isinstance(source, (IRModule, PrimFunc)) else list(source)
    functions: dict[str, PrimFunc] = {}
    for part in parts:
        if isinstance(part, PrimFunc):
            name = part.attrs.get("global_symbol")
            if name is None:
                raise LoweringError(
                    "a kernel given as a function needs the attribute global_symbol: its name"
                )
            part = lower(part, name=str(name))
        if not isinstance(part, IRModule):
            raise LoweringError(f"kernels are modules and functions, not {type(part).__name__}")
        for variable, function in part.functions.items():
            if not isinstance(function, PrimFunc):
                raise LoweringError(f"{variable.name_hint} is not a loop-level function")
            if variable.name_hint in functions:
                raise LoweringError(f"there are two kernels called {variable.name_hint}")
            functions[variable.name_hint] = function
    return functions


def _parameters(name: str, function: PrimFunc) -> tuple[Buffer, ...]:
    buffers = [function.buffer_map.get(param) for param in function.params]
    known = tuple(buffer for buffer in buffers if buffer is not None)
    if len(known) != len(buffers):
        raise LoweringError(
            f"the kernel {name} has parameters that are not tensors; a graph passes only tensors"
        )
    return known


class _TakeScratch(StmtMutator):
    """Gives large buffers their places in the scratch memory: nested ones side by side, later ones over earlier."""

    def __init__(self, name: str, memory: Var) -> None:
        super().__init__()
        self.name = name
        self.memory = memory
        self.used = self.most = 0

    def visit_allocate(self, node: Allocate) -> Stmt:
        count = node.constant_size()
        if count is None:
            raise LoweringError(
                f"the kernel {self.name} allocates {node.buffer_var.name}, whose size is not constant: "
                "ahead of time, all memory is planned"
            )
        size = count * node.dtype.itemsize * node.dtype.lanes
        if fits_stack(node):
            return node.map_children(self.visit)
        offset = self.used
        self.used += rounded(size)
        self.most = max(self.most, self.used)
        body: Stmt = self.visit(node.body)
        self.used = offset
        aligned = AttrStmt(node.buffer_var, "storage_alignment", ALIGNMENT, body)
        return LetStmt(node.buffer_var, address_of(self.memory, "uint8", offset), aligned, node.span)


def take_scratch(function: PrimFunc, name: str) -> tuple[PrimFunc, int]:
    """The function with large buffers taken from one more parameter, and the bytes that it must have."""
    memory = Var("scratch", PointerType(PrimType("uint8")))
    taker = _TakeScratch(name, memory)
    body = taker.visit(function.body)
    if taker.most == 0:
        return function, 0
    return function.replace(params=(*function.params, memory), body=body), taker.most


class _PlainErrors(StmtMutator):
    """Assertions return a number: there is no way to report a message."""

    def visit_assert_stmt(self, node: AssertStmt) -> Stmt:
        leave = Evaluate(operators.call("ret", "int32", [operators.const(FAILED, "int32")]))
        guard = IfThenElse(operators.logical_not(node.condition), leave)
        return stmt_seq(guard, self.visit(node.body))


def find_kernel(kernels: Mapping[str, Kernel], node: GraphNode) -> Kernel:
    """The kernel that a node calls."""
    found = kernels.get(str(node.kernel))
    if found is None:
        known = ", ".join(sorted(kernels))
        raise ModelError(f"the graph's node {node.name!r} calls {node.kernel}; the kernels are {known}")
    return found
