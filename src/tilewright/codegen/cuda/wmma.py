"""Tensor cores: fragments of matrices, and the four calls on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir.expr import Call, StringImm, Var
from tilewright.support.errors import CodegenError
from tilewright.tir.stmt import Allocate, AttrStmt

if TYPE_CHECKING:
    from tilewright.codegen.cuda.kernel import CudaPrinter

_SPACE = "nvcuda::wmma"


class Fragments:
    """The fragments of one kernel; ``InferFragment`` has attached their shapes and layouts."""

    def __init__(self, printer: CudaPrinter) -> None:
        self.printer = printer
        self.shapes: dict[Var, str] = {}
        self.layouts: dict[Var, str] = {}

    def note(self, node: AttrStmt) -> None:
        """Remember what an attribute says about a fragment."""
        if isinstance(node.node, Var) and isinstance(node.value, StringImm):
            if node.attr_key == "fragment_shape":
                self.shapes[node.node] = node.value.value
            elif node.attr_key == "fragment_layout":
                self.layouts[node.node] = node.value.value

    def declaration(self, node: Allocate, name: str) -> str:
        """An array of fragments that holds the elements of an allocation."""
        self.printer.headers.add("mma.h")
        kind = node.buffer_var.storage_scope.partition(".")[2]
        shape = self.shapes.get(node.buffer_var)
        size = node.constant_size()
        if shape is None or size is None:
            raise CodegenError(
                f"the shape of fragment {node.buffer_var.name} is not known; run InferFragment"
            )
        m, n, k = (int(part) for part in shape.split(","))
        elements = {"matrix_a": m * k, "matrix_b": k * n, "accumulator": m * n}[kind]
        parts = [f"{_SPACE}::{kind}", shape, self.printer.type_name(node.dtype.element)]
        if kind != "accumulator":
            parts.append(f"{_SPACE}::{self.layouts.get(node.buffer_var, 'row_major')}")
        return f"{_SPACE}::fragment<{', '.join(parts)}> {name}[{max(size // elements, 1)}];"

    def _at(self, call: Call, position: int) -> str:
        return f"{self.printer.scalar(call.args[position])}[{self.printer.scalar(call.args[position + 1])}]"

    def _of(self, call: Call) -> str:
        return f"{self.printer.scalar(call.args[0])}[{self.printer.scalar(call.args[4])}]"

    def fill(self, call: Call) -> None:
        """One value in every element."""
        self.printer.line(f"{_SPACE}::fill_fragment({self._of(call)}, {self.printer.scalar(call.args[5])});")

    def load(self, call: Call) -> None:
        """Elements from memory."""
        pointer, stride = self.printer.scalar(call.args[5]), self.printer.scalar(call.args[6])
        self.printer.line(f"{_SPACE}::load_matrix_sync({self._of(call)}, {pointer}, {stride});")

    def store(self, call: Call) -> None:
        """Elements to memory."""
        pointer, stride = self.printer.scalar(call.args[5]), self.printer.scalar(call.args[6])
        layout = call.args[7].value if isinstance(call.args[7], StringImm) else "row_major"
        order = f"{_SPACE}::mem_{layout}"
        self.printer.line(f"{_SPACE}::store_matrix_sync({pointer}, {self._of(call)}, {stride}, {order});")

    def multiply(self, call: Call) -> None:
        """d = a * b + c."""
        parts = ", ".join(self._at(call, position) for position in (0, 2, 4, 6))
        self.printer.line(f"{_SPACE}::mma_sync({parts});")
