"""Dense layers of matrices that are transposed for them."""

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay import transform


def product(weight: relay.Expr, *params: relay.Var, data_type: str = "float32") -> relay.Function:
    """A dense layer of a variable."""
    x = relay.var("x", shape=(2, 3), dtype=data_type)
    return relay.Function([x, *params], relay.nn.dense(x, weight))


def folded(function: relay.Function) -> Any:
    """The function after the pass."""
    module = transform.InferType()(tvm.IRModule.from_expr(function))
    return transform.InferType()(transform.FoldTransposeIntoDense()(module))["main"]


@pytest.mark.parametrize("axes", [(1, 0), (-1, -2), None])
def test_the_matrix_is_read_as_it_is(axes: tuple[int, int] | None) -> None:
    """The transposition is gone, and the result is the same."""
    y = relay.var("y", shape=(3, 5))
    before = product(relay.transpose(y, axes), y)
    after = folded(before)
    assert after.body.op.name == "nn.matmul" and list(after.body.args) == list(after.params)
    assert [int(extent) for extent in after.ret_type.shape] == [2, 5]
    generator = np.random.default_rng(0)
    x, matrix = generator.standard_normal((2, 3), "float32"), generator.standard_normal((3, 5), "float32")
    made = relay.create_executor("graph", tvm.IRModule.from_expr(after)).evaluate()(x, matrix)
    np.testing.assert_allclose(made.numpy(), x @ matrix, rtol=1e-5)


def test_what_stays() -> None:
    """Weights, which are transposed once; integers, whose kernels want rows; and other orders."""
    quantised = relay.cast(relay.const(np.ones((3, 5), "int8")), "float32") * relay.const(0.5)
    y, z = relay.var("y", shape=(3, 5), dtype="int8"), relay.var("z", shape=(5, 3))
    for function in (
        product(relay.transpose(relay.const(np.ones((3, 5), "float32")), (1, 0))),
        product(relay.transpose(quantised, (1, 0))),
        product(relay.transpose(y, (1, 0)), y, data_type="int8"),
        product(relay.transpose(z, (0, 1)), z),
    ):
        assert folded(function).body.op.name == "nn.dense"
