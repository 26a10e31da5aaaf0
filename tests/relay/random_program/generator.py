"""Making a random program: one operator after another, on what is there already."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.relay.random_program.evaluation import Array, Evaluation, Value, tolerance

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import is_dynamic
from tilewright.relay.expr import Call, Let, Tuple, TupleGetItem, TupleWrapper, Var, const, var
from tilewright.relay.expr_functor import post_order_visit
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.relay.op.tensor import sigmoid
from tilewright.relay.prelude import Prelude
from tilewright.support.errors import TilewrightError

FLOATS = ("float32", "float64", "float16")
INTEGERS = ("int32", "int64", "int8", "uint8")
NUMBERS = FLOATS + INTEGERS
ANYTHING = (*NUMBERS, "bool")
FREQUENT = {"float32": 12, "int32": 3, "bool": 2}
"""How often a new tensor has an element type, where several are possible; the others count one."""


@dataclass(frozen=True)
class Program:
    """A module whose ``main`` takes ``arguments`` and gives ``expected``, in a row, within ``tolerances``.

    ``features`` are those of "if", "loop", "reference", "data", "closure" and "unknown" (a shape that types do not
    tell) that it has: with any of them but closures it is for the virtual machine alone.
    """

    seed: int
    module: IRModule
    arguments: list[Array]
    expected: list[Array]
    tolerances: list[float]
    features: frozenset[str]
    operators: frozenset[str]


@dataclass
class Scope:
    """The values that were made in a block, and the lets that bind some of them."""

    values: list[Value] = field(default_factory=list)
    bindings: list[tuple[Var, RelayExpr]] = field(default_factory=list)

    def closed(self, result: RelayExpr) -> RelayExpr:
        """The block with its lets."""
        for variable, value in reversed(self.bindings):
            result = Let(variable, value, result)
        return result


Recipe = Callable[["Generator"], Any]
"""Makes one call from a generator's values: an expression, or None where nothing fits."""

RECIPES: dict[str, list[Recipe]] = {}
"""By operator; those of the language itself begin with "@"."""


def recipe(*names: str) -> Callable[[Recipe], Recipe]:
    """Register a recipe under the operators that it calls."""

    def register(made: Recipe) -> Recipe:
        for name in names:
            RECIPES.setdefault(name, []).append(made)
        return made

    return register


class NothingFits(TilewrightError):
    """There is nothing to choose from: an axis of no elements, or no value that would do."""


