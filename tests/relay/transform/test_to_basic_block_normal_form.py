"""ToBasicBlockNormalForm."""

from tests.relay.programs import chain, let_chain
from tests.relay.transform.text import check, unchanged

from tilewright.ir.module import IRModule
from tilewright.relay.analysis import check_basic_block_normal_form
from tilewright.relay.transform import ToBasicBlockNormalForm


def test_what_branches_share_is_bound_before_them() -> None:
    """What one alone uses stays in it, what the block alone uses stays a graph."""
    made = check(
        """
        def @main(%c: bool, %x: $T) {
          %0 = exp(%x);
          %1 = add(%0, %x);
          if (%c) { add(%1, %0) } else { multiply(%1, exp(%x)) }
        }
        """,
        ToBasicBlockNormalForm(),
        """
        def @main(%c: bool, %x: $T) {
          let %a = exp(%x);
          let %b = add(%a, %x);
          if (%c) { add(%b, %a) } else { multiply(%b, exp(%x)) }
        }
        """,
    )
    assert check_basic_block_normal_form(made["main"])


def test_what_nested_branches_share_is_bound_in_the_outer_one() -> None:
    """Not before it."""
    check(
        """
        def @main(%c: bool, %x: $T) {
          if (%c) {
            %0 = exp(%x);
            if (%c) { %0 } else { add(%0, %0) }
          } else { %x }
        }
        """,
        ToBasicBlockNormalForm(),
        """
        def @main(%c: bool, %x: $T) {
          if (%c) {
            let %a = exp(%x);
            if (%c) { %a } else { add(%a, %a) }
          } else { %x }
        }
        """,
    )


def test_a_binding_comes_after_what_it_uses() -> None:
    """Within the lets of the block."""
    check(
        """
        def @main(%c: bool, %x: $T) {
          let %v = exp(%x);
          %0 = add(%v, %x);
          if (%c) { %0 } else { exp(%0) }
        }
        """,
        ToBasicBlockNormalForm(),
        """
        def @main(%c: bool, %x: $T) {
          let %v = exp(%x);
          let %a = add(%v, %x);
          if (%c) { %a } else { exp(%a) }
        }
        """,
    )


def test_functions_share_through_lets() -> None:
    """A function's body is a block."""
    check(
        "def @main(%x: $T) { %0 = exp(%x); %1 = fn () { add(%0, %0) }; add(%0, %1()) }",
        ToBasicBlockNormalForm(),
        "def @main(%x: $T) { let %a = exp(%x); %1 = fn () { add(%a, %a) }; add(%a, %1()) }",
    )


def test_programs_without_such_sharing_stay() -> None:
    """The same object, however long."""
    unchanged("def @main(%x: $T) { %0 = exp(%x); add(%0, %0) }", ToBasicBlockNormalForm())
    for function in (chain(10_000), let_chain(10_000)):
        mod = IRModule({"main": function})
        assert ToBasicBlockNormalForm()(mod) is mod
