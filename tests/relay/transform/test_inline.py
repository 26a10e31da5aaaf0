"""Inline."""

from tests.relay.programs import chain
from tests.relay.transform.text import check, unchanged

from tilewright.ir.module import IRModule
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay import Function, GlobalVar, var
from tilewright.relay.transform import Inline


def test_calls_become_bodies() -> None:
    """Through several functions; those that are inlined go."""
    check(
        """
        def @inner(%x: $T, Inline=1) -> $T { exp(%x) }
        def @outer(%x: $T, Inline=1) -> $T { add(@inner(%x), %x) }
        def @kept(%x: $T) -> $T { @inner(%x) }
        def @main(%x: $T) { multiply(@outer(@outer(%x)), @kept(%x)) }
        """,
        Inline(),
        """
        def @kept(%x: $T) -> $T { exp(%x) }
        def @main(%x: $T) {
          %0 = add(exp(%x), %x);
          multiply(add(exp(%0), %0), @kept(%x))
        }
        """,
    )


def test_recursive_functions_stay() -> None:
    """Their calls have no end."""
    unchanged(
        """
        def @loop(%x: $T, Inline=1) -> $T { @loop(exp(%x)) }
        def @main(%x: $T) { @loop(%x) }
        """,
        Inline(),
    )


def test_arguments_of_functions_with_branches_are_computed_before() -> None:
    """Once, whichever branch runs."""
    check(
        """
        def @choose(%c: bool, %x: $T, Inline=1) -> $T { if (%c) { add(%x, %x) } else { %x } }
        def @main(%c: bool, %x: $T) { @choose(%c, exp(%x)) }
        """,
        Inline(),
        """
        def @main(%c: bool, %x: $T) {
          let %a: $T = exp(%x);
          if (%c) { add(%a, %a) } else { %a }
        }
        """,
    )


def test_arguments_with_effects_keep_their_place() -> None:
    """A read does not move past a write in the body, and a write is not lost with a parameter that nothing uses."""
    check(
        """
        def @f(%r: ref($T), %old: $T, %unused: (), Inline=1) -> $T { let %w = ref_write(%r, exp(%old)); %old }
        def @main(%r: ref($T), %x: $T) { @f(%r, ref_read(%r), ref_write(%r, %x)) }
        """,
        Inline(),
        """
        def @main(%r: ref($T), %x: $T) {
          let %old: $T = ref_read(%r);
          let %unused: () = ref_write(%r, %x);
          let %w = ref_write(%r, exp(%old));
          %old
        }
        """,
    )


def test_bodies_with_bindings_in_two_places() -> None:
    """Each copy binds its own variables."""
    check(
        """
        def @f(%x: $T, Inline=1) -> $T { let %a = exp(%x); add(%a, %a) }
        def @main(%x: $T) { (@f(%x), @f(%x)) }
        """,
        Inline(),
        """
        def @main(%x: $T) {
          ((let %a = exp(%x); add(%a, %a)), (let %b = exp(%x); add(%b, %b)))
        }
        """,
    )


def test_functions_as_values() -> None:
    """Become literals."""
    check(
        """
        def @f(%x: $T, Inline=1) -> $T { exp(%x) }
        def @main() { @f }
        """,
        Inline(),
        "def @main() { fn (%x: $T, Inline=1) -> $T { exp(%x) } }",
    )


def test_long_chains() -> None:
    """A body of ten thousand operators."""
    callee = chain(10_000).with_attr("Inline", 1)
    x = var("x", shape=(4,))
    name = GlobalVar("f")
    made = Inline()(IRModule({name: callee, "main": Function([x], name(x))}))
    assert_structural_equal(made["main"], chain(10_000))
