"""Every buffer has its own alias scope; pointers computed from a buffer share its scope."""

from __future__ import annotations

from tilewright.codegen.llvm.aliases import AliasScopes
from tilewright.codegen.llvm.writer import ModuleText
from tilewright.ir.expr import Load, Var
from tilewright.ir.type import PointerType, PrimType
from tilewright.tir import op
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Allocate, Evaluate, LetStmt, Store, stmt_seq


def pointer(name: str) -> Var:
    """A pointer to floats."""
    return Var(name, PointerType(PrimType("float32")))


A, B, LOCAL, INSIDE = pointer("a"), pointer("b"), pointer("local"), pointer("inside")


def scopes(body, **attrs) -> AliasScopes:
    """The scopes of a function of two pointers."""
    return AliasScopes(ModuleText("", ""), PrimFunc([A, B], body, attrs=attrs))


COPY = Store(B, Load("float32", A, 0), 0)


def test_distinct_arguments():
    """With the promise, each argument excludes the other; what is only read is known to be."""
    found = scopes(COPY, **{"tir.noalias": True, "global_symbol": "copy"})
    assert found.suffix(A) != found.suffix(B) and "!noalias" in found.suffix(A)
    assert found.is_read_only(A) and not found.is_read_only(B)


def test_arguments_that_may_meet():
    """Without the promise, arguments carry nothing, and reading twice may give two values."""
    found = scopes(COPY)
    assert found.suffix(A) == found.suffix(B) == ""
    assert not found.is_read_only(A)


def test_allocations_are_always_distinct():
    """An allocation has a scope whatever the arguments are."""
    found = scopes(Allocate(LOCAL, "float32", [4], True, stmt_seq(COPY, Store(LOCAL, 1.0, 0))))
    assert found.suffix(LOCAL).startswith(", !alias.scope")
    assert found.suffix(A) == ""


def test_derived_pointers_share_the_scope():
    """The address of an element belongs to the buffer it lies in."""
    address = op.call_intrin("handle", "tir.address_of", Load("float32", B, 4))
    found = scopes(LetStmt(INSIDE, address, Store(INSIDE, Load("float32", A, 0), 0)), **{"tir.noalias": True})
    assert found.suffix(INSIDE) == found.suffix(B) != found.suffix(A)
    assert not found.is_read_only(B)


def test_what_a_call_sees_may_be_written():
    """A pointer given to an outside function is not read-only any more."""
    call = Evaluate(op.call_extern("int32", "fill", A))
    assert not scopes(stmt_seq(COPY, call), **{"tir.noalias": True}).is_read_only(A)


def test_functions_that_others_call_promise_no_invariant_loads():
    """Their code becomes part of a caller, which may write what they read, before the call or after it."""
    found = scopes(COPY, **{"tir.noalias": True})
    assert not found.is_read_only(A)
    assert found.suffix(A) != found.suffix(B)
