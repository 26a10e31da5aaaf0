"""Attention in one kernel, run by simulated threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.schedule.gpu.device import run

import tilewright as tvm
from tilewright import te
from tilewright.schedule import schedule
from tilewright.schedule.gpu.tensor_core import attention as choice
from tilewright.schedule.gpu.tensor_core.attention import attention, attention_refused
from tilewright.schedule.gpu.tensor_core.bulk_attention import bulk_attention_pays
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


def interpreted(given: list[te.Tensor], made: te.Tensor, arrays: list[Any]) -> Any:
    """What simulated threads compute."""
    return run(given, [made], *arrays, target=TARGET)[0]


def on_device(given: list[te.Tensor], made: te.Tensor, arrays: list[Any]) -> Any:
    """What a GPU computes."""
    target, device = tvm.target.Target("cuda"), tvm.cuda(0)
    library = tvm.build(schedule([made], target), [*given, made], target)
    result = tvm.nd.empty([int(extent) for extent in made.shape], str(made.dtype), device)
    library(*(tvm.nd.array(one, device) for one in arrays), result)
    return result.numpy()


@pytest.mark.parametrize(
    "compute",
    [
        interpreted,
        pytest.param(
            on_device,
            marks=[pytest.mark.gpu, pytest.mark.skipif(not tvm.cuda(0).exist, reason="there is no GPU here")],
        ),
    ],
)
@pytest.mark.parametrize(
    ("queries", "keys", "size", "packed"),
    [(200, 530, 64, False), (70, 340, 80, False), (140, 140, 128, True)],
)
def test_bulk_attention(
    queries: int, keys: int, size: int, packed: bool, compute: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy engine fetches tiles that reach beyond the last token and channel, also from one tensor with queries,
    keys and values; groups take turns."""
    monkeypatch.setattr(choice, "bulk_attention_pays", lambda *_: True)
    shape, layouts = AttentionShape(1, 2, queries, keys, size, size), ("NTHC",) * 4
    random = np.random.default_rng(2)
    if packed:
        operands = [te.placeholder((1, queries, 6, size), "float16", "qkv")] * 3
    else:
        operands = [te.placeholder((1, tokens, 2, size), "float16") for tokens in (queries, keys, keys)]
    given = operands[:1] if packed else operands
    arrays = [random.standard_normal([int(one) for one in x.shape]).astype("float16") for x in given]
    query, key, value = operands
    first_heads = (0, 2, 4) if packed else (0, 0, 0)
    with TARGET:
        made = attention(query, key, value, None, shape, size**-0.5, layouts, first_heads)
    found = compute(given, made, arrays)
    parts = [arrays[0][:, :, first : first + 2] for first in first_heads] if packed else arrays
    np.testing.assert_allclose(found, reference(parts, layouts, size**-0.5), rtol=5e-3, atol=3e-3)


def test_copies_by_the_engine_pay_for_long_sequences() -> None:
    """They need a full grid, and channels that are adjacent."""
    layouts = ("NTHC",) * 4

    def pays(tokens: int, size: int, layouts: tuple[str, ...] = layouts, is_masked: bool = False) -> bool:
        shape = AttentionShape(4, 16, tokens, tokens, size, size)
        return bulk_attention_pays(shape, layouts, is_masked, 132)

    assert pays(2048, 128) and pays(8192, 64)
    assert not pays(2048, 64), "five rounds of blocks and a third"
    assert not pays(128, 128)
    assert not pays(2048, 128, ("NTCH",) * 4)
    assert not pays(2048, 128, is_masked=True)


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
