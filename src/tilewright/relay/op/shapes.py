"""Arithmetic on dimensions, for type relations.

A dimension is a Python int if it is constant, ``Any`` if nothing is known about it, and an expression otherwise. A
relation written with these functions works for constant shapes, for partly unknown shapes, and for the symbolic shapes
from which shape functions are derived.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import reduce
from typing import Any as Anything

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import Any, IntImm, PrimExpr, Select, SizeVar, Var
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import IncompleteType, TupleType, Type
from tilewright.relay.op.definition import RelationError

Dimension = int | PrimExpr
Shape = tuple[Dimension, ...]


@dataclass(frozen=True)
class Condition:
    """A condition on symbolic dimensions at run time. If it is that two of them are equal, ``pair`` are
    those."""

    holds: PrimExpr
    message: str
    pair: tuple[Dimension, Dimension] | None = None


_CONDITIONS: ContextVar[list[Condition] | None] = ContextVar("conditions", default=None)


@contextmanager
def recorded_conditions() -> Iterator[list[Condition]]:
    """Within, relations leave in the list what they could not decide about symbolic dimensions."""
    found: list[Condition] = []
    token = _CONDITIONS.set(found)
    try:
        yield found
    finally:
        _CONDITIONS.reset(token)


_EQUAL: ContextVar[bool] = ContextVar("equal_broadcasts", default=False)


@contextmanager
def equal_broadcasts() -> Iterator[None]:
    """Within, two symbolic dimensions that a broadcast brings together are equal: somebody has proved it."""
    token = _EQUAL.set(True)
    try:
        yield
    finally:
        _EQUAL.reset(token)


@dataclass
class Proofs:
    """What was found out about symbolic dimensions, by the identity of the expressions.

    ``equal``: of two, whether they are certainly the same. ``broadcasts``: of the dimension of a broadcast, the two it
    was made of; the dimension is a variable, because the expressions of a deep model would grow from layer to layer.
    Expressions are kept with it, so that their identities stay theirs.
    """

    equal: dict[tuple[int, int], tuple[PrimExpr, PrimExpr, bool]] = field(default_factory=dict)
    broadcasts: dict[Var, tuple[PrimExpr, PrimExpr]] = field(default_factory=dict)
    _variables: dict[tuple[int, int], Var] = field(default_factory=dict)

    def broadcast(self, first: PrimExpr, second: PrimExpr) -> PrimExpr:
        """The dimension of a broadcast of two that are not known to be equal."""
        key = (id(first), id(second))
        if key not in self._variables:
            made = self._variables[key] = SizeVar("any_dim", first.dtype)
            self.broadcasts[made] = (first, second)
        return self._variables[key]

    def absorbed(self, first: PrimExpr, second: PrimExpr) -> PrimExpr | None:
        """The dimension of a broadcast of two, where one of them was made of the other; None where that says nothing.

        ``b``, made of ``x`` and ``y``, is ``y`` where ``x`` is one, and ``x`` elsewhere: it is one only if both are, so
        that either adds nothing to it. The other way around, ``x`` with ``b`` is ``b`` as well. That holds whether the
        program is right or not; of ``y`` with ``b`` it would not.
        """
        if self._is_part(second, first):
            return first
        current: PrimExpr | None = second
        while current is not None and current is not first:
            current = self._made_of(current)[0]
        return None if current is None else second

    def _made_of(self, made: PrimExpr) -> tuple[PrimExpr | None, PrimExpr | None]:
        return self.broadcasts.get(made, (None, None)) if isinstance(made, Var) else (None, None)

    def _is_part(self, part: PrimExpr, whole: PrimExpr) -> bool:
        pending, seen = [whole], {id(whole)}
        while pending:
            current = pending.pop()
            if current is part:
                return True
            for one in self._made_of(current):
                if one is not None and id(one) not in seen:
                    seen.add(id(one))
                    pending.append(one)
        return False


_PROOFS: ContextVar[Proofs | None] = ContextVar("remembered_proofs", default=None)


@contextmanager
def remembered_proofs(proofs: Proofs) -> Iterator[None]:
    """Within, what is found out about two expressions is kept, and not proved again."""
    token = _PROOFS.set(proofs)
    try:
        yield
    finally:
        _PROOFS.reset(token)


def require(function: Anything, extents: Sequence[Dimension], message: str) -> None:
    """``function`` of dimensions must hold: an error where they are constants and it does not. Of symbolic dimensions
    it is a condition for the program to check; of unknown ones nothing can be said."""
    if known(*extents):
        if not function(*extents):
            raise RelationError(message)
    elif _CONDITIONS.get() is not None and not any(is_any(extent) for extent in extents):
        _record(function(*[operators.as_expr(extent) for extent in extents]), message)


def equal_dimensions(first: Anything, second: Anything) -> Anything:
    """Whether two dimensions are equal, as a condition for ``require``."""
    return first == second if isinstance(first, int) else operators.equal(first, second)


def require_multiple(extent: Dimension, factor: Dimension, message: str) -> None:
    """The dimension divides by a number without rest."""
    require(
        lambda a, b: a % b == 0 if isinstance(a, int) else operators.equal(operators.floormod(a, b), 0),
        (extent, factor),
        message,
    )


def require_at_most(extent: Dimension, limit: Dimension, message: str) -> None:
    """The dimension is no larger than another."""
    require(lambda a, b: a <= b, (extent, limit), message)


def require_source(extents: Sequence[Dimension], result: Sequence[Dimension], message: str) -> None:
    """There is an element along each of the axes that indices choose from, unless the result has none itself."""
    if 0 in [extent for extent in result if isinstance(extent, int)]:
        return
    if all(isinstance(extent, int) and extent > 0 for extent in extents):
        return

    def holds(*given: Anything) -> Anything:
        read, made = given[: len(extents)], given[len(extents) :]
        if isinstance(given[0], int):
            return all(extent > 0 for extent in read) or 0 in made
        filled = reduce(operators.logical_and, [extent > 0 for extent in read])
        return reduce(operators.logical_or, [operators.equal(extent, 0) for extent in made], filled)

    require(holds, (*extents, *result), message)


def _record(holds: PrimExpr, message: str, pair: tuple[Dimension, Dimension] | None = None) -> None:
    found = _CONDITIONS.get()
    if found is not None and not Analyzer().can_prove(holds):
        found.append(Condition(holds, message, pair))


def tensor(given: Type, what: str) -> TensorType | None:
    """The argument's type as that of a tensor; None where it is not known yet."""
    if isinstance(given, TensorType):
        return given
    if isinstance(given, IncompleteType):
        return None
    raise RelationError(f"{what} is a tensor, not {given}")


