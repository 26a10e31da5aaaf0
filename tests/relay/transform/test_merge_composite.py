"""MergeComposite."""

from typing import Any

import pytest
from tests.relay.transform.text import check, unchanged

from tilewright.ir.module import IRModule
from tilewright.relay import Function, nn, var
from tilewright.relay.dataflow_pattern import is_op, is_tuple_get_item, wildcard
from tilewright.relay.transform import MergeComposite
from tilewright.support.errors import TilewrightError

SUM_EXP = is_op("exp")(is_op("add")(wildcard(), wildcard()))
SUM = is_op("add")(wildcard(), wildcard())


def test_matches_become_composite_functions() -> None:
    """Patterns in the order of the table."""
    check(
        "def @main(%x: $T, %y: $T) { add(exp(add(%x, %y)), %x) }",
        MergeComposite([("lib.sum_exp", SUM_EXP), ("lib.sum", SUM)]),
        """
        def @main(%x: $T, %y: $T) {
          %0 = fn (%a: $T, %b: $T, Composite="lib.sum_exp", PartitionedFromPattern="add_exp_") { exp(add(%a, %b)) };
          %1 = %0(%x, %y);
          %2 = fn (%c: $T, %d: $T, Composite="lib.sum", PartitionedFromPattern="add_") { add(%c, %d) };
          %2(%1, %x)
        }
        """,
    )


def test_checks_see_types() -> None:
    """And may refuse."""
    program = "def @main(%x: $T, %y: $T) { exp(add(exp(add(%x, %y)), %x)) }"
    shapes: list[Any] = []

    def refuse(root: Any) -> bool:
        shapes.append(root.checked_type.concrete_shape)
        return False

    unchanged(program, MergeComposite([("lib.sum_exp", SUM_EXP, refuse)]))
    assert shapes == [(4,), (4,)]


def test_a_table_of_another_form_is_an_error() -> None:
    """It says what an entry is."""
    with pytest.raises(TilewrightError, match="an entry of a pattern table"):
        MergeComposite([("name",)])


def test_fields_of_results() -> None:
    """A pattern may read a field of what an operator gives."""
    x, scale = (
        var("x", shape=(1, 8)),
        [var(name, shape=(8,)) for name in ("gamma", "beta", "mean", "variance")],
    )
    normal = is_tuple_get_item(is_op("nn.batch_norm")(*[wildcard() for _ in range(5)]), 0)
    body = nn.relu(nn.batch_norm(x, *scale)[0])
    made = MergeComposite([("bn_relu", is_op("nn.relu")(normal))])(
        IRModule.from_expr(Function([x, *scale], body))
    )
    assert made["main"].body.op.attrs["Composite"] == "bn_relu"
