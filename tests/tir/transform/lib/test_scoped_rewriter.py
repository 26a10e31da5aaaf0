"""Shared expressions are met once in each statement, and again in the next."""

from tilewright import tir
from tilewright.support.recursion import recursion_room
from tilewright.tir.analysis.statement_visitor import StatementVisitor
from tilewright.tir.transform.lib.scoped_rewriter import ScopedMutator, StmtVisitor


def shared_sum(depth):
    """A value added to itself again and again: two to the depth as a tree, depth as a graph."""
    value = tir.Var("x")
    for _ in range(depth):
        value = tir.Add(value, value)
    return value


class Count(StatementVisitor):
    def __init__(self):
        super().__init__()
        self.additions = 0

    def visit_add(self, node):
        self.additions += 1
        self.visit_default(node)


class Double(ScopedMutator):
    def visit_var(self, node):
        return node * 2


def test_each_statement_sees_its_expressions():
    """Two statements with one expression of sixty nodes: twice sixty."""
    value = shared_sum(60)
    counter = Count()
    with recursion_room():
        counter.visit(tir.SeqStmt([tir.Evaluate(value), tir.Evaluate(value)]))
    assert counter.additions == 120


def test_sharing_survives():
    """What was one node is one node afterwards."""
    with recursion_room():
        made = Double().visit(tir.Evaluate(shared_sum(60))).value
    depth = 0
    while isinstance(made, tir.Add):
        assert made.a is made.b
        made, depth = made.a, depth + 1
    assert depth == 60 and isinstance(made, tir.Mul)


def test_what_holds_nothing_to_rewrite_is_not_visited():
    """With the plain parts of a program noted, the result is the same, and the visits are those on the way to a node
    that has a method."""

    class Watched(Double):
        visits = 0

        def visit_default(self, node):
            self.visits += 1
            return super().visit_default(node)

    plain = tir.Evaluate(tir.Add(tir.IntImm("int32", 1), tir.IntImm("int32", 2)))
    program = tir.SeqStmt([plain, tir.Evaluate(tir.Var("x")), plain])
    noting, visiting = Watched(), Watched()
    noting.note_plain(program)
    made = noting.visit(program)
    assert made[0] is plain and made[2] is plain and isinstance(made[1].value, tir.Mul)
    visiting.visit(program)
    assert noting.visits == 2 < visiting.visits


def test_statements_alone():
    """A visitor of statements does not look at expressions."""

    class Loads(StmtVisitor):
        found = 0

        def visit_load(self, node):
            self.found += 1

        def visit_store(self, node):
            self.found += 100

    a = tir.decl_buffer((4,), name="A").data
    visitor = Loads()
    visitor.visit(
        tir.SeqStmt([tir.Store(a, tir.Load("float32", a, 0), 1), tir.Evaluate(tir.Load("float32", a, 0))])
    )
    assert visitor.found == 100
