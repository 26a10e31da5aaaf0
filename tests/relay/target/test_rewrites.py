"""Which graph rewrites a target has: by its keys, after what users register for operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tilewright as tvm
from tilewright import relay, topi
from tilewright.ir.op import Op
from tilewright.relay.pipeline import prepare_passes
from tilewright.relay.target import (
    _REWRITES,
    GraphRewrites,
    alter_layout_rule,
    legalize_rule,
    register_rewrites,
    rewrites_for,
)
from tilewright.relay.target.cpu.layout import conv2d_in_blocks
from tilewright.relay.target.gpu.layout import conv2d_channels_last
from tilewright.relay.testing.temp_op_attr import TempOpAttr
from tilewright.support.errors import TargetError

KEY = "a_key_for_rewrites"
MINE = tvm.target.Target(f"llvm -keys={KEY},cpu")
CONV2D = Op.get("nn.conv2d")


def mine(*given: Any) -> Any:
    """Leaves every call as it is."""
    return None


@pytest.fixture
def forget_after() -> Iterator[None]:
    """What a test registers under its key is gone after it."""
    yield
    _REWRITES.pop(KEY, None)
    for function in (topi.nn.conv2d_alter_layout, topi.nn.conv2d_legalize):
        function.dispatch_dict.pop(KEY, None)


def names(target: Any) -> list[str]:
    """The passes before fusion."""
    return [one.info.name for one in prepare_passes(target)]


def test_each_kind_of_device_has_its_own_rewrites() -> None:
    """Passes, layouts and legal forms are nobody else's; without a target there are none."""
    cpu, gpu = tvm.target.Target("llvm"), tvm.target.Target("cuda")
    assert set(names(cpu)) - set(names(gpu)) == {
        "AddPartialResiduals",
        "ConvolveImages",
        "DenseOfConstant",
        "KeepWeightsPacked",
        "PadChannels",
        "SplitDilation",
        "Tabulate",
        "UnsignedData",
        "WidenHalf",
    }
    assert set(names(gpu)) - set(names(cpu)) == {"FoldOutputCast"}
    with cpu:
        assert alter_layout_rule(CONV2D) is conv2d_in_blocks
        assert legalize_rule(CONV2D) is not None
    with gpu:
        assert alter_layout_rule(CONV2D) is conv2d_channels_last and legalize_rule(CONV2D) is None
    assert alter_layout_rule(CONV2D) is None
    assert rewrites_for(None) == GraphRewrites()


@pytest.mark.usefixtures("forget_after")
def test_a_device_adds_its_own() -> None:
    """One entry of the table: passes and rules under a key. A second one has to say that it replaces the first."""
    rewrites = GraphRewrites((relay.transform.FlattenAtrousConv,), {"nn.conv2d": mine})
    register_rewrites(KEY, rewrites)
    assert rewrites_for(MINE) is rewrites
    assert "FlattenAtrousConv" in names(MINE) and "SplitDilation" not in names(MINE)
    with MINE:
        assert alter_layout_rule(CONV2D) is mine
    with pytest.raises(TargetError, match="already"):
        register_rewrites(KEY, rewrites)
    register_rewrites(KEY, GraphRewrites(), override=True)
    assert rewrites_for(MINE) == GraphRewrites()


@pytest.mark.usefixtures("forget_after")
def test_what_users_register_comes_first() -> None:
    """A generic function of topi under a key of the target; before that, an attribute of the operator."""
    topi.nn.conv2d_alter_layout.register(KEY, mine)
    topi.nn.conv2d_legalize.register(KEY, mine)
    with MINE:
        assert alter_layout_rule(CONV2D) is mine and legalize_rule(CONV2D) is mine

        def other(*given: Any) -> Any:
            return None

        with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", other):
            assert alter_layout_rule(CONV2D) is other
    with tvm.target.Target("llvm"):
        assert alter_layout_rule(CONV2D) is conv2d_in_blocks
    with TempOpAttr("nn.conv2d", "FTVMMyRule", mine):
        assert legalize_rule(CONV2D, "FTVMMyRule") is mine
