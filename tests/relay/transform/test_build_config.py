"""The older name of a pass context."""

from __future__ import annotations

from typing import Any

import tilewright as tvm
from tilewright import relay
from tilewright.relay import transform


def test_it_is_a_pass_context() -> None:
    """With the given level and passes."""
    with relay.build_config(opt_level=3, disabled_pass=["FoldConstant"]) as context:
        assert tvm.transform.PassContext.current() is context
        assert context.opt_level == 3
        assert not context.enabled(transform.FoldConstant().info)


def test_the_trace_sees_every_pass() -> None:
    """Before and after."""
    seen: list[Any] = []
    module = tvm.IRModule.from_expr(relay.nn.relu(relay.var("x", shape=(3,))))
    with relay.build_config(trace=lambda mod, info, before: seen.append((info.name, before))):
        transform.InferType()(module)
    assert seen == [("InferType", True), ("InferType", False)]
