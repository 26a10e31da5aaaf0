"""What a build says about its choices: the row of every operator, the reason, and the rows that were passed over."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tvm
from tilewright import relay
from tilewright.relay.backend.explain import (
    explain_function,
    explain_kernels,
    explain_module,
    explanation_text,
)

CPU = tvm.target.Target("llvm -mcpu=skylake-avx512")


def fused(body: Any) -> Any:
    """An expression as one primitive function."""
    function = relay.Function(relay.analysis.free_vars(body), body)
    return relay.transform.InferType()(tvm.IRModule.from_expr(function))["main"]


def layer(rows: int) -> Any:
    """A dense layer and what follows it."""
    x, w = relay.var("x", shape=(rows, 8)), relay.var("w", shape=(32, 8))
    return fused(relay.nn.relu(relay.nn.dense(x, w) + relay.const(1.0)))


def test_every_operator_of_a_function() -> None:
    """In the order of the computation, with the row that was taken and those that were not."""
    dense, add, relu = explain_function(layer(16), CPU)
    assert (dense.operator, dense.name, dense.reason) == (
        "nn.dense",
        "dense_packed.cpu",
        "many rows repay packing the weight",
    )
    assert {one.name: one.reason for one in dense.refused} == {
        "dense_packed_lanes.cpu": "no dot product of float32 and float32 to float32 on this target",
        "nn.dense": "dense_packed.cpu comes before it",
    }
    assert [(one.name, one.computation, one.refused) for one in (add, relu)] == [
        ("add", "the operator's definition", ()),
        ("nn.relu", "the operator's definition", ()),
    ]


def test_the_text_is_a_table_of_80_columns() -> None:
    """One for each kernel; operators without a choice stand in one line."""
    text = explanation_text(explain_kernels({"tvmgen_default_fused_nn_dense": layer(2)}, CPU))
    assert text.splitlines() == [
        "fused_nn_dense",
        "  scheduler: cpu",
        "  nn.dense",
        "    taken    nn.dense                        the operator's definition: no row",
        "                                             of the table applies",
        "    passed   dense_packed_lanes.cpu          no dot product of float32 and",
        "                                             float32 to float32 on this target",
        "    passed   dense_packed.cpu                2 rows, fewer than the 8 that repay",
        "                                             packing the weight",
        "  as defined: add, nn.relu",
    ]


def test_a_whole_model() -> None:
    """Every kernel of a convolutional network, with lines that fit a terminal; Winograd's has its own schedule."""
    x = relay.var("x", shape=(1, 64, 56, 56))
    weight = relay.const(np.ones((64, 64, 3, 3), "float32"))
    body = relay.nn.relu(relay.nn.conv2d(x, weight, padding=(1, 1)))
    body = relay.nn.softmax(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(body)))
    module = tvm.IRModule.from_expr(relay.Function([x], body))
    with tvm.transform.PassContext(opt_level=3):
        factory = relay.build(module, CPU)
    found = explain_module(factory.ir_mod, CPU)
    by_operator = {one.operator: one for kernel in found for one in kernel.choices}
    winograd = by_operator["nn.contrib_conv2d_winograd_without_weight_transform"]
    assert winograd.name == "conv2d_winograd_NCHWc.cpu"
    assert winograd.scheduler == "cpu, conv2d_winograd_NCHWc"
    assert by_operator["nn.softmax"].name == "nn.softmax"
    text = explanation_text(found)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "scheduler: cpu, conv2d_winograd_NCHWc" in text
    assert found[0].as_json()["operators"][0]["operator"] == found[0].choices[0].operator


def test_functions_for_other_code_generators_are_left_out() -> None:
    """They are not computed here."""
    x = relay.var("x", shape=(3,))
    inner = relay.Function([x], relay.exp(x))
    taken = inner.with_attr("Primitive", 1).with_attr("Compiler", "other")
    outer = relay.var("y", shape=(3,))
    call = relay.Call(taken, [outer])
    module = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([outer], call)))
    assert explain_module(module, CPU) == []