def tensors(types: Sequence[Type], *names: str) -> list[TensorType] | None:
    """All arguments as tensors; None if the type of one is not known yet."""
    found = [tensor(given, name) for given, name in zip(types, names, strict=True)]
    return None if any(one is None for one in found) else found  # type: ignore[return-value]


def tuple_of_tensors(given: Type, what: str) -> list[TensorType] | None:
    """The fields of a tuple argument; None where they are not known yet."""
    if isinstance(given, IncompleteType):
        return None
    if not isinstance(given, TupleType):
        raise RelationError(f"{what} is a tuple of tensors, not {given}")
    fields = [tensor(field, f"field {position} of {what}") for position, field in enumerate(given.fields)]
    return None if any(field is None for field in fields) else fields  # type: ignore[return-value]


def dims(given: TensorType) -> Shape:
    """The shape, constants as Python ints."""
    return tuple(extent.value if isinstance(extent, IntImm) else extent for extent in given.shape)


def known(*extents: Dimension) -> bool:
    """True if all of these are constants."""
    return all(isinstance(extent, int) for extent in extents)


def is_any(extent: Dimension) -> bool:
    """True if nothing is known of the dimension."""
    return isinstance(extent, Any)


def _simplified(made: Anything) -> Dimension:
    simple = Analyzer().simplify(made)
    return simple.value if isinstance(simple, IntImm) else simple


def combine(function: Anything, *extents: Dimension) -> Dimension:
    """``function`` of dimensions: computed where they are constants, unknown where one is unknown, else symbolic."""
    if known(*extents):
        return int(function(*extents))
    if any(is_any(extent) for extent in extents):
        return Any()
    return _simplified(function(*[operators.as_expr(extent) for extent in extents]))


def product(extents: Sequence[Dimension]) -> Dimension:
    """The product of dimensions."""
    total: Dimension = 1
    for extent in extents:
        if isinstance(extent, int) and extent == 0:
            return 0
        total = combine(lambda a, b: a * b, total, extent)
    return total


