"""SpanCheck: every expression of a module knows where it came from."""

import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.support.errors import VerifyError

TEXT = """
def @main(%x: Tensor[(2, 3), float32], %c: bool) {
  let %y = if (%c) { exp(%x) } else { -%x };
  (%y, 1f).0
}
"""


def test_parsed_modules_pass() -> None:
    """What was read from text has spans throughout."""
    module = tvm.parser.parse(TEXT)
    assert tvm.parser.SpanCheck()(module) is module


def test_an_expression_without_span_fails() -> None:
    """One expression without a place fails the check, and is shown."""
    function = tvm.parser.parse(TEXT)["main"]
    bare = relay.exp(function.params[0]).replace(span=None)
    with pytest.raises(VerifyError, match="a Call has no span"):
        tvm.parser.SpanCheck()(tvm.IRModule.from_expr(relay.Function(function.params, bare)))
