"""The node decorator: fields, children, freezing."""

from __future__ import annotations

import copy

import pytest

from tilewright.support.node import Child, Children, Defines, Node, OptionalChild, node, snake_case


@node
class Leaf(Node):
    """A leaf."""

    value: int


@node
class Branch(Node):
    """One of each kind of field."""

    name: Defines[str]
    one: Child[Node]
    many: Children[Node]
    maybe: OptionalChild[Node]
    weight: int = 7


@node
class HeavyBranch(Branch):
    """Inherits its fields."""

    extra: Child[Node] | None = None


def test_constructor_and_fields() -> None:
    """The constructor takes the annotated fields in order, with defaults; the node knows their names and roles."""
    tree = Branch("b", Leaf(1), (Leaf(2), Leaf(3)), None)
    assert tree.weight == 7
    assert Branch.field_names == ("name", "one", "many", "maybe", "weight")
    assert Branch.defining_fields == ("name",)
    assert Branch.node_kind == "branch"
    assert HeavyBranch.field_names == (*Branch.field_names, "extra")


def test_children_in_order() -> None:
    """Children come in the order of the fields; missing optional ones are left out."""
    one, two, three = Leaf(1), Leaf(2), Leaf(3)
    assert Branch("b", one, (two, three), None).children() == (one, two, three)
    assert Branch("b", one, (), two).children() == (one, two)
    assert one.children() == ()


def test_map_children_keeps_what_is_unchanged() -> None:
    """The same object comes back if no child changed; otherwise a copy, and the original stays as it was."""
    tree = Branch("b", Leaf(1), (Leaf(2),), None)
    assert tree.map_children(lambda child: child) is tree
    made = tree.map_children(lambda child: Leaf(child.value + 10))
    assert [child.value for child in made.children()] == [11, 12]
    assert [child.value for child in tree.children()] == [1, 2]
    assert made.name == "b" and made.weight == 7


def test_nodes_are_frozen() -> None:
    """No field of a node can be assigned again; replace makes a copy."""
    leaf = Leaf(1)
    with pytest.raises(AttributeError, match="frozen"):
        leaf.value = 2
    assert leaf.replace(value=2).value == 2 and leaf.value == 1


def test_nodes_have_no_dictionary() -> None:
    """A node has slots only: other attributes cannot be set."""
    with pytest.raises(AttributeError):
        Leaf(1).other = 1  # type: ignore[attr-defined]
    assert not hasattr(Leaf(1), "__dict__")


def test_equality_is_identity() -> None:
    """Two nodes with the same fields are two nodes."""
    assert Leaf(1) != Leaf(1)
    leaf = Leaf(1)
    assert leaf.same_as(leaf) and not leaf.same_as(Leaf(1))


@pytest.mark.parametrize(
    ("name", "kind"), [("BufferLoad", "buffer_load"), ("EQ", "eq"), ("For", "for"), ("IntImm", "int_imm")]
)
def test_snake_case(name: str, kind: str) -> None:
    """Class names become the names of visitor methods."""
    assert snake_case(name) == kind


def test_a_state_is_taken_over_as_a_deep_copy() -> None:
    """A node that takes a state, its own as well, shares nothing with other nodes, and what the parts share stays
    shared; a copy of a node shares its parts."""
    leaf = Leaf(1)
    tree = Branch("b", leaf, (leaf, Leaf(2)), None)
    assert copy.copy(tree).one is leaf
    tree.__setstate__(tree.__getstate__())  # type: ignore[attr-defined]
    assert tree.one is not leaf
    assert tree.one is tree.many[0]
    assert [child.value for child in tree.many] == [1, 2]
    assert (tree.name, tree.maybe, tree.weight) == ("b", None, 7)
