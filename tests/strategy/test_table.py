"""Which row of the table an operator has under a target, why the others were passed over, and what users put before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import tilewright as tvm
from tilewright import relay, strategy, te, topi
from tilewright.relay.backend.implementation import get_valid_implementations, is_own
from tilewright.relay.testing.temp_op_attr import TempOpAttr
from tilewright.strategy import Choice, OpStrategy, Row
from tilewright.support.errors import OpNotImplemented, TargetError

CPU = tvm.target.Target("llvm -mcpu=skylake-avx512")
KEY = "a_key_of_this_test"
MINE = tvm.target.Target(f"llvm -keys={KEY},cpu")
GPU = tvm.target.Target("cuda")


def chosen(call: Any, shapes: list[tuple[int, ...]], target: Any = CPU, dtype: str = "float32") -> Choice:
    """What is taken for a call of these operands."""
    inputs = [te.placeholder(shape, dtype) for shape in shapes]
    parameters = [relay.var(f"x{number}", shape=shape, dtype=dtype) for number, shape in enumerate(shapes)]
    made = call(*parameters)
    function = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function(parameters, made)))["main"]
    return strategy.choose(made.op, made.attrs, inputs, function.ret_type, target)[0]


def reasons(choice: Choice) -> dict[str, str]:
    """Why each other row was passed over."""
    return {one.name: one.reason for one in choice.refused}


@pytest.fixture
def forget_after() -> Iterator[None]:
    """What a test registers under its key is gone after it."""
    yield
    for operator in ("nn.softmax", "nn.dense", "injective", "nn.conv2d"):
        strategy.forget(operator, KEY)
    for name in ("softmax_strategy", "dense_strategy"):
        getattr(relay.op.strategy.generic, name).dispatch_dict.pop(KEY, None)
    for name in ("schedule_dense", "schedule_injective", "schedule_conv2d_nchw", "schedule_conv2d_nhwc"):
        getattr(topi.generic, name).dispatch_dict.pop(KEY, None)


@pytest.mark.parametrize(
    ("attributes", "data", "weight", "reason"),
    [
        ({}, (1, 3, 5, 5), (7, 3, 3, 3), "vectors of channels would be mostly empty"),
        ({"groups": 16}, (1, 16, 5, 5), (16, 1, 3, 3), "depthwise"),
        (
            {"data_layout": "NHWC", "kernel_layout": "HWIO"},
            (1, 5, 5, 16),
            (3, 3, 16, 16),
            "layout NHWC/HWIO, not NCHW/OIHW",
        ),
    ],
)
def test_a_convolution_that_blocks_do_not_help(
    attributes: dict[str, Any], data: tuple[int, ...], weight: tuple[int, ...], reason: str
) -> None:
    """It is computed as it is defined, and the row that was passed over says why."""
    found = chosen(lambda x, w: relay.nn.conv2d(x, w, **attributes), [data, weight])
    assert (found.name, found.computation) == ("nn.conv2d", "the operator's definition")
    assert reasons(found)["conv2d_nchw_packed.cpu"].startswith(reason)


def test_a_convolution_with_channels_for_whole_vectors() -> None:
    """Its channels are packed into blocks, whether or not they fall into groups; the definition comes after."""
    for groups in (1, 2):
        found = chosen(
            lambda x, w, groups=groups: relay.nn.conv2d(x, w, groups=groups),
            [(1, 32, 5, 5), (32, 32 // groups, 3, 3)],
        )
        assert (found.name, found.computation) == ("conv2d_nchw_packed.cpu", "topi.nn.conv2d_nchw_packed")
        assert found.scheduler == "cpu"
        assert reasons(found) == {"nn.conv2d": "conv2d_nchw_packed.cpu comes before it"}


def test_half_floats_are_added_in_float32() -> None:
    """The plain computation is taken for them on processors too."""
    found = chosen(relay.nn.conv2d, [(1, 16, 5, 5), (16, 16, 3, 3)], dtype="float16")
    assert found.name == "nn.conv2d"
    assert "float16 is accumulated in float32" in reasons(found)["conv2d_nchw_packed.cpu"]


@pytest.mark.parametrize(
    ("call", "shapes", "dtype", "name"),
    [
        (relay.nn.dense, [(2, 4), (3, 4)], "float32", "nn.dense"),
        (relay.nn.dense, [(8, 4), (3, 4)], "float32", "dense_packed.cpu"),
        (relay.nn.batch_matmul, [(2, 3, 4), (2, 5, 4)], "float32", "nn.batch_matmul"),
        (relay.nn.batch_matmul, [(2, 8, 4), (2, 5, 4)], "float32", "batch_matmul_transposed.cpu"),
        (relay.nn.contrib_dense_pack, [(2, 4), (1, 4, 8)], "float32", "nn.contrib_dense_pack"),
        (relay.nn.dense, [(8, 4), (3, 4)], "bfloat16", "dense_packed_lanes.cpu"),
        (relay.nn.batch_matmul, [(2, 8, 4), (2, 5, 4)], "bfloat16", "batch_matmul_packed_lanes.cpu"),
    ],
)
def test_products(call: Any, shapes: list[tuple[int, ...]], dtype: str, name: str) -> None:
    """By their rows and their types on processors; as they are defined elsewhere, where there are no rows."""
    assert chosen(call, shapes, CPU, dtype).name == name
    elsewhere = chosen(call, shapes, GPU, dtype)
    assert (elsewhere.scheduler, elsewhere.refused) == ("gpu", ())


def test_a_tag_has_a_schedule_of_its_own() -> None:
    """The schedule of Winograd's convolution is found by the tag of the computation."""

    def convolution(data: Any, weight: Any) -> Any:
        return relay.nn.contrib_conv2d_winograd_without_weight_transform(
            data, weight, 4, kernel_size=(3, 3), channels=16, data_layout="NCHW16c", out_layout="NCHW16c"
        )

    found = chosen(convolution, [(1, 1, 8, 8, 16), (6, 6, 1, 16, 16)])
    assert (found.name, found.scheduler) == ("conv2d_winograd_NCHWc.cpu", "cpu, conv2d_winograd_NCHWc")


