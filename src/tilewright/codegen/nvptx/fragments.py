"""Fragments of matrices in the scopes ``wmma.*``, which tensor intrinsics of ``te`` use: ``wmma.load``, ``wmma.mma``
and ``wmma.store``. A warp holds a fragment in some registers of each thread; which element is where is the
hardware's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tilewright.codegen.llvm.calls import Handler
from tilewright.codegen.llvm.emitter import Emitter
from tilewright.codegen.nvptx.assembly import as_kernel, assembly, int32, places, require
from tilewright.ir.expr import Call, StringImm, Var
from tilewright.support.dtype import DataType
from tilewright.support.errors import CodegenError
from tilewright.tir.stmt import Allocate

_SHAPES: Final = ("16, 16, 16", "32, 8, 16", "8, 32, 16")
_LETTERS: Final = {"wmma.matrix_a": "a", "wmma.matrix_b": "b", "wmma.accumulator": "c"}
_TYPES: Final = {
    "float16": "f16",
    "bfloat16": "bf16",
    "int8": "s8",
    "uint8": "u8",
    "float32": "f32",
    "int32": "s32",
}
_SPACES: Final = {"ptr addrspace(1)": ".global", "ptr addrspace(3)": ".shared", "ptr": ""}


@dataclass(frozen=True)
class Fragment:
    """Fragments of one buffer: what they are part of, their shape ("m, n, k"), type and layout."""

    letter: str
    shape: str
    dtype: DataType
    layout: str

    @property
    def elements(self) -> int:
        """The elements of one fragment."""
        m, n, k = (int(part) for part in self.shape.split(","))
        return {"a": m * k, "b": k * n, "c": m * n}[self.letter]

    @property
    def registers(self) -> int:
        """The registers of each thread. Those of float16 matrices hold every element twice."""
        if self.letter != "c" and self.dtype == "float16":
            return 8
        return self.elements * self.dtype.bits // 32 // 32

    @property
    def kind(self) -> str:
        """LLVM's type of a register."""
        return "float" if self.dtype == "float32" else "i32"

    @property
    def name(self) -> str:
        """The shape in instructions."""
        return "m{}n{}k{}".format(*[part.strip() for part in self.shape.split(",")])


