"""What the loops of a lowered schedule touch: for every loop, which elements of which buffers, and how often."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

from tilewright.ir.expr import (
    Add,
    BufferLoad,
    Cast,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    PrimExpr,
    ProducerLoad,
    Sub,
    Var,
)
from tilewright.ir.functor import post_order
from tilewright.support.node import Node
from tilewright.tir.stmt import AttrStmt, BufferStore, For, ForKind, ProducerStore

THREADS: Final = ("blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z")
KINDS: Final = (*THREADS, "unrolled", "vectorized", "parallel", "serial", "vthread")
"""The kinds of loops, in the order of the features that say which one a loop is."""
_FOR_KINDS: Final = {
    ForKind.SERIAL: "serial",
    ForKind.PARALLEL: "parallel",
    ForKind.VECTORIZED: "vectorized",
    ForKind.UNROLLED: "unrolled",
}


@dataclass(eq=False)
class Loop:
    """A loop: its variable, extent and kind, and the loops around it. ``inside`` is the product of the extents inside
    it, along the longest way."""

    var: Var
    extent: int
    kind: str
    around: tuple[Loop, ...]
    inside: int = 1
    only_initializes: bool = True
    operations: list[int] = field(default_factory=lambda: [0, 0, 0])

    @property
    def topdown(self) -> int:
        """Iterations of this loop in all."""
        return prod(loop.extent for loop in self.around) * self.extent

    @property
    def bottomup(self) -> int:
        """Iterations of the innermost loop for one run of this one."""
        return self.extent * self.inside


@dataclass(eq=False)
class Access:
    """A load or a store: its name, the buffer's name and extents, the indices, and the loops around it."""

    name: str
    buffer: str
    shape: tuple[int, ...]
    indices: tuple[PrimExpr, ...]
    loops: tuple[Loop, ...]

    def stride(self, loop: Loop) -> int:
        """The distance in elements that one iteration moves; 0 if it does not."""
        origin = {id(one.var): 0 for one in self.loops}
        start = self._address(origin)
        end = self._address({**origin, id(loop.var): 1})
        return 0 if start is None or end is None else end - start

    def modulus(self, loop: Loop) -> int:
        """The modulus under which the loop's variable is used; -1 if there is none."""
        found = [
            int(part.b.value)
            for index in self.indices
            for part in post_order(index)
            if isinstance(part, (FloorMod, Mod)) and isinstance(part.b, IntImm) and _uses(part, loop.var)
        ]
        return max(found, default=-1)

    def count(self, loops: Sequence[Loop]) -> int:
        """The distinct elements that these loops touch."""
        total = 1
        origin = {id(one.var): 0 for one in self.loops}
        for index, extent in zip(self.indices, self.shape, strict=False):
            start = evaluate(index, origin)
            reach = 1
            for loop in loops:
                moved = evaluate(index, {**origin, id(loop.var): loop.extent - 1})
                if start is not None and moved is not None:
                    reach += abs(moved - start)
            total *= min(reach, extent) if extent > 0 else reach
        return total

    def _address(self, values: Mapping[int, int]) -> int | None:
        address = 0
        for index, extent in zip(self.indices, self.shape, strict=False):
            value = evaluate(index, values)
            if value is None:
                return None
            address = address * extent + value
        return address


def _uses(expr: Node, var: Var) -> bool:
    return any(part is var for part in post_order(expr))


def evaluate(expr: PrimExpr, values: Mapping[int, int]) -> int | None:
    """The value of an index with these values of variables, by identity; others are zero. None if it is not affine
    arithmetic on integers."""
    if isinstance(expr, IntImm):
        return int(expr.value)
    if isinstance(expr, Var):
        return values.get(id(expr), 0)
    if isinstance(expr, Cast):
        return evaluate(expr.value, values)
    if not isinstance(expr, (Add, Sub, Mul, Min, Max, FloorDiv, FloorMod, Div, Mod)):
        return None
    left, right = evaluate(expr.a, values), evaluate(expr.b, values)
    if left is None or right is None:
        return None
    if isinstance(expr, Add):
        return left + right
    if isinstance(expr, Sub):
        return left - right
    if isinstance(expr, Mul):
        return left * right
    if isinstance(expr, Min):
        return min(left, right)
    if isinstance(expr, Max):
        return max(left, right)
    if right == 0:
        return None
    return left // right if isinstance(expr, (FloorDiv, Div)) else left % right


