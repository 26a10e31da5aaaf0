"""CompactConstants: constants that share memory in an order of their own are copied, others stay."""

from __future__ import annotations

import numpy as np
from tests.relay.transform.checks import after, assert_same_value, typed

import tilewright as tvm
from tilewright import relay
from tilewright.relay.backend.preparation import prepared
from tilewright.relay.backend.targets import build_targets
from tilewright.relay.expr_functor import post_order_visit
from tilewright.relay.transform import CompactConstants, FoldConstant

WEIGHT = np.random.default_rng(0).standard_normal((300, 256)).astype("float32")


def constants(expr: relay.Expr) -> list[relay.Constant]:
    """The constants of an expression."""
    found: list[relay.Constant] = []
    post_order_visit(expr, lambda node: found.append(node) if isinstance(node, relay.Constant) else None)
    return found


def is_compact(constant: relay.Constant) -> bool:
    """True if the elements are in the order of the indices."""
    return bool(np.from_dlpack(constant.data).flags.c_contiguous)  # type: ignore[arg-type]


def product() -> relay.Function:
    """A product with a transposed weight."""
    x = relay.var("x", shape=(2, 300))
    return relay.Function([x], relay.nn.dense(x, relay.transpose(relay.const(WEIGHT))))


def test_a_shared_constant_is_copied() -> None:
    """It has the value that it had, in the order of its indices."""
    shared = after(FoldConstant(views=True), product())
    assert [is_compact(each) for each in constants(shared)] == [False]
    made = after(CompactConstants(), shared)
    assert [is_compact(each) for each in constants(made)] == [True]
    np.testing.assert_array_equal(constants(made)[0].data.numpy(), WEIGHT.T)
    assert_same_value(shared, made)


def test_other_constants_stay() -> None:
    """Where there is nothing to copy, the function is the same object."""
    given = typed(after(FoldConstant(), product()))
    assert after(CompactConstants(), given) is given


def test_no_build_gets_an_uncompact_constant() -> None:
    """At every level, and where folding is switched off, what goes to the executors is compact."""
    module = tvm.IRModule.from_expr(product())
    for level, disabled in ((3, []), (3, ["FoldConstant"]), (2, ["AlterOpLayout"]), (0, [])):
        with tvm.transform.PassContext(opt_level=level, disabled_pass=disabled):
            made = prepared(module, build_targets("llvm"), {})
        assert all(is_compact(each) for each in constants(made["main"]))
