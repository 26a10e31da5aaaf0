"""Control flow on the virtual machine: branches, loops, recursion, closures, references, data types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.backend.vm.programs import check, machine, module, plain, random

import tilewright as tvm
from tilewright import relay
from tilewright.relay.loops import while_loop
from tilewright.relay.prelude import Prelude
from tilewright.runtime.vm import ADT, Reference
from tilewright.support.errors import RuntimeFailure

INT = relay.scalar_type("int32")


def number(name: str = "n") -> relay.Var:
    """A variable for a scalar."""
    return relay.var(name, shape=(), dtype="int32")


def list_of(value: Any) -> list[Any]:
    """The elements of a list of the prelude."""
    found = []
    while len(value) > 0:
        found.append(plain(value[0]))
        value = value[1]
    return found


@pytest.mark.parametrize("given", [0, 1])
def test_only_the_chosen_branch_runs(given: int) -> None:
    """Of two branches, with a value that both use computed once before."""
    condition, x = relay.var("c", shape=(), dtype="bool"), relay.var("x", shape=(3,))
    shared = relay.exp(x)
    function = relay.Function([condition, x], relay.If(condition, shared + x, relay.negative(shared)))
    check(function, np.asarray(bool(given)), random(3))


def test_a_branch_within_a_value() -> None:
    """An if that is an operand gives its value to what follows."""
    n = number()
    zero, one, two = (relay.const(value) for value in (0, 1, 2))
    inner = relay.If(relay.equal(n, zero), one, two)
    function = relay.Function([n], relay.If(relay.less(inner, two), inner + n, inner * n))
    found = machine(module(function))
    assert [int(found.run(value).numpy()) for value in (0, 1, 5)] == [1, 2, 10]


def test_ten_thousand_iterations() -> None:
    """A loop is a function that calls itself last: it runs in one frame, whatever the number of turns."""
    i, total = number("i"), relay.var("total", shape=(2,))
    loop = while_loop(
        lambda i, total: relay.less(i, relay.const(10000)),
        [i, total],
        lambda i, total: (i + relay.const(1), total + relay.const(0.5)),
    )
    start = relay.var("start", shape=(2,))
    found = machine(module(relay.Function([start], loop(relay.const(0), start))))
    found.set_limits(most_frames=4)
    turns, value = plain(found.run(np.zeros(2, "float32")))
    assert int(turns) == 10000
    np.testing.assert_array_equal(value, [5000.0, 5000.0])


def sum_to() -> tvm.IRModule:
    """0 + 1 + ... + n, by recursion that is not the last thing a call does."""
    made = tvm.IRModule()
    name, n, m = relay.GlobalVar("sum"), number(), number("m")
    step = n + name(n - relay.const(1))
    made[name] = relay.Function([n], relay.If(relay.equal(n, relay.const(0)), relay.const(0), step), INT)
    made["main"] = relay.Function([m], name(m))
    return made


def test_deep_recursion() -> None:
    """Frames are on the heap; a limit stops recursion that does not end."""
    found = machine(sum_to())
    assert int(found.run(10000).numpy()) == 50005000
    found.set_limits(most_frames=1000)
    with pytest.raises(RuntimeFailure, match="nested more than 1000 deep: @sum does not end"):
        found.run(2000)
    assert int(found.run(500).numpy()) == 125250


def test_mutual_recursion() -> None:
    """Two functions of the module call each other."""
    made = tvm.IRModule()
    even, odd, n, m = relay.GlobalVar("even"), relay.GlobalVar("odd"), number(), number("m")
    yes, no, zero, one = relay.const(True), relay.const(False), relay.const(0), relay.const(1)
    made[even] = relay.Function(
        [n], relay.If(relay.equal(n, zero), yes, odd(n - one)), relay.scalar_type("bool")
    )
    made[odd] = relay.Function(
        [m], relay.If(relay.equal(m, zero), no, even(m - one)), relay.scalar_type("bool")
    )
    k = number("k")
    made["main"] = relay.Function([k], even(k))
    found = machine(made)
    assert [bool(found.run(value).numpy()) for value in (0, 7, 1000)] == [True, False, True]


def test_a_closure_keeps_what_was_around_it() -> None:
    """Functions are values: given to others, returned, called later."""
    x, y = number("x"), number("y")
    made = tvm.IRModule()
    adder = relay.GlobalVar("adder")
    made[adder] = relay.Function([x], relay.Function([y], x + y, INT), relay.FuncType([INT], INT))
    a, f = number("a"), relay.var("f", relay.FuncType([INT], INT))
    twice = relay.var("twice", relay.FuncType([relay.FuncType([INT], INT), INT], INT))
    z = number("z")
    body = relay.Let(twice, relay.Function([f, z], f(f(z)), INT), twice(adder(a), relay.const(10)))
    made["main"] = relay.Function([a], body)
    assert int(machine(made).run(4).numpy()) == 18


def test_a_local_function_that_calls_itself_and_is_a_value_too() -> None:
    """By its own name within, and as a closure outside."""
    f, g = relay.var("f", relay.FuncType([INT], INT)), relay.var("g", relay.FuncType([INT], INT))
    n, k, m = number("n"), number("k"), number("m")
    step = relay.If(relay.less(n, relay.const(1)), k, relay.const(2) + f(n - relay.const(1)))
    apply = relay.Function([g], g(relay.const(3)), INT)
    body = relay.Let(f, relay.Function([n], step, INT), f(m) + apply(f))
    found = machine(module(relay.Function([k, m], body)))
    assert int(found.run(100, 2).numpy()) == 104 + 106


def test_a_closure_as_a_result() -> None:
    """The host calls it like any function; a function of the host can be an argument."""
    x, y, f = number("x"), number("y"), relay.var("f", relay.FuncType([INT], INT))
    found = machine(module(relay.Function([x], relay.Function([y], x * y, INT))))
    times_six = found.run(6)
    assert int(times_six(tvm.nd.array(np.int32(7))).numpy()) == 42
    applied = machine(module(relay.Function([f, x], f(x) + relay.const(1))))
    assert int(applied.run(lambda value: tvm.nd.array(np.int32(value.numpy() * 3)), 5).numpy()) == 16


def test_references() -> None:
    """What is written is what is read next, in the order of evaluation."""
    x = number("x")
    ref = relay.var("ref", relay.RefType(INT))
    ignored, before = relay.var("ignored", relay.TupleType([])), number("before")
    body = relay.Let(
        ref,
        relay.RefCreate(x),
        relay.Let(
            before,
            relay.RefRead(ref),
            relay.Let(
                ignored,
                relay.RefWrite(ref, relay.const(7)),
                relay.Tuple([before, relay.RefRead(ref), ref]),
            ),
        ),
    )
    first, second, place = machine(module(relay.Function([x], body))).run(3)
    assert (int(first.numpy()), int(second.numpy())) == (3, 7)
    assert isinstance(place, Reference) and int(place.value.numpy()) == 7


def test_lists_of_the_prelude() -> None:
    """Generic functions on lists: map, foldl, length; closures given to them."""
    made = tvm.IRModule()
    prelude = Prelude(made)
    _, cons, nil = prelude.mod.get_type("List")
    a, x, total, item = number("a"), number("x"), number("total"), number("item")
    items = cons(a, cons(relay.const(2), cons(relay.const(3), nil())))
    scaled = made.get_global_var("map")(relay.Function([x], x * a), items)
    folded = made.get_global_var("foldl")(relay.Function([total, item], total + item), relay.const(0), items)
    made["main"] = relay.Function([a], relay.Tuple([scaled, folded, made.get_global_var("length")(items)]))
    found, total_of, length = machine(made).run(5)
    assert isinstance(found, ADT) and found.tag == cons.tag
    assert list_of(found) == [25, 10, 15]
    assert int(total_of.numpy()) == 10
    assert int(length.numpy()) == 3


def test_patterns() -> None:
    """Nested constructors, wildcards and variables; clauses are tried in order."""
    made = tvm.IRModule()
    prelude = Prelude(made)
    kind, cons, nil = prelude.mod.get_type("List")
    items = relay.var("items", relay.TypeCall(kind, [INT]))
    first, second, rest = number("first"), number("second"), relay.var("rest", relay.TypeCall(kind, [INT]))
    two = relay.PatternConstructor(
        cons,
        [
            relay.PatternVar(first),
            relay.PatternConstructor(cons, [relay.PatternVar(second), relay.PatternWildcard()]),
        ],
    )
    one = relay.PatternConstructor(cons, [relay.PatternWildcard(), relay.PatternVar(rest)])
    clauses = [
        relay.Clause(two, first * relay.const(10) + second),
        relay.Clause(one, relay.const(-1)),
        relay.Clause(relay.PatternWildcard(), relay.const(-2)),
    ]
    made["main"] = relay.Function([items], relay.Match(items, clauses))
    found = machine(made)

    def as_list(*values: int) -> ADT:
        end = ADT(nil.tag, [])
        for value in reversed(values):
            end = ADT(cons.tag, [tvm.nd.array(np.int32(value)), end])
        return end

    given = [as_list(), as_list(4), as_list(4, 5), as_list(4, 5, 6)]
    assert [int(found.run(one).numpy()) for one in given] == [-2, -1, 45, 45]


def test_a_match_that_no_clause_fits() -> None:
    """An incomplete match stops the program with a message."""
    made = tvm.IRModule()
    kind, cons, nil = Prelude(made).mod.get_type("List")
    items, first = relay.var("items", relay.TypeCall(kind, [INT])), number("first")
    pattern = relay.PatternConstructor(cons, [relay.PatternVar(first), relay.PatternWildcard()])
    made["main"] = relay.Function([items], relay.Match(items, [relay.Clause(pattern, first)], complete=False))
    with pytest.raises(RuntimeFailure, match="no clause of a match fits the value"):
        machine(made).run(ADT(nil.tag, []))


def test_constructors_as_values() -> None:
    """A constructor given to a function is called there."""
    made = tvm.IRModule()
    prelude = Prelude(made)
    _, cons, nil = prelude.mod.get_type("List")
    _, some, _ = prelude.mod.get_type("Option")
    a = number("a")
    items = cons(a, cons(relay.const(2), nil()))
    made["main"] = relay.Function([a], made.get_global_var("map")(some, items))
    found = machine(made).run(1)
    assert [part[0].tolist() for part in list_of(found)] == [1, 2]
    assert found[0].tag == some.tag


@pytest.mark.unguarded  # a process cannot map so many guarded tensors
def test_a_long_list() -> None:
    """A list of twenty thousand elements is built, and ends, without deep recursion in C."""
    made = tvm.IRModule()
    kind, cons, nil = Prelude(made).mod.get_type("List")
    typed = relay.TypeCall(kind, [INT])
    build, n, items, m = relay.GlobalVar("build"), number(), relay.var("items", typed), number("m")
    made[build] = relay.Function(
        [n, items],
        relay.If(relay.equal(n, relay.const(0)), items, build(n - relay.const(1), cons(n, items))),
        typed,
    )
    made["main"] = relay.Function([m], build(m, nil()))
    found = machine(made)
    assert len(list_of(found.run(20000))) == 20000


def test_nested_tuples() -> None:
    """Tuples go into kernels, through functions and out again."""
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(4, 3))
    pair = relay.var("pair", relay.TupleType([relay.TensorType((2, 3)), relay.TensorType((4, 3))]))
    joined = relay.Function([pair], relay.Tuple([relay.concatenate(pair, 0), relay.Tuple([pair, x])]))
    check(relay.Function([x, y], joined(relay.Tuple([x, y]))), random(2, 3), random(4, 3))


def test_a_constant_result_is_a_copy() -> None:
    """Writing into a result does not change the program."""
    x = relay.var("x", shape=(2,))
    kept = relay.const(np.asarray([1.0, 2.0], "float32"))
    found = machine(module(relay.Function([x], relay.Tuple([kept, relay.Tuple([x + x, kept])]))))
    for _ in range(2):
        first, (_, second) = found.run(random(2))
        np.testing.assert_array_equal(first.numpy(), [1.0, 2.0])
        np.testing.assert_array_equal(second.numpy(), [1.0, 2.0])
        first.copyfrom(np.zeros(2, "float32"))
        second.copyfrom(np.zeros(2, "float32"))
