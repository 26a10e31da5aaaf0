"""DenseOfConstant: a product with a constant matrix is a dense layer."""

from __future__ import annotations

import numpy as np
import pytest
from tests.relay.transform.checks import after, assert_same_value, operators, typed

import tilewright as tvm
from tilewright import relay
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay.target.cpu.dense_of_constant import DenseOfConstant

X = relay.var("x", shape=(4, 6))
MATRIX = np.random.default_rng(0).standard_normal((6, 5)).astype("float32")


@pytest.mark.parametrize("transposed", [False, True])
def test_a_constant_matrix_is_a_weight(transposed: bool) -> None:
    """Whether its columns or its rows are the units."""
    matrix = relay.const(MATRIX.T.copy() if transposed else MATRIX)
    start = typed(relay.nn.matmul(X, matrix, transpose_b=transposed))
    with tvm.target.Target("llvm"):
        made = after(DenseOfConstant(), start)
    assert operators(made) == (["nn.dense"] if transposed else ["transpose", "nn.dense"])
    assert_same_value(start, made)


@pytest.mark.parametrize(
    ("body", "target"),
    [
        (relay.nn.matmul(X, relay.var("y", shape=(6, 5))), "llvm"),
        (relay.nn.matmul(relay.var("y", shape=(6, 4)), relay.const(MATRIX), transpose_a=True), "llvm"),
        (relay.nn.matmul(X, relay.const(MATRIX)), "cuda"),
    ],
    ids=["two inputs", "transposed data", "a GPU"],
)
def test_what_stays(body: relay.Expr, target: str) -> None:
    """Products of two inputs, of transposed data, and those for other devices."""
    start = typed(body)
    with tvm.target.Target(target):
        assert_structural_equal(after(DenseOfConstant(), start), start)


def test_a_model_packs_the_weight() -> None:
    """As that of a dense layer; one that comes as a transposed constant too."""
    data = relay.var("data", shape=(64, 96))
    weight = relay.const(np.random.default_rng(1).standard_normal((80, 96)).astype("float32"))
    product = relay.nn.matmul(data, relay.transpose(weight))
    module = tvm.IRModule.from_expr(relay.Function([data], product))
    with tvm.transform.PassContext(opt_level=3):
        made, _ = relay.optimize(module, "llvm")
    assert operators(made["main"]) == ["nn.contrib_dense_pack"]
