"""Effects of evaluating expressions."""

from tests.relay.programs import call, chain

from tilewright.ir.module import IRModule
from tilewright.relay import Function, GlobalVar, If, Let, RefCreate, RefRead, RefWrite, Var, const
from tilewright.relay.analysis.purity import Effect, Effects

r, x = Var("r"), Var("x")


def effect(expr: object, mod: IRModule | None = None) -> Effect:
    return Effects(expr, mod).of[expr]  # type: ignore[arg-type, index]


def test_references() -> None:
    """Reading and making may be dropped, writing may not."""
    assert effect(RefRead(r)) == Effect.STATE
    assert effect(RefCreate(const(1))) == Effect.STATE
    assert effect(RefWrite(r, const(1))) == Effect.WRITE
    assert effect(If(x, RefRead(r), const(1))) == Effect.STATE
    assert effect(call("exp", x)) == Effect.NONE
    assert effect(chain(10_000).body) == Effect.NONE


def test_functions_act_when_they_are_called() -> None:
    """A literal, a let-bound one, one of the module; what is not known may do anything."""
    write = Function([], RefWrite(r, const(1)))
    assert effect(write) == Effect.NONE
    assert effect(write()) == Effect.WRITE
    f = Var("f")
    assert effect(Let(f, write, f())) == Effect.WRITE
    assert effect(Let(f, Function([x], call("exp", x)), f(r))) == Effect.NONE
    assert effect(x()) == Effect.WRITE
    mod = IRModule({"calm": Function([x], call("exp", x)), "main": Function([], const(1))})
    assert effect(GlobalVar("calm")(r), mod) == Effect.NONE
    assert effect(GlobalVar("unknown")(r), mod) == Effect.WRITE


def test_recursion() -> None:
    """A let-bound function that calls itself does what the rest of its body does; a recursive one of the module may do
    anything."""
    f = Var("f")
    assert effect(Let(f, Function([x], f(call("exp", x))), f(r))) == Effect.NONE
    assert effect(Let(f, Function([x], f(RefWrite(r, x))), f(r))) == Effect.WRITE
    loop = GlobalVar("loop")
    mod = IRModule({loop: Function([x], loop(x))})
    assert effect(loop(r), mod) == Effect.WRITE
