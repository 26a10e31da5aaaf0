"""Graph-level programs run as Python programs."""

import ast

import numpy as np

from tilewright import relay
from tilewright.ir.module import IRModule
from tilewright.relay.backend.interpreter import ConstructorValue
from tilewright.relay.testing import run_as_python, to_python

LISTS = """
#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil }

def @total(%list: List[int32]) -> int32 {
  match (%list) {
    Cons(%first, %rest) => { add(%first, @total(%rest)) },
    Nil => { 0 },
  }
}
"""


def test_effects_keep_their_order() -> None:
    """A reference is written between two reads of it, within a tuple; only the chosen branch runs."""
    reference, ignored = relay.Var("r"), relay.Var("_")
    write = relay.Let(ignored, relay.RefWrite(reference, relay.const(2)), relay.RefRead(reference))
    chosen = relay.If(relay.const(False), write, relay.RefRead(reference))
    parts = relay.Tuple([chosen, write, relay.RefRead(reference)])
    made = run_as_python(relay.Let(reference, relay.RefCreate(relay.const(1)), parts))
    assert [int(part.numpy()) for part in made] == [1, 2, 2]


def test_data_types_and_recursion() -> None:
    """Constructors, patterns, and a function that calls itself, by a global or a local name."""
    module = relay.parse(LISTS)
    _, cons, nil = module.get_type("List")
    values = cons(relay.const(3), cons(relay.const(4), nil()))
    total = module.get_global_var("total")
    assert int(run_as_python(total(values), module).numpy()) == 7
    found = run_as_python(values, module)
    assert isinstance(found, ConstructorValue) and found.tag == cons.tag
    count, n = relay.Var("count"), relay.Var("n", relay.scalar_type("int32"))
    again = relay.If(relay.equal(n, relay.const(0)), n, count(n - relay.const(1)))
    body = relay.Function([n], again, relay.scalar_type("int32"))
    assert int(run_as_python(relay.Let(count, body, count(relay.const(5)))).numpy()) == 0


def test_operators_with_tuples() -> None:
    """Operators take and give tuples; the program is Python's syntax tree."""
    data = np.arange(6, dtype="float32").reshape(2, 3)
    halves = relay.split(relay.const(data), 2)
    made = run_as_python(halves.astuple())
    np.testing.assert_array_equal(made[1].numpy(), data[1:])
    joined = relay.concatenate([halves[1], halves[0]], 0)
    np.testing.assert_array_equal(run_as_python(joined).numpy(), data[::-1])
    assert "_run_operator" in ast.unparse(to_python(joined, IRModule()))
