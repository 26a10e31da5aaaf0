"""Rejects programs in which the host would access memory of a device.

A schedule for a GPU that leaves a stage without thread bindings gives such a program: its loops run on the host, on
pointers that are not valid there.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.expr import Load, Var
from tilewright.ir.function import CallingConv
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.target.target import Target
from tilewright.tir.analysis.statement_visitor import StatementVisitor
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Allocate, AttrStmt, For, LetStmt, Store
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.device_region import enters_device


@dataclass(frozen=True)
class Violation:
    """One access from the host to device memory: the variable, how, and the loops around it."""

    variable: str
    access: str
    loops: tuple[str, ...]

    def __str__(self) -> str:
        place = f" in loop {' > '.join(self.loops)}" if self.loops else ""
        return (
            f"Variable `{self.variable}` is directly {self.access} by host code{place}: it is not inside a thread "
            "environment. Did you forget to bind?"
        )


class _Finder(StatementVisitor):
    """Looks for accesses outside device code. Memory that the program allocates itself is left to later passes."""

    def __init__(self, device_memory: set[Var]) -> None:
        super().__init__()
        self.device_memory = device_memory
        self.loops: list[str] = []
        self.found: list[Violation] = []

    def visit_attr_stmt(self, node: AttrStmt) -> None:
        if not enters_device(node):
            self.visit_default(node)

    def visit_for(self, node: For) -> None:
        self.loops.append(node.loop_var.name)
        self.visit_default(node)
        self.loops.pop()

    def visit_let_stmt(self, node: LetStmt) -> None:
        # A pointer made from a device pointer is one too.
        if node.var.dtype.is_handle and isinstance(node.value, Var) and node.value in self.device_memory:
            self.device_memory.add(node.var)
        self.visit_default(node)

    def visit_allocate(self, node: Allocate) -> None:
        if node.buffer_var.storage_scope == "global":
            self.device_memory.add(node.buffer_var)
        self.visit_default(node)

    def visit_load(self, node: Load) -> None:
        self._check(node.buffer_var, "read")
        self.visit_default(node)

    def visit_store(self, node: Store) -> None:
        self._check(node.buffer_var, "written")
        self.visit_default(node)

    def _check(self, variable: Var, access: str) -> None:
        if variable in self.device_memory:
            violation = Violation(variable.name, access, tuple(self.loops))
            if violation not in self.found:
                self.found.append(violation)


def memory_violations(function: PrimFunc) -> list[Violation]:
    """Every access of the host to memory of the function's device."""
    target = function.attrs.get("target")
    if not isinstance(target, Target) or not target.kind.own_memory:
        return []
    if function.attrs.get("calling_conv", CallingConv.DEFAULT) != CallingConv.DEFAULT:
        return []
    memory = {param for param in function.params if param.dtype.is_handle}
    memory |= {buffer.data for buffer in function.buffer_map.values()}
    finder = _Finder(memory)
    finder.visit(function.body)
    return finder.found


@dataclass(frozen=True)
class VerifyMemory(PrimFuncPass):
    """Raise an error where host code accesses device memory; programs without such accesses stay as they are."""

    name = "tir.VerifyMemory"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        found = memory_violations(function)
        if found:
            name = function.attrs.get("global_symbol", "the function")
            listed = "\n".join(f"    {violation}" for violation in found)
            raise LoweringError(
                f"Memory verification failed for {name} on target {function.attrs['target'].kind.name}:\n{listed}",
                span=function.span,
            )
        return function
