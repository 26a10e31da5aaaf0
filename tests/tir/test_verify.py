"""The verifier: what it accepts, what it refuses, and how it says so."""

from __future__ import annotations

from typing import Any

import pytest
from tests.tir import script_programs as programs

from tilewright.ir import operators
from tilewright.ir.buffer import decl_buffer
from tilewright.ir.expr import (
    LT,
    Add,
    And,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    IntImm,
    IterVar,
    Let,
    Load,
    Max,
    Ramp,
    Range,
    Select,
    Shuffle,
    Var,
)
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext, module_pass
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.errors import VerifyError
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import (
    Allocate,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    Store,
    While,
)
from tilewright.tir.verify import verify, verify_module

A = decl_buffer((8,), "int32", "A")
B = decl_buffer((4, 4), "float32", "B")
I, J, X = Var("i", "int32"), Var("j", "int32"), Var("x", "int32")
F = Var("f", "float32")
DATA = Var("data", PointerType(PrimType("float32")))
STORE = BufferStore(A, I, [I])


def function(body: Stmt) -> PrimFunc:
    """A function with two buffers, a scalar of each kind and a pointer as parameters."""
    return PrimFunc([A, B, X, F, DATA], body)


@pytest.mark.parametrize("func", programs.FUNCTIONS, ids=lambda func: str(func.params[0].name))
def test_legal_programs(func: PrimFunc) -> None:
    """Programs of every form pass."""
    verify(func)


