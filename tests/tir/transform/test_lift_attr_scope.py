"""An attribute moves outwards, and equal neighbours share one."""

from tilewright import tir
from tilewright.tir.transform.lift_attr_scope import LiftAttrScope, lift_attr_scope

A, I, N = tir.Var("A", "handle"), tir.Var("i", "int32"), tir.Var("n", "int32")
OWNER = tir.Var("owner", "handle")


def marked(value, body):
    """A statement under the attribute."""
    return tir.AttrStmt(OWNER, "scope_key", value, body)


def store(value):
    """A store that can be told from others."""
    return tir.Store(A, value, 0)


def test_equal_neighbours_share_one(apply):
    """A sequence of three with the same value gets one attribute around it."""
    stmt = tir.SeqStmt([marked(1, store(1)), marked(1, store(2)), marked(1, store(3))])
    after = apply(tir.PrimFunc([A, OWNER], stmt), LiftAttrScope("scope_key")).body
    assert after.attr_key == "scope_key" and len(after.body) == 3


def test_different_values_make_groups():
    """Neighbours with different values, and those without, stay apart."""
    made = lift_attr_scope(
        tir.SeqStmt([marked(1, store(1)), marked(1, store(2)), marked(2, store(3)), store(4)]), "scope_key"
    )
    assert [getattr(part, "attr_key", None) for part in made.seq] == ["scope_key", "scope_key", None]
    assert [part.value.value for part in made.seq[:2]] == [1, 2] and len(made.seq[0].body) == 2


def test_leaves_a_loop_unless_it_uses_its_variable():
    """The attribute moves out of a loop, a branch and an allocation; not where its value needs the loop."""
    out = lift_attr_scope(tir.For(I, 0, 4, 0, marked(N, store(1))), "scope_key")
    assert isinstance(out, tir.AttrStmt) and isinstance(out.body, tir.For)
    kept = lift_attr_scope(tir.For(I, 0, 4, 0, marked(I, store(1))), "scope_key")
    assert isinstance(kept, tir.For) and isinstance(kept.body, tir.AttrStmt)
    branch = lift_attr_scope(tir.IfThenElse(N > 0, marked(1, store(1)), marked(1, store(2))), "scope_key")
    assert isinstance(branch, tir.AttrStmt) and isinstance(branch.body, tir.IfThenElse)
    mixed = lift_attr_scope(tir.IfThenElse(N > 0, marked(1, store(1)), store(2)), "scope_key")
    assert isinstance(mixed.then_case, tir.AttrStmt) and isinstance(mixed.else_case, tir.Store)


def test_other_attributes_stay():
    """An attribute of another name is passed through."""
    stmt = tir.AttrStmt(OWNER, "other", 1, tir.SeqStmt([store(1), store(2)]))
    assert lift_attr_scope(stmt, "scope_key") is stmt
