"""Natural numbers, trees and temporary attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import relay
from tilewright.ir.op import Op
from tilewright.relay import testing
from tilewright.relay.testing.nat import add_nat_definitions, get_type
from tilewright.relay.testing.temp_op_attr import TempOpAttr
from tilewright.support.errors import TilewrightError


@pytest.fixture
def prelude() -> relay.Prelude:
    """A prelude that knows natural numbers."""
    made = relay.Prelude()
    add_nat_definitions(made)
    return made


def run(prelude: relay.Prelude, expr: Any, *arguments: Any) -> Any:
    """The value of an expression over the prelude."""
    return relay.create_executor("debug", prelude.mod).evaluate(expr)


def test_numbers_there_and_back(prelude: relay.Prelude) -> None:
    """Values and expressions of Python's numbers count to them."""
    for number in (0, 1, 7):
        assert testing.count(prelude, testing.make_nat_value(prelude, number)) == number
        assert testing.count(prelude, run(prelude, testing.make_nat_expr(prelude, number))) == number
    with pytest.raises(TilewrightError, match="-1 is not a natural number"):
        testing.make_nat_value(prelude, -1)


def test_functions_of_numbers(prelude: relay.Prelude) -> None:
    """Doubling, adding, and doing something that often."""
    double, add = prelude.mod.get_global_var("nat_double"), prelude.mod.get_global_var("nat_add")
    three, four = testing.make_nat_expr(prelude, 3), testing.make_nat_expr(prelude, 4)
    assert testing.count(prelude, run(prelude, double(three))) == 6
    assert testing.count(prelude, run(prelude, add(three, four))) == 7
    x = relay.var("x", "int32")
    often = prelude.mod.get_global_var("nat_iterate")(relay.Function([x], x + x), four)
    assert run(prelude, relay.Call(often, [relay.const(3)])).numpy() == 48


def test_types_by_name(prelude: relay.Prelude) -> None:
    """The variable of a type, and its constructors in order."""
    name, zero, successor = get_type(prelude, "nat")
    assert (name.name_hint, zero.name_hint, successor.name_hint) == ("nat", "Z", "S")


Tree = tuple[np.ndarray, list[Any]]


def numpy_tree_lstm(tree: Tree, p: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Memory and output of a tree's root, straight from the formulas."""

    def sigmoid(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-x))

    value, children = tree
    states = [numpy_tree_lstm(child, p) for child in children]
    size = p["forget_bias"].size
    forget = value @ p["forget_input_weight"].T + p["forget_bias"]
    output = sum((h for _, h in states), np.zeros((1, size)))
    memory = sum(
        (sigmoid(forget + h @ p["forget_state_weight"].T) * c for c, h in states), np.zeros((1, size))
    )
    gates = value @ p["gates_input_weight"].T + p["gates_bias"] + output @ p["gates_state_weight"].T
    take, give, change = np.split(gates, 3, axis=1)
    memory = sigmoid(take) * np.tanh(change) + memory
    return memory, sigmoid(give) * np.tanh(memory)


def random_tree(generator: np.random.Generator, depth: int) -> Tree:
    """A tree with up to three children a node."""
    count = int(generator.integers(0, 4)) if depth else 0
    value = generator.standard_normal((1, 4)).astype("float32")
    return value, [random_tree(generator, depth - 1) for _ in range(count)]


@pytest.mark.parametrize("seed", range(4))
def test_memory_over_trees(seed: int) -> None:
    """The recursive model agrees with the formulas, for a tree given as a value."""
    generator = np.random.default_rng(seed)
    tree: Tree = (
        generator.standard_normal((1, 4)).astype("float32"),
        [random_tree(generator, 2) for _ in "ab"],
    )
    module, params = testing.tree_lstm.get_workload(4, 3)
    values = {name: value.numpy() for name, value in params.items()}
    run = relay.create_executor("debug", module, params=values).evaluate()
    memory, output = run(testing.tree_lstm.make_tree_value(module, tree))
    wanted = numpy_tree_lstm(tree, values)
    np.testing.assert_allclose(memory.numpy(), wanted[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(output.numpy(), wanted[1], rtol=1e-5, atol=1e-6)


def test_trees_as_expressions() -> None:
    """A tree of constants is an expression of the module's own constructors."""
    module, params = testing.tree_lstm.get_workload(4, 3)
    one = np.ones((1, 4), "float32")
    tree = testing.tree_lstm.make_tree_expr(module, (relay.const(one), [(relay.const(2 * one), [])]))
    weights = [relay.const(params[one.name_hint]) for one in module["main"].params[1:]]
    call = module.get_global_var("tree_lstm")(tree, *weights)
    values = {name: value.numpy() for name, value in params.items()}
    wanted = numpy_tree_lstm((one, [(2 * one, [])]), values)
    memory, _ = relay.create_executor("debug", module).evaluate(call)
    np.testing.assert_allclose(memory.numpy(), wanted[0], rtol=1e-5, atol=1e-6)


def test_attributes_for_a_while() -> None:
    """What an attribute was before the block it is after it, also where it was nothing."""
    before = Op.get("exp").get_attr("TOpPattern")
    with TempOpAttr("exp", "TOpPattern", 8), TempOpAttr("exp", "FTVMAlterOpLayout", "mine"):
        assert Op.get("exp").get_attr("TOpPattern") == 8
        assert Op.get("exp").get_attr("FTVMAlterOpLayout") == "mine"
    assert Op.get("exp").get_attr("TOpPattern") == before
    assert not Op.get("exp").has_attr("FTVMAlterOpLayout")
