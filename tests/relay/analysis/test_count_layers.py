"""The depth of a model."""

from tests.relay.programs import call, chain, let_chain

from tilewright.ir.module import IRModule
from tilewright.relay import Function, Tuple, var
from tilewright.relay.analysis import count_layers


def test_the_deepest_branch_counts() -> None:
    """Operators that are not asked for do not."""
    x = var("x", shape=(4,))
    deep = call("exp", call("negative", call("exp", x)))
    shallow = call("exp", x)
    assert count_layers(call("add", shallow, deep), ["exp"]) == 2
    assert count_layers(call("add", deep, shallow), ["exp"]) == 2
    assert count_layers(call("add", deep, shallow), ["exp", "add"]) == 3
    assert count_layers(Tuple([shallow, deep, shallow]), ["add"]) == 0


def test_modules_count_by_their_main() -> None:
    """And variables are as deep as what they stand for."""
    x = var("x", shape=(4,))
    assert count_layers(IRModule({"main": Function([x], call("exp", x))}), ["exp"]) == 1
    assert count_layers(let_chain(10_000), ["exp"]) == 10_000
    assert count_layers(chain(10_000), ["exp"]) == 10_000
