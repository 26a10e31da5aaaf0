"""Loads and stores.

A vector access is one instruction if its lanes are adjacent, forwards or backwards; a broadcast if they are one
element; a few loads and a shuffle for small constant strides; otherwise a gather or scalar accesses. The alignment is
the pointer's known alignment, as far as the index preserves it. Masked-off lanes do not access memory.
"""

from __future__ import annotations

from typing import Final

from tilewright.codegen.llvm.emitter import Emitter
from tilewright.codegen.llvm.indices import linear_form, power_of_two_factor
from tilewright.codegen.llvm.types import gep_element, vector
from tilewright.ir import operators
from tilewright.ir.expr import IntImm, Load, PrimExpr, Var, is_const
from tilewright.support.dtype import BOOL, DataType
from tilewright.support.errors import CodegenError
from tilewright.tir.stmt import Store

_MAX_SHUFFLED_STRIDE = 4
_LARGEST_VECTOR = 64
"""Bytes of the largest vector register there is."""


def load(emitter: Emitter, node: Load) -> str:
    """The value of a load."""
    access = Access(emitter, node.buffer_var, node.dtype, node.index)
    mask = active_lanes(emitter, node.predicate, node.dtype.lanes)
    if mask is None:
        return access.from_memory(_unmasked_load(access))
    if node.dtype.lanes == 1 or mask.startswith("any "):
        return _guarded_load(access, mask.removeprefix("any "))
    return access.from_memory(_masked_load(access, mask))


def store(emitter: Emitter, node: Store) -> None:
    """The effect of a store."""
    dtype = node.value.dtype
    access = Access(emitter, node.buffer_var, dtype, node.index)
    mask = active_lanes(emitter, node.predicate, dtype.lanes)
    value = access.to_memory(emitter.visit(node.value))
    if mask is None:
        _unmasked_store(access, value)
    elif dtype.lanes == 1 or mask.startswith("any "):
        function = emitter.function
        inside, after = function.new_label("store"), function.new_label("stored")
        function.branch_if(mask.removeprefix("any "), inside, after)
        before = function.known
        function.begin(inside, before)
        with emitter.fresh_memo(keep=True):
            _unmasked_store(access, value)
        function.branch(after)
        function.begin(after, before)
    else:
        _masked_store(access, value, mask)


def address(emitter: Emitter, buffer_var: Var, dtype: DataType, index: PrimExpr) -> str:
    """A pointer to the element (or the first of the elements) of an access of ``dtype`` at ``index``."""
    access = Access(emitter, buffer_var, dtype, index)
    base = access.base if access.base is not None else index
    return access.at(base)


def active_lanes(emitter: Emitter, predicate: PrimExpr, lanes: int) -> str | None:
    """The mask of an access, None if all lanes are active.

    Where the mask in force has another number of lanes than the access, the whole access happens if any of the mask's
    lanes is active; the operand then has the prefix "any ".
    """
    own = None if is_const(predicate, 1) else emitter.visit(predicate)
    if own is not None and predicate.dtype.lanes != lanes:
        own = emitter.broadcast(own, BOOL, lanes)
    outer = emitter.mask
    if outer is None:
        return own
    if lanes == emitter.mask_lanes:
        return outer if own is None else emitter.function.value(f"and {vector('i1', lanes)} {own}, {outer}")
    if own is not None and lanes > 1:
        raise CodegenError(
            f"a predicated access of {lanes} lanes is nested in a condition of {emitter.mask_lanes} lanes"
        )
    count = emitter.mask_lanes
    anywhere = emitter.call_llvm("llvm.vector.reduce.or", "i1", [(vector("i1", count), outer)])
    if own is not None:
        anywhere = emitter.function.value(f"and i1 {own}, {anywhere}")
    return f"any {anywhere}"