class Generator:
    """Random choices, the values so far, and the program that they make."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = np.random.default_rng(seed)
        self.module = IRModule()
        self.evaluation = Evaluation(self.module, seed)
        self.scopes = [Scope()]
        self.inputs: list[tuple[Var, Array]] = []
        self.features: set[str] = set()
        self.used: set[Value] = set()
        self.share_bound = float(self.random.choice([0.0, 0.0, 0.3, 1.0]))
        self._names = 0
        self._prelude: Prelude | None = None

    # Choices

    def chance(self, share: float) -> bool:
        """True in this share of cases."""
        return bool(self.random.random() < share)

    def integer(self, low: int, high: int) -> int:
        """A number from ``low`` to ``high``, both included."""
        if low > high:
            raise NothingFits(f"no number lies between {low} and {high}")
        return int(self.random.integers(low, high + 1))

    def choice(self, options: Sequence[Any]) -> Any:
        """One of several."""
        if not options:
            raise NothingFits("there are no options")
        return options[int(self.random.integers(len(options)))]

    def weighted(self, options: Mapping[Any, float]) -> Any:
        """One of several, by weight."""
        names, weights = list(options), np.array(list(options.values()), "float64")
        return names[int(self.random.choice(len(names), p=weights / weights.sum()))]

    def shape(self, rank: int | None = None, low: int = 1, high: int = 5) -> tuple[int, ...]:
        """A shape; more often than not of small odd extents."""
        count = self.integer(0, 4) if rank is None else rank
        return tuple([self.integer(low, high) for _ in range(count)])

    def name(self, prefix: str) -> str:
        """A name that no other variable has."""
        self._names += 1
        return f"{prefix}{self._names}"

    def axes(self, rank: int) -> Any:
        """Axes for a reduction: all, one, or several."""
        if rank == 0 or self.chance(0.2):
            return None
        count = self.integer(1, rank)
        chosen = [int(axis) for axis in self.random.permutation(rank)[:count]]
        signed = [axis - rank if self.chance(0.2) else axis for axis in chosen]
        return signed[0] if len(signed) == 1 and self.chance(0.5) else tuple(signed)

    @property
    def prelude(self) -> Prelude:
        """The prelude in the program's module."""
        if self._prelude is None:
            self._prelude = Prelude(self.module)
        return self._prelude

    # Values

    def visible(self) -> list[Value]:
        """What a new call can use."""
        return [value for scope in self.scopes for value in scope.values]

    def fresh(
        self,
        shape: Sequence[int],
        dtype: str = "float32",
        low: float = -2.0,
        high: float = 2.0,
        values: Any = None,
    ) -> Value:
        """A new parameter of the program, or a constant in it."""
        if values is not None:
            array = np.asarray(values, dtype=dtype)
        elif dtype == "bool":
            array = self.random.integers(0, 2, shape).astype("bool")
        elif np.dtype(dtype).kind in "iu":
            start = max(int(low), 0) if np.dtype(dtype).kind == "u" else int(low)
            array = self.random.integers(start, max(int(high), start) + 1, shape).astype(dtype)
        else:
            array = self.random.uniform(low, high, shape).astype(dtype)
        if self.chance(0.3):
            return Value(const(array), array)
        variable = var(self.name("x"), shape=array.shape, dtype=dtype)
        self.inputs.append((variable, array))
        self.evaluation.define(variable, array)
        return Value(variable, array)

    def tensor(
        self,
        dtypes: Sequence[str] = FLOATS,
        rank: int | Sequence[int] | None = None,
        shape: Sequence[int] | None = None,
        low: float | None = None,
        high: float | None = None,
    ) -> Value:
        """A tensor: one that is there, brought between ``low`` and ``high`` if need be, or a new one."""
        ranks = None if rank is None else (rank,) if isinstance(rank, int) else tuple(rank)
        bounded = low is not None and high is not None
        fitting = [
            value
            for value in self.visible()
            if value.dtype in dtypes
            and (ranks is None or value.rank in ranks)
            and (shape is None or value.shape == tuple(shape))
            and (not bounded or value.dtype in FLOATS or value.within(low or 0, high or 0))
        ]
        if fitting and self.chance(0.85):
            # Late values make deep programs, early ones wide programs.
            position = int(self.random.triangular(0, len(fitting), len(fitting)))
            return self.ranged(self.use(fitting[min(position, len(fitting) - 1)]), low, high)
        extents = (
            tuple(shape) if shape is not None else self.shape(None if ranks is None else self.choice(ranks))
        )
        kind = self.weighted({name: FREQUENT.get(name, 1) for name in dtypes})
        return self.fresh(extents, kind, *((low, high) if low is not None and high is not None else ()))

    def use(self, value: Value) -> Value:
        """Mark a value: what nothing uses is a result of the program."""
        self.used.add(value)
        return value

    def ranged(self, value: Value, low: float | None, high: float | None) -> Value:
        """The value, or one made from it, whose elements lie between two numbers."""
        if low is None or high is None or value.dtype not in FLOATS or value.within(low, high):
            return value
        width, start = const(high - low, value.dtype), const(low, value.dtype)
        made = self.value(sigmoid(value.expr) * width + start)
        return value if made is None else made

    def value(self, expr: RelayExpr) -> Value | None:
        """A tensor expression with what it gives; None where that says nothing about a compiler."""
        results = self.evaluation.run(expr)
        spread = self.evaluation.spread(list(results.values()))
        return None if spread is None else Value(expr, results[0], spread)

    def accept(self, made: Any) -> list[Value]:
        """Add the tensors that a call gives; none if they are not fit."""
        expr: RelayExpr = made.astuple() if isinstance(made, TupleWrapper) else made
        results = self.evaluation.run(expr)
        if isinstance(results[0], tuple):
            parts = [self.value(TupleGetItem(expr, index)) for index in range(len(results[0]))]
            values = [part for part in parts if part is not None]
            if len(values) != len(parts):
                return []
        else:
            spread = self.evaluation.spread(list(results.values()))
            if spread is None:
                return []
            values = [self.bound(Value(expr, results[0], spread))]
        self.scopes[-1].values += values
        return values

    def bound(self, value: Value) -> Value:
        """The value, in a share of programs through a let."""
        if not self.chance(self.share_bound):
            return value
        variable = Var(self.name("v"))
        self.let(variable, value.expr)
        return Value(variable, value.array, value.spread)

    def let(self, variable: Var, expr: RelayExpr) -> None:
        """Bind a variable in the current block."""
        self.evaluation.define(variable, self.evaluation.run(expr))
        self.scopes[-1].bindings.append((variable, expr))

    @contextmanager
    def scope(self) -> Iterator[Scope]:
        """A block: what is made in it is not seen after it."""
        inner = Scope()
        self.scopes.append(inner)
        try:
            yield inner
        finally:
            self.scopes.pop()

    # Programs

    def step(self, recipes: Mapping[str, Sequence[Recipe]]) -> list[Value]:
        """One more call, by a random recipe; no values where it did not work out."""
        recipe = self.choice(recipes[self.choice(list(recipes))])
        try:
            made = recipe(self)
        except NothingFits:
            return []
        return [] if made is None else self.accept(made)

    def program(self) -> Program:
        """The program that gives everything that nothing uses."""
        outer = self.scopes[0]
        left = [value for value in outer.values if value not in self.used] or outer.values[-1:]
        if not left:
            raise TilewrightError(f"the random program of seed {self.seed} has no values")
        results = left[-8:]
        alone = len(results) == 1 and self.chance(0.5)
        body = outer.closed(results[0].expr if alone else Tuple([value.expr for value in results]))
        self.module["main"] = Function([variable for variable, _ in self.inputs], body)
        module = infer_module(self.module)
        operators, unknown = _operators(module)
        if unknown:
            self.features.add("unknown")
        return Program(
            self.seed,
            module,
            [array for _, array in self.inputs],
            [value.array for value in results],
            [tolerance(value.array, value.spread) for value in results],
            frozenset(self.features),
            operators,
        )


def _operators(module: IRModule) -> tuple[frozenset[str], bool]:
    """The operators that a module calls, and whether the type of a call leaves a dimension open."""
    names: set[str] = set()
    open_types: list[Any] = []

    def look(expr: Any) -> None:
        if isinstance(expr, Op):
            names.add(expr.name)
        elif isinstance(expr, Call) and is_dynamic(expr.checked_type):
            open_types.append(expr.checked_type)

    for function in module.functions.values():
        post_order_visit(function, look)
    return frozenset(names), bool(open_types)
