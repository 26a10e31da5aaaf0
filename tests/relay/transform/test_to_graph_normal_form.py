"""ToGraphNormalForm."""

from tests.relay.programs import chain, let_chain
from tests.relay.transform.text import check, unchanged

from tilewright.ir.module import IRModule
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay.analysis import Feature, detect_feature
from tilewright.relay.transform import ToANormalForm, ToGraphNormalForm


def test_values_move_to_their_uses() -> None:
    """And stay shared."""
    made = check(
        "def @main(%x: $T) { let %a = exp(%x); let %b = add(%a, %a); multiply(%b, %a) }",
        ToGraphNormalForm(),
        "def @main(%x: $T) { %0 = exp(%x); multiply(add(%0, %0), %0) }",
    )
    assert made["main"].body.args[0].args[0] is made["main"].body.args[1]


def test_recursive_functions_keep_their_names() -> None:
    """They cannot stand where they are used."""
    unchanged("def @main(%x: $T) { let %f = fn (%y: $T) -> $T { %f(%y) }; %f(%x) }", ToGraphNormalForm())
    check(
        "def @main(%x: $T) { let %f = fn (%y: $T) { exp(%y) }; %f(%x) }",
        ToGraphNormalForm(),
        "def @main(%x: $T) { %0 = fn (%y: $T) { exp(%y) }; %0(%x) }",
    )


def test_state_is_read_and_changed_where_it_was() -> None:
    """Such values keep their place."""
    unchanged(
        "def @main(%r: ref($T), %x: $T) { let %v = ref_read(%r); let %w = ref_write(%r, %x); add(%v, %x) }",
        ToGraphNormalForm(),
    )


def test_the_opposite_of_a_normal_form() -> None:
    """There and back, ten thousand operators."""
    function = chain(10_000)
    back = ToGraphNormalForm()(ToANormalForm()(IRModule({"main": function})))["main"]
    assert Feature.fLet not in detect_feature(back)
    assert_structural_equal(back, function)
    assert_structural_equal(ToGraphNormalForm()(IRModule({"main": let_chain(10_000)}))["main"], function)
