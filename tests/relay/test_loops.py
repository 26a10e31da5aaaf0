"""Loops as recursive functions."""

from tests.relay.programs import call

from tilewright.ir.structural import assert_structural_equal
from tilewright.relay import Function, If, Let, Tuple, Var, const, var
from tilewright.relay.analysis import Feature, detect_feature, well_formed
from tilewright.relay.loops import for_loop, while_loop

i, total = var("i", shape=(), dtype="int32"), var("total", shape=())


def test_a_while_loop_is_a_function_that_calls_itself() -> None:
    """While the condition holds with the next values, else it gives the values as a tuple."""
    loop = while_loop(
        lambda a, b: call("less", a, const(10)),
        [i, total],
        lambda a, b: [call("add", a, const(1)), call("add", b, b)],
    )
    name, a, b = Var("w"), var("a", shape=(), dtype="int32"), var("b", shape=())
    body = If(call("less", a, const(10)), name(call("add", a, const(1)), call("add", b, b)), Tuple([a, b]))
    assert_structural_equal(loop, Let(name, Function([a, b], body), name))
    assert [parameter.name_hint for parameter in loop.value.params] == ["i", "total"]  # type: ignore[attr-defined]


def test_a_for_loop_counts() -> None:
    """It gives the last values, without the counter."""
    call("less", i, i), call("add", i, i)
    made = for_loop(10, [total], lambda position, value: [call("add", value, value)])
    assert len(made) == 1
    assert well_formed(Function([total], made))
    assert Feature.fLetRec in detect_feature(made)