def provably_equal(first: Dimension, second: Dimension) -> bool:
    """True if two dimensions are certainly the same."""
    if isinstance(first, int) or isinstance(second, int):
        return isinstance(first, int) and isinstance(second, int) and first == second
    if is_any(first) or is_any(second):
        return False
    if first is second:
        return True
    proofs = _PROOFS.get()
    key = (id(first), id(second))
    if proofs is not None and key in proofs.equal:
        return proofs.equal[key][2]
    found = bool(Analyzer().can_prove(operators.equal(first, second)))
    if proofs is not None:
        proofs.equal[key] = (first, second, found)
    return found


def same(first: Dimension, second: Dimension, what: str) -> Dimension:
    """The dimension that two must share; an error if they are different constants. The better known one is given."""
    if known(first, second):
        if first != second:
            raise RelationError(f"{what}: {first} is not {second}")
        return first
    if _CONDITIONS.get() is not None and not is_any(first) and not is_any(second):
        one, other = operators.as_expr(first), operators.as_expr(second)
        _record(operators.equal(one, other), f"{what}: they differ", (first, second))
    return second if isinstance(second, int) or is_any(first) else first


def broadcast_dimension(first: Dimension, second: Dimension) -> Dimension:
    """Of two dimensions, the one that the result of a broadcast has. An unknown one with a constant other than one
    must come to that constant or to one, so the constant it is."""
    if isinstance(first, int) and isinstance(second, int):
        if first == second or second == 1:
            return first
        if first == 1:
            return second
        raise RelationError(f"dimensions {first} and {second} can not be broadcast together")
    if isinstance(first, int) or isinstance(second, int):
        constant, other = (first, second) if isinstance(first, int) else (second, first)
        if constant == 1:
            return other
        if not is_any(other):
            _record_meeting(operators.as_expr(constant), operators.as_expr(other))
        return constant
    proofs = _PROOFS.get()
    absorbed = None if proofs is None or is_any(first) or is_any(second) else proofs.absorbed(first, second)
    if absorbed is not None:
        return absorbed
    if provably_equal(first, second):
        return first
    if is_any(first) or is_any(second):
        return Any()
    if _EQUAL.get():
        return same(first, second, "dimensions that are broadcast together")
    _record_meeting(first, second)
    if proofs is not None:
        return proofs.broadcast(first, second)
    # Not the larger of the two: one of them may be zero.
    return _simplified(Select(operators.equal(first, 1), *operators.match_types(second, first)))


def _record_meeting(first: PrimExpr, second: PrimExpr) -> None:
    if _CONDITIONS.get() is None:
        return
    equal, one = operators.equal(first, second), operators.as_expr(1)
    either = operators.logical_or(operators.equal(first, one), operators.equal(second, one))
    if isinstance(first, IntImm):
        either = operators.equal(second, one)
    _record(
        operators.logical_or(equal, either),
        "dimensions that are neither equal nor one can not be broadcast together",
    )


def broadcast_shapes(first: Sequence[Dimension], second: Sequence[Dimension]) -> Shape:
    """NumPy's rule: aligned at the last dimension, and a dimension of one is repeated."""
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    lead = len(longer) - len(shorter)
    try:
        return (
            *longer[:lead],
            *(broadcast_dimension(a, b) for a, b in zip(longer[lead:], shorter, strict=True)),
        )
    except RelationError as error:
        raise RelationError(f"shapes {shape_text(first)} and {shape_text(second)}: {error.message}") from None


def normal_axis(axis: int, rank: int, what: str = "axis") -> int:
    """The axis counted from the front; an error if there is no such axis."""
    if not -rank <= axis < rank:
        raise RelationError(f"{what} {axis} is out of range for a tensor of {rank} dimensions")
    return axis % rank


def normal_axes(axes: Sequence[int] | int | None, rank: int, exclude: bool = False) -> tuple[int, ...]:
    """Axes counted from the front, sorted, each once; all of them for None; the others where ``exclude``."""
    if axes is None:
        chosen = set(range(rank))
    else:
        given = [axes] if isinstance(axes, int) else list(axes)
        chosen = {normal_axis(axis, rank) for axis in given}
        if len(chosen) != len(given):
            raise RelationError(f"axes {tuple(given)} name one axis twice")
    return tuple(axis for axis in range(rank) if (axis in chosen) != exclude)


def shape_text(shape: Sequence[Dimension]) -> str:
    """A shape in a message."""
    return f"({', '.join('?' if is_any(extent) else str(extent) for extent in shape)})"
