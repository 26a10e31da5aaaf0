"""Parallel loops: the body becomes a function that the runtime's thread pool calls.

The iterations are divided into equal contiguous ranges, one per task; with ``pragma_parallel_stride_pattern`` they are
dealt out round-robin instead. Captured values are passed in a structure on the stack. A task that fails returns
non-zero, the pool returns the first failure, and the function returns it. A parallel loop inside another runs serially
within its task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.codegen.llvm import matrix_unit
from tilewright.codegen.llvm.runtime_calls import fail_unless_zero
from tilewright.codegen.llvm.writer import FunctionText, quote
from tilewright.ir.expr import IntImm, Var
from tilewright.ir.functor import post_order
from tilewright.support.node import Node
from tilewright.tir.stmt import AttrStmt, For

if TYPE_CHECKING:
    from tilewright.codegen.llvm.statements import StatementEmitter

_STRIDE_PATTERN = "pragma_parallel_stride_pattern"


def outline(emitter: StatementEmitter, node: For) -> None:
    """Emit a parallel loop."""
    captured = _captured(emitter, node)
    types, function = emitter.types, emitter.function
    kinds = [types.register(var.dtype) for var in captured]
    closure_type = f"{{ {', '.join([types.index, types.index, *kinds])} }}"
    begin, extent = emitter.visit_index(node.min), emitter.visit_index(node.extent)
    closure = function.alloca(closure_type, 64)
    values = [(types.index, begin), (types.index, extent)]
    values += [(kind, emitter.variable(var)) for kind, var in zip(kinds, captured, strict=True)]
    for position, (kind, operand) in enumerate(values):
        slot = function.value(f"getelementptr inbounds {closure_type}, ptr {closure}, i32 0, i32 {position}")
        function.effect(f"store {kind} {operand}, ptr {slot}")
    name = emitter.module.text.unique(f"{emitter.context.name}.parallel")
    _emit_body(emitter, node, name, closure_type, captured)
    arguments = [("ptr", f"@{quote(name)}"), ("ptr", closure), ("i32", _negated(emitter, extent))]
    fail_unless_zero(emitter, emitter.call_c("tilewright_parallel_launch", "i32", arguments))


def _negated(emitter: StatementEmitter, extent: str) -> str:
    """The number of iterations, at most what 31 bits hold, as the pool wants it: negative, to choose the tasks itself.
    A loop without iterations gets one task, which finds nothing to do."""
    index, function = emitter.types.index, emitter.function
    for bound, test in ((1, "slt"), (0x7FFFFFFF, "sgt")):
        beyond = function.value(f"icmp {test} {index} {extent}, {bound}")
        extent = function.value(f"select i1 {beyond}, {index} {bound}, {index} {extent}")
    narrow = extent if index == "i32" else function.value(f"trunc {index} {extent} to i32")
    return function.value(f"sub i32 0, {narrow}")


def _captured(emitter: StatementEmitter, node: For) -> list[Var]:
    """The variables of the surroundings that the body uses."""
    found: list[Node] = post_order(node.body)
    return [
        var for var in found if isinstance(var, Var) and var is not node.loop_var and var in emitter.variables
    ]


def _emit_body(
    emitter: StatementEmitter, node: For, name: str, closure_type: str, captured: list[Var]
) -> None:
    """The function that runs one task's share of the iterations."""
    parameters = [("i32", "%task"), ("i32", "%tasks"), ("ptr", "%closure")]
    text = FunctionText(name, "i32", parameters, "internal", emitter.function.attributes)
    inner = emitter.child(text)
    inner.in_parallel = True
    index = emitter.types.index
    loaded = []
    kinds = [index, index, *(emitter.types.register(var.dtype) for var in captured)]
    for position, kind in enumerate(kinds):
        slot = text.value(f"getelementptr inbounds {closure_type}, ptr %closure, i32 0, i32 {position}")
        loaded.append(text.value(f"load {kind}, ptr {slot}"))
    first, extent = loaded[:2]
    for var, operand in zip(captured, loaded[2:], strict=True):
        inner.define(var, operand)
    tiles, emitter.context.tiles = emitter.context.tiles, None
    if tiles is not None:
        matrix_unit.configure(inner, tiles)
    task, tasks = "%task", "%tasks"
    if index != "i32":
        task, tasks = text.value(f"zext i32 %task to {index}"), text.value(f"zext i32 %tasks to {index}")
    if _is_dealt(node):
        begin = text.value(f"add nsw {index} {first}, {task}")
        end = text.value(f"add nsw {index} {first}, {extent}")
        inner.loop(node.loop_var, begin, end, tasks, node)
    else:
        share = text.value(f"sdiv {index} {extent}, {tasks}")
        rest = text.value(f"srem {index} {extent}, {tasks}")
        lesser = text.value(f"icmp slt {index} {task}, {rest}")
        extra = text.value(f"select i1 {lesser}, {index} {task}, {index} {rest}")
        start = text.value(f"add nsw {index} {text.value(f'mul nsw {index} {task}, {share}')}, {extra}")
        begin = text.value(f"add nsw {index} {first}, {start}")
        own = text.value(f"add nsw {index} {share}, {text.value(f'zext i1 {lesser} to {index}')}")
        end = text.value(f"add nsw {index} {begin}, {own}")
        inner.loop(node.loop_var, begin, end, "1", node)
    if tiles is not None:
        matrix_unit.release(inner)
    if inner.streaming:
        inner.store_fence()
    text.effect("ret i32 0")
    emitter.module.text.functions.append(text.text())


def _is_dealt(node: For) -> bool:
    """True if the schedule requests iterations to be dealt out in turn."""
    annotation = node.annotations.get(_STRIDE_PATTERN)
    if annotation is not None:
        return not (isinstance(annotation, IntImm) and annotation.value == 0)
    body = node.body
    while isinstance(body, AttrStmt):
        if body.attr_key == _STRIDE_PATTERN:
            return True
        body = body.body
    return False
