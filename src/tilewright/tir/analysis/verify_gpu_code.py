"""Checks whether the kernels of a function respect the limits of a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.ir.expr import IntImm, IterVar, Load, PrimExpr, Var
from tilewright.support.errors import ExpressionError
from tilewright.support.recursion import recursion_room
from tilewright.tir.analysis.statement_visitor import StatementVisitor
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Allocate, AttrStmt, For, ForKind, Store

LIMITS = (
    "max_local_memory_per_block",
    "max_shared_memory_per_block",
    "max_threads_per_block",
    "max_thread_x",
    "max_thread_y",
    "max_thread_z",
    "max_vthread",
    "max_vector_bytes",
    "max_kernels",
)


class _Kernels(StatementVisitor):
    """Adds up what each kernel uses; a kernel is an outermost region bound to threads."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        super().__init__()
        self.limits = limits
        self.errors: list[str] = []
        self.kernels = 0
        self.depth = 0
        self.extents: dict[str, int] = {}
        self.virtual_threads = 1
        self.memory = {"local": 0, "shared": 0}

    def check(self, limit: str, used: int, what: str) -> None:
        """Note an excess."""
        allowed = self.limits.get(limit)
        if allowed is not None and used > allowed:
            self.errors.append(f"{what} is {used}, more than {limit} = {allowed}")

    def visit_attr_stmt(self, node: AttrStmt) -> None:
        if node.attr_key in ("thread_extent", "virtual_thread") and isinstance(node.node, IterVar):
            self.enter(node.node, node.value, node)
        else:
            self.visit_default(node)

    def visit_for(self, node: For) -> None:
        if node.kind == ForKind.THREAD_BINDING and node.thread_binding is not None:
            self.enter(node.thread_binding, node.extent, node)
        else:
            self.visit_default(node)

    def enter(self, axis: IterVar, extent: PrimExpr, node: AttrStmt | For) -> None:
        """A region bound to one thread axis."""
        if self.depth == 0:
            self.kernels += 1
            self.extents, self.virtual_threads = {}, 1
            self.memory = {"local": 0, "shared": 0}
        self.bind(axis, extent)
        self.depth += 1
        self.visit_default(node)
        self.depth -= 1
        if self.depth == 0:
            self.finish()

    def bind(self, axis: IterVar, extent: PrimExpr) -> None:
        """Note the extent of a thread axis."""
        tag = axis.thread_tag
        if not isinstance(extent, IntImm):
            if not tag.startswith("blockIdx"):
                self.errors.append(f"the extent of {tag} is {extent}, it must be a constant")
            return
        if tag.startswith(("vthread", "cthread")):
            self.virtual_threads *= extent.value
        elif tag.startswith("threadIdx"):
            known = self.extents.setdefault(tag, extent.value)
            if known != extent.value:
                self.errors.append(f"{tag} has the extents {known} and {extent.value} in one kernel")

    def finish(self) -> None:
        """Compare a whole kernel with the limits."""
        threads = self.virtual_threads
        for tag, extent in self.extents.items():
            threads *= extent
            self.check(f"max_thread_{tag[-1]}", extent, f"the extent of {tag}")
        self.check("max_threads_per_block", threads, "the number of threads of a block")
        self.check("max_vthread", self.virtual_threads, "the number of virtual threads")
        self.check("max_local_memory_per_block", self.memory["local"], "the local memory of a block in bytes")
        self.check(
            "max_shared_memory_per_block", self.memory["shared"], "the shared memory of a block in bytes"
        )

    def visit_allocate(self, node: Allocate) -> None:
        scope = node.buffer_var.storage_scope.partition(".")[0]
        size = node.constant_size()
        if scope in self.memory and size is not None:
            self.memory[scope] += size * node.dtype.itemsize * node.dtype.lanes
        self.check(
            "max_vector_bytes",
            node.dtype.itemsize * node.dtype.lanes,
            f"the vector size of {node.buffer_var}",
        )
        self.visit_default(node)

    def access(self, variable: Var, value_type: Any) -> None:
        """Check the width of one access to memory."""
        width = value_type.itemsize * value_type.lanes
        if value_type.lanes > 1:
            self.check("max_vector_bytes", width, f"the width in bytes of an access to {variable}")

    def visit_load(self, node: Load) -> None:
        self.access(node.buffer_var, node.dtype)
        self.visit_default(node)

    def visit_store(self, node: Store) -> None:
        self.access(node.buffer_var, node.value.dtype)
        self.visit_default(node)


def gpu_code_errors(func: PrimFunc, constraints: Mapping[str, Any]) -> list[str]:
    """The violations of the limits, one line each."""
    unknown = [name for name in constraints if name not in LIMITS]
    if unknown:
        raise ExpressionError(
            f"{', '.join(unknown)} is not a limit of GPU code; the limits are {', '.join(LIMITS)}"
        )
    kernels = _Kernels({name: int(value) for name, value in constraints.items()})
    with recursion_room():
        kernels.visit(func.body)
    kernels.check("max_kernels", kernels.kernels, "the number of kernels")
    return kernels.errors


def verify_gpu_code(func: PrimFunc, constraints: Mapping[str, Any]) -> bool:
    """True if every kernel of the function keeps within the limits; see ``LIMITS``."""
    return not gpu_code_errors(func, constraints)
