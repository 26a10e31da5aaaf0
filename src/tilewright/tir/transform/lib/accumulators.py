"""What statements add to: accumulators, and whether anything else touches them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilewright.ir.expr import Add, IntImm, Load, PrimExpr, Ramp, Var, is_const
from tilewright.ir.functor import post_order
from tilewright.support.dtype import DataType
from tilewright.support.node import Node
from tilewright.tir.analysis.expr_deep_equal import expr_deep_equal
from tilewright.tir.stmt import Store


@dataclass(frozen=True)
class Place:
    """An index that a statement adds values of a type to, and how often at most; None if that is not known.

    Without an index it stands for a whole buffer, of the size that the type says, to whose elements the statement adds
    at indices that change in its loops.
    """

    index: PrimExpr | None
    dtype: DataType
    terms: int | None

    def repeated(self, times: int | None) -> Place:
        """The place after a loop with so many iterations."""
        return replace(self, terms=None if self.terms is None or times is None else self.terms * times)

    def mentions(self, variable: Var) -> bool:
        """True if the index depends on the variable."""
        return self.index is not None and any(part is variable for part in post_order(self.index))


@dataclass
class Updates:
    """The places that a statement only adds to, by buffer, and the buffers that it uses in any other way. An ``opaque``
    statement may do anything. ``whole`` has the types and sizes of small buffers, as vectors."""

    whole: Mapping[Var, DataType]
    added: dict[Var, list[Place]] = field(default_factory=dict)
    used: set[Var] = field(default_factory=set)
    opaque: bool = False

    def use(self, *expressions: PrimExpr) -> None:
        """Note the buffers in expressions."""
        seen: set[int] = set()
        pending: list[Node] = list(expressions)
        while pending:
            part = pending.pop()
            if isinstance(part, Var):
                if part.dtype.is_handle:
                    self.used.add(part)
            elif (children := part.children()) and id(part) not in seen:
                seen.add(id(part))
                pending += children

    def add(self, buffer: Var, added: Place) -> None:
        """Note an addition."""
        places = self.added.setdefault(buffer, [])
        for number, place in enumerate(places):
            if place.index is None or added.index is None:
                self.added[buffer] = [self._merged(buffer, [*places, added])]
                return
            if same_place(place.index, added.index):
                places[number] = _sum_of([place, added], place)
                return
        places.append(added)

    def include(self, other: Updates) -> None:
        """Add what another statement does."""
        for buffer, places in other.added.items():
            for place in places:
                self.add(buffer, place)
        self.used |= other.used
        self.opaque = self.opaque or other.opaque

    def leave(self, variable: Var, iterations: int | None = 1) -> None:
        """Leave the scope of a variable, a loop's if there is more than one iteration. An index that depends on the
        variable is not one place outside."""
        self.added.pop(variable, None)
        for buffer, places in self.added.items():
            if not any(place.mentions(variable) for place in places):
                self.added[buffer] = [place.repeated(iterations) for place in places]
            elif buffer in self.whole:
                # Iterations that add to different elements do not make the sums longer.
                self.added[buffer] = [self._merged(buffer, places)]
            else:
                self.used.add(buffer)

    def _merged(self, buffer: Var, places: Sequence[Place]) -> Place:
        return _sum_of(places, Place(None, self.whole[buffer], 0))

    def sums(self) -> dict[Var, list[Place]]:
        """The accumulators."""
        if self.opaque:
            return {}
        return {buffer: places for buffer, places in self.added.items() if buffer not in self.used}


def _sum_of(places: Sequence[Place], like: Place) -> Place:
    terms = [place.terms for place in places]
    known = [count for count in terms if count is not None]
    return replace(like, terms=sum(known) if len(known) == len(terms) else None)


def same_place(a: PrimExpr, b: PrimExpr) -> bool:
    """True if both indices are the same."""
    if isinstance(a, Ramp) and isinstance(b, Ramp):
        return a.lanes == b.lanes and same_place(a.base, b.base) and same_place(a.stride, b.stride)
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return a.value == b.value
    return a is b or (type(a) is type(b) and expr_deep_equal(a, b))


def added_term(store: Store) -> PrimExpr | None:
    """What an unmasked store of floats adds to the place that it writes; None if it does anything else."""
    value = store.value
    if not isinstance(value, Add) or not value.dtype.is_float or not is_const(store.predicate, 1):
        return None
    for total, term in ((value.a, value.b), (value.b, value.a)):
        if isinstance(total, Load) and total.buffer_var is store.buffer_var and is_const(total.predicate, 1):
            if same_place(total.index, store.index):
                return term
    return None
