"""Walking and rewriting expressions."""

from tilewright.ir import operators
from tilewright.ir.expr import Add, IntImm, Let, Mul, PrimExpr, Var
from tilewright.ir.functor import Mutator, Visitor, free_vars, post_order, substitute_expr, uses_var
from tilewright.support.recursion import recursion_room

x, y, z = Var("x"), Var("y"), Var("z")


class CountSums(Visitor):
    """Counts the sums it meets."""

    def __init__(self) -> None:
        super().__init__()
        self.sums = 0

    def visit_add(self, node: Add) -> None:
        self.sums += 1
        self.visit_default(node)


class CountSumsOnce(CountSums):
    """Counts each sum once."""

    once = True


def test_visitors_dispatch_by_class() -> None:
    """The method of a node's class is called, the default goes to the children."""
    counter = CountSums()
    counter.visit((x + y) * (x + 1) + z)
    assert counter.sums == 3


def test_visiting_shared_nodes() -> None:
    """A visitor sees a shared node at every place, or once if it says so."""
    shared = x + y
    every, once = CountSums(), CountSumsOnce()
    every.visit(shared * shared)
    once.visit(shared * shared)
    assert (every.sums, once.sums) == (2, 1)


class SumsToProducts(Mutator):
    """Turns sums into products."""

    memoize = True

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def visit_add(self, node: Add) -> PrimExpr:
        self.calls += 1
        return Mul(self.visit(node.a), self.visit(node.b))


def test_mutators_keep_what_is_unchanged() -> None:
    """Nodes whose children did not change stay the same objects."""
    untouched = x * y
    made = SumsToProducts().visit(operators.subtract(untouched, x + 1))
    assert str(made) == "x * y - x * 1" and made.a is untouched
    assert SumsToProducts().visit(untouched) is untouched


def test_memoized_rewriting_is_linear() -> None:
    """A graph of 100 levels of sharing is rewritten in 100 steps, and stays shared."""
    doubled: PrimExpr = x
    for _ in range(100):
        doubled = doubled + doubled
    mutator = SumsToProducts()
    made = mutator.visit(doubled)
    assert mutator.calls == 100 and made.a is made.b


def test_post_order() -> None:
    """Children come before parents, every node once."""
    shared = x + 1
    order = post_order(shared * shared)
    assert [str(node) for node in order] == ["x", "1", "x + 1", "(x + 1) * (x + 1)"]


def test_free_variables() -> None:
    """Variables in the order they are met; those of a let are bound."""
    assert free_vars(y * x + y) == [y, x]
    assert free_vars(Let(z, x, z + y)) == [x, y]
    assert uses_var(x + y, y) and not uses_var(x + 1, y)
    assert uses_var(x + y, [z, y]) and uses_var(x + y, lambda var: var.name == "y")


def test_substitution() -> None:
    """Variables are replaced everywhere at once; without a match the same expression comes back."""
    expr = x + y * x
    assert str(substitute_expr(expr, {x: y, y: x})) == "y + x * y"
    assert substitute_expr(expr, {z: x}) is expr
    replaced = substitute_expr(x + y, {x: IntImm("int32", 3)})
    assert str(replaced) == "3 + y"


def test_deep_walks() -> None:
    """Walks of 50,000 levels work."""
    chain: PrimExpr = x
    for _ in range(50_000):
        chain = chain + y
    assert len(post_order(chain)) == 50_002
    assert free_vars(chain) == [x, y]
    counter = CountSums()
    with recursion_room():
        counter.visit(chain)
    assert counter.sums == 50_000
    assert uses_var(substitute_expr(chain, {x: z}), z)
