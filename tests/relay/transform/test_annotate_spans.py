"""AnnotateSpans."""

from tests.relay.transform.text import module

from tilewright.ir.structural import assert_structural_equal
from tilewright.relay.infer import infer_module
from tilewright.relay.transform import AnnotateSpans


def test_spans_point_into_the_text() -> None:
    """The program is the same."""
    mod = module("def @main(%x: $T) { add(exp(%x), %x) }").with_attr("note", 1)
    made = AnnotateSpans()(mod)
    assert_structural_equal(infer_module(made), infer_module(mod))
    span = made["main"].body.span
    assert span.source_name.name == "GeneratedSource"
    assert span.line > 1
    assert made.attrs["note"] == 1