class Touched:
    """The loops of a function in the order in which they start, without those that only initialise reductions, and
    what is accessed in them."""

    def __init__(self, body: Node) -> None:
        self._loops: dict[int, Loop] = {}
        self.accesses: list[Access] = []
        self._numbers: dict[str, int] = {}
        self._reduced = {
            _name(part)
            for part in post_order(body)
            if isinstance(part, (ProducerStore, BufferStore)) and _reads_itself(part)
        }
        self._visit(body)
        self.loops = [loop for loop in self._loops.values() if not loop.only_initializes]

    def _visit(self, body: Node) -> None:
        pending: list[tuple[Node, tuple[Loop, ...]]] = [(body, ())]
        while pending:
            node, around = pending.pop()
            if isinstance(node, For):
                extent = node.extent.value if isinstance(node.extent, IntImm) else 1
                kind = _FOR_KINDS.get(node.kind, "serial")
                thread = getattr(node, "thread_binding", None)
                if thread is not None:
                    kind = _thread_kind(thread.thread_tag)
                inner = (*around, self._loop(node.loop_var, int(extent), kind, around))
                pending.append((node.body, inner))
            elif isinstance(node, AttrStmt) and node.attr_key in ("thread_extent", "virtual_thread"):
                extent = node.value.value if isinstance(node.value, IntImm) else 1
                kind = "vthread" if node.attr_key == "virtual_thread" else _thread_kind(node.node.thread_tag)
                var = node.node.var
                if any(loop.var is var for loop in around):
                    pending.append((node.body, around))
                else:
                    pending.append((node.body, (*around, self._loop(var, int(extent), kind, around))))
            elif isinstance(node, (ProducerStore, BufferStore)):
                self._store(node, around)
            else:
                pending += [(child, around) for child in reversed(list(node.children()))]

    def _loop(self, var: Var, extent: int, kind: str, around: tuple[Loop, ...]) -> Loop:
        if id(var) not in self._loops:
            self._loops[id(var)] = Loop(var, extent, kind, around)
        loop = self._loops[id(var)]
        # The binding of a thread may be repeated, deeper inside the second time.
        if len(around) > len(loop.around):
            loop.around = around
        return loop

    def _store(self, store: Any, loops: tuple[Loop, ...]) -> None:
        is_init = _name(store) in self._reduced and not _reads_itself(store)
        for position, loop in enumerate(loops):
            inner = prod(one.extent for one in loops[position + 1 :])
            loop.inside = max(loop.inside, inner)
            loop.only_initializes = loop.only_initializes and is_init
            for number, count in enumerate(_operations(store.value)):
                loop.operations[number] += count * inner
        # What initialises a reduction in loops of its own is not part of the nest.
        self._access(store, loops)
        for part in post_order(store.value):
            if isinstance(part, (ProducerLoad, BufferLoad)):
                self._access(part, loops)

    def _access(self, node: Any, loops: tuple[Loop, ...]) -> None:
        buffer = _name(node)
        number = self._numbers.get(buffer, 0)
        self._numbers[buffer] = number + 1
        self.accesses.append(Access(f"{buffer}_{number}", buffer, _shape(node), tuple(node.indices), loops))


def _thread_kind(tag: str) -> str:
    return tag if tag in KINDS else "vthread" if tag.startswith("vthread") else "serial"


def _holder(node: Any) -> Any:
    return node.producer if isinstance(node, (ProducerLoad, ProducerStore)) else node.buffer


def _name(node: Any) -> str:
    return str(getattr(_holder(node), "name", "buffer"))


def _shape(node: Any) -> tuple[int, ...]:
    return tuple(int(extent.value) if isinstance(extent, IntImm) else 0 for extent in _holder(node).shape)


def _reads_itself(store: Any) -> bool:
    return any(
        isinstance(part, (ProducerLoad, BufferLoad)) and _name(part) == _name(store)
        for part in post_order(store.value)
    )


def _operations(value: PrimExpr) -> Iterable[int]:
    """Additions, multiplications and divisions, those of indices left out."""
    counts = [0, 0, 0]
    pending: list[Node] = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, (ProducerLoad, BufferLoad)):
            continue
        if isinstance(part, (Add, Sub)):
            counts[0] += 1
        elif isinstance(part, Mul):
            counts[1] += 1
        elif isinstance(part, (Div, Mod, FloorDiv, FloorMod)):
            counts[2] += 1
        pending += part.children()
    return counts
