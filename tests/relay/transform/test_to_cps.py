"""ToCPS and its opposite."""

from typing import Any

import numpy as np
import pytest
from tests.relay.programs import chain
from tests.relay.transform.text import module

from tilewright.ir.functor import post_order
from tilewright.ir.op import Op
from tilewright.ir.type import FuncType
from tilewright.relay import Call, Var, var
from tilewright.relay.infer import infer_module
from tilewright.relay.interpreter import Interpreter
from tilewright.relay.transform import to_cps, un_cps
from tilewright.support.errors import TilewrightError

PROGRAMS = {
    "operators": "def @main(%x: $T) { add(exp(%x), %x) }",
    "functions": """
        def @main(%x: $T) {
          let %twice = fn (%f: fn ($T) -> $T, %y: $T) -> $T { %f(%f(%y)) };
          let %more = fn (%y: $T) -> $T { add(%y, %x) };
          %twice(%more, %x)
        }
        """,
    "branches": """
        def @main(%x: $T) {
          let %c = less(sum(%x), 3f);
          let %y = if (%c) { exp(%x) } else { add(%x, %x) };
          add(%y, %y)
        }
        """,
    "recursion": """
        def @main(%x: $T) {
          let %grow = fn (%y: $T) -> $T { if (less(sum(%y), 100f)) { %grow(add(%y, %y)) } else { %y } };
          %grow(add(%x, 1f))
        }
        """,
    "references": """
        def @main(%x: $T) {
          let %r = ref(%x);
          let %bump = fn () -> () { ref_write(%r, add(ref_read(%r), %x)) };
          let %a = %bump();
          let %b = %bump();
          ref_read(%r)
        }
        """,
    "functions of the module": """
        def @count(%n: int32, %y: $T) -> $T { if (equal(%n, 0)) { %y } else { @count(subtract(%n, 1), exp(%y)) } }
        def @main(%x: $T) { @count(2, negative(%x)) }
        """,
    "data types": """
        type Shape { Plain($T), Pair($T, $T), }
        def @main(%x: $T) {
          let %s = Pair(%x, exp(%x));
          let %f = fn (%y: $T) -> $T { negative(%y) };
          let %v = match (%s) { Plain(%p) => %p, Pair(%p, %q) => %f(add(%p, %q)) };
          add(%v, %x)
        }
        """,
}


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_there_and_back_computes_the_same(name: str) -> None:
    """And no function gives a result before its last call."""
    mod = infer_module(module(PROGRAMS[name]))
    x = np.array([0.5, -1.0, 0.25, 2.0], "float32")
    expected = Interpreter(mod).run(mod["main"], [x])
    converted = mod.copy()
    function = to_cps(mod["main"], converted)
    assert isinstance(function.params[-1].type_annotation, FuncType)
    converted["main"] = un_cps(function)
    typed = infer_module(converted)
    np.testing.assert_allclose(Interpreter(typed).run(typed["main"], [x]), expected, rtol=1e-6)
    assert _calls_are_last(function.body)


def _calls_are_last(body: Any) -> bool:
    """True if the arguments of calls compute nothing by calling functions."""
    for node in post_order(body):
        if isinstance(node, Call) and not isinstance(node.op, Op):
            if any(isinstance(argument, Call) and isinstance(argument.op, Var) for argument in node.args):
                return False
    return True


def test_long_chains() -> None:
    """Ten thousand operators are still called directly."""
    function = to_cps(chain(10_000))
    assert len(function.params) == 2
    assert isinstance(function.type_params[0].name_hint, str)


def test_what_is_not_in_that_style_cannot_be_turned_back() -> None:
    """It says why."""
    x = var("x", shape=(4,))
    with pytest.raises(TilewrightError, match="continuation"):
        un_cps(chain(1))
    with pytest.raises(TilewrightError, match="a function is converted"):
        to_cps(x)  # type: ignore[arg-type]
