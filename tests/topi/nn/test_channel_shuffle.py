"""Channels dealt out in turn: the numbers by schedule and layout, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, topi
from tilewright.support.errors import OpAttributeInvalid


@pytest.mark.parametrize(
    ("channels", "groups", "block"),
    [(12, 3, None), (12, 1, None), (16, 2, 4), (16, 4, 4), (12, 2, 4), (12, 12, 3), (20, 2, 10)],
)
def test_every_channel_is_where_it_belongs(channels: int, groups: int, block: int | None) -> None:
    """Channel c is channel c // groups of group c % groups, however the channels lie in blocks."""
    plain = np.arange(channels * 6, dtype="float32").reshape(1, channels, 2, 3)
    wanted = np.stack(
        [plain[:, c % groups * (channels // groups) + c // groups] for c in range(channels)], axis=1
    )
    layout = "NCHW" if block is None else f"NCHW{block}c"
    given, expected = (
        one if block is None else one.reshape(1, -1, block, 2, 3).transpose(0, 1, 3, 4, 2)
        for one in (plain, wanted)
    )
    data = te.placeholder(given.shape, name="data")
    made = topi.nn.channel_shuffle(data, groups, layout)
    with tvm.target.Target("llvm"):
        schedule = topi.x86.schedule_injective(made)
    result = tvm.nd.array(np.zeros(given.shape, "float32"))
    tvm.build(schedule, [data, made], "llvm")(tvm.nd.array(np.ascontiguousarray(given)), result)
    assert np.array_equal(result.numpy(), expected)


def test_what_is_no_shuffle_is_refused() -> None:
    """Channels that cannot be divided into the groups, and layouts of another order."""
    data = te.placeholder((1, 10, 2, 3), name="data")
    with pytest.raises(OpAttributeInvalid, match="10 channels cannot be divided into 4 groups"):
        topi.nn.channel_shuffle(data, 4)
    with pytest.raises(OpAttributeInvalid, match="not 'NHWC'"):
        topi.nn.channel_shuffle(data, 2, "NHWC")