def test_an_operator_without_rows() -> None:
    """The definition, by the target's scheduler, with nothing to refuse."""
    found = chosen(lambda x: relay.nn.softmax(x), [(2, 5)])
    assert (found.operator, found.name, found.scheduler) == ("nn.softmax", "nn.softmax", "cpu")
    assert found.reason == "no row of the table applies"
    assert found.refused == ()


@pytest.mark.usefixtures("forget_after")
def test_a_target_registers_its_own() -> None:
    """An implementation of a higher level, under a key, is taken for targets that have the key."""
    generic = relay.op.strategy.generic

    @generic.softmax_strategy.register(KEY)
    def fast(attrs: Any, inputs: Any, out_type: Any, target: Any) -> OpStrategy:
        made = generic.softmax_strategy.fdefault(attrs, inputs, out_type, target)
        made.add_implementation(
            generic.wrap_compute_softmax(topi.nn.fast_softmax),
            generic.wrap_topi_schedule(topi.generic.schedule_softmax),
            name="softmax.fast",
            plevel=15,
        )
        return made  # type: ignore[no-any-return]

    found = chosen(relay.nn.softmax, [(2, 5)], MINE)
    assert found.name == "softmax.fast"
    assert reasons(found) == {"nn.softmax": "its level 10 is below 15"}
    assert chosen(relay.nn.softmax, [(2, 5)]).name == "nn.softmax"


@pytest.mark.usefixtures("forget_after")
def test_a_strategy_of_a_user_wins_over_rows() -> None:
    """Rows of the table are refused, with the reason."""

    def mine(attrs: Any, inputs: Any, out_type: Any, target: Any) -> OpStrategy:
        made = OpStrategy()
        made.add_implementation(
            lambda attrs, inputs, out_type: [topi.nn.dense(*inputs)], strategy.by_target, name="dense.mine"
        )
        return made

    relay.op.strategy.generic.dense_strategy.register(KEY, mine)
    found = chosen(relay.nn.dense, [(8, 4), (3, 4)], MINE)
    assert found.name == "dense.mine"
    assert reasons(found)["dense_packed.cpu"] == "a strategy was registered for nn.dense"
    with TempOpAttr("nn.dense", "FTVMStrategy", mine):
        assert chosen(relay.nn.dense, [(8, 4), (3, 4)]).name == "dense.mine"
    assert chosen(relay.nn.dense, [(8, 4), (3, 4)]).name == "dense_packed.cpu"


def test_a_computation_of_a_user_wins_over_rows() -> None:
    """Registered in the place of the definition's, with the target's schedule."""

    def mine(attrs: Any, inputs: Any, out_type: Any) -> list[Any]:
        return [topi.nn.dense(*inputs)]

    with TempOpAttr("nn.dense", "FTVMCompute", mine):
        found = chosen(relay.nn.dense, [(8, 4), (3, 4)])
        assert not is_own(relay.op.get("nn.dense"), CPU)
    assert found.implementation.compute_function is mine
    assert reasons(found)["dense_packed.cpu"] == "a computation was registered for nn.dense"
    assert is_own(relay.op.get("nn.dense"), CPU)


