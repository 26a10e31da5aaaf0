"""PartialEvaluate, followed by DeadCodeElimination."""

import numpy as np
import pytest
from tests.relay.programs import chain
from tests.relay.transform.test_to_cps import PROGRAMS
from tests.relay.transform.text import check, module

from tilewright.ir.module import IRModule
from tilewright.ir.structural import assert_structural_equal
from tilewright.ir.transform import Sequential
from tilewright.relay.analysis import Feature, detect_feature
from tilewright.relay.infer import infer_module
from tilewright.relay.interpreter import Interpreter
from tilewright.relay.transform import DeadCodeElimination, PartialEvaluate, to_cps, un_cps

EVALUATE = Sequential([PartialEvaluate(), DeadCodeElimination(inline_once=True)])
NAT = "type Nat { Zero, Next(Nat), }\n"


def test_tuples_are_taken_apart() -> None:
    """Only the field that is used remains."""
    check("def @main(%x: $T) { %0 = (exp(%x), %x); %0.1 }", EVALUATE, "def @main(%x: $T) { %x }")


def test_functions_are_called_and_constants_computed() -> None:
    """Through variables, with functions as arguments."""
    check(
        """
        def @main() {
          let %twice = fn (%f: fn (float32) -> float32, %y: float32) -> float32 { %f(%f(%y)) };
          let %double = fn (%y: float32) -> float32 { add(%y, %y) };
          %twice(%double, 4f)
        }
        """,
        EVALUATE,
        "def @main() { 16f }",
    )
    check(
        "def @main(%x: $T) { let %f = fn (%y: $T) { add(%y, %x) }; %f(exp(%x)) }",
        EVALUATE,
        "def @main(%x: $T) { add(exp(%x), %x) }",
    )


def test_known_branches_are_taken() -> None:
    """Unknown ones remain, each evaluated."""
    check(
        "def @main(%x: $T) { if (less(1f, 2f)) { %x } else { exp(%x) } }",
        EVALUATE,
        "def @main(%x: $T) { %x }",
    )
    check(
        "def @main(%c: bool, %x: $T) { let %t = (%x, exp(%x)); if (%c) { %t.0 } else { %t.1 } }",
        PartialEvaluate(),
        "def @main(%c: bool, %x: $T) { let %a = exp(%x); let %b = if (%c) { %x } else { %a }; %b }",
    )


def test_references_are_followed() -> None:
    """What nothing reads is not written."""
    check(
        """
        def @main(%x: $T) {
          let %r = ref(%x);
          let %w = ref_write(%r, add(ref_read(%r), %x));
          multiply(ref_read(%r), ref_read(%r))
        }
        """,
        EVALUATE,
        "def @main(%x: $T) { let %a = add(%x, %x); multiply(%a, %a) }",
    )


def test_an_unknown_branch_or_call_may_change_references() -> None:
    """So they are read again."""
    check(
        """
        def @main(%c: bool, %x: $T) {
          let %r = ref(%x);
          let %w = if (%c) { ref_write(%r, exp(%x)) } else { () };
          ref_read(%r)
        }
        """,
        PartialEvaluate(),
        """
        def @main(%c: bool, %x: $T) {
          let %r = ref(%x);
          let %w = if (%c) { let %a = exp(%x); let %b = ref_write(%r, %a); let %u = (); %u } else { let %v = (); %v };
          let %d = ref_read(%r);
          %d
        }
        """,
    )
    made = EVALUATE(
        module(
            "def @main(%f: fn (ref($T)) -> (), %x: $T) { let %r = ref(%x); let %u = %f(%r); ref_read(%r) }"
        )
    )
    assert Feature.fRefRead in detect_feature(made)


def test_data_types_and_recursion_over_known_data() -> None:
    """Recursion ends where the data does; over unknown data the call remains."""
    program = (
        NAT
        + """
        def @plus(%a: Nat, %b: Nat) -> Nat { match (%a) { Zero => %b, Next(%c) => Next(@plus(%c, %b)) } }
        """
    )
    check(
        program + "def @main(%n: Nat) -> Nat { @plus(Next(Next(Zero)), %n) }",
        lambda mod: IRModule(
            {**mod.functions, mod.get_global_var("main"): EVALUATE(mod)["main"]}, mod.type_definitions
        ),
        program + "def @main(%n: Nat) -> Nat { Next(Next(%n)) }",
    )
    made = EVALUATE(module(program + "def @main(%n: Nat) -> Nat { @plus(%n, Zero) }"))["main"]
    assert "@plus" in made.astext() and made.astext().count("@plus") == 1


def test_recursion_without_end_is_left_to_the_run() -> None:
    """The same arguments, swapped arguments, an undecided end."""
    loop = "def @loop(%a: float32, %b: float32) -> float32 { @loop(%b, %a) }\n"
    made = EVALUATE(module(loop + "def @main() -> float32 { @loop(1f, 2f) }"))["main"]
    assert "@loop" in made.astext()
    count = """
        def @count(%n: int32, %x: $T) -> $T { if (less(sum(%x), 0f)) { %x } else { @count(add(%n, 1), exp(%x)) } }
        def @main(%x: $T) -> $T { @count(0, %x) }
        """
    assert EVALUATE(module(count))["main"].astext().count("@count") == 1


def test_a_loop_with_a_known_end_is_unrolled() -> None:
    """The counter is gone."""
    check(
        """
        def @main(%x: $T) {
          let %loop = fn (%n: int32, %y: $T) -> $T {
            if (equal(%n, 0)) { %y } else { %loop(subtract(%n, 1), exp(%y)) }
          };
          %loop(3, %x)
        }
        """,
        EVALUATE,
        "def @main(%x: $T) { exp(exp(exp(%x))) }",
    )


@pytest.mark.parametrize("style", ["direct", "continuations"])
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_what_remains_computes_the_same(name: str, style: str) -> None:
    """In direct style and in that of continuations."""
    mod = infer_module(module(PROGRAMS[name]))
    x = np.array([0.5, -1.0, 0.25, 2.0], "float32")
    expected = Interpreter(mod).run(mod["main"], [x])
    if style == "continuations":
        mod = mod.copy()
        mod["main"] = un_cps(to_cps(mod["main"], mod))
    made = infer_module(EVALUATE(mod))
    np.testing.assert_allclose(Interpreter(made).run(made["main"], [x]), expected, rtol=1e-6)
    if name == "references":
        assert Feature.fRefCreate not in detect_feature(made["main"])


def test_long_chains() -> None:
    """Ten thousand operators remain as they are."""
    made = EVALUATE(IRModule({"main": chain(10_000)}))["main"]
    assert_structural_equal(made, chain(10_000))
