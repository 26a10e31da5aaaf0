"""Names in source text are valid and never collide."""

import pytest

from tilewright import tir
from tilewright.codegen.c.names import Names, identifier
from tilewright.support.errors import CodegenError


@pytest.mark.parametrize(
    ("text", "name"), [("A.shared", "A_shared"), ("2x", "v_2x"), ("", "v_"), ("é", "_"), ("fine_1", "fine_1")]
)
def test_identifiers(text, name):
    """Letters that C does not allow become underscores."""
    assert identifier(text) == name


def test_no_two_alike():
    """Equal hints get numbers, also where the numbered name is taken."""
    names = Names()
    assert [names.fresh(hint) for hint in ("x", "x_1", "x", "x")] == ["x", "x_1", "x_2", "x_3"]
    assert names.fresh("for") == "for_1"


def test_variables():
    """A variable keeps its name until it is defined again; one that never was is an error."""
    names, x = Names(), tir.Var("x")
    assert names.define(x) == "x" == names.of(x)
    assert names.define(x) == "x_1" == names.of(x)
    names.alias(x, "((int)threadIdx.x)")
    assert names.of(x) == "((int)threadIdx.x)"
    with pytest.raises(CodegenError, match="variable y is used but never defined"):
        names.of(tir.Var("y"))
