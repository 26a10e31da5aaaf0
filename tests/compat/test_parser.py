"""The parser under its public names."""

import tilewright as tvm
from tilewright import relay


def test_public_functions() -> None:
    """Modules come with their types; expressions are as they are written; both can be printed and read again."""
    module = tvm.parser.parse(
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { exp(%x) }', "model.rly"
    )
    assert module["main"].ret_type == relay.TensorType((2,))
    assert module["main"].body.span.source_name.name == "model.rly"
    again = tvm.parser.fromtext(module.astext())
    assert tvm.ir.structural_equal(again, module)
    expr = tvm.parser.parse_expr("1 + 2")
    assert str(expr) == "add(1, 2)"
    assert tvm.parser.SpanCheck()(module) is module


def test_names_of_the_graph_level() -> None:
    """``relay`` gives the same functions."""
    assert relay.parse is tvm.parser.parse and relay.parse_expr is tvm.parser.parse_expr
    assert relay.fromtext is tvm.parser.fromtext and relay.SpanCheck is tvm.parser.SpanCheck
