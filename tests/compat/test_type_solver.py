"""TVM's door to the solver of types, and the equality of types that it is used with."""

import pytest

import tilewright as tvm
from tilewright import relay


def _solver() -> relay.analysis._ffi_api._test_type_solver:
    return relay.analysis._ffi_api._test_type_solver()


def _relation(name: str, *types: relay.Type) -> relay.TypeRelation:
    function = tvm.ir.EnvFunc.get(f"tvm.relay.type_relation.{name}")
    return relay.TypeRelation(function, list(types), len(types) - 1)


def test_constraints_are_solved_backwards() -> None:
    """A type that only a later constraint gives is found, and with it what depends on it."""
    solver = _solver()
    known, late, unknown, result = (
        relay.TensorType((10, 20), "float32"),
        relay.TensorType((10, 1, 1), "float32"),
        relay.IncompleteType(),
        relay.IncompleteType(),
    )
    solver("AddConstraint")(_relation("Broadcast", known, unknown, result))
    assert not solver("Solve")()
    solver("AddConstraint")(_relation("Identity", unknown, late))
    assert solver("Solve")()
    assert solver("Resolve")(result) == relay.TensorType((10, 10, 20), "float32")


def test_generic_functions() -> None:
    """The more general function is used at the other's types; names of type variables do not matter."""
    a, b, c = (relay.TypeVar(name) for name in "abc")
    general, special = relay.FuncType([a, b], c, [a, b, c]), relay.FuncType([a, a], a, [a])
    assert _solver()("Unify")(general, special) == special
    renamed = relay.FuncType([b, b], b, [b])
    assert special == renamed and hash(special) == hash(renamed)
    assert special != relay.FuncType([b, a], b, [b]) and special != general
    open_type = relay.IncompleteType()
    with pytest.raises(tvm.TVMError, match="contain itself"):
        _solver()("Unify")(open_type, relay.TupleType([open_type]))
