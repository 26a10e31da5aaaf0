"""TVM's names for strategies and schedules: each resolves, and what is registered under one reaches the compiler."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import tilewright as tvm
from tilewright import relay, strategy, te, topi
from tilewright.compat import cuda
from tilewright.compat.named_strategies import SCHEDULES, STRATEGIES, X86_STRATEGIES
from tilewright.compat.operator_schedules import OF_X86, OPERATORS
from tilewright.ir.op import Op
from tilewright.strategy import OpStrategy
from tilewright.target import get_native_generic_func

KINDS = ("injective", "reduce")


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("topi.generic", [f"schedule_{name}" for name in OPERATORS]),
        ("topi.generic.nn", ["schedule_dense", "schedule_pool", "schedule_pool_grad"]),
        ("topi.generic.default", ["default_schedule", "schedule_default"]),
        ("topi.x86", [f"schedule_{name}" for name in OF_X86]),
        ("topi.cuda", [f"schedule_{name}" for name in cuda.SCHEDULES]),
        ("relay.op.strategy", list(STRATEGIES)),
        ("relay.op.strategy.generic", [f"schedule_{name}" for name in SCHEDULES]),
        ("relay.op.strategy.x86", list(X86_STRATEGIES)),
        ("topi.testing", ["get_injective_schedule", "conv2d_nchw_python"]),
    ],
)
def test_modules_that_are_data(module: str, names: list[str]) -> None:
    """They are imported like any other, have their names, and each name is always the same object."""
    found = importlib.import_module(f"tilewright.{module}")
    for name in names:
        value = getattr(found, name)
        assert callable(value) and value is getattr(found, name) and value.__doc__, name
    with pytest.raises(AttributeError, match="has no attribute 'schedule_of_nothing'"):
        _ = found.schedule_of_nothing


def test_attributes_of_packages() -> None:
    """A module that is data is an attribute of the package that it belongs to."""
    assert topi.generic is importlib.import_module("tilewright.topi.generic")
    assert relay.op.strategy.generic.dense_strategy is relay.op.strategy.dense_strategy
    with pytest.raises(AttributeError):
        _ = topi.no_such_package


def test_every_operator_of_a_name_is_defined() -> None:
    """No name is misspelt."""
    for calls in (one for table in (OPERATORS, SCHEDULES) for each in table.values() for one in each):
        assert calls.operator in KINDS or Op.get(calls.operator).get_attr("FTVMCompute"), calls.operator
    for operator in STRATEGIES.values():
        assert Op.get(operator).get_attr("FTVMCompute") is not None, operator


def test_a_strategy_gives_what_the_table_says() -> None:
    """The rows that hold, then the definition; under the name that generic functions are known by, too."""
    x, w = relay.var("x", shape=(16, 8)), relay.var("w", shape=(32, 8))
    call = relay.nn.dense(x, w)
    function = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, w], call)))["main"]
    inputs = [te.placeholder((16, 8)), te.placeholder((32, 8))]
    given: tuple[Any, ...] = (call.attrs, inputs, function.ret_type, tvm.target.Target("llvm"))
    generic = relay.op.strategy.generic
    with given[-1]:
        for found in (
            generic.dense_strategy(*given),
            relay.op.strategy.x86.dense_strategy_cpu(*given),
            get_native_generic_func("dense_strategy")(*given),
        ):
            assert isinstance(found, OpStrategy)
            assert [one.name for one in found.implementations] == ["dense_packed.cpu", "nn.dense"]
    names = [
        one.name for one in generic.dense_strategy(*given[:3], tvm.target.Target("cuda")).implementations
    ]
    assert names == ["nn.dense"]


def test_a_schedule_of_the_graph_level_reaches_the_compiler() -> None:
    """Registered under a key for pooling, it schedules pooling under targets with the key."""
    key = "a_key_for_pooling"
    seen: list[int] = []

    @relay.op.strategy.generic.schedule_pool.register(key)
    def mine(attrs: Any, outs: Any, target: Any) -> Any:
        seen.append(len(outs))
        return te.create_schedule([out.op for out in outs])

    x = relay.var("x", shape=(1, 2, 4, 4))
    module = tvm.IRModule.from_expr(relay.Function([x], relay.nn.max_pool2d(x, (2, 2))))
    try:
        relay.build(module, tvm.target.Target(f"llvm -keys={key},cpu"))
        assert seen == [1]
        relay.build(module, "llvm")
        assert seen == [1]
    finally:
        del relay.op.strategy.generic.schedule_pool.dispatch_dict[key]
        for calls in SCHEDULES["pool"]:
            strategy.forget(calls.operator, key)


@pytest.mark.parametrize("name", ["injective", "reduce", "softmax", "dense", "extern"])
def test_a_name_gives_the_schedule_of_the_target(name: str) -> None:
    """Vectors on a processor, threads with vectors on a device that has them."""
    a = te.placeholder((64, 64), name="a")
    made = topi.exp(a)
    for target, words in (("llvm", ["T.ramp"]), ("cuda", ["T.ramp", "threadIdx.x"])):
        with tvm.target.Target(target):
            schedule = getattr(topi.generic, f"schedule_{name}")([made])
        text = str(tvm.lower(schedule, [a, made], simple_mode=True))
        assert [one for one in ("T.ramp", "threadIdx.x") if one in text] == words


def test_layouts_of_x86_by_their_names() -> None:
    """The functions that AlterOpLayout calls on a CPU, for programs that register them themselves."""
    x, w = relay.var("x", shape=(32, 128)), relay.var("w", shape=(48, 128))
    typed = relay.transform.InferType()(tvm.IRModule.from_expr(relay.nn.dense(x, w)))["main"]
    types = [parameter.checked_type for parameter in typed.params]
    alter = importlib.import_module("tilewright.topi.x86.dense_alter_op")._alter_dense_layout
    with tvm.target.Target("llvm -mcpu=core-avx2"):
        made = alter(typed.body.attrs, list(typed.params), types, typed.body.checked_type)
    assert made.op.name == "nn.contrib_dense_pack"
    assert callable(importlib.import_module("tilewright.topi.x86.conv2d_alter_op")._alter_conv2d_layout)
