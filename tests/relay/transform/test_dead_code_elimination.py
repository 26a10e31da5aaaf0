"""DeadCodeElimination."""

from tests.relay.programs import call, let_chain
from tests.relay.transform.text import check, unchanged

from tilewright.ir.module import IRModule
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay import Function, Let, Var, var
from tilewright.relay.transform import DeadCodeElimination


def test_unused_values_go() -> None:
    """With what only they use."""
    check(
        """
        def @main(%x: $T) {
          let %a = exp(%x);
          let %b = exp(%a);
          let %c = add(%x, %x);
          %c
        }
        """,
        DeadCodeElimination(),
        "def @main(%x: $T) { let %c = add(%x, %x); %c }",
    )


def test_functions_that_only_call_themselves_go() -> None:
    """Used ones stay."""
    check(
        """
        def @main(%x: $T) {
          let %dead = fn (%y: $T) -> $T { %dead(%y) };
          let %live = fn (%y: $T) -> $T { %live(%y) };
          %live(%x)
        }
        """,
        DeadCodeElimination(),
        "def @main(%x: $T) { let %live = fn (%y: $T) -> $T { %live(%y) }; %live(%x) }",
    )


def test_effects_stay() -> None:
    """A write is not a value; a read of which nothing is used is."""
    check(
        """
        def @main(%r: ref($T), %x: $T) {
          let %w = ref_write(%r, %x);
          let %v = ref_read(%r);
          %x
        }
        """,
        DeadCodeElimination(),
        "def @main(%r: ref($T), %x: $T) { let %w = ref_write(%r, %x); %x }",
    )


def test_calls_of_unknown_functions_stay() -> None:
    """They may have effects; known functions without any go."""
    unchanged(
        "def @main(%f: fn ($T) -> $T, %x: $T) { let %a = %f(%x); %x }",
        DeadCodeElimination(),
    )
    check(
        """
        def @calm(%x: $T) -> $T { exp(%x) }
        def @main(%x: $T) { let %a = @calm(%x); %x }
        """,
        DeadCodeElimination(),
        """
        def @calm(%x: $T) -> $T { exp(%x) }
        def @main(%x: $T) { %x }
        """,
    )


def test_values_that_are_used_once_move() -> None:
    """Into functions too; those that are used twice, or read state, stay."""
    check(
        """
        def @main(%x: $T, %r: ref($T)) {
          let %a = exp(%x);
          let %b = add(%x, %x);
          let %v = ref_read(%r);
          let %f = fn (%y: $T) { add(%a, add(%y, add(%b, %b))) };
          add(%f(%x), add(%f(%v), %x))
        }
        """,
        DeadCodeElimination(inline_once=True),
        """
        def @main(%x: $T, %r: ref($T)) {
          let %b = add(%x, %x);
          let %v = ref_read(%r);
          let %f = fn (%y: $T) { add(exp(%x), add(%y, add(%b, %b))) };
          add(%f(%x), add(%f(%v), %x))
        }
        """,
    )


def test_long_chains() -> None:
    """Ten thousand live lets stay or merge, ten thousand dead ones go."""
    live = IRModule({"main": let_chain(10_000)})
    assert DeadCodeElimination()(live) is live
    merged = DeadCodeElimination(inline_once=True)(live)["main"]
    depth, current = 0, merged.body
    while current is not merged.params[0]:
        depth, current = depth + 1, current.args[0]
    assert depth == 10_000
    x, dead = var("x", shape=(4,)), Var("dead")
    body = let_chain(10_000)
    unused = Let(dead, call("exp", x), x)
    assert_structural_equal(
        DeadCodeElimination()(IRModule({"main": Function([x], unused)}))["main"], Function([x], x)
    )
    chain_end = body.replace(body=_with_result(body.body, body.params[0]))
    made = DeadCodeElimination()(IRModule({"main": chain_end}))["main"]
    assert made.body is made.params[0]


def _with_result(let: object, result: object) -> object:
    """The same lets around another result."""
    chain = []
    while isinstance(let, Let):
        chain.append(let)
        let = let.body
    for one in reversed(chain):
        result = one.replace(body=result)
    return result
