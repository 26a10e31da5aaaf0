"""Features of the language that a program uses."""

from tests.relay.programs import call, let_chain

from tilewright.ir.module import IRModule
from tilewright.relay import Function, If, Let, RefCreate, RefRead, Tuple, Var, const, var
from tilewright.relay.analysis import Feature, detect_feature


def test_nodes_are_features() -> None:
    """Each kind of node is one."""
    x = var("x", shape=())
    assert detect_feature(RefRead(RefCreate(const(1)))) == {
        Feature.fRefRead,
        Feature.fRefCreate,
        Feature.fConstant,
    }
    assert Feature.fIf in detect_feature(If(x, x, x))


def test_sharing_is_a_feature_of_what_computes() -> None:
    """Not of variables and constants."""
    x = var("x", shape=())
    shared = call("exp", x)
    assert Feature.fGraph in detect_feature(Tuple([shared, shared]))
    assert Feature.fGraph not in detect_feature(call("add", x, x))
    assert Feature.fGraph not in detect_feature(let_chain(10_000))


def test_recursion_is_a_feature() -> None:
    """Where a let-bound function names itself, not where its name is used elsewhere."""
    f, x, y = Var("f"), Var("x"), Var("y")
    assert Feature.fLetRec in detect_feature(Let(f, Function([x], f(x)), f))
    assert Feature.fLetRec not in detect_feature(Let(f, Function([x], x), f(y)))


def test_modules_have_the_features_of_their_functions() -> None:
    """With those of an expression beside it; kernels are left out."""
    x, p = var("x", shape=()), var("p", shape=())
    kernel = Function([p], Tuple([p, p]), attrs={"Primitive": 1})
    mod = IRModule({"main": Function([x], kernel(x))})
    assert Feature.fTuple not in detect_feature(mod)
    assert detect_feature(mod, Tuple([])) == detect_feature(Tuple([]), mod)
    assert Feature.fTuple in detect_feature(mod, Tuple([]))
