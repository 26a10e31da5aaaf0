"""Parameters as bytes."""

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tilewright.runtime import load_param_dict, save_param_dict
from tilewright.runtime import ndarray as nd
from tilewright.support.errors import TilewrightError

arrays = hnp.arrays(
    st.sampled_from(["float32", "int8", "float16", "bool", "int64"]),
    hnp.array_shapes(min_dims=0, min_side=0, max_side=3),
)


@given(st.dictionaries(st.text(max_size=8), arrays, max_size=4))
def test_round_trip(params: dict[str, Any]) -> None:
    """Names, types, shapes and every bit come back, in order."""
    loaded = load_param_dict(save_param_dict({name: nd.array(value) for name, value in params.items()}))
    assert list(loaded) == list(params)
    for name, value in params.items():
        assert loaded[name].dtype == value.dtype.name and loaded[name].shape == value.shape
        assert loaded[name].numpy().tobytes() == value.tobytes()


def test_known_bytes() -> None:
    """The form is the published one: a block written by hand is read, and written again as it was."""
    head = struct.pack("<QQQ", 0xF7E58D4F05049CB7, 0, 1) + struct.pack("<Q", 1) + b"w" + struct.pack("<Q", 1)
    body = struct.pack("<QQiiiBBHqq", 0xDD5E40F096B4A13F, 0, 1, 0, 1, 2, 32, 1, 2, 8) + struct.pack(
        "<ff", 1.5, -2
    )
    loaded = load_param_dict(head + body)
    np.testing.assert_array_equal(loaded["w"].numpy(), np.array([1.5, -2], "float32"))
    assert save_param_dict(loaded) == head + body
    assert save_param_dict({"w": np.array([1.5, -2], "float32")}) == head + body


@given(st.data())
def test_damaged_blocks(data: st.DataObject) -> None:
    """Changed or cut bytes give arrays or an error about parameters, and nothing else."""
    block = bytearray(save_param_dict({"a": np.arange(3.0), "b": np.zeros((2, 2), "int8")}))
    for _ in range(data.draw(st.integers(1, 3))):
        block[data.draw(st.integers(0, len(block) - 1))] = data.draw(st.integers(0, 255))
    loaded: dict[str, nd.NDArray] = {}
    try:
        loaded = load_param_dict(block[: data.draw(st.integers(0, len(block)))])
    except TilewrightError:
        return
    assert len(loaded) <= 2


def test_not_parameters() -> None:
    """Bytes that are something else are refused."""
    with pytest.raises(ValueError, match="cut short at byte 3"):
        load_param_dict(b"abc")
    with pytest.raises(ValueError, match="do not begin with the right magic number"):
        load_param_dict(b"\0" * 64)
