"""TVM's door to the solver of types: constraints between types are added, solved, and looked up by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.ir.env_func import EnvFunc
from tilewright.ir.type import Type
from tilewright.ir.type_relation import TypeRelation
from tilewright.relay.infer.solver import Mismatch, Solver
from tilewright.support.errors import TilewrightError

_IDENTITY = "tvm.relay.type_relation.Identity"


class TypeSolver:
    """A solver: ``solver("Unify")`` gives one of its functions."""

    def __init__(self) -> None:
        self._solver = Solver()
        self._constraints: list[TypeRelation] = []
        self._unified: list[tuple[Type, Type]] = []

    def __call__(self, name: str) -> Callable[..., Any]:
        found: dict[str, Callable[..., Any]] = {
            "AddConstraint": self._add,
            "Resolve": self._resolve,
            "Solve": self._solve,
            "Unify": self._unify,
        }
        return found[name]

    def _add(self, relation: TypeRelation) -> None:
        self._constraints.append(relation)

    def _unify(self, first: Type, second: Type) -> Type:
        try:
            made = self._solver.unify(first, second)
        except Mismatch as problem:
            raise TilewrightError(f"the types cannot be made equal: {problem}") from problem
        self._unified += [(first, made), (second, made)]
        return self._solver.resolve(made)

    def _resolve(self, given: Type) -> Type:
        """What a type is by now; one that was made equal to another is what both are."""
        made = next((made for each, made in self._unified if each is given), given)
        return self._solver.resolve(made)

    def _solve(self) -> bool:
        """Ask the constraints until none says anything new; True if all of them have answered."""
        before = -1
        while before != self._solver.version:
            before = self._solver.version
            self._constraints = [each for each in self._constraints if not self._holds(each)]
        return not self._constraints

    def _holds(self, relation: TypeRelation) -> bool:
        arguments = [self._solver.resolve(each) for each in relation.args]
        if isinstance(relation.func, EnvFunc) and relation.func.name == _IDENTITY:
            for each in arguments[1:]:
                self._unify(arguments[0], each)
            return True
        function = relation.func.func if isinstance(relation.func, EnvFunc) else relation.func
        answer = function(arguments[: relation.num_inputs], relation.attrs)
        if answer is None:
            return False
        self._unify(answer, arguments[-1])
        return True
