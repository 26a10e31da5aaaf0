"""ToANormalForm."""

from tests.relay.programs import call, chain, let_chain
from tests.relay.transform.text import check, unchanged

from tilewright.ir.module import IRModule
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay import Let, Tuple, Var, const, var
from tilewright.relay.analysis import Feature, check_basic_block_normal_form, detect_feature
from tilewright.relay.transform import ToANormalForm, ToANormalFormExpr


def test_values_are_bound_in_the_order_of_evaluation() -> None:
    """Constants too."""
    check(
        "def @main() { add(1, multiply(2, 3)) }",
        ToANormalForm(),
        """
        def @main() {
          let %a = 1; let %b = 2; let %c = 3;
          let %d = multiply(%b, %c);
          let %e = add(%a, %d);
          %e
        }
        """,
    )


def test_what_is_shared_is_bound_once() -> None:
    """Before the first use."""
    x = var("x", shape=(4,))
    shared = call("exp", x)
    a, b = Var("a"), Var("b")
    expected = Let(a, call("exp", x), Let(b, Tuple([a, a]), b))
    assert_structural_equal(ToANormalFormExpr(Tuple([shared, shared])), expected)


def test_branches_bind_their_own() -> None:
    """What both use is bound before them."""
    check(
        """
        def @main(%c: bool, %x: $T) {
          %0 = exp(%x);
          if (%c) { add(%0, %x) } else { %0 }
        }
        """,
        ToANormalForm(),
        """
        def @main(%c: bool, %x: $T) {
          let %a = exp(%x);
          let %b = if (%c) { let %d = add(%a, %x); %d } else { %a };
          %b
        }
        """,
    )


def test_lets_keep_their_names_and_nested_ones_come_first() -> None:
    """A value that has a name gets no other."""
    check(
        "def @main(%x: $T) { let %a = (let %b = exp(%x); add(%b, %b)); add(%a, %x) }",
        ToANormalForm(),
        """
        def @main(%x: $T) {
          let %b = exp(%x);
          let %c = add(%b, %b);
          let %a = %c;
          let %d = add(%a, %x);
          %d
        }
        """,
    )


def test_functions_are_values() -> None:
    """Recursive ones keep their name."""
    check(
        "def @main(%x: $T) { let %f = fn (%y: $T) -> $T { %f(exp(%y)) }; %f(%x) }",
        ToANormalForm(),
        """
        def @main(%x: $T) {
          let %f = fn (%y: $T) -> $T { let %a = exp(%y); let %b = %f(%a); %b };
          let %c = %f(%x);
          %c
        }
        """,
    )


def test_the_normal_form_stays() -> None:
    """Doing it again changes nothing."""
    unchanged("def @main(%x: $T) { let %a = exp(%x); let %b = add(%a, %a); %b }", ToANormalForm())


def test_references_keep_their_order() -> None:
    """Reads and writes are bound where they stood."""
    check(
        "def @main(%x: $T) { let %r = ref(%x); let %w = ref_write(%r, exp(ref_read(%r))); ref_read(%r) }",
        ToANormalForm(),
        """
        def @main(%x: $T) {
          let %r = ref(%x);
          let %a = ref_read(%r);
          let %b = exp(%a);
          let %w = ref_write(%r, %b);
          let %c = ref_read(%r);
          %c
        }
        """,
    )


def test_long_chains() -> None:
    """Ten thousand operators become ten thousand lets."""
    made = ToANormalForm()(IRModule({"main": chain(10_000)}))["main"]
    assert_structural_equal(made, let_chain(10_000))
    assert Feature.fGraph not in detect_feature(made)
    assert check_basic_block_normal_form(made)
    assert_structural_equal(ToANormalFormExpr(const(1)), Let(a := Var("a"), const(1), a))
