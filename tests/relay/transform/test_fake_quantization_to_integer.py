"""Programs without quantised operators stay; others are refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.relay.transform.checks import typed

import tilewright as tvm
from tilewright import relay
from tilewright.ir.op import Op
from tilewright.relay import transform
from tilewright.relay.op.definition import define
from tilewright.relay.op.relations import same_type
from tilewright.support.errors import OpNotImplemented


@pytest.fixture
def quantised() -> Iterator[Op]:
    """An operator of the quantised dialect."""
    yield define("qnn.for_a_test", arguments=("data",), relation=same_type, reference=lambda attrs, x: x)
    del Op.registry["qnn.for_a_test"]


def test_a_program_without_them_stays() -> None:
    """The same module."""
    module = tvm.IRModule.from_expr(typed(relay.nn.relu(relay.var("x", shape=(3,)))))
    assert transform.FakeQuantizationToInteger()(module)["main"] is module["main"]


def test_a_quantised_operator_is_named(quantised: Op) -> None:
    """The error says which, and what to do."""
    module = tvm.IRModule.from_expr(relay.Call(quantised, [relay.var("x", shape=(3,))]))
    with pytest.raises(OpNotImplemented, match="qnn.for_a_test"):
        transform.FakeQuantizationToInteger()(module)
