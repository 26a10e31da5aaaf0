"""Names of TVM's ``relay.frontend.tensorflow`` that rewrite parts of a graph."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tilewright import relay
from tilewright.relay.frontend import tensorflow as frontend
from tilewright.relay.interpreter import Interpreter
from tilewright.support.errors import ModelError


def test_names_of_nodes() -> None:
    """Tensor arrays are known by their operator, loops by the scopes of names."""
    assert frontend.is_tensor_array_constuctor(SimpleNamespace(op="TensorArrayV3"))
    assert not frontend.is_tensor_array_constuctor(SimpleNamespace(op="TensorArrayReadV3"))
    loops = {"a/while", "a/while/b/while"}
    assert frontend.find_parent_loop_name("a/while/b/while/Add", loops) == "a/while/b/while"
    assert frontend.find_parent_loop_name("a/while/Add", loops) == "a/while"
    assert frontend.find_parent_loop_name("c/Add", loops) == ""


def test_replaced_expressions() -> None:
    """An expression of the map, and everything above it, is new."""
    x = relay.var("x", shape=(2,))
    inner = relay.exp(x)
    found = frontend.rewrite_subgraph(relay.add(inner, inner), {inner: x})
    np.testing.assert_allclose(Interpreter().run(relay.Function([x], found), [np.float32([1, 2])]), [2, 4])
    same = frontend.RewriteSubgraph({}).visit(inner)
    assert same is inner


def test_used_variables() -> None:
    """A variable is used if it is anywhere in an expression."""
    x, y = relay.var("x"), relay.var("y")
    for variable, used in ((x, True), (y, False)):
        checker = frontend.VarChecker(variable)
        checker.visit(relay.exp(relay.tanh(x)))
        assert checker.used is used


def test_branches() -> None:
    """Become conditions once their parts are known."""
    branch = frontend.Branch()
    branch.cond = relay.const(True)
    with pytest.raises(ModelError, match="no true_branch and no false_branch"):
        branch.if_node()
    branch.true_branch, branch.false_branch = relay.const(1.0), relay.const(2.0)
    assert branch.if_node() is branch.if_node()
    assert Interpreter().run(branch.if_node()) == 1