class Access:
    """One access: where its lanes are, and how it is written."""

    def __init__(self, emitter: Emitter, buffer_var: Var, dtype: DataType, index: PrimExpr) -> None:
        self.emitter = emitter
        self.buffer_var = buffer_var
        self.dtype = dtype
        self.index = index
        self.base: PrimExpr | None = index
        self.stride: PrimExpr | None = None
        if dtype.lanes > 1 and index.dtype.lanes == 1:
            # A buffer of vectors: the index counts whole vectors.
            self.base, self.stride = operators.multiply(index, dtype.lanes), operators.const(1, index.dtype)
        elif dtype.lanes > 1:
            form = linear_form(index)
            self.base, self.stride = form if form is not None else (None, None)
        self.pointer_type = emitter.pointer_type(buffer_var)
        self.memory_type = emitter.types.memory(dtype)
        self.memory_element = emitter.types.memory(dtype.element)
        self.volatile = "volatile " if buffer_var in emitter.context.volatile else ""
        self.suffix = emitter.context.aliases.suffix(buffer_var)

    @property
    def stride_value(self) -> int | None:
        """The distance of neighbouring lanes, where it is a constant."""
        return self.stride.value if isinstance(self.stride, IntImm) else None

    def at(self, index: PrimExpr, inbounds: bool = True) -> str:
        """The address of the element at an index.

        A constant distance is added to the address last: the elements of a tile then share the rest of it.
        """
        emitter, start = self.emitter, self.emitter.variable(self.buffer_var)
        shared, distance = emitter.constant_distance(index)
        if distance == 0:
            return self.moved(start, *emitter.offset(index), inbounds)
        # The address in between may be outside of the buffer.
        first = self.moved(start, *emitter.offset(shared), inbounds=False)
        return self.moved(first, emitter.types.index, str(distance), inbounds=False)

    def moved(self, start: str, kind: str, offset: str, inbounds: bool = True) -> str:
        """The address that is some elements behind another."""
        if offset == "0":
            return start
        how = "getelementptr inbounds" if inbounds else "getelementptr"
        step = gep_element(self.dtype)
        return self.emitter.function.value(f"{how} {step}, {self.pointer_type} {start}, {kind} {offset}")

    def pointers(self) -> str:
        """The addresses of all lanes, as a vector."""
        emitter = self.emitter
        operand = emitter.visit(self.index)
        kind, dtype = emitter.types.register(self.index.dtype), self.index.dtype
        if dtype.is_uint and dtype.bits < emitter.types.pointer_bits:
            wide = vector(emitter.types.index, dtype.lanes)
            operand, kind = emitter.function.value(f"zext {kind} {operand} to {wide}"), wide
        base = emitter.variable(self.buffer_var)
        return emitter.function.value(
            f"getelementptr {gep_element(self.dtype)}, {self.pointer_type} {base}, {kind} {operand}"
        )

    def alignment(self, base: PrimExpr | None, extra: int = 0) -> int:
        """Bytes to which the access at ``base + extra`` is aligned; an element is always aligned to its own size."""
        size = self.emitter.types.pointer_bits // 8 if self.dtype.is_handle else self.dtype.itemsize
        natural = size & -size
        if base is None:
            return natural
        known = self.emitter.context.alignments.get(self.buffer_var, natural)
        factor = power_of_two_factor(base, self.emitter.context.factors)
        if extra:
            factor = min(factor, extra & -extra)
        return max(natural, min(known, factor * size))

    def read(self, kind: str, pointer: str, align: int) -> str:
        """A load instruction."""
        invariant = ""
        if not self.volatile and self.emitter.context.aliases.is_read_only(self.buffer_var):
            invariant = f", !invariant.load {self.emitter.module.text.metadata('!{}')}"
        text = f"load {self.volatile}{kind}, {self.pointer_type} {pointer}, align {align}{self.suffix}{invariant}"
        return self.emitter.function.value(text)

    def write(self, kind: str, value: str, pointer: str, align: int) -> None:
        """A store instruction; past the caches if the schedule requests it and the vector is aligned as a whole."""
        streamed = ""
        whole = self.dtype.itemsize * self.dtype.lanes
        if self.emitter.streaming and self.dtype.lanes > 1 and align >= min(whole, _LARGEST_VECTOR):
            streamed = f", !nontemporal {self.emitter.module.text.metadata('!{i32 1}')}"
        self.emitter.function.effect(
            f"store {self.volatile}{kind} {value}, {self.pointer_type} {pointer}, align {align}{self.suffix}{streamed}"
        )

    def from_memory(self, operand: str) -> str:
        """A value as it is in memory, brought to its register form."""
        register = self.emitter.types.register(self.dtype)
        if register == self.memory_type:
            return operand
        if self.dtype.is_bool:
            return self.emitter.function.value(f"icmp ne {self.memory_type} {operand}, zeroinitializer")
        return self.emitter.function.value(f"trunc {self.memory_type} {operand} to {register}")

    def to_memory(self, operand: str) -> str:
        """A value in a register, brought to its form in memory."""
        register = self.emitter.types.register(self.dtype)
        if register == self.memory_type:
            return operand
        how = "sext" if self.dtype.is_int else "zext"
        return self.emitter.function.value(f"{how} {register} {operand} to {self.memory_type}")

    def lane_pointers(self) -> list[str]:
        """The address of each lane."""
        emitter, lanes = self.emitter, self.dtype.lanes
        if self.base is None or self.stride is None:
            operand = emitter.visit(self.index)
            scalars = [emitter.lane(operand, self.index.dtype, lane) for lane in range(lanes)]
            base, kind = emitter.variable(self.buffer_var), emitter.types.index
            return [
                self.moved(base, kind, emitter.widen(scalar, self.index.dtype.element)) for scalar in scalars
            ]
        start = self.at(self.base)
        step, index = emitter.visit_index(self.stride), emitter.types.index
        pointers = [start]
        for lane in range(1, lanes):
            value = self.stride_value
            offset = (
                str(value * lane)
                if value is not None
                else emitter.function.value(f"mul nsw {index} {step}, {lane}")
            )
            pointers.append(self.moved(start, index, offset))
        return pointers

    def reversed(self, operand: str) -> str:
        """The lanes in the opposite order."""
        kind, count = self.memory_type, self.dtype.lanes
        picks = ", ".join(f"i32 {lane}" for lane in range(count - 1, -1, -1))
        return self.emitter.function.value(
            f"shufflevector {kind} {operand}, {kind} poison, <{count} x i32> <{picks}>"
        )


