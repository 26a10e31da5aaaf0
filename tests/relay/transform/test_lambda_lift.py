"""LambdaLift."""

from tests.relay.transform.text import check, module, unchanged

from tilewright.ir.functor import post_order
from tilewright.relay import Function
from tilewright.relay.transform import LambdaLift


def test_a_function_without_surroundings_becomes_one_of_the_module() -> None:
    """Its name stands in its place."""
    check(
        "def @main(%x: $T) { let %f = fn (%y: $T) -> $T { exp(%y) }; %f(%x) }",
        LambdaLift(),
        """
        def @main(%x: $T) { let %f = @main_lifted_0; %f(%x) }
        def @main_lifted_0(%y: $T) -> $T { exp(%y) }
        """,
    )


def test_what_a_function_uses_becomes_its_surroundings_arguments() -> None:
    """It becomes a function that gives the function."""
    check(
        "def @main(%x: $T, %z: $T) { let %f = fn (%y: $T) -> $T { add(%y, %z) }; %f(%x) }",
        LambdaLift(),
        """
        def @main(%x: $T, %z: $T) { let %f = @main_lifted_0(%z); %f(%x) }
        def @main_lifted_0(%z: $T, Closure=1) -> fn ($T) -> $T { fn (%y: $T) -> $T { add(%y, %z) } }
        """,
    )


def test_recursion_goes_through_the_module() -> None:
    """With what the function uses, or by its name alone."""
    check(
        "def @main(%x: $T) { let %f = fn (%y: $T) -> $T { %f(add(%y, %x)) }; %f(%x) }",
        LambdaLift(),
        """
        def @main(%x: $T) { let %f = @main_lifted_0(%x); %f(%x) }
        def @main_lifted_0(%x: $T, Closure=1) -> fn ($T) -> $T {
          fn (%y: $T) -> $T { %0 = @main_lifted_0(%x); %0(add(%y, %x)) }
        }
        """,
    )
    check(
        "def @main(%x: $T) { let %f = fn (%y: $T) -> $T { %f(exp(%y)) }; %f(%x) }",
        LambdaLift(),
        """
        def @main(%x: $T) { let %f = @main_lifted_0; %f(%x) }
        def @main_lifted_0(%y: $T) -> $T { @main_lifted_0(exp(%y)) }
        """,
    )


def test_functions_within_functions() -> None:
    """Each is lifted; what the inner one uses goes through the outer one."""
    program = """
        def @main(%x: $T) {
          let %f = fn (%y: $T) { let %g = fn (%z: $T) -> $T { add(%z, add(%y, %x)) }; %g(%y) };
          %f(%x)
        }
        """
    made = LambdaLift()(module(program))
    assert sorted(name.name_hint for name in made.functions) == ["main", "main_lifted_0", "main_lifted_1"]
    assert not [node for node in post_order(made["main"].body) if isinstance(node, Function)]
    again = LambdaLift()(made)
    assert len(again.functions) == 3


def test_kernels_stay() -> None:
    """Primitive functions are what is compiled."""
    unchanged(
        "def @main(%x: $T) { %0 = fn (%y: $T, Primitive=1) -> $T { exp(%y) }; %0(%x) }",
        LambdaLift(),
    )