@pytest.mark.usefixtures("forget_after")
def test_a_named_schedule_is_used_for_the_operators_of_the_name() -> None:
    """Under its key, for the layout that it names; rows give way, and what it made is not kept in the cache."""
    calls: list[str] = []

    @topi.generic.schedule_conv2d_nchw.register(KEY)
    def mine(outs: Any) -> Any:
        calls.append("conv2d_nchw")
        return te.create_schedule([out.op for out in outs])

    shapes = [(1, 32, 5, 5), (32, 32, 3, 3)]
    found = chosen(relay.nn.conv2d, shapes, MINE)
    assert (found.name, found.scheduler) == ("nn.conv2d", "topi.generic.schedule_conv2d_nchw")
    assert not is_own(relay.op.get("nn.conv2d"), MINE)
    assert is_own(relay.op.get("nn.conv2d"), CPU), "the key is not one of this target's"
    depthwise = chosen(lambda x, w: relay.nn.conv2d(x, w, groups=32), [(1, 32, 5, 5), (32, 1, 3, 3)], MINE)
    assert depthwise.scheduler == "cpu"
    x = relay.var("x", shape=(1, 32, 5, 5))
    w = relay.var("w", shape=(32, 32, 3, 3))
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.conv2d(x, w)))
    with tvm.transform.PassContext(opt_level=0):
        relay.build(module, MINE)
    assert calls == ["conv2d_nchw"]


@pytest.mark.usefixtures("forget_after")
def test_a_named_schedule_of_a_kind_of_operators() -> None:
    """What is registered as the schedule of injective operators is used for all of them."""
    topi.generic.schedule_injective.register(KEY, lambda outs: te.create_schedule([o.op for o in outs]))
    assert chosen(relay.exp, [(3,)], MINE).scheduler == "topi.generic.schedule_injective"
    assert chosen(lambda x: relay.sum(x), [(3,)], MINE).scheduler == "cpu"


def test_rows_are_added_by_users() -> None:
    """A row for a key of one's own is taken by its level, and refuses with its own words."""

    def even(attrs: Any, inputs: Any, out_type: Any, target: Any) -> str | None:
        return None if int(inputs[0].shape[0]) % 2 == 0 else "an odd number of rows"

    row = Row(
        "nn.relu",
        "a_key_for_rows",
        "relu.even",
        lambda attrs, inputs, out_type: [topi.nn.relu(inputs[0])],
        "topi.nn.relu",
        even,
        "pairs of rows",
        plevel=12,
    )
    strategy.add_row(row)
    target = tvm.target.Target("llvm -keys=a_key_for_rows,cpu")
    found = chosen(relay.nn.relu, [(4, 3)], target)
    assert (found.name, found.reason) == ("relu.even", "pairs of rows")
    assert reasons(chosen(relay.nn.relu, [(3, 3)], target)) == {"relu.even": "an odd number of rows"}
    strategy.add_row(replace(row, operator="tanh", name="tanh.below", plevel=5))
    below = chosen(relay.tanh, [(4, 3)], target)
    assert (below.name, reasons(below)) == ("tanh", {"tanh.below": "its level 5 is below 10"})


def test_every_row_belongs_to_an_operator_that_is_defined() -> None:
    """No name is misspelt, and no two rows have the same."""
    rows = strategy.all_rows()
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        assert relay.op.get(row.operator).get_attr("FTVMCompute") is not None, row.name


def test_an_operator_without_a_computation() -> None:
    """It cannot be compiled, and says so."""
    op = relay.op.get("memory.kill")
    with pytest.raises(OpNotImplemented, match="memory.kill has no implementation for the target llvm"):
        get_valid_implementations(op, None, [], None, CPU)


def test_a_target_without_a_scheduler() -> None:
    """An error that names the kind, never the schedule of another device."""
    target = tvm.target.Target("hexagon")
    with pytest.raises(TargetError, match="no scheduler for target kind 'hexagon'"):
        chosen(relay.exp, [(3,)], target)
    program = te.placeholder((3,))
    with target, pytest.raises(TargetError, match="no scheduler for target kind 'hexagon'"):
        topi.generic.schedule_injective(topi.exp(program))
