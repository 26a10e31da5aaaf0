"""The kernels of a program: one for each distinct primitive function, and shape functions where shapes are computed."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.ir.structural import structural_equal
from tilewright.ir.structural_hash import structural_hash
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.analysis.symbolic_types import VIEW, has_constant_shape, tensor_types
from tilewright.relay.backend.external.symbols import external_symbol
from tilewright.relay.backend.graph import is_device_copy
from tilewright.relay.backend.shape_functions import ShapeInput, copied_shapes, shape_function
from tilewright.relay.backend.te_compiler import kernel_name, operator_names
from tilewright.relay.expr import Call, Var
from tilewright.relay.function import Function
from tilewright.runtime.vm_program import VMKernel


@dataclass(frozen=True)
class ShapeKernel:
    """The shape function of a kernel: its number, and what it reads."""

    number: int
    inputs: list[ShapeInput]


@dataclass(frozen=True)
class Kernel:
    """How a primitive function is run.

    A result of constant shape is made as its type says. For another, ``copied`` is the argument that has its shape;
    where there is none, the shape function writes it.
    """

    number: int
    """-1 where nothing is computed: the result is the first argument's memory, or a copy of it."""
    results: list[TensorType]
    copied: list[int | None]
    shape: ShapeKernel | None
    is_view: bool
    is_copy: bool


class Kernels:
    """All kernels so far. ``functions`` and ``shape_functions`` are what has to be compiled, by name; ``external`` what
    other code generators compile. ``devices`` has the kind of device of each of ``functions``."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.table: list[VMKernel] = []
        self.functions: dict[str, Function] = {}
        self.shape_functions: dict[str, Function] = {}
        self.external: dict[str, Function] = {}
        self.devices: dict[str, int] = {}
        self._known: dict[tuple[int, int], list[tuple[Function, Kernel]]] = {}

    def of(self, function: Function, device: int) -> Kernel:
        """The kernel of a primitive function; functions of one structure on one kind of device share it."""
        digest = (device, structural_hash(function))
        for known, kernel in self._known.get(digest, ()):
            if structural_equal(known, function):
                return kernel
        made = self._new(function, device)
        self._known.setdefault(digest, []).append((function, made))
        return made

    def _new(self, function: Function, device: int) -> Kernel:
        results = tensor_types(function.body.checked_type)
        label = " + ".join(operator_names(function)) or "copy"
        name = kernel_name(function, self.prefix)
        while name in self.functions or name in self.shape_functions:
            name = f"{name}_{len(self.table)}"
        copied: list[int | None] = [None] * len(results)
        shape = None
        if not all(has_constant_shape(one) for one in results):
            copied = copied_shapes(function)
            if any(
                place is None and not has_constant_shape(one)
                for place, one in zip(copied, results, strict=True)
            ):
                copied = [None] * len(results)
                shape = self._shape_kernel(function, name, label)
        if function.attrs.get("Compiler"):
            symbol = external_symbol(function)
            self.external[symbol] = function
            return Kernel(self._add(symbol, label), results, copied, shape, False, False)
        view, copy = is_view(function), is_device_copy(function)
        number = -1
        if not view and not copy:
            self.functions[name] = function
            self.devices[name] = device
            number = self._add(name, label)
        return Kernel(number, results, copied, shape, view, copy)

    def _shape_kernel(self, function: Function, name: str, label: str) -> ShapeKernel:
        made = shape_function(function)
        shape_name = f"shape_func_{name}"
        self.shape_functions[shape_name] = function
        return ShapeKernel(self._add(shape_name, f"the shape of {label}"), made.inputs)

    def _add(self, name: str, label: str) -> int:
        self.table.append(VMKernel(name, label))
        return len(self.table) - 1


def is_view(function: Function) -> bool:
    """True if a primitive function only gives its argument another shape."""
    body: RelayExpr = function.body
    if isinstance(body, Var):
        return False
    while isinstance(body, Call):
        if not isinstance(body.op, Op):
            return False
        if not body.op.get_attr("TNonComputational") and not function.attrs.get(VIEW):
            return False
        before, after = body.args[0].checked_type, body.checked_type
        if not isinstance(after, TensorType) or after.dtype != before.dtype:
            return False
        body = body.args[0]
    return isinstance(body, Var) and body is function.params[0]