def _unmasked_load(access: Access) -> str:
    emitter, base, stride = access.emitter, access.base, access.stride_value
    lanes = access.dtype.lanes
    if lanes == 1 or stride == 1:
        assert base is not None
        return access.read(access.memory_type, access.at(base), access.alignment(base))
    if base is not None and stride == 0:
        pointer = access.at(base)
        one = access.read(access.memory_element, pointer, access.alignment(base))
        return _broadcast_memory(access, one)
    if base is not None and stride == -1:
        lowest = operators.subtract(base, lanes - 1)
        pointer = access.at(lowest)
        return access.reversed(access.read(access.memory_type, pointer, access.alignment(lowest)))
    if (
        base is not None
        and stride is not None
        and 2 <= stride <= _MAX_SHUFFLED_STRIDE
        and lanes & (lanes - 1) == 0
    ):
        return _shuffled_load(access, base, stride)
    if _gather_pays(access):
        return _gather(access, None)
    made, pointers = "poison", access.lane_pointers()
    for lane, pointer in enumerate(pointers):
        one = access.read(access.memory_element, pointer, access.alignment(None))
        made = emitter.function.value(
            f"insertelement {access.memory_type} {made}, {access.memory_element} {one}, i64 {lane}"
        )
    return made


def _broadcast_memory(access: Access, operand: str) -> str:
    """A value in memory form, in every lane."""
    kind, lanes = access.memory_type, access.dtype.lanes
    first = access.emitter.function.value(
        f"insertelement {kind} poison, {access.memory_element} {operand}, i64 0"
    )
    return access.emitter.function.value(
        f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer"
    )


def _shuffled_load(access: Access, base: PrimExpr, stride: int) -> str:
    """Every ``stride``-th element, picked from whole vectors of which the last ends exactly at the last lane."""
    emitter, lanes, function = access.emitter, access.dtype.lanes, access.emitter.function
    span = (lanes - 1) * stride + 1
    starts = [*range(0, span - lanes, lanes), span - lanes]
    start = access.at(base)
    pieces: list[tuple[str, list[int]]] = []
    for first in starts:
        pointer = access.moved(start, emitter.types.index, str(first))
        operand = access.read(access.memory_type, pointer, access.alignment(base, first))
        pieces.append((operand, [lane for lane in range(lanes) if first <= lane * stride < first + lanes]))
    # Each lane takes its element from the first piece that has it.
    made, kind = pieces[0][0], access.memory_type
    chosen = [f"i32 {lane * stride}" if lane in pieces[0][1] else "i32 poison" for lane in range(lanes)]
    made = function.value(
        f"shufflevector {kind} {made}, {kind} poison, <{lanes} x i32> <{', '.join(chosen)}>"
    )
    done = set(pieces[0][1])
    for (operand, inside), first in zip(pieces[1:], starts[1:], strict=True):
        picks = [
            f"i32 {lane}"
            if lane in done
            else f"i32 {lanes + lane * stride - first}"
            if lane in inside
            else "i32 poison"
            for lane in range(lanes)
        ]
        made = function.value(
            f"shufflevector {kind} {made}, {kind} {operand}, <{lanes} x i32> <{', '.join(picks)}>"
        )
        done.update(inside)
    return made


def _gather_pays(access: Access) -> bool:
    """True if the target gathers such elements in one instruction that beats scalar loads."""
    return "avx512f" in access.emitter.machine.features and access.memory_element in (
        "i32",
        "i64",
        "float",
        "double",
    )


