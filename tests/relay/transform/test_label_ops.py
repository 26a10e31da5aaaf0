"""LabelOps."""

from tests.relay.transform.text import module

from tilewright.ir.functor import post_order
from tilewright.relay import Function
from tilewright.relay.transform import LabelOps


def test_kernels_of_one_structure_have_one_label() -> None:
    """Others have another; what is not a kernel has none."""
    mod = LabelOps()(
        module(
            """
            def @main(%x: $T) {
              %0 = fn (%a: $T, Primitive=1) { exp(%a) };
              %1 = fn (%b: $T, Primitive=1) { exp(%b) };
              %2 = fn (%c: $T, Primitive=1) { add(%c, %c) };
              %3 = fn (%d: $T) { %d };
              %3(%2(%1(%0(%x))))
            }
            """
        )
    )
    labels = [node.attrs.get("hash") for node in post_order(mod["main"].body) if isinstance(node, Function)]
    found = [label for label in labels if label is not None]
    assert len(labels) == 4 and len(found) == 3 and len(set(found)) == 2
    assert all(len(label) == 16 for label in found)
    assert LabelOps()(mod) is mod
