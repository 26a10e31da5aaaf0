"""EliminateCommonSubexpr."""

from typing import Any

from tests.relay.programs import call
from tests.relay.transform.text import module, unchanged

from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.relay import Call, Function, var
from tilewright.relay.transform import EliminateCommonSubexpr


def calls(mod: IRModule) -> list[str]:
    """The operators of main, one for each distinct call."""
    return [node.op.name for node in post_order(mod["main"]) if isinstance(node, Call)]  # type: ignore[attr-defined]


def test_equal_calls_become_one() -> None:
    """With all that depends on them."""
    mod = module("def @main(%x: $T) { add(exp(exp(%x)), exp(exp(%x))) }")
    assert calls(mod) == ["exp", "exp", "exp", "exp", "add"]
    assert calls(EliminateCommonSubexpr()(mod)) == ["exp", "exp", "add"]


def test_attributes_and_arguments_tell_calls_apart() -> None:
    """Scalar constants are compared by value."""
    different = module(
        "def @main(%x: $T) { (sum(%x, axis=[0]), sum(%x, axis=[0], keepdims=True), add(%x, 1f), add(%x, 2f)) }"
    )
    assert len(calls(EliminateCommonSubexpr()(different))) == 4
    same = module("def @main(%x: $T) { (sum(%x, axis=[0]), sum(%x, axis=[0]), add(%x, 1f), add(%x, 1f)) }")
    assert calls(EliminateCommonSubexpr()(same)) == ["sum", "add"]


def test_what_is_to_be_skipped_stays() -> None:
    """The user says what."""
    mod = module("def @main(%x: $T) { add(exp(%x), exp(%x)) }")
    skip = lambda expr: isinstance(expr, Call) and expr.op.name == "exp"
    assert calls(EliminateCommonSubexpr(skip)(mod)) == ["exp", "exp", "add"]


def test_branches_keep_what_they_compute() -> None:
    """Only one of them runs."""
    unchanged(
        "def @main(%c: bool, %x: $T) { if (%c) { exp(%x) } else { add(exp(%x), %x) } }",
        EliminateCommonSubexpr(),
    )
    mod = module("def @main(%c: bool, %x: $T) { if (%c) { add(exp(%x), exp(%x)) } else { exp(%x) } }")
    assert calls(EliminateCommonSubexpr()(mod)) == ["exp", "add", "exp"]


def test_a_long_chain_beside_itself() -> None:
    """Ten thousand operators twice become ten thousand once."""
    x: Any = var("x", shape=(4,))
    first, second = x, x
    for _ in range(5_000):
        first, second = call("exp", first), call("exp", second)
    mod = EliminateCommonSubexpr()(IRModule({"main": Function([x], call("add", first, second))}))
    assert len(calls(mod)) == 5_001
