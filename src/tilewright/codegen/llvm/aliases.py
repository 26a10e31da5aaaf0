"""Alias analysis: which memory accesses cannot overlap.

Every distinct buffer gets its own alias scope. An access carries the scope of its buffer and the list of all other
scopes, so that LLVM keeps an accumulator in registers while other buffers are written. Buffers passed as arguments are
distinct if the function says so (``tir.noalias``); allocations always are. A pointer computed from another belongs to
the same buffer; one of unknown origin may alias any.
"""

from __future__ import annotations

from tilewright.codegen.llvm.writer import ModuleText
from tilewright.ir.expr import Call, IntImm, PrimExpr, StringImm, Var
from tilewright.ir.function import CallingConv
from tilewright.ir.functor import post_order
from tilewright.ir.op import CallEffectKind, Op
from tilewright.support.node import Node
from tilewright.tir.function import PrimFunc
from tilewright.tir.packed_abi import StructField
from tilewright.tir.stmt import Allocate, LetStmt, Store

_ADDRESS, _DATA = StructField.ADDRESS, StructField.DATA
_SHAPE, _STRIDES = StructField.SHAPE, StructField.STRIDES


class AliasScopes:
    """The scopes of one function's buffers."""

    def __init__(self, module: ModuleText, function: PrimFunc) -> None:
        self._module = module
        self._roots: dict[Var, Var] = {}
        self._suffixes: dict[Var, str] = {}
        self._scopes: dict[Var, str] = {}
        self._written: set[Var] = set()
        self._escaping: set[Var] = set()
        # Of a function that others of its module call, LLVM makes a part of the caller, for which the promise of an
        # invariant load would hold as well: there the memory may be written before and after.
        self._is_entry = "global_symbol" in function.attrs or int(function.attrs.get("calling_conv", 0)) != 0
        noalias = bool(function.attrs.get("tir.noalias", False))
        nodes = post_order(function.body)
        if noalias and int(function.attrs.get("calling_conv", 0)) != CallingConv.C_PACKED_FUNC:
            self._roots.update({param: param for param in function.params if param.dtype.is_handle})
        # Definitions come before uses in the order of nesting, which the reversed post order keeps.
        for found in reversed(nodes):
            if isinstance(found, Allocate):
                self._roots[found.buffer_var] = found.buffer_var
            elif isinstance(found, LetStmt) and found.var.dtype.is_handle:
                root = self._origin(found.var, found.value, noalias)
                if root is not None:
                    self._roots[found.var] = root
        self._collect_uses(nodes)

    def _origin(self, var: Var, value: PrimExpr, noalias: bool) -> Var | None:
        """The buffer that a pointer belongs to; the variable itself if it is the first to name the buffer."""
        bases: set[Var] = set()
        fresh = False
        stack: list[Node] = [value]
        while stack:
            part = stack.pop()
            if isinstance(part, Var):
                bases.update([self._roots[part]] if part in self._roots else [])
            elif isinstance(part, Call) and _is_struct_get(part) and not _is_const_field(part, _ADDRESS):
                # What a structure holds is separate memory from the structure.
                fresh = fresh or _names_fresh_memory(part, noalias)
            else:
                fresh = fresh or (isinstance(part, Call) and _names_fresh_memory(part, noalias))
                stack.extend(part.children())
        if bases:
            return bases.pop() if len(bases) == 1 and not fresh else None
        return var if fresh else None

    def _collect_uses(self, nodes: list[Node]) -> None:
        for found in nodes:
            if isinstance(found, Store):
                self._written.add(self._roots.get(found.buffer_var, found.buffer_var))
            elif isinstance(found, Call) and found.effect > CallEffectKind.ReadState:
                # A pointer that such a call sees may be written through.
                for part in post_order(found):
                    if isinstance(part, Var) and part.dtype.is_handle:
                        self._escaping.add(self._roots.get(part, part))

    def is_read_only(self, var: Var) -> bool:
        """True if nothing writes the buffer while the function runs, or could, callers of its code included."""
        root = self._roots.get(var)
        return (
            self._is_entry and root is not None and root not in self._written and root not in self._escaping
        )

    def suffix(self, var: Var) -> str:
        """The metadata for an access through a pointer variable."""
        found = self._suffixes.get(var)
        if found is None:
            found = self._suffixes[var] = self._make_suffix(var)
        return found

    def _make_suffix(self, var: Var) -> str:
        root = self._roots.get(var)
        if root is None:
            return ""
        if not self._scopes:
            domain = self._module.distinct_metadata()
            for other in dict.fromkeys(self._roots.values()):
                self._scopes[other] = self._module.distinct_metadata(domain)
        own = self._module.metadata(f"!{{{self._scopes[root]}}}")
        others = ", ".join(scope for other, scope in self._scopes.items() if other is not root)
        suffix = f", !alias.scope {own}"
        return f"{suffix}, !noalias {self._module.metadata(f'!{{{others}}}')}" if others else suffix


def _names_fresh_memory(call: Call, noalias: bool) -> bool:
    """True if the call gives a pointer to memory that no other variable names."""
    operator = call.op.name if isinstance(call.op, Op) else ""
    if operator == "tir.tvm_struct_get":
        is_data = _is_const_field(call, _DATA)
        return (is_data and noalias) or _is_const_field(call, _SHAPE) or _is_const_field(call, _STRIDES)
    if operator in ("tir.call_extern", "tir.call_pure_extern"):
        name = call.args[0]
        return isinstance(name, StringImm) and name.value == "tilewright_workspace_alloc"
    return operator == "tir.tvm_stack_alloca"


def _is_struct_get(call: Call) -> bool:
    return isinstance(call.op, Op) and call.op.name == "tir.tvm_struct_get"


def _is_const_field(call: Call, field: StructField) -> bool:
    kind = call.args[2]
    return isinstance(kind, IntImm) and kind.value == field
