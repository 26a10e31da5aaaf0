"""DefuseOps."""

from tests.relay.transform.text import check, module

from tilewright.ir.structural import assert_structural_equal
from tilewright.relay.infer import infer_module
from tilewright.relay.transform import DefuseOps, FuseOps


def test_kernels_become_their_bodies() -> None:
    """One that is called twice, in both places."""
    check(
        """
        def @main(%x: $T) {
          %0 = fn (%a: $T, Primitive=1) { exp(exp(%a)) };
          add(%0(%x), %0(%0(%x)))
        }
        """,
        DefuseOps(),
        "def @main(%x: $T) { add(exp(exp(%x)), exp(exp(exp(exp(%x))))) }",
    )


def test_the_opposite_of_fusion() -> None:
    """There and back."""
    program = infer_module(
        module("def @main(%x: $T) { %0 = exp(%x); (add(%0, %x), sum(exp(%0), axis=[0])) }")
    )
    fused = FuseOps(2)(program)
    assert "Primitive" in fused.astext()
    assert_structural_equal(infer_module(DefuseOps()(fused)), program)
