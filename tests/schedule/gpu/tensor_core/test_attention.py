"""Attention in one kernel, run by simulated threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.schedule.gpu.device import run

import tilewright as tvm
from tilewright import te
from tilewright.schedule.gpu.tensor_core.attention import attention, attention_refused
from tilewright.topi.nn.attention import AXES, AttentionShape

TARGET = tvm.target.Target("cuda -arch=sm_90a")


def reference(arrays: list[Any], layouts: tuple[str, ...], scale: float) -> Any:
    """Softmax of the scores, times the values, in the result's layout."""
    query, key, value = (
        one.astype("float32").transpose([layout.index(letter) for letter in "NHTC"])
        for one, layout in zip(arrays[:3], layouts[:3], strict=True)
    )
    scores = query @ key.swapaxes(2, 3) * scale
    if len(arrays) > 3:
        scores = scores + arrays[3].astype("float32").swapaxes(2, 3)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    made = weights / weights.sum(-1, keepdims=True) @ value
    return made.transpose(["NHTC".index(letter) for letter in layouts[3]])


@pytest.mark.parametrize(
    ("queries", "keys", "size", "masked", "layouts"),
    [
        (64, 64, 64, False, ("NHTC",) * 4),
        (70, 130, 64, True, ("NTHC", "NTHC", "NTHC", "NTHC")),
        (9, 40, 80, False, ("NHTC", "NTHC", "NHTC", "NTHC")),
    ],
)
def test_attention(queries: int, keys: int, size: int, masked: bool, layouts: tuple[str, ...]) -> None:
    """Of sizes that fill no tile, in several blocks of keys, with a mask, in any order of tokens and heads."""
    shape = AttentionShape(1, 2, queries, keys, size, size)
    extents = [dict(zip(AXES, (1, tokens, 2, size), strict=True)) for tokens in (queries, keys, keys)]
    operands = [
        te.placeholder([sizes[letter] for letter in layout], "float16", name)
        for name, sizes, layout in zip("qkv", extents, layouts, strict=False)
    ]
    mask = te.placeholder((1, 1, keys, 1), "float16", "mask")
    given = [*operands, mask] if masked else operands
    random = np.random.default_rng(1)
    arrays = [
        random.standard_normal([int(one) for one in tensor.shape]).astype("float16") for tensor in given
    ]
    scale = size**-0.5
    with TARGET:
        made = attention(*operands, mask if masked else None, shape, scale, layouts, (0, 0, 0))
    (found,) = run(given, [made], *arrays, target=TARGET)
    np.testing.assert_allclose(found, reference(arrays, layouts, scale), rtol=5e-3, atol=3e-3)


@pytest.mark.parametrize(
    ("shape", "dtype", "target", "words"),
    [
        (AttentionShape(1, 1, 8, 8, 64, 64), "float32", "cuda -arch=sm_90a", "16-bit floats"),
        (AttentionShape(1, 1, 8, 8, 64, 64), "float16", "cuda -arch=sm_80", "sm_90a"),
        (AttentionShape(1, 1, 8, 8, 256, 256), "float16", "cuda -arch=sm_90a", "128 channels"),
        (AttentionShape(1, 1, 8, 8, 20, 20), "float16", "cuda -arch=sm_90a", "16 bytes"),
    ],
)
def test_refusals_say_why(shape: AttentionShape, dtype: str, target: str, words: str) -> None:
    assert words in str(attention_refused(shape, dtype, tvm.target.Target(target)))
