"""Which memory a statement may write."""

from __future__ import annotations

from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import BufferLoad, Call, IntImm, Load, Var
from tilewright.ir.functor import Visitor
from tilewright.ir.op import Op
from tilewright.support.node import Node
from tilewright.tir.stmt import AttrStmt, BufferStore, Store

_WRITE = 2
"""The bit of ``tvm_access_ptr``'s mask that says that memory is written."""


class _Written(Visitor):
    """A pointer counts as written unless every use of it is known to be a read."""

    once = True

    def __init__(self) -> None:
        super().__init__()
        self.found: set[Var] = set()

    def visit_var(self, node: Var) -> None:
        if node.dtype.is_handle:
            self.found.add(node)

    def visit_load(self, node: Load) -> None:
        self.visit(node.index)
        if node.predicate is not None:
            self.visit(node.predicate)

    def visit_buffer_load(self, node: BufferLoad) -> None:
        for index in node.indices:
            self.visit(index)

    def visit_buffer(self, node: Buffer) -> None:
        """A buffer that is named is not yet used."""

    def visit_store(self, node: Store) -> None:
        self.found.add(node.buffer_var)
        self.visit_default(node)

    def visit_buffer_store(self, node: BufferStore) -> None:
        self.found.add(node.buffer.data)
        self.visit_default(node)

    def visit_attr_stmt(self, node: AttrStmt) -> None:
        # What the attribute is attached to is named, not used.
        self.visit(node.value)
        self.visit(node.body)

    def visit_call(self, node: Call) -> None:
        name = node.op.name if isinstance(node.op, Op) else ""
        if name == "tir.tvm_access_ptr":
            _, pointer, offset, extent, mask = node.args
            if isinstance(pointer, Var) and not (isinstance(mask, IntImm) and not mask.value & _WRITE):
                self.found.add(pointer)
            self.visit(offset)
            self.visit(extent)
        elif name == "tir.address_of":
            # What happens through the pointer is not known.
            place = node.args[0]
            if isinstance(place, Load):
                self.found.add(place.buffer_var)
            self.visit_default(node)
        elif name == "tir.prefetch":
            self._visit_addresses_read(node)
        elif name == "tir.matrix_multiply_add":
            # The first matrix is the sum; the other two are only read.
            self.visit(node.args[1])
            self._visit_addresses_read(node, start=2)
        else:
            self.visit_default(node)

    def _visit_addresses_read(self, node: Call, start: int = 0) -> None:
        for argument in node.args[start:]:
            is_address = isinstance(argument, Call) and getattr(argument.op, "name", "") == "tir.address_of"
            for part in argument.args if is_address and isinstance(argument, Call) else (argument,):
                self.visit(part)


def written_pointers(root: Node) -> set[Var]:
    """The pointers that a program may write through, directly or by giving them to somebody else."""
    visitor = _Written()
    visitor.visit(root)
    return visitor.found
