"""Which implementation an operator has, by its layout and groups, and under which target."""

from __future__ import annotations

from typing import Any

import pytest

import tilewright as tvm
from tilewright import relay, te, topi
from tilewright.relay.backend.implementation import get_valid_implementations
from tilewright.relay.op.op import OpStrategy
from tilewright.relay.op.strategy import generic
from tilewright.relay.op.strategy.registration import STRATEGIES

CPU = tvm.target.Target("llvm")
OTHER = tvm.target.Target("cuda")


def implementation(call: Any, shapes: list[tuple[int, ...]], target: Any, dtype: str = "float32") -> Any:
    """The implementation that is taken for a call."""
    inputs = [te.placeholder(shape, dtype) for shape in shapes]
    parameters = [relay.var(f"x{number}", shape=shape, dtype=dtype) for number, shape in enumerate(shapes)]
    made = call(*parameters)
    function = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function(parameters, made)))["main"]
    return get_valid_implementations(made.op, made.attrs, inputs, function.ret_type, target)[0]


@pytest.mark.parametrize(
    ("attributes", "data", "weight", "name"),
    [
        ({}, (1, 4, 5, 5), (8, 4, 3, 3), "conv2d_nchw"),
        ({"groups": 2}, (1, 4, 5, 5), (8, 2, 3, 3), "group_conv2d_nchw"),
        ({"groups": 4}, (1, 4, 5, 5), (4, 1, 3, 3), "depthwise_conv2d_nchw"),
        ({"data_layout": "NHWC", "kernel_layout": "HWIO"}, (1, 5, 5, 4), (3, 3, 4, 8), "conv2d_nhwc"),
        (
            {"data_layout": "NHWC", "kernel_layout": "HWOI", "groups": 4},
            (1, 5, 5, 4),
            (3, 3, 4, 1),
            "depthwise_conv2d_nhwc",
        ),
        ({"data_layout": "HWCN", "kernel_layout": "HWIO"}, (5, 5, 4, 1), (3, 3, 4, 8), "conv2d_hwcn"),
    ],
)
def test_conv2d_by_layout_and_groups(
    attributes: dict[str, Any], data: tuple[int, ...], weight: tuple[int, ...], name: str
) -> None:
    """The name tells the layout and whether channels fall into groups; processors have their own for NCHW."""
    found = implementation(lambda x, w: relay.nn.conv2d(x, w, **attributes), [data, weight], OTHER)
    assert found.name == f"{name}.generic"
    on_cpu = implementation(lambda x, w: relay.nn.conv2d(x, w, **attributes), [data, weight], CPU)
    assert on_cpu.name == (f"{name}.x86" if "data_layout" not in attributes else f"{name}.generic")


def test_half_floats_are_added_in_float32() -> None:
    """The plain computation is taken for them on processors too."""
    found = implementation(relay.nn.conv2d, [(1, 16, 5, 5), (16, 16, 3, 3)], CPU, "float16")
    assert found.name == "conv2d_nchw.generic"


@pytest.mark.parametrize(
    ("call", "shapes", "name"),
    [
        (relay.nn.dense, [(2, 4), (3, 4)], "dense"),
        (relay.nn.batch_matmul, [(2, 3, 4), (2, 5, 4)], "batch_matmul"),
        (relay.nn.contrib_dense_pack, [(2, 4), (1, 4, 8)], "dense_pack"),
    ],
)
def test_products(call: Any, shapes: list[tuple[int, ...]], name: str) -> None:
    """Processors have their own, other targets the definition's."""
    assert implementation(call, shapes, CPU).name == f"{name}.x86"
    assert implementation(call, shapes, OTHER).name == f"{name}.generic"


def test_a_target_registers_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """An implementation of a higher level, under a key, is taken for targets that have the key."""

    def fast(attrs: Any, inputs: Any, out_type: Any, target: Any) -> OpStrategy:
        made = generic.softmax_strategy.fdefault(attrs, inputs, out_type, target)
        made.add_implementation(
            generic.wrap_compute_softmax(topi.nn.fast_softmax),
            generic.wrap_topi_schedule(topi.generic.schedule_softmax),
            name="softmax.fast",
            plevel=15,
        )
        return made  # type: ignore[no-any-return]

    entries = relay.op.get("nn.softmax").get_attr("FTVMStrategy").dispatch_dict
    monkeypatch.setitem(entries, "a_key_of_this_test", None)
    del entries["a_key_of_this_test"]
    generic.softmax_strategy.register("a_key_of_this_test", fast)
    mine = tvm.target.Target("llvm -keys=a_key_of_this_test,cpu")
    assert implementation(relay.nn.softmax, [(2, 5)], mine).name == "softmax.fast"
    assert implementation(relay.nn.softmax, [(2, 5)], CPU).name == "softmax.generic"


def test_every_strategy_belongs_to_an_operator_that_is_defined() -> None:
    """No name is misspelt."""
    for name in STRATEGIES:
        op = relay.op.get(name)
        assert op.get_attr("FTVMCompute") is not None, name
        assert op.has_attr("FTVMStrategy"), name


def test_depthwise_is_recognised_in_any_layout() -> None:
    """Blocks of channels are counted."""
    assert generic.is_depthwise_conv2d((1, 2, 5, 5, 4), "NCHW4c", (8, 1, 3, 3), "OIHW", 8)
    assert not generic.is_depthwise_conv2d((1, 8, 5, 5), "NCHW", (16, 1, 3, 3), "OIHW", 8)
    assert generic.get_conv2d_in_channels((1, 2, 5, 5, 4), "NCHW4c") == 8
    assert generic.get_conv2d_out_channels((3, 3, 4, 16), "HWIO") == 16