LEGAL = {
    "a variable of two loops after one another": SeqStmt(
        [For(I, 0, 8, ForKind.SERIAL, STORE), For(I, 0, 8, ForKind.PARALLEL, STORE)]
    ),
    "a let after a loop with its variable": SeqStmt(
        [For(I, 0, 8, ForKind.SERIAL, STORE), LetStmt(I, 3, STORE)]
    ),
    "a realized buffer": BufferRealize(
        decl_buffer((4,), "int32", "R"), [Range(0, 4)], True, Evaluate(IntImm("int32", 0))
    ),
    "an attribute about a variable defined in its body": AttrStmt(
        I, "pragma", 1, For(I, 0, 8, ForKind.SERIAL, STORE)
    ),
    "a vector store": BufferStore(A, Ramp(X, 1, 4), [Ramp(0, 1, 4)]),
    "a let expression": Evaluate(Let(I, X, Add(I, X))),
    "a thread bound twice": AttrStmt(
        IterVar(None, I, IterVar.ThreadIndex, "threadIdx.x"),
        "thread_extent",
        8,
        AttrStmt(IterVar(None, I, IterVar.ThreadIndex, "threadIdx.x"), "thread_extent", 8, STORE),
    ),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal_statements(name: str) -> None:
    """What passes make and the rules allow is not refused."""
    verify(function(LEGAL[name]))


def block(**changes: Any) -> Stmt:
    """A block with one axis, changed in some fields."""
    made = Block([IterVar((0, 8), Var("vi", "int32"), 0)], [], [], "block", Evaluate(0))
    return BlockRealize(changes.pop("values", [X]), changes.pop("where", True), made.replace(**changes))


true4 = Broadcast(IntImm("bool", 1), 4)
less = LT(X, IntImm("int32", 3))
ILLEGAL = {
    "variable i is used where it is not defined": SeqStmt([For(I, 0, 8, ForKind.SERIAL, STORE), STORE]),
    "variable i is defined again inside its own scope": For(
        I, 0, 8, ForKind.SERIAL, For(I, 0, 8, ForKind.SERIAL, STORE)
    ),
    "variable x is defined again inside its own scope": LetStmt(X, 3, Evaluate(X)),
    "buffer R is used where it has no memory": BufferStore(decl_buffer((4,), "int32", "R"), 1, [0]),
    "Add of int32 has operands of float32 and int32": Evaluate(Add(X, X).replace(a=F)),
    "LT compares float32 with int32": Evaluate(less.replace(a=F)),
    "And of int32 and bool has the type bool": Evaluate(And(less, less).replace(a=X)),
    "Select of int32 has values of float32 and int32": Evaluate(Select(less, X, X).replace(true_value=F)),
    "a cast from int32 to int32x4 changes the number of lanes": Evaluate(
        Cast("float32", X).replace(dtype=Ramp(0, 1, 4).dtype)
    ),
    "a broadcast of int32 to 4 lanes has the type boolx4": Evaluate(true4.replace(value=X)),
    "a shuffle of 4 lanes picks lane 9": Evaluate(
        Shuffle([Ramp(0, 1, 4)], [1]).replace(indices=(IntImm("int32", 9),))
    ),
    "A has 1 dimensions and is accessed with 2 indices": BufferStore(A, 1, [0, 0]),
    "A holds int32, a value of float32 is stored": BufferStore(A, F, [0]),
    "a value of int32 is stored to 4 elements of A": BufferStore(A, X, [Ramp(0, 1, 4)]),
    "an index of B has type float32": Evaluate(BufferLoad(B, [F, X])),
    "x has type int32, a store needs a handle": Store(X, 1, 0),
    "a store to data at 4 indices has a predicate of bool": Store(
        DATA, Load("float32x4", DATA, Ramp(0, 1, 4)), Ramp(0, 1, 4), less
    ),
    "a load of float32x4 from data has an index of int32x3": Evaluate(Load("float32x4", DATA, Ramp(0, 1, 3))),
    "the condition of if has type int32": IfThenElse(X, Evaluate(0)),
    "the condition of while has type int32": While(X, Evaluate(0)),
    "loop variable f has type float32": For(Var("f", "float32"), 0, 4, ForKind.SERIAL, Evaluate(0)),
    "loop i of kind THREAD_BINDING has no thread": For(I, 0, 4, ForKind.THREAD_BINDING, Evaluate(0)),
    "allocation m has the extent -1": Allocate(Var("m", "handle"), "int32", [-1], True, Evaluate(0)),
    "allocation m has an extent of float32": Allocate(Var("m", "handle"), "int32", [F], True, Evaluate(0)),
    "tir.exp takes 1 arguments, 2 are given": Evaluate(operators.call("exp", "float32", [F, F])),
    "if_then_else of float32 has values of float32 and int32": Evaluate(
        operators.call("if_then_else", "float32", [less, F, X])
    ),
    "thread_extent is about a StringImm": AttrStmt("threadIdx.x", "thread_extent", 4, Evaluate(0)),
    "block block has 1 axes and 2 values": block(values=[X, X]),
    "axis vi of int32 has a value of float32": block(values=[F]),
    "the condition of block block has type int32": block(where=X),
    "i has type int32, its value float32": LetStmt(I, F, Evaluate(0)),
    "Max computes with handles": Evaluate(Max(DATA, DATA)),
}


@pytest.mark.parametrize("message", ILLEGAL)
def test_illegal_statements(message: str) -> None:
    """Each rule is kept by a check that says what is wrong."""
    with pytest.raises(VerifyError) as caught:
        verify(function(ILLEGAL[message]))
    assert message in str(caught.value)


def test_message_shows_the_place() -> None:
    """The offending statement is marked among the lines around it, and the rule is named."""
    steps = [BufferStore(A, position, [position]) for position in range(5)]
    body = For(I, 0, 8, ForKind.SERIAL, SeqStmt([*steps, BufferStore(A, J, [I]), *steps]))
    with pytest.raises(VerifyError) as caught:
        verify(function(body))
    assert str(caught.value) == (
        "variable j is used where it is not defined (rule: variables are defined before use)\n"
        "            A[2] = 2\n"
        "            A[3] = 3\n"
        "            A[4] = 4\n"
        "  >         A[i] = j\n"
        "            A[0] = 0\n"
        "            A[1] = 1\n"
        "            A[2] = 2"
    )


def test_parameters() -> None:
    """Parameters are distinct, and buffers belong to handles among them."""
    with pytest.raises(VerifyError, match="a parameter appears twice"):
        verify(PrimFunc([X, X], Evaluate(0)))
    with pytest.raises(VerifyError, match="parameter x of int32 is bound to buffer A"):
        verify(PrimFunc([X], Evaluate(0), buffer_map={X: A}))
    with pytest.raises(VerifyError, match="x of the buffer map is not a parameter"):
        verify(PrimFunc([], Evaluate(0), buffer_map={X: A}))


def test_flat_form() -> None:
    """A program that claims flat form has no buffers left in its body."""
    flat = function(Store(DATA, F, X))
    verify(flat, flat=True)
    with pytest.raises(VerifyError, match="BufferStore remains in a program of flat form"):
        verify(function(BufferStore(A, 1, [0])), flat=True)


def test_free_variables() -> None:
    """Between passes, variables that the function defines nowhere are let be, those out of scope are not."""
    free = PrimFunc([], Evaluate(Add(I, J)))
    with pytest.raises(VerifyError, match="variable j is used"):
        verify(free)
    verify_module(IRModule({"main": free}))
    with pytest.raises(VerifyError, match="variable i is used"):
        verify_module(IRModule({"main": function(ILLEGAL["variable i is used where it is not defined"])}))


def test_called_functions_exist() -> None:
    """A call of another function of the module finds it there."""
    call = PrimFunc([], Evaluate(Call("int32", GlobalVar("helper"), [])))
    with pytest.raises(VerifyError, match="helper is not a function of the module"):
        verify(IRModule({"main": call}))
    verify(IRModule({"main": call, "helper": PrimFunc([], Evaluate(0))}))


def test_runs_between_passes() -> None:
    """A pass that breaks a program is named."""

    @module_pass(opt_level=0, name="breaks")
    def breaks(module: IRModule, context: PassContext) -> IRModule:
        return IRModule({"main": function(BufferStore(A, F, [0]))})

    with pytest.raises(
        VerifyError, match="after pass breaks: function main: A holds int32, a value of float32 is stored"
    ):
        breaks(IRModule({"main": function(Evaluate(0))}))


def test_linear_time() -> None:
    """A long program with a deep shared expression verifies quickly: each node is looked at once a statement."""
    shared: Any = X
    for _ in range(200):
        shared = Add(shared, shared)
    verify(function(SeqStmt([BufferStore(A, shared, [position % 8]) for position in range(50)])))
