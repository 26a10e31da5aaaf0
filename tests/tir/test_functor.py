"""Substitution that begins with the nodes that a variable does not change."""

from __future__ import annotations

from tilewright.ir import operators
from tilewright.ir.buffer import decl_buffer
from tilewright.ir.expr import BufferLoad, Load, Var
from tilewright.ir.functor import post_order
from tilewright.ir.structural import structural_equal
from tilewright.tir.folding import FoldingSubstitute
from tilewright.tir.functor import independent_nodes, substitute
from tilewright.tir.stmt import For, Store, stmt_seq


def test_what_a_variable_does_not_change() -> None:
    """A node is independent of a variable if no node below it is the variable; substituting from there on gives what
    substituting everywhere gives."""
    i, j = Var("i"), Var("j")
    a, b = decl_buffer((64,), name="A"), decl_buffer((64,), name="B")
    fixed = Load("float32", a.data, j * 4 + 1)
    body = stmt_seq(
        Store(b.data, fixed + Load("float32", a.data, i * 8 + j), i), For(j, 0, 4, 0, Store(b.data, fixed, j))
    )
    known = independent_nodes(body, i)
    names = {id(node) for node in post_order(body) if any(part is i for part in post_order(node))}
    assert {id(node) for node in post_order(body)} - names == set(known)
    assert id(fixed) in known and id(body) not in known
    three = operators.const(3, "int32")
    made = FoldingSubstitute({i: three}, known).visit(body)
    assert structural_equal(made, FoldingSubstitute({i: three}).visit(body), map_free_vars=True)
    assert not any(part is i for part in post_order(made))


def test_buffers_may_name_the_variable() -> None:
    """A load from a buffer whose offset is the variable depends on it, although the variable is not below the load."""
    i = Var("i")
    buffer = decl_buffer((4,), name="A", elem_offset=i)
    load = BufferLoad(buffer, [0])
    assert id(load) not in independent_nodes(load, i)
    assert substitute(load, {i: operators.const(2, "int32")}).buffer.elem_offset == 2
