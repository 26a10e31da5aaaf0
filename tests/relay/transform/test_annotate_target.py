"""AnnotateTarget."""

from typing import Any

from tests.relay.programs import call, chain
from tests.relay.transform.regions import begin, end, supported

from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay import Function, If, Let, Tuple, TupleGetItem, var
from tilewright.relay.analysis import list_op_freqs
from tilewright.relay.transform import AnnotateTarget

x, y, c = var("x", shape=(4,)), var("y", shape=(4,)), var("c", shape=(), dtype="bool")


def annotated(body: Any, **options: Any) -> Any:
    """The body of a function of x, y and c, marked."""
    mod = IRModule({"main": Function([x, y, c], body)})
    made = AnnotateTarget(options.pop("targets", "test"), **options)(mod)["main"]
    return Function(made.params, made.body)


def expect(body: Any, after: Any, **options: Any) -> None:
    assert_structural_equal(annotated(body, **options), Function([x, y, c], after))


def test_calls_are_marked() -> None:
    """Those that the target takes for it, others for the default."""
    with supported("exp"):
        inner = end(call("exp", begin(x)))
        after = end(call("add", begin(inner, "default"), begin(y, "default")), "default")
        expect(call("add", call("exp", x), y), after)


def test_every_use_has_its_own_end() -> None:
    """A value that two calls take leaves twice."""
    with supported("exp"):
        shared = call("exp", x)
        inner = call("exp", begin(x))
        after = end(call("add", begin(end(inner), "default"), begin(end(inner), "default")), "default")
        expect(call("add", shared, shared), after)


def test_the_first_target_that_takes_a_call_gets_it() -> None:
    """In the order in which they are given."""
    with supported("exp", target="one"), supported("exp", "negative", target="two"):
        after = end(call("negative", begin(end(call("exp", begin(x, "one")), "one"), "two")), "two")
        expect(call("negative", call("exp", x)), after, targets=["one", "two"])


def test_a_target_may_look_at_the_call() -> None:
    """It gets the expression."""
    Op.get("exp").set_attr("target.picky", lambda expr: expr.args[0] is x)
    try:
        body = Tuple([call("exp", x), call("exp", y)])
        made = annotated(body, targets="picky", include_non_call_ops=False).body
        assert [field.attrs.compiler for field in made.fields] == ["picky", "default"]
    finally:
        Op.get("exp").reset_attr("target.picky")


def test_tuples_are_marked_as_their_fields() -> None:
    """Or not at all."""
    with supported("exp"):
        body = TupleGetItem(Tuple([call("exp", x), call("exp", y)]), 0)
        one, two = end(call("exp", begin(x))), end(call("exp", begin(y)))
        expect(body, end(TupleGetItem(begin(end(Tuple([begin(one), begin(two)]))), 0)))
        expect(body, TupleGetItem(Tuple([one, two]), 0), include_non_call_ops=False)


def test_branches_end_what_they_give() -> None:
    """Control flow belongs to no target."""
    with supported("exp"):
        expect(If(c, call("exp", x), y), If(c, end(call("exp", begin(x))), y))


def test_composite_functions_go_by_their_name() -> None:
    """They are not marked inside."""
    p = var("p", shape=(4,))
    composite = Function([p], call("exp", p), p.type_annotation, attrs={"Composite": "test.exp"})
    expect(composite(x), end(composite(begin(x))))
    other = Function([p], call("exp", p), p.type_annotation, attrs={"Composite": "other.exp"})
    expect(other(x), end(other(begin(x, "default")), "default"))


def test_one_run_for_each_target_marks_as_one_for_all() -> None:
    """What is marked stays with its target, and what no target took can still be taken."""
    body = call("add", call("exp", call("exp", x)), call("tanh", y))
    with supported("exp", target="first"), supported("tanh", target="second"):
        both = annotated(body, targets=["first", "second"])
        first = annotated(body, targets="first")
        assert_structural_equal(annotated(first.body, targets="second"), both)
        assert_structural_equal(annotated(both.body, targets="first"), both)


def test_calls_without_arguments_and_of_closures() -> None:
    """Nothing enters the first, and the second belong to no target: they are not marked."""
    f, p = var("f"), var("p", shape=(4,))
    given = Function([p], call("exp", p), p.type_annotation)
    with supported("exp"):
        expect(call("zeros", shape=(4,), dtype="float32"), call("zeros", shape=(4,), dtype="float32"))
        after = Let(f, Function([p], end(call("exp", begin(p))), p.type_annotation), f(y))
        expect(Let(f, given, f(y)), after, include_non_call_ops=False)


def test_long_chains() -> None:
    """Ten thousand operators."""
    with supported("exp"):
        made = AnnotateTarget("test")(IRModule({"main": chain(10_000)}))
    assert list_op_freqs(made)["annotation.compiler_end"] == 10_000