class Fragments:
    """The fragments of one kernel."""

    def __init__(self) -> None:
        self.shapes: dict[Var, str] = {}
        self.layouts: dict[Var, str] = {}
        self.known: dict[Var, Fragment] = {}

    def note(self, key: str, node: Any, value: Any) -> None:
        """Remember what an attribute says about a fragment."""
        if isinstance(node, Var) and isinstance(value, StringImm):
            if key == "fragment_shape":
                self.shapes[node] = value.value
            elif key == "fragment_layout":
                self.layouts[node] = value.value

    def allocate(self, node: Allocate) -> int:
        """Declare the fragments of an allocation; the registers that they take."""
        var, size = node.buffer_var, node.constant_size()
        shape = self.shapes.get(var)
        letter, dtype = _LETTERS.get(var.storage_scope), node.dtype.element
        if shape not in _SHAPES or letter is None or size is None or str(dtype) not in _TYPES:
            raise CodegenError(
                f"{var.name} is not a fragment that tensor cores have: shape {shape}, scope {var.storage_scope}, "
                f"{dtype}; shapes are {'; '.join(_SHAPES)}",
                span=node.span,
            )
        made = self.known[var] = Fragment(letter, shape, dtype, self.layouts.get(var, "row_major"))
        return max(size // made.elements, 1) * made.registers


def _registers(emitter: Emitter, node: Call, place: int, index: int) -> tuple[Fragment, list[str]]:
    """A fragment, and the addresses of its registers."""
    var = node.args[place]
    found = as_kernel(emitter).fragments.known.get(var) if isinstance(var, Var) else None
    if found is None or not isinstance(var, Var):
        raise CodegenError(f"{node.op.name}: {var} is not a fragment", span=node.span)
    function, start = emitter.function, emitter.index_as(node.args[index], "i32")
    first = function.value(f"mul i32 {start}, {found.registers}")
    addresses = []
    for register in range(found.registers):
        at = function.value(f"add i32 {first}, {register}")
        addresses.append(function.value(f"getelementptr inbounds i32, ptr {emitter.variable(var)}, i32 {at}"))
    return found, addresses


def _read(emitter: Emitter, fragment: Fragment, addresses: list[str]) -> list[tuple[str, str]]:
    return [
        (fragment.kind, emitter.function.value(f"load {fragment.kind}, ptr {address}, align 4"))
        for address in addresses
    ]


def _write(emitter: Emitter, fragment: Fragment, addresses: list[str], values: list[str]) -> None:
    for address, value in zip(addresses, values, strict=True):
        emitter.function.effect(f"store {fragment.kind} {value}, ptr {address}, align 4")


def fill(emitter: Emitter, node: Call) -> str:
    """One value in every element."""
    fragment, addresses = _registers(emitter, node, 0, 4)
    function, dtype = emitter.function, fragment.dtype
    value = emitter.visit(node.args[5])
    kind = emitter.types.register(dtype)
    if dtype.bits < 32:
        lanes = 32 // dtype.bits
        wide = emitter.broadcast(value, dtype, lanes)
        value = function.value(f"bitcast <{lanes} x {kind}> {wide} to i32")
    _write(emitter, fragment, addresses, [value] * len(addresses))
    return "0"


def _memory(emitter: Emitter, node: Call) -> tuple[str, tuple[str, str], tuple[str, str]]:
    """The space of the matrix in memory, its address and its stride."""
    space, pointer = emitter.pointer(node.args[5])
    bits = 32 if space == "ptr addrspace(3)" else 64
    address = (f"i{bits}", emitter.function.value(f"ptrtoint {space} {pointer} to i{bits}"))
    return _SPACES[space], address, int32(emitter, node.args[6])


def load(emitter: Emitter, node: Call) -> str:
    """A fragment from memory."""
    require(emitter, node, 75)
    fragment, addresses = _registers(emitter, node, 0, 4)
    space, address, stride = _memory(emitter, node)
    layout = fragment.layout.removesuffix("_major")
    count = fragment.registers
    text = (
        f"wmma.load.{fragment.letter}.sync.aligned.{layout}.{fragment.name}{space}.{_TYPES[fragment.dtype]} "
        f"{places(0, count)}, [${count}], ${count + 1};"
    )
    _write(emitter, fragment, addresses, assembly(emitter, text, [address, stride], [fragment.kind] * count))
    return "0"


def store(emitter: Emitter, node: Call) -> str:
    """A fragment to memory."""
    require(emitter, node, 75)
    fragment, addresses = _registers(emitter, node, 0, 4)
    space, address, stride = _memory(emitter, node)
    word = node.args[7].value if isinstance(node.args[7], StringImm) else "row_major"
    count = fragment.registers
    text = (
        f"wmma.store.d.sync.aligned.{word.removesuffix('_major')}.{fragment.name}{space}.{_TYPES[fragment.dtype]} "
        f"[$0], {places(2, count)}, $1;"
    )
    assembly(emitter, text, [address, stride, *_read(emitter, fragment, addresses)])
    return "0"


def multiply(emitter: Emitter, node: Call) -> str:
    """``d = a * b + c``."""
    require(emitter, node, 75)
    d, a, b, c = (_registers(emitter, node, place, place + 1) for place in (0, 2, 4, 6))
    counts = [part[0].registers for part in (d, a, b, c)]
    starts = [sum(counts[:place]) for place in range(4)]
    lists = ", ".join(places(start, count) for start, count in zip(starts, counts, strict=True))
    layouts = ".".join(part[0].layout.removesuffix("_major") for part in (a, b))
    a_type = str(a[0].dtype)
    if a_type == "float16":
        types = f"{_TYPES[d[0].dtype]}.{_TYPES[c[0].dtype]}"
    else:
        types = ".".join(_TYPES[part[0].dtype] for part in (d, a, b, c))
    text = f"wmma.mma.sync.aligned.{layouts}.{a[0].name}.{types} {lists};"
    operands = [one for part in (a, b, c) for one in _read(emitter, *part)]
    made = assembly(emitter, text, operands, [d[0].kind] * counts[0], touches_memory=False)
    _write(emitter, *d, made)
    return "0"


FRAGMENT_CALLS: Final[dict[str, Handler]] = {
    "tir.tvm_fill_fragment": fill,
    "tir.tvm_load_matrix_sync": load,
    "tir.tvm_store_matrix_sync": store,
    "tir.tvm_mma_sync": multiply,
}