def _gather(access: Access, mask: str | None) -> str:
    lanes = access.dtype.lanes
    active = mask if mask is not None else "splat (i1 true)"
    arguments = [
        (f"<{lanes} x {access.pointer_type}>", f"align {access.alignment(None)} {access.pointers()}"),
        (f"<{lanes} x i1>", active),
        (access.memory_type, "zeroinitializer"),
    ]
    return access.emitter.call_llvm("llvm.masked.gather", access.memory_type, arguments)


def _masked_load(access: Access, mask: str) -> str:
    """Lanes whose mask is false give zero, and their memory is not accessed."""
    emitter, base, lanes = access.emitter, access.base, access.dtype.lanes
    if base is not None and access.stride_value == 1:
        pointer = access.at(base, inbounds=False)
        arguments = [
            (access.pointer_type, f"align {access.alignment(base)} {pointer}"),
            (f"<{lanes} x i1>", _widened_safely(access, mask)),
            (access.memory_type, "zeroinitializer"),
        ]
        return emitter.call_llvm("llvm.masked.load", access.memory_type, arguments)
    return _gather(access, mask)


_WHOLE_REGISTER_BITS: Final = 128


def _widened_safely(access: Access, mask: str) -> str:
    """A mask that is zero in the lanes that LLVM adds to an access of less than a register.

    With AVX-512, LLVM 22 widens such an access together with its mask. Where the mask is a comparison of narrow
    integers, it takes the lanes that it added to the comparison for false, which equality makes true: they would be
    accessed. An instruction that LLVM cannot look through makes it clear them.
    """
    lanes = access.dtype.lanes
    if lanes * max(8, access.dtype.bits) >= _WHOLE_REGISTER_BITS or not mask.startswith("%"):
        return mask
    function = access.emitter.function
    bits = function.value(f"bitcast <{lanes} x i1> {mask} to i{lanes}")
    wide = function.value(f"zext i{lanes} {bits} to i32")
    kept = function.value(f'call i32 asm "", "=r,0"(i32 {wide})')
    narrow = function.value(f"trunc i32 {kept} to i{lanes}")
    return function.value(f"bitcast i{lanes} {narrow} to <{lanes} x i1>")


def _guarded_load(access: Access, condition: str) -> str:
    """A load that happens only under a condition of one lane; zero otherwise."""
    function = access.emitter.function
    inside, after = function.new_label("load"), function.new_label("loaded")
    before, known = function.block, function.known
    function.branch_if(condition, inside, after)
    function.begin(inside, known)
    with access.emitter.fresh_memo(keep=True):
        value = access.from_memory(_unmasked_load(access))
    last = function.block
    function.branch(after)
    function.begin(after, known)
    kind = access.emitter.types.register(access.dtype)
    return function.value(f"phi {kind} [ {value}, %{last} ], [ zeroinitializer, %{before} ]")


def _unmasked_store(access: Access, value: str) -> None:
    emitter, base, stride = access.emitter, access.base, access.stride_value
    lanes = access.dtype.lanes
    if lanes == 1 or stride == 1:
        assert base is not None
        pointer = access.at(base)
        access.write(access.memory_type, value, pointer, access.alignment(base))
    elif base is not None and stride == -1:
        lowest = operators.subtract(base, lanes - 1)
        pointer = access.at(lowest)
        access.write(access.memory_type, access.reversed(value), pointer, access.alignment(lowest))
    else:
        # In the order of the lanes: where two lanes meet, the last one stays.
        for lane, pointer in enumerate(access.lane_pointers()):
            one = emitter.function.value(f"extractelement {access.memory_type} {value}, i64 {lane}")
            access.write(access.memory_element, one, pointer, access.alignment(None))


def _masked_store(access: Access, value: str, mask: str) -> None:
    emitter, base, lanes = access.emitter, access.base, access.dtype.lanes
    if base is not None and access.stride_value == 1:
        pointer = access.at(base, inbounds=False)
        arguments = [
            (access.memory_type, value),
            (access.pointer_type, f"align {access.alignment(base)} {pointer}"),
            (f"<{lanes} x i1>", _widened_safely(access, mask)),
        ]
        emitter.call_llvm("llvm.masked.store", "void", arguments)
        return
    arguments = [
        (access.memory_type, value),
        (f"<{lanes} x {access.pointer_type}>", f"align {access.alignment(None)} {access.pointers()}"),
        (f"<{lanes} x i1>", mask),
    ]
    emitter.call_llvm("llvm.masked.scatter", "void", arguments)
