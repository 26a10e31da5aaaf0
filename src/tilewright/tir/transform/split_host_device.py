"""Splits device code from host functions.

Each outermost statement that binds thread indices becomes a separate function, ``<name>_kernel<number>``, and the host
calls it by name with the values it uses and the extents of its thread indices: ``tvm_call_packed("add_kernel0", A, B,
n, extent of blockIdx.x, extent of threadIdx.x)``. The kernel's attribute ``tir.device_thread_axis`` lists the thread
indices in the order of those extents. If the kernel has dynamic shared memory, its size in bytes is the last argument,
and ``tir.device_use_dyn_shared_memory`` is set. ``tir.param_alignments`` has the bytes to which each pointer is known
to be aligned, 0 for other parameters and where nothing is known.

A kernel takes the promises about its launches from its host function: ``tir.min_blocks_per_multiprocessor``,
``tir.max_registers``, ``tir.cluster_dims`` and ``tir.overlapping_launch``; all but the last can also be attributes of
statements in it. The attributes ``tensor_map`` of pointers in
it become ``tir.tensor_maps``, from parameter to description (``tir.ptx.tensor_map``).

Invariant from here on: a function is host code or device code (``calling_conv`` says which), never both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from tilewright.ir import operators
from tilewright.ir.attrs import DictAttrs
from tilewright.ir.expr import Call, IntImm, IterVar, PrimExpr, StringImm, Var
from tilewright.ir.function import BaseFunc, CallingConv
from tilewright.ir.functor import free_vars
from tilewright.ir.module import IRModule
from tilewright.ir.transform import ModulePass, PassContext
from tilewright.support.errors import LoweringError
from tilewright.support.recursion import recursion_room
from tilewright.target.target import Target
from tilewright.tir.analysis.expr_deep_equal import expr_deep_equal
from tilewright.tir.arg_binder import DEVICE_ALIGNMENT
from tilewright.tir.function import PrimFunc
from tilewright.tir.ptx import CLUSTER, TENSOR_MAP
from tilewright.tir.stmt import Allocate, AttrStmt, Evaluate, Stmt
from tilewright.tir.transform.lib.device_region import enters_device
from tilewright.tir.transform.lib.scoped_rewriter import StmtVisitor
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator
from tilewright.tir.undefined import undefined_vars

MIN_BLOCKS: Final = "tir.min_blocks_per_multiprocessor"
MAX_REGISTERS: Final = "tir.max_registers"
OVERLAPS: Final = "tir.overlapping_launch"
TENSOR_MAPS: Final = "tir.tensor_maps"


class _Launch(StmtVisitor):
    """The launch parameters of a kernel: its thread indices with their extents, and its dynamic shared memory."""

    def __init__(self) -> None:
        super().__init__()
        self.axes: list[IterVar] = []
        self.extents: list[PrimExpr] = []
        self.dynamic_bytes: PrimExpr | None = None
        self.inside: set[Var] = set()
        self.tensor_maps: dict[Var, PrimExpr] = {}
        self.promises: dict[str, Any] = {}

    def visit_attr_stmt(self, node: AttrStmt) -> None:
        if node.attr_key == "thread_extent" and isinstance(node.node, IterVar):
            self._axis(node.node, node.value)
        elif node.attr_key in (MIN_BLOCKS, MAX_REGISTERS) and isinstance(node.value, IntImm):
            self.promises[node.attr_key] = int(node.value.value)
        elif node.attr_key == CLUSTER and isinstance(node.value, Call):
            self.promises[CLUSTER] = tuple(
                [int(one.value) for one in node.value.args if isinstance(one, IntImm)]
            )
        elif node.attr_key == TENSOR_MAP and isinstance(node.node, Var):
            self.tensor_maps[node.node] = node.value
        self.visit_default(node)

    def _axis(self, axis: IterVar, extent: PrimExpr) -> None:
        self.inside.add(axis.var)
        for known, known_extent in zip(self.axes, self.extents, strict=True):
            if known.thread_tag == axis.thread_tag:
                if not expr_deep_equal(known_extent, extent):
                    raise LoweringError(
                        f"{axis.thread_tag} has two extents in one kernel: {known_extent} and {extent}; "
                        "bind axes of one extent to it, or split them"
                    )
                return
        self.axes.append(axis)
        self.extents.append(extent)

    def visit_allocate(self, node: Allocate) -> None:
        if node.buffer_var.storage_scope == "shared.dyn":
            if self.dynamic_bytes is not None:
                raise LoweringError(
                    "a kernel has one dynamic shared allocation; run MergeDynamicSharedMemoryAllocations"
                )
            size: PrimExpr = operators.const(node.dtype.itemsize * node.dtype.lanes, "int64")
            for extent in node.extents:
                size = operators.multiply(size, operators.cast("int64", extent))
            self.dynamic_bytes = size
        self.visit_default(node)


@dataclass
class _Kernels:
    """The device functions that were cut out of one host function."""

    host_name: str
    target: Target
    promises: dict[str, Any] = field(default_factory=dict)
    made: dict[str, PrimFunc] = field(default_factory=dict)


class _Splitter(StmtMutator):
    def __init__(self, kernels: _Kernels) -> None:
        super().__init__()
        self.kernels = kernels
        self.alignments: dict[Var, int] = {}

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        if (
            node.attr_key == "storage_alignment"
            and isinstance(node.node, Var)
            and isinstance(node.value, IntImm)
        ):
            self.alignments[node.node] = node.value.value
        return self._cut(node) if enters_device(node) else node.map_children(self.visit)

    def visit_allocate(self, node: Allocate) -> Stmt:
        self.alignments[node.buffer_var] = DEVICE_ALIGNMENT
        return node.map_children(self.visit)

    def _cut(self, node: AttrStmt) -> Stmt:
        launch = _Launch()
        launch.visit(node)
        for axis, extent in zip(launch.axes, launch.extents, strict=True):
            if any(variable in launch.inside for variable in free_vars(extent)):
                raise LoweringError(
                    f"the extent of {axis.thread_tag} is {extent}, which is known only inside the kernel"
                )
        used = undefined_vars(node)
        # Pointers first: drivers lay arguments out by alignment.
        params = [variable for variable in used if variable.dtype.is_handle]
        params += [variable for variable in used if not variable.dtype.is_handle]
        name = f"{self.kernels.host_name}_kernel{len(self.kernels.made)}"
        attrs = {
            "global_symbol": name,
            "calling_conv": CallingConv.DEVICE_KERNEL_LAUNCH,
            "target": self.kernels.target,
            "tir.noalias": True,
            "tir.device_thread_axis": tuple(launch.axes),
            "tir.param_alignments": tuple([self.alignments.get(variable, 0) for variable in params]),
        }
        attrs.update({**self.kernels.promises, **launch.promises})
        if launch.tensor_maps:
            attrs[TENSOR_MAPS] = launch.tensor_maps
        arguments: list[PrimExpr] = [StringImm(name), *params, *launch.extents]
        if launch.dynamic_bytes is not None:
            attrs["tir.device_use_dyn_shared_memory"] = True
            arguments.append(launch.dynamic_bytes)
        self.kernels.made[name] = PrimFunc(params, node, attrs=DictAttrs(attrs), span=node.span)
        return Evaluate(operators.call("tvm_call_packed", "int32", arguments), node.span)


@dataclass(frozen=True)
class SplitHostDevice(ModulePass):
    """Turn each part of device code into a separate function."""

    name = "tir.SplitHostDevice"

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        made: dict[str, PrimFunc] = {}
        with recursion_room():
            changed = mod.map_functions(lambda variable, function: _split(variable.name_hint, function, made))
        if not made:
            return mod
        result = changed.copy()
        for name, kernel in made.items():
            result[name] = kernel
        return result


def _split(name: str, function: BaseFunc, made: dict[str, PrimFunc]) -> BaseFunc:
    if not isinstance(function, PrimFunc):
        return function
    if function.attrs.get("calling_conv", CallingConv.DEFAULT) == CallingConv.DEVICE_KERNEL_LAUNCH:
        return function
    target = function.attrs.get("target")
    if not isinstance(target, Target):
        raise LoweringError(f"{name} has no target; run BindTarget before SplitHostDevice")
    promises = {
        key: function.attrs[key]
        for key in (MIN_BLOCKS, MAX_REGISTERS, CLUSTER, OVERLAPS)
        if key in function.attrs
    }
    kernels = _Kernels(str(function.attrs.get("global_symbol", name)), target, promises)
    body = _Splitter(kernels).visit(function.body)
    made.update(kernels.made)
    return function.with_body(body)
