"""Programs without quantised operators stay; what becomes of others is in tests/relay/qnn/test_integers.py."""

from __future__ import annotations

from tests.relay.transform.checks import typed

import tilewright as tvm
from tilewright import relay
from tilewright.relay import transform


def test_a_program_without_them_stays() -> None:
    """The same module."""
    module = tvm.IRModule.from_expr(typed(relay.nn.relu(relay.var("x", shape=(3,)))))
    assert transform.FakeQuantizationToInteger()(module)["main"] is module["main"]
