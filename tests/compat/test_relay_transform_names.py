"""Rules that programs register for passes, by TVM's names."""

from typing import Any

import tilewright as tvm
from tilewright import relay
from tilewright.relay.testing import run_opt_pass
from tilewright.relay.testing.temp_op_attr import TempOpAttr
from tilewright.relay.transform import mixed_precision
from tilewright.relay.transform.infer_layout_utils import InferCorrectLayoutOutput


def test_a_layout_rule_gives_lists() -> None:
    """A rule that a program registers is asked, and may answer with lists."""
    asked: list[Any] = []

    def rule(
        attrs: Any, new_in_layouts: Any, old_in_layouts: Any, old_in_types: Any
    ) -> InferCorrectLayoutOutput:
        asked.append(new_in_layouts)
        layout = new_in_layouts[0] if new_in_layouts else tvm.tir.layout("NHWC")
        return InferCorrectLayoutOutput([layout], [layout], attrs)

    x, w = relay.var("x", shape=(1, 8, 8, 4)), relay.var("w", shape=(3, 3, 4, 4))
    y = relay.nn.conv2d(x, w, channels=4, kernel_size=(3, 3), data_layout="NHWC", kernel_layout="HWIO")
    function = relay.Function([x, w], relay.nn.relu(y))
    with TempOpAttr("nn.relu", "FInferCorrectLayout", None):
        relay.op.register_infer_correct_layout("nn.relu", rule, level=12)
        made = run_opt_pass(function, relay.transform.ConvertLayout({"nn.conv2d": ["NCHW", "default"]}))
    assert asked and made.body.op.name == "layout_transform"


def test_a_rule_of_precision() -> None:
    """An operator with the rule "never" stays wide."""
    x, w = relay.var("x", shape=(2, 4)), relay.var("w", shape=(3, 4))
    module = relay.transform.InferType()(tvm.IRModule.from_expr(relay.nn.dense(x, w)))
    narrow = relay.transform.ToMixedPrecision("float16")(module)
    assert "float16" in narrow.astext()
    with TempOpAttr("nn.dense", "FTVMMixedPrecisionConversionType", mixed_precision.generic_never_op):
        assert "float16" not in relay.transform.ToMixedPrecision("float16")(module).astext()
